"""What a worker does for a driver: one request at a time, with one state that is kept for the next one.

    request ─do_request→ state of a count, or of slices of an answer ─→ result

A state is an open store with its last blocks, in memory or on a GPU. Requests of other work close it before there is
another one, so that no two share the memory of a worker; `release_state` closes it when the driver has ended.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable

from wedgewise.errors import WedgewiseError
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.run._count_worker import BatchRequest, CountState, error_to_json, process_name
from wedgewise.run._slice_worker import SliceRequest, SliceState

_one_at_a_time = threading.Lock()
_state: CountState | SliceState | None = None


def do_request(
    message: str,
    memory_limit: int | None = None,
    progress: Callable[[bytes], None] = lambda result: None,
    worker: str | None = None,
) -> bytes:
    """Count a batch of tasks, or compute slices. A `WedgewiseError` is a result as well.

    A limit for this process stands in where the request has none. On the way, `progress` gets the tasks that were
    finished since the last call; the result at the end has all. Results name the worker; without a name it is known by
    the number of its process.
    """
    try:
        request = (SliceRequest if "slices" in json.loads(message) else BatchRequest).from_json(message)
        with _one_at_a_time:
            return _do(request, request.memory_limit or memory_limit, progress, worker or process_name(os.getpid()))
    except WedgewiseError as error:
        return error_to_json(error)


def release_state() -> None:
    """Give up what is kept for the next request, and its memory."""
    with _one_at_a_time:
        _close_state()


@memory_for("count")
def _do(
    request: BatchRequest | SliceRequest, memory_limit: int | None, progress: Callable[[bytes], None], worker: str
) -> bytes:
    """Do a request with the state of the last one, or another one where this is other work."""
    global _state
    if _state is None or _state.settings != (request.without_tasks(), memory_limit):
        _close_state()
        if isinstance(request, BatchRequest):
            _state = CountState(request, memory_limit, worker)
        else:
            _state = SliceState(request, memory_limit, worker)
    numbers = request.tasks if isinstance(request, BatchRequest) else request.slices
    return _state.do(numbers, worker, progress)


def _close_state() -> None:
    global _state
    closing, _state = _state, None
    if closing is not None:
        closing.close()

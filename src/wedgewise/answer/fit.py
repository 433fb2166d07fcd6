"""Whether a question fits into memory, or an `OutOfMemory` that says what is missing.

Too little memory is foreseen before a file is read, where its beginning tells how many pairs it has: with a limit, by
what the process takes at most, so that it keeps to it; without one, by what cleaning would be refused for. Otherwise it
shows where a stage is refused or memory runs out. What was taken is released before the question is answered from disk.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from traceback import clear_frames

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Shape
from wedgewise.answer.questions import ON_STORES, QUESTIONS
from wedgewise.answer.source import GraphFile, GraphSource, name_of, process_limit
from wedgewise.errors import DeviceMemoryError, InputError, MemoryLimitError, WedgewiseError
from wedgewise.machine import hardware
from wedgewise.machine.budget import MIN_LIMIT, RESERVE_BYTES, release_memory
from wedgewise.run.choose import allowed_memory, engine_for
from wedgewise.run.graph_memory import answering_bytes, cleaning_bytes
from wedgewise.run.request import Request

SMALL_BYTES = 1 << 20  # files that fit into every limit that stores have
READING_BLOCKS = 2
MIN_LINE_BYTES = 4  # of a pair in a file: two digits, what is between them, and a newline
MORE = "raise memory_limit or use a machine with more memory"
DIRECTED = ("clustering", "average_clustering")  # that directions change, which stores have not
RAN_OUT = "memory ran out"


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """A question that memory is too small for, and that is answered from disk.

    Attributes
    ----------
    request, source : what was asked, of what
    limit : for the whole process, while it is answered
    refusal : what to say where answering from disk needs too much as well
    reasons : what was needed and what was there, first to last
    """

    request: Request
    source: GraphSource
    limit: int | None
    refusal: str
    reasons: tuple[str, ...]


def too_little_memory(
    request: Request, source: GraphSource, error: MemoryError, full_gpu: DeviceMemoryError | None
) -> OutOfMemory:
    """What there was too little of, on the CPU and before that on a GPU; the error where disk does not help.

    Raises
    ------
    MemoryLimitError
        When the question cannot be answered from disk.
    """
    if not _can_use_disk(request, source):
        hint = _questions_on_disk(request)
        if hint and isinstance(error, MemoryLimitError):
            raise MemoryLimitError(str(error), hint) from error
        raise error
    text = str(error) or RAN_OUT
    reason = error.reason if isinstance(error, MemoryLimitError) else text
    on_gpu = () if full_gpu is None else (f"not on the GPU, which has too little memory: {full_gpu.reason}",)
    return OutOfMemory(request, source, _limit(request, source), text, (*on_gpu, reason))


def release_failed(error: MemoryError) -> None:
    """Let go of what was held where memory ran out."""
    earlier: BaseException | None = error
    while earlier is not None:
        clear_frames(earlier.__traceback__)
        earlier = earlier.__context__
    gc.collect()
    release_memory()


def _limit(request: Request, source: GraphSource) -> int | None:
    """The limit for the whole process."""
    return None if request.memory_limit is None else process_limit(source, request)


def _can_use_disk(request: Request, source: GraphSource) -> bool:
    """Whether the question can be answered from disk where memory is too small for it."""
    from wedgewise.answer.disk import check_store_could_answer

    if request.question not in ON_STORES or (source.directed and request.question in DIRECTED):
        return False
    try:
        check_store_could_answer(request, name_of(source))
    except InputError:
        return False
    return allowed_memory(request) >= MIN_LIMIT


def _questions_on_disk(request: Request) -> str:
    """Which questions can be answered from disk, said of one that cannot."""
    *most, last = ON_STORES
    return "" if request.question in ON_STORES else f"{', '.join(most)} and {last} can be answered from disk"


def foreseen(request: Request, source: GraphFile) -> OutOfMemory | None:
    """What memory is too small for, judged by the size of a file and its first lines; None where it may do."""
    limit = _limit(request, source)
    reason = _foreseen(request, source, limit)
    return None if reason is None else OutOfMemory(request, source, limit, f"{reason}; {MORE}", (reason,))


def _foreseen(request: Request, source: GraphFile, limit: int | None) -> str | None:
    """Why a file will not fit, judged by its size and first lines; None if it may."""
    size = os.path.getsize(source.path)
    most_pairs = size // MIN_LINE_BYTES
    if size <= SMALL_BYTES or (
        request.memory_limit is None
        and cleaning_bytes(most_pairs, most_pairs, request.thread_count) <= hardware.available_memory()
    ):
        return None
    if not _can_use_disk(request, source):
        return None
    pairs, beside = _pairs_by_beginning(source, size, request)
    need = None if pairs is None else _bytes_of(request, pairs, beside)
    allowed = _allowed(limit)
    if need is None or need <= allowed:
        return None
    return (
        f"{source.path}: about {pairs:,} pairs, by its size, may take {need:,} bytes in memory and {allowed:,} are "
        "allowed"
    )


def _pairs_by_beginning(source: GraphFile, size: int, request: Request) -> tuple[int | None, int]:
    """About how many pairs a file has, None where nothing is known, and what reading takes beside them.

    That is a block that is parsed, and one that waits. A compressed file has at most a pair per byte, which is said
    within a limit.
    """
    from wedgewise.read.text import BLOCK_BYTES
    from wedgewise.store.read_pairs import expected_pairs

    try:
        pairs = expected_pairs(source.path, source.format, source.read_options(1))
    except WedgewiseError:  # whoever reads it says what is wrong with it
        return None, 0
    if pairs is None and request.memory_limit is not None:
        return size, READING_BLOCKS * BLOCK_BYTES
    return pairs, READING_BLOCKS * BLOCK_BYTES


def _bytes_of(request: Request, pairs: int, beside: int) -> int | None:
    """What reading and cleaning take, for as many vertices as pairs; within a limit, what all stages take.

    None where an algorithm was asked for that has no answer in memory.
    """
    cleaning = cleaning_bytes(pairs, pairs, request.thread_count)
    if request.memory_limit is None:
        return cleaning
    algorithm = find(engine_for(request.question, "auto" if request.device == "hybrid" else request.algorithm), "cpu")
    if request.question not in algorithm.answers:
        return None
    threads, shape = request.thread_count, Shape(pairs, pairs)
    knobs = algorithm.settings(None if request.device == "hybrid" else request.knobs)
    work = algorithm.whole_on_cpu(request.question).bytes_needed(shape, threads, knobs)
    answer = QUESTIONS[request.question].answer_bytes(request.question, pairs, pairs)
    return max(beside + cleaning, answering_bytes(pairs, pairs, threads, work + answer))


def _allowed(limit: int | None) -> int:
    """What a file may take: of a limit for the process, all but what this holds and its kernels will."""
    if limit is None:
        return hardware.available_memory()
    from wedgewise.store.orient import COUNTING_BYTES

    beside = max(COUNTING_BYTES, hardware.resident_bytes() + RESERVE_BYTES)
    return max(0, min(hardware.available_memory(), limit - beside))

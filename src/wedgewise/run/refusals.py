"""Why a home cannot answer what is asked: each function raises with one sentence, or returns.

What an algorithm cannot do is said by the registry (`algorithms.find_able`), too little memory where it is counted
(`check_memory` in `run/choose.py`, `check_fits` in `machine/budget.py`), and what is wrong with a file by its reader.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wedgewise.algorithms._contract import MAX_ARCS, Algorithm
from wedgewise.errors import InputError, MemoryLimitError, PreconditionError, StorageError, UnknownNameError
from wedgewise.run.request import DEVICES, OBJECT, Request

if TYPE_CHECKING:
    from wedgewise.store.open import Store

READ_ONLY = "cannot be written to, and results are written there; name another folder for them by --work (work_folder=)"


@dataclass(frozen=True, slots=True)
class StoreMethod:
    """How a question about a store is answered.

    Attributes
    ----------
    computes : of its blocks: "count" by tasks, "triangles" or "edge_support" by slices
    by_workers : whether workers can do that
    in_rounds : whether slices are computed again and again, as trusses are
    """

    computes: str
    by_workers: bool = True
    in_rounds: bool = False


StoreMethods = Mapping[str, StoreMethod]


def check_blocks(request: Request, name: object, methods: StoreMethods) -> None:
    """Refuse what no blocks on disk answer; `methods` has the questions that they do, the name is for messages."""
    question, device, method = request.question, request.device, methods.get(request.question)
    is_count = method is not None and method.computes == "count"
    by_workers = method is not None and method.by_workers
    devices = ("auto", "cpu", "hybrid", "cuda")[: 2 + is_count + (is_count and request.by_workers)]
    _refuse_first(
        name,
        (method is None, f"a store answers {', '.join(methods)}, not {question}; ask the graph's file"),
        (
            device not in devices,
            "a store is counted on the CPU, with device='hybrid', or by workers; leave the device out",
        ),
        (request.details.get("weighted", False), "a store has no weights; ask the graph's file, or leave them out"),
        (
            question == "trussness" and request.verify,
            "truss numbers of a store are not verified; verify the k-trusses that matter (k_truss, truss --k)",
        ),
        (request.by_workers and not by_workers, f"workers do not answer {question}; leave them out"),
        (request.share_count > 1 and not is_count, f"shares are of count, not of {question}; leave them out"),
        (
            (request.order, request.relabel) != ("auto", "auto"),
            "a store has its order and its ids; leave order and relabel out",
        ),
    )


def check_store(request: Request, name: object, methods: StoreMethods) -> None:
    """Refuse what a store that is there does not answer."""
    whole = "a store has too many rows for one JSON object; name a file by --output"
    _refuse_first(name, (request.rows == OBJECT, whole))
    check_blocks(request, name, methods)
    cut = "a store is cut into parts already; leave the knob parts out"
    _refuse_first(name, ("parts" in (request.knobs or {}), cut))


def check_rows_on_disk(request: Request, too_little: str, *, is_file: bool) -> None:
    """Refuse one object of all rows of a file that memory is too small for."""
    if request.rows == OBJECT and is_file:
        raise MemoryLimitError(too_little, "with --output, rows are written from disk")


def check_writable(store: Store) -> None:
    """Refuse to keep slices beside a store that cannot be written to."""
    if store.is_read_only:
        raise StorageError(f"{store.location}: {READ_ONLY}")


def check_file(path: object, *, is_store: bool, instead: str = "name the graph's file instead") -> None:
    """Refuse a store where a file is to be read."""
    _refuse_first(path, (is_store, f"is a store; {instead}"))


def check_store_options(path: object, given: Sequence[str]) -> None:
    """Refuse options for reading a file where a store is named."""
    _refuse_first(path, (bool(given), f"is a store, not a file; leave out: {', '.join(given)}"))


def check_no_store(request: Request, source: Any) -> None:
    """Refuse workers and shares for what is no store."""
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else "the graph"
    needs = "is not a store; {} one: create it with `wedgewise partition`"
    _refuse_first(
        name,
        (request.by_workers, needs.format("workers need")),
        (request.share_count > 1 and request.device != "hybrid", needs.format("shares need")),
    )


def check_workers(request: Request, store: Store) -> None:
    """Refuse two kinds of workers at once, and a store that no other process sees."""
    if request.cluster is not None and request.workers is not None:
        raise InputError("pass cluster or workers, not both")
    hidden = "no other process sees it; name a folder, or a URL of shared storage"
    _refuse_first(store.location, (store.location.is_in_this_process, hidden))


def check_device(request: Request) -> None:
    """Refuse a device of no known name."""
    if request.device not in DEVICES:
        raise UnknownNameError(f"no device named {request.device!r}; there are: {', '.join(DEVICES)}")


def check_hybrid(request: Request, computes: str) -> None:
    """Refuse what GPUs and threads do not compute together."""
    _refuse_first(
        "device='hybrid'",
        (computes != "count", f"counts triangles and does not compute {computes}; use cuda or cpu"),
        (request.relabel not in ("auto", "rank"), f"cuts a graph with ids by rank, not {request.relabel!r}"),
        between=" ",
    )


def check_orientation(algorithm: Algorithm, order: str, relabel: str) -> None:
    """Refuse a form of the graph that an algorithm does not take."""
    orders, ids = ", ".join(algorithm.orders), ", ".join(algorithm.relabellings)
    _refuse_first(
        algorithm.name,
        (order not in algorithm.orders, f"takes the orders {orders}, not {order!r}"),
        (relabel not in algorithm.relabellings, f"takes ids by {ids}, not {relabel!r}"),
        between=" ",
    )


def check_edges(m: int, algorithm: Algorithm | None = None) -> None:
    """Refuse more edges than an algorithm takes, or than any exact total allows."""
    if algorithm is not None and m >= algorithm.most_arcs:
        raise PreconditionError(
            f"{m:,} edges; {algorithm.name} on {algorithm.device} takes fewer than {algorithm.most_arcs:,}: use another"
        )
    if m >= MAX_ARCS:
        raise InputError(f"{m:,} edges; exact 64-bit totals are guaranteed below {MAX_ARCS:,}")


def check_weights(*, is_weighted: bool, has_weights: bool) -> None:
    """Refuse weighted coefficients of a graph without weights."""
    if is_weighted and not has_weights:
        raise InputError("weighted clustering needs a graph that keeps weights: pass Graph(…, weights=…)")


def _refuse_first(name: object, *refusals: tuple[bool, str], between: str = ": ") -> None:
    """Raise for the first that applies."""
    for applies, why in refusals:
        if applies:
            raise PreconditionError(f"{name}{between}{why}")

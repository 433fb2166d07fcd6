"""OrientedGraph + Machine → Plan: which algorithm, how much memory, how long, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wedgewise.algorithms import find, registry
from wedgewise.errors import InputError, MemoryLimitError, PreconditionError, UnknownNameError
from wedgewise.machine import hardware, jit

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm, Shape

DEVICES = ("auto", "cpu", "cuda")
ENGINE = "keystone"  # what `auto` takes for all but small graphs
MAX_EDGES = 2 * 10**12  # T ≤ (√2 / 3) m^1.5 < 2^63 whenever m < 7.26e12: totals cannot overflow

ALWAYS_THERE_BYTES = 1 << 24  # asking the system costs more than taking so little

ARRAY_SECONDS_PER_WEDGE = 1.2e-7
COMPILED_SECONDS_PER_WEDGE = 1e-9
COST = {"count": 1, "triangles": 2, "edge_support": 5, "list_triangles": 5, "weighted_triangles": 14}  # in counts


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller asked for, as given."""

    device: str = "auto"
    algorithm: str = "auto"
    order: str = "auto"
    relabel: str = "auto"
    memory_limit: int | None = None
    threads: int | None = None
    knobs: Mapping[str, int | str] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done and why; ``str(plan)`` is the explanation.

    Examples
    --------
    >>> import wedgewise as ww
    >>> plan = ww.explain("count", [(0, 1), (1, 2), (2, 0)], algorithm="forward", threads=2)
    >>> print(str(plan).partition(chr(10))[0])
    count: forward on cpu, 2 threads
    """

    question: str
    computes: str
    algorithm: str
    device: str
    order: str
    relabel: str
    threads: int
    knobs: dict[str, int | str]
    n: int
    m: int
    wedges: int
    bytes_needed: int
    estimated_seconds: float
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        knobs = ", ".join(f"{name}={value}" for name, value in self.knobs.items()) or "none"
        lines = [
            f"{self.question}: {self.algorithm} on {self.device}, {self.threads} threads",
            f"  graph     {self.n:,} vertices, {self.m:,} edges, {self.wedges:,} wedges in {self.order} order",
            f"  ids       by {self.relabel}",
            f"  knobs     {knobs}",
            f"  memory    {self.bytes_needed:,} bytes beyond the oriented graph",
            f"  time      about {self.estimated_seconds:.3g} s of work",
            *(f"  because   {reason}" for reason in self.reasons),
        ]
        return "\n".join(lines)


def choose_orientation(options: Options) -> tuple[str, str]:
    """The order and the relabelling that the asked-for algorithm takes, or the best ones for `auto`."""
    if options.device not in DEVICES:
        raise UnknownNameError(f"no device named {options.device!r}; there are: {', '.join(DEVICES)}")
    algorithm = find(ENGINE if options.algorithm == "auto" else options.algorithm, place_of(options))
    order = algorithm.orders[0] if options.order == "auto" else options.order
    relabel = algorithm.relabellings[0] if options.relabel == "auto" else options.relabel
    if order not in algorithm.orders:
        raise PreconditionError(f"{algorithm.name} takes the orders {', '.join(algorithm.orders)}, not {order!r}")
    if relabel not in algorithm.relabellings:
        listed = ", ".join(algorithm.relabellings)
        raise PreconditionError(f"{algorithm.name} takes ids by {listed}, not {relabel!r}")
    return order, relabel


def place_of(options: Options) -> str:
    """Where the work is done: on a GPU only when it is asked for."""
    return "cuda" if options.device == "cuda" else "cpu"


def check_preparation(n: int, m: int, options: Options) -> None:
    """Refuse what cannot fit or overflow, before anything large is allocated."""
    if m >= MAX_EDGES:
        raise InputError(f"{m:,} edges; exact 64-bit totals are guaranteed below {MAX_EDGES:,}")
    need = orient_bytes(n, m, options.threads or hardware.usable_threads())
    check_memory(need, options, f"orienting {m:,} edges", "use a machine with more memory")


def check_memory(need: int, options: Options, what: str, otherwise: str) -> None:
    """Refuse `need` bytes beyond the caller's limit or what the machine has left."""
    if options.memory_limit is None and need <= ALWAYS_THERE_BYTES:
        return
    available = hardware.available_memory()
    allowed = available if options.memory_limit is None else min(available, options.memory_limit)
    if need > allowed:
        raise MemoryLimitError(
            f"{what} takes {need:,} bytes and {allowed:,} are allowed; raise memory_limit or {otherwise}"
        )


def orient_bytes(n: int, m: int, threads: int) -> int:
    """Peak of `orient` beyond the simple graph: two key buffers and the arcs; ranks, counts and offsets."""
    from wedgewise.radix import counting_workers

    workers = max(counting_workers(m, n, threads), counting_workers(n, n, threads))
    return 20 * m + (21 + 4 * workers) * n


def make_plan(
    question: str, computes: str, shape: Shape, order: str, relabel: str, options: Options, answer_bytes: int = 0
) -> Plan:
    """Choose the algorithm that computes what the question needs, for an oriented graph of this shape.

    `answer_bytes` is what making the answer of it takes.
    """
    threads = options.threads or hardware.usable_threads()
    place = place_of(options)
    if options.algorithm != "auto":
        algorithm, reasons = find(options.algorithm, place), ["asked for by name"]
    elif place == "cuda":
        algorithm, reasons = find(ENGINE, place), ["the fastest engine on a GPU, which was asked for"]
    else:
        algorithm, reasons = _choose(computes, shape, threads)
    if computes not in algorithm.answers:
        able = ", ".join(
            f"{name} on {where}" for (name, where), other in registry().items() if computes in other.answers
        )
        raise PreconditionError(
            f"{algorithm.name} on {place} does not compute {computes}, which {question} needs; {able} do"
        )
    knobs = algorithm.settings(options.knobs)
    what = f"{question} by {algorithm.name}"
    if place == "cuda":
        need = algorithm.on_device(computes).bytes_needed(shape, knobs) + graph_bytes(shape)
        _check_device_memory(need, what)
    else:
        need = algorithm.on_cpu(computes).bytes_needed(shape, threads, knobs) + answer_bytes
        check_memory(need, options, what, "use fewer threads or another algorithm")
    return Plan(
        question=question,
        computes=computes,
        algorithm=algorithm.name,
        device=place,
        order=order,
        relabel=relabel,
        threads=threads,
        knobs=knobs,
        n=shape.n,
        m=shape.m,
        wedges=shape.wedges or 0,
        bytes_needed=need,
        estimated_seconds=_estimate(algorithm, computes, shape, threads),
        reasons=tuple(reasons),
    )


def graph_bytes(shape: Shape) -> int:
    """What an oriented graph of this shape takes."""
    return 4 * shape.m + (12 if shape.m >= 1 << 31 else 8) * (shape.n + 1)


def _check_device_memory(need: int, what: str) -> None:
    """Refuse what the GPU has no room for, before anything is copied."""
    from wedgewise.machine.gpu import find_device

    free = find_device().free_bytes()
    if need > free:
        raise MemoryLimitError(
            f"{what} takes {need:,} bytes of device memory and {free:,} are free; use device='cpu' or a larger GPU"
        )


def _choose(computes: str, shape: Shape, threads: int) -> tuple[Algorithm, list[str]]:
    """NumPy where it is done before kernels would be loaded, else the engine."""
    candidates = [registry()[name, "cpu"] for name in ("reference", ENGINE)]  # both compute everything
    best = min(candidates, key=lambda algorithm: _estimate(algorithm, computes, shape, threads))
    if best.name == "reference":
        reason = f"a small graph: NumPy answers before the kernels would be loaded ({jit.load_seconds():.2g} s)"
    elif jit.is_loaded():
        reason = "the fastest engine here, and its kernels are loaded"
    else:
        reason = f"the fastest engine here; loading its kernels ({jit.load_seconds():.2g} s) is repaid"
    return best, [reason]


def _estimate(algorithm: Algorithm, computes: str, shape: Shape, threads: int) -> float:
    """Seconds of work, with the loading of kernels when it is still to come."""
    wedges = shape.wedges or 0
    if not algorithm.compiled:
        return wedges * ARRAY_SECONDS_PER_WEDGE + shape.m * 1e-7
    return jit.load_seconds() + COST[computes] * (wedges + 4 * shape.m) * COMPILED_SECONDS_PER_WEDGE / threads

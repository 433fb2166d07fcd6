"""Request + Graph + Machine → Plan: which device, orientation and algorithm, how much memory, how long, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from wedgewise.algorithms import ENGINE, TRUSS_ENGINE, find, find_able, registry
from wedgewise.algorithms._contract import TRUSSES, Shape
from wedgewise.errors import DeviceMemoryError, MemoryLimitError
from wedgewise.machine import gpu, hardware, jit
from wedgewise.prepare.ranked_arcs import RAW_DEGREE
from wedgewise.run import refusals
from wedgewise.run.graph_memory import device_bytes, orient_bytes
from wedgewise.run.plan import OrientedShape, Plan, plan_of
from wedgewise.run.request import Request

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm
    from wedgewise.graph import Graph
    from wedgewise.machine.gpu import CopyingDevice

ALWAYS_THERE_BYTES = 1 << 24  # asking the system costs more than taking so little

ARRAY_SECONDS_PER_WEDGE = 1.2e-7
COMPILED_SECONDS_PER_WEDGE = 1e-9
ORIENT_SECONDS_PER_EDGE = 2e-8
DEVICE_SECONDS, DEVICE_SECONDS_PER_EDGE = 5e-3, 1.5e-9
BLOCK_SECONDS_PER_EDGE = 5e-10  # of tasks on a GPU, their blocks copied
BATCHES, MAX_BATCHES = "batches", 64  # the knob of algorithms that can save memory so
COST = {  # in counts
    "count": 1,
    "triangles": 2,
    "edge_support": 5,
    "list_triangles": 5,
    "weighted_triangles": 14,
    "trussness": 40,
    "k_truss": 8,
    "max_truss": 12,
}
ARRAY_ROUNDS = {"trussness": 100, "k_truss": 10, "max_truss": 100}  # of trusses, each of which costs about a count


def engine_for(computes: str, algorithm: str = "auto") -> str:
    """The algorithm that was named; for `auto`, what computes this in all but small graphs."""
    if algorithm != "auto":
        return algorithm
    return TRUSS_ENGINE if computes in TRUSSES else ENGINE


def choose_orientation(request: Request, device: str, computes: str, graph: Graph) -> tuple[str, str]:
    """The order and the relabelling that the asked-for algorithm takes, or the best ones for `auto`."""
    if graph.is_ranked and device == "cuda" and may_be_ranked(request):
        return RAW_DEGREE, "rank"
    algorithm = find(engine_for(computes, request.algorithm), device)
    order = request.order
    if order == "auto":
        order = algorithm.orders[0] if algorithm.prefers is None else algorithm.prefers(graph.degrees)
    relabel = algorithm.relabellings[0] if request.relabel == "auto" else request.relabel
    if (request.order, request.relabel) != ("auto", "auto"):
        refusals.check_orientation(algorithm, order, relabel)
    return order, relabel


def choose_order_of_blocks(request: Request, graph: Graph) -> str:
    """The order for tasks on blocks, whose ids are ranks: what the engine takes, by whichever algorithm they go."""
    return choose_orientation(replace(request, algorithm=ENGINE, relabel="rank"), "cpu", "count", graph)[0]


def choose_device(request: Request, computes: str, graph: Graph) -> tuple[str, tuple[str, ...]]:
    """Where the work is done, "cpu", "cuda" or "hybrid", and the reasons for it."""
    reasons = request.reasons if graph.cleaning_note is None else (*request.reasons, graph.cleaning_note)
    device = _requested_device(request)
    if device == "hybrid":
        refusals.check_hybrid(request, computes)
    if device in ("cpu", "hybrid") or (device is None and not gpu.is_likely()):
        return device or "cpu", reasons
    engine = registry().get((engine_for(computes), "cuda"))
    is_able = engine is not None and computes in engine.answers
    if device == "cuda" and not is_able and request.algorithm == "auto":
        return "cpu", (*reasons, f"on the CPU: nothing computes {computes} on a GPU")
    if device == "cuda":
        return device, reasons
    if engine is None or not is_able or graph.m >= engine.most_arcs:
        return "cpu", reasons
    here, there = _seconds_here(computes, graph, request), _seconds_there(engine, computes, graph)
    if here <= there or gpu.why_no_device() is not None:
        return "cpu", reasons
    return "cuda", (*reasons, f"on the GPU: about {there:.2g} s instead of {here:.2g} s on the CPU")


def choose_cleaning_device(request: Request) -> str:
    """Where a source is cleaned: on the GPU when that is where the question is to be answered, else where it lies."""
    return "cuda" if _requested_device(request) == "cuda" else "auto"


def may_be_ranked(request: Request) -> bool:
    """Whether pairs on a GPU become oriented rows at once: for a count by an algorithm that takes any order."""
    is_free = (request.order, request.relabel) == ("auto", "auto") and request.algorithm in ("auto", ENGINE)
    return request.question == "count" and is_free


def _requested_device(request: Request) -> str | None:
    """The device that was named, or the only one that the named algorithm runs on; None where neither was named."""
    if request.device != "auto":
        refusals.check_device(request)
        return request.device
    if request.algorithm == "auto":
        return None
    return (
        "cuda" if (request.algorithm, "cpu") not in registry() and (request.algorithm, "cuda") in registry() else "cpu"
    )


def _seconds_here(computes: str, graph: Graph, request: Request) -> float:
    """An estimate for the host: loading, orienting and counting the wedges that the degrees let expect."""
    from wedgewise.prepare.orient_arrays import expected_wedges

    threads = request.thread_count
    work = COST[computes] * (expected_wedges(graph.degrees) + 4 * graph.m) * COMPILED_SECONDS_PER_WEDGE
    load = jit.load_seconds(*find(engine_for(computes), "cpu").whole_on_cpu(computes).kernels)
    return load + (work + ORIENT_SECONDS_PER_EDGE * graph.m) / threads


def _seconds_there(engine: Algorithm, computes: str, graph: Graph) -> float:
    """An estimate for the GPU: loading, copying, preparing; kernels take less than that, but for rounds of trusses."""
    from wedgewise.prepare.orient_arrays import expected_wedges

    cost = engine.whole_on_device(computes).cost if computes in TRUSSES else None
    shape = Shape(graph.n, graph.m, int(expected_wedges(graph.degrees)))
    rounds = 0.0 if cost is None else cost.of_kernels(shape)
    return gpu.load_seconds() + DEVICE_SECONDS + DEVICE_SECONDS_PER_EDGE * graph.m + rounds


def check_preparation(n: int, m: int, request: Request) -> None:
    """Refuse what cannot fit or overflow, before anything large is allocated."""
    refusals.check_edges(m)
    need = orient_bytes(n, m, request.thread_count)
    check_memory(need, request, f"orienting {m:,} edges", "use a machine with more memory")


def check_memory(need: int, request: Request, what: str, otherwise: str) -> None:
    """Refuse `need` bytes beyond the caller's limit or what the machine has left."""
    if request.memory_limit is None and need <= ALWAYS_THERE_BYTES:
        return
    allowed = allowed_memory(request)
    if need > allowed:
        raise MemoryLimitError(
            f"{what} takes {need:,} bytes and {allowed:,} are allowed", f"raise memory_limit or {otherwise}"
        )


def allowed_memory(request: Request) -> int:
    """The caller's limit, or what the machine has left if that is less."""
    available = hardware.available_memory()
    return available if request.memory_limit is None else min(available, request.memory_limit)


def estimated_seconds(shape: Shape, threads: int, devices: int) -> float:
    """What block tasks take on so many threads and GPUs together, loading apart."""
    here = threads / ((shape.wedges or 0) + 4 * shape.m + 1) / COMPILED_SECONDS_PER_WEDGE
    there = devices / (DEVICE_SECONDS + BLOCK_SECONDS_PER_EDGE * shape.m)
    return 1 / (here + there)


def make_plan(
    request: Request, computes: str, oriented_shape: OrientedShape, answer_bytes: int = 0, reasons: tuple[str, ...] = ()
) -> Plan:
    """Choose the algorithm on the CPU that computes what the question needs.

    `answer_bytes` is what making the answer of it takes.
    """
    shape, threads = oriented_shape.shape, request.thread_count
    if request.algorithm == "auto" and not request.knobs:
        algorithm, reason, seconds = _choose_on_cpu(computes, shape, threads)
        answer = algorithm.whole_on_cpu(computes)
    else:
        algorithm = _able(engine_for(computes, request.algorithm), "cpu", computes, request.question)
        reason = "asked for by name" if request.algorithm != "auto" else "the engine, which has the given knobs"
        answer = algorithm.whole_on_cpu(computes)
        seconds = _estimate(algorithm, computes, shape, threads, jit.load_seconds(*answer.kernels))
    knobs = algorithm.settings(request.knobs)
    need = answer.bytes_needed(shape, threads, knobs) + answer_bytes
    check_memory(need, request, f"{request.question} by {algorithm.name}", "use fewer threads or another algorithm")
    return plan_of(
        request.question,
        oriented_shape,
        computes=computes,
        algorithm=algorithm.name,
        threads=threads,
        knobs=knobs,
        bytes_needed=need,
        estimated_seconds=seconds,
        reasons=(reason, *reasons),
    )


def make_device_plan(
    request: Request, computes: str, oriented_shape: OrientedShape, device: CopyingDevice, reasons: tuple[str, ...] = ()
) -> Plan:
    """Choose the algorithm on a GPU, and as few batches as its memory allows.

    Raises
    ------
    DeviceMemoryError
        When they do not fit however small the batches are.
    """
    shape = oriented_shape.shape
    free = device.free_bytes() if request.memory_limit is None else min(device.free_bytes(), request.memory_limit)
    if request.algorithm != "auto":
        algorithm, choice = _able(request.algorithm, "cuda", computes, request.question), ["asked for by name"]
    else:
        algorithm, choice = _choose_on_device(computes, oriented_shape, free)
    knobs = algorithm.settings(request.knobs)
    need = device_bytes(algorithm, computes, shape, knobs)
    while need > free:
        more = _with_more_batches(knobs)
        if more is None:
            raise DeviceMemoryError(device.name, wanted=need, free=free)
        knobs = more
        need = device_bytes(algorithm, computes, shape, knobs)
    if knobs.get(BATCHES, 1) != algorithm.settings(request.knobs).get(BATCHES, 1):
        choice.append(f"in {knobs[BATCHES]} batches, for {free:,} bytes of device memory")
    cost = algorithm.whole_on_device(computes).cost
    return plan_of(
        request.question,
        oriented_shape,
        computes=computes,
        algorithm=algorithm.name,
        device="cuda",
        threads=request.thread_count,
        knobs=knobs,
        bytes_needed=need,
        estimated_seconds=0.0 if cost is None else cost.of_preparing(shape) + cost.of_kernels(shape),
        reasons=(*choice, *reasons),
    )


def with_more_batches(plan: Plan, error: DeviceMemoryError) -> Plan:
    """The plan again after memory ran out, with twice as many batches; the error where there are no more."""
    knobs = _with_more_batches(plan.knobs)
    if knobs is None:
        raise error
    reason = f"in {knobs[BATCHES]} batches: {error.reason}"
    return replace(plan, knobs=knobs, reasons=(*plan.reasons, reason))


def _with_more_batches(knobs: dict[str, int | str]) -> dict[str, int | str] | None:
    """Twice as many batches, where there is that knob."""
    batches = int(knobs.get(BATCHES, MAX_BATCHES))
    return None if batches >= MAX_BATCHES else {**knobs, BATCHES: 2 * batches}


def _able(name: str, device: str, computes: str, question: str) -> Algorithm:
    """The algorithm that was named, if it computes what the question needs."""
    what = f"compute {computes}, which {question} needs"
    return find_able(name, device, lambda record: computes in record.answers, what)


def _choose_on_device(computes: str, oriented_shape: OrientedShape, free: int) -> tuple[Algorithm, list[str]]:
    """The one that is done first: prepared, and its kernels run."""
    shape, order, relabel = oriented_shape
    able = [
        (algorithm, answer.cost)
        for (_name, where), algorithm in registry().items()
        if where == "cuda" and computes in algorithm.answers and shape.m < algorithm.most_arcs
        if ("degree" if order == RAW_DEGREE else order) in algorithm.orders and relabel in algorithm.relabellings
        if (answer := algorithm.whole_on_device(computes)).cost is not None
    ]
    fitting = [
        (algorithm, cost)
        for algorithm, cost in able
        if device_bytes(algorithm, computes, shape, _in_most_batches(algorithm)) <= free
    ]
    if not fitting:
        return find(engine_for(computes), "cuda"), ["the engine of the GPU"]
    seconds = [
        (cost.of_preparing(shape) + cost.of_kernels(shape), algorithm.name, algorithm) for algorithm, cost in fitting
    ]
    return min(seconds)[2], ["by the cost model: no other is prepared and has counted before it"]


def _in_most_batches(algorithm: Algorithm) -> dict[str, int | str]:
    """The defaults, with as many batches as there may be."""
    knobs = algorithm.settings(None)
    return {**knobs, BATCHES: MAX_BATCHES} if BATCHES in knobs else knobs


def _choose_on_cpu(computes: str, shape: Shape, threads: int) -> tuple[Algorithm, str, float]:
    """NumPy where it is done before kernels would be loaded, else the engine; why, and how long that takes.

    NumPy takes every orientation, so that the engine's, which was chosen before, serves both.
    """
    arrays, engine = find("reference", "cpu"), find(engine_for(computes), "cpu")
    load = jit.load_seconds(*engine.whole_on_cpu(computes).kernels)
    by_arrays = _estimate(arrays, computes, shape, threads, load)
    by_engine = _estimate(engine, computes, shape, threads, load)
    if by_arrays <= by_engine:
        reason = f"a small graph: NumPy answers before the kernels would be loaded ({load:.2g} s)"
        return arrays, reason, by_arrays
    if load == 0:
        return engine, "the fastest engine here, and its kernels are loaded", by_engine
    return engine, f"the fastest engine here; loading its kernels ({load:.2g} s) is repaid", by_engine


def _estimate(algorithm: Algorithm, computes: str, shape: Shape, threads: int, load: float) -> float:
    """Seconds of work, with the loading of kernels when it is still to come."""
    wedges = shape.wedges or 0
    if not algorithm.compiled:
        return ARRAY_ROUNDS.get(computes, 1) * (wedges * ARRAY_SECONDS_PER_WEDGE + shape.m * 1e-7)
    return load + COST[computes] * (wedges + 4 * shape.m) * COMPILED_SECONDS_PER_WEDGE / threads

"""The questions: what users call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from wedgewise import __version__
from wedgewise.algorithms import registry
from wedgewise.errors import InputError, VerificationError
from wedgewise.graph import CleanReport, OrientedGraph
from wedgewise.machine import hardware, jit
from wedgewise.plan import Options, Plan, check_preparation, check_question, choose_orientation, make_plan
from wedgewise.user_graph import Graph

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm
    from wedgewise.reduce import Total

Progress = Callable[[str, int, int], None] | bool | None
SCHEMA = 1
VERIFY_BY_ARRAYS_WEDGES = 200_000_000  # beyond, the recount is by the compiled hash map


@dataclass(frozen=True, slots=True)
class Result:
    """An answer with everything that a report needs.

    Attributes
    ----------
    answer : the exact answer; an int for ``count``
    question, algorithm, device : what was asked and what answered
    plan : the whole Plan, with reasons
    seconds : wall-clock seconds by stage
    n, m : vertices and edges after cleaning
    cleaned : what cleaning dropped
    wedges_tested : membership tests (comparisons for merging algorithms)
    verified : how the answer was confirmed, or None
    peak_bytes : largest resident size of this process so far
    machine, version : where and by what

    Examples
    --------
    >>> import wedgewise as ww
    >>> result = ww.run("count", [(0, 1), (1, 2), (2, 0), (0, 0)], verify=True)
    >>> result.answer, result.m, result.cleaned.loops, result.verified is not None
    (1, 3, 1, True)
    """

    answer: int
    question: str
    algorithm: str
    device: str
    plan: Plan
    seconds: dict[str, float]
    n: int
    m: int
    cleaned: CleanReport
    wedges_tested: int
    verified: str | None
    peak_bytes: int
    machine: str
    version: str

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object with the same keys and ``schema``."""
        return {"schema": SCHEMA, **asdict(self)}


def count(
    graph: Any,
    *,
    device: str = "auto",
    algorithm: str = "auto",
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    verify: bool = False,
    knobs: Mapping[str, int | str] | None = None,
) -> int:
    """Count the triangles of a graph, exactly.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts: a path, an edge array, a SciPy sparse matrix, a list of pairs
    device : "auto" or "cpu"
    algorithm : "auto" or a name from `algorithms()`
    memory_limit : bytes that counting may take; exceeding it is an error before the work starts
    threads : how many threads; the default is what this process may use
    progress : True for a bar on standard error, or a callable (stage, done, total)
    verify : recount by another method over another order and compare
    knobs : parameters of the algorithm by name

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.count([(0, 1), (1, 2), (2, 0), (2, 3)])
    1
    """
    options = Options(device, algorithm, "auto", "auto", memory_limit, threads, knobs)
    return _answer("count", graph, options, progress, verify).answer


def run(
    question: str,
    graph: Any,
    *,
    device: str = "auto",
    algorithm: str = "auto",
    order: str = "auto",
    relabel: str = "auto",
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    verify: bool = False,
    knobs: Mapping[str, int | str] | None = None,
) -> Result:
    """Answer a question and return the whole `Result`.

    `order` and `relabel` choose the orientation and the ids where the algorithm leaves that open; the other parameters
    are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.run("count", [(0, 1), (1, 2), (2, 0)]).answer
    1
    """
    options = Options(device, algorithm, order, relabel, memory_limit, threads, knobs)
    return _answer(question, graph, options, progress, verify)


def explain(
    question: str,
    graph: Any,
    *,
    device: str = "auto",
    algorithm: str = "auto",
    order: str = "auto",
    relabel: str = "auto",
    memory_limit: int | None = None,
    threads: int | None = None,
    knobs: Mapping[str, int | str] | None = None,
) -> Plan:
    """Say what `run` would do and why, without counting; ``print`` it.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.explain("count", [(0, 1), (1, 2), (2, 0)]).m
    3
    """
    options = Options(device, algorithm, order, relabel, memory_limit, threads, knobs)
    _, plan = _prepare(question, as_graph(graph), options)
    return plan


def algorithms() -> list[Algorithm]:
    """Every registered algorithm: name, device, unit, answers, paper, limits and knobs of each.

    Examples
    --------
    >>> import wedgewise as ww
    >>> [record.paper for record in ww.algorithms() if record.name == "reference"]
    ['the definition']
    """
    return list(registry().values())


def as_graph(graph: Any) -> Graph:
    """The graph itself, or one made of whatever `Graph` accepts."""
    return graph if isinstance(graph, Graph) else Graph(graph)


def _prepare(question: str, graph: Graph, options: Options) -> tuple[OrientedGraph, Plan]:
    from wedgewise.algorithms._contract import Shape

    check_question(question)
    if options.threads is not None and options.threads < 1:
        raise InputError(f"threads is at least 1, not {options.threads}")
    order, relabel = choose_orientation(options)
    check_preparation(graph.n, graph.m, options)
    oriented = graph.oriented(order, relabel, threads=options.threads)
    shape = Shape(oriented.n, oriented.m, oriented.wedges)
    return oriented, make_plan(question, shape, order, relabel, options)


def _answer(question: str, source: Any, options: Options, progress: Progress, verify: bool) -> Result:
    check_question(question)
    with _bar(progress) as tell:
        clock = _Clock()
        graph = as_graph(source)
        if graph is not source:
            clock.lap("read and clean")
        oriented, plan = _prepare(question, graph, options)
        clock.lap("orient")
        total = _count(plan, oriented, None if tell is None else lambda done, tasks: tell("count", done, tasks))
        clock.lap("count")
        verified = None
        if verify:
            verified = _verify(question, graph, total.triangles, plan, options)
            clock.lap("verify")
    return Result(
        answer=total.triangles,
        question=question,
        algorithm=plan.algorithm,
        device=plan.device,
        plan=plan,
        seconds=clock.laps,
        n=graph.n,
        m=graph.m,
        cleaned=graph.cleaned,
        wedges_tested=total.tests,
        verified=verified,
        peak_bytes=hardware.peak_bytes(),
        machine=hardware.look().description,
        version=__version__,
    )


def _count(plan: Plan, oriented: OrientedGraph, on_done: Callable[[int, int], None] | None = None) -> Total:
    """Carry a plan out and add its partials up."""
    from wedgewise.execute.local import execute
    from wedgewise.reduce import reduce

    return reduce(execute(plan, oriented, on_done), plan.m, plan.wedges)


def _verify(question: str, graph: Graph, answer: int, plan: Plan, options: Options) -> str:
    """Recount by another method over another order; the answer must be the same integer."""
    method = _recount_method(plan)
    order = "core" if plan.order != "core" else "degree"
    check = replace(options, algorithm=method, order=order, relabel="rank", knobs=None)
    oriented, recount_plan = _prepare(question, graph, check)
    if oriented.m != graph.m:
        raise VerificationError(f"{oriented.m:,} arcs for {graph.m:,} edges: please report this")
    recount = _count(recount_plan, oriented).triangles
    if recount != answer:
        raise VerificationError(
            f"{plan.algorithm} counts {answer:,} triangles, {method} {recount:,}: please report this"
        )
    return f"recounted by {method} over {order} order"


def _recount_method(plan: Plan) -> str:
    """Array operations while they take seconds, else a compiled map; never the method that is checked."""
    if plan.wedges > VERIFY_BY_ARRAYS_WEDGES:
        return "hashmap" if plan.algorithm != "hashmap" else "forward"
    if plan.algorithm != "reference":
        return "reference"
    return "hashmap" if jit.is_loaded() else "example"


class _Clock:
    """Wall-clock seconds between laps, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = now - self._last
        self._last = now


def _bar(progress: Progress) -> Any:
    from wedgewise.report.progress import progress_bar

    return progress_bar(progress)

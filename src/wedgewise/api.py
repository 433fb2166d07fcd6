"""The questions: what users call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import isnan
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from wedgewise import __version__
from wedgewise.algorithms import registry
from wedgewise.errors import InputError
from wedgewise.graph import CleanReport, OrientedGraph
from wedgewise.machine import hardware
from wedgewise.plan import Options, Plan, check_preparation, choose_orientation, make_plan
from wedgewise.user_graph import Graph

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm
    from wedgewise.questions import Asked, GeneralizedDegree, Question
    from wedgewise.reduce import Computed

Progress = Callable[[str, int, int], None] | bool | None
SCHEMA = 1


class How(TypedDict, total=False):
    """The keywords that every question takes; `count` explains them."""

    device: str
    algorithm: str
    memory_limit: int | None
    threads: int | None
    progress: Progress
    verify: bool
    knobs: Mapping[str, int | str] | None


@dataclass(frozen=True, slots=True)
class Result:
    """An answer with everything that a report needs.

    Attributes
    ----------
    answer : the exact answer; an int for ``count``, an array for ``triangles`` and so on
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

    answer: Any
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
        """A JSON-ready object with the same keys and ``schema``; arrays become lists."""
        plain = {"schema": SCHEMA, **asdict(replace(self, answer=None))}
        plain["answer"] = _plain(self.answer)
        return plain


def _plain(answer: Any) -> Any:
    """An answer in numbers and lists; JSON has no NaN, so that None stands for it."""
    if isinstance(answer, np.ndarray):
        items = answer.tolist()
        return [_plain(item) for item in items] if answer.dtype.kind == "f" else items
    if isinstance(answer, float):
        return None if isnan(answer) else answer
    return answer if isinstance(answer, int) else {name: _plain(part) for name, part in _parts(answer)}


def _parts(answer: GeneralizedDegree) -> list[tuple[str, Any]]:
    return [("offsets", answer.offsets), ("supports", answer.supports), ("edges", answer.edges)]


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
    graph : a Graph, or whatever `Graph` accepts: a path, an edge array, pairs, an object of another library
    device : "auto" (the CPU), "cpu" or "cuda"
    algorithm : "auto" or a name from `algorithms()`
    memory_limit : bytes that the work may take; exceeding it is an error before the work starts
    threads : how many threads; the default is what this process may use
    progress : True for a bar on standard error, or a callable (stage, done, total)
    verify : check the answer by another method: a total is recounted, of an array a sample
    knobs : parameters of the algorithm by name

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.count([(0, 1), (1, 2), (2, 0), (2, 3)])
    1
    """
    how = How(device=device, algorithm=algorithm, memory_limit=memory_limit, threads=threads, knobs=knobs)
    answer: int = _ask("count", graph, {**how, "progress": progress, "verify": verify})
    return answer


def triangles(graph: Any, **how: Unpack[How]) -> NDArray[np.int64]:
    """Count the triangles of every vertex, in the order of ``Graph.labels``.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.triangles([(0, 1), (1, 2), (2, 0), (2, 3)])
    array([1, 1, 1, 0])
    """
    answer: NDArray[np.int64] = _ask("triangles", graph, how)
    return answer


def edge_support(graph: Any, **how: Unpack[How]) -> NDArray[np.int64]:
    """Count the triangles of every edge, in the order of ``Graph.edges``.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> ww.edge_support(g)
    array([1, 1, 1, 0])
    >>> g.edges.tolist()
    [[0, 1], [0, 2], [1, 2], [2, 3]]
    """
    answer: NDArray[np.int64] = _ask("edge_support", graph, how)
    return answer


def list_triangles(graph: Any, *, start: int = 0, stop: int | None = None, **how: Unpack[How]) -> NDArray[np.uint32]:
    """List triangles as rows of three ascending vertices.

    The order of the rows depends on nothing but the graph, so that `start` and `stop` cut the same list wherever they
    are given (`run` with another `order` or `relabel` lists in another order). `iter_triangles` lists in batches what
    does not fit into memory at once: 12 bytes per triangle.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    start, stop : the first triangle of the list, and the one after the last; None is the end
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.list_triangles([(0, 1), (1, 2), (2, 0), (2, 3)]).tolist()
    [[0, 1, 2]]
    """
    answer: NDArray[np.uint32] = _ask("list_triangles", graph, how, start=start, stop=stop)
    return answer


def iter_triangles(
    graph: Any,
    *,
    batch: int = 1 << 20,
    start: int = 0,
    stop: int | None = None,
    output: str = "numpy",
    **how: Unpack[How],
) -> Iterator[Any]:
    """List triangles in batches, in the order of `list_triangles`.

    Nothing but one batch is held: 12 bytes per triangle of it, and 4 per edge that say where to go on. A listing that
    was interrupted after k triangles goes on with ``start=k``.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    batch : how many triangles at a time; the last batch may have fewer
    start, stop : as in `list_triangles`
    output : "numpy" for arrays of shape (k, 3), "arrow" for ``pyarrow.RecordBatch`` with columns u, v, w
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> clique = [(u, v) for v in range(5) for u in range(v)]
    >>> [len(rows) for rows in ww.iter_triangles(clique, batch=4)]
    [4, 4, 2]
    """
    from wedgewise.execute.listing import wrapper
    from wedgewise.questions import stretch_of

    _check_batch(batch)
    wrap = wrapper(output)
    listing = open_listing(graph, *_split(how)).answer
    return map(wrap, listing.batches(*stretch_of(start, stop, listing.total), batch))


def write_triangles(
    graph: Any,
    path: str | PathLike[str],
    *,
    batch: int = 1 << 20,
    start: int = 0,
    stop: int | None = None,
    **how: Unpack[How],
) -> int:
    """List triangles into a file, by their labels, in the order of `list_triangles` and in batches; how many.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    path : its suffix names the format, csv, tsv, parquet, arrow or npy, and behind it the compression, such as .gz; the
        file appears when it is complete
    batch : how many triangles are held at a time
    start, stop : as in `list_triangles`
    **how : the keywords of `count`

    Examples
    --------
    >>> import pathlib, tempfile, wedgewise as ww
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "triangles.csv"
    >>> ww.write_triangles([("ada", "bob"), ("bob", "cy"), ("cy", "ada")], path)
    1
    >>> path.read_text()
    'u,v,w\\nada,bob,cy\\n'
    """
    from wedgewise.questions import stretch_of
    from wedgewise.write_answers import answer_writer, check_labels, per_triangle, write_answers

    _check_batch(batch)
    answer_writer(path)
    graph = as_graph(graph)
    check_labels(path, graph.labels, 3)
    listing = open_listing(graph, *_split(how)).answer
    begin, end = stretch_of(start, stop, listing.total)
    write_answers(per_triangle(graph.labels, end - begin, listing.batches(begin, end, batch)), path)
    return end - begin


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise InputError(f"batch is at least 1, not {batch}")


def open_listing(graph: Any, options: Options, progress: Progress, verify: bool) -> Result:
    """Count what each arc opens; the answer is the `Listing` of all triangles by number."""
    from wedgewise.questions import OPEN_LISTING

    return _answer(OPEN_LISTING, graph, options, progress, verify, {})


def clustering(
    graph: Any, *, weighted: bool = False, undefined: str = "zero", **how: Unpack[How]
) -> NDArray[np.float64]:
    """Local clustering coefficients, in the order of ``Graph.labels``, as NetworkX defines them.

    The share of a vertex's pairs of neighbours that are joined: 2 t(v) / (d(v) (d(v) − 1)). Where the graph keeps
    directions, the share of all directed triangles; with weights, triangles count as the geometric mean of theirs.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    weighted : weigh triangles by the weights that the graph keeps
    undefined : "zero" or "nan" for vertices without a pair of neighbours
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.clustering([(0, 1), (1, 2), (2, 0), (2, 3)], undefined="nan").round(3)
    array([1.   , 1.   , 0.333,   nan])
    """
    answer: NDArray[np.float64] = _ask("clustering", graph, how, weighted=weighted, undefined=undefined)
    return answer


def average_clustering(
    graph: Any,
    *,
    weighted: bool = False,
    count_zeros: bool = True,
    undefined: str = "zero",
    **how: Unpack[How],
) -> float:
    """The mean of the local clustering coefficients.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    weighted : as in `clustering`
    count_zeros : whether vertices of coefficient zero take part
    undefined : "zero" counts vertices without a pair of neighbours as zeros, "nan" leaves them out
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> round(ww.average_clustering([(0, 1), (1, 2), (2, 0), (2, 3)]), 3)
    0.583
    """
    details = {"weighted": weighted, "count_zeros": count_zeros, "undefined": undefined}
    answer: float = _ask("average_clustering", graph, how, **details)
    return answer


def transitivity(graph: Any, *, undefined: str = "zero", **how: Unpack[How]) -> float:
    """The share of paths of two edges that are closed: 3 T / Σ C(d, 2).

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts; directions are ignored
    undefined : "zero" or "nan" for a graph without such a path
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.transitivity([(0, 1), (1, 2), (2, 0), (2, 3)])
    0.6
    """
    answer: float = _ask("transitivity", graph, how, undefined=undefined)
    return answer


def generalized_degree(graph: Any, **how: Unpack[How]) -> GeneralizedDegree:
    """How many edges of each support every vertex has.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.generalized_degree([(0, 1), (1, 2), (2, 0), (2, 3)])[2]
    {0: 1, 1: 2}
    """
    answer: GeneralizedDegree = _ask("generalized_degree", graph, how)
    return answer


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
    **details: Any,
) -> Result:
    """Answer a question and return the whole `Result`.

    Questions have the names of the functions: ``"count"``, ``"triangles"``, ``"edge_support"`` and so on. `order` and
    `relabel` choose the orientation and the ids where the algorithm leaves that open; `details` are the question's own
    parameters, such as ``undefined="nan"``; the others are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.run("count", [(0, 1), (1, 2), (2, 0)]).answer
    1
    """
    from wedgewise.questions import find_question

    options = Options(device, algorithm, order, relabel, memory_limit, threads, knobs)
    return _answer(find_question(question), graph, options, progress, verify, details)


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
    **details: Any,
) -> Plan:
    """Say what `run` would do and why, without doing it; ``print`` it.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.explain("count", [(0, 1), (1, 2), (2, 0)]).m
    3
    """
    from wedgewise.questions import find_question

    options = Options(device, algorithm, order, relabel, memory_limit, threads, knobs)
    wanted = find_question(question)
    graph = as_graph(graph)
    _, plan = _prepare(wanted, wanted.computes(graph, wanted.details(details)), graph, options)
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


def _split(how: How) -> tuple[Options, Progress, bool]:
    """What the planner needs, and the two keywords that are not its business."""
    planned: dict[str, Any] = {name: value for name, value in how.items() if name not in ("progress", "verify")}
    unknown = set(planned) - set(How.__annotations__)
    if unknown:
        raise TypeError(f"unexpected keyword {min(unknown)!r}; every question takes {', '.join(How.__annotations__)}")
    return Options(**planned), how.get("progress"), how.get("verify", False)


def _ask(question: str, graph: Any, how: How, **details: Any) -> Any:
    from wedgewise.questions import find_question

    return _answer(find_question(question), graph, *_split(how), details).answer


def _prepare(question: Question, computes: str, graph: Graph, options: Options) -> tuple[OrientedGraph, Plan]:
    from wedgewise.algorithms._contract import Shape

    if options.threads is not None and options.threads < 1:
        raise InputError(f"threads is at least 1, not {options.threads}")
    order, relabel = choose_orientation(options)
    check_preparation(graph.n, graph.m, options)
    oriented = graph.oriented(order, relabel, threads=options.threads)
    shape = Shape(oriented.n, oriented.m, oriented.wedges)
    answer_bytes = question.answer_bytes(computes, graph.n, graph.m)
    return oriented, make_plan(question.name, computes, shape, order, relabel, options, answer_bytes)


def _compute(
    question: Question,
    graph: Graph,
    options: Options,
    details: Mapping[str, Any],
    tell: Callable[[str, int, int], None] | None,
) -> tuple[Asked, Plan, dict[str, float]]:
    """Orient and compute; the answer is still to be made of it. Seconds by stage."""
    from wedgewise.questions import Asked

    clock = _Clock()
    details = question.details(details)
    computes = question.computes(graph, details)
    oriented, plan = _prepare(question, computes, graph, options)
    if computes == "weighted_triangles":
        strengths = _strengths(graph, oriented, details["weighted"], plan.threads)
        oriented = replace(oriented, strengths=strengths)
    clock.lap("orient")
    computed = _carry_out(plan, oriented, None if tell is None else lambda done, tasks: tell("count", done, tasks))
    clock.lap("count")
    return Asked(graph, oriented, computed, details, plan.threads, options), plan, {**clock.laps, **computed.seconds}


def _strengths(graph: Graph, oriented: OrientedGraph, weighted: bool, threads: int) -> NDArray[Any]:
    """What each arc contributes to the product of a triangle."""
    assert graph.attributes is not None
    by_edge = graph.attributes.strengths(weighted=weighted, threads=threads)
    by_arc = np.empty_like(by_edge)
    by_arc[graph.arcs_of_edges(oriented, threads=threads)] = by_edge
    return by_arc


def _answer(
    question: Question, source: Any, options: Options, progress: Progress, verify: bool, details: Mapping[str, Any]
) -> Result:
    question.details(details)
    with _bar(progress) as tell:
        clock = _Clock()
        graph = as_graph(source)
        if graph is not source:
            clock.lap("read and clean")
        asked, plan, seconds = _compute(question, graph, options, details, tell)
        clock.skip()
        answer = question.finish(asked)
        if answer is not asked.computed.triangles:
            clock.lap("answer")
        verified = None
        if verify:
            verified = _verified(question, asked, plan, options)
            clock.lap("verify")
    return Result(
        answer=answer,
        question=question.name,
        algorithm=plan.algorithm,
        device=plan.device,
        plan=plan,
        seconds=_in_order(clock.laps, seconds),
        n=graph.n,
        m=graph.m,
        cleaned=graph.cleaned,
        wedges_tested=asked.computed.tests,
        verified=verified,
        peak_bytes=hardware.peak_bytes(),
        machine=hardware.look().description,
        version=__version__,
    )


def _in_order(outer: dict[str, float], inner: dict[str, float]) -> dict[str, float]:
    """The laps of both clocks as they happened: reading, then the inner ones, then the rest."""
    reading = {stage: taken for stage, taken in outer.items() if stage == "read and clean"}
    return {**reading, **inner, **outer}


def _carry_out(plan: Plan, oriented: OrientedGraph, on_done: Callable[[int, int], None] | None = None) -> Computed:
    """Carry a plan out and add its partials up."""
    from wedgewise.execute.local import execute
    from wedgewise.reduce import reduce

    return reduce(execute(plan, oriented, on_done), plan)


def _verified(question: Question, asked: Asked, plan: Plan, options: Options) -> str:
    """Check by another method, or raise; how it was done."""
    from wedgewise import verify

    def recount(method: str, order: str) -> int:
        other = replace(options, algorithm=method, order=order, relabel="rank", knobs=None)
        oriented, recount_plan = _prepare(question, "count", asked.graph, other)
        verify.check_arcs(oriented, asked.graph)
        return _carry_out(recount_plan, oriented).triangles

    return verify.verify(asked, plan, recount)


class _Clock:
    """Wall-clock seconds between laps, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = now - self._last
        self._last = now

    def skip(self) -> None:
        """Leave what happened since the last lap to another clock."""
        self._last = time.perf_counter()


def _bar(progress: Progress) -> Any:
    from wedgewise.report.progress import progress_bar

    return progress_bar(progress)

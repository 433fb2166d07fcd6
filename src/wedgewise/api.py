"""The questions: what users call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import registry
from wedgewise.answer_types import Truss, TrussLevel
from wedgewise.errors import InputError
from wedgewise.graph import refuse_reading
from wedgewise.result import SCHEMA, Result
from wedgewise.run.plan import Plan
from wedgewise.run.request import LISTING

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm
    from wedgewise.answer_types import GeneralizedDegree

__all__ = ["SCHEMA", "Result"]
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")
Progress = Callable[[str, int, int], None] | bool | None


class How(TypedDict, total=False):
    """The keywords that every question takes; `count` explains them."""

    device: str
    algorithm: str
    memory_limit: int | None
    threads: int | None
    progress: Progress
    verify: bool
    knobs: Mapping[str, int | str] | None
    resume: bool
    work_folder: str | PathLike[str] | None


def _refusing_reading(question: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """The same question, which says where the keywords of `Graph` belong."""

    @wraps(question)
    def ask(*args: Asked.args, **keywords: Asked.kwargs) -> Answer:
        refuse_reading(keywords)
        return question(*args, **keywords)

    return ask


@_refusing_reading
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
    resume: bool = True,
    work_folder: str | PathLike[str] | None = None,
    cluster: str | None = None,
    workers: int | None = None,
) -> int:
    """Count the triangles of a graph, exactly.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts: a path, an edge array, pairs, an object of another library; or the
        folder of a store that `wedgewise partition` made, of which only what fits the memory limit is read at a time;
        a store may also be named by a URL that fsspec reads
    device : "cpu", "cuda", or "auto": where it is estimated to be faster; "hybrid" counts by blocks on both together
    algorithm : "auto" or a name from `algorithms()`
    memory_limit : bytes that the work may take; what takes more goes on from disk, where stores answer the question, or
        is an error before the work starts. For a store, and a file that goes on from disk, the largest size of the
        whole process; of every worker of a cluster, of all workers on this machine together
    threads : how many threads; the default is what this process may use
    progress : True for a bar on standard error, or a callable (stage, done, total)
    verify : check the answer by another method: a total is recounted, of an array a sample
    knobs : parameters of the algorithm by name
    resume : of a store, and from disk: go on where the same work was ended; False forgets what it has finished, and is
        what to do where the options or the version have changed since. Work in memory always starts afresh
    work_folder : of a store: where finished work is kept until there is an answer, instead of the store's own folder
        or, for a URL, the cache folder; a store in a folder that cannot be written to needs one, but for a count. Of
        what goes on from disk: where its blocks are, instead of the system's temporary folder, so that ended work goes
        on when the same is asked again
    cluster : of a store: the address of a Dask scheduler or the path of its scheduler file, whose workers count
    workers : of a store: how many processes of this machine count, instead of this one

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.count([(0, 1), (1, 2), (2, 0), (2, 3)])
    1
    """
    from wedgewise.answer.answering import answer
    from wedgewise.answer.questions import ask

    request = ask(
        "count",
        graph,
        {},
        device=device,
        algorithm=algorithm,
        memory_limit=memory_limit,
        threads=threads,
        progress=progress,
        verify=verify,
        knobs=knobs,
        resume=resume,
        work_folder=work_folder,
        cluster=cluster,
        workers=workers,
    )
    found: int = answer(request).answer
    return found


def triangles(graph: Any, **how: Unpack[How]) -> NDArray[np.int64]:
    """Count the triangles of every vertex, in the order of ``Graph.labels``.

    The keywords are those of `count`; a store may be asked as well.

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

    The keywords are those of `count`; a store may be asked as well.

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
    from wedgewise.answer.questions import stretch_of
    from wedgewise.run.listing import wrapper

    _check_batch(batch)
    wrap = wrapper(output)
    listing = _result("list_triangles", graph, how, {}, rows=LISTING).answer
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
    from wedgewise.answer.questions import stretch_of
    from wedgewise.write.answers import answer_writer, per_triangle, write_answers

    _check_batch(batch)
    answer_writer(path)
    result = _result("list_triangles", graph, how, {}, rows=LISTING, output=path)
    listing, labelled = result.answer, result.graph
    assert labelled is not None
    begin, end = stretch_of(start, stop, listing.total)
    write_answers(per_triangle(labelled.labels, end - begin, listing.batches(begin, end, batch)), path)
    return end - begin


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise InputError(f"batch is at least 1, not {batch}")


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


def trussness(graph: Any, **how: Unpack[How]) -> NDArray[np.int64]:
    """The truss number of every edge, in the order of ``Graph.edges``: the largest k whose k-truss holds it.

    The k-truss is the largest subgraph in which every edge lies in at least k − 2 triangles of the subgraph; every edge
    is in the 2-truss. The keywords are those of `count`; with `verify`, some of the trusses are found again.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.trussness([(0, 1), (1, 2), (2, 0), (2, 3)])
    array([3, 3, 3, 2])
    """
    answer: NDArray[np.int64] = _ask("trussness", graph, how)
    return answer


def k_truss(graph: Any, k: int, **how: Unpack[How]) -> Truss:
    """The k-truss: the largest subgraph in which every edge lies in at least k − 2 triangles of the subgraph.

    Parameters
    ----------
    graph : a Graph, whatever `Graph` accepts, or the folder of a store
    k : at least 2
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> truss = ww.k_truss(g, 3)
    >>> truss.edges
    array([0, 1, 2])
    >>> g.edges[truss.edges].tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    answer: Truss = _ask("k_truss", graph, how, k=k)
    return answer


def max_truss(graph: Any, **how: Unpack[How]) -> Truss:
    """The last k-truss that has edges, without the others; the whole graph, with k = 2, where there are no triangles.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> truss = ww.max_truss([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> truss.k, len(truss)
    (3, 3)
    """
    answer: Truss = _ask("max_truss", graph, how)
    return answer


def truss_summary(graph: Any, **how: Unpack[How]) -> tuple[TrussLevel, ...]:
    """Edges, vertices and connected components of the k-truss, for every k from 2 to the largest with edges.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> for level in ww.truss_summary([(0, 1), (1, 2), (2, 0), (2, 3)]):
    ...     print(level)
    TrussLevel(k=2, edges=4, vertices=4, components=1)
    TrussLevel(k=3, edges=3, vertices=3, components=1)
    """
    answer: tuple[TrussLevel, ...] = _ask("truss_summary", graph, how)
    return answer


def truss_components(graph: Any, k: int, **how: Unpack[How]) -> NDArray[np.int64]:
    """The connected component of the k-truss that each vertex is in, numbered by least vertex; −1 outside of it.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    k : at least 2
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.truss_components([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (5, 6)], 3)
    array([ 0,  0,  0,  1,  1,  1, -1])
    """
    answer: NDArray[np.int64] = _ask("truss_components", graph, how, k=k)
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
    resume: bool = True,
    work_folder: str | PathLike[str] | None = None,
    cluster: str | None = None,
    workers: int | None = None,
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
    from wedgewise.answer.answering import answer
    from wedgewise.answer.questions import ask

    request = ask(
        question,
        graph,
        details,
        device=device,
        algorithm=algorithm,
        order=order,
        relabel=relabel,
        memory_limit=memory_limit,
        threads=threads,
        progress=progress,
        verify=verify,
        knobs=knobs,
        resume=resume,
        work_folder=work_folder,
        cluster=cluster,
        workers=workers,
    )
    return answer(request)


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
    from wedgewise.answer.answering import plan_for
    from wedgewise.answer.questions import ask

    request = ask(
        question,
        graph,
        details,
        device=device,
        algorithm=algorithm,
        order=order,
        relabel=relabel,
        memory_limit=memory_limit,
        threads=threads,
        knobs=knobs,
    )
    return plan_for(request)[0]


def algorithms() -> list[Algorithm]:
    """Every registered algorithm: name, device, unit, answers, paper, limits and knobs of each.

    Examples
    --------
    >>> import wedgewise as ww
    >>> [record.paper for record in ww.algorithms() if record.name == "reference"]
    ['the definition']
    """
    return list(registry().values())


def _ask(question: str, graph: Any, how: How, **details: Any) -> Any:
    return _result(question, graph, how, details).answer


def _result(question: str, graph: Any, how: How, details: Mapping[str, Any], **more: Any) -> Result:
    """The whole answer to a question that takes the shared keywords and no others."""
    from wedgewise.answer.answering import answer
    from wedgewise.answer.questions import ask

    refuse_reading(how)
    unknown = how.keys() - How.__annotations__.keys()
    if unknown:
        raise TypeError(f"unexpected keyword {min(unknown)!r}; every question takes {', '.join(How.__annotations__)}")
    return answer(ask(question, graph, details, **how, **more))

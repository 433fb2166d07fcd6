"""The questions: what users call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from os import PathLike
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import registry
from wedgewise.algorithms._table import AlgorithmList
from wedgewise.graph import Graph, refuse_reading
from wedgewise.machine.progress import Progress
from wedgewise.result import SCHEMA, Result
from wedgewise.run.plan import Plan

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm
    from wedgewise.answer_types import GeneralizedDegree
    from wedgewise.stages import Column
    from wedgewise.stages.limits import Limits

__all__ = ["SCHEMA", "Result"]
Parameters = ParamSpec("Parameters")
ReturnType = TypeVar("ReturnType")


class Keywords(TypedDict, total=False):
    """The keywords that every question takes; `count` explains them."""

    device: str
    algorithm: str
    memory_limit: int | None
    threads: int | None
    progress: Progress | bool | None
    verify: bool
    knobs: Mapping[str, int | str] | None
    resume: bool
    work_folder: str | PathLike[str] | None
    cluster: str | None
    workers: int | None


def _refuses_graph_keywords(question: Callable[Parameters, ReturnType]) -> Callable[Parameters, ReturnType]:
    """The same question, which says of a keyword of `Graph` that it belongs there."""
    accepted = frozenset(signature(question).parameters)

    @wraps(question)
    def refusing(*args: Parameters.args, **keywords: Parameters.kwargs) -> ReturnType:
        if not accepted.issuperset(keywords):
            refuse_reading(keywords)
        return question(*args, **keywords)

    return refusing


@_refuses_graph_keywords
def count(
    graph: Any,
    *,
    device: str = "auto",
    algorithm: str = "auto",
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    verify: bool = False,
    knobs: Mapping[str, int | str] | None = None,
    resume: bool = True,
    work_folder: str | PathLike[str] | None = None,
    cluster: str | None = None,
    workers: int | None = None,
    shares: int | None = None,
) -> int:
    """Count the triangles of a graph, exactly.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts: a path, an edge array, pairs, an object of another library. Or a store
        that `wedgewise partition` made, as a folder or a URL that fsspec reads
    device : "cpu", "cuda", "hybrid" (CPU and all GPUs together), or "auto", which takes the one estimated to be faster.
        With `cluster` or `workers`, "cuda" is the GPU of every worker, "hybrid" its GPU if it has one, otherwise its
        CPU, and "auto" is its CPU
    algorithm : "auto" or a name from `algorithms()`
    memory_limit : most bytes to use. If the work needs more, it is answered from disk if stores answer the question;
        otherwise an error is raised before the work starts. For a store or a file that is answered from disk, the limit
        is for the whole process. It is for each worker of a cluster, and for all workers on this machine together
    threads : number of threads; the default is all that this process may use
    progress : True for a bar on standard error, or a callable (stage, done, total)
    verify : check the answer by another method: a total is recounted, of an array a sample
    knobs : parameters of the algorithm by name
    resume : for a store, and from disk: continue from saved progress. False deletes the progress and starts again; use
        it after a change of options or version. Work in memory always starts again
    work_folder : folder for temporary blocks and saved progress. The default is the store's own folder, the cache
        folder for a URL, and the system's temporary folder for other sources, which are then not resumed. A store that
        cannot be written to needs one, except to count
    cluster : for a store: the address of a Dask scheduler, or the path of its scheduler file
    workers : for a store: number of processes on this machine that count
    shares : for a store, and with "hybrid": split each task into so many, as TRUST does for as many GPUs. The default
        is what a resumed count had, as few as make a task for each worker, or 1

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.count([(0, 1), (1, 2), (2, 0), (2, 3)])
    1
    """
    found: int = _run(
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
        shares=shares,
    ).answer
    return found


def shows_keywords(question: Callable[Parameters, ReturnType]) -> Callable[Parameters, ReturnType]:
    """The same question, whose signature names the keywords of `count` in place of ``**how``, for help and editors."""
    own, shared = signature(question), signature(count).parameters
    named = [parameter for parameter in own.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    parameters = [*named, *(shared[name] for name in Keywords.__annotations__)]
    question.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return question


@shows_keywords
def triangles(graph: Any, **how: Unpack[Keywords]) -> NDArray[np.int64]:
    """Count the triangles of every vertex, in the order of ``Graph.labels``.

    The keywords are those of `count`; a store may be asked as well.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.triangles([(0, 1), (1, 2), (2, 0), (2, 3)])
    array([1, 1, 1, 0])
    """
    answer: NDArray[np.int64] = ask("triangles", graph, how)
    return answer


@shows_keywords
def edge_support(graph: Any, **how: Unpack[Keywords]) -> NDArray[np.int64]:
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
    answer: NDArray[np.int64] = ask("edge_support", graph, how)
    return answer


@shows_keywords
def clustering(
    graph: Any, *, weighted: bool = False, undefined: str = "zero", **how: Unpack[Keywords]
) -> NDArray[np.float64]:
    """Local clustering coefficients, in the order of ``Graph.labels``, as NetworkX defines them.

    The fraction of pairs of a vertex's neighbours that are joined: 2 t(v) / (d(v) (d(v) − 1)). If the graph keeps
    directions, the fraction of directed triangles. With weights, a triangle counts as their geometric mean.

    Parameters
    ----------
    graph : a Graph, whatever `Graph` accepts, or the folder of a store, which has neither directions nor weights
    weighted : weigh triangles by the weights that the graph keeps
    undefined : "zero" or "nan": the value for vertices with fewer than two neighbours
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.clustering([(0, 1), (1, 2), (2, 0), (2, 3)], undefined="nan").round(3)
    array([1.   , 1.   , 0.333,   nan])
    """
    answer: NDArray[np.float64] = ask("clustering", graph, how, weighted=weighted, undefined=undefined)
    return answer


@shows_keywords
def average_clustering(
    graph: Any,
    *,
    weighted: bool = False,
    count_zeros: bool = True,
    undefined: str = "zero",
    **how: Unpack[Keywords],
) -> float:
    """The mean of the local clustering coefficients.

    Parameters
    ----------
    graph : a Graph, whatever `Graph` accepts, or the folder of a store
    weighted : as in `clustering`
    count_zeros : whether vertices of coefficient zero take part
    undefined : "zero" counts vertices with fewer than two neighbours as 0, "nan" leaves them out
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> round(ww.average_clustering([(0, 1), (1, 2), (2, 0), (2, 3)]), 3)
    0.583
    """
    details = {"weighted": weighted, "count_zeros": count_zeros, "undefined": undefined}
    answer: float = ask("average_clustering", graph, how, **details)
    return answer


@shows_keywords
def transitivity(graph: Any, *, undefined: str = "zero", shares: int | None = None, **how: Unpack[Keywords]) -> float:
    """Global clustering coefficient: 3 T / Σ C(d, 2), for T triangles and degrees d.

    Parameters
    ----------
    graph : a Graph, whatever `Graph` accepts, or the folder of a store; directions are ignored
    undefined : "zero" or "nan": the value for a graph without two edges that meet
    shares : as in `count`
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.transitivity([(0, 1), (1, 2), (2, 0), (2, 3)])
    0.6
    """
    answer: float = ask_result("transitivity", graph, how, {"undefined": undefined}, shares=shares).answer
    return answer


@shows_keywords
def generalized_degree(graph: Any, **how: Unpack[Keywords]) -> GeneralizedDegree:
    """How many edges of each support every vertex has.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.generalized_degree([(0, 1), (1, 2), (2, 0), (2, 3)])[2]
    {0: 1, 1: 2}
    """
    answer: GeneralizedDegree = ask("generalized_degree", graph, how)
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
    progress: Progress | bool | None = None,
    verify: bool = False,
    knobs: Mapping[str, int | str] | None = None,
    resume: bool = True,
    work_folder: str | PathLike[str] | None = None,
    cluster: str | None = None,
    workers: int | None = None,
    shares: int | None = None,
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
    return _run(
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
        shares=shares,
    )


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
    workers: int | None = None,
    shares: int | None = None,
    **details: Any,
) -> Plan:
    """Say what `run` would do and why, without doing it; ``print`` it.

    Of a store and `workers`, it also says into how many parts and shares TRUST would cut the graph for them.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.explain("count", [(0, 1), (1, 2), (2, 0)]).m
    3
    """
    from wedgewise.answer.answering import plan_for
    from wedgewise.answer.questions import request_for

    request = request_for(
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
        workers=workers,
        shares=shares,
    )
    return plan_for(request)[0]


def read(
    path: str | PathLike[str],
    *,
    n: int | None = None,
    labels: str = "auto",
    format: str | None = None,
    limits: Limits | None = None,
    drop_leaves: bool = False,
    threads: int | None = None,
    directed: bool = False,
    device: str = "auto",
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    header: bool | str = "auto",
    combine: str = "last",
) -> Graph:
    """Read a graph file; the parameters are those of `Graph`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise.datasets import bundled
    >>> g = ww.read(bundled("email-Enron"))
    >>> g.n, g.m
    (36692, 183831)
    """
    return Graph(
        path,
        n=n,
        labels=labels,
        format=format,
        limits=limits,
        drop_leaves=drop_leaves,
        threads=threads,
        directed=directed,
        device=device,
        source=source,
        target=target,
        weight=weight,
        header=header,
        combine=combine,
    )


def algorithms() -> list[Algorithm]:
    """Every registered algorithm: name, device, unit, answers, paper, limits and knobs of each; it prints as a table.

    Examples
    --------
    >>> import wedgewise as ww
    >>> [record.paper for record in ww.algorithms() if record.name == "reference"]
    ['the definition']
    """
    return AlgorithmList(registry().values())


def ask(question: str, graph: Any, how: Keywords, **details: Any) -> Any:
    """The answer to a question that takes the shared keywords and no others."""
    return ask_result(question, graph, how, details).answer


def ask_result(question: str, graph: Any, how: Keywords, details: Mapping[str, Any], **more: Any) -> Result:
    """The whole result of such a question; `more` are fields of `Request`."""
    unknown = how.keys() - Keywords.__annotations__.keys()
    if unknown:
        refuse_reading(how)
        raise TypeError(
            f"unexpected keyword {min(unknown)!r}; every question takes {', '.join(Keywords.__annotations__)}"
        )
    return _run(question, graph, details, **how, **more)


def _run(question: str, graph: Any, details: Mapping[str, Any], **how: Any) -> Result:
    """The result; `how` are further fields of `Request`, checked."""
    from wedgewise.answer.answering import answer
    from wedgewise.answer.questions import request_for

    return answer(request_for(question, graph, details, **how))

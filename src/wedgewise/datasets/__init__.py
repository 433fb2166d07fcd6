"""Graphs by name: those that come with the package, and those of the papers with what is published about them.

import wedgewise as ww

g = ww.datasets.load("Theory-16-25-B1k")             # generated
g = ww.datasets.load("soc-LiveJournal1")             # fetched once, counted once, kept
g = ww.datasets.load("ca-GrQc", source="graphs/")    # from a folder, a file or a mirror
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from wedgewise.datasets import check
from wedgewise.datasets.catalogue import (
    Figure,
    Figures,
    PublishedGraph,
    Recipe,
    Source,
    catalogue,
    find,
    source_of,
    sources,
)
from wedgewise.datasets.packaged import BUNDLED, Dataset, bundled
from wedgewise.errors import MissingFileError
from wedgewise.graph import Graph
from wedgewise.machine.progress import Progress, progress_bar

__all__ = [
    "BUNDLED",
    "Dataset",
    "Figure",
    "Figures",
    "PublishedGraph",
    "Recipe",
    "Source",
    "bundled",
    "catalogue",
    "find",
    "get",
    "load",
    "source_of",
    "sources",
    "verify",
]


def load(
    name: str,
    *,
    source: str | PathLike[str] | None = None,
    paper: str | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Graph:
    """A graph of the catalogue, fetched or generated where it is not there yet.

    Parameters
    ----------
    name : as `catalogue` or a paper writes it
    source : a folder, a file, an address or a mirror (an address that ends in a slash), instead of the addresses of
        the catalogue
    paper : clean as this paper did, a key of `sources`: one of them drops the vertices of degree one
    threads : how many threads to prepare with
    progress : True for a bar on a terminal, or a function of stage, done and total

    Raises
    ------
    UnknownNameError
        no such graph or paper
    DownloadError
        the file cannot be fetched; what has arrived stays, and the next call resumes from there
    InputError
        the file is another graph than the one that was published
    MemoryLimitError
        the graph does not fit

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.datasets.load("Theory-3-4-5-B1k")
    >>> g.n, g.m, ww.count(g)
    (120, 346, 287)
    """
    from wedgewise.datasets import obtain

    graph = find(name)
    drop_leaves = paper is not None and source_of(paper).leaves_dropped
    if graph.recipe is not None and source is None:
        return obtain.generated_graph(graph.recipe.stream(), drop_leaves=drop_leaves, threads=threads)
    with progress_bar(progress) as progress:
        path = obtain.file_of(graph, source, progress)
        return obtain.read_graph(path, drop_leaves=drop_leaves, threads=threads)


def get(name: str, *, source: str | PathLike[str] | None = None, progress: Progress | bool | None = None) -> Path:
    """The file of a graph of the catalogue, in the cache folder or in the package.

    A file that is missing is fetched, copied or generated; it is counted once and compared with what is published. The
    parameters and errors are those of `load`.

    Examples
    --------
    >>> from wedgewise import datasets
    >>> datasets.get("email-Enron").name
    'email-Enron.txt.xz'
    """
    from wedgewise.datasets import obtain

    with progress_bar(progress) as progress:
        return obtain.file_of(find(name), source, progress)


def verify(name: str, *, trusses: bool = False, progress: Progress | bool | None = None) -> check.Verification:
    """Count a graph that is there, again, and compare it with everything that is published about it.

    Parameters
    ----------
    name : as `catalogue` or a paper writes it
    trusses : also find the largest k whose k-truss has edges
    progress : True for a bar on a terminal, or a function of stage, done and total

    Raises
    ------
    MissingFileError
        the graph is not there: `get` brings it

    Examples
    --------
    >>> from wedgewise import datasets
    >>> datasets.verify("Theory-3-4-5-B1k", trusses=True).agrees
    True
    """
    from wedgewise.datasets import obtain
    from wedgewise.datasets.cache import folder_of

    graph, folder = find(name), folder_of(find(name).name)
    path = folder.own_file()
    with progress_bar(progress) as progress:
        if path is not None:
            return obtain.verify_file(graph, folder, path, trusses=trusses, progress=progress)
        if graph.recipe is not None:
            made = obtain.generated_graph(graph.recipe.stream())
            return check.compare(graph, made, trusses=trusses, progress=progress)
        if graph.name in BUNDLED:
            return check.compare(graph, obtain.read_graph(bundled(graph.name)), trusses=trusses, progress=progress)
    raise MissingFileError(f"{graph.name}: is not there; `wedgewise datasets get {graph.name}` brings it")

"""The triangles themselves, as arrays, in batches or in a file: what users call."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wedgewise.api import Keywords, ask, ask_result, shows_keywords
from wedgewise.errors import InputError
from wedgewise.run.request import LISTING


@shows_keywords
def list_triangles(
    graph: Any, *, start: int = 0, stop: int | None = None, **how: Unpack[Keywords]
) -> NDArray[np.uint32]:
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
    answer: NDArray[np.uint32] = ask("list_triangles", graph, how, start=start, stop=stop)
    return answer


@shows_keywords
def iter_triangles(
    graph: Any,
    *,
    batch: int = 1 << 20,
    start: int = 0,
    stop: int | None = None,
    output: str = "numpy",
    **how: Unpack[Keywords],
) -> Iterator[Any]:
    """List triangles in batches, in the order of `list_triangles`.

    Nothing but one batch is held: 12 bytes per triangle of it, and 4 per edge that say where it continues. A listing
    that was interrupted after k triangles continues with ``start=k``.

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
    from wedgewise.machine.parameters import stretch_of
    from wedgewise.run.listing import wrapper

    _check_batch(batch)
    wrap = wrapper(output)
    listing = ask_result("list_triangles", graph, how, {}, rows=LISTING).answer
    return map(wrap, listing.batches(*stretch_of(start, stop, listing.total, "triangles"), batch))


@shows_keywords
def write_triangles(
    graph: Any,
    path: str | PathLike[str],
    *,
    batch: int = 1 << 20,
    start: int = 0,
    stop: int | None = None,
    **how: Unpack[Keywords],
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
    from wedgewise.machine.parameters import stretch_of
    from wedgewise.write.answers import answer_writer, per_triangle, write_answers

    _check_batch(batch)
    answer_writer(path)
    result = ask_result("list_triangles", graph, how, {}, rows=LISTING, output=path)
    listing, labelled = result.answer, result.graph
    assert labelled is not None
    begin, end = stretch_of(start, stop, listing.total, "triangles")
    write_answers(per_triangle(labelled.labels, end - begin, listing.batches(begin, end, batch)), path)
    return end - begin


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise InputError(f"batch is at least 1, not {batch}")

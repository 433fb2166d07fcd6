"""The edge that every row of a table became: what joins answers back to the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownLabelError, UnknownNameError
from wedgewise.graph import Graph
from wedgewise.machine import hardware
from wedgewise.prepare.attributes import find_ascending
from wedgewise.read import ReadOptions, TableReading
from wedgewise.read.columns import ANY_COLUMNS, FIRST_TWO, ColumnChoice
from wedgewise.read.graph_data import GraphData
from wedgewise.stages import Column, EdgeList
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import Limits, checked_limits

NO_EDGE = -1
MISSING = ("error", "ignore")
PART_ROWS = 1 << 18  # at a time, so that temporaries stay small and signals are heard


def edge_ids(
    graph: Graph,
    table: Any,
    *,
    source: Column | None = None,
    target: Column | None = None,
    header: bool | str = "auto",
    labels: str = "auto",
    format: str | None = None,
    limits: Limits | None = None,
    missing: str = "error",
) -> NDArray[np.int64]:
    """Find the edge of ``graph.edges`` that every row of a table became.

    Rows in either direction and repeated rows have the number of their one edge, so that ``edge_support(graph)[ids]``
    is the support of every row. A loop is no edge and has −1, which NumPy would take for the last edge:
    ``numpy.where(ids < 0, 0, support[ids])`` gives loops the value 0.

    Parameters
    ----------
    graph : the graph
    table : the table that the graph was made of, or other rows between its vertices: whatever `Graph` accepts, a path
        included
    source, target : as in `Graph`; by default the columns that the graph was made of
    header, labels, format, limits : as in `Graph`; "auto" takes labels of a file or table for what those of the graph
        are, integers or text
    missing : "error" refuses a row that is no edge of the graph; "ignore" gives it −1 as well

    Returns
    -------
    array of int64
        One number per row, in the order of the rows.

    Raises
    ------
    InputError
        When a row is no edge of the graph; the message names the row and its labels.

    Examples
    --------
    >>> import wedgewise as ww
    >>> rows = [("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("bob", "ada"), ("cy", "cy")]
    >>> g = ww.Graph(rows)
    >>> ww.edge_ids(g, rows)
    array([ 0,  2,  1,  0, -1])
    """
    if missing not in MISSING:
        raise UnknownNameError(f"no way named {missing!r} to treat missing edges; there are: {', '.join(MISSING)}")
    said = ColumnChoice(source, target, header=header)
    as_before = TableReading(_columns_before(graph, table, said), _labels_before(graph) if labels == "auto" else labels)
    try:
        threads = hardware.usable_threads()
        options = ReadOptions(labels, said, checked_limits(limits), threads, whole=True, in_table=as_before)
        rows = GraphData(table, None, None, format, options).pairs()
    except InputError as error:
        if as_before.columns != said:
            made_of = " and ".join(repr(column) for column in graph.cleaned.columns[:2])
            error.add_note(f"the graph was made of columns {made_of}; pass source=… and target=… to take others")
        raise
    found = np.empty(len(rows.pairs), np.int64)
    for part, ends in _ends_by_part(graph, rows):
        found[part] = _edges_between(graph, ends)
        if missing == "error":
            _check_all_there(graph, rows, part.start, found[part])
    return found


def ends_of_pairs(graph: Graph, table: Any) -> NDArray[np.uint32]:
    """The vertices of both ends of every row of a table of labels, whatever `Graph` accepts; adjacent or not."""
    options = ReadOptions(
        _labels_before(graph), ANY_COLUMNS, checked_limits(None), hardware.usable_threads(), whole=True
    )
    rows = GraphData(table, None, None, None, options).pairs()
    found = np.empty((len(rows.pairs), 2), np.uint32)
    for part, ends in _ends_by_part(graph, rows):
        unknown = np.argwhere(ends < 0)
        if len(unknown):
            row, end = (unknown[0] + (part.start, 0)).tolist()
            raise UnknownLabelError(
                f"{rows.origin.name}: row {row}: no vertex of {graph.origin.name} has the label "
                f"{_label_in(rows, row, end)!r}"
            )
        found[part] = ends
    return found


def _ends_by_part(graph: Graph, rows: EdgeList) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """The vertices of both ends of rows, −1 where the graph has none, part by part."""
    vertices = None
    if rows.vertices is not None:  # numbers without names are their own
        vertices = _look_up(graph, np.arange(rows.vertices, dtype=np.int64) if rows.names is None else rows.names)
    for begin in range(0, len(rows.pairs), PART_ROWS):
        part = slice(begin, begin + PART_ROWS)
        pairs = np.asarray(rows.pairs[part])
        yield part, _look_up(graph, pairs.reshape(-1)).reshape(-1, 2) if vertices is None else vertices[pairs]


def _label_in(rows: EdgeList, row: int, end: int) -> Any:
    """The label of one end of a row."""
    number = int(rows.pairs[row][end])
    return number if rows.names is None else rows.names[number]


def _columns_before(graph: Graph, table: Any, said: ColumnChoice) -> ColumnChoice:
    """The columns that the graph was made of, where nothing else is said.

    The first two without a name are what is found without being asked for. Where they come from the same text file,
    that file has no header.
    """
    ends = graph.cleaned.columns[:2]
    if said.source is not None or said.target is not None or not ends:
        return said
    if ends != FIRST_TWO.positions:
        return replace(said, source=ends[0], target=ends[1])
    is_same_file = isinstance(table, str | PathLike) and fspath(table) == graph.origin.name
    is_headless = said.header == "auto" and graph.origin.format == "text"
    return replace(said, header=False) if is_same_file and is_headless else said


def _labels_before(graph: Graph) -> str:
    """What the labels of the graph are; "auto" where they are neither integers nor text, or there are none."""
    if not graph.n or isinstance(graph.labels, list):
        return "auto"
    return "text" if isinstance(graph.labels, TextLabels) else "int"


def _look_up(graph: Graph, values: Any) -> NDArray[np.int64]:
    """The vertices of labels, −1 where the graph has none; integers are found among text as they are spelled."""
    if isinstance(values, np.ndarray) and isinstance(graph.labels, TextLabels):
        distinct, numbers = np.unique(values, return_inverse=True)
        return graph.vertices.look_up(TextLabels.of(map(str, distinct.tolist())))[numbers]
    return graph.vertices.look_up(values)


def _edges_between(graph: Graph, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The edge of every pair of vertices, −1 where there is none."""
    simple = graph.simple
    slots = ends if simple.slots is None else simple.slots[ends]
    low, high = slots.min(axis=1).astype(np.uint64), slots.max(axis=1).astype(np.uint64)
    edges, is_there = find_ascending(simple.slot_keys, low << np.uint64(32) | high)
    return np.where(is_there & (ends >= 0).all(axis=1), edges, NO_EDGE)


def _check_all_there(graph: Graph, rows: EdgeList, begin: int, found: NDArray[np.int64]) -> None:
    """Refuse a row that is no edge and no loop."""
    pairs = np.asarray(rows.pairs[begin : begin + len(found)])
    absent = np.flatnonzero((found == NO_EDGE) & (pairs[:, 0] != pairs[:, 1]))
    if not len(absent):
        return
    row = int(absent[0])
    ends = [_label_in(rows, begin + row, end) for end in (0, 1)]
    raise InputError(
        f"{rows.origin.name}: row {begin + row}, {ends[0]!r} to {ends[1]!r}, is no edge of {graph.origin.name}; "
        'pass the table that the graph was made of, or missing="ignore" for −1 there'
    )

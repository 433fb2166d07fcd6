"""METIS graph files → EdgeList.

The header ``n m [fmt [ncon]]`` is followed by one line per vertex with its neighbours, counted from 1: a
blank line is an isolated vertex, a line that begins with % is a comment. Every edge stands in both of its
vertices' lines; it is read once. Vertex sizes, vertex weights and edge weights are dropped as the header's
fmt says, and counted as columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.graph import EdgeList, Origin
from wedgewise.machine.hardware import usable_threads
from wedgewise.read.content import Content
from wedgewise.read.limits import Limits
from wedgewise.read.numbers import NumberStream, Words, check_declared_bytes, header_integers
from wedgewise.sorting import sorted_keys

HEADER = "vertices, edges, and optionally fmt (digits 0 or 1) and the number of weights per vertex"
NO_METIS = 'for a plain edge list pass format="text"'
STEP_ARCS = 1 << 20


@dataclass(frozen=True, slots=True)
class _Header:
    """What the first line declares."""

    n: int
    m: int
    words_before: int
    words_per_neighbour: int


class _Rows:
    """Where the rows of the vertices lie: comment lines are seen as blocks go by."""

    def __init__(self, first_line: int) -> None:
        self.first_line = first_line
        self.comment_lines = np.empty(0, np.int64)

    def drop_comments(self, words: Words) -> Words:
        """The words that are in no comment line; the last comment line known may reach into this block."""
        begins = (words.columns == 0) & (words.text[words.starts] == ord("%"))
        known = np.concatenate((self.comment_lines[-1:], words.lines[begins]))
        if not len(words) or not len(known):
            return words
        if begins.any():
            self.comment_lines = np.concatenate((self.comment_lines, words.lines[begins]))
        elif known[0] != words.lines[0]:
            return words
        return words.select(~np.isin(words.lines, known))

    def vertices(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """The vertex (from 0) whose row each line is."""
        return lines - self.first_line - np.searchsorted(self.comment_lines, lines)

    def line_of(self, vertex: int) -> int:
        """The line number (from 1) of a vertex's row."""
        rows_before_comment = self.comment_lines - self.first_line - np.arange(len(self.comment_lines))
        return vertex + self.first_line + int(np.searchsorted(rows_before_comment, vertex, side="right")) + 1


def read_metis(content: Content, limits: Limits) -> EdgeList:
    """Read a METIS graph; the declared numbers of vertices and edges must be met exactly."""
    stream = NumberStream(content, limits)
    header = _read_header(stream, content, limits)
    rows = _Rows(stream.lines_taken)
    arcs = _read_arcs(stream, header, rows)
    _check_rows(stream, header, rows)
    if len(arcs) != 2 * header.m:
        raise FormatError(
            f"{len(arcs):,} neighbours where {header.m:,} edges need {2 * header.m:,}",
            path=stream.name,
            line=stream.lines_taken,
            remedy=f"every edge stands in both of its rows; correct the header, or {NO_METIS}",
        )
    return EdgeList(
        _each_edge_once(arcs, rows, stream.name),
        Origin(content.name, "METIS"),
        vertices=header.n,
        dropped_columns=header.words_before + header.words_per_neighbour - 1,
        undirected=True,
    )


def _read_header(stream: NumberStream, content: Content, limits: Limits) -> _Header:
    line = stream.data_line()
    if line is None:
        raise FormatError("no header", path=stream.name, line=1, remedy=f"the first line gives {HEADER}")
    number = stream.lines_taken
    values = header_integers(line, stream.name, number, HEADER)
    fmt = line.split()[2] if len(values) > 2 else "0"
    if not 2 <= len(values) <= 4 or len(fmt) > 3 or set(fmt) - {"0", "1"}:
        raise FormatError(
            "is no METIS header",
            path=stream.name,
            line=number,
            text=line,
            remedy=f"it gives {HEADER}; {NO_METIS}",
        )
    n, m = values[:2]
    limits.check("vertices", n, path=f"{stream.name}:{number}")
    limits.check("pairs", 2 * m, path=f"{stream.name}:{number}")
    check_declared_bytes(content, max(4 * m, n) - 1, f"{n:,} vertices and {m:,} edges", number)
    has_size, has_weight, has_edge_weight = (digit == "1" for digit in fmt.zfill(3))
    weights = (values[3] if len(values) == 4 else 1) if has_weight else 0
    return _Header(n, m, int(has_size) + weights, 1 + int(has_edge_weight))


def _read_arcs(stream: NumberStream, header: _Header, rows: _Rows) -> NDArray[Any]:
    """All (vertex, neighbour) entries, counted from 0."""
    pieces: list[NDArray[Any]] = [np.empty((0, 2), np.uint32)]
    found = 0
    last: tuple[int, int] | None = None
    for block in stream.words():
        words = rows.drop_comments(block)
        if not len(words):
            continue
        _check_row_ends(words, last, header, stream.name)
        last = int(words.lines[-1]), int(words.columns[-1])
        places = words.columns - header.words_before
        neighbours = words.select((places >= 0) & (places % header.words_per_neighbour == 0))
        pieces.append(_arcs_of(neighbours, header, rows, stream.name))
        found += len(neighbours)
        if found > 2 * header.m:
            at = len(neighbours) - (found - 2 * header.m)
            raise FormatError(
                f"more neighbours than the {2 * header.m:,} of {header.m:,} edges",
                path=stream.name,
                line=int(neighbours.lines[at]) + 1,
                text=neighbours.word(at),
                remedy=f"correct the header, or {NO_METIS}",
            )
    if last is not None:
        _check_row_end(*last, header, stream.name)
    return np.concatenate(pieces)


def _arcs_of(neighbours: Words, header: _Header, rows: _Rows, name: str) -> NDArray[Any]:
    sources = rows.vertices(neighbours.lines)
    targets = neighbours.integers(name, f"neighbours are integers from 1 to n; {NO_METIS}") - 1
    beyond = sources >= header.n
    outside = (targets < 0) | (targets >= header.n)
    loops = sources == targets
    wrong = beyond | outside | loops
    if wrong.any():
        at = int(np.argmax(wrong))
        if beyond[at]:
            reason, remedy = (
                f"a row beyond the {header.n:,} declared vertices",
                f"correct the header, or {NO_METIS}",
            )
        elif outside[at]:
            reason, remedy = (
                f"a neighbour outside 1 … {header.n}",
                f"METIS counts vertices from 1; {NO_METIS}",
            )
        else:
            reason, remedy = "a vertex that is its own neighbour", f"METIS graphs have no loops; {NO_METIS}"
        raise FormatError(
            reason, path=name, line=int(neighbours.lines[at]) + 1, text=neighbours.word(at), remedy=remedy
        )
    arcs = np.empty((len(sources), 2), np.uint32 if header.n <= 2**32 else np.uint64)
    arcs[:, 0] = sources
    arcs[:, 1] = targets
    return arcs


def _check_row_ends(words: Words, last: tuple[int, int] | None, header: _Header, name: str) -> None:
    """The last word of every row that ends before or in this block is a complete neighbour or weight."""
    if header.words_before == 0 and header.words_per_neighbour == 1:
        return
    if last is not None and words.columns[0] == 0:
        _check_row_end(*last, header, name)
    ends = np.flatnonzero(words.columns[1:] == 0)
    short = _is_incomplete(words.columns[ends], header)
    if short.any():
        at = int(ends[np.argmax(short)])
        _check_row_end(int(words.lines[at]), int(words.columns[at]), header, name)


def _is_incomplete(columns: NDArray[np.int64], header: _Header) -> NDArray[np.bool_]:
    places = columns + 1 - header.words_before
    incomplete: NDArray[np.bool_] = (places < 0) | (places % header.words_per_neighbour != 0)
    return incomplete


def _check_row_end(line: int, column: int, header: _Header, name: str) -> None:
    if _is_incomplete(np.array([column]), header)[0]:
        raise FormatError(
            f"a row of {column + 1} words",
            path=name,
            line=line + 1,
            remedy=f"the header's fmt asks for {header.words_before} words, "
            f"then {header.words_per_neighbour} per neighbour",
        )


def _check_rows(stream: NumberStream, header: _Header, rows: _Rows) -> None:
    """There is a line for every vertex; the last one may lack its newline, and be empty."""
    found = stream.lines_taken + 1 - rows.first_line - len(rows.comment_lines)
    if found < header.n:
        raise FormatError(
            f"{found:,} rows where {header.n:,} vertices are declared",
            path=stream.name,
            line=stream.lines_taken + 1,
            remedy=f"a vertex without neighbours is an empty line; the file may be truncated; {NO_METIS}",
        )


def _each_edge_once(arcs: NDArray[Any], rows: _Rows, name: str) -> NDArray[Any]:
    """The arcs that go up, once it is clear that every one of them goes down as well."""
    upward = arcs[:, 0] < arcs[:, 1]
    up = np.empty((np.count_nonzero(upward), 2), arcs.dtype)
    down = np.empty((len(arcs) - len(up), 2), arcs.dtype)
    goes_up = goes_down = 0
    for begin in range(0, len(arcs), STEP_ARCS):
        here, is_up = arcs[begin : begin + STEP_ARCS], upward[begin : begin + STEP_ARCS]
        count = int(np.count_nonzero(is_up))
        up[goes_up : goes_up + count] = here[is_up]
        down[goes_down : goes_down + len(here) - count] = here[~is_up]
        goes_up, goes_down = goes_up + count, goes_down + len(here) - count
    up_keys, down_keys = _sorted_keys(up[:, 0], up[:, 1]), _sorted_keys(down[:, 1], down[:, 0])
    if np.array_equal(up_keys, down_keys):
        return up
    key = _first_unequal(up_keys, down_keys)
    low, high = key >> 32, key & 0xFFFFFFFF
    in_up = np.count_nonzero(up_keys == np.uint64(key)) > np.count_nonzero(down_keys == np.uint64(key))
    source, target = (low, high) if in_up else (high, low)
    raise FormatError(
        f"vertex {source + 1} lists {target + 1}, which does not list it back",
        path=name,
        line=rows.line_of(source),
        remedy=f"every edge stands in both of its rows; {NO_METIS}",
    )


def _sorted_keys(low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.uint64]:
    keys = np.empty(len(low), np.uint64)
    for begin in range(0, len(keys), STEP_ARCS):
        step = slice(begin, begin + STEP_ARCS)
        keys[step] = low[step].astype(np.uint64) << np.uint64(32) | high[step].astype(np.uint64)
    return sorted_keys(keys, usable_threads())


def _first_unequal(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> int:
    """The smallest key that occurs more often on one side."""
    shared = min(len(first), len(second))
    different = np.flatnonzero(first[:shared] != second[:shared])
    if len(different):
        return min(int(first[different[0]]), int(second[different[0]]))
    longer = first if len(first) > shared else second
    return int(longer[shared])

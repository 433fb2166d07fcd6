"""METIS graph files → pairs in pieces.

The header ``n m [fmt [ncon]]`` is followed by one line per vertex with its neighbours, counted from 1: a
blank line is an isolated vertex, a line that begins with % is a comment. Every edge stands in both of its
vertices' lines; it is read once. Vertex sizes, vertex weights and edge weights are dropped as the header's
fmt says, and counted as columns. Held are 8 bytes per edge, and a few mebibytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.read import ReadOptions
from wedgewise.read.content import Content, open_content
from wedgewise.read.numbers import NumberStream, Words, check_declared_bytes, header_integers
from wedgewise.read.pieces import GrowingPairs, PairPieces, Piece, interleave
from wedgewise.stages import Origin
from wedgewise.stages.limits import Limits

HEADER = "vertices, edges, and optionally fmt (digits 0 or 1) and the number of weights per vertex"
NO_METIS = 'for a plain edge list pass format="text"'
GROUPS = 1 << 16  # of edges, by their smaller end: each has a sum of its own
SECRETS = np.frombuffer(os.urandom(24), np.uint64) | np.uint64(1)


@dataclass(frozen=True, slots=True)
class _MetisHeader:
    """What the first line declares."""

    n: int
    m: int
    words_before: int
    words_per_neighbour: int


@dataclass(frozen=True, slots=True)
class _Arcs:
    """Entries of rows, counted from 0, and the lines that they stand on."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    lines: NDArray[np.int64]


def pieces_of_metis(content: Content, options: ReadOptions) -> PairPieces:
    """The edges of a METIS graph, each once; the declared numbers of vertices and edges must be met exactly.

    That an edge stands in one row alone shows when all pieces were taken.
    """
    stream = NumberStream(content, options.limits)
    header = _read_header(stream, content, options.limits)
    values = ("vertex weight",) * header.words_before + ("edge weight",) * (header.words_per_neighbour - 1)
    return PairPieces(
        Origin(content.name, "METIS"),
        _each_edge_once(stream, header, content, options.limits),
        expected_pairs=header.m,
        vertices=header.n,
        ignored_columns=values if header.n else (),  # without rows, nothing stands beside neighbours
        undirected=True,
    )


def _each_edge_once(stream: NumberStream, header: _MetisHeader, content: Content, limits: Limits) -> Iterator[Piece]:
    """The arcs that go up; at the end it is clear whether every one of them goes down as well."""
    balance = _Balance(header.n)
    for arcs in _arcs(stream, header):
        balance.add(arcs)
        up = arcs.sources < arcs.targets
        yield interleave(arcs.sources[up], arcs.targets[up], np.uint32 if header.n <= 2**32 else np.uint64)
    unequal = np.flatnonzero(balance.sums)
    if len(unequal):
        raise _one_sided(content, limits, balance, int(unequal[0]))


def _read_header(stream: NumberStream, content: Content, limits: Limits) -> _MetisHeader:
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
    return _MetisHeader(n, m, int(has_size) + weights, 1 + int(has_edge_weight))


def _arcs(stream: NumberStream, header: _MetisHeader) -> Iterator[_Arcs]:
    """All entries of all rows, block by block; at the end there are as many as the header says."""
    first_line, comments, found = stream.lines_taken, 0, 0
    last_comment = np.empty(0, np.int64)  # the line of one, which may reach into the next block
    last: tuple[int, int] | None = None
    for words in stream.words():
        commented = words.lines[(words.columns == 0) & (words.text[words.starts] == ord("%"))]
        reached = np.concatenate((last_comment, commented))
        if len(reached) and len(words) and reached[-1] >= words.lines[0]:
            words = words.select(~np.isin(words.lines, reached))
        vertices = words.lines - first_line - comments - np.searchsorted(commented, words.lines)
        comments, last_comment = comments + len(commented), reached[-1:]
        if not len(words):
            continue
        _check_row_ends(words, last, header, stream.name)
        last = int(words.lines[-1]), int(words.columns[-1])
        positions = words.columns - header.words_before
        chosen = (positions >= 0) & (positions % header.words_per_neighbour == 0)
        neighbours = words.select(chosen)
        arcs = _arcs_of(neighbours, vertices[chosen], header, stream.name)
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
        yield arcs
    if last is not None:
        _check_row_end(*last, header, stream.name)
    rows = stream.lines_taken + 1 - first_line - comments
    if rows < header.n:  # the last line may lack its newline, and be empty
        raise FormatError(
            f"{rows:,} rows where {header.n:,} vertices are declared",
            path=stream.name,
            line=stream.lines_taken + 1,
            remedy=f"a vertex without neighbours is an empty line; the file may be truncated; {NO_METIS}",
        )
    if found != 2 * header.m:
        raise FormatError(
            f"{found:,} neighbours where {header.m:,} edges need {2 * header.m:,}",
            path=stream.name,
            line=stream.lines_taken,
            remedy=f"every edge stands in both of its rows; correct the header, or {NO_METIS}",
        )


def _arcs_of(neighbours: Words, sources: NDArray[np.int64], header: _MetisHeader, name: str) -> _Arcs:
    targets = neighbours.integers(name, f"neighbours are integers from 1 to n; {NO_METIS}") - 1
    beyond = sources >= header.n
    outside = (targets < 0) | (targets >= header.n)
    loops = sources == targets
    wrong = beyond | outside | loops
    if wrong.any():
        at = int(np.argmax(wrong))
        if beyond[at]:
            reason, remedy = f"a row beyond the {header.n:,} declared vertices", f"correct the header, or {NO_METIS}"
        elif outside[at]:
            reason, remedy = f"a neighbour outside 1 … {header.n}", f"METIS counts vertices from 1; {NO_METIS}"
        else:
            reason, remedy = "a vertex that is its own neighbour", f"METIS graphs have no loops; {NO_METIS}"
        raise FormatError(
            reason, path=name, line=int(neighbours.lines[at]) + 1, text=neighbours.word(at), remedy=remedy
        )
    return _Arcs(sources, targets, neighbours.lines)


def _check_row_ends(words: Words, last: tuple[int, int] | None, header: _MetisHeader, name: str) -> None:
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


def _is_incomplete(columns: NDArray[np.int64], header: _MetisHeader) -> NDArray[np.bool_]:
    positions = columns + 1 - header.words_before
    incomplete: NDArray[np.bool_] = (positions < 0) | (positions % header.words_per_neighbour != 0)
    return incomplete


def _check_row_end(line: int, column: int, header: _MetisHeader, name: str) -> None:
    if _is_incomplete(np.array([column]), header)[0]:
        raise FormatError(
            f"a row of {column + 1} words",
            path=name,
            line=line + 1,
            remedy=f"the header's fmt asks for {header.words_before} words, "
            f"then {header.words_per_neighbour} per neighbour",
        )


class _Balance:
    """Whether the arcs that go up are those that go down, by sums: what goes up is added, what goes down subtracted.

    What is summed is a hash of the edge by secret numbers, so that two different sets of arcs have equal sums once in
    2^64 cases, and nobody can prepare one. Edges are summed in groups by their smaller end; a group whose sum is not
    zero has an arc that goes one way.
    """

    def __init__(self, n: int) -> None:
        self._n = max(1, n)
        self.sums = np.zeros(min(self._n, GROUPS), np.uint64)

    def add(self, arcs: _Arcs) -> None:
        low, high = np.minimum(arcs.sources, arcs.targets), np.maximum(arcs.sources, arcs.targets)
        hashes = _mixed(_mixed(low.astype(np.uint64), SECRETS[0]) + high.astype(np.uint64), SECRETS[1])
        hashes *= np.where(arcs.sources < arcs.targets, np.uint64(1), np.uint64(2**64 - 1))
        np.add.at(self.sums, self.groups(low), hashes)

    def groups(self, low: NDArray[np.int64]) -> NDArray[np.int64]:
        """The group of each edge by its smaller end."""
        return low * len(self.sums) // self._n


def _mixed(values: NDArray[np.uint64], secret: np.uint64) -> NDArray[np.uint64]:
    """Numbers that look random: multiplied and folded, twice."""
    for factor in (secret, SECRETS[2]):
        values = values * factor
        values ^= values >> np.uint64(29)
    return values


def _one_sided(content: Content, limits: Limits, balance: _Balance, group: int) -> FormatError:
    """The message for the first edge that stands in one row alone: a file is read again to find it."""
    remedy = f"every edge stands in both of its rows; {NO_METIS}"
    arc = None
    if content.path is not None and content.path.is_file():
        arc = _first_one_sided(content, limits, balance, group)
    if arc is None:
        return FormatError("a vertex lists one that does not list it back", path=content.name, remedy=remedy)
    source, target = arc
    lines = (arcs.lines[arcs.sources == source] for arcs in _arcs_again(content, limits))
    return FormatError(
        f"vertex {source + 1} lists {target + 1}, which does not list it back",
        path=content.name,
        line=next((int(found[0]) + 1 for found in lines if len(found)), None),
        remedy=remedy,
    )


def _arcs_again(content: Content, limits: Limits) -> Iterator[_Arcs]:
    with open_content(content.name, limits) as again:
        stream = NumberStream(again, limits)
        yield from _arcs(stream, _read_header(stream, again, limits))


def _first_one_sided(content: Content, limits: Limits, balance: _Balance, group: int) -> tuple[int, int] | None:
    """The arc of a group's smallest edge, by its smaller end first, that goes one way more often than the other."""
    both = GrowingPairs(limits, content.name, np.uint64)
    for arcs in _arcs_again(content, limits):
        here = balance.groups(np.minimum(arcs.sources, arcs.targets)) == group
        both.add(np.stack((arcs.sources[here], arcs.targets[here]), 1).astype(np.uint64))
    found = both.array()
    edges = np.sort(found, axis=1)
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    edges, goes_up = edges[order], (found[:, 0] < found[:, 1])[order]
    begins = np.flatnonzero(np.concatenate((np.ones(1, np.bool_), (edges[1:] != edges[:-1]).any(axis=1)))[: len(edges)])
    surplus = np.add.reduceat(np.where(goes_up, 1, -1), begins) if len(begins) else begins
    unequal = np.flatnonzero(surplus)
    if not len(unequal):  # the file has changed
        return None
    low, high = edges[begins[unequal[0]]].tolist()
    return (low, high) if surplus[unequal[0]] > 0 else (high, low)

"""Matrix Market coordinate files → pairs in pieces.

Every entry is a pair, explicit zeros included; vertex = row number − 1; rows without an entry stay
vertices. Values are dropped and counted as columns. Symmetric, skew-symmetric and Hermitian matrices store
each edge once, which is all that an undirected graph needs. Held are 8 bytes per entry, and a few mebibytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.read import ReadOptions
from wedgewise.read.content import Content
from wedgewise.read.numbers import NumberStream, Words, check_declared_bytes, header_integers
from wedgewise.read.pieces import PairPieces, Piece
from wedgewise.stages import Origin
from wedgewise.stages.limits import Limits

BANNER = "%%MatrixMarket matrix coordinate pattern|real|integer|complex general|symmetric"
VALUE_COLUMNS: dict[str, tuple[str, ...]] = {
    "pattern": (),
    "real": ("value",),
    "double": ("value",),
    "integer": ("value",),
    "complex": ("real part", "imaginary part"),
}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
USUAL_BYTES = b"0123456789+-.eEdD \t\r\n\v\f"
VALUE = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class _MatrixHeader:
    """What the banner and the size line declare."""

    field: str
    symmetry: str
    n: int
    entries: int

    @property
    def width(self) -> int:
        return 2 + len(VALUE_COLUMNS[self.field])


def pieces_of_matrix_market(content: Content, options: ReadOptions) -> PairPieces:
    """The entries of a square coordinate matrix; their declared number must be met exactly."""
    stream = NumberStream(content, options.limits)
    header = _read_header(stream, content, options.limits)
    return PairPieces(
        Origin(content.name, "Matrix Market", (f"{header.field} {header.symmetry}",)),
        _entries(stream, header),
        expected_pairs=header.entries,
        vertices=header.n,
        ignored_columns=VALUE_COLUMNS[header.field],
        undirected=header.symmetry != "general",
    )


def _entries(stream: NumberStream, header: _MatrixHeader) -> Iterator[Piece]:
    """Rows and columns from 0; a block may end inside an entry, whose row then waits for the next one."""
    waiting = np.empty(0, np.uint32 if header.n <= 2**32 else np.uint64)
    words_seen = 0
    for words in stream.words():
        _check_columns(words, words_seen, header.width, stream.name)
        words_seen += len(words)
        if words_seen > header.entries * header.width:
            at = len(words) - (words_seen - header.entries * header.width)
            raise FormatError(
                f"more entries than the declared {header.entries:,}",
                path=stream.name,
                line=int(words.lines[at]) + 1,
                text=words.word(at),
                remedy="correct the size line",
            )
        if header.width > 2:
            _check_values(words, stream.name)
        ends = np.concatenate((waiting, _coordinates(words, header.n, stream.name).astype(waiting.dtype)))
        whole = len(ends) // 2 * 2
        waiting = ends[whole:]
        yield ends[:whole].reshape(-1, 2)
    if words_seen != header.entries * header.width:
        entries, left_over = divmod(words_seen, header.width)
        found = f"{entries:,} entries" + (" and a part of one" if left_over else "")
        raise FormatError(
            f"{found} where {header.entries:,} are declared",
            path=stream.name,
            line=stream.lines_taken + 1,
            remedy="the file is truncated or its size line is wrong",
        )


def _read_header(stream: NumberStream, content: Content, limits: Limits) -> _MatrixHeader:
    field, symmetry = _read_banner(stream)
    line = stream.data_line()
    if line is None:
        raise FormatError("no size line", path=stream.name, line=stream.lines_taken, remedy="add: rows columns entries")
    number = stream.lines_taken
    sizes = header_integers(line, stream.name, number, "rows, columns and entries")
    if len(sizes) != 3:
        raise FormatError(
            "the size line has not three numbers",
            path=stream.name,
            line=number,
            text=line,
            remedy="write: rows columns entries",
        )
    rows, columns, entries = sizes
    if rows != columns:
        raise FormatError(
            f"a matrix of {rows:,} × {columns:,} is not square",
            path=stream.name,
            line=number,
            text=line,
            remedy="an adjacency matrix has one row and one column per vertex",
        )
    limits.check("vertices", rows, path=f"{stream.name}:{number}")
    limits.check("pairs", entries, path=f"{stream.name}:{number}")
    header = _MatrixHeader(field, symmetry, rows, entries)
    check_declared_bytes(content, 2 * header.width * entries - 1, f"{entries:,} entries", number)
    return header


def _read_banner(stream: NumberStream) -> tuple[str, str]:
    line = stream.next_line() or ""
    words = line.lower().split()
    known = (
        len(words) == 5
        and words[:3] == ["%%matrixmarket", "matrix", "coordinate"]
        and words[3] in VALUE_COLUMNS
        and words[4] in SYMMETRIES
    )
    if not known:
        dense = "array" in words
        raise FormatError(
            "a dense matrix holds no edge list" if dense else "is no banner of a sparse matrix",
            path=stream.name,
            line=1,
            text=line,
            remedy="write it in coordinate form" if dense else f"the first line reads: {BANNER}",
        )
    return words[3], words[4]


def _check_columns(words: Words, words_before: int, width: int, name: str) -> None:
    """Every line holds exactly `width` words: a word's column follows from its number alone."""
    wrong = words.columns != (words_before + np.arange(len(words))) % width
    if wrong.any():
        at = int(np.argmax(wrong))
        too_long = int(words.columns[at]) != 0
        before = at - 1 if at else 0  # the word that ended a line too early; of a block before, its line is known
        line = int(words.lines[at] if too_long else words.lines[before] - (at == 0)) + 1
        raise FormatError(
            f"{'more' if too_long else 'fewer'} than {width} words on one line",
            path=name,
            line=line,
            text=words.word(at if too_long else before),
            remedy=f"each entry has {width} words: row, column{', value' if width > 2 else ''}",
        )


def _check_values(words: Words, name: str) -> None:
    """Values are dropped, but have to be numbers: only words with unusual bytes are looked at one by one."""
    if not words.text.tobytes().translate(None, USUAL_BYTES):
        return
    for at in np.flatnonzero(words.columns >= 2):
        if VALUE.fullmatch(words.word(int(at))) is None:
            raise FormatError(
                "is no number",
                path=name,
                line=int(words.lines[at]) + 1,
                text=words.word(int(at)),
                remedy="values are ignored, but they have to be numbers",
            )


def _coordinates(words: Words, n: int, name: str) -> NDArray[np.int64]:
    """Rows and columns from 0 in file order."""
    coordinates = words.select(words.columns < 2)
    numbers = coordinates.integers(name, "rows and columns are integers from 1 to n")
    outside = (numbers < 1) | (numbers > n)
    if outside.any():
        at = int(np.argmax(outside))
        raise FormatError(
            f"an index outside 1 … {n}",
            path=name,
            line=int(coordinates.lines[at]) + 1,
            text=coordinates.word(at),
            remedy="Matrix Market counts rows and columns from 1 to the declared size",
        )
    return numbers - 1

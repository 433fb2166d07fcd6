"""Answers → file: one row per vertex, edge or triangle, under the labels of the graph, block by block.

    csv, tsv                 a header line, then a row a line; text labels are quoted where they must be (RFC 4180);
                             a label that looks like a number is one to whoever reads it, but not in a table
    parquet, arrow, feather  the same columns
    npy                      numbers alone: of an answer per vertex the values, in the order of the labels; of edges and
                             triangles every column, with integer labels
    npz                      an array per column, with integer labels; not of listings, which come row by row

Suffixes choose the format and, behind it, the compression (.gz .bz2 .xz .zst). A file appears whole or not at all.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError, VerificationError
from wedgewise.graph import Graph
from wedgewise.machine.files import atomic_write
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.read._text_lines import BLANKS, COMMENT_MARKS
from wedgewise.read.sniff import data_suffix
from wedgewise.stages import Labels
from wedgewise.stages.labels import TextLabels
from wedgewise.write._decimal import spell
from wedgewise.write.binary import Member, write_npy_header, write_npz, write_table
from wedgewise.write.compressed import compressed
from wedgewise.write.edges import unsigned

TABLE_ROWS = 2**20
TEXT_ROWS = 2**16
WRITER_BYTES = 40 << 20  # cells of text; columns of Arrow and Parquet, encoded
XZ_BYTES = 104 << 20  # its tables

TRIANGLE_ENDS = 3

RowChunk = tuple[NDArray[Any], ...]  # columns: vertices, then the value if there is one


class Named(Protocol):
    """A graph whose vertices have labels, wherever its edges are."""

    @property
    def labels(self) -> Labels: ...


@dataclass(frozen=True, slots=True)
class Answers:
    """The rows of an answer; blocks of them are made as they are asked for, those of a listing once.

    The leading columns hold vertices, the last ones values of `value_dtypes`.
    """

    columns: tuple[str, ...]
    labels: Labels
    rows: int
    value_dtypes: tuple[np.dtype[Any], ...]
    blocks: Iterable[RowChunk]

    @property
    def ends(self) -> int:
        """How many columns hold vertices."""
        return len(self.columns) - len(self.value_dtypes)

    @property
    def names(self) -> TextLabels | None:
        """Text labels, where the graph has them; a list that holds anything else is refused."""
        labels = TextLabels.of(self.labels) if isinstance(self.labels, list) else self.labels
        return labels if isinstance(labels, TextLabels) else None

    @property
    def label_dtype(self) -> np.dtype[Any]:
        """The signed integers that integer labels are written as."""
        return self.labels.dtype if isinstance(self.labels, np.ndarray) else _narrowest(len(self.labels))

    def dtype_of(self, column: int) -> np.dtype[Any]:
        """The numbers that a column is written as, with integer labels."""
        return self.label_dtype if column < self.ends else self.value_dtypes[column - self.ends]

    def with_labels(self, block: RowChunk) -> RowChunk:
        """A block with the integer labels of its vertices; text labels cannot be had as numbers."""
        return tuple(self.labelled(block, column) for column in range(len(block)))

    def labelled(self, block: RowChunk, column: int) -> NDArray[Any]:
        """One column of that."""
        if column >= self.ends:
            return block[column]
        if isinstance(self.labels, np.ndarray):
            return self.labels[block[column]]
        return block[column].astype(self.label_dtype)

    def small_blocks(self) -> Iterator[RowChunk]:
        """Blocks that are small enough to be spelled out."""
        for block in self.blocks:
            for begin in range(0, len(block[0]), TEXT_ROWS):
                yield tuple(column[begin : begin + TEXT_ROWS] for column in block)


@dataclass(frozen=True, slots=True)
class _Again:
    """Blocks that can be gone through as often as a format needs."""

    blocks: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        return self.blocks()


def streamed(
    columns: tuple[str, ...],
    labels: Labels,
    rows: int,
    value_dtypes: tuple[np.dtype[Any], ...],
    blocks: Callable[[], Iterator[RowChunk]],
) -> Answers:
    """Rows whose blocks are made anew whenever a format goes through them."""
    return Answers(columns, _signed(labels), rows, value_dtypes, _Again(blocks))


def watched(answers: Answers, progress: Callable[[int], None]) -> Answers:
    """The same rows; `progress` gets how many were taken behind each block."""

    def blocks() -> Iterator[RowChunk]:
        came = 0
        for block in answers.blocks:
            yield block
            came += len(block[0])
            progress(came)

    return replace(answers, blocks=_Again(blocks))


def per_vertex(graph: Named, name: str, values: NDArray[Any]) -> Answers:
    """A value of every vertex."""
    n = len(graph.labels)
    return streamed(
        ("vertex", name),
        graph.labels,
        n,
        (values.dtype,),
        lambda: ((np.arange(part.start, min(part.stop, n)), values[part]) for part in _parts(n)),
    )


def per_edge(graph: Graph, name: str, values: NDArray[Any]) -> Answers:
    """A value of every edge."""
    return per_pair(graph, graph.edges, {name: values})


def per_pair(graph: Graph, ends: NDArray[np.uint32], values: Mapping[str, NDArray[Any]]) -> Answers:
    """Values of pairs of vertices, by name."""
    columns = tuple(values.values())
    return streamed(
        ("u", "v", *values),
        graph.labels,
        len(ends),
        tuple(column.dtype for column in columns),
        lambda: ((ends[part, 0], ends[part, 1], *(column[part] for column in columns)) for part in _parts(len(ends))),
    )


def some_edges(graph: Graph, chosen: NDArray[np.int64]) -> Answers:
    """Edges by their number, without a value."""
    return streamed(
        ("u", "v"),
        graph.labels,
        len(chosen),
        (),
        lambda: ((graph.edges[chosen[part], 0], graph.edges[chosen[part], 1]) for part in _parts(len(chosen))),
    )


def with_value(answers: Answers, name: str, value: int) -> Answers:
    """The same rows, each with one more column that holds the same number everywhere."""
    blocks = _Again(lambda: ((*block, np.full(len(block[0]), value, np.int64)) for block in answers.blocks))
    return replace(answers, columns=(*answers.columns, name), value_dtypes=(np.dtype(np.int64),), blocks=blocks)


def per_triangle(labels: Labels, rows: int, batches: Iterable[NDArray[Any]]) -> Answers:
    """Triangles as they are listed; `rows` is how many will come."""
    blocks = ((batch[:, 0], batch[:, 1], batch[:, 2]) for batch in batches)
    return Answers(("u", "v", "w"), _signed(labels), rows, (), blocks)


def _signed(labels: Labels) -> Labels:
    """Integer labels, which are below 2^63, as signed integers: beside signed values, unsigned ones become floats."""
    if isinstance(labels, np.ndarray):
        return labels.astype(_narrowest(max(int(labels.max(initial=0)) + 1, -int(labels.min(initial=0)))))
    return labels


def _narrowest(beyond: int) -> np.dtype[Any]:
    """The narrowest signed integers that hold all numbers below `beyond`."""
    return np.dtype(np.int32 if beyond <= 2**31 else np.int64)


def _parts(rows: int) -> Iterator[slice]:
    return (slice(begin, begin + TABLE_ROWS) for begin in range(0, rows, TABLE_ROWS))


def answer_writer(path: str | os.PathLike[str]) -> Callable[[Answers, BinaryIO], None]:
    """What writes the format that the suffix of a path names."""
    name = data_suffix(os.fspath(path)).removeprefix(".")
    if name not in ANSWER_WRITERS:
        listed = ", ".join(f".{known}" for known in ANSWER_WRITERS)
        raise UnknownNameError(f"{os.fspath(path)}: the suffix names no format for answers; there are: {listed}")
    return ANSWER_WRITERS[name]


def load_writer(path: str | os.PathLike[str]) -> None:
    """Write a row to nowhere: what writes is then loaded, and a limit on memory can be divided by what that leaves."""
    row = (np.zeros(1, np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.int64))
    answer_writer(path)(streamed(("u", "v", "value"), range(1), 1, (row[-1].dtype,), lambda: iter([row])), io.BytesIO())


def writing_bytes(path: str | os.PathLike[str] | None) -> int:
    """What writers of a file, or of text where there is none, hold of blocks of 2^17 rows at most."""
    return WRITER_BYTES + (XZ_BYTES if path is not None and os.fspath(path).lower().endswith(".xz") else 0)


def check_labels(path: str | os.PathLike[str], labels: Labels, ends: int) -> None:
    """Refuse text labels where the file would have to hold them as numbers, and triangles where it holds columns."""
    write = answer_writer(path)
    if write is _write_npz and ends == TRIANGLE_ENDS:
        raise InputError(f"{os.fspath(path)}: .npz holds columns, and triangles come in rows; write .npy or .parquet")
    if isinstance(labels, TextLabels | list) and (write is _write_npz or (write is _write_npy and ends > 1)):
        suffix = data_suffix(os.fspath(path))
        raise InputError(f"{os.fspath(path)}: {suffix} holds numbers, and the labels are text; write .csv or .parquet")


@memory_for("write")
def write_answers(answers: Answers, path: str | os.PathLike[str]) -> None:
    """Write the rows of an answer to a file that appears when all of them are in it.

    Examples
    --------
    >>> import tempfile, pathlib, wedgewise as ww
    >>> g = ww.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada")])
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "answer.csv"
    >>> write_answers(per_vertex(g, "triangles", ww.triangles(g)), target)
    >>> target.read_text()
    'vertex,triangles\\nada,1\\nbob,1\\ncy,1\\n'
    """
    write = answer_writer(path)
    check_labels(path, answers.labels, answers.ends)
    came = [0]  # behind each block
    with atomic_write(path) as plain, compressed(plain, path) as file:
        write(watched(answers, came.append), file)
        if came[-1] != answers.rows:
            raise VerificationError(f"{came[-1]:,} rows of {answers.rows:,} that were counted: please report this")


def row_speller(answers: Answers, separator: str) -> Callable[[RowChunk], bytes]:
    """What turns a block into lines of text."""
    names = answers.names
    is_signed = isinstance(answers.labels, np.ndarray) and int(answers.labels.min(initial=0)) < 0
    if names is None and not is_signed and np.float64 not in answers.value_dtypes:
        width = len(answers.columns)
        trailing = np.frombuffer((separator * (width - 1) + "\n").encode(), np.uint8).astype(np.uint32)

        def spell_numbers(block: RowChunk) -> bytes:
            numbers = np.stack(answers.with_labels(block), axis=1)
            return spell(unsigned(numbers), np.tile(trailing, len(numbers)))

        return spell_numbers
    quoted = None if names is None else _quoted(names, separator)

    def spell_cells(block: RowChunk) -> bytes:
        if quoted is None:
            cells = [list(map(str, column.tolist())) for column in answers.with_labels(block)[: answers.ends]]
        else:
            cells = [quoted.take(column).tolist() for column in block[: answers.ends]]
        cells += [list(map(repr, values.tolist())) for values in block[answers.ends :]]
        return "".join(f"{separator.join(row)}\n" for row in zip(*cells, strict=True)).encode()

    return spell_cells


def _quoted(names: TextLabels, separator: str) -> TextLabels:
    """Labels as cells: in quotes where one holds a separator, a quote or a line end, begins as a comment does, or has
    blanks at its ends."""
    odd = f'{separator}"\n\r'
    is_long = np.diff(names.offsets) > 0
    first, last = names.data[names.offsets[:-1][is_long]], names.data[names.offsets[1:][is_long] - 1]
    if not (
        any((names.data == byte).any() for byte in odd.encode())
        or np.isin(first, list(COMMENT_MARKS + BLANKS)).any()
        or np.isin(last, list(BLANKS)).any()
    ):
        return names
    blanks, marks = BLANKS.decode(), tuple(COMMENT_MARKS.decode())

    def cell(name: str) -> str:
        is_plain = set(name).isdisjoint(odd) and name == name.strip(blanks) and not name.startswith(marks)
        return name if is_plain else '"' + name.replace('"', '""') + '"'

    return TextLabels.of(map(cell, names))


def _write_text(separator: str, answers: Answers, file: BinaryIO) -> None:
    """A header line and one line per row."""
    file.write(f"{separator.join(answers.columns)}\n".encode())
    spell_rows = row_speller(answers, separator)
    for block in answers.small_blocks():
        file.write(spell_rows(block))


def _write_npy(answers: Answers, file: BinaryIO) -> None:
    """The values of vertices, or all columns of edges and triangles as integers of one width."""
    values_alone = answers.ends == 1
    held = [] if values_alone else [answers.label_dtype]
    dtype = np.result_type(*held, *answers.value_dtypes).newbyteorder("<")
    shape = (answers.rows,) if values_alone else (answers.rows, len(answers.columns))
    write_npy_header(file, dtype, shape)
    for block in answers.blocks:
        numbers = block[-1] if values_alone else np.stack(answers.with_labels(block), axis=1)
        file.write(numbers.astype(dtype, copy=False).tobytes())


def _write_npz(answers: Answers, file: BinaryIO) -> None:
    """An array per column; blocks are made anew for each."""

    def member(column: int) -> Member:
        blocks = _Again(lambda: (answers.labelled(block, column) for block in answers.blocks))
        return Member(answers.dtype_of(column).newbyteorder("<"), (answers.rows,), blocks)

    write_npz(file, {name: member(column) for column, name in enumerate(answers.columns)})


def _write_table(form: str, answers: Answers, file: BinaryIO) -> None:
    """A table of the same columns."""
    names = answers.names
    columns = {
        name: None if names is not None and column < answers.ends else answers.dtype_of(column)
        for column, name in enumerate(answers.columns)
    }
    blocks = answers.blocks if names is not None else map(answers.with_labels, answers.blocks)
    write_table(form, file, columns, blocks, names, TABLE_ROWS)


ANSWER_WRITERS: dict[str, Callable[[Answers, BinaryIO], None]] = {
    "csv": partial(_write_text, ","),
    "tsv": partial(_write_text, "\t"),
    "parquet": partial(_write_table, "parquet"),
    "arrow": partial(_write_table, "arrow"),
    "feather": partial(_write_table, "arrow"),
    "npy": _write_npy,
    "npz": _write_npz,
}

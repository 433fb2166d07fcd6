"""Pairs → file, in every format that is read; blocks are streamed wherever the format allows.

Suffixes choose the format (.txt .tsv .csv, .bel .bel32 .bel64, .npy .npz, .mtx, .metis .graph, .parquet,
.arrow .feather) and, behind it, the compression (.gz .bz2 .xz .zst). A file appears whole or not at all.

What is written is read back by `ww.read` as the same pairs under the same labels, or it is refused. Matrix Market and
METIS number vertices by row; lists of pairs do not hold vertices without an edge.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.generate.stream import EdgeStream
from wedgewise.machine import hardware
from wedgewise.machine.files import atomic_write
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.prepare.sorting import sorted_keys
from wedgewise.read.pieces import first_outside
from wedgewise.read.sniff import data_suffix
from wedgewise.stages import Keys, Labels
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import DEFAULT_LIMITS
from wedgewise.write._decimal import spell
from wedgewise.write.binary import Member, write_npy_header, write_npz, write_table
from wedgewise.write.checks import SeenPairs, check_format, check_lines, check_names, header_of_names
from wedgewise.write.compressed import compressed

BLOCK_PAIRS = 2**16
METIS_NEIGHBOURS = 2**18  # of a row alone, any number
NUMBER_WIDTH = 20


@dataclass(frozen=True, slots=True)
class _Output:
    """One file being written: an open binary file, and what to put into it."""

    file: BinaryIO
    seekable: bool
    name: str
    format: str
    blocks: Iterator[NDArray[Any]]
    dtype: np.dtype[Any]
    names: TextLabels | None
    vertices: int | None

    def all_blocks(self) -> list[NDArray[Any]]:
        """Every pair in memory, for formats that need to know how many there are before the first byte."""
        return [block.astype(self.dtype, copy=False) for block in self.blocks]

    def write_all(self, pieces: Iterable[bytes]) -> None:
        """Write a format without a signature: its first piece has to be taken for what it is."""
        for number, piece in enumerate(pieces):
            if number == 0:
                check_format(piece, self.name, self.format, compressed=not self.seekable)
            self.file.write(piece)


@dataclass(frozen=True, slots=True)
class Writer:
    """How one format is written, the labels it can hold ("text", "int", or "none": row numbers only), and what readers
    call it."""

    write: Callable[[_Output], None]
    labels: str
    format: str

    @property
    def holds_vertices(self) -> bool:
        """Whether vertices without an edge are kept."""
        return self.labels == "none" or self.format == "npz"


@memory_for("write")
def write_edges(
    edges: NDArray[Any] | Iterable[NDArray[Any]],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    labels: Labels | None = None,
    vertices: int | None = None,
) -> int:
    """Write pairs to a file and return how many there were.

    Parameters
    ----------
    edges : an integer array of shape (k, 2), or an iterable of such arrays, which is streamed
    path : where to; the suffix tells the compression, and the format if none is given
    format : a name of `WRITERS`
    labels : what to write for vertex v: ``labels[v]`` instead of v, all different; text files and tables can hold text
    vertices : the number of vertices, for formats that keep vertices without an edge (.mtx, .metis, .npz)

    Raises
    ------
    InputError
        When the format cannot hold these pairs or labels so that they are read back.
    StorageError
        When the file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "path.csv"
    >>> write_edges(np.array([[0, 1], [1, 2]]), target)
    2
    >>> target.read_text()
    '0,1\\n1,2\\n'
    """
    writer = writer_of(path, format)
    if isinstance(labels, list):
        labels = TextLabels.of(labels)
    names = labels if isinstance(labels, TextLabels) else None
    if names is not None and writer.labels != "text":
        raise InputError(f"{path}: this format holds integers only; write text labels as text or Parquet")
    if labels is not None and writer.labels == "none":
        raise InputError(f"{path}: this format numbers vertices by row; write it without labels")
    if isinstance(labels, np.ndarray) and (labels.dtype.kind not in "iu" or first_outside(labels) is not None):
        raise InputError(f"{path}: labels of {labels.dtype} that are not all 0 … 2^63 − 1; write text labels")
    pairs = 0

    def counted() -> Iterator[NDArray[Any]]:
        nonlocal pairs
        for block in _blocks(edges, names, labels, vertices):
            pairs += len(block)
            yield block

    dtype = _narrowest(edges, labels, vertices)
    with atomic_write(path) as plain, compressed(plain, path) as file:
        blocks = _with_whole_head(counted())
        writer.write(_Output(file, file is plain, str(path), writer.format, blocks, dtype, names, vertices))
    return pairs


def write_stream(
    stream: EdgeStream,
    path: str | os.PathLike[str],
    stage: str,
    progress: Progress | None,
    *,
    format: str | None = None,
    threads: int | None = None,
) -> int:
    """Write a generated graph block by block, as `write_edges` does; `stage` is what its progress is called."""

    def watched() -> Iterator[NDArray[Any]]:
        done = 0
        for block in stream.blocks(threads=hardware.granted_threads(threads)):
            yield block
            done += len(block)
            if progress is not None:
                progress(stage, done, stream.pairs_count)

    return write_edges(watched(), path, format=format, vertices=stream.n)


def _blocks(
    edges: NDArray[Any] | Iterable[NDArray[Any]],
    names: TextLabels | None,
    labels: Labels | None,
    vertices: int | None,
) -> Iterator[NDArray[Any]]:
    """Small checked blocks, relabelled by integer labels if there are any."""
    bound = len(labels) if labels is not None else vertices
    label_of = None if labels is None or names is not None else np.asarray(labels)
    row = 0
    for part in [edges] if isinstance(edges, np.ndarray) else edges:
        if part.dtype.kind not in "iu" or part.ndim != 2 or part.shape[1] != 2:
            raise InputError(f"a block of {part.dtype} and shape {part.shape}; pass integer arrays of shape (k, 2)")
        for begin in range(0, len(part), BLOCK_PAIRS):
            block = part[begin : begin + BLOCK_PAIRS]
            outside = first_outside(block) if bound is None else first_outside(block, bound)
            if outside is not None:
                limit = "2^63 − 1" if bound is None else str(bound - 1)
                raise InputError(
                    f"row {row + outside[0] // 2} holds {outside[1]}, outside 0 … {limit}; renumber vertices"
                )
            yield block if label_of is None else label_of[block]
            row += len(block)


def _with_whole_head(blocks: Iterator[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """The same pairs; the first block is a full one, or all of them: it holds everything that readers decide by."""
    first: list[NDArray[Any]] = []
    while sum(map(len, first)) < BLOCK_PAIRS and (block := next(blocks, None)) is not None:
        first.append(block)
    if first:
        yield first[0] if len(first) == 1 else np.concatenate(first)
    yield from blocks


def _narrowest(
    edges: NDArray[Any] | Iterable[NDArray[Any]], labels: Labels | None, vertices: int | None
) -> np.dtype[Any]:
    """int32 where it is known to hold every number, else int64."""
    if isinstance(labels, np.ndarray):
        largest = int(labels.max(initial=0))
    elif labels is not None or vertices is not None:
        largest = (len(labels) if labels is not None else vertices or 0) - 1
    elif isinstance(edges, np.ndarray) and edges.dtype.kind in "iu":
        largest = int(edges.max(initial=0))
    else:
        largest = 2**31
    return np.dtype("<i4" if largest < 2**31 else "<i8")


def writer_of(path: str | os.PathLike[str], format: str | None = None) -> Writer:
    """The writer of a format, by its name or by the suffix of the path."""
    name = data_suffix(os.fspath(path)).removeprefix(".") if format is None else format
    if name not in WRITERS:
        raise UnknownNameError(f"{os.fspath(path)}: no format named {name!r} to write; there are: {', '.join(WRITERS)}")
    return WRITERS[name]


def _write_text(separator: str, output: _Output) -> None:
    """One pair per line."""
    if output.names is not None:
        _write_names(output, output.names, separator)
    else:
        output.write_all(spell(unsigned(block), _trailing(separator, block)) for block in output.blocks)


def _trailing(separator: str, block: NDArray[Any]) -> NDArray[np.uint32]:
    """What stands behind each number or label of the pairs of a block."""
    return np.tile(np.array([ord(separator), ord("\n")], np.uint32), len(block))


def _write_names(output: _Output, names: TextLabels, separator: str) -> None:
    """Pairs of text labels, behind a header where the first of them would be taken for something else."""
    check_names(output.name, names)
    for number, block in enumerate(output.blocks):
        check_lines(output.name, names, block)
        text = names.spell(block.reshape(-1), _trailing(separator, block))
        if number == 0:
            output.file.write(header_of_names(text, output.name, separator, compressed=not output.seekable))
        output.file.write(text)


def _write_bel(output: _Output) -> None:
    """Raw pairs of the width that is needed, unless a reader could not tell that width."""
    seen = SeenPairs()
    output.write_all(seen.watched(block).astype(output.dtype).tobytes() for block in output.blocks)
    if output.dtype.itemsize == 4 and seen.second_ids == 0 and seen.pairs and seen.pairs % 2 == 0:
        raise InputError(f"{output.name}: pairs that all end in 0 look like 64-bit ids; name the file .bel32")
    if seen.largest >= 2**32:
        raise InputError(f"{output.name}: ids of 2^32 and more look like 32-bit pairs; name the file .bel64")
    if output.dtype.itemsize == 8 and seen.pairs and seen.all_differ():
        raise InputError(f"{output.name}: 64-bit ids that all differ look like 32-bit pairs too; name the file .bel64")


def _write_wide_bel(dtype: str, output: _Output) -> None:
    """Raw pairs of one width."""
    beyond = 2**31 if dtype == "<i4" else 2**63

    def raw(block: NDArray[Any]) -> bytes:
        if int(block.max(initial=0)) >= beyond:
            raise InputError(f"{output.name}: an id of 2^31 or more does not fit; name the file .bel64")
        return block.astype(dtype).tobytes()

    output.write_all(map(raw, output.blocks))


def _write_npy(output: _Output) -> None:
    """Where the file can be gone back in, its header is written again when the number of streamed pairs is known."""
    blocks = output.blocks if output.seekable else output.all_blocks()
    write_npy_header(output.file, output.dtype, (0 if isinstance(blocks, Iterator) else sum(map(len, blocks)), 2))
    count = 0
    for block in blocks:
        output.file.write(block.astype(output.dtype, copy=False).tobytes())
        count += len(block)
    if output.seekable:
        output.file.seek(0)
        write_npy_header(output.file, output.dtype, (count, 2))


def _write_npz(output: _Output) -> None:
    _check_rows(output, 0)
    blocks = output.all_blocks()
    members = {"edges": Member(output.dtype, (sum(map(len, blocks)), 2), blocks)}
    if output.vertices is not None:
        members["n"] = Member(np.dtype("<i8"), (), [np.array(output.vertices)])
    write_npz(output.file, members)


def _write_matrix_market(output: _Output) -> None:
    """A symmetric pattern, larger index first; the size line has a fixed width, so it can be written last."""
    blocks = output.blocks if output.seekable else list(output.blocks)
    known = (0, -1) if isinstance(blocks, Iterator) else (sum(map(len, blocks)), _largest(blocks))
    output.file.write(_matrix_market_header(*known, output.vertices))
    count, largest = 0, -1
    for block in blocks:
        entries = np.stack((block.max(axis=1), block.min(axis=1)), axis=1)
        output.file.write(spell(unsigned(entries, spare=1) + 1, _trailing(" ", block)))
        count, largest = count + len(block), max(largest, int(block.max()))
    _check_rows(output, largest + 1)
    if output.seekable:
        output.file.seek(0)
        output.file.write(_matrix_market_header(count, largest, output.vertices))


def _check_rows(output: _Output, used: int) -> None:
    """Refuse more vertices than readers take."""
    rows = used if output.vertices is None else output.vertices
    if rows > DEFAULT_LIMITS.vertices:
        raise InputError(
            f"{output.name}: {rows:,} vertices, of which this format has a number or a row each, are more than readers "
            f"take ({DEFAULT_LIMITS.vertices:,}); write .npy, or only the vertices with edges (--clean)"
        )


def _largest(blocks: Iterable[NDArray[Any]]) -> int:
    return max((int(block.max()) for block in blocks), default=-1)


def _matrix_market_header(count: int, largest: int, vertices: int | None) -> bytes:
    n = largest + 1 if vertices is None else vertices
    sizes = f"{n:{NUMBER_WIDTH}} {n:{NUMBER_WIDTH}} {count:{NUMBER_WIDTH}}"
    return f"%%MatrixMarket matrix coordinate pattern symmetric\n{sizes}\n".encode()


def _write_metis(output: _Output) -> None:
    """Both directions of every edge, sorted by vertex; the format has no loops and no repeated edges."""
    blocks = output.all_blocks()
    n = _largest(blocks) + 1 if output.vertices is None else output.vertices
    keys = _sorted_both_ways(blocks) if n < 2**31 else None
    if keys is None:
        raise InputError(f"{output.name}: METIS holds simple graphs of below 2^31 vertices; write a cleaned graph")
    output.write_all([f"{n} {len(keys) // 2}\n".encode()])
    first = 0
    while first < n:
        rows = np.arange(first, min(first + BLOCK_PAIRS, n) + 1, dtype=np.uint64)
        bounds = np.searchsorted(keys, rows << 32)
        count = max(1, int(np.searchsorted(bounds, bounds[0] + METIS_NEIGHBOURS, side="right")) - 1)
        output.file.write(_metis_rows(keys[bounds[0] : bounds[count]] & 0xFFFFFFFF, np.diff(bounds[: count + 1])))
        first += count


def _sorted_both_ways(blocks: list[NDArray[Any]]) -> Keys | None:
    """``u << 32 | v`` and ``v << 32 | u`` of every pair, ascending; None if a pair is there twice, or a loop."""
    both = np.empty((2, sum(map(len, blocks))), np.uint64)
    row = 0
    for block in blocks:
        low, high = block.astype(np.uint64).T
        both[0, row : row + len(block)] = low << np.uint64(32) | high
        both[1, row : row + len(block)] = high << np.uint64(32) | low
        row += len(block)
    keys = sorted_keys(both.reshape(-1), hardware.usable_threads())
    return None if (keys[1:] == keys[:-1]).any() else keys


def _metis_rows(neighbours: NDArray[Any], degrees: NDArray[Any]) -> bytes:
    """One line per vertex; a vertex without neighbours is an absent number with its newline."""
    widths = np.maximum(degrees, 1)
    ends = np.cumsum(widths) - 1
    present = np.ones(int(widths.sum()), np.bool_)
    present[ends[degrees == 0]] = False
    numbers = np.zeros(len(present), np.uint64)
    numbers[present] = neighbours + 1
    trailing = np.full(len(present), ord(" "), np.uint32)
    trailing[ends] = ord("\n")
    return spell(numbers, trailing, present)


def _write_table(form: str, output: _Output) -> None:
    """A source and a target column."""
    columns = dict.fromkeys(("source", "target"), output.dtype if output.names is None else None)
    write_table(form, output.file, columns, (block.T for block in output.blocks), output.names, 2 * BLOCK_PAIRS)


def unsigned(block: NDArray[Any], spare: int = 0) -> NDArray[Any]:
    """The numbers in one row, as narrow as they fit with something added: 32-bit division is faster."""
    flat = block.reshape(-1)
    return flat.astype(np.uint32 if int(flat.max(initial=0)) + spare < 2**32 else np.uint64, copy=False)


WRITERS: dict[str, Writer] = {
    "txt": Writer(partial(_write_text, " "), "text", "text"),
    "tsv": Writer(partial(_write_text, "\t"), "text", "text"),
    "csv": Writer(partial(_write_text, ","), "text", "text"),
    "bel": Writer(_write_bel, "int", "bel"),
    "bel32": Writer(partial(_write_wide_bel, "<i4"), "int", "bel32"),
    "bel64": Writer(partial(_write_wide_bel, "<i8"), "int", "bel64"),
    "npy": Writer(_write_npy, "int", "npy"),
    "npz": Writer(_write_npz, "int", "npz"),
    "mtx": Writer(_write_matrix_market, "none", "mtx"),
    "metis": Writer(_write_metis, "none", "metis"),
    "graph": Writer(_write_metis, "none", "metis"),
    "parquet": Writer(partial(_write_table, "parquet"), "text", "parquet"),
    "arrow": Writer(partial(_write_table, "arrow"), "text", "arrow"),
    "feather": Writer(partial(_write_table, "arrow"), "text", "arrow"),
}

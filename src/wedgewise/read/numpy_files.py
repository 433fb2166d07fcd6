"""NumPy's .npy and .npz files, without NumPy's loader: nothing is ever unpickled or evaluated.

The header is matched against the one form that NumPy writes, and what it declares is compared with the
bytes that are there before anything is allocated. An .npz file holds an edge array (named ``edges``, or the only one,
with the number of vertices in ``n`` if there is such an array) or a sparse matrix as SciPy saves it. Its members are
decompressed in blocks: of a sparse matrix nothing but its row offsets is held.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.read import ReadOptions
from wedgewise.read.content import Content
from wedgewise.read.pieces import KEPT_DTYPES, PairPieces, Piece, first_outside, interleave, kept_type
from wedgewise.read.zip_members import ZipMembers
from wedgewise.stages import Origin
from wedgewise.stages.limits import Limits

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 10_000
PIECE_ROWS = 2**18
HEADER = re.compile(
    rb"\{'descr': '([<>|=]?[biufcSUVMmO]\d{0,4})', 'fortran_order': (True|False), 'shape': "
    rb"\((|\d{1,18},|\d{1,18}(?:, \d{1,18})+)\), \} *\n?"
)
RESAVE = "save it again with numpy.save(path, edges) where edges is a (k, 2) integer array"
SPARSE_REMEDY = "save it with scipy.sparse.save_npz(path, matrix.tocsr())"


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """What a .npy header declares, and where its data begin."""

    dtype: np.dtype[Any]
    fortran_order: bool
    shape: tuple[int, ...]
    data_offset: int

    @property
    def total_bytes(self) -> int:
        return self.data_offset + math.prod(self.shape) * self.dtype.itemsize


BlockReader = Callable[[int, int, int], Iterator[NDArray[np.uint8]]]  # from, to, bytes of a block


def pieces_of_npy(content: Content, options: ReadOptions) -> PairPieces:
    """A (k, 2) integer array; in one piece where it is wanted whole and lies in the file as it would in memory."""
    header = parse_header(content.head(MAX_HEADER_BYTES + 12), content.name)
    _check_edge_array(header, options.limits, content.name)
    if content.size is not None:
        _check_length(content.size, header, content.name)
    if options.whole and not header.fortran_order and header.dtype in KEPT_DTYPES:
        pieces = _all_at_once(content, header)
    elif content.size is not None or header.fortran_order:
        pieces = _rows_of(_blocks_of_file(content.file()), header)
    else:
        pieces = _rows_of_stream(content, header)
    return PairPieces(Origin(content.name, "npy"), _inside(pieces, content.name, None), header.shape[0])


def pieces_of_npz(content: Content, options: ReadOptions) -> PairPieces:
    """An edge array or a SciPy sparse matrix out of an archive of arrays."""
    arrays = _ArrayArchive(content, options.limits)
    return _sparse(arrays) if {"format", "shape"} <= arrays.names else _edge_member(arrays)


class _ArrayArchive(ZipMembers):
    """The arrays of an .npz file by name, each read when asked for."""

    def __init__(self, content: Content, limits: Limits) -> None:
        super().__init__(content, limits)
        self.names = {member.removesuffix(".npy") for member in self.members if member.endswith(".npy")}

    def header(self, array: str) -> ArrayHeader:
        """What an array declares, which has to be what there is of it."""
        header = parse_header(self.head(f"{array}.npy", MAX_HEADER_BYTES + 12), f"{self.name}[{array}]")
        _check_length(self.size(f"{array}.npy"), header, f"{self.name}[{array}]")
        return header

    def rows(self, array: str, header: ArrayHeader) -> Iterator[NDArray[Any]]:
        """The array in pieces: of its first dimension, and (k, 2) ones of two."""
        return _rows_of(partial(self.blocks, f"{array}.npy"), header)

    def array(self, array: str, header: ArrayHeader) -> NDArray[Any]:
        """A whole array of at most one dimension."""
        size = header.total_bytes - header.data_offset
        self.limits.check_memory(size, path=f"{self.name}[{array}]")
        (data,) = self.blocks(f"{array}.npy", header.data_offset, header.total_bytes, size) if size else (b"",)
        return np.frombuffer(data, header.dtype).reshape(header.shape)

    def integers(self, array: str, dimensions: int) -> ArrayHeader:
        """What one array of the sparse layout declares."""
        if array not in self.names:
            raise FormatError(f"no array {array!r}", path=self.name, remedy=SPARSE_REMEDY)
        header = self.header(array)
        if header.dtype.kind not in "iu" or len(header.shape) != dimensions:
            raise FormatError(
                f"array {array!r} of type {header.dtype} and shape {header.shape}",
                path=self.name,
                remedy=SPARSE_REMEDY,
            )
        return header

    def text(self, array: str) -> str:
        """A single short text, as SciPy saves the name of a layout."""
        header = self.header(array)
        if header.dtype.kind not in "SU" or math.prod(header.shape) != 1 or header.dtype.itemsize > 64:
            raise FormatError(f"array {array!r} is no single word", path=self.name, remedy=SPARSE_REMEDY)
        return self.array(array, header).tobytes().replace(b"\0", b"").decode("ascii", "replace")


def _edge_member(arrays: _ArrayArchive) -> PairPieces:
    others = arrays.names - {"n"}
    chosen = "edges" if "edges" in others else next(iter(others)) if len(others) == 1 else None
    if chosen is None:
        shown = ", ".join(sorted(arrays.names)[:10]) or "none"
        raise FormatError(
            f"no array named 'edges' (arrays: {shown})",
            path=arrays.name,
            remedy="save it with numpy.savez(path, edges=edges)",
        )
    header, origin = arrays.header(chosen), Origin(f"{arrays.name}[{chosen}]", "npz")
    _check_edge_array(header, arrays.limits, origin.name)
    vertices = int(arrays.array("n", arrays.integers("n", 0))) if "n" in arrays.names else None
    if vertices is not None:
        _check_vertices(vertices, arrays)
    pieces = _inside(arrays.rows(chosen, header), origin.name, vertices)
    return PairPieces(origin, pieces, header.shape[0], vertices=vertices)


def _check_vertices(vertices: int, arrays: _ArrayArchive) -> None:
    if vertices < 0:
        raise FormatError(f"{vertices:,} vertices", path=arrays.name, remedy="the number of vertices is 0 or more")
    arrays.limits.check("vertices", vertices, path=arrays.name)


def _sparse(arrays: _ArrayArchive) -> PairPieces:
    kind = arrays.text("format")
    shape = arrays.array("shape", arrays.integers("shape", 1)).tolist()
    if len(shape) != 2 or shape[0] != shape[1]:
        raise FormatError(
            f"a sparse matrix of shape {tuple(shape)} is not square",
            path=arrays.name,
            remedy="an adjacency matrix has one row and one column per vertex",
        )
    n = shape[0]
    _check_vertices(n, arrays)
    ends: Iterable[tuple[NDArray[Any], NDArray[Any]]]
    if kind in ("csr", "csc"):  # which yield the same edges with their ends exchanged
        indices = arrays.integers("indices", 1)
        entries = indices.shape[0]
        ends = _with_rows(_row_offsets(arrays, n, entries), arrays.rows("indices", indices))
    elif kind == "coo":
        rows, columns = arrays.integers("row", 1), arrays.integers("col", 1)
        if rows.shape != columns.shape:
            raise FormatError("'row' and 'col' differ in length", path=arrays.name, remedy=SPARSE_REMEDY)
        entries = rows.shape[0]
        ends = zip(arrays.rows("row", rows), arrays.rows("col", columns), strict=True)
    else:
        raise FormatError("a sparse layout that is not read", path=arrays.name, text=kind, remedy=SPARSE_REMEDY)
    arrays.limits.check("pairs", entries, path=arrays.name)
    pieces = _inside_both(ends, arrays.name, n)
    return PairPieces(Origin(arrays.name, f"npz {kind}"), pieces, entries, vertices=n)


def _inside_both(ends: Iterable[tuple[NDArray[Any], NDArray[Any]]], name: str, n: int) -> Iterator[Piece]:
    """Sources and targets of any integer types as pairs below n."""
    row = 0
    for sources, targets in ends:
        for values in (sources, targets):
            _check_inside(values, name, n, row)
        yield interleave(sources, targets, np.uint32 if n <= 2**32 else np.uint64)
        row += len(sources)


def _row_offsets(arrays: _ArrayArchive, n: int, entries: int) -> NDArray[np.int64]:
    """Where the entries of each row begin, and where the last ones end."""
    declared = arrays.integers("indptr", 1)
    arrays.limits.check_memory(8 * declared.shape[0], path=arrays.name)
    offsets = arrays.array("indptr", declared)
    fits = len(offsets) == n + 1 and int(offsets[0]) == 0 and int(offsets[-1]) == entries
    if not fits or first_outside(offsets, entries + 1) is not None or (offsets[1:] < offsets[:-1]).any():
        raise FormatError(
            "'indptr' does not go from 0 up to the length of 'indices' in n steps",
            path=arrays.name,
            remedy=SPARSE_REMEDY,
        )
    return offsets.astype(np.int64)


def _with_rows(
    offsets: NDArray[np.int64], pieces: Iterator[NDArray[Any]]
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The row of each column index, and the index."""
    begin = 0
    for columns in pieces:
        end = begin + len(columns)
        first = int(np.searchsorted(offsets, begin, side="right")) - 1
        last = int(np.searchsorted(offsets, end, side="left"))
        bounds = np.clip(offsets[first : last + 1], begin, end)
        yield np.repeat(np.arange(first, last, dtype=np.int64), np.diff(bounds)), columns
        begin = end


def parse_header(head: bytes, name: str) -> ArrayHeader:
    """The header at the beginning of a .npy file."""
    if head[:6] != MAGIC or len(head) < 10 or head[6] not in (1, 2):
        raise FormatError("no .npy header of version 1 or 2", path=name, remedy=RESAVE)
    length_bytes = 2 if head[6] == 1 else 4
    begin = 8 + length_bytes
    length = int.from_bytes(head[8:begin], "little")
    text = head[begin : begin + length]
    if length > MAX_HEADER_BYTES or len(text) < length:
        raise FormatError(f"a header of {length:,} bytes is too long or cut off", path=name, remedy=RESAVE)
    match = HEADER.fullmatch(text)
    if match is None:
        raise FormatError(
            "is no header of a plain array", path=name, text=text.decode("latin-1").strip(), remedy=RESAVE
        )
    descr, fortran, sides = match.groups()
    shape = tuple(int(side) for side in sides.split(b",") if side)
    return ArrayHeader(_dtype(descr, name), fortran == b"True", shape, begin + length)


def _dtype(descr: bytes, name: str) -> np.dtype[Any]:
    """The type of a header; object arrays are pickles and refused here."""
    text = descr.decode()
    if text.strip("<>|=")[0] == "O":
        raise FormatError("an array of pickled objects, which are never read", path=name, text=text, remedy=RESAVE)
    try:
        dtype = np.dtype(text)
    except (TypeError, ValueError):
        dtype = np.dtype("V0")
    if dtype.itemsize == 0:
        raise FormatError("an unknown type of array", path=name, text=text, remedy=RESAVE)
    return dtype


def _check_edge_array(header: ArrayHeader, limits: Limits, name: str) -> None:
    """The declared type and shape are those of pairs."""
    if header.dtype.kind not in "iu":
        remedy = "convert with .astype(numpy.int64)" if header.dtype.kind == "f" else RESAVE
        raise FormatError(f"an array of {header.dtype} where integers are needed", path=name, remedy=remedy)
    if len(header.shape) != 2 or header.shape[1] != 2:
        flipped = len(header.shape) == 2 and header.shape[0] == 2
        raise FormatError(
            f"an array of shape {header.shape} where (k, 2) is needed",
            path=name,
            remedy="if its rows are sources and targets, save the transpose" if flipped else RESAVE,
        )
    limits.check("pairs", header.shape[0], path=name)


def _check_length(length: int, header: ArrayHeader, name: str) -> None:
    if length != header.total_bytes:
        raise FormatError(
            f"declares {header.total_bytes:,} bytes where there are {length:,}",
            path=name,
            remedy="the file is truncated or its header is wrong",
        )


def _all_at_once(content: Content, header: ArrayHeader) -> Iterator[Piece]:
    raw = content.whole()
    _check_length(len(raw), header, content.name)
    yield raw[header.data_offset :].view(header.dtype).reshape(header.shape)


def _blocks_of_file(file: BinaryIO) -> BlockReader:
    def blocks(begin: int, end: int, size: int) -> Iterator[NDArray[np.uint8]]:
        while begin < end:
            file.seek(begin)
            yield np.frombuffer(file.read(min(size, end - begin)), np.uint8)
            begin += size

    return blocks


def _rows_of(blocks: BlockReader, header: ArrayHeader) -> Iterator[NDArray[Any]]:
    """An array in pieces of rows, whichever of its dimensions comes first in the file."""
    begin, end, rows = header.data_offset, header.total_bytes, PIECE_ROWS
    width, size = math.prod(header.shape[1:]), header.dtype.itemsize
    if not header.fortran_order or width == 1:
        for block in blocks(begin, end, rows * width * size):
            yield block.view(header.dtype).reshape(-1, *header.shape[1:])
        return
    middle = begin + (end - begin) // 2
    for both in zip(blocks(begin, middle, rows * size), blocks(middle, end, rows * size), strict=True):
        yield np.stack([block.view(header.dtype) for block in both], axis=1)


def _rows_of_stream(content: Content, header: ArrayHeader) -> Iterator[Piece]:
    """The same of what comes once, in C order."""
    fill, step = content.reader(), 2 * header.dtype.itemsize
    fill(np.empty(header.data_offset, np.uint8))
    left = header.total_bytes - header.data_offset
    while left:
        block = np.empty(min(left, PIECE_ROWS * step), np.uint8)
        if fill(block) < len(block):
            break
        left -= len(block)
        yield block.view(header.dtype).reshape(-1, 2)
    if left or fill(np.empty(1, np.uint8)):
        more = "fewer" if left else "more"
        raise FormatError(
            f"declares {header.total_bytes:,} bytes where there are {more}",
            path=content.name,
            remedy="the file is truncated or its header is wrong",
        )


def _inside(pieces: Iterator[NDArray[Any]] | Any, name: str, vertices: int | None) -> Iterator[Piece]:
    """Pieces of numbers as pairs, each checked."""
    row = 0
    for piece in pieces:
        pairs = kept_type(piece)
        _check_inside(pairs, name, vertices, row)
        row += len(pairs)
        yield pairs


def _check_inside(values: NDArray[Any], name: str, vertices: int | None, row: int) -> None:
    outside = first_outside(values) if vertices is None else first_outside(values, vertices)
    if outside is not None:
        allowed = "2^63 − 1" if vertices is None else f"n − 1 = {vertices - 1}"
        raise FormatError(
            f"row {row + outside[0] // values[0].size} holds a number outside 0 … {allowed}",
            path=name,
            text=str(outside[1]),
            remedy="renumber the vertices from 0",
        )

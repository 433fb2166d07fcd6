"""NumPy's .npy and .npz files → EdgeList, without NumPy's loader: nothing is ever unpickled or evaluated.

The header is matched against the one form that NumPy writes, and what it declares is compared with the
bytes that are there before anything is allocated. A plain .npy file is mapped. An .npz file holds an edge
array (named ``edges``, or the only one, with the number of vertices in ``n`` if there is such an array) or
a sparse matrix as SciPy saves it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.graph import EdgeList, Origin
from wedgewise.read.checks import first_outside, interleave, kept_type
from wedgewise.read.content import Content
from wedgewise.read.limits import Limits
from wedgewise.read.zip_members import ZipMembers

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 10_000
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


def read_npy(content: Content, limits: Limits) -> EdgeList:
    """Read a (k, 2) integer array; a plain file stays mapped."""
    header = parse_header(content.head(MAX_HEADER_BYTES + 12), content.name)
    _check_edge_array(header, limits, content.name)
    array = _array_in(content.whole(), header, content.name)
    return _edge_list(array, Origin(content.name, "npy"), None)


def read_npz(content: Content, limits: Limits) -> EdgeList:
    """Read an edge array or a SciPy sparse matrix out of an archive of arrays."""
    with ZipMembers(content, limits) as members:
        arrays = _Archive(members, content.name)
        if {"format", "shape"} <= arrays.names:
            return _read_sparse(arrays, limits)
        return _read_edge_member(arrays, limits)


class _Archive:
    """The arrays of an .npz file by name, each read when asked for."""

    def __init__(self, members: ZipMembers, name: str) -> None:
        self.name = name
        self._members = members
        self.names = {member.removesuffix(".npy") for member in members.names if member.endswith(".npy")}

    def header(self, array: str) -> ArrayHeader:
        return parse_header(self._members.head(f"{array}.npy", MAX_HEADER_BYTES + 12), self.place(array))

    def array(self, array: str, header: ArrayHeader | None = None) -> NDArray[Any]:
        header = header or self.header(array)
        declared = self._members.size(f"{array}.npy")
        _check_length(declared, header, self.place(array))
        return _array_in(self._members.read(f"{array}.npy"), header, self.place(array))

    def integers(self, array: str, dimensions: int) -> NDArray[Any]:
        """One array of the sparse layout."""
        if array not in self.names:
            raise FormatError(f"no array {array!r}", path=self.name, remedy=SPARSE_REMEDY)
        header = self.header(array)
        if header.dtype.kind not in "iu" or len(header.shape) != dimensions:
            raise FormatError(
                f"array {array!r} of type {header.dtype} and shape {header.shape}",
                path=self.name,
                remedy=SPARSE_REMEDY,
            )
        return self.array(array, header)

    def text(self, array: str) -> str:
        """A single short text, as SciPy saves the name of a layout."""
        header = self.header(array)
        if header.dtype.kind not in "SU" or math.prod(header.shape) != 1 or header.dtype.itemsize > 64:
            raise FormatError(f"array {array!r} is no single word", path=self.name, remedy=SPARSE_REMEDY)
        return self.array(array, header).tobytes().replace(b"\0", b"").decode("ascii", "replace")

    def place(self, array: str) -> str:
        return f"{self.name}[{array}]"


def _read_edge_member(arrays: _Archive, limits: Limits) -> EdgeList:
    others = arrays.names - {"n"}
    chosen = "edges" if "edges" in others else next(iter(others)) if len(others) == 1 else None
    if chosen is None:
        shown = ", ".join(sorted(arrays.names)[:10]) or "none"
        raise FormatError(
            f"no array named 'edges' (arrays: {shown})",
            path=arrays.name,
            remedy="save it with numpy.savez(path, edges=edges)",
        )
    header = arrays.header(chosen)
    _check_edge_array(header, limits, arrays.place(chosen))
    vertices = int(arrays.integers("n", 0)) if "n" in arrays.names else None
    if vertices is not None:
        limits.check("vertices", vertices, path=arrays.name)
    origin = Origin(arrays.place(chosen), "npz")
    return _edge_list(arrays.array(chosen, header), origin, vertices)


def _read_sparse(arrays: _Archive, limits: Limits) -> EdgeList:
    kind = arrays.text("format")
    shape = arrays.integers("shape", 1).tolist()
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 0:
        raise FormatError(
            f"a sparse matrix of shape {tuple(shape)} is not square",
            path=arrays.name,
            remedy="an adjacency matrix has one row and one column per vertex",
        )
    n = shape[0]
    limits.check("vertices", n, path=arrays.name)
    if kind in ("csr", "csc"):
        pairs = _pairs_of_compressed(arrays, n, limits)
    elif kind == "coo":
        rows, columns = arrays.integers("row", 1), arrays.integers("col", 1)
        if len(rows) != len(columns):
            raise FormatError("'row' and 'col' differ in length", path=arrays.name, remedy=SPARSE_REMEDY)
        pairs = interleave(rows, columns)
    else:
        raise FormatError("a sparse layout that is not read", path=arrays.name, text=kind, remedy=SPARSE_REMEDY)
    return _edge_list(kept_type(pairs), Origin(arrays.name, f"npz {kind}"), n)


def _pairs_of_compressed(arrays: _Archive, n: int, limits: Limits) -> NDArray[Any]:
    """Expand row offsets; a CSC matrix yields the same edges with their ends exchanged."""
    offsets, indices = arrays.integers("indptr", 1), arrays.integers("indices", 1)
    limits.check("pairs", len(indices), path=arrays.name)
    lengths: NDArray[np.int64] = offsets[1:].astype(np.int64) - offsets[:-1].astype(np.int64)
    fits = len(offsets) == n + 1 and int(offsets[0]) == 0 and int(offsets[-1]) == len(indices)
    if not fits or (lengths < 0).any():
        raise FormatError(
            "'indptr' does not go from 0 up to the length of 'indices' in n steps",
            path=arrays.name,
            remedy=SPARSE_REMEDY,
        )
    return interleave(np.repeat(np.arange(n, dtype=indices.dtype), lengths), indices)


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


def _array_in(raw: NDArray[np.uint8], header: ArrayHeader, name: str) -> NDArray[Any]:
    """The declared array as a view of the bytes."""
    _check_length(len(raw), header, name)
    flat = raw[header.data_offset :].view(header.dtype)
    return flat.reshape(header.shape, order="F" if header.fortran_order else "C")


def _edge_list(array: NDArray[Any], origin: Origin, vertices: int | None) -> EdgeList:
    pairs = kept_type(array)
    outside = first_outside(pairs) if vertices is None else first_outside(pairs, vertices)
    if outside is not None:
        allowed = "2^63 − 1" if vertices is None else f"n − 1 = {vertices - 1}"
        raise FormatError(
            f"row {outside[0] // 2} holds a number outside 0 … {allowed}",
            path=origin.name,
            text=str(outside[1]),
            remedy="renumber the vertices from 0",
        )
    return EdgeList(pairs, origin, vertices=vertices)

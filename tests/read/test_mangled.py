"""Files that are almost right, each with the exact message it earns."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from wedgewise.errors import FormatError, LimitError, WedgewiseError
from wedgewise.read import read_edges
from wedgewise.stages.limits import Limits

BANNER = b"%%MatrixMarket matrix coordinate pattern general\n"
BANNER_REMEDY = "the first line reads: %%MatrixMarket matrix coordinate pattern|real|integer|complex general|symmetric"
METIS_HEADER = "vertices, edges, and optionally fmt (digits 0 or 1) and the number of weights per vertex"
NO_METIS = 'for a plain edge list pass format="text"'
RESAVE = "save it again with numpy.save(path, edges) where edges is a (k, 2) integer array"
SPARSE = "save it with scipy.sparse.save_npz(path, matrix.tocsr())"
ZIP = "the archive is damaged, or not one that numpy.savez or scipy.sparse.save_npz wrote: save it again"
WIDTH = 'pass format="bel32" or format="bel64"'
SQUARE = "an adjacency matrix has one row and one column per vertex"
TRUNCATED = "the file is truncated or its header is wrong"
NOT_TEXT = "the file is not text, or damaged: check where it comes from"
NO_BANNER = "is no banner of a sparse matrix"
BOTH_ROWS = "every edge stands in both of its rows"
CUT_SIZES = "the file is truncated or its size line is wrong"
TRANSPOSE = "if its rows are sources and targets, save the transpose"
RAW = "the file is truncated or no raw pairs file"
INTEGER = "is no non-negative integer of at most 18 digits"


def npy(descr: str = "<i8", shape: str = "(1, 2)", data: bytes = bytes(16), order: str = "False") -> bytes:
    """A .npy file with a header of one's choice."""
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def array_bytes(array: object) -> bytes:
    """What numpy.save writes."""
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def npz(**members: bytes) -> bytes:
    """An archive of .npy members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def sparse(layout: str = "csr", **arrays: object) -> bytes:
    """A sparse matrix as SciPy saves it, with arrays of one's choice."""
    members = {"format": layout.encode(), "shape": [2, 2], "indptr": [0, 1, 2], "indices": [1, 0]} | arrays
    return npz(**{name: array_bytes(array) for name, array in members.items()})


MATRIX_MARKET = [
    (b"%%MatrixMarket\n1 1 0\n", f":1: is no banner of a sparse matrix: '%%MatrixMarket'; {BANNER_REMEDY}"),
    (
        b"%%MatrixMarket matrix array real general\n1 1\n1\n",
        (
            ":1: a dense matrix holds no edge list: '%%MatrixMarket matrix array real general'; "
            "write it in coordinate form"
        ),
    ),
    (
        b"%%MatrixMarket matrix coordinate vector general\n1 1 0\n",
        f":1: {NO_BANNER}: '%%MatrixMarket matrix coordinate vector general'; {BANNER_REMEDY}",
    ),
    (BANNER + b"% only a comment\n", ":2: no size line; add: rows columns entries"),
    (BANNER + b"2 2\n1 2\n", ":2: the size line has not three numbers: '2 2'; write: rows columns entries"),
    (BANNER + b"2 2 x\n", f":2: {INTEGER}: 'x'; this line gives rows, columns and entries"),
    (BANNER + "٢ 2 1\n".encode(), f":2: {INTEGER}: '٢'; this line gives rows, columns and entries"),
    (BANNER + b"2 3 1\n1 2\n", f":2: a matrix of 2 × 3 is not square: '2 3 1'; {SQUARE}"),
    (
        BANNER + b"2 2 999999999\n1 2\n",
        ":2: declares 999,999,999 entries, which takes at least 3,999,999,995 bytes; the file has 67; " + TRUNCATED,
    ),
    (
        BANNER + b"2 2 1\n1 2\n2 1\n",
        ":4: more entries than the declared 1: '2'; correct the size line",
    ),
    (
        BANNER + b"%" * 40 + b"\n9 9 3\n1 2\n2 1\n",
        ":6: 2 entries where 3 are declared; the file is truncated or its size line is wrong",
    ),
    (
        BANNER + b"%" * 40 + b"\n9 9 3\n1 2\n2 1\n3",
        f":6: 2 entries and a part of one where 3 are declared; {CUT_SIZES}",
    ),
    (
        BANNER + b"2 2 1\n0 2\n",
        ":3: an index outside 1 … 2: '0'; Matrix Market counts rows and columns from 1 to the declared size",
    ),
    (
        BANNER + b"2 2 1\n1 3\n",
        ":3: an index outside 1 … 2: '3'; Matrix Market counts rows and columns from 1 to the declared size",
    ),
    (BANNER + b"2 2 1\n1 -2\n", f":3: {INTEGER}: '-2'; rows and columns are integers from 1 to n"),
    (BANNER + b"2 2 1\n1 1_0\n", f":3: {INTEGER}: '1_0'; rows and columns are integers from 1 to n"),
    (
        BANNER + b"2 2 1\n1 2 5.0\n",
        ":3: more than 2 words on one line: '5.0'; each entry has 2 words: row, column",
    ),
    (
        b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 0.5\n2 1\n1\n",
        ":4: fewer than 3 words on one line: '1'; each entry has 3 words: row, column, value",
    ),
    (
        b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 half\n",
        ":3: is no number: 'half'; values are ignored, but they have to be numbers",
    ),
    (BANNER + b"2 2 1\n1 \0 2\n", f":3: a control byte 0x00; {NOT_TEXT}"),
    (BANNER + b"2 2\xff 1\n1 2\n", f":2: invalid UTF-8: \"b'2 2\\\\xff 1'\"; {NOT_TEXT}"),
]

METIS = [
    (b"% nothing\n", f":1: no header; the first line gives {METIS_HEADER}"),
    (b"3\n", f":1: is no METIS header: '3'; it gives {METIS_HEADER}; {NO_METIS}"),
    (b"2 1 7\n2\n1\n", f":1: is no METIS header: '2 1 7'; it gives {METIS_HEADER}; {NO_METIS}"),
    (b"2 one\n2\n1\n", f":1: {INTEGER}: 'one'; this line gives {METIS_HEADER}"),
    (
        b"3000000 1\n2\n1\n",
        ":1: declares 3,000,000 vertices and 1 edges, which takes at least 2,999,999 bytes; the file has 14; "
        + TRUNCATED,
    ),
    (b"2 1\n2\n3\n", f":3: a neighbour outside 1 … 2: '3'; METIS counts vertices from 1; {NO_METIS}"),
    (b"2 1\n2\n0\n", f":3: a neighbour outside 1 … 2: '0'; METIS counts vertices from 1; {NO_METIS}"),
    (b"2 1\n1\n1\n", f":2: a vertex that is its own neighbour: '1'; METIS graphs have no loops; {NO_METIS}"),
    (b"2 1\n2\n1\n1\n", f":4: a row beyond the 2 declared vertices: '1'; correct the header, or {NO_METIS}"),
    (b"2 1\n2 2\n1\n", f":3: more neighbours than the 2 of 1 edges: '1'; correct the header, or {NO_METIS}"),
    (
        b"3 2\n2\n1\n\n",
        f":4: 2 neighbours where 2 edges need 4; {BOTH_ROWS}; correct the header, or {NO_METIS}",
    ),
    (
        b"6 1\n2\n1\n\n",
        (
            ":5: 4 rows where 6 vertices are declared; a vertex without neighbours is an empty line; "
            f"the file may be truncated; {NO_METIS}"
        ),
    ),
    (
        b"% c\n4 2\n2\n% c\n3\n4\n% c\n1\n",
        f":3: vertex 1 lists 2, which does not list it back; {BOTH_ROWS}; {NO_METIS}",
    ),
    (b"2 1\n2 2\n\n", f":2: vertex 1 lists 2, which does not list it back; {BOTH_ROWS}; {NO_METIS}"),
    (b"2 1 1\n2 5\n1\n", ":3: a row of 1 words; the header's fmt asks for 0 words, then 2 per neighbour"),
    (
        b"2 1 11 2\n7 7 2 5\n7\n",
        ":3: a row of 1 words; the header's fmt asks for 2 words, then 2 per neighbour",
    ),
    (b"2 1\n2.0\n1\n", f":2: {INTEGER}: '2.0'; neighbours are integers from 1 to n; {NO_METIS}"),
]

NPY = [
    (b"\x93NUMPY\x01", f": no .npy header of version 1 or 2; {RESAVE}"),
    (b"\x93NUMPY\x09\x00" + bytes(9), f": no .npy header of version 1 or 2; {RESAVE}"),
    (b"\x93NUMPY\x01\x00\xff\x7f{}", f": a header of 32,767 bytes is too long or cut off; {RESAVE}"),
    (
        b"\x93NUMPY\x01\x00\x12\x00__import__('os')\n\n",
        f": is no header of a plain array: \"__import__('os')\"; {RESAVE}",
    ),
    (
        npy("|O", data=b"cos\nsystem\n"),
        f": an array of pickled objects, which are never read: '|O'; {RESAVE}",
    ),
    (npy("<i3"), f": an unknown type of array: '<i3'; {RESAVE}"),
    (npy("<f8"), ": an array of float64 where integers are needed; convert with .astype(numpy.int64)"),
    (npy("|b1", data=bytes(2)), f": an array of bool where integers are needed; {RESAVE}"),
    (
        npy(shape="(2, 3)", data=bytes(48)),
        f": an array of shape (2, 3) where (k, 2) is needed; {TRANSPOSE}",
    ),
    (npy(shape="(4,)", data=bytes(32)), f": an array of shape (4,) where (k, 2) is needed; {RESAVE}"),
    (npy(shape="(9999999999, 2)"), f": declares 160,000,000,063 bytes where there are 95; {TRUNCATED}"),
    (npy(data=bytes(17)), f": declares 86 bytes where there are 87; {TRUNCATED}"),
    (
        npy(data=struct.pack("<qq", 3, -1)),
        ": row 0 holds a number outside 0 … 2^63 − 1: '-1'; renumber the vertices from 0",
    ),
    (
        npy("<u8", data=struct.pack("<QQ", 3, 2**63)),
        f": row 0 holds a number outside 0 … 2^63 − 1: '{2**63}'; renumber the vertices from 0",
    ),
]

NPZ = [
    (
        npz(**{f"{number}{'a' * 60_000}": b"" for number in range(36)}),
        f": is no readable zip archive: 'the list of its members is too long'; {ZIP}",
    ),
    (b"PK\x03\x04nothing", f": is no readable zip archive: 'File is not a zip file'; {ZIP}"),
    (npz(), ": no array named 'edges' (arrays: none); save it with numpy.savez(path, edges=edges)"),
    (
        npz(a=array_bytes([[0, 1]]), b=array_bytes([[0, 1]])),
        ": no array named 'edges' (arrays: a, b); save it with numpy.savez(path, edges=edges)",
    ),
    (
        npz(edges=npy("|O", data=b"x")),
        f"[edges]: an array of pickled objects, which are never read: '|O'; {RESAVE}",
    ),
    (npz(edges=npy(data=bytes(8))), f"[edges]: declares 86 bytes where there are 78; {TRUNCATED}"),
    (
        npz(edges=array_bytes([[0, 5]]), n=array_bytes(5)),
        "[edges]: row 0 holds a number outside 0 … n − 1 = 4: '5'; renumber the vertices from 0",
    ),
    (sparse(shape=[2, 3]), f": a sparse matrix of shape (2, 3) is not square; {SQUARE}"),
    (npz(format=array_bytes(5), shape=array_bytes([2, 2])), f": array 'format' is no single word; {SPARSE}"),
    (sparse("dia"), f": a sparse layout that is not read: 'dia'; {SPARSE}"),
    (
        sparse(indptr=[0, 2, 1]),
        f": 'indptr' does not go from 0 up to the length of 'indices' in n steps; {SPARSE}",
    ),
    (
        sparse(indptr=[0, 2]),
        f": 'indptr' does not go from 0 up to the length of 'indices' in n steps; {SPARSE}",
    ),
    (
        sparse(indices=[1, 2]),
        ": row 1 holds a number outside 0 … n − 1 = 1: '2'; renumber the vertices from 0",
    ),
    (sparse(indices=[0.5, 0.5]), f": array 'indices' of type float64 and shape (2,); {SPARSE}"),
    (sparse("coo"), f": no array 'row'; {SPARSE}"),
    (sparse("coo", row=[0], col=[0, 1]), f": 'row' and 'col' differ in length; {SPARSE}"),
]

BEL = [
    (
        "g.bel",
        bytes(12),
        (f": 12 bytes are no whole number of 32-bit pairs (8 bytes each); {RAW}; {WIDTH} if the width is wrong"),
    ),
    (
        "g.bel64",
        bytes(24),
        (f": 24 bytes are no whole number of 64-bit pairs (16 bytes each); {RAW}; {WIDTH} if the width is wrong"),
    ),
    (
        "g.bel",
        struct.pack("<qq", 1, 2),
        f": reads as 64-bit pairs and as 32-bit pairs with vertex 0; {WIDTH}",
    ),
    (
        "g.bel32",
        struct.pack("<iiii", 1, 2, 3, -4),
        f": pair 1 holds a negative id: '-4'; ids are non-negative; if the width is wrong, {WIDTH}",
    ),
]

OTHER = [
    (
        "g.dat",
        b"\x80\x04cos\nsystem\n.",
        ": looks like a pickle, which is never read; save the edges as text or with numpy.save",
    ),
    (
        "g.dat",
        struct.pack("<iiii", 1, 2, 3, 4),
        ': is binary, of no known format; for raw pairs pass format="bel32" or format="bel64"',
    ),
]

CASES = (
    [("g.mtx", content, message) for content, message in MATRIX_MARKET]
    + [("g.metis", content, message) for content, message in METIS]
    + [("g.npy", content, message) for content, message in NPY]
    + [("g.npz", content, message) for content, message in NPZ]
    + BEL
    + OTHER
)


@pytest.mark.parametrize(("name", "content", "message"), CASES)
def test_names_what_is_wrong(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_edges(path)
    assert str(caught.value) == f"{path}{message}"


LIMITED = [
    (
        "g.mtx",
        BANNER + b"9999 9999 0\n",
        (":2: vertices 9,999 over the limit of 1,000; raise it with limits=Limits(vertices=…) if the file is trusted"),
    ),
    (
        "g.mtx",
        BANNER + b"9 9 9999\n",
        (":2: pairs 9,999 over the limit of 2,000; raise it with limits=Limits(pairs=…) if the file is trusted"),
    ),
    (
        "g.mtx",
        BANNER + b"%" * 600,
        (":2: line bytes 600 over the limit of 500; raise it with limits=Limits(line_bytes=…) if the file is trusted"),
    ),
    (
        "g.metis",
        b"9999 0\n",
        (":1: vertices 9,999 over the limit of 1,000; raise it with limits=Limits(vertices=…) if the file is trusted"),
    ),
    (
        "g.npy",
        npy(shape="(9999, 2)"),
        ": pairs 9,999 over the limit of 2,000; raise it with limits=Limits(pairs=…) if the file is trusted",
    ),
    (
        "g.bel32",
        bytes(8 * 9999),
        ": pairs 9,999 over the limit of 2,000; raise it with limits=Limits(pairs=…) if the file is trusted",
    ),
    (
        "g.npz",
        sparse(shape=[9999, 9999]),
        (": vertices 9,999 over the limit of 1,000; raise it with limits=Limits(vertices=…) if the file is trusted"),
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), LIMITED)
def test_names_the_limit(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(LimitError) as caught:
        read_edges(path, limits=Limits(vertices=1000, pairs=2000, line_bytes=500))
    assert str(caught.value) == f"{path}{message}"


def test_every_error_is_of_one_family() -> None:
    assert issubclass(FormatError, WedgewiseError)
    assert issubclass(FormatError, ValueError)

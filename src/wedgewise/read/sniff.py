"""Which format is this? Content decides; the suffix only where content cannot.

1. A signature at the beginning of the decompressed bytes names Matrix Market, .npy, .npz, Parquet and Arrow.
2. Raw pairs have no signature, and a METIS graph looks like an edge list: these are told by their suffix,
   .bel, .bel32 and .bel64, .metis and .graph (compression suffixes left aside).
3. Everything else is a text edge list, unless it is visibly binary.

``format=`` overrides all of it.
"""

from __future__ import annotations

from pathlib import PurePath

from wedgewise.errors import FormatError
from wedgewise.read.content import Content

HEAD_BYTES = 4096
MATRIX_MARKET_BANNER = b"%%matrixmarket"
SIGNATURES = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}
SUFFIXES = {".bel": "bel", ".bel32": "bel32", ".bel64": "bel64", ".metis": "metis", ".graph": "metis"}
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
PICKLE_SIGNATURES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))


def sniff(content: Content) -> str:
    """The name of the format, a key of `wedgewise.read.FORMATS`."""
    head = content.head(HEAD_BYTES)
    for signature, name in SIGNATURES.items():
        if head.startswith(signature):
            return name
    if head[: len(MATRIX_MARKET_BANNER)].lower() == MATRIX_MARKET_BANNER:
        return "mtx"
    by_suffix = SUFFIXES.get(data_suffix(content.name))
    if by_suffix is not None:
        return by_suffix
    if head.startswith(PICKLE_SIGNATURES):
        raise FormatError(
            "looks like a pickle, which is never read",
            path=content.name,
            remedy="save the edges as text or with numpy.save",
        )
    if head.count(0) * 4 > len(head):
        raise FormatError(
            "is binary, of no known format",
            path=content.name,
            remedy='for raw pairs pass format="bel32" or format="bel64"',
        )
    return "text"


def data_suffix(name: str) -> str:
    """The suffix that speaks of the data: ``graph.mtx.gz`` has .mtx."""
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSION_SUFFIXES:
        path = PurePath(path.stem)
    return path.suffix.lower()

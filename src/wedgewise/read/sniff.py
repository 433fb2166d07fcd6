"""Which format is this? Content decides; the suffix where content cannot.

1. Raw pairs have no signature, and may begin like anything: their suffix, .bel, .bel32 or .bel64, is believed
   (compression suffixes left aside).
2. A signature at the beginning of the decompressed bytes names Matrix Market, .npy, .npz, Parquet and Arrow.
3. A METIS graph looks like an edge list: its suffix decides, .metis or .graph.
4. Everything else is a text edge list, unless it is visibly binary.

``format=`` overrides all of it.

A signature decides on compression too, whatever the format, with one exception: raw pairs may begin like a compressed
file. Where ``format=`` or the suffix says that a file holds them, it is decompressed if its name ends with .gz, .bz2,
.xz or .zst, and otherwise not; what has no name, such as standard input, is if its first bytes do decompress.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Protocol

from wedgewise.errors import FormatError

HEAD_BYTES = 4096
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LOWEST_CHARACTER = ord("\t")  # of text
SIGNATURE = re.compile(
    rb"(?P<npy>\x93NUMPY)|(?P<npz>PK(?:\x03\x04|\x05\x06))|(?P<parquet>PAR1[\x00-\x08\x0e-\x1f])"
    rb"|(?P<arrow>ARROW1\x00|\xff\xff\xff\xff)|(?P<mtx>(?i:%%matrixmarket))"
)
RAW_PAIRS = ("bel", "bel32", "bel64")
SUFFIXES = {".bel": "bel", ".bel32": "bel32", ".bel64": "bel64", ".metis": "metis", ".graph": "metis"}
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
PICKLE_SIGNATURES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))


class Beginning(Protocol):
    """The first bytes of a file, behind its compression."""

    @property
    def name(self) -> str: ...

    def head(self, size: int) -> bytes:
        """The first `size` bytes, fewer if there are no more."""


def sniff(content: Beginning) -> str:
    """The name of the format, a key of `wedgewise.read.FORMATS`."""
    by_suffix = SUFFIXES.get(data_suffix(content.name))
    if by_suffix in RAW_PAIRS:
        return by_suffix
    head = content.head(HEAD_BYTES)
    signature = SIGNATURE.match(head)
    found = by_suffix if signature is None else signature.lastgroup
    if found is not None:
        return found
    check_encoding(head, content.name)
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


def check_encoding(head: bytes, path: str) -> None:
    """Refuse UTF-16: it begins with a mark, or every second byte of its ASCII letters is NUL."""
    even, odd = head[::2], head[1::2]
    is_wide = 0 in head and any(
        2 * high.count(0) > len(high) > 1 and min(low) >= LOWEST_CHARACTER for high, low in ((even, odd), (odd, even))
    )
    if head.startswith(UTF16_MARKS) or is_wide:
        remedy = "convert the file to UTF-8 (iconv -f utf-16 -t utf-8)"
        raise FormatError("UTF-16 text", path=path, line=1, remedy=remedy)


def data_suffix(name: str) -> str:
    """The suffix that speaks of the data: ``graph.mtx.gz`` has .mtx."""
    suffix = PurePath(name).suffix.lower()
    return PurePath(PurePath(name).stem).suffix.lower() if suffix in COMPRESSION_SUFFIXES else suffix

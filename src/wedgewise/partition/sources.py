"""Whatever holds pairs → pieces of bounded size, read once.

Raw pairs, `.npy` files and text of integer labels come in blocks, plain or compressed; generators and arrays in slices.
Everything else is read whole where it is sure to fit, and refused otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError, MemoryLimitError
from wedgewise.generate.stream import EdgeStream
from wedgewise.graph import EdgeList
from wedgewise.read import read_edges
from wedgewise.read._text_layout import find_layout
from wedgewise.read.content import Bytes, Content, open_content
from wedgewise.read.limits import Limits
from wedgewise.read.numpy_files import MAX_HEADER_BYTES, parse_header
from wedgewise.read.pairs_file import NAME_THE_WIDTH, could_be_wide, repeats
from wedgewise.read.sniff import sniff
from wedgewise.read.text import TextPieces

if TYPE_CHECKING:
    from wedgewise.user_graph import Graph

PIECE_PAIRS = 1 << 17
BLOCK_BYTES = 1 << 21
SAMPLE_BYTES = 1 << 16
WHOLE_BYTES, COMPRESSED_BYTES = 12, 200  # that a byte of a file may take when it is read whole

Piece = NDArray[Any]


@dataclass(frozen=True, slots=True)
class How:
    """How a source is read; `room` is what a file that is read whole may take."""

    labels: str
    format: str | None
    limits: Limits
    threads: int
    room: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pairs in pieces of shape (k, 2), to be taken once; `columns()` is known afterwards.

    Attributes
    ----------
    name : of the source, for messages
    pieces : integer labels, or numbers below `vertices` where that is given
    expected_pairs : how many there are, by the size of a text file about; None where nothing is known
    vertices, names : as in `EdgeList`
    columns : how many further columns were dropped
    """

    name: str
    pieces: Iterable[Piece]
    expected_pairs: int | None
    vertices: int | None = None
    names: list[str] | NDArray[Any] | None = None
    columns: Callable[[], int] = lambda: 0


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What the beginning of a file tells: its pairs, about, or None where it does not; whether it is read whole."""

    pairs: int | None
    is_whole: bool


@contextmanager
def open_pieces(source: Any, how: How) -> Iterator[Pieces]:
    """The pairs of a path, a stream, a generator, a `Graph`, or whatever else that accepts."""
    if isinstance(source, EdgeStream):
        yield Pieces(source.name, source.blocks(threads=how.threads), source.pairs_count)
        return
    if not isinstance(source, (str, os.PathLike)) and not hasattr(source, "read"):
        from wedgewise.interop import edges_from
        from wedgewise.user_graph import Graph

        yield _edges_of(source) if isinstance(source, Graph) else _sliced(edges_from(source))
        return
    with ExitStack() as stack:
        content = stack.enter_context(open_content(source, how.limits, may_map=False))
        yield _pieces_of(content, source, how, stack)


def _sliced(edge_list: EdgeList) -> Pieces:
    pairs = edge_list.pairs
    slices = (pairs[at : at + PIECE_PAIRS] for at in range(0, len(pairs), PIECE_PAIRS))
    dropped = edge_list.dropped_columns
    return Pieces(edge_list.origin.name, slices, len(pairs), edge_list.vertices, edge_list.names, lambda: dropped)


def _edges_of(graph: Graph) -> Pieces:
    """The edges of a graph by the numbers of its vertices; what these are called stays with it."""
    return Pieces(graph.origin.name, numbered_edges(graph), graph.m, graph.n)


def numbered_edges(graph: Graph) -> Iterator[Piece]:
    """The edges of a graph as pairs of vertices, in ascending order; which end comes first is left open."""
    simple = graph.simple
    pairs = simple.slot_pairs
    pieces = (pairs[at : at + PIECE_PAIRS] for at in range(0, len(pairs), PIECE_PAIRS))
    if simple.slots is None:
        return pieces
    vertex_of = simple.by_slot(np.arange(simple.n, dtype=np.uint32))
    return (vertex_of[piece] for piece in pieces)


def foresee(path: str | os.PathLike[str], how: How) -> Foreseen:
    """Look at the beginning of a file; refuse what would be read whole and may not fit."""
    with open_content(path, how.limits, may_map=False) as content:
        format = how.format or sniff(content)
        pieces = _streamed(content, format, how)
        if pieces is None:
            _check_fits_whole(content, format, how.room)
        return Foreseen(None if pieces is None else pieces.expected_pairs, is_whole=pieces is None)


def _pieces_of(content: Content, source: Any, how: How, stack: ExitStack) -> Pieces:
    format = how.format or sniff(content)
    pieces = _streamed(content, format, how)
    if pieces is not None:
        return pieces
    _check_fits_whole(content, format, how.room)
    if content.path is not None:
        stack.close()
        return _sliced(read_edges(source, format=format, labels=how.labels, limits=how.limits, threads=how.threads))
    from wedgewise.read import FORMATS, Request

    return _sliced(FORMATS[format](content, Request(how.labels, how.limits, how.threads, None)))


def _streamed(content: Content, format: str, how: How) -> Pieces | None:
    """The pieces of a file that may be larger than memory; None where it has to be read whole."""
    size = _size_of(content)
    if format in ("bel", "bel32", "bel64"):
        return _raw_pieces(content, format, size)
    if format == "npy":
        return _npy_pieces(content, how.limits, size)
    if format == "text":
        layout = find_layout(content, how.labels, how.limits)
        if layout.kind == "int":
            text = TextPieces(content, layout, how.limits, how.threads)
            expected = None if size is None else _lines_in(size, content.head(SAMPLE_BYTES))
            return Pieces(content.name, text, expected, columns=lambda: text.columns)
    return None


def _size_of(content: Content) -> int | None:
    """The bytes of a plain file."""
    plain = content.path is not None and content.compression is None and content.path.is_file()
    return os.path.getsize(content.name) if plain else None


def _lines_in(size: int, sample: bytes) -> int:
    """About how many lines a text has, by its first ones."""
    return size * sample.count(b"\n") // max(1, sample.rfind(b"\n") + 1) + 1


def _check_fits_whole(content: Content, format: str, room: int) -> None:
    """Refuse a file that may not fit when it is read whole; nothing is known of a pipe."""
    if content.path is None or not content.path.is_file():
        return
    need = os.path.getsize(content.name) * (WHOLE_BYTES if content.compression is None else COMPRESSED_BYTES)
    if need > room:
        raise MemoryLimitError(
            f"{content.name}: {format} files are read whole, which may take {need:,} bytes where {room:,} are left; "
            "raise the memory, or convert it first, on a machine with more, to .bel or text of integers (`wedgewise "
            "convert`)"
        )


def _raw_pieces(content: Content, format: str, size: int | None) -> Pieces:
    """Raw pairs; the width of a plain .bel file is told by its first block."""
    blocks = content.blocks(BLOCK_BYTES)
    first = next(blocks, np.empty(0, np.uint8))
    width = 8 if format == "bel64" else 4
    if format == "bel" and len(first) and could_be_wide(first):
        if not repeats(first.view("<u4")[::2]):
            raise _ambiguous(content.name)
        width = 8
    raw = _numbers(chain([first], blocks), content.name, np.dtype(f"<i{width}"))
    if width == 8 and format == "bel":
        raw = _still_wide(raw, content.name)
    return Pieces(content.name, raw, None if size is None else size // (2 * width))


def _still_wide(pieces: Iterator[Piece], name: str) -> Iterator[Piece]:
    """The same, unless ids of 2^32 or more say that the first block misled."""
    for piece in pieces:
        if len(piece) and int(piece.view(np.uint64).max()) >= 2**32:
            raise _ambiguous(name)
        yield piece


def _ambiguous(name: str) -> FormatError:
    return FormatError("reads as 64-bit pairs and as 32-bit pairs with vertex 0", path=name, remedy=NAME_THE_WIDTH)


def _npy_pieces(content: Content, limits: Limits, size: int | None) -> Pieces | None:
    """A (k, 2) integer array in C order; None for what the reader of whole files has to look at."""
    header = parse_header(content.head(MAX_HEADER_BYTES + 12), content.name)
    if header.fortran_order or len(header.shape) != 2 or header.shape[1] != 2 or header.dtype.kind not in "iu":
        return None
    limits.check("pairs", header.shape[0], path=content.name)
    if size is not None and size != header.total_bytes:
        raise FormatError(
            f"declares {header.total_bytes:,} bytes where there are {size:,}",
            path=content.name,
            remedy="the file is truncated or its header is wrong",
        )
    blocks = _without_start(content.blocks(BLOCK_BYTES), header.data_offset)
    return Pieces(content.name, _numbers(blocks, content.name, header.dtype, header.shape[0]), header.shape[0])


def _without_start(blocks: Iterator[Bytes], skip: int) -> Iterator[Bytes]:
    for block in blocks:
        yield block[skip:]
        skip = max(0, skip - len(block))


def _numbers(blocks: Iterable[Bytes], name: str, dtype: np.dtype[Any], due: int | None = None) -> Iterator[Piece]:
    """Bytes as pairs of numbers, `due` of them where that was declared."""
    step, pairs, carried = 2 * dtype.itemsize, 0, np.empty(0, np.uint8)
    for block in blocks:
        joined = np.concatenate((carried, block))
        whole = len(joined) // step * step
        carried = joined[whole:]
        pairs += whole // step
        yield joined[:whole].view(dtype).reshape(-1, 2)
    if len(carried) or (due is not None and pairs != due):
        raise FormatError(
            f"ends within a pair of {step} bytes, or after {pairs:,} pairs where others were declared",
            path=name,
            remedy=f"the file is truncated; {NAME_THE_WIDTH} if these are raw pairs of another width",
        )

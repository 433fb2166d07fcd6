"""Text edge lists: SNAP, KONECT, CSV, TSV and their kin, plain or compressed.

`_text_lines` says what a line is, `_text_layout` how the first lines decide about labels, separator and
header. Integer labels are parsed by one compiled kernel over chunks of the mapped file that are cut at
newlines; files under `KERNEL_BYTES` are parsed by NumPy unless the kernel is loaded already. Compressed text
is parsed block by block and never held whole. A `Receiver` gets the pairs of each chunk from the thread that has
parsed it, while the others parse on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import UnknownNameError, VerificationError
from wedgewise.execute.threads import run_tasks
from wedgewise.graph import EdgeList, Origin
from wedgewise.machine.hardware import usable_threads
from wedgewise.machine.jit import JIT_DISABLED, kernel_view
from wedgewise.read import _text_arrays, _text_kernel
from wedgewise.read._labels import Numbering
from wedgewise.read._text_layout import Layout, find_layout
from wedgewise.read._text_lines import Fault, check_length, inspect_integers
from wedgewise.read.content import Bytes, Content
from wedgewise.read.limits import MAX_LABEL, Limits
from wedgewise.read.receiver import Receiver

Parser = Callable[..., tuple[int, int, int, int]]

KERNEL_BYTES = 2 * 2**20
CHUNK_BYTES = 4 * 2**20
ARRAY_CHUNK_BYTES = 2**20  # NumPy takes up to 80 bytes for a byte of text
BLOCK_BYTES = 16 * 2**20
PIECE_BYTES = 2 * 2**20
_MAX_NARROW = 2**32 - 1


def read_text(
    content: Content,
    *,
    labels: str = "auto",
    limits: Limits,
    threads: int | None,
    receiver: Receiver | None = None,
) -> EdgeList:
    """Read pairs of labels, one pair a line.

    Parameters
    ----------
    content : the opened file
    labels : ``"int"`` for integers 0 to 2^63 - 1, ``"text"`` for names (``"01"`` and ``"1"`` differ),
        ``"auto"`` to let the first data lines decide
    limits : caps on line length, pairs and distinct names
    threads : how many threads parse integer labels, all usable ones by default; the result does not depend
        on it
    receiver : gets integer labels while later ones are parsed; text labels are left to the caller

    Returns
    -------
    EdgeList
        Integer labels as uint32, or uint64 when one of them is 2^32 or more. Text labels as vertex numbers in
        the order of first appearance, with their ``names``.

    Raises
    ------
    FormatError
        a line that is no pair, with its number (comments and blank lines count), the offending text and the
        remedy
    LimitError
        a line, the pairs or the names exceed `limits`

    Notes
    -----
    Bytes at the peak for integer labels: 8 per line of a mapped file; 16 per pair and seven blocks of 16 MiB
    for a compressed one (one being decompressed, three waiting, three being cut into lines and parsed). Twice as
    many per line or pair when a label needs 64 bits. Text labels: see `Numbering`.
    Comments and extra columns are not checked for NUL bytes or UTF-8: only labels are.
    """
    if labels not in ("auto", "int", "text"):
        raise UnknownNameError(f"no kind of labels named {labels!r}; there are: auto, int, text")
    layout = find_layout(content, labels, limits)
    notes = () if layout.header is None else (f"header row skipped: {layout.header}",)
    origin = Origin(content.name, "text", notes)
    if layout.kind == "text":
        numbering = Numbering(content.name, layout.delimiter, limits, layout.lines_before)
        for text in _whole_lines(content, layout, limits):
            for begin, end in pairwise(_cut_at_newlines(text, CHUNK_BYTES, limits.line_bytes)):
                numbering.add_lines(text[begin:end].tobytes())
        names = numbering.names
        return EdgeList(numbering.pairs(), origin, len(names), names, numbering.columns)
    reader = _IntegerReader(content.name, layout, limits, threads or usable_threads(), receiver)
    for text in _whole_lines(content, layout, limits):
        reader.add_lines(text)
    return EdgeList(reader.pairs(), origin, dropped_columns=reader.columns)


class TextPieces:
    """Integer labels of a text file, piece by piece: nothing but one piece is held.

    Iterating gives arrays of shape (k, 2) as `read_text` would join them; a piece of ``PIECE_BYTES`` of text takes up
    to 11 bytes for each of its bytes. ``columns`` is known when all pieces were taken.
    """

    def __init__(self, content: Content, layout: Layout, limits: Limits, threads: int) -> None:
        self._content, self._layout, self._limits = content, layout, limits
        self._reader = _IntegerReader(content.name, layout, limits, threads, None)

    @property
    def columns(self) -> int:
        """The most columns beyond two that a line had so far."""
        return self._reader.columns

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for text in _whole_lines(self._content, self._layout, self._limits, PIECE_BYTES):
            self._reader.add_lines(text)
            yield self._reader.pairs()


def _whole_lines(content: Content, layout: Layout, limits: Limits, block_bytes: int | None = None) -> Iterator[Bytes]:
    """The text from the first pair on, in pieces that end with a line; a mapped file is one piece.

    A line over the limit is handed on as far as it came: it is refused where its number is known.
    """
    carried = np.empty(0, dtype=np.uint8)
    skip = layout.begin
    blocks = content.blocks(block_bytes or BLOCK_BYTES)
    block = next(blocks, None)
    while block is not None:
        following = next(blocks, None)
        skipped = min(skip, len(block))
        skip -= skipped
        text = np.concatenate((carried, block[skipped:])) if len(carried) else block[skipped:]
        cut = len(text) if following is None else _behind_last_newline(text)
        if len(text) - cut > limits.line_bytes:
            cut = len(text)
        carried = text[cut:]
        if cut:
            yield text[:cut]
        block = following


@dataclass(frozen=True, slots=True)
class _Parsed:
    """What became of one chunk: see `_text_kernel.parse_range`."""

    status: int
    position: int
    pairs: int
    columns: int


class _IntegerReader:
    """Parses pieces of whole lines into arrays of labels."""

    def __init__(self, path: str, layout: Layout, limits: Limits, threads: int, receiver: Receiver | None) -> None:
        self.columns = 0
        self._path = path
        self._delimiter = layout.delimiter
        self._limits = limits
        self._threads = threads
        self._receiver = receiver
        self._lines = layout.lines_before
        self._wide = layout.wide
        self._pieces: list[NDArray[Any]] = []
        self._count = 0

    def add_lines(self, text: Bytes) -> None:
        """Take in whole lines; raise at the first faulty one."""
        text = kernel_view(text)
        parse = _choose_parser(len(text))
        chunk_bytes = CHUNK_BYTES if parse is _text_kernel.parse_range else ARRAY_CHUNK_BYTES
        cuts = _cut_at_newlines(text, chunk_bytes, self._limits.line_bytes)
        lines = self._count_lines(text, cuts)
        labels = self._parse(parse, text, cuts, lines)
        if labels is None:
            self._wide = True
            labels = self._parse(parse, text, cuts, lines)
        if labels is None:
            raise VerificationError(f"{self._path}: a label over 2^63 - 1 was not refused: a defect in wedgewise")
        self._pieces.append(labels)
        self._count += len(labels) // 2
        self._lines += sum(lines)
        self._limits.check("pairs", self._count, path=self._path)
        if self._receiver is not None:
            self._receiver.end()

    def pairs(self) -> NDArray[Any]:
        """All pairs so far, shape (k, 2); the reader gives up its own copy."""
        dtype = np.uint64 if self._wide else np.uint32
        if len(self._pieces) == 1:
            return self._pieces.pop().reshape(-1, 2)
        joined = np.empty(2 * self._count, dtype=dtype)
        at = 0
        for number, piece in enumerate(self._pieces):
            joined[at : at + len(piece)] = piece
            at += len(piece)
            self._pieces[number] = piece[:0].copy()
        return joined.reshape(-1, 2)

    def _count_lines(self, text: Bytes, cuts: list[int]) -> list[int]:
        """Lines per chunk: what bounds its pairs."""
        return run_tasks(
            lambda chunk, _: _count_lines(text[cuts[chunk] : cuts[chunk + 1]]),
            len(cuts) - 1,
            self._threads,
        )

    def _parse(self, parse: Parser, text: Bytes, cuts: list[int], lines: list[int]) -> NDArray[Any] | None:
        """All labels of `text`, or None when one does not fit into the narrow type."""
        dtype = np.uint64 if self._wide else np.uint32
        starts = np.concatenate(([0], np.cumsum(lines, dtype=np.int64))) * 2
        labels = np.empty(int(starts[-1]), dtype=dtype)
        delimiter = np.uint8(self._delimiter[0])
        line_limit = np.uint64(self._limits.line_bytes)
        largest = np.uint64(MAX_LABEL if self._wide else _MAX_NARROW)
        receiver = self._receiver
        if receiver is not None:
            receiver.begin(len(labels) // 2, labels.dtype)

        def parse_chunk(chunk: int, _: int) -> _Parsed:
            begin, end = np.uint64(cuts[chunk]), np.uint64(cuts[chunk + 1])
            room = labels[starts[chunk] : starts[chunk + 1]]
            parsed = _Parsed(*map(int, parse(text, begin, end, delimiter, line_limit, largest, room)))
            if receiver is not None and parsed.status == _text_kernel.PARSED:
                receiver.put(int(starts[chunk]) // 2, room[: 2 * parsed.pairs].reshape(-1, 2))
            return parsed

        chunks = run_tasks(parse_chunk, len(lines), self._threads)
        for chunk in chunks:
            if chunk.status == _text_kernel.TOO_LARGE:
                return None
            if chunk.status == _text_kernel.REFUSED:
                self._refuse(text, chunk.position)
            self.columns = max(self.columns, chunk.columns)
        return _close_gaps(labels, starts.tolist(), [2 * chunk.pairs for chunk in chunks])

    def _refuse(self, text: Bytes, position: int) -> None:
        """Raise what is wrong with the line that starts at `position`."""
        number = self._lines + _count_newlines(text[:position]) + 1
        end = _find_newline(text, position)
        check_length(end - position, self._limits, self._path, number)
        fault = inspect_integers(text[position:end].tobytes(), self._delimiter)
        if isinstance(fault, Fault):
            fault.raise_at(self._path, number)
        raise VerificationError(f"{self._path}:{number}: a valid line was refused: a defect in wedgewise")


def _choose_parser(size: int) -> Parser:
    """The kernel where it is loaded or worth loading, NumPy otherwise."""
    if _text_kernel.parse_range.signatures or (size >= KERNEL_BYTES and not JIT_DISABLED):
        return _text_kernel.parse_range
    return _text_arrays.parse_range


def _cut_at_newlines(text: Bytes, chunk_bytes: int, line_bytes: int) -> list[int]:
    """Positions behind newlines about `chunk_bytes` apart, from 0 to the end.

    A line of more than `line_bytes` may be cut inside, so that no chunk is larger than both together; the chunk
    in which it begins holds enough of it to be refused.
    """
    cuts = [0]
    while len(text) - cuts[-1] > chunk_bytes:
        at = cuts[-1] + chunk_bytes
        within = text[: at + line_bytes + 1]
        cuts.append(min(_find_newline(within, at) + 1, len(within)))
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return cuts


def _find_newline(text: Bytes, at: int) -> int:
    """Position of the first newline from `at` on; the end of the text without one."""
    window = 256
    while at < len(text):
        found = np.flatnonzero(text[at : at + window] == ord("\n"))
        if len(found):
            return at + int(found[0])
        at += window
        window = min(2 * window, CHUNK_BYTES)
    return len(text)


def _behind_last_newline(text: Bytes) -> int:
    end, window = len(text), 256
    while end > 0:
        begin = max(0, end - window)
        found = np.flatnonzero(text[begin:end] == ord("\n"))
        if len(found):
            return begin + int(found[-1]) + 1
        end = begin
        window *= 2
    return 0


def _count_lines(text: Bytes) -> int:
    """Lines of a chunk, the last one with its newline or without."""
    return _count_newlines(text) + int(text[-1] != ord("\n"))


def _count_newlines(text: Bytes) -> int:
    slices = range(0, len(text), 2**18)
    return sum(int(np.count_nonzero(text[at : at + 2**18] == ord("\n"))) for at in slices)


def _close_gaps(labels: NDArray[Any], starts: list[int], used: list[int]) -> NDArray[Any]:
    """Move what each chunk wrote to the left, over the room that its comments and blank lines left."""
    at = 0
    for start, count in zip(starts, used, strict=False):
        if at != start:
            labels[at : at + count] = labels[start : start + count]
        at += count
    return labels[:at]

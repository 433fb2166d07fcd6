"""Text edge lists and tables: SNAP, KONECT, CSV, TSV and their kin, plain or compressed.

`_text_lines` says what a line is, `_text_layout` how the first lines decide about separator, header, columns and
labels. Rows that begin with two integers are parsed here, by one compiled kernel over chunks of a block that are cut at
newlines; files under `KERNEL_BYTES` are parsed by NumPy unless the kernel is loaded already. All other rows are read by
`_fields`. Text is parsed block by block and never held whole. A receiver gets the pairs of each chunk from the thread
that has parsed it, while the others parse on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import VerificationError
from wedgewise.machine.jit import JIT_DISABLED, kernel_view
from wedgewise.machine.threads import run_tasks
from wedgewise.read import ReadOptions, _text_arrays, _text_kernel
from wedgewise.read._byte_pieces import Bytes
from wedgewise.read._text_layout import HEADER_HINT, TextLayout, find_layout
from wedgewise.read._text_lines import Fault, Row, begins_like_comment, inspect_integers, label_value
from wedgewise.read.columns import FIRST_TWO, without_generated
from wedgewise.read.content import Content
from wedgewise.read.pieces import GrowingPairs, PairPieces
from wedgewise.stages import Origin
from wedgewise.stages.limits import MAX_LABEL, Limits

Parser = Callable[..., tuple[int, int, int, int, int]]

CHUNK_BYTES = 4 * 2**20
ARRAY_CHUNK_BYTES = 2**20  # NumPy takes up to 80 bytes for a byte of text
BLOCK_BYTES = 16 * 2**20
COUNTED_BYTES = 2**18  # at a time, so that temporaries stay in the cache
_NEWLINE = re.compile(b"\n")
PIECE_BYTES = 2 * 2**20
KERNEL_BYTES = 2 * 2**20
MAX_NARROW = 2**32 - 1
FAULTY = Fault("is no row", "", "")  # what is wrong is said where the number of the line is known


def pieces_of_text(content: Content, options: ReadOptions) -> PairPieces:
    """Pairs of labels, one pair a line.

    Parameters
    ----------
    content : the opened file
    options : how to read it. Labels are ``"int"`` for integers 0 to 2^63 - 1, ``"text"`` for names (``"01"`` and
        ``"1"`` differ), ``"auto"`` to let the first data lines decide. A receiver gets the pairs of rows that begin
        with two integers while later ones are parsed; all others are left to the caller. Unless all pairs are wanted as
        a whole, a piece is what a small block of text holds

    Returns
    -------
    PairPieces
        Integer labels as uint32, or uint64 when one of them is 2^32 or more. Text labels as vertex numbers in
        the order of first appearance, with their ``names``.

    Raises
    ------
    FormatError
        a line that is no row, with its number (comments and blank lines count), the offending text and the
        remedy; or columns of which nothing says which are the ends
    LimitError
        a line, the pairs or the names exceed `limits`

    Notes
    -----
    Bytes at the peak for integer labels: 8 per pair, 16 when a label needs 64 bits, and a block of text with 8 per line
    of it; of compressed text, as much again waits that is decompressed. Text labels and chosen columns: see
    `FieldReader`.
    Comments and columns that are not read are not checked for NUL bytes or UTF-8.
    """
    layout = find_layout(content, options)
    found = PairPieces(Origin(content.name, "text", layout.notes))
    if content.size is not None:
        found.expected_pairs = int(content.size * layout.lines_per_byte) + 1
    found.pieces = _read(found, content, layout, options)
    return found


def _read(found: PairPieces, content: Content, layout: TextLayout, options: ReadOptions) -> Iterator[NDArray[Any]]:
    """The pieces; what is known at the end is set then."""
    from wedgewise.read._fields import FieldReader

    is_plain = layout.kind == "int" and layout.form.ends == FIRST_TWO and not layout.has_quotes
    expected = found.expected_pairs if options.whole else None
    reader = (_IntegerReader if is_plain else FieldReader)(content.name, layout, options, expected)
    for text in whole_lines(content, layout.begin, options.limits, None if options.whole else PIECE_BYTES):
        reader.add_lines(text)
        if not options.whole:
            yield reader.held.array()
    found.names, found.weights, notes = reader.names, reader.weights, layout.notes
    if reader.comments:
        lines = "1 line that begins" if reader.comments == 1 else f"{reader.comments:,} lines that begin"
        notes += (f"{lines} with # or %, below the first row, skipped as comment{'s' * (reader.comments > 1)}",)
    if found.names is not None:
        found.vertices = len(found.names)
        if layout.is_guessed and layout.header is None and len(found.names) > 1 and reader.first_two == 2:
            first_line = f"{found.names[0]!r}, {found.names[1]!r} ({HEADER_HINT})"
            notes += (f"first line read as an edge, though its labels occur nowhere else: {first_line}",)
    found.origin = replace(found.origin, notes=notes)
    names, width = None, reader.width
    if layout.header is not None:
        names, width = without_generated(layout.header), len(layout.header)
    found.columns, found.ignored_columns = layout.form.ends.among(names, width)
    yield reader.held.array()


class _IntegerReader:
    """Parses pieces of whole lines into arrays of labels, which have neither names nor weights."""

    names = weights = None
    first_two = 0

    def __init__(self, path: str, layout: TextLayout, options: ReadOptions, expected_pairs: int | None) -> None:
        self.width, self.comments = 2, 0
        self.held = GrowingPairs(options.limits, path, expected_pairs=expected_pairs)
        self._path, self._form, self._lines, self._wide = path, layout.form, layout.lines_before, layout.wide
        self._limits, self._threads, self._receiver = options.limits, options.threads, options.receiver

    def add_lines(self, text: Bytes) -> None:
        """Take in whole lines; raise at the first faulty one."""
        text = kernel_view(text)
        parse = _choose_parser(len(text))
        chunk_bytes = CHUNK_BYTES if parse is _text_kernel.parse_range else ARRAY_CHUNK_BYTES
        cuts = cut_at_newlines(text, chunk_bytes, self._limits.line_bytes)
        lines = lines_of_chunks(text, cuts, self._threads)
        while (rows := self._parse(parse, text, cuts, lines)) is None:
            if self._wide:
                raise VerificationError(f"{self._path}: a label over 2^63 - 1 was not refused: a defect in wedgewise")
            self._wide = True
        self.held.keep(rows)
        self._lines += sum(lines)
        if self._receiver is not None:
            self._receiver.end()

    def _parse(self, parse: Parser, text: Bytes, cuts: list[int], lines: list[int]) -> int | None:
        """Write the pairs of `text` behind the others; how many, or None when one does not fit into the narrow type."""
        starts = np.concatenate(([0], np.cumsum(lines, dtype=np.int64))) * 2
        labels = self.held.next_rows(sum(lines), np.uint64 if self._wide else np.uint32).reshape(-1)
        delimiter, width = np.uint8(self._form.delimiter[0]), np.uint64(self._form.width)
        line_limit, largest = np.uint64(self._limits.line_bytes), np.uint64(MAX_LABEL if self._wide else MAX_NARROW)
        receiver = self._receiver
        if receiver is not None:
            receiver.begin(len(labels) // 2, labels.dtype)

        def parse_chunk(chunk: int, _: int) -> tuple[int, int, int, int, int]:
            out, end = labels[starts[chunk] : starts[chunk + 1]], np.uint64(cuts[chunk + 1])
            position, pairs, columns, comments = cuts[chunk], 0, 0, 0
            while True:
                parsed = parse(text, np.uint64(position), end, delimiter, line_limit, width, largest, out[2 * pairs :])
                status, position, more, wider, marked = map(int, parsed)
                pairs, columns, comments = pairs + more, max(columns, wider), comments + marked
                if status != _text_kernel.REFUSED:
                    break
                row = self._row_at(text, position)
                if isinstance(row, Fault):
                    break
                if row is None:
                    comments += 1
                else:
                    ends = label_value(row.source), label_value(row.target)
                    if max(ends) > largest:
                        status = int(_text_kernel.TOO_LARGE)
                        break
                    out[2 * pairs : 2 * pairs + 2] = ends
                    pairs, columns = pairs + 1, max(columns, row.width - 2)
                position = find_newline(text, position) + 1
            if receiver is not None and status == _text_kernel.PARSED:
                receiver.put(int(starts[chunk]) // 2, out[: 2 * pairs].reshape(-1, 2))
            return status, position, pairs, columns, comments

        chunks = run_tasks(parse_chunk, len(lines), self._threads)
        for status, position, _, columns, _ in chunks:
            if status == _text_kernel.TOO_LARGE:
                return None
            if status == _text_kernel.REFUSED:
                self._refuse(text, position)
            self.width = max(self.width, 2 + columns)
        self.comments += sum(comments for *_, comments in chunks)
        return _close_gaps(labels, starts.tolist(), [2 * pairs for _, _, pairs, _, _ in chunks]) // 2

    def _row_at(self, text: Bytes, position: int) -> Row | Fault | None:
        """What a line is that the parser leaves to the rules: one with quotes, or a comment; others are faulty."""
        end = find_newline(text, position)
        line = text[position:end].tobytes()
        is_odd = len(line) <= self._limits.line_bytes and (b'"' in line or begins_like_comment(line))
        return inspect_integers(line, self._form) if is_odd else FAULTY

    def _refuse(self, text: Bytes, position: int) -> None:
        """Raise what is wrong with the line that starts at `position`."""
        number = self._lines + text[:position].tobytes().count(b"\n") + 1
        end = find_newline(text, position)
        self._limits.check("line_bytes", end - position, path=f"{self._path}:{number}")
        fault = inspect_integers(text[position:end].tobytes(), self._form)
        if isinstance(fault, Fault):
            fault.raise_at(self._path, number)
        raise VerificationError(f"{self._path}:{number}: a valid line was refused: a defect in wedgewise")


def _choose_parser(size: int) -> Parser:
    """The kernel where it is loaded or worth loading, NumPy otherwise."""
    if _text_kernel.parse_range.signatures or (size >= KERNEL_BYTES and not JIT_DISABLED):
        return _text_kernel.parse_range
    return _text_arrays.parse_range


def _close_gaps(labels: NDArray[Any], starts: list[int], used: list[int]) -> int:
    """Move what each chunk wrote to the left, over the gaps that comments and blank lines left; how many labels."""
    at = 0
    for start, count in zip(starts, used, strict=False):
        if at != start:
            labels[at : at + count] = labels[start : start + count]
        at += count
    return at


def whole_lines(content: Content, skip: int, limits: Limits, block_bytes: int | None = None) -> Iterator[Bytes]:
    """The text behind its first `skip` bytes, in pieces that end with a line, all in the same memory: use one, then
    take the next.

    A line over the limit is handed on as far as it came: it is refused where its number is known.
    """
    fill, size = content.reader(), block_bytes or BLOCK_BYTES
    if content.size is not None:
        size = min(size, content.size + 1)  # so that the end is seen
    limits.check_memory(size, path=content.name)
    block, carried = np.empty(size, np.uint8), 0
    while skip:
        skipped = fill(block[:skip])
        skip -= skipped or skip
    while True:
        end = carried + fill(block[carried:])
        is_last = end < len(block)
        cut = end if is_last else _behind_last_newline(block)
        if end - cut > limits.line_bytes:
            cut = end
        if cut:
            yield block[:cut]
        if is_last:
            return
        carried = end - cut
        if 2 * carried > len(block):
            limits.check_memory(2 * len(block), path=content.name)
            block = np.concatenate((block[cut:end], np.empty(2 * len(block) - carried, np.uint8)))
        else:
            block[:carried] = block[cut:end]


def _behind_last_newline(text: Bytes) -> int:
    """Position behind the last newline; 0 without one."""
    window = 256
    while (found := text[-window:].tobytes().rfind(b"\n")) < 0 and window < len(text):
        window *= 2
    return max(0, len(text) - window) + found + 1


def cut_at_newlines(text: Bytes, chunk_bytes: int, line_bytes: int) -> list[int]:
    """Positions behind newlines about `chunk_bytes` apart, from 0 to the end.

    A line of more than `line_bytes` may be cut inside, so that no chunk is larger than both together; the chunk
    in which it begins holds enough of it to be refused.
    """
    cuts = [0]
    while len(text) - cuts[-1] > chunk_bytes:
        at = cuts[-1] + chunk_bytes
        within = text[: at + line_bytes + 1]
        cuts.append(min(find_newline(within, at) + 1, len(within)))
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return cuts


def lines_of_chunks(text: Bytes, cuts: list[int], threads: int) -> list[int]:
    """Lines per chunk, the last one with its newline or without: what bounds its rows."""

    def count(chunk: int, _worker: int) -> int:
        begin, end = cuts[chunk], cuts[chunk + 1]
        parts = (text[at : min(at + COUNTED_BYTES, end)] for at in range(begin, end, COUNTED_BYTES))
        return sum(int(np.count_nonzero(part == ord("\n"))) for part in parts) + int(text[end - 1] != ord("\n"))

    return [count(0, 0)] if len(cuts) == 2 else run_tasks(count, len(cuts) - 1, threads)


def find_newline(text: Bytes, at: int) -> int:
    """Position of the first newline from `at` on; the end of the text without one."""
    found = _NEWLINE.search(text.data, at)
    return len(text) if found is None else found.start()

"""Text edge lists and tables: SNAP, KONECT, CSV, TSV and their kin, plain or compressed.

`_text_lines` says what a line is, `_text_layout` how the first lines decide about separator, header, columns and
labels. Rows that begin with two integers are parsed here, by one compiled kernel over chunks of a block that are cut at
newlines; files under `KERNEL_BYTES` are parsed by NumPy unless the kernel is loaded already. All other rows are read by
`_fields`. Text is parsed block by block and never held whole. A `Receiver` gets the pairs of each chunk from the thread
that has parsed it, while the others parse on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import VerificationError
from wedgewise.machine.jit import JIT_DISABLED, kernel_view
from wedgewise.machine.threads import run_tasks
from wedgewise.read import ReadOptions, _text_arrays, _text_chunks, _text_kernel
from wedgewise.read._byte_pieces import Bytes
from wedgewise.read._fields import KERNEL_BYTES, MAX_NARROW, FieldReader
from wedgewise.read._text_chunks import count_newlines, cut_at_newlines, find_newline, lines_of_chunks, whole_lines
from wedgewise.read._text_layout import SETTLE_HEADER, Layout, find_layout
from wedgewise.read._text_lines import Fault, Row, begins_like_comment, check_length, inspect_integers, label_value
from wedgewise.read.content import Content
from wedgewise.read.pieces import GrowingPairs, PairPieces
from wedgewise.stages import Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import MAX_LABEL

Parser = Callable[..., tuple[int, int, int, int, int]]

PIECE_BYTES = 2 * 2**20
SAMPLE_BYTES = 2**16
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
    found = PairPieces(Origin(content.name, "text", layout.notes), columns=layout.used)
    if content.size is not None:
        sample = content.head(SAMPLE_BYTES)
        found.expected_pairs = content.size * sample.count(b"\n") // max(1, sample.rfind(b"\n") + 1) + 1
    found.pieces = _read(found, content, layout, options)
    return found


def _read(found: PairPieces, content: Content, layout: Layout, options: ReadOptions) -> Iterator[NDArray[Any]]:
    """The pieces; what is known at the end is set then."""
    whole = options.whole
    kind = _IntegerReader if layout.is_plain else FieldReader
    reader = kind(content.name, layout, options, found.expected_pairs if whole else None)
    first_two = 0
    for text in whole_lines(content, layout.begin, options.limits, None if whole else PIECE_BYTES):
        reader.add_lines(text)
        if not whole:
            piece = reader.pairs()
            first_two += _of_first_two(piece, layout)
            yield piece
    last = reader.pairs()
    names = reader.names
    notes = (*layout.notes, *_skipped(reader.comments))
    if names is not None:
        found.names, found.vertices = names, len(names)
        notes += _doubts(layout, first_two + _of_first_two(last, layout), names)
    found.origin = replace(found.origin, notes=notes)
    found.ignored_columns = layout.ignored(reader.width)
    found.weights = reader.weights
    yield last


def _of_first_two(pairs: NDArray[Any], layout: Layout) -> int:
    """How often the first two labels occur, where it matters whether they are those of a header."""
    is_asked = layout.kind == "text" and layout.is_guessed and layout.header is None
    return int(np.count_nonzero(pairs < 2)) if is_asked else 0


def _doubts(layout: Layout, of_first_two: int, names: TextLabels) -> tuple[str, ...]:
    """Say that the first line may be a header: nobody has said that it is not, and its labels occur nowhere else."""
    if not layout.is_guessed or layout.header is not None or len(names) < 2 or of_first_two != 2:
        return ()
    first_line = f"{names[0]!r}, {names[1]!r} ({SETTLE_HEADER})"
    return (f"first line read as an edge, though its labels occur nowhere else: {first_line}",)


def _skipped(comments: int) -> tuple[str, ...]:
    """Say how many lines among the rows were no rows."""
    if not comments:
        return ()
    lines = "1 line that begins" if comments == 1 else f"{comments:,} lines that begin"
    return (f"{lines} with # or %, below the first row, skipped as comment{'s' * (comments > 1)}",)


@dataclass(frozen=True, slots=True)
class _Parsed:
    """What became of one chunk: see `_text_kernel.parse_range`."""

    status: int
    position: int
    pairs: int
    columns: int
    comments: int


class _IntegerReader:
    """Parses pieces of whole lines into arrays of labels, which have neither names nor weights."""

    names = weights = None

    def __init__(self, path: str, layout: Layout, options: ReadOptions, expected_pairs: int | None) -> None:
        self.width, self.comments = 2, 0
        self._path, self._limits = path, options.limits
        self._threads, self._receiver = options.threads, options.receiver
        self._form = layout.form
        self._lines = layout.lines_before
        self._wide = layout.wide
        self._pairs = GrowingPairs(options.limits, path, expected_pairs=expected_pairs)

    def add_lines(self, text: Bytes) -> None:
        """Take in whole lines; raise at the first faulty one."""
        text = kernel_view(text)
        parse = _choose_parser(len(text))
        chunk_bytes = _text_chunks.CHUNK_BYTES if parse is _text_kernel.parse_range else _text_chunks.ARRAY_CHUNK_BYTES
        cuts = cut_at_newlines(text, chunk_bytes, self._limits.line_bytes)
        lines = lines_of_chunks(text, cuts, self._threads)
        rows = self._parse(parse, text, cuts, lines)
        if rows is None:
            self._wide = True
            rows = self._parse(parse, text, cuts, lines)
        if rows is None:
            raise VerificationError(f"{self._path}: a label over 2^63 - 1 was not refused: a defect in wedgewise")
        self._pairs.keep(rows)
        self._lines += sum(lines)
        if self._receiver is not None:
            self._receiver.end()

    def pairs(self) -> NDArray[Any]:
        """All pairs since the last call, shape (k, 2); the reader gives up its own copy."""
        return self._pairs.array()

    def _parse(self, parse: Parser, text: Bytes, cuts: list[int], lines: list[int]) -> int | None:
        """Write the pairs of `text` behind the others; how many, or None when one does not fit into the narrow type."""
        starts = np.concatenate(([0], np.cumsum(lines, dtype=np.int64))) * 2
        labels = self._pairs.next_rows(sum(lines), np.uint64 if self._wide else np.uint32).reshape(-1)
        delimiter, width = np.uint8(self._form.delimiter[0]), np.uint64(self._form.width)
        line_limit = np.uint64(self._limits.line_bytes)
        largest = np.uint64(MAX_LABEL if self._wide else MAX_NARROW)
        receiver = self._receiver
        if receiver is not None:
            receiver.begin(len(labels) // 2, labels.dtype)

        def parse_chunk(chunk: int, _: int) -> _Parsed:
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
            return _Parsed(status, position, pairs, columns, comments)

        chunks = run_tasks(parse_chunk, len(lines), self._threads)
        for chunk in chunks:
            if chunk.status == _text_kernel.TOO_LARGE:
                return None
            if chunk.status == _text_kernel.REFUSED:
                self._refuse(text, chunk.position)
            self.width = max(self.width, 2 + chunk.columns)
        self.comments += sum(chunk.comments for chunk in chunks)
        return _close_gaps(labels, starts.tolist(), [2 * chunk.pairs for chunk in chunks]) // 2

    def _row_at(self, text: Bytes, position: int) -> Row | Fault | None:
        """What a line is that the parser leaves to the rules: one with quotes, or a comment; others are faulty."""
        end = find_newline(text, position)
        if end - position > self._limits.line_bytes:
            return FAULTY
        line = text[position:end].tobytes()
        return inspect_integers(line, self._form) if b'"' in line or begins_like_comment(line) else FAULTY

    def _refuse(self, text: Bytes, position: int) -> None:
        """Raise what is wrong with the line that starts at `position`."""
        number = self._lines + count_newlines(text[:position]) + 1
        end = find_newline(text, position)
        check_length(end - position, self._limits, self._path, number)
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

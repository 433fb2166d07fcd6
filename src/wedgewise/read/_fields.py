"""Rows of a text file whose columns were chosen: text labels, integers in any columns, weights.

Labels are numbered by first appearance, in one table. Threads parse a chunk each and look its labels up; those that
nobody has seen before get their numbers afterwards, chunk by chunk, so that these do not depend on how many threads
there are. `_field_kernel` finds the columns; chunks in which it stops, and small files, are read line by line by the
rules of `_text_lines`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.jit import JIT_DISABLED, kernel_view
from wedgewise.machine.threads import run_tasks
from wedgewise.read import ReadOptions, _field_kernel
from wedgewise.read import text as text_files
from wedgewise.read._byte_pieces import Bytes
from wedgewise.read._text_kernel import PARSED
from wedgewise.read._text_layout import TextLayout
from wedgewise.read._text_lines import (
    Fault,
    Row,
    begins_like_comment,
    inspect_integers,
    inspect_text,
    label_value,
    weight_value,
)
from wedgewise.read.pieces import GrowingPairs
from wedgewise.read.text import KERNEL_BYTES, MAX_NARROW, cut_at_newlines, lines_of_chunks
from wedgewise.stages.label_table import LabelTable
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import MAX_LABEL

LINE_BYTES = 52  # where the fields of a line are, and what becomes of them


@dataclass(frozen=True, slots=True)
class _Labels:
    """Text labels of a chunk as spans of a text, and their numbers: −1 for one not known, None if nobody looked."""

    text: Bytes
    begins: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    numbers: NDArray[np.int64] | None

    def numbered(self, table: LabelTable) -> NDArray[np.uint32]:
        """The numbers of all; new labels get the next ones."""
        if self.numbers is None:
            return table.number(self.text, self.begins, self.lengths)
        new = np.flatnonzero(self.numbers < 0)
        self.numbers[new] = table.number(self.text, self.begins[new], self.lengths[new])
        return self.numbers.astype(np.uint32)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What became of a chunk: its ends, as integers or as labels that are still to be numbered."""

    ends: NDArray[Any] | _Labels
    weights: NDArray[np.float64] | None
    width: int
    comments: int


class FieldReader:
    """Takes whole lines, and collects their rows.

    Attributes
    ----------
    held : the ends of the rows since somebody took them, shape (k, 2)
    width : the most columns that a row had so far
    comments : how many lines were comments
    first_two : how often the first two text labels occurred

    Notes
    -----
    Bytes: 8 per row, 16 where an integer label needs 64 bits, and 8 per weight; 52 per line of the chunks that threads
    parse at a time. Text labels: see `LabelTable`.
    """

    def __init__(self, path: str, layout: TextLayout, options: ReadOptions, expected_pairs: int | None) -> None:
        self.width = self.comments = self.first_two = 0
        self.held = GrowingPairs(options.limits, path, expected_pairs=expected_pairs)
        self._path, self._layout, self._lines = path, layout, layout.lines_before
        self._limits, self._threads = options.limits, options.threads
        self._table = LabelTable(ask=partial(options.limits.check_memory, path=path))
        self._weights: list[NDArray[np.float64]] = []

    def add_lines(self, text: Bytes) -> None:
        """Take in whole lines; raise at the first faulty one."""
        text = kernel_view(text)
        cuts = cut_at_newlines(text, text_files.CHUNK_BYTES, self._limits.line_bytes)
        takes_kernels = _takes_kernels(len(text))
        for first in range(0, len(cuts) - 1, self._threads):
            self._add_chunks(text, cuts[first : first + self._threads + 1], takes_kernels)

    def _add_chunks(self, text: Bytes, cuts: list[int], takes_kernels: bool) -> None:
        """Take in one chunk for every thread."""
        lines = lines_of_chunks(text, cuts, self._threads)
        self._limits.check_memory(LINE_BYTES * sum(lines), path=self._path)

        def read(chunk: int, _worker: int) -> _Chunk | None:
            return self._parse(text, cuts[chunk], cuts[chunk + 1], lines[chunk]) if takes_kernels else None

        for number, chunk in enumerate(run_tasks(read, len(lines), self._threads)):
            piece = text[cuts[number] : cuts[number + 1]]
            if chunk is None or not self._add(chunk, piece):
                self._add(self._inspect(piece), piece)
            self._lines += lines[number]

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The weights of all rows, None where they are not read."""
        return None if self._layout.form.ends.weight is None else np.concatenate([np.empty(0), *self._weights])

    @property
    def names(self) -> TextLabels | None:
        """The text labels by number; None where labels are integers."""
        return self._table.labels() if self._layout.kind == "text" else None

    def _parse(self, text: Bytes, begin: int, end: int, lines: int) -> _Chunk | None:
        """The rows of a chunk by kernels; None where a line has to be looked at."""
        ends = self._layout.form.ends
        columns = np.array([ends.source, ends.target, ends.weight or 0], np.uint64)
        weighed = 0 if ends.weight is None else lines
        fields, weight_fields = _empty_fields(2 * lines), _empty_fields(weighed)
        delimiter, width_of_header = np.uint8(self._layout.form.delimiter[0]), np.uint64(self._layout.form.width)
        form = _field_kernel.RowForm(delimiter, np.uint64(self._limits.line_bytes), width_of_header)
        status, _, rows, width, comments = _field_kernel.find_fields(
            text,
            np.uint64(begin),
            np.uint64(end),
            form,
            columns,
            fields,
            weight_fields,
        )
        if status != PARSED:
            return None
        weights = _weights_of(text, weight_fields.begins[:rows], weight_fields.lengths[:rows]) if weighed else None
        if weighed and weights is None:
            return None
        labels = fields.begins[: 2 * rows], fields.lengths[: 2 * rows]
        if self._layout.kind == "int":
            integers = _integers_of(text, *labels)
            return None if integers is None else _Chunk(integers, weights, int(width), int(comments))
        return _Chunk(self._looked_up(text, *labels), weights, int(width), int(comments))

    def _looked_up(self, text: Bytes, begins: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> _Labels:
        """Labels with the numbers that they have; one thread alone numbers them without looking first."""
        looks = self._threads > 1 and len(self._table) > 0
        return _Labels(text, begins, lengths, self._table.find(text, begins, lengths) if looks else None)

    def _inspect(self, chunk: Bytes) -> _Chunk:
        """The rows of a chunk line by line; raise at the first faulty one."""
        rows, weights, comments = list[Row](), list[float](), 0
        for number, line, row in self._inspected(chunk):
            if row is None:
                comments += begins_like_comment(line)
                continue
            rows.append(row)
            if row.weight is not None:
                weight = weight_value(row.weight)
                if isinstance(weight, Fault):
                    weight.raise_at(self._path, number)
                weights.append(weight)
        width = max((row.width for row in rows), default=0)
        kept = None if self._layout.form.ends.weight is None else np.array(weights, np.float64)
        labels = [label for row in rows for label in (row.source, row.target)]
        if self._layout.kind == "int":
            integers = np.array([label_value(label) for label in labels], np.uint64)
            narrow = integers.astype(np.uint32) if int(integers.max(initial=0)) <= MAX_NARROW else integers
            return _Chunk(narrow, kept, width, comments)
        lengths = np.array([len(label) for label in labels], np.uint32)
        begins = (np.cumsum(lengths, dtype=np.uint64) - lengths).astype(np.uint64)
        texts = np.frombuffer(b"".join(labels), np.uint8)
        return _Chunk(self._looked_up(texts, begins, lengths), kept, width, comments)

    def _inspected(self, chunk: Bytes) -> Iterator[tuple[int, bytes, Row | None]]:
        """The lines of a chunk with their numbers in the file, and the row of each, None for a comment or a blank."""
        inspect, form = inspect_integers if self._layout.kind == "int" else inspect_text, self._layout.form
        for number, line in enumerate(chunk.tobytes().removesuffix(b"\n").split(b"\n"), start=self._lines + 1):
            self._limits.check("line_bytes", len(line), path=f"{self._path}:{number}")
            row = inspect(line, form)
            if isinstance(row, Fault):
                row.raise_at(self._path, number)
            yield number, line, row

    def _add(self, chunk: _Chunk, text: Bytes) -> bool:
        """Keep the rows of a chunk; False, and nothing is kept, where a label is no text: its line has to be found."""
        before = len(self._table)
        ends = chunk.ends.numbered(self._table) if isinstance(chunk.ends, _Labels) else chunk.ends
        if not _are_texts(self._table.labels(before)):
            return False
        if len(self._table) > self._limits.vertices:
            self._refuse_names(ends, text)
        self.held.add(ends.reshape(-1, 2))
        if self._layout.kind == "text":
            self.first_two += int(np.count_nonzero(ends < 2))
        if chunk.weights is not None:
            self._weights.append(chunk.weights)
        self.width = max(self.width, chunk.width)
        self.comments += chunk.comments
        return True

    def _refuse_names(self, ends: NDArray[Any], text: Bytes) -> None:
        """Raise at the line that has one name too many."""
        beyond = int(np.argmax(ends >= self._limits.vertices))
        numbers = (number for number, _, row in self._inspected(text) if row is not None)
        number = next(islice(numbers, beyond // 2, None))
        self._limits.check("vertices", self._limits.vertices + 1, path=f"{self._path}:{number}")


def _empty_fields(count: int) -> _field_kernel.Fields:
    return _field_kernel.Fields(np.empty(count, np.uint64), np.empty(count, np.uint32))


def load_field_kernels() -> None:
    """Load every kernel that reads rows of chosen columns and text labels."""
    text, fields = np.empty(0, np.uint8), _empty_fields(0)
    zero, columns = np.uint64(0), np.zeros(3, np.uint64)
    form = _field_kernel.RowForm(np.uint8(0), zero, zero)
    _field_kernel.find_fields(text, zero, zero, form, columns, fields, fields)
    _field_kernel.weights_of_fields(text, *fields, np.empty(0, np.float64))
    for dtype in (np.uint32, np.uint64):
        _field_kernel.integers_of_fields(text, *fields, zero, np.empty(0, dtype))
    labels, table = TextLabels.of(["a"]).spans(), LabelTable(compiled=True)
    table.number(*labels)
    table.find(*labels)


def _takes_kernels(size: int) -> bool:
    """Whether kernels are loaded, or worth loading for so many bytes."""
    return bool(_field_kernel.find_fields.signatures) or (size >= KERNEL_BYTES and not JIT_DISABLED)


def _integers_of(text: Bytes, begins: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> NDArray[Any] | None:
    """The integers of fields, 32 bits wide where they fit; None where one is no label."""
    for dtype, largest in ((np.uint32, MAX_NARROW), (np.uint64, MAX_LABEL)):
        found = np.empty(len(begins), dtype)
        status, _ = _field_kernel.integers_of_fields(text, begins, lengths, np.uint64(largest), found)
        if status == PARSED:
            return found
    return None


def _weights_of(text: Bytes, begins: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> NDArray[np.float64] | None:
    """The numbers of fields; None where one is no finite number."""
    found = np.empty(len(begins), np.float64)
    if _field_kernel.weights_of_fields(text, begins, lengths, found):
        for row in np.flatnonzero(np.isnan(found)).tolist():
            value = weight_value(text[int(begins[row]) : int(begins[row]) + int(lengths[row])].tobytes())
            if isinstance(value, Fault):
                return None
            found[row] = value
    return found


def _are_texts(labels: TextLabels) -> bool:
    """Whether all labels are UTF-8 without NUL: their bytes as a whole, and none begins inside a character."""
    data = labels.data[labels.offsets[0] : labels.offsets[-1]]
    if data.size == 0 or (int(data.max()) < 128 and int(data.min()) > 0):
        return True
    starts = labels.data[labels.offsets[:-1]]
    try:
        text = data.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return "\0" not in text and not bool(((starts & np.uint8(0xC0)) == np.uint8(0x80)).any())

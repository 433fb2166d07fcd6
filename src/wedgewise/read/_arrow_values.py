"""The rows of Arrow's record batches as pairs, some at a time, so that nothing takes the size of a column.

A column may be stored by codes: a dictionary, or runs of equal values, one within the other. Codes stay codes: a text
that stands in a million rows is looked at once, and never written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.read.pieces import Piece, finite_weights, interleave
from wedgewise.stages.label_table import LabelTable
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import Limits

SLICE_ROWS = 1 << 16
SLICE_BYTES = 2 << 20  # of text
DICTIONARY_BYTES = 40  # that an entry of a dictionary takes beside its text
NUMBERED_COPIES = 3  # of texts while they are numbered, beside the table that keeps them
LABEL_BYTES = 32  # that a label takes while it is numbered: where it begins, twice, its length, its number
BESIDE, TAKER_BYTES = 8, 32 << 20
GROWN_WEIGHTS = 1 << 19  # at a time
VIEW_BYTES = 16
UNKNOWN = np.uint32(2**32 - 1)

Codes = NDArray[np.int64]


def with_what_is_beside(more: int) -> int:
    """What to ask for where Arrow decodes so many bytes: its allocator takes some, and so does who takes the pairs."""
    return more + max(more // BESIDE, min(more, TAKER_BYTES))


def slices(columns: list[Any]) -> Iterator[list[Any]]:
    """Columns of a batch cut into rows that take a few mebibytes, one row at least."""
    waiting = [(begin, min(begin + SLICE_ROWS, len(columns[0]))) for begin in range(0, len(columns[0]), SLICE_ROWS)]
    waiting.reverse()
    while waiting:
        begin, end = waiting.pop()
        here = [column.slice(begin, end - begin) for column in columns]
        if end - begin > 1 and sum(map(_text_bytes, here)) > SLICE_BYTES:
            middle = (begin + end) // 2
            waiting += [(middle, end), (begin, middle)]
        else:
            yield here


def _text_bytes(column: Any) -> int:
    """The bytes of the strings of a plain column; 0 where its values are as long as each other."""
    from pyarrow import types

    if types.is_string(column.type) or types.is_large_string(column.type):
        dtype = np.dtype(np.int32 if types.is_string(column.type) else np.int64)
        offsets = np.frombuffer(column.buffers()[1], dtype, len(column) + 1, column.offset * dtype.itemsize)
        return int(offsets[-1] - offsets[0])
    if types.is_string_view(column.type) and len(column):
        lengths = np.frombuffer(column.buffers()[1], np.int32)[:: VIEW_BYTES // 4]
        return int(lengths[column.offset : column.offset + len(column)].sum(dtype=np.int64))
    return 0


def plain_type(kind: Any) -> Any:
    """The type of the values of a column, whatever codes them."""
    from pyarrow import types

    while types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def decoded(column: Any) -> tuple[Codes | None, Any]:
    """Which of some plain values each row has, −1 for a null, and these values; no codes where rows are the values."""
    codes: Codes | None = None
    while (coded := _one_code(column)) is not None:
        inner, column = coded
        codes = inner if codes is None else _through(codes, inner)
    if codes is not None and column.null_count:
        inner = np.where(column.is_null().to_numpy(zero_copy_only=False), -1, np.arange(len(column)))
        codes = _through(codes, inner)
    return codes, column


def _one_code(column: Any) -> tuple[Codes, Any] | None:
    from pyarrow import types

    if types.is_dictionary(column.type):
        indices = column.indices
        positions = indices.fill_null(0) if indices.null_count else indices
        codes = _array(positions).astype(np.int64)
        if indices.null_count:
            codes[indices.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes, column.dictionary
    if types.is_run_end_encoded(column.type):
        ends = _array(column.run_ends)
        rows = np.arange(column.offset, column.offset + len(column))
        return np.searchsorted(ends, rows, side="right"), column.values
    return None


def _through(outer: Codes, inner: Codes) -> Codes:
    """The codes of codes; what is null in either is null."""
    if not len(inner):
        return np.full(len(outer), -1, np.int64)
    return np.where(outer < 0, -1, inner[outer])


def first_null(column: Any) -> int | None:
    """The first row of a column that holds nothing, or a code of nothing."""
    codes, values = decoded(column)
    if codes is None:
        if not values.null_count:
            return None
        return int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
    return int(np.argmax(codes < 0)) if len(codes) and int(codes.min()) < 0 else None


def numbers(column: Any) -> NDArray[Any]:
    """The values of a column; decimal numbers as doubles, and NaN for what is null."""
    from pyarrow import float64, types

    codes, values = decoded(column)
    plain = values.cast(float64()) if types.is_decimal(values.type) else values
    found = _array(plain)
    if codes is None:
        return found
    if not len(codes) or int(codes.min()) >= 0:
        return found[codes]
    with_null = np.append(found.astype(np.float64 if found.dtype.kind in "iuf" else np.object_), np.nan)
    return with_null[codes]  # −1 is the last one


def _array(column: Any) -> NDArray[Any]:
    """The values of a plain column, in the same memory where they are numbers; Arrow's own way loads pandas."""
    from pyarrow import types

    is_float = types.is_floating(column.type)
    if column.null_count or not (is_float or types.is_integer(column.type)):
        odd: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return odd
    kind = "f" if is_float else "i" if types.is_signed_integer(column.type) else "u"
    dtype = np.dtype(f"{kind}{column.type.bit_width // 8}")
    if not len(column):
        return np.empty(0, dtype)
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)


class GrowingWeights:
    """The weights of all rows in one array, counted while it grows where it lies."""

    def __init__(self, limits: Limits, name: str) -> None:
        self._limits, self._name = limits, name
        self._held = np.empty(0, np.float64)
        self._rows = 0

    def add(self, column: Any) -> None:
        """Weights behind those that are there."""
        values = numbers(column)
        if values.dtype.kind not in "biuf":
            finite_weights(values, self._name)
        end = self._rows + len(values)
        if end > len(self._held):
            length = max(end, GROWN_WEIGHTS, len(self._held) * 9 // 8)
            self._limits.check_memory((length - len(self._held)) * self._held.itemsize, path=self._name)
            self._held.resize(length, refcheck=False)
        self._held[self._rows : end] = values
        self._rows = end

    def array(self) -> NDArray[np.float64]:
        """All weights; every one must be a finite number."""
        self._held.resize(self._rows, refcheck=False)
        return finite_weights(self._held, self._name)


@dataclass(slots=True)
class _Dictionary:
    """Values that codes refer to, as labels, and the number of each that has one."""

    values: Any
    labels: TextLabels
    numbers: NDArray[np.uint32]


class TextPairs:
    """Numbers text labels by first appearance in a `table`, reading row by row, source before target."""

    def __init__(self, limits: Limits, name: str) -> None:
        self._limits, self._name = limits, name
        self._ask_for = partial(limits.check_memory, path=name)
        self.table = LabelTable(ask=self._ask_for)
        self._dictionaries: list[_Dictionary | None] = [None, None]

    def pairs(self, sources: Any, targets: Any) -> Piece:
        """The numbers of both ends of some rows."""
        ends = [decoded(column) for column in (sources, targets)]
        if all(codes is None for codes, _ in ends):
            rows = len(sources)
            texts = [self._texts(values) for _, values in ends]
            return self._number(texts, [np.arange(rows) * 2, np.arange(rows) * 2 + 1]).reshape(-1, 2)
        coded = [(np.arange(len(values)) if codes is None else codes, values) for codes, values in ends]
        return self._coded_pairs(coded)

    def _coded_pairs(self, ends: list[tuple[Codes, Any]]) -> Piece:
        """Give numbers to the values that have none, in the order in which rows refer to them."""
        known = [self._dictionary(role, values) for role, (_, values) in enumerate(ends)]
        first = [_first_rows(codes, entry.numbers) for (codes, _), entry in zip(ends, known, strict=True)]
        order = np.argsort(np.concatenate([2 * rows + role for role, (_, rows) in enumerate(first)]))
        positions = np.empty(len(order), np.int64)
        positions[order] = np.arange(len(order))
        cut = len(first[0][0])
        self._ask_for(
            sum(int(np.diff(entry.labels.offsets)[new].sum()) for entry, (new, _) in zip(known, first, strict=True))
        )
        texts = [entry.labels.take(new) for entry, (new, _) in zip(known, first, strict=True)]
        numbered = self._number(texts, [positions[:cut], positions[cut:]])
        for entry, (new, _), here in zip(known, first, (positions[:cut], positions[cut:]), strict=True):
            entry.numbers[new] = numbered[here]
        return interleave(*(entry.numbers[codes] for entry, (codes, _) in zip(known, ends, strict=True)))

    def _dictionary(self, role: int, values: Any) -> _Dictionary:
        """What is known of these values: files refer to one dictionary in batch after batch."""
        held = self._dictionaries[role]
        if held is None or not _are_same(held.values, values):
            self._dictionaries[role] = None
            self._ask_for(DICTIONARY_BYTES * len(values))
            held = _Dictionary(values, self._texts(values), np.full(len(values), UNKNOWN, np.uint32))
            self._dictionaries[role] = held
        return held

    def _texts(self, values: Any) -> TextLabels:
        import pyarrow

        if pyarrow.types.is_string_view(values.type):
            self._ask_for(_text_bytes(values))
        return TextLabels.of_arrow(values.cast(pyarrow.large_string()))

    def _number(self, texts: list[TextLabels], positions: list[Codes]) -> NDArray[np.uint32]:
        """The numbers of labels of two columns; `positions` say in which order they stand."""
        rows, size = sum(map(len, texts)), sum(text.nbytes for text in texts)
        self._ask_for(NUMBERED_COPIES * size + LABEL_BYTES * rows)
        begins, lengths = np.empty(rows, np.uint64), np.empty(rows, np.uint32)
        before = 0
        for text, here in zip(texts, positions, strict=True):
            begins[here] = text.offsets[:-1] + (before - text.offsets[0])
            lengths[here] = np.diff(text.offsets)
            before += int(text.offsets[-1] - text.offsets[0])
        joined = np.concatenate([text.data[text.offsets[0] : text.offsets[-1]] for text in texts])
        found = self.table.number(joined, begins, lengths)
        self._limits.check("vertices", len(self.table), path=self._name)
        return found


def _are_same(first: Any, second: Any) -> bool:
    """Whether two arrays hold the same values: at one place, as in Arrow's files, or in copies, as in Parquet's."""
    return _position(first) == _position(second) or bool(first.type == second.type and first.equals(second))


def _position(values: Any) -> tuple[Any, ...]:
    return values.type, len(values), values.offset, *(buffer and buffer.address for buffer in values.buffers())


def _first_rows(codes: Codes, numbers_of: NDArray[np.uint32]) -> tuple[Codes, Codes]:
    """The codes that have no number yet, and the first row of each."""
    rows = np.flatnonzero(numbers_of[codes] == UNKNOWN)
    if len(numbers_of) > 2 * len(rows):
        new, at = np.unique(codes[rows], return_index=True)
        return new, rows[at]
    first = np.full(len(numbers_of), len(codes))
    first[codes[rows[::-1]]] = rows[::-1]  # the last one written is the first row
    new = np.flatnonzero(first < len(codes))
    return new, first[new]

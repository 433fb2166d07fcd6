"""Number text labels: `LabelTable`, by a dictionary or by the compiled hash table of `_label_kernel`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine import jit
from wedgewise.machine.jit import kernel_view
from wedgewise.stages import _label_kernel
from wedgewise.stages.labels import PART_BYTES, PART_LABELS, Bytes, LabelSpans, TextLabels

Ask = Callable[[int], None]

ASKED_BYTES = 1 << 20
FEW_LABELS = 1 << 14  # a dictionary has numbered them before a kernel is loaded
DICTIONARY_SECONDS, DICTIONARY_BYTES = 2.5e-7, 150  # per label
FIRST_PART = 1 << 12
MAX_LABELS = 2**31
SEED = np.uint64(int.from_bytes(os.urandom(8), "little") | 1 << 63 | 1 << 31)  # neither half is zero


class LabelTable:
    """Numbers labels in the order of their first appearance, by a hash table or, for few of them, a dictionary.

    Parameters
    ----------
    labels : labels that have their numbers already, in the same memory; of equal ones the first is found
    compiled : whether to take the hash table and its kernels; None takes them where they pay
    ask : called with the bytes of an allocation of a mebibyte or more before it is made; may raise

    At its peak the hash table holds 60 bytes per distinct label, 2.5 times its text, and 4 MiB: slots (at most half of
    them used), offsets, and the text, the latter two twice while they grow.

    Examples
    --------
    >>> table = LabelTable()
    >>> table.number(*TextLabels.of(["ada", "bob", "ada", "cy"]).spans()).tolist()
    [0, 1, 0, 2]
    >>> table.find(*TextLabels.of(["cy", "di"]).spans()).tolist(), table.labels()
    ([2, -1], ['ada', 'bob', 'cy'])
    """

    def __init__(
        self, labels: TextLabels | None = None, *, compiled: bool | None = None, ask: Ask | None = None
    ) -> None:
        self._ask = ask
        self._arena, offsets = (TextLabels.of([]) if labels is None else labels)._compact()
        self._offsets = offsets.view(np.uint64)
        self._count = len(offsets) - 1
        self._slots = np.empty(0, np.uint64)
        self._number_of: dict[bytes, int] | None = {}
        self._compiled = compiled
        if self._takes_kernels(self._count):
            self._leave_dictionary()
        else:
            texts = _texts(*self.labels().spans())
            self._number_of.update((text, number) for number, text in reversed(list(enumerate(texts))))

    def number(self, text: Bytes, begins: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.uint32]:
        """The number of each label ``text[begins[i] : begins[i] + lengths[i]]``; unknown ones get the next numbers."""
        text, begins, lengths = _spans(text, begins, lengths)
        numbers = np.empty(len(begins), np.uint32)
        if self._number_of is not None and self._takes_kernels(len(begins)):
            self._leave_dictionary()
        if self._number_of is not None:
            self._number_by_dictionary(self._number_of, text, begins, lengths, numbers)
            return numbers
        first = 0
        while first < len(begins):
            part = slice(first, first + self._reserve(lengths[first : first + PART_LABELS]))
            spans, count = _label_kernel.Spans(text, begins[part], lengths[part]), np.uint64(self._count)
            self._count = int(_label_kernel.number_spans(spans, numbers[part], self._table(), count, _batch()))
            first = part.stop
        return numbers

    def find(self, text: Bytes, begins: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.int64]:
        """The number of each label, −1 for one that has none; threads may look labels up at the same time."""
        text, begins, lengths = _spans(text, begins, lengths)
        if self._number_of is not None:
            found = [self._number_of.get(label, -1) for label in _texts(text, begins, lengths)]
            return np.array(found, np.int64)
        numbers = np.empty(len(begins), np.int64)
        table, batch = self._table(), _batch()
        for first in range(0, len(begins), PART_LABELS):
            part = slice(first, first + PART_LABELS)
            spans = _label_kernel.Spans(text, begins[part], lengths[part])
            _label_kernel.find_spans(spans, kernel_view(numbers[part]), table, batch)
        return numbers

    def labels(self, begin: int = 0, end: int | None = None) -> TextLabels:
        """The labels in the order of their numbers, in the table's own memory; later ones do not show in it."""
        offsets = self._offsets[: self._count + 1].view(np.int64)
        return TextLabels._checked(self._arena[: int(offsets[-1])], offsets)[begin:end]

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays; those of a dictionary are not known."""
        return self._arena.nbytes + self._offsets.nbytes + self._slots.nbytes

    def _table(self) -> _label_kernel.HashTable:
        """What kernels take, until labels or slots are moved."""
        bits = len(self._slots).bit_length() - 1
        return _label_kernel.HashTable(self._arena, self._offsets, self._slots, np.uint64(32 - bits), SEED)

    def _takes_kernels(self, labels: int) -> bool:
        """Whether the next labels are worth kernels."""
        if self._compiled is not None:
            return self._compiled
        is_loaded = bool(_label_kernel.number_spans.signatures)
        return is_loaded or (labels > FEW_LABELS and jit.pays(DICTIONARY_SECONDS * labels, _label_kernel.number_spans))

    def _leave_dictionary(self) -> None:
        self._number_of = None
        self._make_slots(self._count + FIRST_PART)

    def _make_slots(self, labels: int) -> None:
        """Slots for so many labels, with those entered that are there; the old ones are given up first."""
        self._slots = np.empty(0, np.uint64)
        slots = 1 << (2 * labels - 1).bit_length()
        self._ask_for(slots * self._slots.itemsize)
        self._slots = np.zeros(slots, np.uint64)
        table, batch = self._table(), _batch()
        for first in range(0, self._count, PART_LABELS):
            offsets = self._offsets[first : min(first + PART_LABELS, self._count) + 1]
            spans = _label_kernel.Spans(self._arena, offsets[:-1], np.diff(offsets).astype(np.uint32))
            _label_kernel.enter_spans(spans, np.uint64(first), table, batch)

    def _reserve(self, lengths: NDArray[np.uint32]) -> int:
        """How many of the next labels the arrays can take, at least one, even if all of them are new."""
        labels = min(len(lengths), max(FIRST_PART, self._count // 8))
        ends = np.cumsum(lengths[:labels], dtype=np.int64)
        labels = max(1, int(np.searchsorted(ends, PART_BYTES, side="right")))
        if self._count + labels > MAX_LABELS:
            raise InputError(f"more than {MAX_LABELS:,} distinct labels; name the vertices by integers")
        if 2 * (self._count + labels) > len(self._slots):
            self._make_slots(self._count + labels)
        used = int(self._offsets[self._count])
        self._arena = self._with_length(self._arena, used, used + int(ends[labels - 1]))
        self._offsets = self._with_length(self._offsets, self._count + 1, self._count + labels + 1)
        return labels

    def _with_length(self, array: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
        """The array, or a longer one that begins with what is used of it, which nobody else can write to."""
        if needed <= len(array) and array.flags.writeable:
            return array
        length = max(needed, used + used // 2)
        self._ask_for(length * array.itemsize)
        longer = np.empty(length, array.dtype)
        longer[:used] = array[:used]
        return longer

    def _ask_for(self, size: int) -> None:
        if self._ask is not None and size >= ASKED_BYTES:
            self._ask(size)

    def _number_by_dictionary(
        self,
        number_of: dict[bytes, int],
        text: Bytes,
        begins: NDArray[np.uint64],
        lengths: NDArray[np.uint32],
        numbers: NDArray[np.uint32],
    ) -> None:
        new: list[bytes] = []
        self._ask_for(DICTIONARY_BYTES * len(begins))
        for position, label in enumerate(_texts(text, begins, lengths)):
            number = number_of.get(label)
            if number is None:
                number = number_of[label] = self._count + len(new)
                new.append(label)
            numbers[position] = number
        if new:
            added, offsets = TextLabels.of_bytes(new)._compact()
            used, end = int(self._offsets[self._count]), self._count + len(new) + 1
            self._arena = self._with_length(self._arena, used, used + len(added))
            self._arena[used : used + len(added)] = added
            self._offsets = self._with_length(self._offsets, self._count + 1, end)
            self._offsets[self._count + 1 : end] = offsets[1:] + used
            self._count += len(new)


def _batch() -> NDArray[np.uint64]:
    """Memory for the hashes and positions of a batch of labels."""
    return np.empty(2 * _label_kernel.BATCH, np.uint64)


def _spans(text: Bytes, begins: NDArray[Any], lengths: NDArray[Any]) -> LabelSpans:
    return text, np.ascontiguousarray(begins, np.uint64), np.ascontiguousarray(lengths, np.uint32)


def _texts(text: Bytes, begins: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Iterator[bytes]:
    """The labels of spans, one by one."""
    view = text.data
    ends = (begins + lengths).tolist()
    return (bytes(view[begin:end]) for begin, end in zip(begins.tolist(), ends, strict=True))

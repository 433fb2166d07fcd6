"""Text labels: `TextLabels`, a compact immutable sequence of them, and `LabelTable`, which numbers them.

Labels lie one behind the other as UTF-8 in one array of bytes, with n + 1 offsets: the layout of Arrow's
``large_string``. That takes 8 bytes per label beside its text, where a list of strings takes 57 and more.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wedgewise.errors import InputError, MissingDependencyError
from wedgewise.machine import jit
from wedgewise.machine.jit import kernel_view
from wedgewise.stages import _label_kernel

Bytes = NDArray[np.uint8]
Ask = Callable[[int], None]
Spans = tuple[Bytes, NDArray[np.uint64], NDArray[np.uint32]]  # text, where each label begins in it, and its length

SHOWN_WHOLE, SHOWN_ENDS = 1000, 3
PART_LABELS, PART_BYTES = 1 << 16, 1 << 20  # at a time, so that temporaries stay small and signals are heard
FILTERED_BYTES = 16
MOST_LABEL_BYTES = 2**32 - 1

ASKED_BYTES = 1 << 20
FEW_LABELS = 1 << 14  # a dictionary has numbered them before a kernel is loaded
DICTIONARY_SECONDS, DICTIONARY_BYTES = 2.5e-7, 150  # per label
FIRST_PART = 1 << 12
MOST_LABELS = 2**31
SEED = np.uint64(int.from_bytes(os.urandom(8), "little") | 1 << 63 | 1 << 31)  # neither half is zero


class TextLabels(Sequence[str]):
    """The labels of vertices as text: immutable, compact, and otherwise like a list of strings.

    Parameters
    ----------
    data : the labels' UTF-8 as uint8, one behind the other
    offsets : where each label begins in it, and where the last one ends, as int64

    Neither array is copied or checked for UTF-8.

    Examples
    --------
    >>> import wedgewise as ww
    >>> labels = ww.Graph([("ada", "bob"), ("bob", "cy")]).labels
    >>> labels, labels[1], labels == ["ada", "bob", "cy"], "di" in labels
    (['ada', 'bob', 'cy'], 'bob', True, False)
    >>> labels.data.tobytes(), labels.offsets.tolist()
    (b'adabobcy', [0, 3, 6, 8])
    """

    __slots__ = ("_data", "_offsets")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: Bytes, offsets: NDArray[np.int64]) -> None:
        if data.dtype != np.uint8 or offsets.dtype != np.int64 or data.ndim != 1 or offsets.ndim != 1:
            raise InputError("labels are an array of uint8 and one of int64 offsets")
        if not len(offsets) or not 0 <= offsets[0] <= offsets[-1] <= len(data) or (np.diff(offsets) < 0).any():
            raise InputError(f"offsets of labels ascend from 0 to at most {len(data):,}, the end of the text")
        self._data, self._offsets = _read_only(data), _read_only(offsets)

    @property
    def data(self) -> Bytes:
        """The labels' UTF-8, read-only; of a part of other labels the text of all of them."""
        return self._data

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each label begins in `data`, and where the last one ends, read-only."""
        return self._offsets

    @classmethod
    def _checked(cls, data: Bytes, offsets: NDArray[np.int64]) -> TextLabels:
        """Labels of arrays that are known to belong together."""
        labels = cls.__new__(cls)
        labels._data, labels._offsets = _read_only(data), _read_only(offsets)
        return labels

    @classmethod
    def of(cls, strings: Iterable[str]) -> TextLabels:
        """Labels from strings.

        Raises
        ------
        InputError
            When one is no string, or holds half a character (a lone surrogate), which UTF-8 cannot spell.
        """
        texts = strings if isinstance(strings, list) else list(strings)
        try:
            whole = "".join(texts)
            if whole.isascii():
                return cls._joined(whole.encode("ascii"), map(len, texts), len(texts))
            return cls.of_bytes([text.encode("utf-8") for text in texts])
        except (TypeError, UnicodeEncodeError):
            raise _no_text(texts) from None

    @classmethod
    def of_bytes(cls, texts: Iterable[bytes]) -> TextLabels:
        """Labels from their UTF-8."""
        texts = texts if isinstance(texts, list | dict) else list(texts)
        return cls._joined(b"".join(texts), map(len, texts), len(texts))

    @classmethod
    def of_arrow(cls, array: Any) -> TextLabels:
        """Labels from an Arrow array of type large_string without nulls, in the same memory."""
        _, offsets, data = array.buffers()
        if not len(array):
            return cls.of_bytes([])
        begin = array.offset
        positions = np.frombuffer(offsets, np.int64, len(array) + 1, begin * np.dtype(np.int64).itemsize)
        return cls(np.frombuffer(b"" if data is None else data, np.uint8), positions)

    @classmethod
    def _joined(cls, data: bytes, lengths: Iterable[int], count: int) -> TextLabels:
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.fromiter(lengths, np.int64, count), out=offsets[1:])
        return cls._checked(np.frombuffer(data, np.uint8), offsets)

    @property
    def nbytes(self) -> int:
        """Bytes held: those of the text, and 8 per label."""
        return int(self.offsets[-1] - self.offsets[0]) + self.offsets.nbytes

    def spans(self) -> Spans:
        """The text, where each label begins in it, and its length: what `LabelTable` takes."""
        lengths = np.diff(self.offsets)
        longest = int(lengths.max(initial=0))
        if longest > MOST_LABEL_BYTES:
            raise InputError(f"a label of {longest:,} bytes; labels have at most {MOST_LABEL_BYTES:,}")
        return self.data, self.offsets[:-1].view(np.uint64), lengths.astype(np.uint32)

    def tolist(self) -> list[str]:
        """The labels as strings."""
        begin, end = int(self.offsets[0]), int(self.offsets[-1])
        whole = self.data[begin:end].tobytes()
        cuts = (self.offsets - begin).tolist()
        if whole.isascii():
            text = whole.decode("ascii")
            return [text[first:last] for first, last in pairwise(cuts)]
        return [whole[first:last].decode("utf-8") for first, last in pairwise(cuts)]

    def take(self, numbers: ArrayLike) -> TextLabels:
        """The labels of some vertices, in the order given."""
        chosen = np.asarray(numbers, np.int64)
        begins = self.offsets[:-1][chosen]
        return TextLabels._checked(*_gathered(self.data, begins, self.offsets[1:][chosen] - begins))

    def spell(self, numbers: NDArray[Any], trailing: NDArray[Any]) -> bytes:
        """The text of some vertices' labels, each followed by its trailing byte."""
        begins = self.offsets[:-1][numbers]
        text, ends = _gathered(self.data, begins, self.offsets[1:][numbers] - begins + 1)  # a byte too many
        text[ends[1:] - 1] = trailing
        return text.tobytes()

    def to_arrow(self) -> Any:
        """The labels as a pyarrow array of type large_string, in the same memory."""
        try:
            import pyarrow
        except ImportError as error:
            raise MissingDependencyError(
                'labels as an Arrow array need pyarrow; install it with: pip install "wedgewise[arrow]"'
            ) from error
        buffers = pyarrow.py_buffer(self.offsets), pyarrow.py_buffer(self.data)
        return pyarrow.LargeStringArray.from_buffers(len(self), *buffers)

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """The number of the first vertex of that label; ValueError without one. `Graph.index` is quicker."""
        found = self._numbers_of(value)
        begin, end, _ = slice(start, stop).indices(len(self))
        found = found[(found >= begin) & (found < end)]
        if not len(found):
            raise ValueError(f"{value!r} is not among the labels")
        return int(found[0])

    def _numbers_of(self, value: Any) -> NDArray[np.int64]:
        """Where a label is: those of its length, filtered by some bytes, then compared."""
        wanted = utf8(value)
        if wanted is None:
            return np.empty(0, np.int64)
        found = np.flatnonzero(np.diff(self.offsets) == len(wanted))
        for place, byte in enumerate(wanted[:FILTERED_BYTES]):
            found = found[self.data[self.offsets[found] + place] == byte]
        if len(wanted) > FILTERED_BYTES:
            same = [self._bytes(number) == wanted for number in found.tolist()]
            found = found[np.array(same, np.bool_)]
        return found

    def _bytes(self, number: int) -> bytes:
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, number: SupportsIndex, /) -> str: ...
    @overload
    def __getitem__(self, number: slice, /) -> TextLabels: ...
    def __getitem__(self, number: SupportsIndex | slice, /) -> str | TextLabels:
        if isinstance(number, slice):
            begin, end, step = number.indices(len(self))
            if step != 1:
                return self.take(np.arange(begin, end, step))
            return TextLabels._checked(self.data, self.offsets[begin : max(begin, end) + 1])
        at = operator.index(number)
        if not -len(self) <= at < len(self):
            raise IndexError(f"label {at} of {len(self)}")
        return self._bytes(at % len(self)).decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, len(self), PART_LABELS):
            yield from self[begin : begin + PART_LABELS].tolist()

    def __contains__(self, value: object) -> bool:
        return len(self._numbers_of(value)) > 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | tuple):
            return len(self) == len(other) and self.tolist() == list(other)
        if not isinstance(other, TextLabels):
            return NotImplemented
        if len(self) != len(other):
            return False
        ours, theirs = self._compact(), other._compact()
        return np.array_equal(ours[1], theirs[1]) and np.array_equal(ours[0], theirs[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.tolist(), dtype if dtype is not None or len(self) else np.str_)

    def __repr__(self) -> str:
        if len(self) <= SHOWN_WHOLE:
            return repr(self.tolist())
        return f"{repr(self[:SHOWN_ENDS])[:-1]}, ..., {repr(self[-SHOWN_ENDS:])[1:]}"

    def __reduce__(self) -> tuple[type[TextLabels], tuple[Bytes, NDArray[np.int64]]]:
        return TextLabels, self._compact()

    def _compact(self) -> tuple[Bytes, NDArray[np.int64]]:
        """The text of these labels alone, and offsets from 0 on."""
        begin, end = int(self.offsets[0]), int(self.offsets[-1])
        return self.data[begin:end], self.offsets - begin if begin else self.offsets


def pick_labels(labels: Any, vertices: NDArray[Any]) -> Any:
    """The labels of some vertices: an array, `TextLabels`, or a list, as `labels` are."""
    if isinstance(labels, TextLabels):
        return labels.take(vertices)
    if isinstance(labels, list):
        return [labels[vertex] for vertex in vertices.tolist()]
    return np.asarray(labels)[vertices]


def compact_labels(labels: list[Any]) -> TextLabels | list[Any]:
    """Labels that another library may have as any objects: compact where all of them are text."""
    if not labels or set(map(type, labels)) != {str}:
        return labels
    try:
        return TextLabels.of(labels)
    except InputError:  # halves of characters, which are as good as any other objects
        return labels


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _no_text(texts: list[Any]) -> InputError:
    """What is wrong with the first label that cannot be one."""
    label = next(text for text in texts if utf8(text) is None)
    if isinstance(label, str):
        return InputError(f"the label {label!r} is no text that can be written; name the vertex otherwise")
    return InputError(f"the label {label!r} of type {type(label).__name__} is no text; pass strings")


def utf8(value: Any) -> bytes | None:
    """The bytes of a text; None for what is no text, or holds half a character."""
    try:
        return value.encode("utf-8") if isinstance(value, str) else None
    except UnicodeEncodeError:
        return None


def _gathered(data: Bytes, begins: NDArray[Any], lengths: NDArray[Any]) -> tuple[Bytes, NDArray[np.int64]]:
    """Copies of spans one behind the other, and their offsets; bytes behind the end of `data` hold anything."""
    offsets = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    text = np.empty(int(offsets[-1]), np.uint8)
    first = 0
    while first < len(begins):
        at = int(offsets[first])
        last = max(first + 1, int(np.searchsorted(offsets, at + PART_BYTES, side="right")) - 1)
        if last == first + 1:
            piece = data[begins[first] : begins[first] + lengths[first]]
            text[at : at + len(piece)] = piece
        else:
            part = text[at : offsets[last]]
            shifts = np.repeat(begins[first:last] - offsets[first:last] + at, lengths[first:last])
            np.take(data, np.arange(len(part)) + shifts, out=part, mode="clip")
        first = last
    return text, offsets


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

    def _table(self) -> _label_kernel.Table:
        """What kernels take, until labels or slots are moved."""
        bits = len(self._slots).bit_length() - 1
        return _label_kernel.Table(self._arena, self._offsets, self._slots, np.uint64(32 - bits), SEED)

    def _takes_kernels(self, labels: int) -> bool:
        """Whether the next labels are worth kernels."""
        if self._compiled is not None:
            return self._compiled
        is_loaded = bool(_label_kernel.number_spans.signatures)
        return is_loaded or (labels > FEW_LABELS and jit.pays(DICTIONARY_SECONDS * labels))

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
        """How many of the next labels there is room for, at least one, even if all of them are new."""
        labels = min(len(lengths), max(FIRST_PART, self._count // 8))
        ends = np.cumsum(lengths[:labels], dtype=np.int64)
        labels = max(1, int(np.searchsorted(ends, PART_BYTES, side="right")))
        if self._count + labels > MOST_LABELS:
            raise InputError(f"more than {MOST_LABELS:,} distinct labels; name the vertices by integers")
        if 2 * (self._count + labels) > len(self._slots):
            self._make_slots(self._count + labels)
        used = int(self._offsets[self._count])
        self._arena = self._with_room(self._arena, used, used + int(ends[labels - 1]))
        self._offsets = self._with_room(self._offsets, self._count + 1, self._count + labels + 1)
        return labels

    def _with_room(self, array: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
        """The array, or a longer one that begins with what is used of it, which nobody else can write to."""
        if needed <= len(array) and array.flags.writeable:
            return array
        room = max(needed, used + used // 2)
        self._ask_for(room * array.itemsize)
        longer = np.empty(room, array.dtype)
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
        for place, label in enumerate(_texts(text, begins, lengths)):
            number = number_of.get(label)
            if number is None:
                number = number_of[label] = self._count + len(new)
                new.append(label)
            numbers[place] = number
        if new:
            added, offsets = TextLabels.of_bytes(new)._compact()
            used, end = int(self._offsets[self._count]), self._count + len(new) + 1
            self._arena = self._with_room(self._arena, used, used + len(added))
            self._arena[used : used + len(added)] = added
            self._offsets = self._with_room(self._offsets, self._count + 1, end)
            self._offsets[self._count + 1 : end] = offsets[1:] + used
            self._count += len(new)


def _batch() -> NDArray[np.uint64]:
    """Room for the hashes and places of a batch of labels."""
    return np.empty(2 * _label_kernel.BATCH, np.uint64)


def _spans(text: Bytes, begins: NDArray[Any], lengths: NDArray[Any]) -> Spans:
    return text, np.ascontiguousarray(begins, np.uint64), np.ascontiguousarray(lengths, np.uint32)


def _texts(text: Bytes, begins: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Iterator[bytes]:
    """The labels of spans, one by one."""
    view = text.data
    ends = (begins + lengths).tolist()
    return (bytes(view[begin:end]) for begin, end in zip(begins.tolist(), ends, strict=True))

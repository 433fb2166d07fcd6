"""Text labels: `TextLabels`, a compact immutable sequence of them.

Labels lie one behind the other as UTF-8 in one array of bytes, with n + 1 offsets: the layout of Arrow's
``large_string``. That takes 8 bytes per label beside its text, where a list of strings takes 57 and more.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wedgewise.errors import InputError, MissingDependencyError

Bytes = NDArray[np.uint8]
LabelSpans = tuple[Bytes, NDArray[np.uint64], NDArray[np.uint32]]  # text, where each label begins in it, and its length

SHOWN_WHOLE, SHOWN_ENDS = 1000, 3
PART_LABELS, PART_BYTES = 1 << 16, 1 << 20  # at a time, so that temporaries stay small and signals are heard
FILTERED_BYTES = 16
MAX_LABEL_BYTES = 2**32 - 1


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

    def spans(self) -> LabelSpans:
        """The text, where each label begins in it, and its length: what `LabelTable` takes."""
        lengths = np.diff(self.offsets)
        longest = int(lengths.max(initial=0))
        if longest > MAX_LABEL_BYTES:
            raise InputError(f"a label of {longest:,} bytes; labels have at most {MAX_LABEL_BYTES:,}")
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
        return TextLabels._checked(*_copied_spans(self.data, begins, self.offsets[1:][chosen] - begins))

    def spell(self, numbers: NDArray[Any], trailing: NDArray[Any]) -> bytes:
        """The text of some vertices' labels, each followed by its trailing byte."""
        begins = self.offsets[:-1][numbers]
        text, ends = _copied_spans(self.data, begins, self.offsets[1:][numbers] - begins + 1)  # a byte too many
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
        for position, byte in enumerate(wanted[:FILTERED_BYTES]):
            found = found[self.data[self.offsets[found] + position] == byte]
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


def _copied_spans(data: Bytes, begins: NDArray[Any], lengths: NDArray[Any]) -> tuple[Bytes, NDArray[np.int64]]:
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

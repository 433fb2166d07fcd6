"""Labels → vertex numbers: what `Graph.index` and its kin ask.

    labels                    looked up by
    range                     arithmetic
    integers, ascending       bisection
    integers in any order     bisection in a sorted copy
    text                      a `LabelTable`
    any other objects         a dictionary

Of vertices with equal labels the first is found. What can be no label of a graph (a fraction where labels are integers,
a number where they are text) is simply not found.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownLabelError
from wedgewise.stages import Labels
from wedgewise.stages.label_table import LabelTable
from wedgewise.stages.labels import TextLabels, utf8

Found = NDArray[np.int64]
Values = NDArray[Any] | TextLabels | list[Any]

SHOWN_CHARACTERS = 80


class VertexIndex:
    """The vertices of one graph by their labels; threads may ask at the same time.

    Parameters
    ----------
    labels : the label of every vertex
    name : what the graph is called in messages
    """

    def __init__(self, labels: Labels, name: str) -> None:
        self._name, self._count = name, len(labels)
        self._tuples_are_labels = False
        self.look_up: Callable[[Values], Found]  # the vertex of every label, −1 where there is none
        if isinstance(labels, range):
            self._kind, self.look_up, self.nbytes = "integers", partial(_find_in_range, labels), 0
        elif isinstance(labels, TextLabels):
            table = LabelTable(labels)
            self._kind, self.look_up, self.nbytes = "text", partial(_find_text, table), table.nbytes - labels.nbytes
        elif isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
            order = np.empty(0, np.int64) if (labels[1:] >= labels[:-1]).all() else np.argsort(labels, kind="stable")
            ascending = labels[order] if len(order) else labels
            self._kind, self.look_up = "integers", partial(_find_integers, ascending, order)
            self.nbytes = order.nbytes + ascending.nbytes if len(order) else 0
        else:
            vertex_of: dict[Any, int] = {}
            for vertex, label in enumerate(labels):
                vertex_of.setdefault(label, vertex)
            self._kind, self.look_up, self.nbytes = "objects", partial(_find_objects, vertex_of), 0
            self._tuples_are_labels = True

    def __contains__(self, label: object) -> bool:
        return not self._holds_several(label) and bool(self.look_up([_plain(label)])[0] >= 0)

    def find(self, labels: Any) -> Any:
        """The vertex of a label, or an int64 array for several; UnknownLabelError where there is none."""
        several = self._holds_several(labels)
        values = _values(labels) if several else [_plain(labels)]
        found = self.look_up(values)
        if len(found) and found.min() < 0:
            raise self._unknown(values[int(np.argmin(found >= 0))])
        return found if several else int(found[0])

    def _holds_several(self, labels: object) -> bool:
        """Whether an object is a column of labels rather than one of them."""
        if isinstance(labels, tuple):
            return not self._tuples_are_labels
        if isinstance(labels, list | range | TextLabels):
            return True
        is_column = hasattr(labels, "__array__") and hasattr(labels, "__len__")
        return is_column and not isinstance(labels, str | bytes) and getattr(labels, "ndim", 1) > 0

    def _unknown(self, label: Any) -> UnknownLabelError:
        shown = repr(label.item() if isinstance(label, np.generic) else label)
        if len(shown) > SHOWN_CHARACTERS:
            shown = shown[: SHOWN_CHARACTERS - 1] + "…"
        return UnknownLabelError(
            f"{self._name}: no vertex has the label {shown}; there are {self._count:,} vertices, whose labels are "
            f"{self._kind}"
        )


def _plain(label: Any) -> Any:
    """One label; that of an array without dimensions."""
    return label.item() if isinstance(label, np.ndarray) else label


def _values(column: Any) -> Values:
    """The labels of a column of NumPy, pandas, Arrow, polars or plain Python."""
    if isinstance(column, TextLabels | list):
        return column
    if isinstance(column, tuple):
        return list(column)
    if _has_nulls(column):  # as an array, integers beside them would be fractions
        values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
        return values
    array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"labels of shape {array.shape}; pass them in one row")
    return array


def _has_nulls(column: Any) -> bool:
    """Whether a column of pandas, Arrow or polars has entries without a value."""
    if hasattr(type(column), "hasnans"):
        return bool(column.hasnans)
    nulls = getattr(column, "null_count", 0)
    return bool(nulls() if callable(nulls) else nulls)


def _find_in_range(labels: range, values: Values) -> Found:
    """Among vertices that are their own labels."""
    numbers, known = _integers(values)
    return np.where(known & (numbers >= 0) & (numbers < len(labels)), numbers, -1)


def _find_text(table: LabelTable, values: Values) -> Found:
    """Among text labels, in a table."""
    texts, known = _texts(values)
    return np.where(known, table.find(*texts.spans()), -1)


def _find_integers(ascending: NDArray[Any], order: Found, values: Values) -> Found:
    """Among integers in ascending order; `order` has their vertices, none where these ascend as well."""
    numbers, known = _integers(values)
    if not len(ascending):
        return np.full(len(numbers), -1)
    least, largest = int(ascending[0]), int(ascending[-1])
    known &= (numbers >= least) & (numbers <= largest)
    wanted = np.where(known, numbers, least).astype(ascending.dtype)
    positions = np.searchsorted(ascending, wanted)
    known &= ascending[positions] == wanted
    return np.where(known, order[positions] if len(order) else positions, -1)


def _find_objects(vertex_of: dict[Any, int], values: Values) -> Found:
    """Among labels of any hashable type, as NetworkX has them."""

    def vertex(label: Any) -> int:
        try:
            return vertex_of.get(label, -1)
        except TypeError:  # not hashable
            return -1

    listed = values if isinstance(values, list) else values.tolist()
    return np.array([vertex(label) for label in listed], np.int64)


def _integers(values: Values) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Values as integers, and which of them are integers of 64 bits."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        known = values <= np.iinfo(np.int64).max
        return np.where(known, values, 0).astype(np.int64), known
    if not isinstance(values, np.ndarray | TextLabels) and set(map(type, values)) == {int}:
        try:
            return np.array(values, np.int64), np.ones(len(values), np.bool_)
        except OverflowError:  # one of them is longer than 64 bits
            pass
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    numbers = [int(value) if _is_integer(value) else None for value in listed]
    known = np.array([number is not None for number in numbers], np.bool_)
    return np.array([number or 0 for number in numbers], np.int64), known


def _is_integer(value: Any) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and -(2**63) <= int(value) < 2**63


def _texts(values: Values) -> tuple[TextLabels, NDArray[np.bool_]]:
    """Values as text, and which of them are text."""
    if isinstance(values, TextLabels):
        return values, np.ones(len(values), np.bool_)
    listed = values if isinstance(values, list) else values.tolist()
    try:
        return TextLabels.of(listed), np.ones(len(listed), np.bool_)
    except InputError:  # not all of them are text
        encoded = [utf8(value) for value in listed]
    known = np.array([text is not None for text in encoded], np.bool_)
    return TextLabels.of_bytes([text or b"" for text in encoded]), known

"""Parse lines of two integers with NumPy: the parser of small files, which need not wait for a compiler.

It returns what `_text_kernel.parse_range` returns. Lines of the usual shape, ``digits separator digits``
and then the end or a separator, are found and folded all at once; any other line is looked at by
`_text_lines`, in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.read._text_lines import (
    BLANK,
    BLANKS,
    Fault,
    Row,
    RowFormat,
    begins_like_comment,
    inspect_integers,
    label_value,
)

Positions = NDArray[np.int64]

_TAB, _NEWLINE, _RETURN, _QUOTE, _BRACE = 9, 10, 13, 34, 123
_MAX_DIGITS = 18


def parse_range(
    text: NDArray[np.uint8],
    begin: Any,
    end: Any,
    delimiter: Any,
    line_limit: Any,
    width: Any,
    mask: Any,
    out: NDArray[Any],
) -> tuple[int, int, int, int, int]:
    """As `_text_kernel.parse_range`, same arguments and same answer."""
    if begin >= end:
        return 0, int(end), 0, 0, 0
    span = text[int(begin) : int(end)]
    if span[-1] != _NEWLINE:
        span = np.append(span, np.uint8(_NEWLINE))
    form = RowFormat(bytes([int(delimiter)]), width=int(width))
    begins, first_ends, second_ends, ends, usual, columns = _find_shape(span, form, int(line_limit))
    has_pair = usual.copy()
    labels = np.zeros((len(has_pair), 2), dtype=np.uint64)
    digits_begin, digits_end = np.stack((begins, first_ends + 1), 1), np.stack((first_ends, second_ends), 1)
    labels[has_pair] = _fold(span, digits_begin[has_pair], digits_end[has_pair])
    status, stop, comments = 0, len(has_pair), 0
    for number in np.flatnonzero(~usual).tolist():
        line = span[begins[number] : ends[number]].tobytes()
        row = inspect_integers(line, form)
        if isinstance(row, Fault) or len(line) > line_limit:
            status, stop = 2, number
            break
        if isinstance(row, Row):
            has_pair[number] = True
            labels[number] = label_value(row.source), label_value(row.target)
            columns = max(columns, row.width - 2)
        else:
            comments += begins_like_comment(line)
    too_large = np.flatnonzero((labels[:stop] > np.uint64(mask)).any(axis=1))
    if len(too_large):
        status, stop = 1, int(too_large[0])
    found = labels[:stop][has_pair[:stop]]
    out[: found.size] = found.reshape(-1)
    position = int(end) if status == 0 else int(begin) + int(begins[stop])
    return status, position, len(found), columns, comments


def _find_shape(
    span: NDArray[np.uint8], form: RowFormat, line_limit: int
) -> tuple[Positions, Positions, Positions, Positions, NDArray[np.bool_], int]:
    """Cut the lines of `span`, which ends with a newline, at the bytes that are no digits.

    Per line: where it starts, where its first two runs of digits end, where it ends, and whether that is all of it; the
    most columns that follow in such lines.
    """
    delimiter = form.delimiter[0]
    others = np.flatnonzero((span - np.uint8(48)) > 9)
    bytes_there = span[others]
    newlines = np.flatnonzero(bytes_there == _NEWLINE)
    ends = others[newlines]
    begins = np.concatenate(([0], ends[:-1] + 1))
    one = np.concatenate(([0], newlines[:-1] + 1))
    two = np.minimum(one + 1, len(others) - 1)
    first_ends, second_ends = others[one], others[two]
    first_digits, second_digits = first_ends - begins, second_ends - first_ends - 1
    separates = np.zeros(256, np.bool_)
    separates[[delimiter, _TAB if delimiter == BLANK[0] else delimiter]] = True
    decides = ((bytes_there == _RETURN) | (bytes_there == _QUOTE)).any()  # about the rest of a line
    has_columns = separates[bytes_there[two]] & ~decides
    usual = separates[bytes_there[one]]
    usual &= has_columns | (second_ends == ends) | ((bytes_there[two] == _RETURN) & (second_ends + 1 == ends))
    usual &= (first_digits > 0) & (first_digits <= _MAX_DIGITS)
    usual &= (second_digits > 0) & (second_digits <= _MAX_DIGITS)
    usual &= ends - begins <= line_limit
    columns = np.zeros(len(ends), np.int64)
    if has_columns.any():
        columns = _count_columns(span, second_ends, np.where(has_columns, ends, second_ends), delimiter)
    if form.width:
        usual &= columns + 2 == form.width
    return begins, first_ends, second_ends, ends, usual, int(columns[usual].max(initial=0))


def _count_columns(span: NDArray[np.uint8], begins: Positions, ends: Positions, delimiter: int) -> Positions:
    """The columns in each of the ranges that are not empty: these start with a separator."""
    if delimiter == BLANK[0]:
        blank = np.zeros(len(span), np.bool_)
        for byte in BLANKS:
            blank |= span == byte
        marks = np.flatnonzero(blank[:-1] & ~blank[1:] & (span[1:] != _NEWLINE))
        dictionaries = np.flatnonzero(blank[:-1] & (span[1:] == _BRACE)) + 1
        ends = np.minimum(ends, np.append(dictionaries, len(span))[np.searchsorted(dictionaries, begins)])
    else:
        marks = np.flatnonzero(span == delimiter)
    return np.searchsorted(marks, ends) - np.searchsorted(marks, begins)


def _fold(span: NDArray[np.uint8], begins: Positions, ends: Positions) -> NDArray[np.uint64]:
    """The values of runs of at most 18 digits."""
    values = np.zeros(begins.shape, dtype=np.uint64)
    for digit in range(int((ends - begins).max(initial=0))):
        at = ends - 1 - digit
        inside = at >= begins
        digits = np.where(inside, span[np.maximum(at, 0)] - np.uint8(48), 0)
        values += digits.astype(np.uint64) * np.uint64(10**digit)
    return values

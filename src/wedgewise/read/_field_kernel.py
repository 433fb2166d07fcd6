"""Find the columns of rows that are read: the compiled kernels for text labels, chosen columns and weights.

What   `find_fields` writes where the labels and the weight of every row of ``text[begin:end]`` are; the others make
       numbers of such fields.
Input  As in `_text_kernel`: ``begin`` and ``end`` lie just behind a newline, or at the ends of the text.
Rules  Those of `_text_lines.inspect_row`. A line that needs more than a look at its bytes (doubled quotes, a fault)
       stops the kernel, which returns where it starts: `_text_lines` reads it, or says what is wrong with it.
Memory 24 bytes per row for two labels, 12 more for a weight, of one chunk at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.jit import helper, kernel
from wedgewise.read._text_kernel import (
    PARSED,
    REFUSED,
    TOO_LARGE,
    after_returns,
    ends_line,
    fits,
    is_blank,
    line_end,
    long_label,
    marks_comment,
    quoted_field,
    skip_blanks,
)

Positions = NDArray[np.uint64]
Lengths = NDArray[np.uint32]


class Fields(NamedTuple):
    """Where fields begin in a text, and how long they are."""

    begins: Positions
    lengths: Lengths


class RowForm(NamedTuple):
    """What separates columns, how long a line may be, and the columns of the header; 0 without one."""

    delimiter: np.uint8
    line_limit: np.uint64
    header_width: np.uint64


_SPACE, _QUOTE, _BRACE = np.uint8(32), np.uint8(34), np.uint8(123)
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_TEN, _MAX_MANTISSA = np.uint64(10), np.uint64(2**53)
_MAX_POWER = 22  # 10^22 is the largest power of ten that a double holds exactly
_POWERS = np.array([10.0**k for k in range(_MAX_POWER + 1)])


@helper
def _plain_field(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any, may_be_dictionary: Any) -> Any:
    """Where the field at `at` ends without the blanks behind it, and what follows these."""
    stop, behind = at, at
    is_dictionary = may_be_dictionary and at < end and text[at] == _BRACE
    while behind < end and not ends_line(text[behind]):
        byte = text[behind]
        if not is_dictionary and (byte == delimiter or (delimiter == _SPACE and is_blank(byte, delimiter))):
            break
        behind += _ONE
        if not is_blank(byte, delimiter):
            stop = behind
    if delimiter == _SPACE:
        behind = skip_blanks(text, behind, end, delimiter)
    return stop, behind


@kernel
def find_fields(
    text: NDArray[np.uint8],
    begin: Any,
    end: Any,
    form: RowForm,
    columns: Positions,
    labels: Fields,
    weights: Fields,
) -> tuple[Any, Any, Any, Any, Any]:
    """Write where the labels of the rows in ``text[begin:end]`` are, and of their weights, if an array is given.

    `columns` has the positions of source, target and weight; the last one means nothing without such an array.
    `labels` holds two per line.

    Returns ``(status, position, rows, width, comments)``: where the first line starts that was not accepted, the rows
    before it, the most columns of one of them, and the comments.
    """
    source, target, weight = columns[_ZERO], columns[_ONE], columns[_TWO]
    delimiter, line_limit, header_width = form
    begins, lengths = labels
    weight_begins, weight_lengths = weights
    marks_may_be_labels = header_width > _ZERO and delimiter != _SPACE
    weighs = len(weight_begins) > 0
    needed = max(source, target)
    if weighs:
        needed = max(needed, weight)
    rows, width, comments = _ZERO, _ZERO, _ZERO
    at = begin
    while at < end:
        line = at
        first = skip_blanks(text, at, end, _SPACE)
        is_marked = first < end and marks_comment(text[first])
        is_row = first < end and not ends_line(text[first]) and (marks_may_be_labels or not is_marked)
        if is_row:
            column = _ZERO
            while True:
                at = skip_blanks(text, at, end, delimiter)
                if at < end and text[at] == _QUOTE:
                    field = at + _ONE
                    stop, at, is_doubled = quoted_field(text, field, end, delimiter)
                    if is_doubled or at > end:
                        return REFUSED, line, rows, width, comments
                else:
                    field = at
                    stop, at = _plain_field(text, field, end, delimiter, delimiter == _SPACE and column >= _TWO)
                if column == source:
                    begins[_TWO * rows] = field
                    lengths[_TWO * rows] = stop - field
                if column == target:
                    begins[_TWO * rows + _ONE] = field
                    lengths[_TWO * rows + _ONE] = stop - field
                if weighs and column == weight:
                    weight_begins[rows] = field
                    weight_lengths[rows] = stop - field
                column += _ONE
                if at >= end or ends_line(text[at]):
                    break
                if delimiter != _SPACE:
                    at += _ONE
            is_whole = column > needed and fits(text, line, at, delimiter, column, header_width)
            if is_marked:
                is_row = is_whole
            if is_row:
                if not is_whole or lengths[_TWO * rows] == 0 or lengths[_TWO * rows + _ONE] == 0:
                    return REFUSED, line, rows, width, comments
                if weighs and weight_lengths[rows] == 0:
                    return REFUSED, line, rows, width, comments
                width = max(width, column)
        else:
            at = line_end(text, at, end)
        at = after_returns(text, at, end)
        if at > end or at - line > line_limit:
            return REFUSED, line, rows, width, comments
        if is_row:
            rows += _ONE
        elif is_marked:
            comments += _ONE
        at += _ONE
    return PARSED, end, rows, width, comments


@kernel
def integers_of_fields(
    text: NDArray[np.uint8], begins: Positions, lengths: Lengths, mask: Any, out: NDArray[Any]
) -> tuple[Any, Any]:
    """Write the integers that fields are; the first that is none, or exceeds `mask`, stops it: a status, and which."""
    for i in range(np.uint64(len(begins))):
        end = begins[i] + np.uint64(lengths[i])
        value, stop = long_label(text, begins[i], end)
        if stop != end:
            return REFUSED, i
        if value > mask:
            return TOO_LARGE, i
        out[i] = value
    return PARSED, np.uint64(len(begins))


@kernel
def weights_of_fields(text: NDArray[np.uint8], begins: Positions, lengths: Lengths, out: NDArray[np.float64]) -> Any:
    """Write the numbers that fields are, and NaN for those whose nearest double takes more than one operation to find.

    Digits below 2^53 times a power of ten up to 10^22 are exact before the one rounding of that operation.
    """
    left = _ZERO
    for i in range(np.uint64(len(begins))):
        at = begins[i]
        end = at + np.uint64(lengths[i])
        negative = text[at] == 45
        if negative:
            at += _ONE
        mantissa, digits, power = _ZERO, 0, 0
        seen_point = False
        while at < end and mantissa < _MAX_MANTISSA:
            byte = text[at]
            if byte >= 48 and byte <= 57:
                mantissa = mantissa * _TEN + np.uint64(byte - np.uint8(48))
                digits += 1
                if seen_point:
                    power += 1
            elif byte == 46 and not seen_point:
                seen_point = True
            else:
                break
            at += _ONE
        if at != end or digits == 0 or mantissa > _MAX_MANTISSA or power > _MAX_POWER:
            out[i] = np.nan
            left += _ONE
        else:
            value = np.float64(mantissa) / _POWERS[power]
            out[i] = -value if negative else value
    return left

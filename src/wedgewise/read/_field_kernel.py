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
from wedgewise.read._text_kernel import PARSED, REFUSED, TOO_LARGE, ends_line, long_label

Spans = NDArray[np.uint64]
Lengths = NDArray[np.uint32]


class Fields(NamedTuple):
    """Where fields begin in a text, and how long they are."""

    begins: Spans
    lengths: Lengths


_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE = np.uint8(9), np.uint8(10), np.uint8(13), np.uint8(32), np.uint8(34)
_COMMA, _SEMICOLON = np.uint8(44), np.uint8(59)
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_TEN, _MOST_MANTISSA = np.uint64(10), np.uint64(2**53)
_MOST_POWER = 22  # 10^22 is the largest power of ten that a double holds exactly
_POWERS = np.array([10.0**k for k in range(_MOST_POWER + 1)])


@helper
def _is_blank(byte: Any, delimiter: Any) -> Any:
    """Whether a byte only surrounds columns: a tab is no blank where it separates them."""
    return byte == 32 or byte == 11 or byte == 12 or (byte == 9 and delimiter != _TAB)


@helper
def _skip_blanks(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    while at < end and _is_blank(text[at], delimiter):
        at += _ONE
    return at


@helper
def _quoted_field(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """Where the quoted field that opens before `at` ends, and what follows it; behind `end` when it is not plain."""
    stop = at
    while stop < end and text[stop] != _QUOTE and not ends_line(text[stop]):
        stop += _ONE
    behind = _skip_blanks(text, stop + _ONE, end, delimiter)
    if stop == end or text[stop] != _QUOTE:
        return stop, end + _ONE
    if behind < end and text[behind] != delimiter and not ends_line(text[behind]):
        return stop, end + _ONE
    return stop, behind


@helper
def _plain_field(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """Where the field at `at` ends without the blanks behind it, and what follows these."""
    stop, behind = at, at
    while behind < end and not ends_line(text[behind]):
        byte = text[behind]
        if byte == delimiter or (delimiter == _SPACE and _is_blank(byte, delimiter)):
            break
        behind += _ONE
        if not _is_blank(byte, delimiter):
            stop = behind
    if delimiter == _SPACE:
        behind = _skip_blanks(text, behind, end, delimiter)
    return stop, behind


@kernel
def find_fields(
    text: NDArray[np.uint8],
    begin: Any,
    end: Any,
    delimiter: Any,
    line_limit: Any,
    columns: Spans,
    labels: Fields,
    weights: Fields,
) -> tuple[Any, Any, Any, Any]:
    """Write where the labels of the rows in ``text[begin:end]`` are, and their weights where there is room for these.

    `columns` has the positions of source, target and weight; the last one means nothing without room for weights.
    `labels` has room for two per line.

    Returns ``(status, position, rows, width)``: where the first line starts that was not accepted, the rows before it,
    and the most columns of one of them.
    """
    source, target, weight = columns[_ZERO], columns[_ONE], columns[_TWO]
    begins, lengths = labels
    weight_begins, weight_lengths = weights
    has_quotes = delimiter in (_COMMA, _SEMICOLON)
    weighs = len(weight_begins) > 0
    needed = max(source, target)
    if weighs:
        needed = max(needed, weight)
    rows, width = _ZERO, _ZERO
    at = begin
    while at < end:
        line = at
        first = at
        while first < end and (text[first] == 32 or text[first] == 9 or text[first] == 11 or text[first] == 12):
            first += _ONE
        is_row = first < end and not ends_line(text[first]) and text[first] != 35 and text[first] != 37
        if is_row:
            column = _ZERO
            while True:
                at = _skip_blanks(text, at, end, delimiter)
                if has_quotes and at < end and text[at] == _QUOTE:
                    field = at + _ONE
                    stop, at = _quoted_field(text, field, end, delimiter)
                    if at > end:
                        return REFUSED, line, rows, width
                else:
                    field = at
                    stop, at = _plain_field(text, field, end, delimiter)
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
            if column <= needed:
                return REFUSED, line, rows, width
            if lengths[_TWO * rows] == 0 or lengths[_TWO * rows + _ONE] == 0:
                return REFUSED, line, rows, width
            if weighs and weight_lengths[rows] == 0:
                return REFUSED, line, rows, width
            width = max(width, column)
        else:
            while at < end and not ends_line(text[at]):
                at += _ONE
        while at < end and text[at] == _RETURN:
            at += _ONE
        if (at < end and text[at] != _NEWLINE) or at - line > line_limit:
            return REFUSED, line, rows, width
        if is_row:
            rows += _ONE
        at += _ONE
    return PARSED, end, rows, width


@kernel
def integers_of_fields(
    text: NDArray[np.uint8], begins: Spans, lengths: Lengths, mask: Any, out: NDArray[Any]
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
def weights_of_fields(text: NDArray[np.uint8], begins: Spans, lengths: Lengths, out: NDArray[np.float64]) -> Any:
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
        while at < end and mantissa < _MOST_MANTISSA:
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
        if at != end or digits == 0 or mantissa > _MOST_MANTISSA or power > _MOST_POWER:
            out[i] = np.nan
            left += _ONE
        else:
            value = np.float64(mantissa) / _POWERS[power]
            out[i] = -value if negative else value
    return left

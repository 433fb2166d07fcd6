"""Parse lines of two integers: the one compiled kernel of the text reader.

What   Read every line that starts in ``text[begin:end]``; write two labels per pair.
Input  ``begin`` and ``end`` lie just behind a newline, or at the start or the end of the text.
       Inside a line only where that line is over the limit and refused in the range it begins in.
Width  Below a header with ``width`` columns (0 without one), every row has as many; more only where they are empty.
Idea   A label is read eight bytes at a time: the first byte that is no digit is found by arithmetic on the
       whole word (no branch per digit), the digits are shifted to the top and folded into a number by three
       multiplications. Lines that are not ``digits separator digits newline`` (comments, blanks, extra
       columns, more than 15 digits, the last lines of the text) take a loop over bytes, with the same rules.
Errors The kernel stops at the first line it cannot accept and returns where that line starts; `_text_lines`
       says why, or reads it, where its labels are in quotes or it may be a comment. No sum or product wraps around,
       so the kernel also runs as plain Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import popcount

PARSED, TOO_LARGE, REFUSED = np.uint64(0), np.uint64(1), np.uint64(2)
_NO_PAIR, _PAIR, _BAD = np.uint64(0), np.uint64(1), np.uint64(2)

_READ_AHEAD = 64  # bytes of a line that the word loop may touch: 2 labels of at most 24, separator, line end
_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE = np.uint8(9), np.uint8(10), np.uint8(13), np.uint8(32), np.uint8(34)
_HASH, _PERCENT, _BRACE = np.uint8(35), np.uint8(37), np.uint8(123)
_ZERO, _ONE, _TWO, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(8)
_TEN, _MAX_TENTH, _MAX_LABEL = np.uint64(10), np.uint64((2**63 - 1) // 10), np.uint64(2**63 - 1)
_ASCII_ZEROS = np.uint64(0x3030303030303030)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_HIGH_BITS = np.uint64(0x8080808080808080)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_POWERS = np.array([10**k for k in range(9)], dtype=np.uint64)


@helper
def _word_at(text: NDArray[np.uint8], at: Any) -> Any:
    """Eight bytes, the first one lowest; the compiler makes one unaligned load of it."""
    return (
        np.uint64(text[at])
        | np.uint64(text[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(text[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(text[at + np.uint64(3)]) << np.uint64(24)
        | np.uint64(text[at + np.uint64(4)]) << np.uint64(32)
        | np.uint64(text[at + np.uint64(5)]) << np.uint64(40)
        | np.uint64(text[at + np.uint64(6)]) << np.uint64(48)
        | np.uint64(text[at + np.uint64(7)]) << np.uint64(56)
    )


@helper
def _leading_digits(word: Any) -> Any:
    """How many of the eight bytes, from the lowest, are digits."""
    offset = word ^ _ASCII_ZEROS
    others = (((offset & _LOW_BITS) + _ABOVE_NINE) | offset) & _HIGH_BITS
    if others == _ZERO:
        return _EIGHT
    return np.uint64(popcount((others - _ONE) & ~others)) >> np.uint64(3)


@helper
def _number(word: Any, digits: Any) -> Any:
    """The value of the lowest `digits` bytes, 1 to 8: neighbours are folded as 2, 4, then 8 digits."""
    ones = (word ^ _ASCII_ZEROS) << (np.uint64(64) - (digits << np.uint64(3)))
    pairs = (ones * np.uint64(10) + (ones >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (fours * np.uint64(10000) + (fours >> np.uint64(32))) & np.uint64(0x00000000FFFFFFFF)


@helper
def _short_label(text: NDArray[np.uint8], at: Any) -> Any:
    """The label at `at` and where it ends; where it begins when it has no digit or more than 15."""
    word = _word_at(text, at)
    digits = _leading_digits(word)
    value = _number(word, digits)
    if digits < _EIGHT:
        return value, at + digits
    word = _word_at(text, at + _EIGHT)
    digits = _leading_digits(word)
    if digits == _EIGHT:
        return value, at
    if digits > _ZERO:
        value = value * _POWERS[digits] + _number(word, digits)
    return value, at + _EIGHT + digits


@helper
def long_label(text: NDArray[np.uint8], at: Any, end: Any) -> Any:
    """The label at `at` and where it ends; where it begins when it has no digit or exceeds 2^63 - 1."""
    value = _ZERO
    begin = at
    while at < end and text[at] >= 48 and text[at] <= 57:
        if value > _MAX_TENTH:
            return value, begin
        value = value * _TEN + np.uint64(text[at] - np.uint8(48))
        at += _ONE
    if value > _MAX_LABEL:
        return value, begin
    return value, at


@helper
def is_blank(byte: Any, delimiter: Any) -> Any:
    """Whether a byte only surrounds columns: a tab is no blank where it separates them."""
    return byte <= 32 and (byte == 32 or byte == 11 or byte == 12 or (byte == 9 and delimiter != _TAB))


@helper
def skip_blanks(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """The first position from `at` on that is no blank."""
    while at < end and is_blank(text[at], delimiter):
        at += _ONE
    return at


@helper
def marks_comment(byte: Any) -> Any:
    """Whether a line that begins with this byte is a comment, if it is no row."""
    return byte in (_HASH, _PERCENT)


@helper
def is_padded(text: NDArray[np.uint8], line: Any, at: Any, delimiter: Any, columns: Any) -> Any:
    """Whether the last `columns` columns of the line from `line` to `at` are empty."""
    while columns > _ZERO and at > line:
        at -= _ONE
        if text[at] == delimiter:
            columns -= _ONE
        elif not is_blank(text[at], delimiter) and text[at] != _RETURN:
            return False
    return columns == _ZERO


@helper
def fits(text: NDArray[np.uint8], line: Any, at: Any, delimiter: Any, columns: Any, width: Any) -> Any:
    """Whether the line from `line` to `at`, of so many columns, is a row below a header of `width`."""
    if columns == width or width == _ZERO:
        return True
    return columns > width and delimiter != _SPACE and is_padded(text, line, at, delimiter, columns - width)


@helper
def _read_labels(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """Outcome, both labels, and the position behind them (behind the blanks of a line without labels)."""
    first_byte = skip_blanks(text, at, end, _SPACE)
    if first_byte == end or ends_line(text[first_byte]) or marks_comment(text[first_byte]):
        return _NO_PAIR, _ZERO, _ZERO, first_byte
    at = skip_blanks(text, at, end, delimiter)
    first, middle = long_label(text, at, end)
    gap = skip_blanks(text, middle, end, delimiter)
    if delimiter == _SPACE:
        separated = gap > middle
    else:
        separated = gap < end and text[gap] == delimiter
        gap = skip_blanks(text, gap + _ONE, end, delimiter)
    if middle == at or not separated or gap >= end:
        return _BAD, _ZERO, _ZERO, at
    second, behind = long_label(text, gap, end)
    if behind == gap:
        return _BAD, _ZERO, _ZERO, at
    return _PAIR, first, second, behind


@helper
def _finish_line(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """How many columns follow, and where the line ends; behind `end` when it cannot end so."""
    rest = skip_blanks(text, at, end, delimiter)
    if rest < end and not ends_line(text[rest]) and text[rest] != delimiter and (delimiter != _SPACE or rest == at):
        return _ZERO, end + _ONE
    if delimiter == _SPACE:
        columns, rest = _columns_between_blanks(text, rest, end)
    else:
        columns, rest = _columns_behind_marks(text, rest, end, delimiter)
    return columns, after_returns(text, rest, end) if rest <= end else rest


@helper
def _columns_behind_marks(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """How many columns there are up to the end of the line, each behind a delimiter, and where that is."""
    columns = _ZERO
    while at < end and not ends_line(text[at]):
        if text[at] == delimiter:
            columns += _ONE
            quote = skip_blanks(text, at + _ONE, end, delimiter)
            if quote < end and text[quote] == _QUOTE:
                _, at, _ = quoted_field(text, quote + _ONE, end, delimiter)
                continue
        at += _ONE
    return columns, at


@helper
def _columns_between_blanks(text: NDArray[np.uint8], at: Any, end: Any) -> Any:
    """How many columns there are up to the end of the line, the first at `at`, and where that is."""
    columns, is_begin = _ZERO, True
    while at < end and not ends_line(text[at]):
        blank = is_blank(text[at], _SPACE)
        if is_begin and not blank:
            columns += _ONE
            if text[at] == _QUOTE:
                _, at, _ = quoted_field(text, at + _ONE, end, _SPACE)
                continue
            if text[at] == _BRACE:
                return columns, line_end(text, at, end)
        is_begin = blank
        at += _ONE
    return columns, at


@helper
def quoted_field(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """Where the column ends whose quote opens before `at`, what follows it, and whether it holds doubled quotes.

    What follows is behind `end` when the column does not close in its line.
    """
    is_doubled = False
    while at < end and not ends_line(text[at]):
        if text[at] != _QUOTE:
            at += _ONE
        elif at + _ONE < end and text[at + _ONE] == _QUOTE:
            is_doubled = True
            at += _TWO
        else:
            behind = skip_blanks(text, at + _ONE, end, delimiter)
            is_apart = delimiter == _SPACE and behind > at + _ONE
            if is_apart or behind == end or text[behind] == delimiter or ends_line(text[behind]):
                return at, behind, is_doubled
            break
    return at, end + _ONE, is_doubled


@helper
def ends_line(byte: Any) -> Any:
    """Whether a byte ends a line, or begins its end."""
    return byte in (_NEWLINE, _RETURN)


@helper
def after_returns(text: NDArray[np.uint8], at: Any, end: Any) -> Any:
    """Where the line ends if only carriage returns are left of it; behind `end` otherwise."""
    while at < end and text[at] == _RETURN:
        at += _ONE
    if at == end or text[at] == _NEWLINE:
        return at
    return end + _ONE


@helper
def line_end(text: NDArray[np.uint8], at: Any, end: Any) -> Any:
    """The first position from `at` on that ends a line, or begins its end."""
    while at < end and not ends_line(text[at]):
        at += _ONE
    return at


@kernel
def parse_range(
    text: NDArray[np.uint8],
    begin: Any,
    end: Any,
    delimiter: Any,
    line_limit: Any,
    width: Any,
    mask: Any,
    out: NDArray[Any],
) -> tuple[Any, Any, Any, Any, Any]:
    """Write the pairs of the lines in ``text[begin:end]`` to `out`, which holds two labels per line.

    Positions, `line_limit` in bytes, `width` and `mask` are uint64; `mask` is the largest label, 2^32 - 1 or 2^63 - 1.
    `delimiter` is the uint8 of a comma, semicolon or tab, or of a space for any run of blanks.

    Returns ``(status, position, pairs, columns, comments)``: where the first line starts that was not accepted, the
    pairs written before it, the most columns ignored in one line, and the comments.
    """
    fast_limit = line_limit if width in (_ZERO, _TWO) else _ZERO
    also = _TAB if delimiter == _SPACE else delimiter
    last_fast = np.uint64(max(text.size, _READ_AHEAD) - _READ_AHEAD)
    pairs, columns, comments = _ZERO, _ZERO, _ZERO
    at = begin
    while at < end:
        line = at
        first, second, outcome = _ZERO, _ZERO, _BAD
        if line < last_fast:
            first, middle = _short_label(text, line)
            if middle > line and (text[middle] == delimiter or text[middle] == also):
                second, at = _short_label(text, middle + _ONE)
                if at > middle + _ONE:
                    if text[at] == _NEWLINE and at - line <= fast_limit and (first | second) <= mask:
                        out[_TWO * pairs] = first
                        out[_TWO * pairs + _ONE] = second
                        pairs += _ONE
                        at += _ONE
                        continue
                    outcome = _PAIR
        if outcome != _PAIR:
            outcome, first, second, at = _read_labels(text, line, end, delimiter)
            if outcome == _BAD:
                return REFUSED, line, pairs, columns, comments
        if outcome == _PAIR:
            ignored, at = _finish_line(text, at, end, delimiter)
            if at <= end and not fits(text, line, at, delimiter, ignored + _TWO, width):
                return REFUSED, line, pairs, columns, comments
            columns = max(columns, ignored)
        else:
            if at < end and marks_comment(text[at]):
                if width > _ZERO and delimiter != _SPACE:
                    return REFUSED, line, pairs, columns, comments
                comments += _ONE
            at = after_returns(text, line_end(text, at, end), end)
        if at > end or at - line > line_limit:
            return REFUSED, line, pairs, columns, comments
        at += _ONE
        if outcome == _PAIR:
            if (first | second) > mask:
                return TOO_LARGE, line, pairs, columns, comments
            out[_TWO * pairs] = first
            out[_TWO * pairs + _ONE] = second
            pairs += _ONE
    return PARSED, end, pairs, columns, comments

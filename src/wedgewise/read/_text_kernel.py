"""Parse lines of two integers: the one compiled kernel of the text reader.

What   Read every line that starts in ``text[begin:end]``; write two labels per pair.
Input  ``begin`` and ``end`` lie just behind a newline, or at the start or the end of the text.
       Inside a line only where that line is over the limit and refused in the range it begins in.
Idea   A label is read eight bytes at a time: the first byte that is no digit is found by arithmetic on the
       whole word (no branch per digit), the digits are shifted to the top and folded into a number by three
       multiplications. Lines that are not ``digits separator digits newline`` (comments, blanks, extra
       columns, more than 15 digits, the last lines of the text) take a loop over bytes, with the same rules.
Errors The kernel stops at the first line it cannot accept and returns where that line starts; `_text_lines`
       says why, or reads it, where its labels are in quotes. No sum or product wraps around, so the kernel also runs
       as plain Python.
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
def _skip_blanks(text: NDArray[np.uint8], at: Any, end: Any) -> Any:
    """The first position from `at` on that is no space, tab, vertical tab or form feed."""
    while at < end and (text[at] == 32 or text[at] == 9 or text[at] == 11 or text[at] == 12):
        at += _ONE
    return at


@helper
def _read_labels(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """Outcome, both labels, and the position behind them (behind the blanks of a line without labels)."""
    at = _skip_blanks(text, at, end)
    if at == end or text[at] == _NEWLINE or text[at] == _RETURN or text[at] == 35 or text[at] == 37:
        return _NO_PAIR, _ZERO, _ZERO, at
    first, middle = long_label(text, at, end)
    gap = _skip_blanks(text, middle, end)
    if delimiter == _SPACE:
        separated = gap > middle
    else:
        separated = gap < end and text[gap] == delimiter
        gap = _skip_blanks(text, gap + _ONE, end)
    if middle == at or not separated or gap >= end:
        return _BAD, _ZERO, _ZERO, at
    second, behind = long_label(text, gap, end)
    if behind == gap:
        return _BAD, _ZERO, _ZERO, at
    return _PAIR, first, second, behind


@helper
def _finish_line(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """How many columns follow, and where the line ends; behind `end` when it cannot end so."""
    columns = _ZERO
    rest = _skip_blanks(text, at, end)
    if rest < end and text[rest] != _NEWLINE and text[rest] != _RETURN:
        if delimiter == _SPACE:
            if rest == at:
                return columns, end + _ONE
        elif text[rest] != delimiter:
            return columns, end + _ONE
    between = True
    while rest < end and not ends_line(text[rest]):
        byte = text[rest]
        if delimiter != _SPACE:
            if byte == delimiter:
                columns += _ONE
                quote = _skip_blanks(text, rest + _ONE, end)
                if quote < end and text[quote] == _QUOTE:
                    rest = _behind_quoted(text, quote, end, delimiter)
                    continue
        else:
            blank = byte == 32 or byte == 9 or byte == 11 or byte == 12
            columns += np.uint64(between and not blank)
            between = blank
        rest += _ONE
    return columns, _after_returns(text, rest, end) if rest <= end else rest


@helper
def _behind_quoted(text: NDArray[np.uint8], at: Any, end: Any, delimiter: Any) -> Any:
    """Where the column ends that opens with the quote at `at`; behind `end` when it does not close in its line."""
    at += _ONE
    while at < end and not ends_line(text[at]):
        if text[at] != _QUOTE:
            at += _ONE
        elif at + _ONE < end and text[at + _ONE] == _QUOTE:
            at += _TWO
        else:
            at = _skip_blanks(text, at + _ONE, end)
            if at == end or text[at] == delimiter or ends_line(text[at]):
                return at
            return end + _ONE
    return end + _ONE


@helper
def ends_line(byte: Any) -> Any:
    """Whether a byte ends a line, or begins its end."""
    return byte in (_NEWLINE, _RETURN)


@helper
def _after_returns(text: NDArray[np.uint8], at: Any, end: Any) -> Any:
    """Where the line ends if only carriage returns are left of it; behind `end` otherwise."""
    while at < end and text[at] == _RETURN:
        at += _ONE
    if at == end or text[at] == _NEWLINE:
        return at
    return end + _ONE


@helper
def _skip_line(text: NDArray[np.uint8], at: Any, end: Any) -> Any:
    """Where a blank line or a comment ends; behind `end` when a carriage return stands inside it."""
    while at < end and text[at] != _NEWLINE and text[at] != _RETURN:
        at += _ONE
    return _after_returns(text, at, end)


@kernel
def parse_range(
    text: NDArray[np.uint8],
    begin: Any,
    end: Any,
    delimiter: Any,
    line_limit: Any,
    mask: Any,
    out: NDArray[Any],
) -> tuple[Any, Any, Any, Any]:
    """Write the pairs of the lines in ``text[begin:end]`` to `out`, which has room for two labels per line.

    Positions, `line_limit` in bytes and `mask` are uint64; `mask` is the largest label, 2^32 - 1 or 2^63 - 1.
    `delimiter` is the uint8 of a comma or semicolon, or of a space for any run of blanks.

    Returns ``(status, position, pairs, columns)``: where the first line starts that was not accepted, the
    pairs written before it and the most columns ignored in one line.
    """
    also = _TAB if delimiter == _SPACE else delimiter
    last_fast = np.uint64(max(text.size, _READ_AHEAD) - _READ_AHEAD)
    pairs, columns = _ZERO, _ZERO
    at = begin
    while at < end:
        line = at
        first, second, outcome = _ZERO, _ZERO, _BAD
        if line < last_fast:
            first, middle = _short_label(text, line)
            if middle > line and (text[middle] == delimiter or text[middle] == also):
                second, at = _short_label(text, middle + _ONE)
                if at > middle + _ONE:
                    if text[at] == _NEWLINE and at - line <= line_limit and (first | second) <= mask:
                        out[_TWO * pairs] = first
                        out[_TWO * pairs + _ONE] = second
                        pairs += _ONE
                        at += _ONE
                        continue
                    outcome = _PAIR
        if outcome != _PAIR:
            outcome, first, second, at = _read_labels(text, line, end, delimiter)
            if outcome == _BAD:
                return REFUSED, line, pairs, columns
        if outcome == _PAIR:
            ignored, at = _finish_line(text, at, end, delimiter)
            columns = max(columns, ignored)
        else:
            at = _skip_line(text, at, end)
        if at > end or at - line > line_limit:
            return REFUSED, line, pairs, columns
        at += _ONE
        if outcome == _PAIR:
            if (first | second) > mask:
                return TOO_LARGE, line, pairs, columns
            out[_TWO * pairs] = first
            out[_TWO * pairs + _ONE] = second
            pairs += _ONE
    return PARSED, end, pairs, columns

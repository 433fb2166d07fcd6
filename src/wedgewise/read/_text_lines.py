"""What a line of an edge list is: the rules, in plain Python, one line at a time.

The parsers of `_text_kernel` and `_text_arrays` accept no line that `inspect_integers` refuses, and those of
`_field_kernel` none that `inspect_row` refuses; a line at which they stop is looked at here, and so are the first lines
of a file.

* A line ends with ``\\n``, with carriage returns before it or not. Blanks are space, tab, vertical tab, form
  feed.
* A line without anything but blanks is skipped, and so is a comment: ``#`` or ``%`` as the first byte that is
  no blank.
* Every other line is a row: two of its columns are labels, one may be a weight, the others are counted and not looked
  at.
* Columns are separated by a run of blanks, or by one comma, semicolon or tab with blanks around it.
* Between commas and semicolons, a column that begins with a double quote is unquoted (``""`` is a quote, blanks stay).
  It cannot contain a line end: what looks like a row may be the middle of one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite, nan
from typing import Literal, NamedTuple, NoReturn

from wedgewise.errors import FormatError
from wedgewise.read.columns import FIRST_TWO, Ends
from wedgewise.stages.limits import MAX_LABEL, Limits

BLANKS = b" \t\x0b\x0c"
COMMENT_MARKS = b"#%"
BLANK, COMMA, SEMICOLON, TAB = b" ", b",", b";", b"\t"

_COLUMN = {  # in quotes or not, and what separates it from the next one
    mark: re.compile(rb'[ \t\x0b\x0c]*+(?:"((?:[^"]|"")*+)"[ \t\x0b\x0c]*|(?!")([^%s]*))(%s|\Z)' % (mark, mark))
    for mark in (COMMA, SEMICOLON)
}

LabelKind = Literal["int", "text"]

_TO_NEWLINES = "convert the line ends to \\n or \\r\\n (for instance with tr '\\r' '\\n')"
_AS_TEXT = 'read it with labels="text" (--labels text) if labels are names'


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a line is refused."""

    reason: str
    text: str
    remedy: str

    def raise_at(self, path: str, line: int) -> NoReturn:
        """Raise the FormatError of this fault."""
        raise FormatError(self.reason, path=path, line=line, text=self.text, remedy=self.remedy)


class Row(NamedTuple):
    """Two labels of one line, its weight where one is read, and how many columns it has."""

    source: bytes
    target: bytes
    weight: bytes | None
    width: int


def content_of(line: bytes, delimiter: bytes = BLANK) -> bytes | Fault:
    """The line without blanks and carriage returns at its ends; empty for a comment or a blank line.

    A tab that separates columns stays: the first column may be empty.
    """
    content = line.rstrip(b"\r")
    if b"\r" in content:
        return Fault("carriage return inside a line", shown(content), _TO_NEWLINES)
    kept = content.strip(BLANKS.replace(delimiter, b"") if delimiter == TAB else BLANKS)
    return b"" if content.strip(BLANKS)[:1] in (b"", b"#", b"%") else kept


def split(content: bytes, delimiter: bytes) -> list[bytes]:
    """The columns of a line; quotes have no meaning."""
    if delimiter == BLANK:
        return content.split()
    return [column.strip(BLANKS) for column in content.split(delimiter)]


def split_quoted(content: bytes, delimiter: bytes) -> list[bytes] | Fault:
    """The columns of a line, unquoted where the separator allows quotes."""
    if b'"' not in content or delimiter not in _COLUMN:
        return split(content, delimiter)
    columns, at, separator = list[bytes](), 0, delimiter
    while separator:
        column = _COLUMN[delimiter].match(content, at)
        if column is None:
            return Fault(
                "quotes do not match",
                shown(content),
                "close every quote in its line and double those inside; line ends inside quotes are not read",
            )
        quoted, plain, separator = column.groups()
        columns.append(plain.strip(BLANKS) if quoted is None else quoted.replace(b'""', b'"'))
        at = column.end()
    return columns


def inspect_row(line: bytes, delimiter: bytes, ends: Ends) -> Row | Fault | None:
    """The row of a line, what is wrong with it, or None for a line without labels.

    NUL and invalid UTF-8 are left to `text_fault`.
    """
    content = content_of(line, delimiter)
    if isinstance(content, Fault):
        return content
    if not content:
        return None
    columns = split_quoted(content, delimiter)
    if isinstance(columns, Fault):
        return columns
    if len(columns) <= max(ends.source, ends.target):
        return _too_few(content, len(columns), ends)
    source, target = columns[ends.source], columns[ends.target]
    if not source or not target:
        return Fault("empty label", shown(content), "write two labels in every line")
    if ends.weight is None:
        return Row(source, target, None, len(columns))
    if len(columns) <= ends.weight or not columns[ends.weight]:
        return Fault("no weight in the line", shown(content), "give every edge a number, or leave weight out")
    return Row(source, target, columns[ends.weight], len(columns))


def inspect_integers(line: bytes, delimiter: bytes, ends: Ends = FIRST_TWO) -> Row | Fault | None:
    """As `inspect_row`, for integer labels."""
    row = inspect_row(line, delimiter, ends)
    if not isinstance(row, Row):
        return row
    for label in (row.source, row.target):
        if not label.isdigit():
            return text_fault(label) or Fault("label is no non-negative integer", shown(label), _AS_TEXT)
        if label_value(label) > MAX_LABEL:
            return Fault("label over 2^63 - 1", shown(label), _AS_TEXT)
    return row


def inspect_text(line: bytes, delimiter: bytes, ends: Ends) -> Row | Fault | None:
    """As `inspect_row`, for text labels."""
    row = inspect_row(line, delimiter, ends)
    if not isinstance(row, Row):
        return row
    return text_fault(row.source) or text_fault(row.target) or row


def weight_value(text: bytes) -> float | Fault:
    """The finite number that a weight is."""
    try:
        value = float(text.decode("ascii")) if b"_" not in text else nan
    except ValueError:
        value = nan
    if isfinite(value):
        return value
    return Fault("weight is no finite number", shown(text), "drop such rows or give them a number")


def text_fault(label: bytes) -> Fault | None:
    """Why these bytes are no text label."""
    if b"\0" in label:
        return Fault("NUL byte in a label", shown(label), "convert the file to UTF-8 text; it is binary or UTF-16")
    try:
        label.decode("utf-8")
    except UnicodeDecodeError:
        return Fault("invalid UTF-8 in a label", shown(label), "convert the file to UTF-8")
    return None


def label_value(digits: bytes) -> int:
    """The number that ASCII digits are (leading zeros do not matter); some number over 2^63 - 1 if it is."""
    significant = digits.lstrip(b"0")
    return int(significant or b"0") if len(significant) <= 19 else MAX_LABEL + 1


def check_length(length: int, limits: Limits, path: str, line: int) -> None:
    """Raise LimitError for a line of too many bytes."""
    limits.check("line_bytes", length, path=f"{path}:{line}")


def shown(text: bytes) -> str:
    """Bytes as text for a message, whatever they are."""
    return text[:400].decode("utf-8", "backslashreplace")


def _too_few(content: bytes, found: int, ends: Ends) -> Fault:
    if found == 1:
        return Fault(
            "only one label in the line",
            shown(content),
            "write two labels in every line, or # before a comment",
        )
    needed = max(ends.source, ends.target) + 1
    return Fault(f"{found} columns in the line where {needed} are needed", shown(content), "complete the line")

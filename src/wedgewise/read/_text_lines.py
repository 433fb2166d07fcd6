"""What a line of an edge list is: the rules, in plain Python, one line at a time.

The parsers of `_text_kernel` and `_text_arrays` accept no line that `inspect_integers` refuses, and those of
`_field_kernel` none that `inspect_row` refuses; a line at which they stop is looked at here, and so are the first lines
of a file.

* A line ends with ``\\n``, with carriage returns before it or not. Blanks are space, tab, vertical tab, form
  feed.
* A line without anything but blanks is skipped, and so is a comment: ``#`` or ``%`` as the first byte that is
  no blank. Below a header whose names are separated by commas, semicolons or tabs, such a line is a row where it has as
  many columns as the header.
* Every other line is a row: two of its columns are labels, one may be a weight, the others are counted and not looked
  at. Below a header it has as many columns as this; further ones are empty.
* Columns are separated by a run of blanks, or by one comma, semicolon or tab with blanks around it.
* A column that begins with a double quote is unquoted (``""`` is a quote, blanks stay). It cannot contain a line end:
  what looks like a row may be the middle of one.
* Between blanks, a third or later column that begins with ``{`` is a dictionary as NetworkX writes it, and goes on to
  the end of the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite, nan
from typing import Literal, NamedTuple, NoReturn

from wedgewise.errors import FormatError
from wedgewise.read.columns import FIRST_TWO, Ends
from wedgewise.stages.limits import MAX_LABEL

BLANKS = b" \t\x0b\x0c"
COMMENT_MARKS = b"#%"
BLANK, COMMA, SEMICOLON, TAB = b" ", b",", b";", b"\t"

_COLUMN = {  # in quotes or not, and what separates it from the next one
    mark: re.compile(rb'[%s]*+(?:"((?:[^"]|"")*+)"[%s]*|(?!")([^%s]*))(%s|\Z)' % (around, around, mark, mark))
    for mark, around in ((COMMA, BLANKS), (SEMICOLON, BLANKS), (TAB, BLANKS.replace(TAB, b"")))
} | {BLANK: re.compile(rb'(?:"((?:[^"]|"")*+)"|(?!")([^%s]*))([%s]+|\Z)' % (BLANKS, BLANKS))}

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


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How rows are read: what separates their columns, which are read, how many a header has (0 without one)."""

    delimiter: bytes
    ends: Ends = FIRST_TWO
    width: int = 0

    @property
    def marks_may_be_labels(self) -> bool:
        """Whether a line that begins like a comment may be a row."""
        return self.width > 0 and self.delimiter != BLANK

    def fits(self, columns: list[bytes]) -> bool:
        """Whether a row has as many columns as the header; empty ones behind them do not count."""
        return self.width == 0 or (len(columns) >= self.width and not any(columns[self.width :]))


class Row(NamedTuple):
    """Two labels of one line, its weight where one is read, and how many columns it has."""

    source: bytes
    target: bytes
    weight: bytes | None
    width: int


def content_of(line: bytes, delimiter: bytes = BLANK) -> bytes | Fault:
    """The line without blanks and carriage returns at its ends; empty for a blank line.

    A tab that separates columns stays: the first column may be empty.
    """
    content = line.rstrip(b"\r")
    if b"\r" in content:
        return Fault("carriage return inside a line", shown(content), _TO_NEWLINES)
    if not content.strip(BLANKS):
        return b""
    return content.strip(BLANKS.replace(delimiter, b"") if delimiter == TAB else BLANKS)


def begins_like_comment(line: bytes) -> bool:
    """Whether the first byte that is no blank marks a comment."""
    return line.lstrip(BLANKS)[:1] in (b"#", b"%")


def split(content: bytes, delimiter: bytes) -> list[bytes]:
    """The columns of a line; quotes have no meaning."""
    if delimiter == BLANK:
        return content.split()
    return [column.strip(BLANKS) for column in content.split(delimiter)]


def split_quoted(content: bytes, delimiter: bytes) -> list[bytes] | Fault:
    """The columns of a line, unquoted; what is wrong with its quotes."""
    if b'"' not in content and (delimiter != BLANK or b"{" not in content):
        return split(content, delimiter)
    columns, at, separator = list[bytes](), 0, delimiter
    while separator:
        if delimiter == BLANK and len(columns) >= 2 and content[at : at + 1] == b"{":
            return [*columns, content[at:]]
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


def inspect_row(line: bytes, form: RowFormat) -> Row | Fault | None:
    """The row of a line, what is wrong with it, or None for a comment or a blank line.

    NUL and invalid UTF-8 are left to `text_fault`.
    """
    content, ends = content_of(line, form.delimiter), form.ends
    if isinstance(content, Fault):
        return content
    is_marked = begins_like_comment(content)
    if not content or (is_marked and not form.marks_may_be_labels):
        return None
    columns = split_quoted(content, form.delimiter)
    if is_marked and (isinstance(columns, Fault) or not form.fits(columns)):
        return None
    if isinstance(columns, Fault):
        return columns
    if len(columns) == 1 or not form.fits(columns) or len(columns) <= max(ends.source, ends.target):
        return _wrong_width(content, len(columns), form)
    source, target = columns[ends.source], columns[ends.target]
    if not source or not target:
        return Fault("empty label", shown(content), "write two labels in every line")
    if ends.weight is None:
        return Row(source, target, None, len(columns))
    if len(columns) <= ends.weight or not columns[ends.weight]:
        return Fault("no weight in the line", shown(content), "give every edge a number, or leave weight out")
    return Row(source, target, columns[ends.weight], len(columns))


def inspect_integers(line: bytes, form: RowFormat) -> Row | Fault | None:
    """As `inspect_row`, for integer labels."""
    row = inspect_row(line, form)
    if not isinstance(row, Row):
        return row
    for label in (row.source, row.target):
        if not label.isdigit():
            return text_fault(label) or Fault("label is no non-negative integer", shown(label), _AS_TEXT)
        if label_value(label) > MAX_LABEL:
            return Fault("label over 2^63 - 1", shown(label), _AS_TEXT)
    return row


def inspect_text(line: bytes, form: RowFormat) -> Row | Fault | None:
    """As `inspect_row`, for text labels."""
    row = inspect_row(line, form)
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


def shown(text: bytes) -> str:
    """Bytes as text for a message, whatever they are."""
    return text[:400].decode("utf-8", "backslashreplace")


def _wrong_width(content: bytes, found: int, form: RowFormat) -> Fault:
    if found == 1:
        return Fault(
            "only one label in the line",
            shown(content),
            "write two labels in every line, or # before a comment",
        )
    if form.width:
        return Fault(
            f"{found} columns in the row where the header has {form.width}",
            shown(content),
            "give every row a column for every name: quote a field that holds the separator, write no row names, "
            "leave no column out; header=False (--header no) if the first line is no header",
        )
    needed = max(form.ends.source, form.ends.target) + 1
    return Fault(f"{found} columns in the line where {needed} are needed", shown(content), "complete the line")

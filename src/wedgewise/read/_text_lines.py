"""What a line of an edge list is: the rules, in plain Python, one line at a time.

The parsers of `_text_kernel` and `_text_arrays` accept exactly the lines that `inspect_integers` accepts;
when they stop at a line, it is asked here what is wrong with it. The first lines of a file are looked at here
as well.

* A line ends with ``\\n``, with carriage returns before it or not. Blanks are space, tab, vertical tab, form
  feed.
* A line without anything but blanks is skipped, and so is a comment: ``#`` or ``%`` as the first byte that is
  no blank.
* Every other line has two labels and any number of further columns, which are counted and not looked at.
* Labels are separated by a run of blanks, or by one comma, semicolon or (text labels) tab with blanks around
  it.
* A label in double quotes is unquoted (``""`` is a quote) when labels are text separated by commas or
  semicolons. It cannot contain a line end.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn

from wedgewise.errors import FormatError
from wedgewise.read.limits import MAX_LABEL, Limits

BLANKS = b" \t\x0b\x0c"
COMMENT_MARKS = b"#%"
BLANK, COMMA, SEMICOLON, TAB = b" ", b",", b";", b"\t"

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


class Pair(NamedTuple):
    """Two labels of one line and how many further columns it has."""

    first: bytes
    second: bytes
    columns: int


def content_of(line: bytes) -> bytes | Fault:
    """The line without its blanks and carriage returns at the ends; empty for a comment or a blank line."""
    content = line.rstrip(b"\r")
    if b"\r" in content:
        return Fault("carriage return inside a line", shown(content), _TO_NEWLINES)
    content = content.strip(BLANKS)
    return b"" if content[:1] in (b"#", b"%") else content


def split(content: bytes, delimiter: bytes) -> list[bytes]:
    """The columns of a line; quotes have no meaning."""
    if delimiter == BLANK:
        return content.split()
    return [column.strip(BLANKS) for column in content.split(delimiter)]


def split_quoted(content: bytes, delimiter: bytes) -> list[bytes] | Fault:
    """The columns of a line of text labels, unquoted."""
    if b'"' not in content or delimiter not in (COMMA, SEMICOLON):
        return split(content, delimiter)
    line = content.decode("utf-8", "surrogateescape")
    try:
        columns = next(csv.reader([line], delimiter=delimiter.decode(), skipinitialspace=True, strict=True))
    except csv.Error as error:
        return Fault(
            f"quotes do not match ({error})",
            shown(content),
            "close every quote and double those inside labels",
        )
    return [column.encode("utf-8", "surrogateescape").strip(BLANKS) for column in columns]


def inspect_integers(line: bytes, delimiter: bytes) -> Pair | Fault | None:
    """The pair of a line of integer labels, what is wrong with it, or None for a line without labels."""
    content = content_of(line)
    if isinstance(content, Fault):
        return content
    if not content:
        return None
    pair = _first_two(content, split(content, delimiter))
    if isinstance(pair, Fault):
        return pair
    for label in (pair.first, pair.second):
        if not label.isdigit():
            return text_fault(label) or Fault("label is no non-negative integer", shown(label), _AS_TEXT)
        if label_value(label) > MAX_LABEL:
            return Fault("label over 2^63 - 1", shown(label), _AS_TEXT)
    return pair


def inspect_text(line: bytes, delimiter: bytes) -> Pair | Fault | None:
    """As `inspect_integers` for text labels; NUL and invalid UTF-8 are left to `text_fault`."""
    content = content_of(line)
    if isinstance(content, Fault):
        return content
    if not content:
        return None
    columns = split_quoted(content, delimiter)
    return columns if isinstance(columns, Fault) else _first_two(content, columns)


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


def _first_two(content: bytes, columns: list[bytes]) -> Pair | Fault:
    if len(columns) < 2:
        return Fault(
            "only one label in the line",
            shown(content),
            "write two labels in every line, or # before a comment",
        )
    if not columns[0] or not columns[1]:
        return Fault("empty label", shown(content), "write two labels in every line")
    return Pair(columns[0], columns[1], len(columns) - 2)

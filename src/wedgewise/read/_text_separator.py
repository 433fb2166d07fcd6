"""Which byte separates the columns of a text file, by its first lines.

Blanks, comma or semicolon, by which at least half of the lines begin with two number-like fields; else the first of
tab, comma and semicolon that separates well-known names in the first line, or is in every line; else blanks. Tabs
separate instead of blanks where all lines have one, unless blanks separate the first fields of most lines. Of comma and
semicolon in every line, the one that cuts all lines into the same, larger number of fields.
"""

from __future__ import annotations

from wedgewise.errors import FormatError
from wedgewise.read._text_lines import BLANK, COMMA, SEMICOLON, TAB, Fault, content_of, shown, split, split_quoted
from wedgewise.read.columns import names_known_pair

Fields = list[bytes]


def find_separator(path: str, lines: list[bytes], labels: str) -> bytes:
    """What separates the columns."""
    numeric, integer_mark = list[bool](), BLANK
    for mark in (BLANK, *(mark for mark in (COMMA, SEMICOLON) if any(mark in line for line in lines))):
        begins = [amount == 2 for amount in numbers_at(fields_of(lines, mark), (0, 1))]
        if sum(begins) > sum(numeric):
            numeric, integer_mark = begins, mark
    body = numeric[1:] if len(numeric) > 1 and not numeric[0] else numeric
    if labels != "text" and any(numeric) and 2 * sum(body) >= len(body):
        return TAB if integer_mark == BLANK and _tabs_separate(lines) else integer_mark
    marks = TAB, COMMA, SEMICOLON
    named = [mark for mark in marks if names_known_pair([shown(name) for name in fields_of(lines[:1], mark)[0]])]
    common = [mark for mark in marks if all(mark in line for line in lines)]
    if not named and common == [COMMA, SEMICOLON]:
        return _comma_or_semicolon(path, lines)
    return next(iter(named + common), BLANK)


def _comma_or_semicolon(path: str, lines: list[bytes]) -> bytes:
    """Which of the two separates, where both are in every line: one may be a decimal comma, or inside a label."""
    widths = {mark: set(map(len, fields_of(lines, mark))) for mark in (COMMA, SEMICOLON)}
    even = {mark: min(widths[mark]) for mark in widths if len(widths[mark]) == 1}
    if len(even) == 2 and len(set(even.values())) == 1:
        remedy = "put fields that hold the one that does not separate in quotes"
        raise FormatError("commas and semicolons separate the same number of columns", path=path, remedy=remedy)
    return max(even, key=lambda mark: even[mark], default=COMMA)


def _tabs_separate(lines: list[bytes]) -> bool:
    """Whether tabs and not blanks separate columns: all lines have one, and few have blanks inside the first two."""
    if not all(TAB in line for line in lines):
        return False
    rows = fields_of(lines[1:] or lines, TAB)
    with_blanks = sum(any(len(field.split()) > 1 for field in row[:2]) for row in rows)
    return 2 * with_blanks <= len(rows)


def fields_of(lines: list[bytes], delimiter: bytes) -> list[Fields]:
    """The columns of lines as far as they can be told: what is wrong with a line is said by whoever reads it."""
    if delimiter == BLANK and not any(b'"' in line or b"{" in line for line in lines):
        return [line.split() for line in lines]
    return [_fields_of(line, delimiter) for line in lines]


def _fields_of(line: bytes, delimiter: bytes) -> Fields:
    content = content_of(line, delimiter)
    if isinstance(content, Fault):
        return split(line, delimiter)
    columns = split_quoted(content, delimiter)
    return split(content, delimiter) if isinstance(columns, Fault) else columns


def numbers_at(rows: list[Fields], positions: tuple[int, ...]) -> list[int]:
    """How many of these columns are number-like, of every row."""
    given = [[row[position] for position in positions if position < len(row)] for row in rows]
    return [sum(field.isdigit() or is_number(field) for field in fields) for fields in given]


def is_number(field: bytes) -> bool:
    """Whether Python's ``float`` accepts a field."""
    try:
        float(field.decode("utf-8"))
    except ValueError:
        return False
    return True

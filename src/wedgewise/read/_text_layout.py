"""Look at the first lines of a text file: separator, header row, which columns, integer or text labels.

The first data lines (at most 100) decide. A field is number-like when Python's ``float`` accepts it: so ``-3``, ``1.5``
or ``nan`` do not make a file of names out of a file of integers, they are errors in it.

* Separator: see `_find_separator`.
* Header: see `_names_columns`. A comment directly above the first row is one too, where it has as many names as every
  row has columns and chooses other columns than the first row does.
* Columns: `wedgewise.read.columns` chooses.
* Integer labels: at least half of the lines have two number-like ends. Otherwise labels are text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from wedgewise.errors import FormatError, InputError
from wedgewise.read import ReadOptions
from wedgewise.read._text_lines import (
    BLANK,
    BLANKS,
    COMMA,
    SEMICOLON,
    TAB,
    Fault,
    LabelKind,
    RowFormat,
    content_of,
    label_value,
    shown,
    split,
    split_quoted,
)
from wedgewise.read.columns import (
    FIRST_TWO,
    KNOWN_WORDS,
    ColumnChoice,
    Ends,
    TableFacts,
    choose_columns,
    known_pairs,
    names_given_column,
)
from wedgewise.read.sniff import HEAD_BYTES, Beginning, check_encoding
from wedgewise.stages.limits import Limits

LineFields = list[bytes]

SAMPLE_LINES = 100
MISSING = (b"", b"na", b"n/a", b"null", b"none", b"?", b"-")  # stands for a number that is not known, and is no name
_FIRST_HEAD_BYTES = 64 * 2**10
_LAST_HEAD_BYTES = 64 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEADER_HINT = "header=True or --header yes if it names the columns"
_ANY_SEPARATOR = re.compile(rb"[,;\s]+")


@dataclass(frozen=True, slots=True)
class TextLayout:
    """How to read a file; its rows start at byte ``begin``, after ``lines_before`` lines.

    ``header`` has the names of the columns, None without any. ``notes`` say what is remarkable about the way that the
    file is read. ``is_guessed`` says that nobody has said whether the first line is a header. ``lines_per_byte`` is
    what the beginning of the file has.
    """

    kind: LabelKind
    form: RowFormat
    begin: int
    lines_before: int
    header: tuple[str, ...] | None = None
    wide: bool = False
    is_guessed: bool = False
    has_quotes: bool = False
    notes: tuple[str, ...] = ()
    lines_per_byte: float = 0.0


class _Line(NamedTuple):
    """A data line of the sample: its number, where it begins, and its text."""

    number: int
    begin: int
    text: bytes


class _Sample(NamedTuple):
    """The first bytes of a file; their first data lines; the text of lines below the first that begin like a comment;
    and the last such line above it, empty without one."""

    head: bytes
    lines: list[_Line]
    marked: list[bytes]
    comment: bytes


class _Reading(NamedTuple):
    """The names of the columns, whether these are in a comment, the ends, and what to say of the first line."""

    header: tuple[str, ...] | None
    is_comment: bool
    ends: Ends
    doubts: tuple[str, ...] = ()


def find_layout(content: Beginning, options: ReadOptions) -> TextLayout:
    """Decide how to read `content` from its first data lines; raise for faults in the lines before them."""
    labels, limits, choice = options.labels, options.limits, options.columns
    head, sampled, marked, comment = _sample(content, limits)
    is_guessed = choice.header == "auto"
    check_encoding(head[:HEAD_BYTES], content.name)
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    lines_per_byte = head.count(b"\n") / max(1, head.rfind(b"\n") + 1)
    if not sampled:
        kind: LabelKind = "text" if labels == "text" else "int"
        form = RowFormat(BLANK)
        return TextLayout(kind, form, start, 0, is_guessed=is_guessed, lines_per_byte=lines_per_byte)
    first, last = sampled[0], sampled[-1]
    delimiter, rows = _find_separator(content.name, [line.text for line in sampled], labels)
    reading = _decide(content.name, rows, _comment_names(comment, delimiter, rows) if comment else [], choice, labels)
    begin, lines_before, notes = first.begin, first.number - 1, reading.doubts
    if reading.header is not None:
        said = "columns named by a comment" if reading.is_comment else "header row skipped"
        notes = (f"{said}: {delimiter.decode().join(reading.header)[:400]}",)
        if not reading.is_comment:
            begin, lines_before, rows = min(begin + len(first.text) + 1, len(head)), first.number, rows[1:]
    for number, line in enumerate(head[start:begin].split(b"\n") if begin > start else (), start=1):
        limits.check("line_bytes", len(line), path=f"{content.name}:{number}")
        if isinstance(fault := content_of(line), Fault):
            fault.raise_at(content.name, number)
    form = RowFormat(delimiter, reading.ends, 0 if reading.is_comment else len(reading.header or ()))
    if marked and form.marks_may_be_labels:
        rows += [row for row in _fields_of(marked, delimiter) if form.fits(row)]
    kind = _kind(rows, reading.ends, labels)
    at = reading.ends.source, reading.ends.target
    long_labels = [row[end] for row in rows for end in at if end < len(row) and len(row[end]) > 9]
    return TextLayout(
        kind,
        form,
        begin,
        lines_before,
        reading.header,
        wide=kind == "int" and any(label.isdigit() and label_value(label) >= 2**32 for label in long_labels),
        is_guessed=is_guessed,
        has_quotes=b'"' in head[begin : last.begin + len(last.text)],
        notes=notes,
        lines_per_byte=lines_per_byte,
    )


def _find_separator(path: str, lines: list[bytes], labels: str) -> tuple[bytes, list[LineFields]]:
    """Which byte separates the columns, and the columns of the lines.

    Blanks, comma or semicolon, by which at least half of the lines begin with two number-like fields; else the first of
    tab, comma and semicolon that separates well-known names in the first line, or is in every line; else blanks. Tabs
    separate instead of blanks where all lines have one, unless blanks separate the first fields of most lines. Of comma
    and semicolon in every line, the one that cuts all lines into the same, larger number of fields.
    """
    common = [mark for mark in (TAB, COMMA, SEMICOLON) if all(mark in line for line in lines)]
    numeric, found, rows = list[bool](), BLANK, list[LineFields]()
    for mark in (BLANK, *(mark for mark in (COMMA, SEMICOLON) if any(mark in line for line in lines))):
        fields = _fields_of(lines, mark)
        begins = [amount == 2 for amount in _numbers_at(fields, (0, 1))]
        if sum(begins) > sum(numeric):
            numeric, found, rows = begins, mark, fields
    body = numeric[1:] if len(numeric) > 1 and not numeric[0] else numeric
    if labels != "text" and any(numeric) and 2 * sum(body) >= len(body):
        if found == BLANK and TAB in common and _tabs_separate(lines):
            return TAB, _fields_of(lines, TAB)
        return found, rows
    marks = TAB, COMMA, SEMICOLON
    named = [mark for mark in marks if known_pairs([shown(name) for name in _fields_of(lines[:1], mark)[0]])]
    if not named and common == [COMMA, SEMICOLON]:
        found = _comma_or_semicolon(path, lines)
    else:
        found = next(iter(named + common), BLANK)
    return found, _fields_of(lines, found)


def _comma_or_semicolon(path: str, lines: list[bytes]) -> bytes:
    """Which of the two separates, where both are in every line: one may be a decimal comma, or inside a label."""
    widths = {mark: set(map(len, _fields_of(lines, mark))) for mark in (COMMA, SEMICOLON)}
    even = {mark: min(widths[mark]) for mark in widths if len(widths[mark]) == 1}
    if len(even) == 2 and len(set(even.values())) == 1:
        remedy = "put fields that hold the one that does not separate in quotes"
        raise FormatError("commas and semicolons separate the same number of columns", path=path, remedy=remedy)
    return max(even, key=lambda mark: even[mark], default=COMMA)


def _tabs_separate(lines: list[bytes]) -> bool:
    """Whether tabs, which all lines have, separate columns and not blanks: few have blanks inside the first two."""
    rows = _fields_of(lines[1:] or lines, TAB)
    with_blanks = sum(any(len(field.split()) > 1 for field in row[:2]) for row in rows)
    return 2 * with_blanks <= len(rows)


def _fields_of(lines: list[bytes], delimiter: bytes) -> list[LineFields]:
    """The columns of lines as far as they can be told: what is wrong with a line is said by whoever reads it."""
    if delimiter == BLANK and not any(b'"' in line or b"{" in line for line in lines):
        return [line.split() for line in lines]
    found = []
    for line in lines:
        content = content_of(line, delimiter)
        columns = content if isinstance(content, Fault) else split_quoted(content, delimiter)
        plain = line if isinstance(content, Fault) else content
        found.append(split(plain, delimiter) if isinstance(columns, Fault) else columns)
    return found


def _numbers_at(rows: list[LineFields], positions: tuple[int, ...]) -> list[int]:
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


def _decide(
    path: str, rows: list[LineFields], comment: list[tuple[str, ...]], choice: ColumnChoice, labels: str
) -> _Reading:
    """Whether the first line, or the comment above it, names the columns, and which are the ends."""
    is_guessed = choice.header == "auto"
    verdict = _names_columns(path, rows, choice, labels) if is_guessed else bool(choice.header)
    if verdict:
        header = _header_names(rows[0])
        return _Reading(header, False, _ends_below(path, header, rows[1:], choice))
    for names in comment if is_guessed else ():
        if known_pairs(names) or names_given_column(names, choice):
            ends = _ends_below(path, names, rows, choice)
            if ends != _ends_if_clear(path, None, rows, choice):
                return _Reading(names, True, ends)
    ends = _ends_below(path, None, rows, choice)
    return _Reading(None, False, ends, _doubts(rows, ends, verdict) if is_guessed else ())


def _names_columns(path: str, rows: list[LineFields], choice: ColumnChoice, labels: str) -> bool | None:
    """Whether the first line names the columns; None where that is unclear.

    It does where the user named one of its names. It does not where it has a number above a column of numbers that is
    no end, unless it has words such as source and target. Else it does where two of its names are a well-known pair;
    where neither end is number-like while both are in the second line, unless labels are said to be text; or where no
    other field is number-like while one of those columns holds numbers, or nothing, in all other lines. That is unclear
    where an end of it is a label in another line below.
    """
    first, others = rows[0], rows[1:]
    if all(field.isdigit() for field in first) and not choice.given:
        return False
    names = _header_names(first)
    if names_given_column(names, choice):
        return True
    ends = _ends_if_clear(path, names, others, choice) or _ends_if_clear(path, None, rows, choice)
    at = () if ends is None else (ends.source, ends.target)
    further = tuple(position for position in range(len(first)) if position not in at)
    numeric = tuple(position for position in further if _is_numeric(others, position))
    if any(_is_amount(first[position]) for position in numeric) and not known_pairs(names, KNOWN_WORDS):
        return False
    is_above_ends = labels != "text" and _numbers_at(rows[:2], at) == [0, 2]
    names_numbers = any(first[position].lower() not in MISSING for position in numeric)
    is_above_others = names_numbers and _numbers_at([first], further) == [0]
    if not (known_pairs(names) or is_above_ends or is_above_others):
        return False
    below = {row[position] for row in others if row != first for position in at if position < len(row)}
    is_label = any(first[position] in below for position in at if position < len(first))
    return None if is_label else True


def _doubts(rows: list[LineFields], ends: Ends, names_columns: bool | None) -> tuple[str, ...]:
    """Say that the first line, which is read as an edge, may be a header."""
    first, at = rows[0], (ends.source, ends.target)
    below = [row[position] for row in rows[1:] for position in at if position < len(row)]
    is_count = first == [b"%d" % position for position in range(len(first))]
    if names_columns is None:
        why = "it looks like names of columns"
    elif is_count and below and not {b"0", b"1"}.intersection(below):
        why = "it may number the columns"
    else:
        return ()
    fields = ", ".join(repr(shown(field)) for field in first[:8])
    return (f"first line read as an edge, though {why}: {fields} ({HEADER_HINT})",)


def _header_names(first: LineFields) -> tuple[str, ...]:
    """The names in a header, without empty ones behind the others."""
    width = max((position + 1 for position, name in enumerate(first) if name), default=0)
    return tuple(shown(name) for name in first[: max(2, width)])


def _comment_names(comment: bytes, delimiter: bytes, rows: list[LineFields]) -> list[tuple[str, ...]]:
    """What a comment may call the columns: as many words as every row has columns."""
    text = comment.lstrip(BLANKS + b"#%").rstrip(BLANKS + b"\r")
    if not text:
        return []
    ways = *_fields_of([text], delimiter), [word for word in _ANY_SEPARATOR.split(text) if word]
    return [tuple(map(shown, words)) for words in ways if all(len(row) == len(words) for row in rows)]


def _sample(content: Beginning, limits: Limits) -> _Sample:
    """The first bytes and their first data lines: at least two lines if there are any within 64 MiB.

    No more of a line is looked at than shows that it is too long.
    """
    size = _FIRST_HEAD_BYTES
    while True:
        head = content.head(size)
        complete = len(head) < size
        sample = _data_lines(head, complete)
        is_enough = len(sample.lines) >= 2 or len(sample.marked) == SAMPLE_LINES
        if complete or is_enough or size >= _LAST_HEAD_BYTES:
            return sample
        unfinished = len(head) - head.rfind(b"\n") - 1
        limits.check("line_bytes", unfinished, path=f"{content.name}:{head.count(10) + 1}")
        size *= 4


def _data_lines(head: bytes, complete: bool) -> _Sample:
    lines, marked, comment = list[_Line](), list[bytes](), b""
    at = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    number = 0
    while at < len(head) and len(lines) < SAMPLE_LINES:
        end = head.find(b"\n", at)
        if end < 0 and not complete:
            break
        line = head[at : end if end >= 0 else len(head)]
        number += 1
        text = line.strip(BLANKS + b"\r")
        if text.startswith((b"#", b"%")):
            if not lines:
                comment = text
            elif len(marked) < SAMPLE_LINES:
                marked.append(line)
        elif text:
            lines.append(_Line(number, at, line))
        at += len(line) + 1
    return _Sample(head, lines, marked, comment)


def _ends_below(path: str, names: tuple[str, ...] | None, rows: list[LineFields], choice: ColumnChoice) -> Ends:
    """The columns that are read of rows, below names or without."""
    width = len(names) if names is not None else max(2, *map(len, rows), 2)
    return choose_columns(
        TableFacts(path, width, names, lambda: _first_two_serve(rows), rows[0] if rows else ()), choice
    )


def _ends_if_clear(
    path: str, names: tuple[str, ...] | None, rows: list[LineFields], choice: ColumnChoice
) -> Ends | None:
    """As `_ends_below`; None where it refuses to choose."""
    try:
        return _ends_below(path, names, rows, choice)
    except InputError:
        return None


def _first_two_serve(body: list[LineFields]) -> bool:
    """Whether nothing but the first two columns can be meant: see `wedgewise.read.columns`."""
    return _kind(body, FIRST_TWO, "auto") == "int" or all(_has_plain_rest(row) for row in body)


def _has_plain_rest(row: LineFields) -> bool:
    rest = row[2:]
    is_dictionary = bool(rest) and rest[0].startswith(b"{")
    return is_dictionary or all(field.lower() in MISSING or _is_amount(field) for field in rest)


def _kind(body: list[LineFields], ends: Ends, labels: str) -> LabelKind:
    if labels in ("int", "text"):
        return "int" if labels == "int" else "text"
    numeric = _numbers_at(body, (ends.source, ends.target)).count(2)
    return "text" if 2 * numeric < len(body) else "int"


def _is_numeric(rows: list[LineFields], position: int) -> bool:
    """Whether a column holds numbers, though some may be missing."""
    column = [row[position] if position < len(row) else b"" for row in rows]
    return any(map(_is_amount, column)) and all(field.lower() in MISSING or _is_amount(field) for field in column)


def _is_amount(field: bytes) -> bool:
    """Whether a field that is no label holds a number, with a decimal point or comma."""
    return is_number(field.replace(b",", b".", 1))

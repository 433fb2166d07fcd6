"""Look at the first lines of a text file: separator, header row, which columns, integer or text labels.

The first data lines (at most 100) decide. A field is number-like when Python's ``float`` accepts it: so ``-3``, ``1.5``
or ``nan`` do not make a file of names out of a file of integers, they are errors in it.

* Separator: see `_text_separator`.
* Header: see `_header_verdict`. A comment directly above the first row is one too, where it has as many names as every
  row has columns and chooses other columns than the first row does.
* Columns: `wedgewise.read.columns` chooses.
* Integer labels: at least half of the lines have two number-like ends. Otherwise labels are text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from wedgewise.errors import InputError
from wedgewise.read import ReadOptions
from wedgewise.read._text_lines import (
    BLANK,
    BLANKS,
    Fault,
    LabelKind,
    RowFormat,
    check_length,
    content_of,
    label_value,
    shown,
)
from wedgewise.read._text_separator import Fields, fields_of, find_separator, is_number, numbers_at
from wedgewise.read.columns import (
    FIRST_TWO,
    ColumnChoice,
    Ends,
    Table,
    choose_columns,
    names_given_column,
    names_known_pair,
    names_known_words,
    without_generated,
)
from wedgewise.read.sniff import HEAD_BYTES, Beginning, check_encoding
from wedgewise.stages import Column
from wedgewise.stages.limits import Limits

SAMPLE_LINES = 100
MISSING = (b"", b"na", b"n/a", b"null", b"none", b"?", b"-")  # stands for a number that is not known, and is no name
_FIRST_HEAD_BYTES = 64 * 2**10
_LAST_HEAD_BYTES = 64 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SETTLE_HEADER = "header=True or --header yes if it names the columns"
_ANY_SEPARATOR = re.compile(rb"[,;\s]+")


@dataclass(frozen=True, slots=True)
class Layout:
    """How to read a file; its rows start at byte ``begin``, after ``lines_before`` lines.

    ``header`` has the names of the columns, None without any. ``notes`` say what is remarkable about the way that the
    file is read. ``is_guessed`` says that nobody has said whether the first line is a header.
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

    @property
    def is_plain(self) -> bool:
        """Whether rows begin with two integers and nothing else is read of them."""
        return self.kind == "int" and self.form.ends == FIRST_TWO and not self.has_quotes

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that are read, by name where they have names of their own."""
        return self.form.ends.used(self.header and without_generated(self.header))

    def ignored(self, width: int) -> tuple[Column, ...]:
        """The columns that are not read, where the widest row has so many."""
        names = self.header and without_generated(self.header)
        return self.form.ends.ignored(names, width if self.header is None else len(self.header))


@dataclass(frozen=True, slots=True)
class _Line:
    """A data line of the sample: its number, and the bytes it spans."""

    number: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _Sample:
    """The first bytes of a file; their first data lines; lines below the first that begin like a comment; and the last
    such line above it, empty without one."""

    head: bytes
    lines: list[_Line]
    marked: list[_Line]
    comment: bytes

    def texts(self, lines: list[_Line]) -> list[bytes]:
        """Some lines as they are."""
        return [self.head[line.begin : line.end] for line in lines]


class _Verdict(Enum):
    """What the first line is."""

    HEADER = auto()
    EDGE = auto()
    UNCLEAR = auto()


@dataclass(frozen=True, slots=True)
class _Reading:
    """The names of the columns, whether these are in a comment, the ends, and what to say of the first line."""

    header: tuple[str, ...] | None
    is_comment: bool
    ends: Ends
    doubts: tuple[str, ...] = ()

    def notes(self, delimiter: bytes) -> tuple[str, ...]:
        """What to say of the way that the first line is read."""
        if self.header is None:
            return self.doubts
        said = "columns named by a comment" if self.is_comment else "header row skipped"
        return (f"{said}: {delimiter.decode().join(self.header)[:400]}",)


def find_layout(content: Beginning, options: ReadOptions) -> Layout:
    """Decide how to read `content` from its first data lines; raise for faults in the lines before them."""
    labels, limits, choice = options.labels, options.limits, options.columns
    sample = _sample(content, limits)
    head, is_guessed = sample.head, choice.header == "auto"
    check_encoding(head[:HEAD_BYTES], content.name)
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    if not sample.lines:
        kind: LabelKind = "text" if labels == "text" else "int"
        return Layout(kind, RowFormat(BLANK), start, 0, is_guessed=is_guessed)
    first = sample.lines[0]
    lines = sample.texts(sample.lines)
    delimiter = find_separator(content.name, lines, labels)
    rows = fields_of(lines, delimiter)
    reading = _decide(content.name, rows, _comment_names(sample.comment, delimiter, rows), choice, labels)
    begin, lines_before = first.begin, first.number - 1
    if reading.header is not None and not reading.is_comment:
        begin, lines_before, rows = min(first.end + 1, len(head)), first.number, rows[1:]
    _check_skipped(head[start:begin], content.name, limits)
    form = RowFormat(delimiter, reading.ends, 0 if reading.is_comment else len(reading.header or ()))
    if form.marks_may_be_labels:
        rows += [row for row in fields_of(sample.texts(sample.marked), delimiter) if form.fits(row)]
    kind = _kind(rows, reading.ends, labels)
    return Layout(
        kind,
        form,
        begin,
        lines_before,
        reading.header,
        wide=kind == "int" and _has_wide(rows, reading.ends),
        is_guessed=is_guessed,
        has_quotes=b'"' in head[begin : sample.lines[-1].end],
        notes=reading.notes(delimiter),
    )


def _decide(
    path: str, rows: list[Fields], comment: list[tuple[str, ...]], choice: ColumnChoice, labels: str
) -> _Reading:
    """Whether the first line, or the comment above it, names the columns, and which are the ends."""
    if choice.header == "auto":
        verdict = _header_verdict(path, rows, choice, labels)
    else:
        verdict = _Verdict.HEADER if choice.header else _Verdict.EDGE
    if verdict is _Verdict.HEADER:
        header = _header_names(rows[0])
        return _Reading(header, False, _ends_below(path, header, rows[1:], choice))
    if choice.header == "auto":
        for names in comment:
            if names_known_pair(names) or names_given_column(names, choice):
                ends = _ends_below(path, names, rows, choice)
                if ends != _ends_if_clear(path, None, rows, choice):
                    return _Reading(names, True, ends)
    ends = _ends_below(path, None, rows, choice)
    return _Reading(None, False, ends, _doubts(rows, ends, verdict) if choice.header == "auto" else ())


def _header_verdict(path: str, rows: list[Fields], choice: ColumnChoice, labels: str) -> _Verdict:
    """Whether the first line names the columns.

    It does where the user named one of its names. It does not where it has a number above a column of numbers that is
    no end, unless it has words such as source and target. Else it does where two of its names are a well-known pair;
    where neither end is number-like while both are in the second line, unless labels are said to be text; or where no
    other field is number-like while one of those columns holds numbers, or nothing, in all other lines. That is unclear
    where an end of it is a label in another line below.
    """
    first, others = rows[0], rows[1:]
    if not choice.given and all(field.isdigit() for field in first):
        return _Verdict.EDGE
    names = _header_names(first)
    if names_given_column(names, choice):
        return _Verdict.HEADER
    ends = _ends_if_clear(path, names, others, choice) or _ends_if_clear(path, None, rows, choice)
    at = () if ends is None else (ends.source, ends.target)
    further = tuple(position for position in range(len(first)) if position not in at)
    numeric = tuple(position for position in further if _is_numeric(others, position))
    if any(_is_amount(first[position]) for position in numeric) and not names_known_words(names):
        return _Verdict.EDGE
    is_above_ends = labels != "text" and numbers_at(rows[:2], at) == [0, 2]
    names_numbers = any(first[position].lower() not in MISSING for position in numeric)
    is_above_others = names_numbers and numbers_at([first], further) == [0]
    if not (names_known_pair(names) or is_above_ends or is_above_others):
        return _Verdict.EDGE
    below = {row[position] for row in others if row != first for position in at if position < len(row)}
    is_label = any(first[position] in below for position in at if position < len(first))
    return _Verdict.UNCLEAR if is_label else _Verdict.HEADER


def _doubts(rows: list[Fields], ends: Ends, verdict: _Verdict) -> tuple[str, ...]:
    """Say that the first line, which is read as an edge, may be a header."""
    first, at = rows[0], (ends.source, ends.target)
    below = [row[position] for row in rows[1:] for position in at if position < len(row)]
    is_count = first == [b"%d" % position for position in range(len(first))]
    if verdict is _Verdict.UNCLEAR:
        why = "it looks like names of columns"
    elif is_count and below and not {b"0", b"1"}.intersection(below):
        why = "it may number the columns"
    else:
        return ()
    fields = ", ".join(repr(shown(field)) for field in first[:8])
    return (f"first line read as an edge, though {why}: {fields} ({SETTLE_HEADER})",)


def _header_names(first: Fields) -> tuple[str, ...]:
    """The names in a header, without empty ones behind the others."""
    width = max((position + 1 for position, name in enumerate(first) if name), default=0)
    return tuple(shown(name) for name in first[: max(2, width)])


def _comment_names(comment: bytes, delimiter: bytes, rows: list[Fields]) -> list[tuple[str, ...]]:
    """What a comment may call the columns: as many words as every row has columns."""
    text = comment.lstrip(BLANKS + b"#%").rstrip(BLANKS + b"\r")
    if not text:
        return []
    ways = *fields_of([text], delimiter), [word for word in _ANY_SEPARATOR.split(text) if word]
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
        check_length(unfinished, limits, content.name, head.count(b"\n") + 1)
        size *= 4


def _data_lines(head: bytes, complete: bool) -> _Sample:
    lines, marked, comment = list[_Line](), list[_Line](), b""
    at = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    number = 0
    while at < len(head) and len(lines) < SAMPLE_LINES:
        end = head.find(b"\n", at)
        if end < 0:
            if not complete:
                break
            end = len(head)
        number += 1
        text = head[at:end].strip(BLANKS + b"\r")
        if text.startswith((b"#", b"%")):
            if not lines:
                comment = text
            elif len(marked) < SAMPLE_LINES:
                marked.append(_Line(number, at, end))
        elif text:
            lines.append(_Line(number, at, end))
        at = end + 1
    return _Sample(head, lines, marked, comment)


def _ends_below(path: str, names: tuple[str, ...] | None, rows: list[Fields], choice: ColumnChoice) -> Ends:
    """The columns that are read of rows, below names or without."""
    width = len(names) if names is not None else max(2, *map(len, rows), 2)
    return choose_columns(Table(path, width, names, lambda: _first_two_serve(rows), rows[0] if rows else ()), choice)


def _ends_if_clear(path: str, names: tuple[str, ...] | None, rows: list[Fields], choice: ColumnChoice) -> Ends | None:
    """As `_ends_below`; None where it refuses to choose."""
    try:
        return _ends_below(path, names, rows, choice)
    except InputError:
        return None


def _first_two_serve(body: list[Fields]) -> bool:
    """Whether nothing but the first two columns can be meant: see `wedgewise.read.columns`."""
    return _kind(body, FIRST_TWO, "auto") == "int" or all(_has_plain_rest(row) for row in body)


def _has_plain_rest(row: Fields) -> bool:
    rest = row[2:]
    is_dictionary = bool(rest) and rest[0].startswith(b"{")
    return is_dictionary or all(field.lower() in MISSING or _is_amount(field) for field in rest)


def _kind(body: list[Fields], ends: Ends, labels: str) -> LabelKind:
    if labels in ("int", "text"):
        return "int" if labels == "int" else "text"
    numeric = numbers_at(body, (ends.source, ends.target)).count(2)
    return "text" if 2 * numeric < len(body) else "int"


def _is_numeric(rows: list[Fields], position: int) -> bool:
    """Whether a column holds numbers, though some may be missing."""
    column = [row[position] if position < len(row) else b"" for row in rows]
    return any(map(_is_amount, column)) and all(field.lower() in MISSING or _is_amount(field) for field in column)


def _is_amount(field: bytes) -> bool:
    """Whether a field that is no label holds a number, with a decimal point or comma."""
    return is_number(field.replace(b",", b".", 1))


def _has_wide(rows: list[Fields], ends: Ends) -> bool:
    """Whether a label of the rows needs more than 32 bits."""
    labels = [row[position] for row in rows for position in (ends.source, ends.target) if position < len(row)]
    return any(len(label) > 9 and label.isdigit() and label_value(label) >= 2**32 for label in labels)


def _check_skipped(skipped: bytes, path: str, limits: Limits) -> None:
    for number, line in enumerate(skipped.split(b"\n") if skipped else (), start=1):
        check_length(len(line), limits, path, number)
        content = content_of(line)
        if isinstance(content, Fault):
            content.raise_at(path, number)

"""Look at the first lines of a text file: separator, header row, which columns, integer or text labels.

The first data lines (at most 100) decide. A field is number-like when Python's ``float`` accepts it: so ``-3``, ``1.5``
or ``nan`` do not make a file of names out of a file of integers, they are errors in it.

* Separator: blanks, comma or semicolon, by which at least half of the lines begin with two number-like fields; else the
  first of tab, comma and semicolon that separates well-known names in the first line, or is in every line; else blanks.
  Tabs separate instead of blanks where all lines have one and blanks would cut fields.
* Header: the first line, where two of its names are a well-known pair or the user has named one of them; where neither
  end is number-like while both are in the second line, unless labels are said to be text; or where no further field is
  number-like while one of those columns is in all the other lines.
* Columns: `wedgewise.read.columns` chooses.
* Integer labels: at least half of the lines have two number-like ends. Otherwise labels are text.
"""

from __future__ import annotations

from dataclasses import dataclass

from wedgewise.errors import FormatError
from wedgewise.read._text_lines import (
    BLANK,
    BLANKS,
    COMMA,
    COMMENT_MARKS,
    SEMICOLON,
    TAB,
    Fault,
    LabelKind,
    check_length,
    content_of,
    label_value,
    shown,
    split,
    split_quoted,
)
from wedgewise.read.columns import FIRST_TWO, ColumnChoice, Ends, Table, choose_columns, names_known_pair
from wedgewise.read.sniff import Beginning
from wedgewise.stages import Column
from wedgewise.stages.limits import Limits

SAMPLE_LINES = 100
MISSING = (b"", b"na", b"n/a", b"null", b"none", b"?", b"-")  # stands for a number that is not known, and is no name
_FIRST_HEAD_BYTES = 64 * 2**10
_LAST_HEAD_BYTES = 64 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

Fields = list[bytes]


@dataclass(frozen=True, slots=True)
class Layout:
    """How to read a file; its rows start at byte ``begin``, after ``lines_before`` lines.

    ``names`` are those of the header, None without one. ``is_guessed`` says that nobody has said whether there is one.
    """

    kind: LabelKind
    delimiter: bytes
    begin: int
    lines_before: int
    names: tuple[str, ...] | None
    ends: Ends
    wide: bool
    is_guessed: bool
    has_quotes: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether rows begin with two integers and nothing else is read of them."""
        return self.kind == "int" and self.ends == FIRST_TWO and self.delimiter != TAB and not self.has_quotes

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of the way that the file is read."""
        return () if self.names is None else (f"header row skipped: {self.delimiter.decode().join(self.names)[:400]}",)

    def ignored(self, width: int) -> tuple[Column, ...]:
        """The columns that are not read, where the widest row has so many."""
        return self.ends.ignored(self.names, max(width, len(self.names or ())))


@dataclass(frozen=True, slots=True)
class _Line:
    """A data line of the sample: its number, and the bytes it spans."""

    number: int
    begin: int
    end: int


def find_layout(content: Beginning, labels: str, limits: Limits, choice: ColumnChoice) -> Layout:
    """Decide how to read `content` from its first data lines; raise for faults in the lines before them."""
    head, sample = _sample(content, limits)
    if head[:2] in _UTF16_MARKS:
        raise FormatError(
            "UTF-16 text",
            path=content.name,
            line=1,
            remedy="convert the file to UTF-8 (iconv -f utf-16 -t utf-8)",
        )
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    is_guessed = choice.header == "auto"
    if not sample:
        return Layout("text" if labels == "text" else "int", BLANK, start, 0, None, FIRST_TWO, False, is_guessed)
    first = sample[0]
    lines = [head[line.begin : line.end] for line in sample]
    delimiter = _separator(lines, labels)
    rows = [_fields(line, delimiter) for line in lines]
    has_header = _looks_like_header(rows, choice, labels) if is_guessed else bool(choice.header)
    begin, lines_before = first.begin, first.number - 1
    if has_header:
        begin, lines_before = min(first.end + 1, len(head)), first.number
    _check_skipped(head[start:begin], content.name, limits)
    names = tuple(shown(name) for name in rows[0]) if has_header else None
    body = rows[1:] if has_header else rows
    ends = _choose_ends(content.name, names, body, choice)
    kind = _kind(body, ends, labels)
    wide = kind == "int" and any(_is_wide(row, ends) for row in body)
    has_quotes = delimiter in (COMMA, SEMICOLON) and any(b'"' in line for line in lines[len(rows) - len(body) :])
    return Layout(kind, delimiter, begin, lines_before, names, ends, wide, is_guessed, has_quotes)


def _sample(content: Beginning, limits: Limits) -> tuple[bytes, list[_Line]]:
    """The first bytes and their first data lines: at least two lines if there are any within 64 MiB.

    No more of a line is looked at than shows that it is too long.
    """
    size = _FIRST_HEAD_BYTES
    while True:
        head = content.head(size)
        complete = len(head) < size
        sample = _data_lines(head, complete)
        if complete or len(sample) >= 2 or size >= _LAST_HEAD_BYTES:
            return head, sample
        unfinished = len(head) - head.rfind(b"\n") - 1
        check_length(unfinished, limits, content.name, head.count(b"\n") + 1)
        size *= 4


def _data_lines(head: bytes, complete: bool) -> list[_Line]:
    lines: list[_Line] = []
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
        if text and text[0] not in COMMENT_MARKS:
            lines.append(_Line(number, at, end))
        at = end + 1
    return lines


def _separator(lines: list[bytes], labels: str) -> bytes:
    """What separates the columns."""
    candidates = {mark: [_begins_with_numbers(line, mark) for line in lines] for mark in (BLANK, COMMA, SEMICOLON)}
    integer_mark = max(candidates, key=lambda mark: sum(candidates[mark]))
    numeric = candidates[integer_mark]
    body = numeric[1:] if len(lines) > 1 and not numeric[0] else numeric
    if labels != "text" and any(numeric) and 2 * sum(body) >= len(body):
        return TAB if integer_mark == BLANK and _tabs_separate(lines) else integer_mark
    marks = TAB, COMMA, SEMICOLON
    named = (mark for mark in marks if names_known_pair([shown(name) for name in _fields(lines[0], mark)]))
    return next(named, next((mark for mark in marks if all(mark in line for line in lines)), BLANK))


def _begins_with_numbers(line: bytes, delimiter: bytes) -> bool:
    columns = _fields(line, delimiter)
    return len(columns) >= 2 and _is_number(columns[0]) and _is_number(columns[1])


def _tabs_separate(lines: list[bytes]) -> bool:
    """Whether tabs cut the lines into other columns than blanks do."""
    return all(TAB in line for line in lines) and any(len(_fields(line, TAB)) != len(line.split()) for line in lines)


def _fields(line: bytes, delimiter: bytes) -> Fields:
    """The columns of a line as far as they can be told: what is wrong with it is said by whoever reads it."""
    content = content_of(line, delimiter)
    if isinstance(content, Fault):
        return split(line, delimiter)
    columns = split_quoted(content, delimiter)
    return split(content, delimiter) if isinstance(columns, Fault) else columns


def _looks_like_header(rows: list[Fields], choice: ColumnChoice, labels: str) -> bool:
    """Whether the first line names the columns."""
    first, others = rows[0], rows[1:]
    names = [shown(name) for name in first]
    if names_known_pair(names) or any(_is_name(column, names) for _, column in choice.given):
        return True
    if not others:
        return False
    ends = [column for column in (choice.source, choice.target) if isinstance(column, int)]
    at = tuple(ends) if len(ends) == 2 else FIRST_TWO.positions
    if labels != "text" and len(first) > max(at) and _numbers_at(first, at) == 0 and _numbers_at(others[0], at) == 2:
        return True
    further = tuple(range(2, len(first)))
    named = [position for position in further if first[position].lower() not in MISSING]
    is_numeric = any(all(_numbers_at(row, (position,)) for row in others) for position in named)
    return is_numeric and _numbers_at(first, further) == 0


def _is_name(column: Column, names: list[str]) -> bool:
    """Whether a column that the user named is in the first line, and is no position."""
    is_position = isinstance(column, int) or (column.isdigit() and int(column) < len(names))
    return column in names and not is_position


def _choose_ends(path: str, names: tuple[str, ...] | None, body: list[Fields], choice: ColumnChoice) -> Ends:
    width = len(names) if names is not None else max(2, *map(len, body), 2)
    examples = [shown(field) for field in body[0]] if body else []
    return choose_columns(Table(path, width, names, lambda: _first_two_serve(body), examples), choice)


def _first_two_serve(body: list[Fields]) -> bool:
    """Whether nothing but the first two columns can be meant: see `wedgewise.read.columns`."""
    return _kind(body, FIRST_TWO, "auto") == "int" or all(_has_plain_rest(row) for row in body)


def _has_plain_rest(row: Fields) -> bool:
    rest = row[2:]
    is_dictionary = bool(rest) and rest[0].startswith(b"{")
    return is_dictionary or all(field.lower() in MISSING or _is_number(field) for field in rest)


def _kind(body: list[Fields], ends: Ends, labels: str) -> LabelKind:
    if labels in ("int", "text"):
        return "int" if labels == "int" else "text"
    numeric = sum(_numbers_at(row, (ends.source, ends.target)) == 2 for row in body)
    return "text" if 2 * numeric < len(body) else "int"


def _numbers_at(row: Fields, positions: tuple[int, ...]) -> int:
    """How many of these columns of a row are number-like."""
    return sum(position < len(row) and _is_number(row[position]) for position in positions)


def _is_number(field: bytes) -> bool:
    try:
        float(field.decode("utf-8"))
    except ValueError:
        return False
    return True


def _is_wide(row: Fields, ends: Ends) -> bool:
    """Whether a label of the row needs more than 32 bits."""
    labels = [row[position] for position in (ends.source, ends.target) if position < len(row)]
    return any(label.isdigit() and label_value(label) >= 2**32 for label in labels)


def _check_skipped(skipped: bytes, path: str, limits: Limits) -> None:
    for number, line in enumerate(skipped.split(b"\n"), start=1):
        check_length(len(line), limits, path, number)
        content = content_of(line)
        if isinstance(content, Fault):
            content.raise_at(path, number)

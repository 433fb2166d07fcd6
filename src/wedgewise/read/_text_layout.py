"""Look at the first lines of an edge list: integer or text labels, which separator, a header row or not.

The first data lines (at most 100) decide. A label is number-like when Python's ``float`` accepts it: so
``-3``, ``1.5`` or ``nan`` do not make a file of names out of a file of integers, they are errors in it.

* Integer labels: at least half of the lines have two number-like labels, under the separator (blanks, comma,
  semicolon) that gives the most such lines. Otherwise labels are text.
* Separator of text labels: tab, comma or semicolon, the first of them that is in every line; else blanks.
* Header row, integer labels: the first line, when neither label is number-like while both of the second line
  are.
* Header row, any labels: the first line, when its columns have one of the names in `HEADERS` (case and
  punctuation aside). It is no header otherwise: any other first line of a file of names is a pair.
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
from wedgewise.read.content import Content
from wedgewise.read.limits import Limits

HEADERS = frozenset(
    {
        ("source", "target"),
        ("source", "destination"),
        ("sourceid", "targetid"),
        ("src", "dst"),
        ("from", "to"),
        ("fromid", "toid"),
        ("fromnodeid", "tonodeid"),
        ("fromnode", "tonode"),
        ("node1", "node2"),
        ("id1", "id2"),
        ("vertex1", "vertex2"),
    }
)

SAMPLE_LINES = 100
_FIRST_HEAD_BYTES = 64 * 2**10
_LAST_HEAD_BYTES = 64 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Layout:
    """How to read a file; its pairs start at byte ``begin``, after ``lines_before`` lines."""

    kind: LabelKind
    delimiter: bytes
    begin: int
    lines_before: int
    header: str | None
    wide: bool


@dataclass(frozen=True, slots=True)
class _Line:
    """A data line of the sample: its number, the bytes it spans, its text without blanks at the ends."""

    number: int
    begin: int
    end: int
    content: bytes


def find_layout(content: Content, labels: str, limits: Limits) -> Layout:
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
    if not sample:
        return Layout("text" if labels == "text" else "int", BLANK, start, 0, None, False)
    kind, delimiter, has_header = _decide([line.content for line in sample], labels)
    first = sample[0]
    begin, lines_before = first.begin, first.number - 1
    if has_header:
        begin, lines_before = min(first.end + 1, len(head)), first.number
    _check_skipped(head[start:begin], content.name, limits)
    header = shown(first.content) if has_header else None
    wide = kind == "int" and any(_is_wide(line.content, delimiter) for line in sample)
    return Layout(kind, delimiter, begin, lines_before, header, wide)


def _sample(content: Content, limits: Limits) -> tuple[bytes, list[_Line]]:
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
            lines.append(_Line(number, at, end, text))
        at = end + 1
    return lines


def _decide(lines: list[bytes], labels: str) -> tuple[LabelKind, bytes, bool]:
    """Kind of labels, separator, and whether the first line is a header."""
    candidates = {mark: [_are_numbers(line, mark) for line in lines] for mark in (BLANK, COMMA, SEMICOLON)}
    integer_mark = max(candidates, key=lambda mark: sum(candidates[mark]))
    numeric = candidates[integer_mark]
    text_mark = next((mark for mark in (TAB, COMMA, SEMICOLON) if all(mark in line for line in lines)), BLANK)
    is_named = _names_columns(lines[0], text_mark) or _names_columns(lines[0], integer_mark)
    is_header = is_named or (len(lines) > 1 and numeric[1] and _has_no_number(lines[0], integer_mark))
    body = numeric[1:] if is_header else numeric
    if labels == "text" or (labels == "auto" and 2 * sum(body) < len(body)):
        return "text", text_mark, is_named
    if not any(numeric):
        integer_mark = BLANK if text_mark == TAB else text_mark
    return "int", integer_mark, is_header


def _are_numbers(line: bytes, delimiter: bytes) -> bool:
    columns = split(line, delimiter)
    return len(columns) >= 2 and _is_number(columns[0]) and _is_number(columns[1])


def _has_no_number(line: bytes, delimiter: bytes) -> bool:
    columns = split(line, delimiter)
    return len(columns) >= 2 and not _is_number(columns[0]) and not _is_number(columns[1])


def _is_number(label: bytes) -> bool:
    try:
        float(label.decode("utf-8"))
    except ValueError:
        return False
    return True


def _names_columns(line: bytes, delimiter: bytes) -> bool:
    columns = split_quoted(line, delimiter)
    if isinstance(columns, Fault) or len(columns) < 2:
        return False
    first, second = ("".join(letter for letter in shown(column).lower() if letter.isalnum()) for column in columns[:2])
    return (first, second) in HEADERS


def _is_wide(line: bytes, delimiter: bytes) -> bool:
    """Whether a label of the line needs more than 32 bits."""
    return any(label.isdigit() and label_value(label) >= 2**32 for label in split(line, delimiter)[:2])


def _check_skipped(skipped: bytes, path: str, limits: Limits) -> None:
    for number, line in enumerate(skipped.split(b"\n"), start=1):
        check_length(len(line), limits, path, number)
        content = content_of(line)
        if isinstance(content, Fault):
            content.raise_at(path, number)

"""Would `ww.read` read back what is written? Labels and the beginning of a file, judged by the readers' own rules.

A reader decides by the beginning of a file: compression and format by signatures, then by the suffix; separator, header
and kind of labels by the first lines. A label, or an id in raw pairs, can look like any of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError, InputError
from wedgewise.read import ReadOptions
from wedgewise.read._text_layout import SAMPLE_LINES, TextLayout, find_layout, is_number
from wedgewise.read.columns import ANY_COLUMNS, FIRST_TWO
from wedgewise.read.content import find_compression
from wedgewise.read.pairs_file import repeats
from wedgewise.read.sniff import sniff
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import DEFAULT_LIMITS

TABLES = "write .parquet or .arrow"
SHOWN_LETTERS = 60
UNREADABLE_IN_TEXT = b' \t\r\n\v\f,"\0'
PART_LABELS = 2**16


@dataclass(frozen=True, slots=True)
class _Head:
    """The first bytes of a file that is being written, behind its compression."""

    data: bytes
    name: str

    def head(self, size: int) -> bytes:
        return self.data[:size]


def check_format(head: bytes, path: str, format: str, *, compressed: bool) -> None:
    """Refuse a file that would be taken for another format than it has; one that readers ask about is not.

    Raises
    ------
    InputError
        That names the format it would be taken for, and one that is never mistaken.
    """
    taken = _format_of(head, path, compressed)
    if taken not in (format, None):
        raise InputError(
            f"{path}: would be read as {taken}, by its suffix or its first bytes, and is {format}; give the file the "
            "suffix of its format, or write .npy, whose first bytes name it"
        )


def header_of_names(head: bytes, path: str, separator: str, *, compressed: bool) -> bytes:
    """The header line, empty where none is needed, behind which text labels are read back as they are.

    Raises
    ------
    InputError
        Where no header makes them so, which names a label and a format that holds it.
    """
    check_format(b"", path, "text", compressed=compressed)
    named = f"source{separator}target\n".encode()
    for header in (b"", named):
        if _format_of(header + head, path, compressed) == "text" and _is_read_as(header, head, path, separator):
            return header
    raise InputError(_why_not(_layout(named + head, path), head, path, separator))


def check_names(path: str, names: TextLabels) -> None:
    """Refuse labels that no text file can hold, wherever they stand in it."""
    is_unreadable = np.zeros(256, np.bool_)
    is_unreadable[list(UNREADABLE_IN_TEXT)] = True
    for begin in range(0, len(names), PART_LABELS):
        some = names[begin : begin + PART_LABELS]
        first, last = some.offsets[:-1], some.offsets[1:]
        odd = first == last
        odd[~odd] = np.isin(some.data[first[~odd]], list(b"#%"))
        inside = np.flatnonzero(is_unreadable[some.data[first[0] : last[-1]]]) + first[0]
        odd[np.searchsorted(last, inside, side="right")] = True
        if odd.any():
            raise InputError(
                f"{path}: the label {shown_label(some[int(np.argmax(odd))])} cannot stand in a text file (it is empty, "
                f"or has a blank, a comma or a quote, or # or % in front); {TABLES}"
            )


def check_lines(path: str, names: TextLabels, block: NDArray[Any]) -> None:
    """Refuse a line that readers refuse for its length."""
    lengths = (names.offsets[1:][block] - names.offsets[:-1][block]).sum(axis=1) + 1
    if int(lengths.max(initial=0)) > DEFAULT_LIMITS.line_bytes:
        longest = max((names[int(end)] for end in block[int(np.argmax(lengths))]), key=len)
        raise InputError(
            f"{path}: the label {shown_label(longest)} makes a line of more than {DEFAULT_LIMITS.line_bytes:,} bytes, "
            f"which readers of text refuse; {TABLES}"
        )


class SeenPairs:
    """What decides how raw pairs are read, of the blocks that pass."""

    def __init__(self) -> None:
        self.pairs = self.second_ids = self.largest = 0
        self._different: list[NDArray[Any]] | None = []

    def watched(self, block: NDArray[Any]) -> NDArray[Any]:
        self.pairs += len(block)
        self.second_ids |= int(block[:, 1].max(initial=0))
        self.largest = max(self.largest, int(block.max(initial=0)))
        if self._different is not None:
            self._different.append(block.reshape(-1))
            if repeats(self._different[-1]):
                self._different = None
        return block

    def all_differ(self) -> bool:
        """Whether no id occurs twice."""
        return self._different is not None and not repeats(np.concatenate(self._different))


def shown_label(label: str) -> str:
    """A label as messages show it."""
    return repr(label if len(label) <= SHOWN_LETTERS else label[: SHOWN_LETTERS - 1] + "…")


def _format_of(head: bytes, path: str, compressed: bool) -> str | None:
    """The format or compression that a reader finds; None where it refuses to guess."""
    compression = None if compressed else find_compression(head, path, None)
    try:
        return compression or sniff(_Head(head, path))
    except FormatError:
        return None


def _layout(text: bytes, path: str) -> TextLayout | None:
    """How a reader would read a text that begins like this; None where it would refuse to."""
    try:
        return find_layout(_Head(text, path), ReadOptions("auto", ANY_COLUMNS, DEFAULT_LIMITS, threads=1))
    except FormatError:
        return None


def _is_read_as(header: bytes, head: bytes, path: str, separator: str) -> bool:
    """Whether every line behind the header is a pair of text labels."""
    layout = _layout(header + head, path)
    return (
        layout is not None
        and (layout.kind, layout.form.delimiter, layout.form.ends) == ("text", separator.encode(), FIRST_TWO)
        and (layout.begin, layout.header is not None) == (len(header), bool(header))
    )


def _why_not(layout: TextLayout | None, head: bytes, path: str, separator: str) -> str:
    lines = head.split(b"\n", SAMPLE_LINES)[:SAMPLE_LINES]
    labels = [label for line in lines for label in line.split(separator.encode()) if label]
    if layout is not None and layout.kind == "int":
        number = next(filter(is_number, labels), labels[0]).decode()
        return f"{path}: text labels such as {shown_label(number)} would be read back as numbers; {TABLES}"
    label = next((label for label in labels if label in (b"source", b"target")), labels[0]).decode()
    return f"{path}: the label {shown_label(label)} would not be read back as it is; {TABLES}"

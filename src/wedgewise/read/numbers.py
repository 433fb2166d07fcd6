"""Lines of numbers, tokenised with NumPy block by block: the ground under Matrix Market and METIS.

Blocks are cut at any blank, not at line ends, so that memory stays bounded however long a line is. Every
word knows its line and its column (its place within the line), across block borders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.read.content import Content
from wedgewise.stages.limits import Limits

BLOCK_BYTES = 2**18
MAX_DIGITS = 18
WORD, BLANK, NEWLINE, ILLEGAL = 0, 1, 2, 3
BLANKS = "\t\v\f\r "
SKIPPED_LINES = re.compile(rb"(?:(?:%[^\n]*+|[\t\v\f\r ]*+)\n)*+")  # comments and blank lines
NO_TEXT_REMEDY = "the file is not text, or damaged: check where it comes from"


_kinds = np.full(256, WORD, np.uint8)
_kinds[:32] = _kinds[127] = ILLEGAL
_kinds[list(BLANKS.encode())] = BLANK
_kinds[10] = NEWLINE
_KINDS = _kinds.tobytes()


@dataclass(frozen=True, slots=True)
class Words:
    """The blank-separated words of one block. Lines count from 0 at the first line of the file."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    lines: NDArray[np.int64]
    columns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, chosen: NDArray[np.bool_]) -> Words:
        """The words where `chosen` is true."""
        return Words(self.text, self.starts[chosen], self.lengths[chosen], self.lines[chosen], self.columns[chosen])

    def word(self, index: int) -> str:
        """One word, for a message."""
        begin, length = int(self.starts[index]), int(self.lengths[index])
        return self.text[begin : begin + min(length, 200)].tobytes().decode("utf-8", "replace")

    def integers(self, name: str, remedy: str) -> NDArray[np.int64]:
        """The words as non-negative integers; the first one that is none raises FormatError."""
        values = np.zeros(len(self), np.int64)
        bad = self.lengths > MAX_DIGITS
        last = self.starts + self.lengths - 1
        for digit in range(min(int(self.lengths.max(initial=0)), MAX_DIGITS)):
            inside = self.lengths > digit
            digits = self.text[last - digit] - np.uint8(48)
            bad |= inside & (digits > 9)
            values += np.where(inside, digits, 0).astype(np.int64) * 10**digit
        if bad.any():
            at = int(np.argmax(bad))
            raise FormatError(
                "is no non-negative integer of at most 18 digits",
                path=name,
                line=int(self.lines[at]) + 1,
                text=self.word(at),
                remedy=remedy,
            )
        return values


class NumberStream:
    """Takes a few header lines from a text, then the words of all the rest."""

    def __init__(self, content: Content, limits: Limits) -> None:
        self.name, self.lines_taken = content.name, 0
        self._limits, self._blocks = limits, content.blocks(BLOCK_BYTES)
        self._buffer, self._at = b"", 0

    def next_line(self) -> str | None:
        """The next line without its end, or None at the end of the text."""
        end = self._buffer.find(b"\n", self._at)
        while end < 0:
            searched = len(self._buffer) - self._at
            self._limits.check("line_bytes", searched, path=f"{self.name}:{self.lines_taken + 1}")
            block = next(self._blocks, None)
            if block is None:
                break
            self._buffer = self._buffer[self._at :] + block.tobytes()
            self._at = 0
            end = self._buffer.find(b"\n", searched)
        if end < 0 and self._at == len(self._buffer):
            return None
        stop = len(self._buffer) if end < 0 else end
        line = self._buffer[self._at : stop]
        self._at = stop if end < 0 else stop + 1
        self.lines_taken += 1
        return self._decoded(line)

    def data_line(self) -> str | None:
        """The next line that is neither a % comment nor blank."""
        self._skip_whole_lines()
        while (line := self.next_line()) is not None:
            if line.strip(BLANKS) and not line.startswith("%"):
                return line
            self._skip_whole_lines()  # this line went on in the next block
        return None

    def _skip_whole_lines(self) -> None:
        """Go on behind the comments and blank lines that lie whole in the buffer, all at once."""
        skipped = SKIPPED_LINES.match(self._buffer, self._at)
        assert skipped is not None
        text, self._at = skipped[0], skipped.end()
        try:
            is_text = "\0" not in text.decode("utf-8")
        except UnicodeDecodeError:
            is_text = False
        for line in () if is_text else text.split(b"\n"):  # one of them is refused as `next_line` refuses it
            self.lines_taken += 1
            self._decoded(line)
        self.lines_taken += text.count(b"\n")

    def words(self) -> Iterator[Words]:
        """The words after the lines taken, in blocks; `lines_taken` counts on with every block."""
        column = 0
        for block in self._blank_ended_blocks():
            words = self._split(block, column)
            if len(words) and words.lines[-1] == self.lines_taken:  # the next word may stand on the same line
                column = int(words.columns[-1]) + 1
            elif b"\n" in block:
                column = 0
            yield words

    def _blank_ended_blocks(self) -> Iterator[bytes]:
        """The rest of the text in pieces that end with a blank, all but the last."""
        rest = self._buffer[self._at :]
        self._buffer, self._at = b"", 0
        for block in self._blocks:
            piece = rest + block.tobytes()
            cut = max(piece.rfind(blank) for blank in (b"\n", b" ", b"\t")) + 1
            if cut == 0 and len(piece) > BLOCK_BYTES:
                raise FormatError(
                    f"a word of more than {BLOCK_BYTES:,} bytes",
                    path=self.name,
                    line=self.lines_taken + 1,
                    text=piece[:200].decode("utf-8", "replace"),
                    remedy=NO_TEXT_REMEDY,
                )
            rest = piece[cut:]
            if cut:
                yield piece[:cut]
        if rest:
            yield rest

    def _split(self, block: bytes, column: int) -> Words:
        kinds = np.frombuffer(block.translate(_KINDS), np.uint8)
        if (kinds == ILLEGAL).any():
            at = int(np.argmax(kinds == ILLEGAL))
            raise FormatError(
                f"a control byte 0x{block[at]:02x}",
                path=self.name,
                line=self.lines_taken + block.count(b"\n", 0, at) + 1,
                remedy=NO_TEXT_REMEDY,
            )
        is_word = np.zeros(len(kinds) + 2, np.bool_)
        np.equal(kinds, WORD, out=is_word[1:-1])
        borders = np.flatnonzero(is_word[1:] != is_word[:-1])
        starts, ends = borders[::2], borders[1::2]
        newlines_before = np.cumsum(kinds == NEWLINE, dtype=np.int64)
        lines = newlines_before[starts]
        numbers = np.arange(len(starts))
        first_of_line = np.concatenate((np.ones(1, np.bool_), lines[1:] != lines[:-1]))[: len(starts)]
        columns = numbers - np.maximum.accumulate(np.where(first_of_line, numbers, 0))
        columns[lines == 0] += column
        words = Words(np.frombuffer(block, np.uint8), starts, ends - starts, lines + self.lines_taken, columns)
        self.lines_taken += int(newlines_before[-1])
        return words

    def _decoded(self, line: bytes) -> str:
        if b"\0" in line:
            raise FormatError("a NUL byte", path=self.name, line=self.lines_taken, remedy=NO_TEXT_REMEDY)
        try:
            return line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError:
            raise FormatError(
                "invalid UTF-8",
                path=self.name,
                line=self.lines_taken,
                text=repr(line[:40]),
                remedy=NO_TEXT_REMEDY,
            ) from None


def header_integers(line: str, name: str, number: int, meaning: str) -> list[int]:
    """The words of a header line as integers, each of at most 18 ASCII digits."""
    words = line.split()
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= MAX_DIGITS):
            raise FormatError(
                "is no non-negative integer of at most 18 digits",
                path=name,
                line=number,
                text=word,
                remedy=f"this line gives {meaning}",
            )
    return [int(word) for word in words]


def check_declared_bytes(content: Content, needed: int, declared: str, line: int) -> None:
    """Refuse a declaration that a plain file is too short to hold."""
    if content.size is not None and content.size < needed:
        raise FormatError(
            f"declares {declared}, which takes at least {needed:,} bytes; the file has {content.size:,}",
            path=content.name,
            line=line,
            remedy="the file is truncated or its header is wrong",
        )

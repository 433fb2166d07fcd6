"""Lines of numbers, tokenised with NumPy block by block: the ground under Matrix Market and METIS.

Blocks are cut at any blank, not at line ends, so that memory stays bounded however long a line is. Every
word knows its line and its column (its place within the line), across block borders.
"""

from __future__ import annotations

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
SKIPPED_BEGINNINGS = b"%\n" + BLANKS.encode()
NO_TEXT_REMEDY = "the file is not text, or damaged: check where it comes from"


def _byte_kinds() -> bytes:
    kinds = np.full(256, WORD, np.uint8)
    kinds[:32] = ILLEGAL
    kinds[127] = ILLEGAL
    kinds[list(BLANKS.encode())] = BLANK
    kinds[10] = NEWLINE
    return kinds.tobytes()


_KINDS = _byte_kinds()


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
        self.name = content.name
        self.lines_taken = 0
        self._limits = limits
        self._blocks = content.blocks(BLOCK_BYTES)
        self._buffer = b""
        self._at = 0

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
        if self._buffer[self._at : self._at + 1] not in SKIPPED_BEGINNINGS:
            return
        text = np.frombuffer(self._buffer, np.uint8)[self._at :]
        kinds = np.frombuffer(self._buffer.translate(_KINDS), np.uint8)[self._at :]
        ends = np.flatnonzero(kinds == NEWLINE) + 1
        if not len(ends):
            return
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
        has_words = np.logical_or.reduceat((kinds == WORD) | (kinds == ILLEGAL), starts)
        has_data = has_words & (text[starts] != ord("%"))
        lines = int(np.argmax(has_data)) if has_data.any() else len(ends)
        skipped = text[: starts[lines] if lines < len(ends) else ends[-1]].tobytes()
        self._check_skipped(skipped)
        self._at += len(skipped)
        self.lines_taken += lines

    def _check_skipped(self, text: bytes) -> None:
        """Refuse what `next_line` refuses."""
        bad = text.find(b"\0")
        try:
            text[: bad if bad >= 0 else None].decode("utf-8")
        except UnicodeDecodeError as error:
            bad = error.start
        if bad >= 0:
            self.lines_taken += text.count(b"\n", 0, bad) + 1
            self._decoded(text[text.rfind(b"\n", 0, bad) + 1 : text.index(b"\n", bad)])

    def words(self) -> Iterator[Words]:
        """The words after the lines taken, in blocks; `lines_taken` counts on with every block."""
        column = 0
        for block in self._blank_ended_blocks():
            words = self._split(block, column)
            column = self._column_after(block, words, column)
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

    def _column_after(self, block: bytes, words: Words, column: int) -> int:
        """The column of the next word if it stands on the line where the block ends."""
        if len(words) and words.lines[-1] == self.lines_taken:
            return int(words.columns[-1]) + 1
        return column if b"\n" not in block else 0

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
    if content.path is None or content.compression is not None or not content.path.is_file():
        return
    size = content.path.stat().st_size
    if size < needed:
        raise FormatError(
            f"declares {declared}, which takes at least {needed:,} bytes; the file has {size:,}",
            path=content.name,
            line=line,
            remedy="the file is truncated or its header is wrong",
        )

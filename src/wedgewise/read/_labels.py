"""Text labels to vertex numbers, in the order of first appearance."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.read._text_lines import Fault, Pair, check_length, inspect_text, text_fault
from wedgewise.read.limits import Limits


class Numbering:
    """Numbers the labels of one file, line after line.

    Bytes at its peak: 8 per pair, and about 150 per distinct label beside its text.
    """

    def __init__(self, path: str, delimiter: bytes, limits: Limits, lines_before: int) -> None:
        self.names: list[str] = []
        self.columns = 0
        self._path = path
        self._delimiter = delimiter
        self._limits = limits
        self._lines = lines_before
        self._number_of: dict[bytes, int] = {}
        self._pairs = array("I")

    def add_lines(self, text: bytes) -> None:
        """Take in whole lines; raise at the first faulty one."""
        number_of, add = self._number_of, self._pairs.append
        lines = text.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            self._lines += 1
            pair = self._inspect(line)
            if pair is None:
                continue
            for label in (pair.first, pair.second):
                number = number_of.get(label)
                add(self._new(label) if number is None else number)
            if pair.columns > self.columns:
                self.columns = pair.columns
        self._limits.check("pairs", len(self._pairs) // 2, path=self._path)

    def pairs(self) -> NDArray[Any]:
        """All pairs so far as vertex numbers, shape (k, 2)."""
        return np.array(self._pairs, dtype=np.uint32).reshape(-1, 2)

    def _inspect(self, line: bytes) -> Pair | None:
        if len(line) > self._limits.line_bytes:
            check_length(len(line), self._limits, self._path, self._lines)
        pair = inspect_text(line, self._delimiter)
        if isinstance(pair, Fault):
            pair.raise_at(self._path, self._lines)
        return pair

    def _new(self, label: bytes) -> int:
        fault = text_fault(label)
        if fault is not None:
            fault.raise_at(self._path, self._lines)
        number = len(self.names)
        if number >= self._limits.vertices:
            self._limits.check("vertices", number + 1, path=f"{self._path}:{self._lines}")
        self._number_of[label] = number
        self.names.append(label.decode("utf-8"))
        return number

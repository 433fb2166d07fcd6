"""Text labels to vertex numbers, in the order of first appearance."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.read._text_lines import Fault, check_length, inspect_text, text_fault
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
        delimiter, line_bytes, add = self._delimiter, self._limits.line_bytes, self._pairs.append
        lines = text.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            self._lines += 1
            if len(line) > line_bytes:
                check_length(len(line), self._limits, self._path, self._lines)
            pair = inspect_text(line, delimiter)
            if pair is None:
                continue
            if isinstance(pair, Fault):
                pair.raise_at(self._path, self._lines)
            add(self._number(pair.first))
            add(self._number(pair.second))
            if pair.columns > self.columns:
                self.columns = pair.columns
        self._limits.check("pairs", len(self._pairs) // 2, path=self._path)

    def pairs(self) -> NDArray[Any]:
        """All pairs so far as vertex numbers, shape (k, 2)."""
        return np.array(self._pairs, dtype=np.uint32).reshape(-1, 2)

    def _number(self, label: bytes) -> int:
        number = self._number_of.get(label)
        return self._new(label) if number is None else number

    def _new(self, label: bytes) -> int:
        fault = text_fault(label)
        if fault is not None:
            fault.raise_at(self._path, self._lines)
        number = len(self.names)
        self._limits.check("vertices", number + 1, path=f"{self._path}:{self._lines}")
        self._number_of[label] = number
        self.names.append(label.decode("utf-8"))
        return number

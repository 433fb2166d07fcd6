"""Runs operations until the time is over or an answer is wrong; tells how far it is, and how much memory it holds."""

from __future__ import annotations

import ctypes
import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from soak.operations import KINDS, OPERATIONS
from wedgewise.machine.hardware import resident_bytes

MINUTE = 60.0
SETTLED_SHARE = 0.1  # of the time, behind which kernels are loaded and memory has to stay as it is
JUDGED_SECONDS = 300.0  # in less, kernels are still being loaded
TOLERANCE_BYTES = 32 << 20
MEBI = 1 << 20
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wrong:
    """The operation that went wrong, everything that it said, and why."""

    seed: int
    number: int
    kind: str
    said: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        said = "".join(f"\n    {line}" for line in self.said)
        return (
            f"operation {self.number} ({self.kind}) went wrong:{said}\n{self.reason}\n"
            f"repeat it by: PYTHONPATH=tests python -m soak --seed {self.seed} --operation {self.number} "
            f"--kind {self.kind}"
        )


@dataclass(slots=True)
class Soak:
    """What has happened so far."""

    seed: int
    kinds: Sequence[str] = KINDS
    done: Counter[str] = field(default_factory=Counter)
    settled_bytes: int = 0
    wrong: Wrong | None = None

    @property
    def operations(self) -> int:
        return self.done.total()

    def run_one(self, number: int) -> None:
        """An operation by its number; `wrong` says if it was."""
        random = Random(f"{self.seed}/{number}")
        (kind,) = random.choices(self.kinds, [OPERATIONS[kind][1] for kind in self.kinds])
        said: list[str] = []
        try:
            OPERATIONS[kind][0](random, said.append)
        except Exception as error:  # whatever it is, the operation is told that it came from
            self.wrong = Wrong(self.seed, number, kind, tuple(said), f"{type(error).__name__}: {error}")
        self.done[kind] += 1

    def run(self, numbers: Iterator[int]) -> None:
        """Operations until one of them is wrong."""
        for number in numbers:
            self.run_one(number)
            if self.wrong is not None:
                return

    def run_for(self, seconds: float, progress: Progress) -> None:
        """Operations for so long, with a line every minute."""
        self.run(self._clocked(seconds, progress))

    def _clocked(self, seconds: float, progress: Progress) -> Iterator[int]:
        begin = time.perf_counter()
        told, number = begin, 0
        while (now := time.perf_counter()) - begin < seconds:
            if self.settled_bytes == 0 and now - begin >= SETTLED_SHARE * seconds:
                self.settled_bytes = settled_size()
            if now - told >= MINUTE:
                progress(self.line(now - begin, settled_size()))
                told += MINUTE
            yield number
            number += 1

    def line(self, seconds: float, resident: int) -> str:
        """How far it is."""
        differences = int(self.wrong is not None)
        return (
            f"{seconds:6.0f} s  {self.operations:>7,} operations  {differences} differences  "
            f"{resident / MEBI:,.0f} MiB resident"
        )


def settled_size() -> int:
    """The resident size when all that can be given back was."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps what is free
    if trim is not None:
        trim(0)
    return resident_bytes()


def is_flat(settled_bytes: int, end_bytes: int) -> bool:
    """Whether memory has stayed as it was once everything was loaded."""
    return end_bytes - settled_bytes <= TOLERANCE_BYTES

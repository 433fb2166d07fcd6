"""Every cap on input in one table. A reader checks them before it allocates, and while what it holds grows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from wedgewise.errors import LimitError, MemoryLimitError, UnknownNameError
from wedgewise.machine import hardware
from wedgewise.machine.budget import release_memory
from wedgewise.machine.parameters import as_integer, check_type

RESERVE_BYTES = 8 << 20  # small objects that nobody counts, and what the allocator keeps
UNCOUNTED_BYTES = 1 << 20  # that are taken at a time without a look at what the machine has left


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps that a caller can raise or lower: ``ww.read(path, limits=Limits(decompressed_bytes=2**40))``.

    Attributes
    ----------
    decompressed_bytes : bytes that a compressed file or stdin may expand to
    line_bytes : bytes of one line of a text format
    vertices : declared or distinct vertices
    pairs : declared or counted pairs
    memory_bytes : that this process may hold while a file is read, all that it holds already included; None is what
        the machine has left

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.Limits(vertices=1000).vertices
    1000
    """

    decompressed_bytes: int = 64 * 2**30
    line_bytes: int = 2**20
    vertices: int = 2**31 - 1
    pairs: int = 2 * 10**12
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        for cap in fields(self):
            value = getattr(self, cap.name)
            if value is not None or cap.default is not None:
                object.__setattr__(self, cap.name, as_integer(cap.name, value))

    def check(self, cap: str, value: int, *, path: str) -> None:
        """Raise LimitError when `value` exceeds the cap of that name."""
        allowed: int = getattr(self, cap)
        if value > allowed:
            raise LimitError(
                f"{path}: {cap.replace('_', ' ')} {value:,} over the limit of {allowed:,}; "
                f"raise it with limits=Limits({cap}=…) if the file is trusted"
            )

    def check_memory(self, more: int, *, path: str) -> None:
        """Raise MemoryLimitError when `more` bytes do not fit beside what this process holds now.

        Readers ask before every allocation, and between the pieces of what grows. Where no limit is set, less than a
        mebibyte is granted without a look.
        """
        if self.memory_bytes is None and more < UNCOUNTED_BYTES:
            return
        more += RESERVE_BYTES
        if self.memory_bytes is not None and hardware.resident_bytes() + more > self.memory_bytes:
            release_memory()
        if self.memory_bytes is not None and (held := hardware.resident_bytes()) + more > self.memory_bytes:
            raise MemoryLimitError(
                f"{path}: reading takes {more:,} bytes more, beside {held:,} that this process holds, and "
                f"{self.memory_bytes:,} are allowed",
                "raise the limit, or partition the graph first",
            )
        if more > (available := hardware.available_memory()):
            raise MemoryLimitError(
                f"{path}: reading takes {more:,} bytes more and {available:,} are available",
                "use a machine with more memory, or set a limit (--memory, memory_limit=) so that the question is "
                "answered from disk",
            )

    def memory_left(self) -> int:
        """Bytes that this process may take more, by the limit and by what the machine has left."""
        left = hardware.available_memory()
        if self.memory_bytes is not None:
            release_memory()
            left = min(left, self.memory_bytes - hardware.resident_bytes())
        return max(0, left - RESERVE_BYTES)

    def with_values(self, values: dict[str, Any]) -> Limits:
        """A copy with some caps replaced by name."""
        known = [item.name for item in fields(self)]
        for name in values:
            if name not in known:
                raise UnknownNameError(f"no limit named {name!r}; there are: {', '.join(known)}")
        return replace(self, **values)


DEFAULT_LIMITS = Limits()
MAX_LABEL = 2**63 - 1


def available_bytes_for(wanted: int, limits: Limits) -> int:
    """Bytes that this process may take more; where no limit is set, nobody looks for less than a mebibyte."""
    is_looked_for = limits.memory_bytes is not None or wanted >= UNCOUNTED_BYTES
    return limits.memory_left() if is_looked_for else MAX_LABEL


def checked_limits(limits: Limits | None) -> Limits:
    """The limits that a caller gave, or the defaults."""
    if limits is None:
        return DEFAULT_LIMITS
    check_type("limits", limits, Limits, "a wedgewise.Limits")
    return limits

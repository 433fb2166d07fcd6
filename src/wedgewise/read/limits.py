"""Every cap on input in one table. A reader checks them before it allocates."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from wedgewise.errors import LimitError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps that a caller can raise or lower: ``ww.read(path, limits=Limits(decompressed_bytes=2**40))``.

    Attributes
    ----------
    decompressed_bytes : bytes that a compressed file or stdin may expand to
    line_bytes : bytes of one line of a text format
    vertices : declared or distinct vertices
    pairs : declared or counted pairs

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

    def check(self, cap: str, value: int, *, path: str) -> None:
        """Raise LimitError when `value` exceeds the cap of that name."""
        allowed: int = getattr(self, cap)
        if value > allowed:
            raise LimitError(
                f"{path}: {cap.replace('_', ' ')} {value:,} over the limit of {allowed:,}; "
                f"raise it with limits=Limits({cap}=…) if the file is trusted"
            )

    def with_values(self, values: dict[str, Any]) -> Limits:
        """A copy with some caps replaced by name."""
        known = [item.name for item in fields(self)]
        for name in values:
            if name not in known:
                raise UnknownNameError(f"no limit named {name!r}; there are: {', '.join(known)}")
        return replace(self, **values)


DEFAULT_LIMITS = Limits()
MAX_LABEL = 2**63 - 1

"""Name the stage in which memory ran out: NumPy and the interpreter raise errors that do not say it."""

from __future__ import annotations

from contextlib import AbstractContextManager, ContextDecorator
from dataclasses import dataclass
from typing import Any

from wedgewise.errors import MemoryLimitError, WedgewiseError


@dataclass(frozen=True)
class memory_for(ContextDecorator, AbstractContextManager[Any]):
    """Name the stage within which memory runs out; also a decorator of the function that is the stage.

    A `WedgewiseError` passes as it is, so that the innermost stage is the one that is named; so does an error of a
    device, which has words of its own for it.
    """

    stage: str

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, MemoryError) or isinstance(error, WedgewiseError):
            return
        if type(error).__module__.startswith("cupy"):
            return
        why = f" ({error})" if str(error) else ""
        raise MemoryLimitError(
            f"{self.stage}: memory ran out{why}",
            "use a machine with more of it, or `wedgewise partition` the graph and ask the store",
        ) from error

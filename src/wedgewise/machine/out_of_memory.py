"""In which stage memory ran out: what NumPy and the interpreter raise without a place becomes an error that has one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wedgewise.errors import MemoryLimitError, WedgewiseError


@contextmanager
def memory_for(stage: str) -> Iterator[None]:
    """Name the stage within which memory runs out; also a decorator of the function that is the stage.

    Errors of ours pass as they are, so that the innermost stage is the one that is named; so do those of a device,
    which has words of its own for them.
    """
    try:
        yield
    except MemoryError as error:
        if isinstance(error, WedgewiseError) or type(error).__module__.startswith("cupy"):
            raise
        why = f" ({error})" if str(error) else ""
        raise MemoryLimitError(
            f"{stage}: memory ran out{why}; use a machine with more of it, or `wedgewise partition` the graph and ask "
            "the store"
        ) from error

"""Processes that end by SIGKILL in the middle of their work; where that is too short, they end as any other.

python -m soak.victim STORE QUESTION K NUMBER MOMENT
    asks a store, and dies at a line of its journal: before it, with half of it written, or behind it
python -m soak.victim FOLDER partition PARTS NUMBER before
    makes FOLDER/store of FOLDER/pairs.npy, and dies before a file is brought to the disk
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import wedgewise as ww
from wedgewise.machine import files as storage
from wedgewise.run import checkpoint
from wedgewise.store.build import write_store

MOMENTS = ("before", "within", "behind")
PARTITION = "partition"


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Ended(BaseException):
    """Ends a question in a process that goes on."""


def end(*_: object) -> None:
    raise Ended


@contextmanager
def ended_at(number: int, moment: str) -> Iterator[None]:
    """Questions end at a line of their journal as if by a kill, but for what they do on the way out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "append_line", dying(checkpoint.append_line, number, moment, end))  # type: ignore[attr-defined]
        yield


def dying(append: Callable[..., None], number: int, moment: str, die: Callable[[], None] = die) -> Callable[..., None]:
    """The same function, but for the line at which the process ends."""
    left = number

    def write(path: Path, text: str, **how: Any) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            append(path, text, **how)
        elif moment == "before":
            die()
        elif moment == "within":
            with path.open("ab") as file:
                file.write(text.encode()[: len(text) // 2])
            die()
        else:
            append(path, text, **how)
            die()

    return write


def partition(folder: Path, parts: int, number: int) -> None:
    """Make a store; the process ends instead of bringing the file of that number to the disk."""
    left, really = number, os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            die()
        really(descriptor)

    storage.os.fsync = fsync  # type: ignore[attr-defined]
    write_store(folder / "pairs.npy", folder / "store", parts=parts)


def main(folder: str, question: str, k: str, number: str, moment: str) -> None:
    assert moment in MOMENTS
    if question == PARTITION:
        return partition(Path(folder), int(k), int(number))
    module: Any = checkpoint
    module.append_line = dying(module.append_line, int(number), moment)
    details: dict[str, Any] = {"k": int(k)} if question == "k_truss" else {}
    ww.run(question, folder, **details)


if __name__ == "__main__":
    main(*sys.argv[1:])

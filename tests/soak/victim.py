"""``python -m soak.victim STORE QUESTION K NUMBER MOMENT``: asks a store, and dies by SIGKILL at a line of its journal.

It dies when so many lines were written: before the next one, with half of it written, or behind it. Where there are not
so many, it ends as any other process.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wedgewise as ww
from wedgewise.execute import journal, slices

MOMENTS = ("before", "within", "behind")


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(append: Callable[[Path, str], None], number: int, moment: str) -> Callable[[Path, str], None]:
    """The same function, but for the line at which the process ends."""
    left = number

    def write(path: Path, text: str) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            append(path, text)
        elif moment == "before":
            die()
        elif moment == "within":
            with path.open("ab") as file:
                file.write(text.encode()[: len(text) // 2])
            die()
        else:
            append(path, text)
            die()

    return write


def main(folder: str, question: str, k: str, number: str, moment: str) -> None:
    assert moment in MOMENTS
    modules: tuple[Any, ...] = (journal, slices)
    for module in modules:
        module.append_line = dying(module.append_line, int(number), moment)
    details: dict[str, Any] = {"k": int(k)} if question == "k_truss" else {}
    ww.run(question, folder, **details)


if __name__ == "__main__":
    main(*sys.argv[1:])

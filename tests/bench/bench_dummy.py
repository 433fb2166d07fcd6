"""A system that behaves as its algorithm says, to test the harness."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

TRIANGLES = 45


class Dummy:
    """Counts 45 triangles, or fails in the way that its algorithm names; lists the only one of a triangle."""

    name: ClassVar[str] = "dummy"
    package: ClassVar[str] = "numpy"
    algorithms: ClassVar[tuple[str, ...]] = ("right", "wrong")
    warms_up: ClassVar[bool] = True

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None:
        self.algorithm = algorithm
        self.knobs = knobs
        self.calls = itertools.count()

    def load(self) -> None:
        if self.algorithm == "missing":
            raise ModuleNotFoundError("no module named dummy_library")

    def prepare(self, pairs: Any) -> Any:
        if self.algorithm == "slow-build":
            time.sleep(60)
        return pairs

    def prepare_file(self, path: str) -> Any:
        with open(path, "rb") as file:
            return file.read()

    def count(self, prepared: Any) -> int:
        match self.algorithm:
            case "wrong":
                return TRIANGLES + 1
            case "unstable":
                return TRIANGLES + next(self.calls)
            case "error":
                raise RuntimeError("cannot read /secret/folder/graph.txt")
            case "exit":
                sys.stderr.write("first words\nlast words at /secret/folder/place.c\n")
                sys.stderr.flush()
                os._exit(3)
            case "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "hang":
                tell_pid(os.getpid())
                time.sleep(60)
            case "spawn":
                helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
                tell_pid(helper.pid)
                helper.wait()
            case "eat":
                hoard = [bytearray(b"x" * 2**24) for _ in range(256)]
                return len(hoard)
            case "refused":
                raise MemoryError("the library asked for too much")
            case "noisy":
                print("libraries print")
        return TRIANGLES + int(self.knobs.get("more", 0))

    def triangles(self, prepared: Any) -> list[int]:
        """Three corners of one triangle each; the wrong ones have the right sum."""
        return [3, 0, 0] if self.algorithm == "wrong" else [1, 1, 1]

    def clustering(self, prepared: Any) -> list[float]:
        return [0.5] * 3 if self.algorithm == "wrong" else [1.0] * 3

    def k_truss(self, prepared: Any, k: int) -> list[int]:
        """All edges of the triangle up to k = 3, none behind it; the wrong ones are too few."""
        return list(range(2 if self.algorithm == "wrong" else 3)) if k <= 3 else []

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        return answer

    def frame(self, prepared: Any) -> Any:
        import numpy as np

        ends = np.array([[0, 0, 1], [1, 2, 2]])
        return SimpleNamespace(ids=np.array([7, 8, 9]), degrees=np.array([2, 2, 2]), first=ends[0], second=ends[1])


def tell_pid(pid: int) -> None:
    """Write a process number where a test asked for it."""
    if "DUMMY_PID_FILE" in os.environ:
        Path(os.environ["DUMMY_PID_FILE"]).write_text(f"{pid}\n")

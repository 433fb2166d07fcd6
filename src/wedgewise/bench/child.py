"""The process of one cell: run as a script, it loads one system, times it and reports every step on a pipe.

The job is the first line of stdin; the only argument is the file descriptor of the pipe.

It imports neither wedgewise nor a third-party package by itself, so that no system pays for another one's
start: the system's class comes from a source file that is loaded by its path. Each report is one line of
JSON:

    {"stage": "load" | "prepare" | "count"}     what begins now; the parent restarts its clock
    {"timed": seconds, "answer": triangles}     one repeat
    {"failed": status, "message": text}         the end, in place of the next stage
    {"peak_bytes": bytes}                       the end
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

SHORT_SECONDS = 2.0
LONG_SECONDS = 10.0
LEAST_REPEATS = 5
MOST_REPEATS = 25


def planned_repeats(first_seconds: float) -> int:
    """How many runs to time, given the length of the first one after the warm-up.

    Short runs are repeated for about two seconds, but 5 to 25 times; runs over 2 s take place three times,
    runs over 10 s once.
    """
    if first_seconds > LONG_SECONDS:
        return 1
    if first_seconds > SHORT_SECONDS:
        return 3
    affordable = int(SHORT_SECONDS / first_seconds) if first_seconds > 0 else MOST_REPEATS
    return max(LEAST_REPEATS, min(MOST_REPEATS, affordable))


def main(job: dict[str, Any], descriptor: int) -> None:
    """Do the job and report on the pipe with that file descriptor."""
    with os.fdopen(descriptor, "w", buffering=1) as pipe:

        def report(**line: Any) -> None:
            pipe.write(json.dumps(line) + "\n")

        try:
            _run(job, report)
        except ModuleNotFoundError as error:
            report(failed="unavailable", message=str(error))
        except MemoryError as error:
            report(failed="out_of_memory", message=_one_line(error))
        except Exception as error:  # whatever a library raises is this cell's result
            report(failed="crashed", message=_one_line(error))
        else:
            report(peak_bytes=peak_bytes())


def _run(job: dict[str, Any], report: Callable[..., None]) -> None:
    report(stage="load")
    system = _class_of(job["source"], job["name"])(job["algorithm"], job["threads"], job["knobs"])
    system.load()
    report(stage="prepare")
    if job["row"] == "file":
        seconds, answer = _timed(lambda: system.count(system.prepare_file(job["text_path"])))
        report(timed=seconds, answer=answer)
        return
    import numpy as np

    pairs = np.load(job["pairs_path"], allow_pickle=False)
    if job["row"] == "edges":
        report(stage="count")
        _repeat(lambda: system.count(system.prepare(pairs)), report)
    else:
        prepared = system.prepare(pairs)
        report(stage="count")
        _repeat(lambda: system.count(prepared), report)


def _repeat(work: Callable[[], int], report: Callable[..., None]) -> None:
    """Run once to warm up, then as often as is worth it, timed."""
    work()
    report(stage="count")
    seconds, answer = _timed(work)
    report(timed=seconds, answer=answer)
    for _ in range(planned_repeats(seconds) - 1):
        seconds, answer = _timed(work)
        report(timed=seconds, answer=answer)


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, int(answer)


def _class_of(source: str, name: str) -> Any:
    """The class whose `name` attribute is `name` in the Python file `source`."""
    spec = importlib.util.spec_from_file_location("benchmarked_system", source)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{source} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    classes = [item for item in vars(module).values() if isinstance(item, type)]
    return next(item for item in classes if getattr(item, "name", None) == name)


def peak_bytes(process: int | str = "self") -> int | None:
    """The most resident memory that a process had so far; None where the system does not tell.

    `getrusage` would also report what the parent had at the fork.
    """
    return _status_bytes(process, "VmHWM:")


def resident_bytes(process: int | str = "self") -> int | None:
    """The resident memory that a process has now; None where the system does not tell, or when it is gone."""
    return _status_bytes(process, "VmRSS:")


def _status_bytes(process: int | str, name: str) -> int | None:
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as file:
            words = file.read().split()
    except OSError:  # not Linux, or the process has ended
        return None
    return int(words[words.index(name) + 1]) * 1024 if name in words else None


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def _end_with_parent() -> None:
    """Stop this process when its parent is gone, however it ended: only then is stdin closed."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    first_line = sys.stdin.readline()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    main(json.loads(first_line), int(sys.argv[1]))

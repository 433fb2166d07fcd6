"""The process of one cell: run as a script, it loads one system, times it and reports every step on a pipe.

The job is the first line of stdin; the only argument is the file descriptor of the pipe.

It imports neither wedgewise nor a third-party package by itself, so that no system pays for another one's
start: the system's class comes from a source file that is loaded by its path. Each report is one line of
JSON:

    {"stage": "load" | "prepare" | question | "check"}      what begins now; the parent restarts its clock
    {"timed": seconds}                                      one repeat
    {"answer": number, "digest": text, "edges": edges}      what it found, summarised outside the timed part
    {"facts": object}                                       what else a system says of its work
    {"failed": status, "message": text}                     the end, in place of the next stage
    {"peak_bytes": bytes}                                   the end
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

SHORT_SECONDS = 2.0
LONG_SECONDS = 10.0
LEAST_REPEATS = 5
MOST_REPEATS = 25


def planned_repeats(first_seconds: float, most: int = MOST_REPEATS) -> int:
    """How many runs to time, given the length of the first one after the warm-up.

    Short runs are repeated for about two seconds, but 5 to 25 times; runs over 2 s take place three times,
    runs over 10 s once. None takes place more than `most` times.
    """
    if first_seconds > LONG_SECONDS:
        return 1
    if first_seconds > SHORT_SECONDS:
        return min(3, most)
    affordable = int(SHORT_SECONDS / first_seconds) if first_seconds > 0 else MOST_REPEATS
    return min(max(LEAST_REPEATS, affordable), most)


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
    ask = _Asking(system, job["question"], job["details"], job["repeats"], report)
    if job["row"] == "file":
        ask.timed(lambda: system.prepare_file(job["text_path"]))
        return
    import numpy as np

    pairs = np.load(job["pairs_path"], allow_pickle=False)
    if job["row"] == "edges":
        ask.repeatedly(lambda: system.prepare(pairs))
    else:
        prepared = system.prepare(pairs)
        ask.repeatedly(lambda: prepared)
        if hasattr(system, "facts"):
            report(facts=system.facts(prepared))


class _Asking:
    """One question to one system, as often as it has to be asked."""

    def __init__(
        self, system: Any, question: str, details: dict[str, int], most_repeats: int, report: Callable[..., None]
    ) -> None:
        self.system = system
        self.question = question
        self.most_repeats = most_repeats
        self.answer = partial(getattr(system, question), **details)
        self.report = report

    def repeatedly(self, prepare: Callable[[], Any]) -> None:
        """Ask once to warm up, where that helps, then as often as is worth it, timed."""
        if self.system.warms_up:
            self.report(stage=self.question)
            self.answer(prepare())
        self.report(stage=self.question)
        for _ in range(planned_repeats(self.timed(prepare), self.most_repeats) - 1):
            self.report(stage=self.question)
            self.timed(prepare)

    def timed(self, prepare: Callable[[], Any]) -> float:
        """Ask once; tell how long it took, then what came out."""
        start = time.perf_counter()
        prepared = prepare()
        answer = self.answer(prepared)
        seconds = time.perf_counter() - start
        self.report(timed=seconds)
        self.report(stage="check")
        self.report(**self._summary(prepared, answer))
        return seconds

    def _summary(self, prepared: Any, answer: Any) -> dict[str, Any]:
        if self.question == "count":
            return {"answer": int(answer), "digest": "", "edges": None}
        from wedgewise.bench.digest import summarise  # not before: the system was not to pay for it

        frame = self.system.frame(prepared)
        number, digest = summarise(self.question, frame, self.system.values(self.question, prepared, answer))
        return {"answer": number, "digest": digest, "edges": len(frame.first)}


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

"""The process of one cell: run as a script, it loads one system, times it and reports every step on a pipe.

The job is the first line of stdin; the system is loaded at once, and asked as soon as there is more to be read there.
The only argument is the file descriptor of the pipe.

It imports neither wedgewise nor a third-party package by itself, so that no system pays for another one's
start: the system's class comes from a source file that is loaded by its path; of a file of programs, `external` makes
one. Each report is one line of JSON:

    {"stage": "load" | "prepare" | question | "check"}      what begins now; the parent restarts its clock
    {"timed": seconds, "stages": {name: seconds}}           one repeat, and what it took by stage
    {"answer": number, "digest": text, "edges": edges}      what it found, summarised outside the timed part
    {"facts": object}                                       what else a system says of its work
    {"failed": status, "message": text}                     the end, in place of the next stage
    {"peak_bytes": bytes}                                   the end
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

SHORT_SECONDS = 2.0
LONG_SECONDS = 10.0
MIN_REPEATS = 5
MAX_REPEATS = 25


def planned_repeats(first_seconds: float, most: int = MAX_REPEATS) -> int:
    """How many runs to time, given the length of the first one after the warm-up.

    Short runs are repeated for about two seconds, but 5 to 25 times; runs over 2 s take place three times,
    runs over 10 s once. None takes place more than `most` times.
    """
    if first_seconds > LONG_SECONDS:
        return 1
    if first_seconds > SHORT_SECONDS:
        return min(3, most)
    affordable = int(SHORT_SECONDS / first_seconds) if first_seconds > 0 else MAX_REPEATS
    return min(max(MIN_REPEATS, affordable), most)


class Unavailable(Exception):
    """A system cannot answer here."""


def main(job: dict[str, Any], descriptor: int, wait: Callable[[], object] = lambda: None) -> None:
    """Do the job and report on the pipe with that file descriptor; `wait` returns when the system may be asked."""
    with os.fdopen(descriptor, "w", buffering=1) as pipe:

        def report(**line: Any) -> None:
            pipe.write(json.dumps(line) + "\n")

        try:
            _run(job, report, wait)
        except (ModuleNotFoundError, Unavailable) as error:
            report(failed="unavailable", message=str(error))
        except MemoryError as error:
            report(failed="out_of_memory", message=_one_line(error))
        except Exception as error:  # whatever a library raises is this cell's result
            report(failed="crashed", message=_one_line(error))
        else:
            report(peak_bytes=_most_bytes())


def _run(job: dict[str, Any], report: Callable[..., None], wait: Callable[[], object]) -> None:
    report(stage="load")
    system = system_of(job)
    system.load()
    reason = system.why_unavailable() if hasattr(system, "why_unavailable") else None
    if reason is not None:
        raise Unavailable(reason)
    wait()
    report(stage="prepare")
    ask = _Asking(system, job["question"], job["details"], job["repeats"], report)
    if job["row"] == "file":
        ask.timed(lambda: system.prepare_file(job["text_path"]))
    else:
        import numpy as np

        pairs = np.load(job["pairs_path"], allow_pickle=False)
        if job["row"] == "edges":
            ask.repeatedly(lambda: system.prepare(pairs))
        else:
            ask.of_loaded(pairs)
    if hasattr(system, "facts"):
        report(facts=system.facts(ask.prepared))


def system_of(job: dict[str, Any]) -> Any:
    """The system of a job; one that runs on several devices is told on which."""
    system = _class_of(job["source"], job["name"])
    where = {"device": job["device"]} if hasattr(system, "devices") else {}
    return system(job["algorithm"], job["threads"], job["knobs"], **where)


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
        self.prepared: Any = None
        self.is_loaded = False

    def of_loaded(self, pairs: Any) -> None:
        """Ask of a graph that is made once, as `repeatedly`."""
        prepared = self.system.prepare(pairs)
        if hasattr(self.system, "prepare_question"):
            self.system.prepare_question(self.question, prepared)
        self.is_loaded = True
        self.repeatedly(lambda: prepared)

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
        self.prepared = None  # two graphs at a time are nobody's peak, nor the end of one anybody's time
        start = time.perf_counter()
        self.prepared = prepare()
        answer = self.answer(self.prepared)
        seconds = time.perf_counter() - start
        measured = self.system.measured() if hasattr(self.system, "measured") else {}
        taken = measured.get("seconds", seconds)
        whole = {} if self.is_loaded else {"whole": taken}
        self.report(timed=taken, stages=measured.get("stages", {}) | whole)
        self.report(stage="check")
        self.report(**self._summary(answer, measured.get("edges")))
        return seconds

    def _summary(self, answer: Any, edges: int | None) -> dict[str, Any]:
        if self.question == "count":
            return {"answer": int(answer), "digest": "", "edges": edges}
        from wedgewise_bench.digest import summarise  # not before: the system was not to pay for it

        frame = self.system.frame(self.prepared)
        number, digest = summarise(self.question, frame, self.system.values(self.question, self.prepared, answer))
        return {"answer": number, "digest": digest, "edges": len(frame.first)}


def _class_of(source: str, name: str) -> Any:
    """The class whose `name` attribute is `name` in the Python file `source`, or that of a program in a TOML file."""
    if source.endswith(".toml"):
        from wedgewise_bench.external import class_of

        return class_of(source, name)
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


def _most_bytes() -> int | None:
    """The most resident memory that this process had, or the largest of those that it started and waited for."""
    own = peak_bytes()
    return None if own is None else max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)


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


def session(leader: int) -> list[int]:
    """The processes of the session that a process leads."""
    try:
        names = os.listdir("/proc")
    except OSError:  # not Linux
        return [leader]
    return [int(name) for name in names if name.isdecimal() and _leader_of(int(name)) == leader]


def _leader_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended
        return None


def kill_session(leader: int) -> None:
    """Kill what is left of a session: those that made groups of their own, then the group of its leader at once."""
    _kill_followers(leader)
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _kill_followers(leader: int) -> None:
    for pid in session(leader):
        if pid != leader:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def _first_line() -> bytes:
    """Of stdin, and nothing behind it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise SystemExit("no job: the parent is gone")
        line += byte
    return line


def _heed_parent(may_go_on: threading.Event, folder: str) -> None:
    """Go on when the parent says so; stop, with all that was started, when it is gone: then stdin is closed.

    The folder of temporary files, which the parent made, goes with them.
    """
    while os.read(0, 1):
        may_go_on.set()
    import shutil  # not before: the system was not to pay for it

    _kill_followers(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    kill_session(os.getpid())


if __name__ == "__main__":
    its_job, told = json.loads(_first_line()), threading.Event()
    threading.Thread(target=_heed_parent, args=(told, its_job["folder"]), daemon=True).start()
    main(its_job, int(sys.argv[1]), told.wait)

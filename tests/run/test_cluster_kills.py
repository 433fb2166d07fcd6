"""Worker processes of this machine that are killed, stopped and poisoned: always the exact total, nothing left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from helpers.commands import PATIENCE, run
from helpers.graphs import TRUTHS, fixture_pairs
from helpers.http_server import wait_for
from helpers.store_counts import count_on_cluster

import wedgewise as ww
from run.cluster_workers import children
from wedgewise.errors import ClusterError, FormatError
from wedgewise.run import _process_workers, cluster
from wedgewise.run._process_workers import HELD_BACK, LocalWorker, LocalWorkers, signals_held_back
from wedgewise.run.checkpoint import JOURNAL
from wedgewise.run.cluster import make_batches
from wedgewise.stages.tasks import busy_tasks
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

JAZZ = TRUTHS["jazz"]["triangles"]
TASKS = 20  # of jazz in four parts, all of which have arcs

in_other_processes = pytest.mark.compiled  # whose lines are not counted with the JIT off


@pytest.fixture
def jazz(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)


@pytest.fixture(autouse=True)
def one_task_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work so short would be one batch."""
    monkeypatch.setattr(cluster, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "MAX_SECONDS", 0.0)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were started."""
    pids: list[int] = []
    really = LocalWorker.start

    def start(self: LocalWorker) -> None:
        really(self)
        assert self._process is not None
        pids.append(self._process.pid)

    monkeypatch.setattr(LocalWorker, "start", start)
    return pids


def is_running(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def has_ended(pid: int) -> bool:
    """Gone, or waiting for whoever adopts orphans."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def let(monkeypatch: pytest.MonkeyPatch, folder: Path, how: str, *at: int) -> None:
    """Have workers misbehave at some tasks."""
    noted = folder / "begun"
    noted.mkdir()
    monkeypatch.setattr(_process_workers, "PROGRAM", misbehaving(how, at, noted))


def misbehaving(how: str, at: tuple[int, ...], noted: Path) -> str:
    """What worker processes run then."""
    return f"from run.cluster_workers import serve_misbehaving; serve_misbehaving({how!r}, {at!r}, {str(noted)!r})"


def in_order(store: Store) -> list[int]:
    """Tasks as they are submitted."""
    tasks = busy_tasks(store.partition, store.counts).in_reuse_order()
    return [number for batch in make_batches(tasks, 2) for number in batch]


def begun(folder: Path) -> set[str]:
    """Tasks that have begun, with the time: TASK-0, TASK-1 …"""
    return set(os.listdir(folder / "begun"))


def test_workers_that_cannot_start_are_given_up(
    jazz: Store, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    """No task is blamed for it, and the end of the log says why."""
    monkeypatch.setattr(_process_workers, "PROGRAM", "print('x' * 3_000); import no_such_library")
    monkeypatch.setattr(_process_workers, "RESTARTS_PER_WORKER", 1)
    with pytest.raises(
        ClusterError, match=r"again and again, the last one with exit code 1: (?s:.*)'no_such_library'$"
    ):
        count_on_cluster(jazz, workers=2)
    assert len(started) == 4
    assert not any(map(is_running, started))


@pytest.mark.parametrize("in_another_thread", [False, True])
def test_signals_come_when_what_was_started_is_known(in_another_thread: bool) -> None:
    said: list[str] = []

    def start() -> None:
        with signals_held_back():
            if not in_another_thread:
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(signal.SIGINT)
            said.append("known")

    before = {number: signal.signal(number, lambda number, _: said.append("heard")) for number in HELD_BACK}
    try:
        if in_another_thread:
            thread = threading.Thread(target=start)
            thread.start()
            thread.join()
        else:
            start()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert said == (["known"] if in_another_thread else ["known", "heard"])


def test_workers_killed_at_the_first_a_middle_and_the_last_task(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    first, middle, last = (in_order(jazz)[at] for at in (0, TASKS // 2, -1))
    let(monkeypatch, tmp_path, "die", first, middle, last)
    assert count_on_cluster(jazz, workers=2).triangles == JAZZ
    assert 4 <= len(started) <= 5  # the other worker may be done before the last one is started again
    assert not any(map(is_running, started))
    assert not jazz.beside(JOURNAL).exists()
    assert {f"{task}-0" for task in range(TASKS)} <= begun(tmp_path)
    assert {f"{task}-1" for task in (first, middle, last)} <= begun(tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("at", [0, TASKS // 2, -1])
@pytest.mark.parametrize("batches", ["single tasks", "several tasks"])
def test_a_worker_killed_at_any_task(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: str, at: int
) -> None:
    if batches == "several tasks":
        monkeypatch.setattr(cluster, "MAX_SECONDS", 1e-5)
        monkeypatch.setattr(cluster, "MIN_SECONDS", 1e-5)
    let(monkeypatch, tmp_path, "die", in_order(jazz)[at])
    assert count_on_cluster(jazz, workers=2).triangles == JAZZ


def test_all_but_one_worker_killed(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    """Nobody starts them again."""
    really = LocalWorkers.restart_workers
    monkeypatch.setattr(LocalWorkers, "restart_workers", lambda self: None if started else really(self))
    let(monkeypatch, tmp_path, "die", in_order(jazz)[1], in_order(jazz)[5])
    assert count_on_cluster(jazz, workers=3).triangles == JAZZ
    assert len(started) == 3
    assert not any(map(is_running, started))


def test_a_stopped_worker_is_not_waited_for(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    """It holds a task and its pipes, and gives no sign of life; it is ended, and another one started."""
    monkeypatch.setattr(_process_workers, "SILENT_SECONDS", 2.0)
    let(monkeypatch, tmp_path, "stop", in_order(jazz)[3])
    assert count_on_cluster(jazz, workers=2).triangles == JAZZ
    assert len(started) == 3
    assert not any(map(is_running, started))


def test_a_poison_task_stops_the_work(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    """What was finished stays, and is not done again."""
    let(monkeypatch, tmp_path, "poison", 7)
    with pytest.raises(
        ClusterError, match=r"task 7 \(blocks 0, 2, 2\) ended 3 workers when nothing else was under way"
    ):
        count_on_cluster(jazz, workers=2)
    assert not any(map(is_running, started))
    monkeypatch.undo()
    again = count_on_cluster(jazz, workers=1)
    assert again.triangles == JAZZ
    assert 0 < again.resumed < TASKS


@pytest.mark.deep
def test_workers_that_end_again_and_again(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    monkeypatch.setattr(_process_workers, "RESTARTS_PER_WORKER", 1)
    let(monkeypatch, tmp_path, "poison", *range(TASKS))
    with pytest.raises(ClusterError, match="ended again and again, the last one with exit code -9"):
        count_on_cluster(jazz, workers=2)
    assert len(started) == 4
    assert not any(map(is_running, started))


def test_an_error_that_is_none_of_ours_is_told_and_not_tried_again(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    let(monkeypatch, tmp_path, "break", 7)
    with pytest.raises(
        ClusterError,
        match=r"could not do tasks 7 \(ZeroDivisionError: nothing that we foresee\); count without workers",
    ):
        count_on_cluster(jazz, workers=2)
    assert "7-1" not in begun(tmp_path)
    assert not any(map(is_running, started))


def test_an_error_of_ours_ends_the_work_at_once(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    failing = in_order(jazz)[4]
    let(monkeypatch, tmp_path, "fail", failing)
    with pytest.raises(FormatError, match="somewhere: is damaged; mend it"):
        count_on_cluster(jazz, workers=2)
    assert len(started) == 2
    assert f"{failing}-1" not in begun(tmp_path)
    assert not any(map(is_running, started))


DRIVER = """
import os, sys
from wedgewise.run import _process_workers, checkpoint, cluster
from wedgewise.run.cluster import tasks_for_workers
from wedgewise.run.outofcore import count_store
from wedgewise.run.request import Request
from wedgewise.store.open import open_store
folder, store, how, lines, _process_workers.PROGRAM = *sys.argv[1:4], int(sys.argv[4]), sys.argv[5]
asked = Request(workers=2)
if "emulated" in _process_workers.PROGRAM:
    from run.cluster_workers import emulate_gpu
    emulate_gpu()
    asked = Request(workers=2, device="cuda", algorithm="toy")
if how != "slow": cluster.MIN_SECONDS = cluster.MAX_SECONDS = 0.0
really_start, really_append = _process_workers.LocalWorker.start, checkpoint.append_line
def start(self):
    really_start(self)
    print("worker", self._process.pid, flush=True)
def append(path, text, **how):
    global lines
    if lines == 0:
        print("begun", len(os.listdir(folder)), flush=True)
        os.kill(os.getpid(), 9)
    lines -= 1
    really_append(path, text, **how)
_process_workers.LocalWorker.start, checkpoint.append_line = start, append
store = open_store(store)
found = count_store(asked, store, tasks_for_workers(asked, store))
print("found", found.triangles, found.resumed)
"""


SLOW_COMMAND = """
import sys
from wedgewise.run import _process_workers
from _wedgewise_start import main
_process_workers.PROGRAM = sys.argv.pop(1)
main()
"""


def drive(
    folder: Path, store: Store, lines: int, how: str = "", serve: str = "serve_misbehaving"
) -> tuple[int, list[int], str]:
    """Count in a process that is killed after so many lines of the journal; no temporary file is left of it.

    Its exit code, its workers, and what it found, or else how many tasks had begun.
    """
    temporary = folder.with_name("temporary")
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary)}
    program = misbehaving(how, (), folder).replace("serve_misbehaving", serve)
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, str(folder), str(store.folder), how, str(lines), program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
        check=False,
    )
    assert ran.returncode in (0, -signal.SIGKILL), ran.stderr
    assert [name for name in os.listdir(temporary) if "emulated-kernels" not in name] == []
    workers = [int(pid) for pid in re.findall(r"worker (\d+)", ran.stdout)]
    return ran.returncode, workers, re.split("found |begun ", ran.stdout)[-1].strip()


@in_other_processes
@pytest.mark.parametrize("serve", ["serve_misbehaving", "serve_emulated"])
def test_a_killed_driver_goes_on_and_leaves_no_workers(jazz: Store, tmp_path: Path, serve: str) -> None:
    """Workers count on their CPUs, or on emulated GPUs."""
    noted = tmp_path / "begun"
    noted.mkdir()
    killed, workers, _ = drive(noted, jazz, 6, serve=serve)
    assert killed == -signal.SIGKILL
    assert len(jazz.beside(JOURNAL).read_text().splitlines()) == 6
    ended, others, found = drive(noted, jazz, 1000, serve=serve)
    assert (ended, found) == (0, f"{JAZZ} 6")
    assert len(begun(tmp_path)) <= TASKS + 4  # no more is done again than was under way
    wait_for(lambda: all(map(has_ended, workers + others)))


@pytest.mark.deep
def test_a_killed_driver_keeps_what_was_finished_of_a_batch(jazz: Store, tmp_path: Path) -> None:
    """All tasks are one batch, for one of the workers, which is not through with it."""
    noted = tmp_path / "begun"
    noted.mkdir()
    killed, _, tasks = drive(noted, jazz, 6, "slow")
    assert killed == -signal.SIGKILL
    assert 6 < int(tasks) < TASKS
    assert drive(noted, jazz, 1000)[2] == f"{JAZZ} 6"


@in_other_processes
def test_the_command_counts_and_leaves_no_workers(jazz: Store) -> None:
    ran = run("count", str(jazz.folder), "--workers", "2", "--memory", "2GB", "--verify")
    assert (ran.returncode, ran.stdout) == (0, f"{JAZZ}\n")
    assert [line for line in ran.stderr.splitlines() if not line.startswith("compiling ")] == []


@in_other_processes
@pytest.mark.parametrize(
    ("number", "code", "seconds"),
    [(signal.SIGINT, 130, 0.0), (signal.SIGINT, 130, 1.0), (signal.SIGTERM, 143, 0.0), (signal.SIGTERM, 143, 0.3)],
)
def test_an_interrupted_command_leaves_nothing(
    jazz: Store, tmp_path: Path, number: signal.Signals, code: int, seconds: float
) -> None:
    """The signal reaches the driver alone, which ends the others: when they start, when they work."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    noted = tmp_path / "begun"
    noted.mkdir()
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                SLOW_COMMAND,
                misbehaving("slow", (), noted),
                "count",
                str(jazz.folder),
                "--workers",
                "2",
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    finally:
        signal.signal(signal.SIGINT, ours)
    with process:
        wait_for(lambda: len(children(process.pid)) >= 2 or process.poll() is not None)
        workers = children(process.pid)
        time.sleep(seconds)
        begin = time.monotonic()
        process.send_signal(number)
        printed, said = process.communicate(timeout=PATIENCE)
        ended = time.monotonic() - begin
    assert (process.returncode, printed) == (code, b"")
    assert [line for line in said.splitlines() if line != b"interrupted"] == []
    assert ended < 1
    assert len(workers) >= 2  # libraries may ask a program for the name of the processor meanwhile
    assert not any(map(is_running, workers))
    assert os.listdir(temporary) == []


def test_python_counts_by_workers(jazz: Store) -> None:
    result = ww.run("count", jazz.folder, workers=1, threads=2)
    assert (result.answer, result.plan.threads, len(result.task_seconds)) == (JAZZ, 2, TASKS)
    assert result.plan.reasons[0].startswith("20 tasks of three blocks each, for workers")

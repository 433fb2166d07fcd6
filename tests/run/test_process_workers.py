"""Worker processes of this machine have no door: nothing listens, nothing of a folder that others reach is imported."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NoReturn

import pytest
from helpers.graphs import TRUTHS, fixture_pairs

import wedgewise as ww
from run.cluster_workers import children
from wedgewise.run import _process_workers, _worker_process
from wedgewise.run._count_worker import BatchResult
from wedgewise.run._dispatch import Assignment, Delivery
from wedgewise.run.cluster import cluster_work
from wedgewise.run.request import Request
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

JAZZ = TRUTHS["jazz"]["triangles"]
LISTENS = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}  # the state of a socket that anybody can send to
ACCEPTS = 0x10000  # the flag of a Unix socket that listens

in_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into /proc")


@pytest.fixture
def jazz(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)


def listening(pid: int) -> list[str]:
    """The sockets of a process that somebody else could talk to."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inode = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry))
        except FileNotFoundError:  # it was closed meanwhile
            continue
        if inode is not None:
            found += [where for where in listed() if where.endswith(f" {inode[1]}")]
    return found


def listed() -> list[str]:
    """All sockets of this machine that listen: kind, address and inode."""
    found = []
    for kind, state in LISTENS.items():
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state:
                found.append(f"{kind} {fields[1]} {fields[9]}")
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[3], 16) & ACCEPTS:
            found.append(f"unix {' '.join(fields[7:])} {fields[6]}")
    return found


@in_proc
def test_doors_would_be_found(tmp_path: Path) -> None:
    before = listening(os.getpid())
    families = (socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, str(tmp_path / "door"))
    for family, address in families:
        with socket.socket(family) as door:
            door.bind(address)
            door.listen()
            assert len(listening(os.getpid())) == len(before) + 1
    assert listening(os.getpid()) == before


@in_proc
def test_nobody_can_talk_to_the_processes_of_a_run(jazz: Store) -> None:
    """Neither to the workers nor to whoever started them: there is no address to connect to."""
    before, seen = listening(os.getpid()), []

    def look(_stage: str, _done: int, _total: int) -> None:
        workers = children(os.getpid())
        seen.append((len(workers), [where for pid in workers for where in listening(pid)], listening(os.getpid())))

    assert ww.count(jazz.folder, workers=2, progress=look) == JAZZ
    assert max(workers for workers, *_ in seen) >= 2
    assert {(*doors, *ours) for _, doors, ours in seen} == {tuple(before)}


@in_proc
def test_a_run_has_no_file_of_a_name_and_no_folder(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    seen: list[str] = []
    assert ww.count(jazz.folder, workers=2, progress=lambda *_: seen.extend(os.listdir(temporary))) == JAZZ
    assert seen == []


PLANTED = "import os; os.close(os.open({canary!r}, os.O_CREAT))\nraise ImportError('a stranger was here')\n"
COMMAND_LINE = "from _wedgewise_start import main; main()"


def plant(folder: Path, canary: Path) -> None:
    """Put modules that tell of their import into a folder, and into those that appear in it."""
    for name in ("click", "numba", "random", "selectors", "tempfile", "tornado", "wedgewise"):
        for place in (folder, *folder.rglob("*/")):
            with suppress(OSError):  # it has gone meanwhile
                (place / f"{name}.py").write_text(PLANTED.format(canary=str(canary)))


@pytest.mark.compiled
def test_nothing_is_imported_from_a_folder_that_others_reach(jazz: Store, tmp_path: Path) -> None:
    """The temporary folder, whatever is made there, and the folder that the command is given in."""
    canary, shared = tmp_path / "sang", tmp_path / "shared"
    shared.mkdir()
    plant(shared, canary)
    with subprocess.Popen(
        [sys.executable, "-P", "-c", COMMAND_LINE, "count", str(jazz.folder), "--workers", "2"],
        cwd=shared,
        env={**os.environ, "TMPDIR": str(shared), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None:
            plant(shared, canary)
            time.sleep(0.01)
        assert process.stdout is not None
        assert (process.returncode, process.stdout.read()) == (0, f"{JAZZ}\n")
    assert not canary.exists()


def test_workers_import_from_where_the_driver_does(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, before = tmp_path / "paths", list(sys.path)
    note = f"import json; open({str(noted)!r}, 'w').write(json.dumps(sys.path))\n"
    monkeypatch.setattr(_process_workers, "PROGRAM", note + _process_workers.PROGRAM)
    assert ww.count(jazz.folder, workers=1) == JAZZ
    assert json.loads(noted.read_text()) == sys.path == before


def test_an_order_may_be_larger_than_a_pipe(jazz: Store) -> None:
    order = cluster_work(Request(threads=1, workers=1), jazz).message(Assignment(0, (3, 5)))
    with closing(_process_workers.LocalWorkers(1)) as workers:
        workers.wait_for(1)
        workers.submit(Assignment(0, (3, 5)), order + " " * 2**20)
        delivered = workers.delivery()
        while not delivered.is_whole:  # told on the way
            delivered = workers.delivery()
    assert delivered.result is not None
    assert BatchResult.from_json(delivered.result).finished.numbers.tolist() == [3, 5]


@pytest.mark.parametrize("heard_first", [True, False])
def test_a_batch_for_a_worker_that_has_just_ended_is_lost(heard_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its end or the room in its pipe is noticed first."""
    batch = Assignment(0, (3,))
    with closing(_process_workers.LocalWorkers(1)) as workers:
        workers.wait_for(1)
        (worker,) = workers._workers
        assert worker._process is not None
        worker.kill()
        worker._process.wait()
        really = workers._selector.select
        monkeypatch.setattr(
            workers._selector,
            "select",
            lambda seconds: sorted(really(seconds), key=lambda ready: ready[0].events, reverse=not heard_first),
        )
        workers.submit(batch, "")
        assert workers.delivery() == Delivery(batch, None, deaths=1)


def test_a_worker_answers_every_order_by_a_line(jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its standard output is for these lines alone: what is printed meanwhile goes to the log."""
    assignment = cluster_work(Request(threads=1, workers=1), jazz)
    asked = [assignment.message(Assignment(0, (3, 5))), "no order", assignment.message(Assignment(1, (99,)))]
    (tmp_path / "orders").write_text("".join(f"{order}\n" for order in asked))
    with (
        (tmp_path / "orders").open() as orders,
        (tmp_path / "replies").open("w") as replies,
        (tmp_path / "log").open("w") as log,
    ):
        for name, stream in (("stdin", orders), ("stdout", replies), ("stderr", log)):
            monkeypatch.setattr(sys, name, stream)
        _worker_process.main()
        os.write(replies.fileno(), b"printed by somebody")
        monkeypatch.undo()
    lines = [line.partition(b" ") for line in (tmp_path / "replies").read_bytes().splitlines()]
    kinds = [kind for kind, _, _ in lines if kind not in (_worker_process.ALIVE, _worker_process.PARTIAL)]
    assert kinds == [b"ready", b"done", b"failed", b"failed"]
    done, failed = (next(text for kind, _, text in lines if kind == asked) for asked in (b"done", b"failed"))
    assert BatchResult.from_json(done).finished.numbers.tolist() == [3, 5]
    assert json.loads(failed).startswith("JSONDecodeError: ")
    assert "printed by somebody" in (tmp_path / "log").read_text()


def test_a_worker_ends_with_whoever_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(code: int) -> NoReturn:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(_worker_process, "BEAT_SECONDS", 0.001)
    ours, theirs = os.pipe()
    speaker, ended = _worker_process.Speaker(theirs), threading.Event()
    beating = threading.Thread(target=_worker_process._beat, args=(speaker, ended))
    beating.start()
    assert os.read(ours, 6) == b"alive "
    ended.set()
    beating.join()
    os.close(ours)
    with pytest.raises(SystemExit):
        _worker_process._beat(speaker, threading.Event())
    os.close(theirs)

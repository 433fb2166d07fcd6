"""Each way in which a child can end is an outcome, found within its limits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.bench_dummy import TRIANGLES
from bench.canned_cells import dummy_cell, make_bench
from wedgewise_bench import child


@pytest.mark.parametrize("row", ["count", "edges", "file"])
def test_right_answer_is_ok_in_every_row(tmp_path: Path, row: str) -> None:
    outcome = make_bench(tmp_path).run_cell(dummy_cell("right", row))
    assert (outcome.status, outcome.answer, outcome.message) == ("ok", TRIANGLES, "")
    assert len(outcome.seconds) >= child.MIN_REPEATS
    assert all(second > 0 for second in outcome.seconds)
    assert outcome.peak_bytes is not None
    assert outcome.peak_bytes > 2**20


def test_file_row_includes_the_start_of_the_process(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    in_process = bench.run_cell(dummy_cell("right", "edges")).median
    fresh = bench.run_cell(dummy_cell("right", "file")).median
    assert in_process is not None
    assert fresh is not None
    assert fresh > 0.005 > in_process


@pytest.mark.parametrize("row", ["count", "file"])
def test_another_count_is_wrong(tmp_path: Path, row: str) -> None:
    outcome = make_bench(tmp_path).run_cell(dummy_cell("wrong", row))
    assert (outcome.status, outcome.message) == ("wrong", "46 instead of 45")


def test_any_count_is_ok_where_none_is_known(tmp_path: Path) -> None:
    assert make_bench(tmp_path, triangles=None).run_cell(dummy_cell("wrong")).status == "ok"


def test_repeats_that_disagree_are_wrong(tmp_path: Path) -> None:
    outcome = make_bench(tmp_path, triangles=None).run_cell(dummy_cell("unstable"))
    assert outcome.status == "wrong"
    assert "repeats disagree" in outcome.message


def test_knobs_reach_the_system(tmp_path: Path) -> None:
    assert make_bench(tmp_path, triangles=None).run_cell(dummy_cell("right", more=2)).answer == TRIANGLES + 2


@pytest.mark.parametrize(
    ("algorithm", "status", "message"),
    [
        ("missing", "unavailable", "no module named dummy_library"),
        ("error", "crashed", "RuntimeError: cannot read graph.txt"),
        ("exit", "crashed", "exit status 3 during count: last words at place.c"),
        ("segfault", "crashed", "SIGSEGV during count"),
        ("refused", "out_of_memory", "MemoryError: the library asked for too much"),
    ],
)
@pytest.mark.parametrize("row", ["count", "file"])
def test_failures_are_named_without_folders(
    tmp_path: Path, algorithm: str, status: str, message: str, row: str
) -> None:
    outcome = make_bench(tmp_path).run_cell(dummy_cell(algorithm, row))
    assert outcome.status == status
    assert outcome.message.replace("during prepare", "during count") == message
    assert outcome.seconds == ()


@pytest.mark.parametrize(("algorithm", "stage"), [("hang", "count"), ("slow-build", "prepare")])
def test_time_limit_names_the_stage(tmp_path: Path, algorithm: str, stage: str) -> None:
    start = time.perf_counter()
    outcome = make_bench(tmp_path, seconds=3.0).run_cell(dummy_cell(algorithm))
    assert time.perf_counter() - start < 30  # of 60 s that it would sleep
    assert (outcome.status, outcome.stage) == ("timeout", stage)
    assert outcome.message == f"{stage} took over 3 s"


def test_memory_limit_stops_a_child_that_eats(tmp_path: Path) -> None:
    outcome = make_bench(tmp_path).run_cell(dummy_cell("eat"))
    assert outcome.status == "out_of_memory"
    assert outcome.message == "count took over 419,430,400 bytes"
    assert outcome.peak_bytes is not None
    assert 400 * 2**20 < outcome.peak_bytes < 4 * 2**30


def test_what_a_library_prints_does_not_disturb(tmp_path: Path) -> None:
    assert make_bench(tmp_path).run_cell(dummy_cell("noisy")).status == "ok"


def test_no_child_outlives_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wedgewise_bench import watch

    pids: list[int] = []

    def interrupt(pid: int, *_: object) -> None:
        pids.append(pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_passed_limit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make_bench(tmp_path).run_cell(dummy_cell("hang"))
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.compiled  # in another process
def test_a_time_limit_ends_what_the_child_started_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    monkeypatch.setenv("DUMMY_PID_FILE", str(pid_file))
    assert make_bench(tmp_path, seconds=4.0).run_cell(dummy_cell("spawn")).status == "timeout"
    wait_until(lambda: has_ended(int(pid_file.read_text())))


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or dead and only waiting to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def test_no_child_outlives_a_killed_parent(tmp_path: Path) -> None:
    """The parent is killed with no chance to clean up; the hanging child must notice by itself."""
    folder = Path(__file__).parents[1]
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from pathlib import Path\n"
        "from bench.canned_cells import dummy_cell, make_bench\n"
        f"make_bench(Path({str(tmp_path)!r})).run_cell(dummy_cell('hang'))\n"
    )
    pid_file, temporary = tmp_path / "pid", tmp_path / "temporary"
    temporary.mkdir()
    variables = os.environ | {"DUMMY_PID_FILE": str(pid_file), "TMPDIR": str(temporary)}
    parent = subprocess.Popen([sys.executable, "-c", program], env=variables)
    wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    assert list(temporary.iterdir()) != []
    parent.kill()
    parent.wait()
    wait_until(lambda: has_ended(int(pid_file.read_text())))
    assert list(temporary.iterdir()) == []


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.perf_counter() + seconds
    while not holds():
        assert time.perf_counter() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("first_seconds", "repeats"),
    [(0.0, 25), (0.001, 25), (0.1, 20), (0.3, 6), (0.5, 5), (2.0, 5), (2.1, 3), (10.0, 3), (10.1, 1)],
)
def test_short_runs_are_repeated_at_least_five_times(first_seconds: float, repeats: int) -> None:
    assert child.planned_repeats(first_seconds) == repeats
    assert child.planned_repeats(first_seconds, 2) == min(repeats, 2)

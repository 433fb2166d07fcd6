"""Counters under ncu: its CSV is read as documented, and what it cannot measure is said with the remedy."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import bench_dummy
from bench.canned_cells import make_graph
from bench.test_limits import has_ended, wait_until
from wedgewise.errors import DeviceError, MissingDependencyError
from wedgewise_bench import child, profile
from wedgewise_bench.profile import COUNTERS, command, parse, profiled
from wedgewise_bench.watch import CellLimits

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "profile.md"
LEADING = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "CC")
REQUESTS, PER_CENT, THREADS, SECTORS, HITS, SHARED, OCCUPANCY = (counter.name for counter in COUNTERS)
INSTRUCTIONS, L2_SECTORS, CYCLES = "smsp__inst_executed.sum", "lts__t_sectors.sum", "sm__cycles_active.sum"
UNITS = {REQUESTS: "request", PER_CENT: "%", SECTORS: "sector/request", HITS: "%", SHARED: "inst", OCCUPANCY: "%"}
FIRST = {
    REQUESTS: "1,000,000",
    SECTORS: "2.50",
    INSTRUCTIONS: "3,000",
    PER_CENT: "50",
    THREADS: "16.00",
    HITS: "90.00",
    L2_SECTORS: "100",
    SHARED: "7",
    OCCUPANCY: "80.00",
    CYCLES: "10",
}
SECOND = {
    REQUESTS: "3,000,000",
    SECTORS: "4.50",
    INSTRUCTIONS: "1000",
    PER_CENT: "100",
    THREADS: "32",
    HITS: "40",
    L2_SECTORS: "300",
    SHARED: "1,234,567",
    OCCUPANCY: "20",
    CYCLES: "30",
}
TOGETHER = {
    REQUESTS: 4_000_000.0,
    PER_CENT: (3000 * 50 + 1000 * 100) / 4000,
    THREADS: (3000 * 16 + 1000 * 32) / 4000,
    SECTORS: (1 * 2.5 + 3 * 4.5) / 4,
    HITS: (100 * 90 + 300 * 40) / 400,
    SHARED: 1_234_574.0,
    OCCUPANCY: (10 * 80 + 30 * 20) / 40,
}
FAKE = f"""#!{sys.executable} -S
import os, sys, time
log = sys.argv[sys.argv.index("--log-file") + 1]
folder = os.path.dirname(sys.argv[0])
open(folder + "/heard", "w").write("\\n".join(sys.argv[1:] + [os.environ["LC_ALL"]]))
if os.path.exists(folder + "/hangs"):
    open(folder + "/pid", "w").write(str(os.getpid()))
    time.sleep(60)
if os.path.exists(folder + "/says"):
    open(log, "w").write(open(folder + "/says").read())
print("the target's last words")
"""


def raw_page(*kernels: dict[str, str], names: Sequence[str] = tuple(FIRST)) -> str:
    """What ``ncu --csv --page raw`` writes about kernels: its own lines, a header, units, and a row each."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*LEADING, *names])
    writer.writerow([""] * len(LEADING) + [UNITS.get(name, "") for name in names])
    for number, kernel in enumerate(kernels):
        leading = (number, 77, "python3.11", "127.0.0.1", 'count<int, "a">(int *)', 1, 7, "(256, 1, 1)", "9.0")
        writer.writerow([*leading, *(kernel.get(name, "") for name in names)])
    return (
        "==PROF== Connected to process 77 (/usr/bin/python3.11)\n"
        '==PROF== Profiling "count" - 0: 0%....50%....100% - 9 passes\n'
        f"{file.getvalue()}"
        "==PROF== Disconnected from process 77\n"
    )


@pytest.fixture
def fake_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an ncu that notes how it was called and writes what lies in ``says``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ncu").write_text(FAKE)
    (folder / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_counts_are_added_up_and_ratios_weighted_by_what_they_divide() -> None:
    assert parse(raw_page(FIRST, SECOND)) == pytest.approx(TOGETHER, rel=1e-12)


def test_one_kernel_is_as_it_is() -> None:
    found = parse(raw_page(FIRST))
    assert list(found) == [counter.name for counter in COUNTERS]
    assert (found[REQUESTS], found[SECTORS], found[OCCUPANCY]) == (1_000_000, 2.5, 80)


def test_columns_are_found_by_their_names() -> None:
    names = ["launch__grid_size", *reversed(FIRST)]
    assert parse(raw_page(FIRST, SECOND, names=names)) == pytest.approx(TOGETHER, rel=1e-12)


@pytest.mark.parametrize("missing", ["", "n/a", "nan", "-nan", "inf"])
def test_what_one_kernel_lacks_is_left_out(missing: str) -> None:
    """A sum of the others, or a ratio of theirs, would be taken for that of all."""
    found = parse(raw_page(FIRST, SECOND | {SHARED: missing, HITS: missing, CYCLES: missing}))
    assert set(TOGETHER) - set(found) == {SHARED, HITS, OCCUPANCY}
    assert found == pytest.approx({name: TOGETHER[name] for name in found}, rel=1e-12)


def test_metrics_that_ncu_does_not_have_are_left_out() -> None:
    names = [name for name in FIRST if name not in (SECTORS, L2_SECTORS)]
    assert set(TOGETHER) - set(parse(raw_page(FIRST, names=names))) == {SECTORS, HITS}


def test_kernels_without_loads_have_no_part_in_sectors_per_request() -> None:
    without = SECOND | {REQUESTS: "0", SECTORS: "n/a"}
    found = parse(raw_page(FIRST, without))
    assert (found[SECTORS], found[REQUESTS]) == (2.5, 1_000_000)
    assert SECTORS not in parse(raw_page(without))


def test_a_page_without_kernels_says_why() -> None:
    with pytest.raises(DeviceError, match=r"ncu measured no kernel \(it said nothing\); see that the cell runs"):
        parse("")
    with pytest.raises(DeviceError, match=r"\(it said: ==WARNING== No kernels were profiled\.\)"):
        parse("==PROF== Connected to process 7\n==WARNING== No kernels were profiled.\n")
    with pytest.raises(DeviceError, match=r"\(Failed to find metric smsp__nothing\.sum\)"):
        parse("==ERROR== Failed to find metric smsp__nothing.sum\n==ERROR== And more\n", "last words")
    with pytest.raises(DeviceError, match=r"\(it said: last words\)"):
        parse("==PROF== Connected\n", "first words\nlast words\n\n")


def test_counters_that_may_not_be_read_come_with_the_remedy() -> None:
    text = (
        "==PROF== Connected to process 7 (/usr/bin/python3.11)\n"
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
    )
    with pytest.raises(
        DeviceError, match=r"ERR_NVGPUCTRPERM\): run as root, or .*NVreg_RestrictProfilingToAdminUsers=0"
    ):
        parse(text)


def test_ncu_is_asked_for_every_counter_and_weight_once() -> None:
    words = command(["python", "-c", "pass"], Path("x.log"))
    assert words[-3:] == ["python", "-c", "pass"]
    metrics = words[words.index("--metrics") + 1].split(",")
    assert set(metrics) == set(FIRST)
    assert len(metrics) == len(FIRST)
    assert words[words.index("--profile-from-start") + 1] == "off"


def test_a_job_is_run_under_ncu(fake_ncu: Path) -> None:
    (fake_ncu / "says").write_text(raw_page(FIRST, SECOND))
    assert profiled({"question": "count"}, CellLimits(20.0, 2**30)) == pytest.approx(TOGETHER, rel=1e-12)
    heard = (fake_ncu / "heard").read_text().splitlines()
    log = heard[heard.index("--log-file") + 1]
    assert heard[-6:] == [
        *(sys.executable, "-P", "-m", "wedgewise_bench.profile"),
        os.path.join(os.path.dirname(log), "job.json"),
        "C",
    ]
    assert not Path(log).parent.exists()


def test_an_ncu_that_fails_is_quoted(fake_ncu: Path) -> None:
    with pytest.raises(DeviceError, match=r"ncu measured no kernel \(it said: the target's last words\)"):
        profiled({}, CellLimits(20.0, 2**30))


def test_an_ncu_that_hangs_is_ended(fake_ncu: Path) -> None:
    (fake_ncu / "hangs").touch()
    with pytest.raises(DeviceError, match=r"under ncu, the cell took over 2 s; raise --limit-seconds"):
        profiled({}, CellLimits(0.5, 2**30))
    wait_until(lambda: has_ended(int((fake_ncu / "pid").read_text())))


def test_a_missing_ncu_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="ncu is not on PATH: install Nsight Compute"):
        profiled({}, CellLimits(1.0, 2**30))


def test_only_the_second_answer_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    profiler: Any = ModuleType("cupy.cuda.profiler")
    profiler.start, profiler.stop = (lambda: calls.append("start")), (lambda: calls.append("stop"))
    cuda: Any = ModuleType("cupy.cuda")
    cuda.profiler = profiler
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)

    class RoundProgress(bench_dummy.Dummy):
        def prepare_question(self, question: str, prepared: Any) -> None:
            calls.append(f"prepare_question {question} of {len(prepared)}")

        def k_truss(self, prepared: Any, k: int) -> list[int]:
            calls.append(f"k = {k} of {len(prepared)}")
            return super().k_truss(prepared, k)

    monkeypatch.setattr(child, "_class_of", lambda _source, _name: RoundProgress)
    graph = make_graph(tmp_path)
    job = {"source": "", "name": "", "algorithm": "right", "threads": 1, "knobs": {}, "device": "cuda"}
    job |= {"question": "k_truss", "details": {"k": 4}, "pairs_path": str(graph.pairs_path)}
    profile.answer_between_marks(job)
    assert calls == ["prepare_question k_truss of 3", "k = 4 of 3", "start", "k = 4 of 3", "stop"]


def test_the_page_names_every_counter() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [f"| `{item.name}` | `{item.nvprof.split()[0].rstrip(',')}`" for item in COUNTERS]
    assert [row for row in rows if row not in text] == []

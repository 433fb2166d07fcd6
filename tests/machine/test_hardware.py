"""What the machine tells, and what is assumed where it tells nothing."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wedgewise.errors import InputError
from wedgewise.machine import hardware

Files = dict[str, list[str]]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """The only system files there are, by path, as words."""
    contents: Files = {}
    monkeypatch.setattr(hardware, "_text", lambda path: "\n".join(contents.get(path, [])))
    hardware._cgroup_cores.cache_clear()
    hardware._memory_files.cache_clear()
    yield contents
    hardware._cgroup_cores.cache_clear()
    hardware._memory_files.cache_clear()


def test_threads_are_granted_within_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "usable_threads", lambda: 3)
    assert [hardware.granted_threads(asked) for asked in (None, 1, 64, 65, 20_000)] == [3, 1, 64, 64, 64]
    assert hardware.note_on_threads(64) == hardware.note_on_threads(None) == ()
    (note,) = hardware.note_on_threads(20_000)
    assert note == "on 64 threads in place of 20,000, since this process may use 3 cores"
    monkeypatch.setattr(hardware, "usable_threads", lambda: 100)
    assert [hardware.granted_threads(asked) for asked in (None, 400, 401)] == [100, 400, 400]
    for few in (0, -2):
        with pytest.raises(InputError, match=f"threads is at least 1, not {few}"):
            hardware.granted_threads(few)


def test_cores_without_affinity(monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert hardware.usable_threads() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert hardware.usable_threads() == 1


@pytest.mark.parametrize(
    ("contents", "threads"),
    [
        ({}, 8),
        ({"/sys/fs/cgroup/cpu.max": ["max", "100000"]}, 8),
        ({"/sys/fs/cgroup/cpu.max": ["350000", "100000"]}, 3),
        ({"/sys/fs/cgroup/cpu.max": ["50000", "100000"]}, 1),
        ({"/sys/fs/cgroup/cpu.max": ["9900000", "100000"]}, 8),
        (
            {
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": ["250000"],
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": ["100000"],
            },
            2,
        ),
        (
            {
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": ["-1"],
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": ["100000"],
            },
            8,
        ),
        (
            {
                "/proc/self/cgroup": ["0::/outer/inner"],
                "/sys/fs/cgroup/outer/cpu.max": ["200000", "100000"],
                "/sys/fs/cgroup/outer/inner/cpu.max": ["max", "100000"],
            },
            2,
        ),
    ],
)
def test_quotas_of_either_version_cap_the_threads(
    monkeypatch: pytest.MonkeyPatch, files: Files, contents: Files, threads: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)))
    files.update(contents)
    assert hardware.usable_threads() == threads


def test_the_smallest_bound_on_memory_counts(monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert hardware.available_memory() == 2**62
    files["/proc/meminfo"] = ["MemTotal:", "9000", "kB", "MemAvailable:", "5000", "kB"]
    assert hardware.available_memory() == 5000 * 1024
    files["/sys/fs/cgroup/memory.max"] = ["max"]
    files["/sys/fs/cgroup/memory.current"] = ["1024"]
    assert hardware.available_memory() == 5000 * 1024
    files["/sys/fs/cgroup/memory.max"] = [str(4000 * 1024)]
    assert hardware.available_memory() == 3999 * 1024
    files["/proc/self/statm"] = ["10", "5"]
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (30 * resource.getpagesize(), -1))
    assert hardware.available_memory() == 20 * resource.getpagesize()
    files["/proc/self/statm"] = ["40", "5"]
    assert hardware.available_memory() == 0


@pytest.mark.parametrize("inner_is_tighter", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_every_control_group_on_the_way_counts(files: Files, version: int, inner_is_tighter: bool) -> None:
    root, limit, used, cached = {
        1: ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    }[version]
    files["/proc/self/cgroup"] = ["0::/outer/inner"] if version == 2 else ["0::/", "4:memory:/outer/inner"]
    for folder, allowed in (("outer", 9000), ("outer/inner", 5000 if inner_is_tighter else 20_000)):
        files[f"{root}/{folder}/{limit}"] = [str(allowed)]
        files[f"{root}/{folder}/{used}"] = ["1500"]
        files[f"{root}/{folder}/memory.stat"] = ["anon", "1000", cached, "500"]
    assert hardware.available_memory() == (4000 if inner_is_tighter else 8000)


def test_names_of_control_groups_may_have_blanks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inner = tmp_path / "my shell" / "job: 1"
    inner.mkdir(parents=True)
    really = hardware._text
    here = "0::/my shell/job: 1\n"
    monkeypatch.setattr(hardware, "_text", lambda path: here if path == "/proc/self/cgroup" else really(path))
    monkeypatch.setattr(hardware, "CONTROL_GROUPS", tmp_path)
    (inner / "memory.max").write_text("9000\n")
    (inner / "memory.current").write_text("1000\n")
    assert hardware.available_memory() == 8000


def test_systems_without_resource_limits(monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert hardware.available_memory() == 2**62
    assert hardware.peak_bytes() == 0


def test_the_peak_is_in_bytes_on_either_system(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert hardware.peak_bytes() >= 1024 * largest
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert largest <= hardware.peak_bytes() < 1024 * largest


def test_the_processor_has_a_name_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _path, **_how: "processor : 0\nmodel name\t: Abacus 3000\n")
    assert hardware._processor_name() == "Abacus 3000"
    monkeypatch.setattr(Path, "read_text", lambda _path, **_how: "processor : 0\n")
    assert hardware._processor_name() == platform.machine()

    def unreadable(_path: Path, **_how: str) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", unreadable)
    monkeypatch.setattr(platform, "processor", lambda: "Slide rule")
    assert hardware._processor_name() == "Slide rule"


def test_a_missing_system_file_says_nothing(tmp_path: Path) -> None:
    assert hardware._text(str(tmp_path / "none")) == ""
    (tmp_path / "some").write_text("max 100\n")
    assert hardware._text(str(tmp_path / "some")) == "max 100\n"

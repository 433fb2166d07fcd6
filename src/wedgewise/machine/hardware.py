"""What this process may use: cores, memory, and their names for the record."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from wedgewise.errors import InputError
from wedgewise.machine.parameters import as_integer

CONTROL_GROUPS = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 62  # from there on, control groups of version 1 have no limit: it says so with 2^63 less a page
MAX_THREADS_PER_CORE, ALWAYS_GRANTED_THREADS = 4, 64  # that are granted


@dataclass(frozen=True)
class Machine:
    """The hardware as the planner and the reports see it."""

    processor: str
    threads: int
    memory_bytes: int
    system: str

    @cached_property
    def description(self) -> str:
        gibibytes = self.memory_bytes / 2**30
        return f"{self.processor}, {self.threads} threads, {gibibytes:.0f} GiB, {self.system}"


@cache
def look() -> Machine:
    """Describe the machine that this process runs on; asked once."""
    system = f"{platform.system()} {platform.machine()}"
    return Machine(_processor_name(), usable_threads(), _meminfo("MemTotal:") or available_memory(), system)


def usable_threads() -> int:
    """CPU affinity, capped by the control group's quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    quota = _cgroup_cores()
    return cores if quota is None else max(1, min(cores, quota))


def granted_threads(requested: int | None) -> int:
    """The number of threads to use: all usable ones for None, at most four per core; 64 are always granted.

    Every question, reader and writer calls this: thousands of threads take minutes to start and to wait for each other.
    """
    if requested is None:
        return usable_threads()
    threads = as_integer("threads", requested)
    if threads < 1:
        raise InputError(f"threads is at least 1, not {threads}")
    return min(threads, max(ALWAYS_GRANTED_THREADS, MAX_THREADS_PER_CORE * usable_threads()))


def note_on_threads(requested: int | None) -> tuple[str, ...]:
    """What a plan should say where fewer threads are granted than were asked for."""
    granted = granted_threads(requested)
    if requested is None or requested == granted:
        return ()
    return (f"on {granted} threads in place of {requested:,}, since this process may use {usable_threads()} cores",)


def available_memory() -> int:
    """Bytes this process could still take: free memory, capped by the control group and the address-space limit."""
    groups = (_left_in(*files) for files in _memory_files())
    candidates = [_meminfo("MemAvailable:"), *groups, address_space_left()]
    return min((value for value in candidates if value is not None), default=2**62)


@cache
def _cgroup_cores() -> int | None:
    """The fewest cores that any control group on the way to this process allows."""
    quotas = [_text(f"{folder}/cpu.max").split() for folder in _control_groups("")]
    for folder in _control_groups("cpu"):
        quotas.append(f"{_text(f'{folder}/cpu.cfs_quota_us')} {_text(f'{folder}/cpu.cfs_period_us')}".split())
    allowed = [int(quota[0]) // int(quota[1]) for quota in quotas if len(quota) == 2 and quota[0] not in ("max", "-1")]
    return max(1, min(allowed)) if allowed else None


@cache
def _memory_files() -> list[tuple[str, str, str, str]]:
    """Of the control groups on the way to this process: limit, use and statistics, and what these call cached files."""
    files = [
        (f"{folder}/memory.max", f"{folder}/memory.current", f"{folder}/memory.stat", "inactive_file")
        for folder in _control_groups("")
    ]
    for folder in _control_groups("memory"):
        limit, used = f"{folder}/memory.limit_in_bytes", f"{folder}/memory.usage_in_bytes"
        files.append((limit, used, f"{folder}/memory.stat", "total_inactive_file"))
    return files


def _left_in(limit_file: str, used_file: str, stat_file: str, cached_name: str) -> int | None:
    """What a control group leaves of its limit; cached files give way."""
    limit = _text(limit_file).strip()
    if not limit or limit == "max" or int(limit) >= UNLIMITED or not (used := _text(used_file)):
        return None
    stat = _text(stat_file).split()
    cached = int(stat[stat.index(cached_name) + 1]) if cached_name in stat else 0
    return max(0, int(limit) - max(0, int(used) - cached))


def _control_groups(controller: str) -> list[Path]:
    """The folders of the control groups that hold this process, innermost first; "" stands for version 2."""
    root = CONTROL_GROUPS / controller
    lines = [line.split(":", 2) for line in _text("/proc/self/cgroup").split("\n")]
    paths = [line[2] for line in lines if len(line) == 3 and controller in line[1].split(",")]
    inner = [root / path.lstrip("/") for path in paths]
    return [
        *dict.fromkeys(folder for path in inner for folder in (path, *path.parents) if root in folder.parents),
        root,
    ]


def address_space_left() -> int | None:
    try:
        import resource
    except ImportError:  # not POSIX
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _text("/proc/self/statm").split()
    if soft == resource.RLIM_INFINITY or not pages:
        return None
    return max(0, soft - int(pages[0]) * resource.getpagesize())


def _meminfo(name: str) -> int | None:
    words = _text("/proc/meminfo").split()
    return int(words[words.index(name) + 1]) * 1024 if name in words else None


def _processor_name() -> str:
    text = _text("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    if names:
        return names[0]
    return platform.machine() if text else platform.processor() or platform.machine()


@cache
def processor_flags() -> frozenset[str]:
    """The instructions that the processor has, as Linux calls them; none where the system does not say."""
    lines = _text("/proc/cpuinfo").splitlines()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def _text(path: str) -> str:
    """What a file of the system says; nothing where it is not there."""
    try:
        return Path(path).read_text(errors="surrogateescape")
    except OSError:
        return ""


def resident_bytes() -> int:
    """Resident size of this process now; its largest one so far where the system does not say."""
    pages = _text("/proc/self/statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else peak_bytes()


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    try:
        import resource
    except ImportError:  # not POSIX
        return 0
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes if platform.system() == "Darwin" else kilobytes * 1024

"""What this process may use: cores, memory, and their names for the record."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware as the planner and the reports see it."""

    processor: str
    threads: int
    memory_bytes: int
    system: str

    @property
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


def available_memory() -> int:
    """Bytes this process could still take: free memory, capped by the control group and the address-space limit."""
    candidates = [_meminfo("MemAvailable:"), _cgroup_memory(), _address_space_left()]
    return min((value for value in candidates if value is not None), default=2**62)


@cache
def _cgroup_cores() -> int | None:
    quota = _words("/sys/fs/cgroup/cpu.max")
    if len(quota) == 2 and quota[0] != "max":
        return max(1, int(quota[0]) // int(quota[1]))
    quota, period = (
        _words("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
        _words("/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    )
    if quota and period and int(quota[0]) > 0:
        return max(1, int(quota[0]) // int(period[0]))
    return None


def _cgroup_memory() -> int | None:
    limit, used = _words("/sys/fs/cgroup/memory.max"), _words("/sys/fs/cgroup/memory.current")
    if limit and used and limit[0] != "max":
        return max(0, int(limit[0]) - int(used[0]))
    return None


def _address_space_left() -> int | None:
    try:
        import resource
    except ImportError:  # not POSIX
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _words("/proc/self/statm")
    if soft == resource.RLIM_INFINITY or not pages:
        return None
    return max(0, soft - int(pages[0]) * resource.getpagesize())


def _meminfo(name: str) -> int | None:
    words = _words("/proc/meminfo")
    return int(words[words.index(name) + 1]) * 1024 if name in words else None


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _words(path: str) -> list[str]:
    try:
        return Path(path).read_text().split()
    except OSError:
        return []


def resident_bytes() -> int:
    """Resident size of this process now; its largest one so far where the system does not say."""
    pages = _words("/proc/self/statm")
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else peak_bytes()


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    try:
        import resource
    except ImportError:  # not POSIX
        return 0
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes if platform.system() == "Darwin" else kilobytes * 1024

"""Kernels under a sanitizer, in a process of their own: its runtime must be there before everything else.

``python -m emulate.sanitized`` reads a `Job` as JSON from standard input; reports end it with a status other than 0.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from emulate.emulated_cases import Case, check
from emulate.emulator import EmulatedDevice, compiler
from wedgewise.errors import InputError

HERE = Path(__file__).parent
RUNTIMES = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_DISABLE_JIT": "1",
}
FAULT_THREADS, FAULT_BLOCKS = 64, 3


@dataclass(frozen=True, slots=True)
class Job:
    """What one process runs: cases, one kernel of faulty.cu, or functions ``module:name`` that take a device."""

    sanitizer: str | None
    cases: tuple[Case, ...] = ()
    fault: str | None = None
    cooperative: bool = False  # the launch of the fault
    coverage_folder: str | None = None
    checks: tuple[str, ...] = ()


def run_apart(job: Job, timeout_s: float = 600) -> str:
    """Run a job in a process of its own; the reports, or nothing when all went well."""
    environment = os.environ | OPTIONS | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if job.sanitizer:
        environment["LD_PRELOAD"] = _library(RUNTIMES[job.sanitizer])
    command = (sys.executable, "-m", "emulate.sanitized")
    finished = subprocess.run(
        command, input=json.dumps(asdict(job)), env=environment, cwd=HERE.parent, timeout=timeout_s,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if finished.returncode == 0 else f"status {finished.returncode}\n{finished.stdout}\n{finished.stderr}"


def _library(name: str) -> str:
    asked = subprocess.run((compiler(), f"-print-file-name={name}"), capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def launch_fault(device: EmulatedDevice, kernel: str, cooperative: bool = False) -> tuple[list[int], list[int]]:
    """One kernel of faulty.cu on a few threads; what it left in its arrays."""
    values, found = np.zeros(200, np.uint32), np.zeros(2, np.uint64)
    arguments = (values, np.uint32(len(values)), found)
    device.launch(
        "faulty", kernel, FAULT_BLOCKS, FAULT_THREADS, arguments,
        shared_bytes=16 * FAULT_THREADS, cooperative=cooperative,
    )  # fmt: skip
    return values.tolist(), found.tolist()


def main() -> None:
    job = json.load(sys.stdin)
    if job["fault"]:
        launch_fault(EmulatedDevice(job["sanitizer"], kernels=HERE), job["fault"], job["cooperative"])
    folder = job["coverage_folder"]
    device = EmulatedDevice(job["sanitizer"], coverage=bool(folder), folder=Path(folder) if folder else None)
    for case in job["cases"]:
        with suppress(InputError):
            check(Case(**case), device)
    for named in job["checks"]:
        module, _, function = named.partition(":")
        getattr(import_module(module), function)(device)


if __name__ == "__main__":
    main()

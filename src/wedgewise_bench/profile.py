"""The counters of the papers, measured by NVIDIA's Nsight Compute: one cell, answered once more under ``ncu``.

    profiled(job, limits) ─command→ ncu ═process═ python -m wedgewise_bench.profile JOB ─parse→ {counter: number}

`profiled` takes the job of a cell that has been answered on a GPU and returns `COUNTERS` by ncu's names, as
``Outcome.facts["counters"]`` holds them; counters that this GPU or this ncu does not have are left out. What cannot be
measured raises: MissingDependencyError without ncu, DeviceError with what ncu said.

The process prepares the graph and answers once as every cell does, unprofiled, and then once between ``profiler.start``
and ``profiler.stop``: only kernels of that answer are looked at. ncu runs each of them several times, with caches
flushed before, one after the other; times under it mean nothing and are not kept.

A count of events is added up over the kernels of the answer. A ratio is weighted by its own denominator, which is
measured too, so that it is the ratio of the sums: sectors per request of all requests, not of the average kernel.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wedgewise.errors import DeviceError, MissingDependencyError
from wedgewise.machine import files as storage
from wedgewise_bench import child
from wedgewise_bench.watch import CellLimits

LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
STAGES = 4
"""Loading, preparing, the first answer and the profiled one: each may take as long as a stage of a cell."""


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter, by the name that ncu has for it.

    Attributes
    ----------
    name : in ncu
    nvprof : what nvprof called it, and where the number differs
    shows : what it says
    papers : where it is published
    weight : the denominator that a ratio is weighted by; empty for what is added up
    """

    name: str
    nvprof: str
    shows: str
    papers: str
    weight: str = ""


COUNTERS = (
    Counter(LOAD_REQUESTS, "global_load_requests", "loads of global memory, by warps", "comparison, figure 12"),
    Counter(
        "smsp__thread_inst_executed_per_inst_executed.pct",
        "warp_execution_efficiency",
        "active threads of a warp, in per cent of 32",
        "comparison, figure 13a",
        weight="smsp__inst_executed.sum",
    ),
    Counter(
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "warp_execution_efficiency × 32",
        "active threads of a warp",
        "WeTriC, table 5",
        weight="smsp__inst_executed.sum",
    ),
    Counter(
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "gld_transactions_per_request",
        "sectors of 32 bytes that a load of a warp touches",
        "comparison, figure 13b",
        weight=LOAD_REQUESTS,
    ),
    Counter(
        "lts__t_sector_hit_rate.pct",
        "l2_tex_hit_rate",
        "sectors found in the L2 cache, in per cent",
        "TRUST, figure 13",
        weight="lts__t_sectors.sum",
    ),
    Counter(
        "smsp__inst_executed_op_shared_ld.sum",
        "inst_executed_shared_loads",
        "loads of shared memory, by warps",
        "TRUST, figure 13",
    ),
    Counter(
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "achieved_occupancy, as a share of 1",
        "active warps, in per cent of what fits",
        "WeTriC, table 5",
        weight="sm__cycles_active.sum",
    ),
)


def profiled(job: Mapping[str, Any], limits: CellLimits) -> Mapping[str, float]:
    """The counters of one answer to the question of a job.

    Parameters
    ----------
    job : of a cell on a GPU, as `runner.Bench` gives it to the child
    limits : of the cell; the seconds hold for the whole of it four times

    Raises
    ------
    MissingDependencyError : there is no ncu here
    DeviceError : ncu failed, was not allowed to measure, saw no kernel, or took too long
    """
    if shutil.which("ncu") is None:
        raise MissingDependencyError(
            "ncu is not on PATH: install Nsight Compute, which comes with the CUDA toolkit, and put its folder there"
        )
    with tempfile.TemporaryDirectory(prefix="wedgewise-profile-") as folder:
        job_path, log = Path(folder) / "job.json", Path(folder) / "ncu.log"
        with storage.atomic_write(job_path) as file:
            file.write(json.dumps(dict(job)).encode())
        target = [sys.executable, "-P", "-m", "wedgewise_bench.profile", str(job_path)]
        said = _run(command(target, log), STAGES * limits.seconds)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return parse(text, said)


def command(target: Sequence[str], log: Path) -> list[str]:
    """How ncu is called for a target that marks what is to be profiled.

    Examples
    --------
    >>> command(["./program"], Path("ncu.log"))[:6]
    ['ncu', '--csv', '--page', 'raw', '--print-units', 'base']
    """
    metrics = dict.fromkeys(name for item in COUNTERS for name in (item.name, item.weight) if name)
    return [
        *("ncu", "--csv", "--page", "raw", "--print-units", "base"),
        *("--log-file", str(log)),
        *("--profile-from-start", "off"),
        *("--target-processes", "all"),
        *("--metrics", ",".join(metrics)),
        *target,
    ]


def parse(text: str, said: str = "") -> dict[str, float]:
    """The counters of all kernels in what ``ncu --csv --page raw`` wrote, added up or weighted.

    A counter is left out where any kernel lacks it, or its weight: part of a sum is no sum.

    Parameters
    ----------
    text : the log: lines of ncu, a header, a row of units, and a row per kernel
    said : what was printed besides, to be quoted if there is no kernel

    Raises
    ------
    DeviceError : no kernel was measured
    """
    kernels = list(_kernels(text))
    if not kernels:
        raise _failure(f"{text}\n{said}")
    found = {item.name: _over_all(kernels, item) for item in COUNTERS}
    return {name: number for name, number in found.items() if number is not None}


def _kernels(text: str) -> Iterator[dict[str, str]]:
    """A row per kernel by the names of its columns; lines of ncu itself and the row of units are skipped."""
    header: list[str] = []
    for row in csv.reader(line for line in text.splitlines() if line.startswith('"')):
        if row[0] == "ID":
            header = row
        elif row[0]:
            yield dict(zip(header, row, strict=False))


def _over_all(kernels: Sequence[Mapping[str, str]], counter: Counter) -> float | None:
    """One number for all kernels; those without any of a ratio's denominator have no part in it."""
    if not counter.weight:
        numbers = [_number(kernel.get(counter.name)) for kernel in kernels]
        return None if None in numbers else math.fsum(number for number in numbers if number is not None)
    total = weighted = 0.0
    for kernel in kernels:
        weight, number = _number(kernel.get(counter.weight)), _number(kernel.get(counter.name))
        if weight == 0:
            continue
        if weight is None or number is None:
            return None
        total, weighted = total + weight, weighted + weight * number
    return weighted / total if total else None


def _number(text: str | None) -> float | None:
    """A number with or without separators; None for what ncu writes where it has none."""
    try:
        number = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _failure(said: str) -> DeviceError:
    """Why nothing was measured, in ncu's words, with the remedy where it is known."""
    if "ERR_NVGPUCTRPERM" in said:
        return DeviceError(
            "ncu may not read the counters of this GPU (ERR_NVGPUCTRPERM): run as root, or have the driver loaded with "
            "NVreg_RestrictProfilingToAdminUsers=0; a container needs the capability SYS_ADMIN"
        )
    errors = re.findall(r"==ERROR== (.*)", said)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    why = errors[0] if errors else f"it said: {lines[-1][:200]}" if lines else "it said nothing"
    return DeviceError(f"ncu measured no kernel ({why}); see that the cell runs without --profile, and what ncu prints")


def _run(words: Sequence[str], limit_seconds: float) -> str:
    """Run ncu to its end and return what it and its target printed; nothing that it started is left."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"LC_ALL": "C"},  # a point before decimals
        )
        try:
            process.wait(timeout=limit_seconds)
        except subprocess.TimeoutExpired as error:
            raise DeviceError(
                f"under ncu, the cell took over {limit_seconds:g} s; raise --limit-seconds or take a smaller graph"
            ) from error
        finally:
            child.kill_session(process.pid)
            process.wait()
        output.seek(0)
        return output.read().decode(errors="replace")


def answer_between_marks(job: Mapping[str, Any]) -> None:
    """Prepare and answer as the child of a cell does, then answer once more while the profiler looks."""
    import numpy as np

    system = child.system_of(dict(job))
    system.load()
    prepared = system.prepare(np.load(job["pairs_path"], allow_pickle=False))
    if hasattr(system, "prepare_question"):
        system.prepare_question(job["question"], prepared)
    answer = partial(getattr(system, job["question"]), prepared, **job["details"])
    answer()
    from cupy.cuda import profiler

    profiler.start()
    answer()
    profiler.stop()


if __name__ == "__main__":
    answer_between_marks(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))

"""Memory is predicted before the work begins, and what it takes is near that: measured in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.graphs import fixture_pairs
from helpers.store_counts import count_store
from numpy.typing import NDArray

import wedgewise as ww
from limits.predicted import forgets_peaks
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.generate.stream import EdgeStream
from wedgewise.run.outofcore import Counting, predict
from wedgewise.run.task_memory import BATCHED_TASK_BYTES, TaskMemory, triple_answer
from wedgewise.stages.blocks import Hashed
from wedgewise.stages.tasks import BlockCounts
from wedgewise.store.build import write_store

CHILD = Path(__file__).with_name("predicted.py")
NEAR = 0.8, 1.25
SHARE_NEAR = 0.95
MIN_BYTES = 64 << 20  # over the baseline: of less, the allocator's own is a large part

measured = pytest.mark.skipif(not forgets_peaks(), reason="the system does not let a process begin its peak anew")


@dataclass(frozen=True, slots=True)
class Measured:
    """One case: bytes that were predicted, and that were taken."""

    case: str
    predicted: int
    taken: int

    @property
    def is_near(self) -> bool:
        return NEAR[0] * self.taken <= self.predicted <= NEAR[1] * self.taken

    def __str__(self) -> str:
        return f"{self.case:60} {self.predicted:14,} {self.taken:14,} {self.predicted / max(1, self.taken):6.2f}"


def measure(*arguments: str | Path | int) -> Measured:
    words = [str(argument) for argument in arguments]
    ran = subprocess.run([sys.executable, str(CHILD), *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    predicted, taken = map(int, ran.stdout.split())
    return Measured(" ".join([words[0], Path(words[1]).name, *words[2:]]), predicted, taken)


def check(cases: list[Measured], least_cases: int) -> None:
    """Nearly all cases that take enough to be judged are predicted well."""
    judged = [case for case in cases if case.taken >= MIN_BYTES]
    near = sum(case.is_near for case in judged)
    table = "\n".join(map(str, cases))
    assert len(judged) >= least_cases, f"few cases take enough:\n{table}"
    assert near >= SHARE_NEAR * len(judged), f"{near} of {len(judged)} are near:\n{table}"


def stores_of(stream: EdgeStream, folder: Path, parts: tuple[int, ...], scheme: str = "rectilinear") -> list[Path]:
    made = [folder / f"{stream.name}-{scheme}-{count}" for count in parts]
    for path, count in zip(made, parts, strict=True):
        write_store(stream, path, parts=count, scheme=scheme)
    return made


@measured
@pytest.mark.deep
@pytest.mark.compiled
def test_the_peak_of_a_count_is_near_its_prediction(tmp_path: Path) -> None:
    stream = generate.uniform(1 << 18, 17 << 20, seed=1)
    (store,) = stores_of(stream, tmp_path, (1,))
    check([measure("store", store, "keystone", 2, 0), measure("store", store, "bbtc", 1, 0)], 2)


@measured
@pytest.mark.compiled
def test_the_peak_of_supports_is_near_its_prediction(tmp_path: Path) -> None:
    np.save(tmp_path / "graph.npy", generate.kronecker(18, seed=1).pairs(threads=2))
    check([measure("graph", tmp_path / "graph.npy", "edge_support", "keystone", 2)], 1)


@measured
@pytest.mark.deep
@pytest.mark.compiled
def test_nearly_all_peaks_are_near_their_predictions(tmp_path: Path) -> None:
    kronecker, uniform = generate.kronecker(20, seed=1), generate.uniform(1 << 19, 24 << 20, seed=1)
    stores = stores_of(kronecker, tmp_path, (1,)) + stores_of(uniform, tmp_path, (4,))
    stores += stores_of(uniform, tmp_path, (4,), "hashed")
    cases = [
        measure("store", store, algorithm, threads, limit)
        for store, algorithm, (threads, limit) in product(stores, ("keystone", "bbtc"), ((1, 0), (4, 400_000_000)))
    ]
    path = tmp_path / "graph.npy"
    np.save(path, generate.kronecker(18, seed=1).pairs(threads=2))
    cases += [measure("graph", path, "edge_support", "keystone", threads) for threads in (1, 2)]
    np.save(path, generate.kronecker(19, seed=1).pairs(threads=2))
    cases += [measure("graph", path, "count", "bbtc", threads) for threads in (1, 2)]
    check(cases, 14)


@measured
@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.parametrize(
    "stream",
    [generate.kronecker(17, seed=1), generate.uniform(1 << 16, 3 << 19, seed=1)],
    ids=lambda stream: stream.name,
)
def test_trusses_take_no_more_than_predicted(tmp_path: Path, stream: EdgeStream) -> None:
    """How many edges are peeled is not known before their triangles are counted: what is said is a bound."""
    np.save(tmp_path / "graph.npy", stream.pairs(threads=2))
    case = measure("graph", tmp_path / "graph.npy", "trussness", "peel", 2)
    assert case.taken <= case.predicted + (8 << 20), str(case)


ARCS = np.array([[1000, 3000], [2000, 1000]])


def counting(available_bytes: int, threads: int = 1, arcs: NDArray[np.int64] = ARCS) -> Counting:
    counts, knobs = BlockCounts(arcs, np.array([100, 100])), find("bbtc", "cpu").settings({"method": "list"})
    blocks: Any = SimpleNamespace(partition=Hashed(200, 2))
    return Counting(blocks, TaskMemory(counts, triple_answer("bbtc"), knobs, threads), available_bytes)


def test_a_prediction_by_hand() -> None:
    """Blocks of 100 rows and 1,000, 3,000, 2,000 and 1,000 arcs take 2, 4, 3 and 2 pages; merging takes nothing."""
    page = 4096
    whole = predict(counting(10**9), wedges=5000)
    assert (whole.held_bytes, whole.work_bytes) == (11 * page, 8 * BATCHED_TASK_BYTES + page)
    assert whole.peak_bytes == whole.held_bytes + whole.work_bytes
    assert (whole.read_bytes, whole.tasks) == (11 * page, 8)
    least = counting(0).memory.heaviest(counting(0).tasks)[0]
    tight = predict(counting(least), wedges=5000)
    assert tight.peak_bytes == least == 10 * page + BATCHED_TASK_BYTES
    assert tight.batches > whole.batches == 1
    assert tight.read_bytes > whole.read_bytes
    assert tight.seconds > whole.seconds > predict(counting(10**9, threads=4), wedges=5000).seconds


def test_nothing_takes_nothing() -> None:
    nothing = predict(counting(10**9, arcs=np.zeros((2, 2), np.int64)), wedges=0)
    assert (nothing.peak_bytes, nothing.read_bytes, nothing.tasks, nothing.seconds) == (0, 0, 0, 0)


def test_a_plan_of_a_store_says_what_it_will_take(tmp_path: Path) -> None:
    store = write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)
    plan = ww.explain("count", store.folder, threads=1)
    assert plan == count_store(store, threads=1).plan
    assert 0 < plan.estimated_seconds < 10
    assert "bytes beyond the interpreter and its kernels" in str(plan)
    assert any("bytes of blocks are read for 20 tasks" in reason for reason in plan.reasons)
    assert ww.explain("count", fixture_pairs("jazz")).beyond == "the oriented graph"

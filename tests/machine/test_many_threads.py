"""More threads than make sense are asked for: some dozens are started, and the plan says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.commands import KARATE, answer_of
from helpers.graphs import fixture_pairs

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms._contract import Algorithm
from wedgewise.datasets import bundled
from wedgewise.machine import files, hardware, jit
from wedgewise.machine import threads as threads_module
from wedgewise.run.request import Request
from wedgewise.store.build import write_store

FAR_TOO_MANY = 300
NOTE = f"threads in place of {FAR_TOO_MANY:,}"
PAIRS = generate.kronecker(7 if jit.JIT_DISABLED else 14).pairs()

WAYS: dict[str, Callable[[Path], Any]] = {
    "Graph": lambda _: ww.Graph(PAIRS, threads=FAR_TOO_MANY),
    "read": lambda _: ww.read(bundled("email-Enron"), threads=FAR_TOO_MANY),
    "oriented": lambda _: ww.Graph(PAIRS).oriented("core", "classes", threads=FAR_TOO_MANY),
    "weights": lambda _: ww.clustering(ww.Graph(PAIRS, directed=True), threads=FAR_TOO_MANY),
    "stores": lambda folder: write_store(PAIRS, folder / "store", parts=2, threads=FAR_TOO_MANY),
    "generators": lambda _: generate.kronecker(15).pairs(threads=FAR_TOO_MANY),
    "blocks of generators": lambda _: list(generate.kronecker(15).blocks(threads=FAR_TOO_MANY)),
}


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> int:
    """What is granted here, few, so that small graphs have work for more; more than that never work together.

    Those that wait for the disk do no work, and are as many everywhere.
    """
    monkeypatch.setattr(hardware, "ALWAYS_GRANTED_THREADS", 2)
    monkeypatch.setattr(hardware, "usable_threads", lambda: 1)
    monkeypatch.setattr(hardware, "MAX_THREADS_PER_CORE", 1)
    granted = hardware.granted_threads(FAR_TOO_MANY)

    class Counted(threads_module._Threads[Any]):
        def __init__(self, task: Any, tasks: int, workers: int, *more: Any) -> None:
            assert workers <= max(granted, files.SYNC_THREADS if task.__module__ == files.__name__ else 0)
            super().__init__(task, tasks, workers, *more)

    monkeypatch.setattr(threads_module, "_Threads", Counted)
    return granted


@pytest.mark.compiled
@pytest.mark.parametrize("source", [bundled("email-Enron"), PAIRS.tolist(), PAIRS], ids=["file", "list", "array"])
def test_one_thread_reads_cleans_and_counts_where_one_is_asked_for(
    source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "usable_threads", lambda: 4)
    answer = ww.count(source)
    monkeypatch.setattr(threads_module, "_Threads", None)  # nothing starts any
    assert ww.count(source, threads=1) == answer


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_far_too_many_threads_are_not_started(way: Callable[[Path], Any], most: int, tmp_path: Path) -> None:
    way(tmp_path)
    assert most < FAR_TOO_MANY


@pytest.mark.parametrize("question", ["count", "triangles", "edge_support", "trussness", "max_truss", "list_triangles"])
def test_questions_say_that_they_were_granted_fewer(question: str, most: int) -> None:
    result = ww.run(question, PAIRS, threads=FAR_TOO_MANY)
    assert result.plan.threads == most
    assert sum(NOTE in reason for reason in result.plan.reasons) == 1
    assert sum(NOTE in reason for reason in ww.explain(question, PAIRS, threads=FAR_TOO_MANY).reasons) == 1
    assert not any("in place of" in reason for reason in ww.run(question, PAIRS, threads=most).plan.reasons)


@pytest.mark.parametrize("question", ["count", "triangles"])
def test_stores_say_so_too(question: str, most: int, tmp_path: Path) -> None:
    folder = write_store(fixture_pairs("karate"), tmp_path / "store", parts=2).folder
    for plan in (
        ww.run(question, folder, threads=FAR_TOO_MANY).plan,
        ww.explain(question, folder, threads=FAR_TOO_MANY),
    ):
        assert sum(NOTE in reason for reason in plan.reasons) == 1
        assert plan.threads <= most


def test_what_goes_on_from_disk_says_so_too(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    graph = ww.Graph(PAIRS)
    small: dict[str, Any] = {"memory_limit": 2**28, "threads": FAR_TOO_MANY}
    too_large = SimpleNamespace(kernels=(), bytes_needed=lambda *_: 2**40)
    monkeypatch.setattr(Algorithm, "whole_on_cpu", lambda *_: too_large)
    for plan in (ww.explain("count", graph, **small), ww.run("count", graph, **small).plan):
        assert any("from disk" in reason for reason in plan.reasons)
        assert sum(NOTE in reason for reason in plan.reasons) == 1


def test_the_command_says_so(most: int) -> None:
    assert (
        sum(NOTE in reason for reason in answer_of("count", KARATE, "--threads", str(FAR_TOO_MANY))["plan"]["reasons"])
        == 1
    )
    assert most < FAR_TOO_MANY


def test_workers_of_a_cluster_are_not_those_of_this_machine() -> None:
    assert Request(threads=FAR_TOO_MANY, cluster="tcp://elsewhere:8786").threads == FAR_TOO_MANY

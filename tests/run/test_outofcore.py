"""Counting on stores: exact within any limit that is accepted, resumable after any end, never above the limit."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Set
from itertools import pairwise, product
from math import comb
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import COMMAND, answer_of, invoke
from helpers.failing_calls import Fault, installed
from helpers.graphs import DENSE, TRUTHS, fixture_pairs, fixture_path, of_fit_size
from helpers.store_counts import count_store, each_task_by_itself
from helpers.stores import WITHOUT_TRIANGLES, at_most, interpret_kernels, limit_leaving, names_in, peak_of

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import BatchWork
from wedgewise.algorithms._passes import run_passes
from wedgewise.errors import (
    FormatError,
    InputError,
    MemoryLimitError,
    PreconditionError,
    StorageError,
    UnknownNameError,
    VerificationError,
)
from wedgewise.machine import hardware
from wedgewise.machine.budget import MIN_LIMIT
from wedgewise.run import outofcore
from wedgewise.run.block_caches import BlockCache
from wedgewise.run.checkpoint import JOURNAL, Journal, key_of
from wedgewise.run.outofcore import Counting, Finished
from wedgewise.run.task_memory import TaskMemory, triple_answer
from wedgewise.stages.tasks import Pair, TaskTable, table_of
from wedgewise.store.build import write_store
from wedgewise.store.open import Store
from wedgewise.write.edges import write_edges

SMALL = of_fit_size("karate", "lesmis", "jazz", "atlas_union")
ALGORITHMS = ("keystone", "bbtc")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(fixture_pairs(DENSE), tmp_path / "store", parts=4)


TRIANGLES, TASKS = TRUTHS[DENSE]["triangles"], 20


def counting(store: Store, room: int, algorithm: str = "keystone", threads: int = 1) -> Counting:
    memory = TaskMemory(store.counts, triple_answer(algorithm), find(algorithm, "cpu").settings(None), threads)
    return Counting(store, memory, room)


def least_room(store: Store) -> int:
    return counting(store, 0).memory.heaviest(table_of(store.partition))[0]


@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("name", SMALL)
def test_counts_are_exact(tmp_path: Path, name: str, parts: int, scheme: str) -> None:
    store = write_store(fixture_pairs(name), tmp_path / "store", parts=parts, scheme=scheme)
    for algorithm, (threads, limit) in product(ALGORITHMS, ((1, None), (2, 2**34))):
        found = count_store(store, threads=threads, memory_limit=limit, algorithm=algorithm)
        assert found.triangles == TRUTHS[name]["triangles"]
        assert (found.resumed, found.plan.algorithm, found.plan.threads) == (0, algorithm, threads)
    assert JOURNAL not in names_in(store.folder)


def test_empty_stores_are_counted(tmp_path: Path) -> None:
    for number, pairs in enumerate(WITHOUT_TRIANGLES):
        for parts in {1, at_most(3, ww.Graph(pairs))}:
            folder = tmp_path / f"{number}-{parts}"
            assert count_store(write_store(pairs, folder, parts=parts)).triangles == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_least_room_is_enough_and_less_is_refused(store: Store, algorithm: str) -> None:
    need = counting(store, 0, algorithm)
    with pytest.raises(
        MemoryLimitError, match=r"the blocks \d, \d, \d and what is made of them take [\d,]+ bytes"
    ) as short:
        need.check_fits()
    least = int(str(short.value).partition(" take ")[2].partition(" ")[0].replace(",", ""))
    with pytest.raises(MemoryLimitError, match="partition the graph into more parts"):
        counting(store, least - 1, algorithm).check_fits()
    tight = counting(store, least, algorithm)
    assert tight.check_fits() == least
    execution = tight.run(None, None)
    assert int(execution.results.triangles.sum()) == TRIANGLES


def test_blocks_are_read_again_only_for_want_of_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    really = Store.block

    def block(self: Store, row: int, column: int, *, threads: int = 1) -> Any:
        read.append((row, column))
        return really(self, row, column, threads=threads)

    monkeypatch.setattr(Store, "block", block)
    counting(store, 1 << 40).run(None, None)
    assert len(read) == len(set(read)) == 10
    read.clear()
    counting(store, least_room(store)).run(None, None)
    assert 10 < len(read) < 3 * len(table_of(store.partition))


def test_what_is_held_fits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is held when a batch runs, with what it makes of its blocks, is within the room."""
    caches: list[Any] = []
    really = BlockCache.blocks

    def blocks(self: BlockCache[Any], wanted: Set[Pair], room: int) -> Any:
        held = really(self, wanted, room)
        caches.append((sum(block.nbytes for block in held.values()), room))
        return held

    monkeypatch.setattr(BlockCache, "blocks", blocks)
    least = least_room(store)
    for room in (least, least + 4000, 2 * least):
        caches.clear()
        counting(store, room).run(None, None)
        assert caches
        assert all(held <= left for held, left in caches)


def test_threads_give_way_to_room(store: Store) -> None:
    least = least_room(store)
    assert counting(store, 1 << 40, threads=16).with_fitting_threads().memory.threads == 16
    fewer = counting(store, least + (1 << 14), threads=16).with_fitting_threads()
    assert 1 < fewer.memory.threads < 16
    assert fewer.check_fits() <= least + (1 << 14)
    assert counting(store, least, threads=16).with_fitting_threads().memory.threads == 1
    assert counting(store, 0, threads=16).with_fitting_threads().memory.threads == 1


def test_the_order_has_every_task_once(store: Store) -> None:
    tasks = table_of(store.partition)
    ordered = tuple(tasks.in_reuse_order())
    assert sorted(task.number for task in ordered) == list(range(len(tasks)))
    steps = [abs(after.i - before.i) for before, after in pairwise(ordered) if before.j == after.j]
    assert max(steps) <= 1
    looked_up_in = [(task.j, task.k) for task in ordered]
    assert looked_up_in == sorted(looked_up_in)


def test_progress_is_told(store: Store) -> None:
    told: list[tuple[str, int, int]] = []
    with each_task_by_itself():
        count_store(store, progress=lambda *what: told.append(what))
    assert told[-1][1] == told[-1][2] == len(told) <= 20
    told.clear()
    count_store(store, progress=lambda *what: told.append(what))
    assert told[-1][1] == told[-1][2] >= len(told)


def test_what_cannot_be_asked_for(store: Store) -> None:
    with pytest.raises(InputError, match="too few for the interpreter"):
        count_store(store, memory_limit=MIN_LIMIT - 1)
    with pytest.raises(PreconditionError, match=r"forward on cpu does not count blocks.*keystone on cpu"):
        count_store(store, algorithm="forward")
    with pytest.raises(UnknownNameError):
        count_store(store, algorithm="nothing")
    with pytest.raises(UnknownNameError, match="no knob"):
        count_store(store, knobs={"nothing": 1})


def interrupted_after(store: Store, tasks: int, **how: Any) -> None:
    """Count, and be interrupted when so many tasks are finished."""

    def interrupt(_stage: str, done: int, _total: int) -> None:
        if done >= tasks:
            raise KeyboardInterrupt

    with each_task_by_itself(), pytest.raises(KeyboardInterrupt):
        count_store(store, progress=interrupt, **how)


@pytest.mark.parametrize("tasks", [1, 2, 19])
def test_a_count_goes_on_where_it_was(store: Store, monkeypatch: pytest.MonkeyPatch, tasks: int) -> None:
    interrupted_after(store, tasks)
    run: list[int] = []
    really = Counting.count

    def noted(self: Counting, work: BatchWork, tasks: TaskTable) -> Finished:
        run.extend(tasks.number.tolist())
        return really(self, work, tasks)

    monkeypatch.setattr(Counting, "count", noted)
    found = count_store(store, memory_limit=2**34, threads=2)
    assert (found.triangles, found.resumed) == (TRIANGLES, tasks)
    assert len(run) == len(counting(store, 0).tasks) - tasks
    assert JOURNAL not in names_in(store.folder)


def test_seconds_of_ended_counts_are_kept(store: Store) -> None:
    interrupted_after(store, 5)
    path = store.folder / JOURNAL
    journal = Journal(path, json.loads(path.read_text().splitlines()[0])["key"], TASKS)
    journal.read()
    kept = journal.results.by_seconds
    assert len(kept) == 5
    found = count_store(store)
    assert kept.items() <= found.task_seconds.items()
    assert len(found.task_seconds) == len(counting(store, 0).tasks)


def test_a_torn_or_damaged_line_is_done_again(store: Store) -> None:
    interrupted_after(store, 5)
    path = store.folder / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    for torn in range(0, len(lines[-1]) - 1, 7):  # without its newline alone it is whole
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:torn])
        journal = Journal(path, json.loads(lines[0])["key"], TASKS)
        journal.read()
        assert len(journal.results.done) == 4
    path.write_bytes(
        b"".join(lines[:2]) + lines[2].replace(b'"triangles": [', b'"triangles": [1') + b"".join(lines[3:])[:-9]
    )
    found = count_store(store)
    assert (found.triangles, found.resumed) == (TRIANGLES, 3)


@pytest.mark.parametrize("line", [b"null", b"[]", b"{}", b'"x"', b'{"check": 1}', b"\xff\xfe", b"[" * 5000])
def test_lines_of_nothing_are_passed_over(store: Store, line: bytes) -> None:
    (store.folder / JOURNAL).write_bytes(line + b"\n")
    assert count_store(store).triangles == TRIANGLES


def test_results_of_other_work_are_refused(store: Store, tmp_path: Path) -> None:
    interrupted_after(store, 5)
    with pytest.raises(InputError, match=r"count\.journal: holds results for another graph, other options"):
        count_store(store, algorithm="bbtc")
    with pytest.raises(InputError, match="other options"):
        count_store(store, shares=2)
    recut = write_store(fixture_pairs(DENSE), tmp_path / "recut", parts=5)
    (recut.folder / JOURNAL).write_bytes((store.folder / JOURNAL).read_bytes())
    with pytest.raises(InputError, match="start again: by --restart"):
        count_store(recut)
    found = count_store(store, algorithm="bbtc", resume=False)
    assert (found.triangles, found.resumed) == (TRIANGLES, 0)


def test_results_of_another_graph_in_the_same_parts_are_refused(tmp_path: Path) -> None:
    clique = generate.complete(40).pairs()
    one, other = (
        write_store(pairs, tmp_path / name, parts=3, scheme="hashed")
        for name, pairs in (("one", clique), ("other", clique[1:]))
    )
    assert one.partition.to_dict() == other.partition.to_dict()
    interrupted_after(one, 5)
    (other.folder / JOURNAL).write_bytes((one.folder / JOURNAL).read_bytes())
    with pytest.raises(InputError, match="another graph"):
        count_store(other)


def test_results_of_another_version_are_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_after(store, 2)
    monkeypatch.setattr(outofcore, "__version__", "999")
    with pytest.raises(InputError, match="another version"):
        count_store(store)


def test_two_results_of_a_task_must_agree(tmp_path: Path) -> None:
    path, key = tmp_path / JOURNAL, key_of(a=1)
    journal = Journal(path, key, TASKS)
    for tests in (5, 6):  # of another batch
        journal.add([2, 3], [0, 4], [1, tests], [0.5, 0.5])
    again = Journal(path, key, TASKS)
    again.read()
    assert again.results.done.tolist() == [2, 3]
    assert again.results.triangles[3] == 4
    journal.add([3], [5], [5], [0.5])
    with pytest.raises(VerificationError, match="task 3 has two results"):
        Journal(path, key, TASKS).read()


def test_wrong_results_of_a_journal_cannot_exceed_the_wedges(store: Store) -> None:
    interrupted_after(store, 2)
    path = store.folder / JOURNAL
    key = json.loads(path.read_text().splitlines()[0])["key"]
    path.unlink()
    Journal(path, key, TASKS).add([0], [10**9], [0], [0.0])
    with pytest.raises(FormatError, match=r"1,000,0[\d,]+ triangles were found; start again by --restart"):
        count_store(store)


def test_a_full_disk_ends_a_count_that_can_go_on(store: Store) -> None:
    with (
        each_task_by_itself(),
        installed(Fault("storage.write", 4, always=True)),
        pytest.raises(StorageError, match="No space left on device"),
    ):
        count_store(store)
    found = count_store(store)
    assert found.triangles == TRIANGLES
    assert found.resumed == 3  # the first write was that of the lock


def test_a_damaged_block_is_found_while_counting(store: Store) -> None:
    path = store.folder / "block-0-2.heads.npy"
    raw = bytearray(path.read_bytes())
    raw[-2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"block-0-2\.heads\.npy: has other bytes"):
        ww.count(store.folder)


KILLED = """
import os, signal, sys
from wedgewise.machine import files as storage
from wedgewise.run import batches, checkpoint
import wedgewise as ww
batches.BATCH_SECONDS = 0.0
folder, number, moment = sys.argv[1], int(sys.argv[2]), sys.argv[3]
really_append, really_write, left = storage.append_line, os.write, number
def die(): os.kill(os.getpid(), signal.SIGKILL)
def append(path, text, **how):
    global left
    left -= 1
    if left < 0 and moment == "before": die()
    if left < 0 and moment == "within":
        storage.os.write = lambda descriptor, line: (really_write(descriptor, line[: len(line) // 2]), die())
    really_append(path, text, **how)
    if left < 0: die()
checkpoint.append_line = append
ww.count(folder)
"""


@pytest.mark.compiled  # in other processes
@pytest.mark.parametrize("moment", ["before", "within", "after"])
@pytest.mark.parametrize("number", [0, 7])
def test_a_killed_count_repeats_at_most_one_batch(store: Store, number: int, moment: str) -> None:
    for extra in (0, 1):  # and is killed again when it has gone on
        died = subprocess.run(
            [sys.executable, "-c", KILLED, str(store.folder), str(number + extra), moment],
            capture_output=True,
            check=False,
        )
        assert died.returncode == -signal.SIGKILL, died.stderr
    kept = number + (moment == "after")
    found = count_store(store)
    assert (found.triangles, found.resumed) == (TRIANGLES, 2 * kept + 1)


@pytest.mark.deep
@pytest.mark.compiled
def test_killed_partitions_are_replaced(tmp_path: Path) -> None:
    moments = random.Random(3)
    write_edges(generate.kronecker(13, seed=2).pairs(), tmp_path / "graph.bel32")
    command = [*COMMAND, "partition", "graph.bel32", "store", "--parts", "5", "--memory", "512MB"]
    for _ in range(30):
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(moments.uniform(0.3, 1.0))
            process.kill()
            process.communicate()
        if (tmp_path / "store" / "manifest.json").exists():
            break
    else:
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert ww.count(tmp_path / "store") == ww.count(tmp_path / "graph.bel32")


@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its own size from /proc")
@pytest.mark.parametrize(
    "suffix", ["bel32", *(pytest.param(other, marks=pytest.mark.deep) for other in ("npy", "txt", "txt.gz"))]
)
def test_a_process_never_exceeds_its_limit(tmp_path: Path, suffix: str) -> None:
    """Of about 2,000,000 pairs, of which memory may hold none beyond what is worked on."""
    graph = f"graph.{suffix}"
    write_edges(generate.kronecker(17, seed=4).pairs(threads=2), tmp_path / graph)
    in_memory = str(ww.count(tmp_path / graph))
    peak, _ = peak_of("partition", graph, "store", "--memory", "256MB", "--threads", "2", cwd=tmp_path)
    assert peak <= MIN_LIMIT
    for algorithm in ALGORITHMS:
        peak, shown = peak_of("count", "store", "--memory", "256MB", "--algorithm", algorithm, cwd=tmp_path)
        assert shown.strip() == in_memory
        assert peak <= MIN_LIMIT


@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its own size from /proc")
def test_a_process_that_begins_larger_keeps_to_the_same_limit(tmp_path: Path) -> None:
    write_edges(generate.kronecker(17, seed=4).pairs(threads=2), tmp_path / "graph.bel32")
    in_memory = str(ww.count(tmp_path / "graph.bel32"))
    env, limit = limit_leaving(60_000_000)
    within = ("--memory", str(limit))
    peak, _ = peak_of("partition", "graph.bel32", "store", *within, cwd=tmp_path, env=env)
    assert peak <= limit
    for algorithm in ALGORITHMS:
        peak, shown = peak_of("count", "store", *within, "--algorithm", algorithm, cwd=tmp_path, env=env)
        assert shown.strip() == in_memory
        assert peak <= limit


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its own size from /proc")
def test_compiling_is_left_to_another_process(tmp_path: Path) -> None:
    write_edges(generate.kronecker(12, seed=4).pairs(), tmp_path / "graph.bel32")
    env = {**os.environ, "WEDGEWISE_CACHE": str(tmp_path / "kernels")}
    for arguments in (("partition", "graph.bel32", "store"), ("count", "store")):
        peak, _ = peak_of(*arguments, "--memory", "256MB", cwd=tmp_path, env=env)
        assert peak <= MIN_LIMIT


LOADED_BEFOREHAND = """
import sys
from wedgewise.run import outofcore
from wedgewise.machine import jit
from wedgewise.store import build as store_build
graph, folder, algorithm = sys.argv[1:]
store_build.load_build_kernels()
outofcore.load_count_kernels(algorithm)
def late(kernel, kinds): raise AssertionError(f"{kernel.title} was not loaded before")
jit._load_or_compile = late
import wedgewise as ww
print(ww.count(store_build.write_store(graph, folder, parts=3), algorithm=algorithm))
"""


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_kernel_is_loaded_beforehand(tmp_path: Path, algorithm: str) -> None:
    """Those that come later would not be reckoned with."""
    write_edges(generate.kronecker(13, seed=4).pairs(), tmp_path / "graph.txt")
    ran = subprocess.run(
        [sys.executable, "-c", LOADED_BEFOREHAND, "graph.txt", "store", algorithm],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == f"{ww.count(tmp_path / 'graph.txt')}\n", ran.stderr


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_loading_counts_a_clique_in_every_way(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    found: list[int] = []

    def noted(*given: Any) -> int:
        found.append(run_passes(*given))
        return found[-1]

    interpret_kernels(monkeypatch)
    monkeypatch.setattr(outofcore, "CLIQUE_VERTICES", 12)
    monkeypatch.setattr(outofcore, "run_passes", noted)
    outofcore.load_count_kernels(algorithm)
    ways = 1 + sum(len(knob.choices) for knob in find(algorithm, "cpu").knobs)
    assert sum(found) == 2 * ways * comb(12, 3)


def test_a_process_that_holds_too_much_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "resident_bytes", lambda: 10**9)
    with pytest.raises(MemoryLimitError, match=r"holds 1,000,000,000 bytes before the work begins"):
        count_store(store, memory_limit=10**9)


def test_a_store_is_a_source_of_count(store: Store) -> None:
    roomy = hardware.resident_bytes() + 2**28
    assert ww.count(store.folder) == ww.count(str(store.folder), memory_limit=roomy, threads=1) == TRIANGLES
    result = ww.run("count", store.folder, verify=True, algorithm="bbtc")
    assert (result.answer, result.algorithm, result.verified) == (TRIANGLES, "bbtc", "recounted by keystone")
    assert result.m == store.manifest.m
    with pytest.raises(PreconditionError, match=r"a store answers count, .*, not generalized"):
        ww.generalized_degree(store.folder)
    with pytest.raises(PreconditionError, match="counted on the CPU"):
        ww.count(store.folder, device="cuda")
    with pytest.raises(PreconditionError, match="leave order and relabel out"):
        ww.run("count", store.folder, order="core")


def test_disagreement_is_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        triangles = TRIANGLES + 1

    def counted(*asked: Any, journal: bool = True) -> Any:
        return outofcore.count_store(*asked) if journal else Wrong()

    monkeypatch.setattr("wedgewise.answer.disk.count_store", counted)
    with pytest.raises(VerificationError, match="please report this"):
        ww.run("count", store.folder, verify=True)


def test_counting_a_store_on_the_command_line(store: Store) -> None:
    folder = str(store.folder)
    roomy = hardware.resident_bytes() + 2**28
    assert invoke("count", folder, "--memory", str(roomy)).stdout == f"{TRIANGLES}\n"
    record = answer_of("count", folder, "--verify")
    assert (record["answer"], record["verified"]) == (TRIANGLES, "recounted by bbtc")
    interrupted_after(store, 5)
    refused = invoke("count", folder, "--algorithm", "bbtc")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert invoke("count", folder, "--algorithm", "bbtc", "--restart").stdout == f"{TRIANGLES}\n"
    for option in (["--labels", "int"], ["--format", "text"], ["--drop-leaves"], ["--limit", "pairs=5"]):
        assert invoke("count", folder, *option).exit_code == 1
    assert invoke("count", folder, "--memory", "100MB").exit_code == 1
    assert invoke("count", str(fixture_path(DENSE))).stdout == f"{TRIANGLES}\n"

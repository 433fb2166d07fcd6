"""The driver of a cluster, with workers in this process: whatever is lost, late or doubled, the total is exact."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRUTHS, fixture_pairs
from helpers.store_counts import count_store

from run.cluster_workers import FakeWorkers
from wedgewise import errors
from wedgewise.errors import (
    ClusterError,
    DeviceMemoryError,
    FormatError,
    InputError,
    MissingFileError,
    PreconditionError,
    UnknownNameError,
    VerificationError,
)
from wedgewise.machine import hardware
from wedgewise.machine.budget import MIN_LIMIT
from wedgewise.run import _count_worker, _worker_requests, batches, cluster, outofcore
from wedgewise.run._count_worker import BatchRequest, BatchResult, CountState, error_to_json
from wedgewise.run._dispatch import MAX_CRASHES_PER_TASK, Assignment, Delivery
from wedgewise.run._worker_requests import do_request
from wedgewise.run.checkpoint import JOURNAL, Journal
from wedgewise.run.cluster import ClusterWork, Driver, cluster_work, make_batches
from wedgewise.run.outofcore import Finished
from wedgewise.run.request import Request
from wedgewise.run.task_memory import BATCHED_TASK_BYTES
from wedgewise.stages.tasks import busy_tasks, exact_sum
from wedgewise.store.build import write_store
from wedgewise.store.open import Store, open_store

JAZZ = TRUTHS["jazz"]["triangles"]
TASKS = 20  # of jazz in four parts, all of which have arcs


@pytest.fixture(scope="module")
def jazz(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_store(fixture_pairs("jazz"), tmp_path_factory.mktemp("jazz") / "store", parts=4)


@pytest.fixture(autouse=True)
def one_task_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work so short would be one batch."""
    monkeypatch.setattr(cluster, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "BATCHES_PER_WORKER", 100)
    monkeypatch.setattr(_worker_requests, "_state", None)


def assigned(store: Store, workers: int | None = None, **how: Any) -> ClusterWork:
    return cluster_work(Request(workers=workers, **{"threads": 1, **how}), store)


def sum_of(driver: Driver) -> int:
    return exact_sum(driver.finish().results.triangles)


def total(store: Store, pool: FakeWorkers, journal: Journal | None = None) -> int:
    driver = Driver(assigned(store), journal)
    driver.run(pool)
    return sum_of(driver)


@pytest.mark.parametrize("algorithm", ["keystone", "bbtc"])
@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
@pytest.mark.parametrize("name", ["karate", "jazz"])
def test_counts_are_exact(tmp_path: Path, name: str, scheme: str, algorithm: str) -> None:
    store = write_store(fixture_pairs(name), tmp_path / "store", parts=3, scheme=scheme)
    pool = FakeWorkers()
    told: list[tuple[str, int, int]] = []
    driver = Driver(assigned(store, algorithm=algorithm), progress=lambda *what: told.append(what))
    busy = driver.left
    driver.run(pool)
    assert (sum_of(driver), driver.left) == (TRUTHS[name]["triangles"], 0)
    assert told == [("count", done + 1, busy) for done in range(busy)]
    assert len(pool.batches) > 3
    assert pool.most_under_way <= 4
    timed = driver.finish().results.by_seconds
    assert timed.keys() == {task for batch in pool.batches for task in batch.tasks}
    assert min(timed.values()) > 0


def test_deliveries_may_come_twice(jazz: Store) -> None:
    pool = FakeWorkers(deliver=lambda batch, reply: [Delivery(batch, reply)] * 2)
    assert total(jazz, pool) == JAZZ


def test_deliveries_may_come_late_and_in_any_order(jazz: Store) -> None:
    """Each is held back while others pass it, and comes again at the end."""
    chance, held = random.Random(5), list[Delivery]()

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        held.append(Delivery(batch, reply))
        if len(held) < 4 and chance.random() < 0.7 and pool.under_way:
            return []
        chance.shuffle(held)
        return [held.pop() for _ in range(len(held))] + [Delivery(batch, reply)]

    pool = FakeWorkers(workers=4, deliver=deliver)
    assert total(jazz, pool) == JAZZ


def test_a_batch_that_was_given_up_may_still_arrive(jazz: Store) -> None:
    """A loss is reported, the batch is done again, and then the lost reply comes as well, before or after."""
    lost: set[int] = set()

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        if batch.tasks[0] in lost:
            return [Delivery(batch, reply)]
        lost.add(batch.tasks[0])
        return [Delivery(batch, None, 1), Delivery(batch, reply), Delivery(batch, None, 1)]

    assert total(jazz, FakeWorkers(deliver=deliver)) == JAZZ


def test_a_second_result_has_to_be_equal(jazz: Store) -> None:
    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        found = BatchResult.from_json(reply)
        other = found.finished._replace(triangles=found.finished.triangles + np.uint64(1))
        return [Delivery(batch, reply), Delivery(batch, replace(found, finished=other).to_json())]

    with pytest.raises(VerificationError, match=r"task \d+ has [\d,]+ triangles and, delivered again, [\d,]+"):
        total(jazz, FakeWorkers(deliver=deliver))


def test_tests_of_a_second_result_may_differ(jazz: Store) -> None:
    """How many lookups a task takes depends on those that it shares bit rows with; what it finds does not."""

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        found = BatchResult.from_json(reply)
        other = found.finished._replace(tests=found.finished.tests + np.uint64(1))
        return [Delivery(batch, reply), Delivery(batch, replace(found, finished=other).to_json())]

    assert total(jazz, FakeWorkers(deliver=deliver)) == JAZZ


def in_parts(batch: Assignment, reply: bytes) -> list[Delivery]:
    """What a worker tells on the way: each task of its batch but the last."""
    whole = json.loads(reply)
    rows = [{**whole, "finished": [[item] for item in row]} for row in list(zip(*whole["finished"], strict=True))[:-1]]
    return [Delivery(batch, json.dumps(row).encode(), is_whole=False) for row in rows]


@pytest.fixture
def large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MIN_SECONDS", 1e-5)
    monkeypatch.setattr(cluster, "BATCHES_PER_WORKER", 1)


@pytest.mark.usefixtures("large_batches")
def test_what_was_told_of_a_lost_batch_is_not_done_again(jazz: Store) -> None:
    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        if len(batch.tasks) == 1:
            return [Delivery(batch, reply)]
        return [*in_parts(batch, reply), Delivery(batch, None, 1)]

    pool = FakeWorkers(deliver=deliver)
    assert total(jazz, pool) == JAZZ
    lost = [batch.tasks for batch in pool.batches if len(batch.tasks) > 1]
    assert lost
    single = [batch.tasks for batch in pool.batches if len(batch.tasks) == 1]
    assert {tasks[-1:] for tasks in lost} <= set(single)
    assert not {task for tasks in lost for task in tasks[:-1]} & {task for (task,) in single}


@pytest.mark.usefixtures("large_batches")
def test_what_was_told_is_written_down(jazz: Store, tmp_path: Path) -> None:
    """The driver ends while a batch is under way."""

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        if pool.told:
            raise KeyboardInterrupt
        pool.told = batch.tasks[:-1]
        return in_parts(batch, reply)

    pool = FakeWorkers(deliver=deliver)
    with pytest.raises(KeyboardInterrupt):
        total(jazz, pool, Journal(tmp_path / JOURNAL, assigned(jazz).key, TASKS))
    again = Journal(tmp_path / JOURNAL, assigned(jazz).key, TASKS)
    again.read()
    assert len(pool.told) > 1
    assert set(again.results.done.tolist()) == set(pool.told)


def test_workers_tell_what_they_finished(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_count_worker, "PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.0)
    told: list[bytes] = []
    order = assigned(jazz).message(Assignment(0, (3, 1, 2)))
    reply = BatchResult.from_json(do_request(order, progress=told.append))
    numbers = [BatchResult.from_json(text).finished.numbers.tolist() for text in told]
    assert (numbers, reply.finished.numbers.tolist()) == ([[3], [1], [2]], [3, 1, 2])


@pytest.mark.parametrize(
    ("change", "is_whole"),
    [("key", True), ("task", True), ("missing", True), ("more", True), ("key", False), ("task", False)],
)
def test_an_answer_to_another_question_is_refused(jazz: Store, change: str, is_whole: bool) -> None:
    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        whole = json.loads(reply)
        columns = whole["finished"]
        if change == "key":
            whole["key"] = "0" * 32
        elif change == "task":
            columns[0][0] += 1
        else:
            whole["finished"] = [[] if change == "missing" else 2 * column for column in columns]
        return [Delivery(batch, json.dumps(whole).encode(), is_whole=is_whole)]

    with pytest.raises(VerificationError, match=r"was asked for tasks .* and answered others"):
        total(jazz, FakeWorkers(deliver=deliver))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_lost_with_workers_is_done_again(jazz: Store, seed: int) -> None:
    """Workers die of other reasons than their tasks, at random."""
    chance, lost = random.Random(seed), list[Assignment]()

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        if chance.random() < 0.5 and not batch.alone:
            lost.append(batch)
            return [Delivery(batch, None, 1)]
        return [Delivery(batch, reply)]

    assert total(jazz, FakeWorkers(deliver=deliver)) == JAZZ
    assert len(lost) > 3


@pytest.mark.parametrize("deaths", [1, 4])
@pytest.mark.parametrize("per_batch", [1, 100])
def test_a_poison_task_is_named(jazz: Store, monkeypatch: pytest.MonkeyPatch, per_batch: int, deaths: int) -> None:
    """It ends its worker, and takes with it what was waiting there: only the poison is blamed."""
    if per_batch > 1:
        monkeypatch.setattr(cluster, "MIN_SECONDS", 100.0)
        monkeypatch.setattr(cluster, "MAX_SECONDS", 100.0)
    poison, ended = 7, list[Assignment]()

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        if poison not in batch.tasks:
            return [Delivery(batch, reply)]
        ended.append(batch)
        gone = [Delivery(batch, None, deaths)]
        while pool.under_way:
            gone.append(Delivery(pool.under_way.popleft()[0], None, deaths))
        return gone

    pool = FakeWorkers(workers=1, deliver=deliver)
    with pytest.raises(ClusterError, match=r"task 7 \(blocks 0, 2, 2\) ended \d workers when nothing else was under"):
        total(jazz, pool)
    assert ended[-1] == Assignment(ended[-1].number, (poison,), alone=True)
    assert len(ended) == (2 if per_batch > 1 else 1) + -(-MAX_CRASHES_PER_TASK // deaths)


def test_an_error_of_ours_is_raised_as_it_is(jazz: Store) -> None:
    """And not tried again."""
    damage = FormatError("is damaged", path="a.npy", line=3, text="x", remedy="mend it")
    pool = FakeWorkers(deliver=lambda batch, _reply: [Delivery(batch, error_to_json(damage))])
    with pytest.raises(FormatError, match=r"a\.npy:3: is damaged: 'x'; mend it") as caught:
        total(jazz, pool)
    raised = caught.value
    assert (raised.reason, raised.path, raised.line, raised.text, raised.remedy) == (
        "is damaged",
        "a.npy",
        3,
        "x",
        "mend it",
    )
    assert len(pool.batches) == 4


EVERY_ERROR = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", EVERY_ERROR, ids=lambda kind: str(kind.__name__))
def test_every_error_crosses_the_wire(kind: type[errors.WedgewiseError]) -> None:
    given: errors.WedgewiseError
    if kind is FormatError:
        given = FormatError("is bad", path="p", remedy="r")
    elif kind is DeviceMemoryError:
        given = DeviceMemoryError("card", wanted=None, free=3)
    else:
        given = kind("what happened; what to do")
    with pytest.raises(kind) as caught:
        BatchResult.from_json(error_to_json(given))
    assert type(caught.value) is kind
    assert str(caught.value) == str(given)
    assert vars(caught.value) == vars(given)


def test_a_worker_of_another_version_refuses(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    order = json.loads(assigned(jazz).message(Assignment(0, (0,))))
    order.update(version="0.0.0", something_new=True)
    with pytest.raises(ClusterError, match=r"the driver has wedgewise 0\.0\.0 and a worker .* the same version"):
        BatchResult.from_json(do_request(json.dumps(order)))


def test_a_worker_that_finds_another_graph_refuses(jazz: Store, tmp_path: Path) -> None:
    asked = json.loads(assigned(jazz).message(Assignment(0, (0,))))
    other = write_store(fixture_pairs("jazz")[1:], tmp_path / "other", parts=4)
    with pytest.raises(ClusterError, match=r"other: a worker finds the graph [0-9a-f]{12} there.*all workers share"):
        BatchResult.from_json(do_request(json.dumps({**asked, "store": str(other.folder)})))
    recut = write_store(fixture_pairs("jazz"), tmp_path / "recut", parts=3)
    with pytest.raises(ClusterError, match="in other parts than the driver"):
        BatchResult.from_json(do_request(json.dumps({**asked, "store": str(recut.folder)})))
    nothing = rf"^worker tcp://there:1 cannot see the store {tmp_path}; put it where all workers can read it$"
    with pytest.raises(ClusterError, match=nothing):
        BatchResult.from_json(do_request(json.dumps({**asked, "store": str(tmp_path)}), worker="tcp://there:1"))
    (tmp_path / "other" / "block-0-0.heads.npy").unlink()
    with pytest.raises(MissingFileError, match=r"block-0-0\.heads\.npy: cannot be opened"):
        BatchResult.from_json(do_request(json.dumps({**asked, "store": str(other.folder)})))


def test_a_store_that_changes_under_a_worker_is_found_out(tmp_path: Path) -> None:
    store = write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)
    order = assigned(store).message(Assignment(0, (0,)))
    BatchResult.from_json(do_request(order))
    path = store.folder / "block-1-2.heads.npy"
    raw = bytearray(path.read_bytes())
    raw[-2] ^= 1
    path.write_bytes(raw)
    later = json.loads(order)
    with pytest.raises(FormatError, match=r"block-1-2\.heads\.npy: has other bytes"):
        BatchResult.from_json(do_request(json.dumps({**later, "tasks": list(range(20))})))


def test_replies_are_small(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def largest(tasks: int) -> BatchResult:
        count = np.full(tasks, 2**62, np.uint64)
        return BatchResult(
            "0" * 32, "somebody", Finished(np.full(tasks, 2**40), count, count, np.full(tasks, 12345.678901234567))
        )

    assert len(largest(batches.MAX_TASKS).to_json()) < _count_worker.MAX_RESULT_BYTES / 2
    monkeypatch.setattr(_count_worker, "MAX_RESULT_BYTES", 100)
    with pytest.raises(VerificationError, match="tasks make a result of"):
        largest(3).to_json()


def test_blocks_stay_with_a_worker_within_its_room(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is opened once, blocks are read again only for want of room, and what is held fits."""
    read, opened = list[Any](), list[Any]()
    really_read, really_open = Store.block, open_store

    def block(self: Store, row: int, column: int, *, threads: int = 1) -> Any:
        read.append((row, column))
        return really_read(self, row, column, threads=threads)

    def opening(*where: Any) -> Store:
        opened.append(where)
        return really_open(*where)

    monkeypatch.setattr(Store, "block", block)
    monkeypatch.setattr(_count_worker, "open_store", opening)
    assert total(jazz, FakeWorkers()) == JAZZ
    assert (len(opened), len(read)) == (1, 10)
    state = _worker_requests._state
    assert isinstance(state, CountState)
    assert state._on_cpu is not None
    counting, blocks = state._on_cpu.counting, state._on_cpu.blocks
    memory = counting.memory
    least, _ = memory.heaviest(counting.tasks)
    counting.available_bytes = least
    for task in counting.tasks:
        list(state.count([task.number]))
        held = sum(map(memory.block, blocks._held))
        assert held + memory.work(task) <= least + BATCHED_TASK_BYTES
    assert len(read) > 20


def test_other_work_is_done_at_another_desk(jazz: Store) -> None:
    assert total(jazz, FakeWorkers()) == JAZZ
    before = _worker_requests._state
    driver = Driver(assigned(jazz, algorithm="bbtc"))
    driver.run(FakeWorkers())
    assert sum_of(driver) == JAZZ
    assert _worker_requests._state is not before


def test_a_driver_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may also go on where a count in one process was, and the other way round."""
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.0)
    store = write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)
    key = assigned(store).key

    def interrupt(_stage: str, done: int, _total: int) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_store(store, progress=interrupt)
    journal = Journal(store.beside(JOURNAL), key, TASKS)
    journal.read()
    known = len(journal.results.done)
    pool = FakeWorkers()
    driver = Driver(assigned(store), journal, lambda _stage, done, _total: interrupt("", done - known, 0))
    with pytest.raises(KeyboardInterrupt):
        driver.run(pool)
    again = Journal(store.beside(JOURNAL), key, TASKS)
    again.read()
    assert len(again.results.done) == known + 5 == 10
    assert count_store(store).resumed == 10

    with pytest.raises(KeyboardInterrupt):
        count_store(store, progress=interrupt)
    journal = Journal(store.beside(JOURNAL), key, TASKS)
    journal.read()
    pool = FakeWorkers()
    assert total(store, pool, journal) == JAZZ
    assert len({task for batch in pool.batches for task in batch.tasks}) == TASKS - 5
    assert count_store(store).resumed == TASKS
    assert not store.beside(JOURNAL).exists()


def test_batches_have_every_task_once_and_heavy_ones_come_first(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = busy_tasks(jazz.partition, jazz.counts).in_reuse_order()
    monkeypatch.undo()
    assert len(make_batches(tasks, 2)) == 1
    for least, most in ((0.0, 1e-5), (1e-6, 1e-6), (1e-4, 1e-4), (9.0, 9.0)):
        monkeypatch.setattr(cluster, "MIN_SECONDS", least)
        monkeypatch.setattr(cluster, "MAX_SECONDS", most)
        made = make_batches(tasks, 2)
        assert sorted(number for batch in made for number in batch) == list(range(len(tasks)))
    monkeypatch.setattr(cluster, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "MAX_SECONDS", 0.0)
    expected = dict(zip(tasks.number.tolist(), tasks.work.tolist(), strict=True))
    loads = [sum(expected[task] for task in batch) for batch in make_batches(tasks, 2)]
    assert loads == sorted(loads, reverse=True)
    monkeypatch.setattr(cluster, "MIN_SECONDS", 100.0)
    monkeypatch.setattr(cluster, "MAX_SECONDS", 100.0)
    monkeypatch.setattr(cluster, "MAX_TASKS", 3)
    assert max(map(len, make_batches(tasks, 2))) == 3
    assert make_batches(tasks.take(slice(0)), 2) == []


def test_threads_and_memory_are_divided(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "usable_threads", lambda: 8)
    monkeypatch.setattr(hardware, "available_memory", lambda: 64 * 10**9)
    here = assigned(jazz, workers=3, threads=None)
    assert (here.request_per_worker.threads, here.request_per_worker.memory_limit) == (2, 16 * 10**9)
    assert assigned(jazz, workers=100, threads=None).request_per_worker.threads == 1
    given = assigned(jazz, workers=2, threads=5, memory_limit=10**9)
    assert (given.request_per_worker.threads, given.request_per_worker.memory_limit) == (5, 5 * 10**8)
    afar = assigned(jazz, threads=None, memory_limit=10**9)
    assert (afar.request_per_worker.threads, afar.request_per_worker.memory_limit) == (None, 10**9)
    assert assigned(jazz, threads=None).request_per_worker.memory_limit is None


def test_what_cannot_be_asked_for(jazz: Store) -> None:
    with pytest.raises(InputError, match="workers is at least 1, not 0"):
        assigned(jazz, workers=0)
    with pytest.raises(InputError, match="too few for 4 workers"):
        assigned(jazz, workers=4, memory_limit=4 * MIN_LIMIT - 1)
    with pytest.raises(InputError, match="too few for the interpreter"):
        assigned(jazz, memory_limit=MIN_LIMIT - 1)
    with pytest.raises(PreconditionError, match="forward on cpu does not count blocks"):
        assigned(jazz, algorithm="forward")
    with pytest.raises(UnknownNameError, match="no knob"):
        assigned(jazz, knobs={"nothing": 1})


def test_a_worker_says_when_blocks_do_not_fit(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outofcore, "available_after_loading", lambda *_: 1000)
    with pytest.raises(errors.MemoryLimitError, match=r"take [0-9,]+ bytes and 1,000 are left"):
        total(jazz, FakeWorkers())


def test_a_worker_with_more_memory_does_what_another_refuses(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    counting, _ = outofcore.plan_count(Request(threads=1), jazz)
    need = counting.memory.by_task(counting.tasks)
    little, much = int(np.sort(need)[-2]), int(need.max())
    left, pool = {"worker 0": little, "worker 1": much}, FakeWorkers(workers=2)

    def worker_for(batch: Assignment) -> str:
        name = FakeWorkers.worker_for(pool, batch)
        monkeypatch.setattr(outofcore, "bytes_beside_lists", lambda *_: left[name])
        monkeypatch.setattr(_worker_requests, "_state", None)
        return name

    monkeypatch.setattr(pool, "worker_for", worker_for)
    assert total(jazz, pool) == JAZZ
    heaviest = (int(counting.tasks.number[need.argmax()]),)
    assert {batch.tasks for batch in pool.batches if batch.refused_by} <= {heaviest}
    left["worker 1"] = little
    with pytest.raises(
        errors.MemoryLimitError,
        match=rf"takes {much:,} bytes of memory, and {little:,} are there for it at worker \d, .* more memory$",
    ):
        total(jazz, pool)
    assert any(batch.refused_by for batch in pool.batches)


def test_orders_survive_the_wire(jazz: Store) -> None:
    text = assigned(jazz).message(Assignment(3, (1, 2)))
    assert BatchRequest.from_json(text).to_json() == text
    assert json.loads(text)["store"] == str(jazz.folder.resolve())

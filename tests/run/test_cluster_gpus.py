"""Workers that count on GPUs, emulated ones: in this process, in processes of this machine, and in those of Dask."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulate.hybrid_cases import TOY_WORK, Gpus, gpus
from emulate.streaming import StreamingEmulator
from helpers.commands import invoke
from helpers.graphs import TRUTHS, fixture_pairs
from helpers.store_counts import count_on_cluster, each_task_by_itself
from numpy.typing import NDArray

import wedgewise as ww
from run.cluster_workers import FakeWorkers
from run.test_cluster_kills import has_ended, in_order, started
from wedgewise.answer.hybrid_home import tasks_for_hybrid
from wedgewise.errors import (
    ClusterError,
    DeviceError,
    InputError,
    MemoryLimitError,
    MissingDependencyError,
    PreconditionError,
    UnknownNameError,
)
from wedgewise.machine import gpu
from wedgewise.run import _count_worker, _process_workers, _worker_requests, cluster
from wedgewise.run._count_worker import BatchResult, CountState
from wedgewise.run._device_counting import USABLE, VISIBLE, DeviceCounting, gpus_for_workers, worker_pairing
from wedgewise.run._dispatch import Assignment, Delivery
from wedgewise.run._hybrid_plan import pair_up
from wedgewise.run._worker_requests import do_request, release_state
from wedgewise.run.checkpoint import JOURNAL, Journal
from wedgewise.run.cluster import ClusterWork, Driver, cluster_work
from wedgewise.run.outofcore import Finished, count_store, work_key
from wedgewise.run.pace import BATCH_SECONDS
from wedgewise.run.request import Request
from wedgewise.stages.tasks import TaskTable, exact_sum
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

__all__ = ["gpus", "started"]

JAZZ = TRUTHS["jazz"]["triangles"]
TASKS = 20
Answers = Callable[[Assignment, bytes], list[Delivery]]


@pytest.fixture
def jazz(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)


@pytest.fixture(autouse=True)
def one_task_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "MAX_SECONDS", 0.0)
    monkeypatch.setattr(_worker_requests, "_state", None)


def assigned(store: Store, device: str = "cuda", **how: Any) -> ClusterWork:
    return cluster_work(
        Request(**{"device": device, "algorithm": "toy", "threads": 1, "cluster": "somewhere", **how}), store
    )


def total(work: ClusterWork, pool: FakeWorkers) -> tuple[int, Driver]:
    driver = Driver(work)
    driver.run(pool)
    return exact_sum(driver.finish().results.triangles), driver


@pytest.mark.parametrize("algorithm", ["toy", "keystone"])
def test_counts_are_exact_and_blocks_stay_on_the_gpu(jazz: Store, gpus: Gpus, algorithm: str) -> None:
    (device,) = gpus()
    found, driver = total(assigned(jazz, algorithm=algorithm), FakeWorkers())
    assert found == JAZZ
    assert device.sends == len(jazz.manifest.blocks)  # each once
    assert driver.reasons[0].startswith(f"2 workers on Emulated GPU 0: {TASKS} tasks, ")
    assert sum(share.tasks for share in driver.shares.values()) == TASKS
    state = _worker_requests._state
    assert state is not None
    state.close()
    assert device.live == 0


def test_blocks_go_where_the_budget_is_small(jazz: Store, gpus: Gpus) -> None:
    (device,) = gpus()
    assert total(assigned(jazz), FakeWorkers())[0] == JAZZ
    before, plenty = device.sends, device.most_live
    needs = largest(jazz)
    device.most_live = 0
    release_state()
    assert total(assigned(jazz, knobs={"device_bytes": needs}), FakeWorkers())[0] == JAZZ
    assert device.sends > 2 * before
    assert device.most_live <= needs < plenty + 16 * 512


def largest(store: Store) -> int:
    """What the largest task takes on a GPU."""
    return int(needs_of(store).max())


def needs_of(store: Store) -> NDArray[np.int64]:
    """What every task takes on a GPU."""
    from wedgewise.run._hybrid_plan import TaskSizes
    from wedgewise.run.task_memory import TaskMemory

    pairing = pair_up("toy", {"places": "gpu"})
    memory = TaskMemory(store.counts, pairing.cpu.triples_on_cpu("count"), pairing.cpu_knobs, 1)
    sizes = TaskSizes(memory, pairing, False)
    return sizes.on_device(assigned(store).tasks)


def test_batches_of_a_gpu_last_as_long_as_they_should(jazz: Store, gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the pace of those before, the first of which does not count: it may have compiled kernels."""
    (device,) = gpus()
    tasks = assigned(jazz).tasks
    step = 4.0 * BATCH_SECONDS / float(tasks.work.sum())  # seconds for a unit of work
    taken: list[float] = []

    def count(_: DeviceCounting, some: TaskTable, *_blocks: Any) -> Finished:
        slow = 1.0 if taken else 100.0
        taken.append(step * float(some.work.sum()))
        none = np.zeros(len(some), np.uint64)
        return Finished(some.number, none, none, slow * step * some.work)

    monkeypatch.setattr(DeviceCounting, "_count", count)
    request = Request(device="cuda", algorithm="toy", threads=1)
    found = DeviceCounting(request, jazz, device, 1).count(tasks)
    numbers = [each.numbers.tolist() for each in found if isinstance(each, Finished)]
    assert [number for some in numbers for number in some] == tasks.number.tolist()
    assert [len(some) for some in numbers[:2]] == [1, 1]
    longest_task = step * float(tasks.work.max())
    assert all(seconds <= max(BATCH_SECONDS, longest_task) for seconds in taken)
    assert max(map(len, numbers)) > 1


def test_batches_for_gpus_are_as_long_as_gpus_need(jazz: Store, gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """They read blocks no faster than a CPU, and count faster; where CPUs take part, batches suit those."""
    gpus()
    for name in ("MIN_SECONDS", "MAX_SECONDS"):
        monkeypatch.setattr(cluster, name, cluster.STEP_SECONDS * float(assigned(jazz).tasks.work.sum()) / 5)
    batches = {}
    for rate in (1e12, 1e3):
        monkeypatch.setattr(cluster, "READ_BYTES_PER_SECOND", rate)
        for device in ("cuda", "hybrid"):
            pool = FakeWorkers()
            assert total(assigned(jazz, device), pool)[0] == JAZZ
            batches[rate, device] = len(pool.batches)
    assert batches[1e12, "cuda"] < batches[1e12, "hybrid"] == batches[1e3, "hybrid"] < batches[1e3, "cuda"] == TASKS


def test_a_gpu_that_runs_out_of_memory_takes_less(jazz: Store, gpus: Gpus) -> None:
    """It has less than it says: the budget is halved until what is asked for is there."""
    (device,) = gpus(capacity=10**9)
    device.capacity = largest(jazz) - TOY_WORK + 512
    work = assigned(jazz, knobs={"device_bytes": 4 * largest(jazz)})
    device.free_bytes = lambda: 10**9  # type: ignore[method-assign]
    assert total(work, FakeWorkers())[0] == JAZZ
    state = _worker_requests._state
    assert isinstance(state, CountState)
    assert state._on_device is not None
    assert state._on_device.budget < 4 * largest(jazz)


def test_what_does_not_fit_goes_to_workers_with_more_memory(
    jazz: Store,
    gpus: Gpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpus()
    small, really = int(np.median(needs_of(jazz))), DeviceCounting

    def of_worker(*given: Any) -> Any:
        counting = really(*given)
        counting.budget = small if names["now"] == "worker 0" else counting.budget
        return counting

    monkeypatch.setattr(_count_worker, "DeviceCounting", of_worker)
    pool = FakeWorkers()
    names = {"now": ""}

    def worker_for(batch: Assignment) -> str:
        before, names["now"] = names["now"], FakeWorkers.worker_for(pool, batch)
        if names["now"] != before:
            monkeypatch.setattr(_worker_requests, "_state", None)
        return names["now"]

    monkeypatch.setattr(pool, "worker_for", worker_for)
    found, driver = total(assigned(jazz), pool)
    assert found == JAZZ
    assert driver.shares["worker 0"].tasks < driver.shares["worker 1"].tasks
    refused = [batch for batch in pool.batches if batch.refused_by]
    assert {batch.refused_by for batch in refused} == {frozenset({"worker 0"})}


def test_what_fits_no_worker_is_refused_with_figures(jazz: Store, gpus: Gpus) -> None:
    gpus()
    pool, need = FakeWorkers(workers=2), largest(jazz)
    with pytest.raises(
        MemoryLimitError,
        match=rf"task \d+ \(blocks \d, \d, \d\) takes {need:,} bytes on a GPU, and {need - 1:,} are there for it at "
        r"worker \d, no more at any other worker; partition the graph into more parts, or .* by device='hybrid'",
    ):
        total(assigned(jazz, knobs={"device_bytes": need - 1}), pool)


def test_hybrid_lets_the_cpu_of_a_worker_count_what_does_not_fit(jazz: Store, gpus: Gpus) -> None:
    (device,) = gpus()
    found, _ = total(assigned(jazz, "hybrid", knobs={"device_bytes": largest(jazz) - 1}), FakeWorkers())
    assert found == JAZZ
    assert 0 < device.kernels < TASKS


def test_hybrid_workers_without_a_gpu_count_on_their_cpu(jazz: Store, gpus: Gpus) -> None:
    """Mixed clusters; their results are those of the same work."""
    gpus()
    work, no_gpu = assigned(jazz, "hybrid"), pytest.MonkeyPatch()
    on_gpu = BatchResult.from_json(do_request(work.message(Assignment(0, (0, 1, 2)))))
    with no_gpu.context() as without:
        without.setattr(gpu, "find_devices", nothing)
        without.setattr(_worker_requests, "_state", None)
        on_cpu = BatchResult.from_json(do_request(work.message(Assignment(0, (0, 1, 2)))))
    assert (on_gpu.counts_on, on_cpu.counts_on) == ("Emulated GPU 0", "cpu")
    assert on_gpu.finished.triangles.tolist() == on_cpu.finished.triangles.tolist()


def nothing() -> tuple[StreamingEmulator, ...]:
    raise DeviceError("no CUDA device is there; device='cpu' needs none")


def no_cupy() -> tuple[StreamingEmulator, ...]:
    raise MissingDependencyError("a CUDA device needs CuPy")


def test_a_worker_without_cupy_or_gpu_says_so(jazz: Store, monkeypatch: pytest.MonkeyPatch, gpus: Gpus) -> None:
    gpus()
    work = assigned(jazz)
    monkeypatch.setattr(gpu, "find_devices", no_cupy)
    with pytest.raises(
        MissingDependencyError,
        match=r"^worker worker \d has no CuPy; install wedgewise\[cuda13\] there, or leave out device=$",
    ):
        total(work, FakeWorkers())
    monkeypatch.setattr(gpu, "find_devices", nothing)
    with pytest.raises(DeviceError, match=r"^worker worker \d: no CUDA device is there"):
        total(work, FakeWorkers())


def test_results_come_twice_late_and_from_others(jazz: Store, gpus: Gpus) -> None:
    gpus()
    held = list[Delivery]()

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        held.append(Delivery(batch, reply))
        late = [held.pop(0)] if len(held) > 3 or not pool.under_way else []
        return [Delivery(batch, reply), *late, *late]

    pool = FakeWorkers(deliver=deliver)
    assert total(assigned(jazz), pool)[0] == JAZZ


@pytest.mark.parametrize("shares", [1, 2])
def test_a_count_goes_on_with_other_devices_memory_and_knobs(
    jazz: Store, monkeypatch: pytest.MonkeyPatch, gpus: Gpus, shares: int
) -> None:
    """Begun by workers on GPUs, then with `hybrid`, then by threads of this process, then by its GPU and threads."""
    gpus()
    monkeypatch.setattr(cluster, "open_workers", lambda *_: closing(FakeWorkers(workers=1)))
    begun = []

    def interrupt(_stage: str, done: int, _total: int) -> None:
        begun.append(done)
        if done % 5 == 0:
            raise KeyboardInterrupt

    on_gpus: dict[str, Any] = {"device": "cuda", "cluster": "there", "knobs": {"near_hubs": 256}}
    on_both = {**on_gpus, "device": "hybrid", "knobs": {"device_bytes": 10**6}}
    for how in (on_gpus, on_both, {"knobs": {"hubs": 0}}):
        with each_task_by_itself(), pytest.raises(KeyboardInterrupt):
            ww.count(jazz.folder, algorithm="keystone", shares=shares, progress=interrupt, **how)
    assert begun == list(range(1, 16))
    last = Request(device="hybrid", knobs={"schedule": "dynamic", "streams": 2, "cutoff": 10}, shares=shares)
    found = count_store(last, jazz, tasks_for_hybrid(last, jazz))
    assert (found.triangles, found.resumed) == (JAZZ, 15)


def test_a_key_of_before_is_refused(jazz: Store) -> None:
    """Before, it had the device and its memory in it."""
    journal = Journal(jazz.beside(JOURNAL), work_key(jazz, "toy on GPUs", {"device_bytes": 0}), TASKS)
    journal.add([0], [1], [1], [1.0])
    with pytest.raises(InputError, match=r"count\.journal: holds results for another graph, other options or another"):
        ww.count(jazz.folder)
    assert ww.count(jazz.folder, resume=False) == JAZZ


@pytest.fixture
def of_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpus: Gpus) -> Gpus:
    """The driver finds so many GPUs; its workers have emulated ones, and take long enough to share the tasks."""
    let(monkeypatch, tmp_path, "slow")
    return gpus


@pytest.mark.parametrize("device", ["cuda", "hybrid"])
def test_workers_of_this_machine_have_a_gpu_each(jazz: Store, of_machine: Gpus, device: str) -> None:
    of_machine(2 if device == "cuda" else 1)
    result = ww.run("count", jazz.folder, workers=2, device=device, algorithm="toy")
    assert (result.answer, result.plan.device, result.plan.algorithm) == (JAZZ, device, "toy")
    told = " ".join(result.plan.reasons)
    assert "on Emulated GPU 0: " in told
    assert ("on Emulated GPU 1: " in told) == (device == "cuda")
    assert not jazz.beside(JOURNAL).exists()


def test_gpus_are_given_out_in_turn(monkeypatch: pytest.MonkeyPatch, gpus: Gpus) -> None:
    gpus(2)
    monkeypatch.delenv(VISIBLE, raising=False)

    def given(algorithm: str = "toy", **how: Any) -> tuple[tuple[str, ...], int]:
        request = Request(algorithm=algorithm, **how)
        return gpus_for_workers(request, worker_pairing(request))

    assert given(device="cuda", workers=3) == (("0", "1", "0"), 2)
    assert given(device="cuda", workers=4) == (("0", "1", "0", "1"), 2)
    assert given(device="hybrid", workers=3) == (("0", "1", ""), 1)
    assert given(device="cpu", workers=3, algorithm="auto") == ((), 1)
    assert given(device="cuda", cluster="there") == ((), 1)
    monkeypatch.setenv(VISIBLE, "GPU-7,3")
    assert given(device="cuda", workers=3) == (("GPU-7", "3", "GPU-7"), 2)
    monkeypatch.setattr(gpu, "find_devices", nothing)
    assert given(device="hybrid", workers=2) == (("", ""), 1)
    with pytest.raises(DeviceError, match="no CUDA device is there"):
        given(device="cuda", workers=2)


def test_workers_that_share_a_gpu_share_its_memory(jazz: Store, gpus: Gpus) -> None:
    gpus(capacity=8 * 10**6)
    budgets = []
    for work in (
        assigned(jazz, cluster=None, workers=4),
        assigned(jazz, cluster=None, workers=4, knobs={"device_bytes": 4 * 10**6}),
        assigned(jazz),
    ):
        do_request(work.message(Assignment(0, (0,))))
        state = _worker_requests._state
        assert isinstance(state, CountState)
        assert state._on_device is not None
        budgets.append(state._on_device.budget)
    assert budgets == [int(2 * 10**6 * USABLE), 10**6, pytest.approx(8 * 10**6 * USABLE, rel=0.1)]


def let(monkeypatch: pytest.MonkeyPatch, folder: Path, how: str, *at: int) -> None:
    """Have workers with a GPU misbehave at some tasks."""
    noted = folder / "begun"
    noted.mkdir()
    program = f"from run.cluster_workers import serve_emulated; serve_emulated({how!r}, {at!r}, {str(noted)!r})"
    monkeypatch.setattr(_process_workers, "PROGRAM", program)


def test_workers_with_gpus_are_killed(
    jazz: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gpus: Gpus,
    started: list[int],
) -> None:
    """At the first task, one in the middle and the last one."""
    gpus()
    order = in_order(jazz)
    let(monkeypatch, tmp_path, "die", order[0], order[TASKS // 2], order[-1])
    found = count_on_cluster(jazz, workers=2, device="cuda", algorithm="toy")
    assert found.triangles == JAZZ
    assert len(started) >= 4
    assert all(map(has_ended, started))


def test_a_poison_task_on_a_gpu_stops_the_work_which_goes_on_later(
    jazz: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gpus: Gpus,
) -> None:
    gpus()
    let(monkeypatch, tmp_path, "poison", 7)
    with pytest.raises(ClusterError, match=r"task 7 \(blocks 0, 2, 2\) ended 3 workers when nothing else"):
        count_on_cluster(jazz, workers=2, device="cuda", algorithm="toy")
    monkeypatch.setattr(_process_workers, "PROGRAM", "from run.cluster_workers import serve_emulated; serve_emulated()")
    again = count_on_cluster(jazz, workers=1, device="cuda", algorithm="toy")
    assert (again.triangles, 0 < again.resumed < TASKS) == (JAZZ, True)


def test_what_cannot_be_asked_for(jazz: Store, gpus: Gpus) -> None:
    gpus()
    with pytest.raises(PreconditionError, match="on cuda does not count blocks"):
        assigned(jazz, algorithm="polak")
    with pytest.raises(UnknownNameError, match="has a knob 'nothing'"):
        assigned(jazz, knobs={"nothing": 1})
    for how in ({"device": "cuda"}, {"device": "gpu", "workers": 2}, {"device": "gpu"}):
        with pytest.raises(PreconditionError, match="or by workers; leave the device out"):
            ww.count(jazz.folder, **how)


def test_the_command_counts_by_workers_on_gpus(jazz: Store, of_machine: Gpus) -> None:
    of_machine()
    ran = invoke("count", str(jazz.folder), "--workers", "2", "--device", "cuda", "--algorithm", "toy")
    assert (ran.exit_code, ran.stdout) == (0, f"{JAZZ}\n")

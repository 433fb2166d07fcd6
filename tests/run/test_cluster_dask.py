"""A Dask cluster that is there already: its own scheduler and workers, which outlive every count."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from emulate.hybrid_cases import Gpus, gpus
from helpers.commands import answer_of, invoke, run
from helpers.graphs import TRUTHS, fixture_pairs, fixture_path
from helpers.http_server import wait_for
from helpers.store_counts import count_on_cluster

import wedgewise as ww
from run.cluster_workers import live_bytes, misbehaving, on_emulated_gpu
from wedgewise.errors import (
    ClusterError,
    FormatError,
    InputError,
    MemoryLimitError,
    MissingDependencyError,
    MissingFileError,
    PreconditionError,
)
from wedgewise.run import _dask_workers, _worker_requests, cluster
from wedgewise.run._count_worker import CountState
from wedgewise.run._dispatch import Assignment, Delivery
from wedgewise.store.build import write_store
from wedgewise.store.open import Store, open_store

__all__ = ["gpus"]

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
pytestmark = pytest.mark.filterwarnings("ignore:Creating scratch directories")  # Dask, where a disk is slow

JAZZ = TRUTHS["jazz"]["triangles"]
PATIENCE = 60


@dataclass(frozen=True)
class Started:
    """A scheduler and two workers, each a process."""

    file: str
    address: str
    processes: tuple[subprocess.Popen[bytes], ...]


@contextmanager
def dask_processes(folder: Path, workers: int = 2, **settings: str) -> Iterator[Started]:
    """As a person starts them: `dask scheduler` and `dask worker`, at ports of the loopback that the system chooses."""
    file = folder / "scheduler.json"
    here = ["--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    options = ["--scheduler-file", str(file), *here]
    work = ["--no-nanny", "--nthreads", "1", "--resources", "wedgewise=1", "--local-directory", str(folder)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "DASK_TEMPORARY_DIRECTORY": str(folder),
        **settings,
    }
    commands = (["dask_scheduler", *options, "--port", "0"], *([["dask_worker", *options, *work]] * workers))
    processes = []
    with open(folder / "log", "wb") as log:
        for module, *given in commands:
            command = [sys.executable, "-m", f"distributed.cli.{module}", *given]
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    try:
        deadline, address = time.monotonic() + PATIENCE, None
        while address is None:
            assert time.monotonic() < deadline, (folder / "log").read_text()
            try:
                address = json.loads(file.read_text())["address"]
            except (OSError, ValueError):  # not there, or not yet whole
                time.sleep(0.05)
        yield Started(str(file), address, tuple(processes))
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with dask_processes(tmp_path_factory.mktemp("dask")) as running:
        yield running


@pytest.fixture
def jazz(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)


@pytest.fixture(autouse=True)
def one_task_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work so short would be one batch."""
    monkeypatch.setattr(cluster, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "MAX_SECONDS", 0.0)


@pytest.mark.parametrize("algorithm", ["keystone", "bbtc"])
@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
def test_counts_are_exact(started: Started, tmp_path: Path, scheme: str, algorithm: str) -> None:
    store = write_store(fixture_pairs("jazz"), tmp_path / "store", parts=3, scheme=scheme)
    found = count_on_cluster(store, cluster=started.address, algorithm=algorithm, threads=1)
    assert (found.triangles, found.plan.algorithm) == (JAZZ, algorithm)


def test_it_is_asked_for_by_address_file_and_url(started: Started, jazz: Store) -> None:
    assert ww.count(jazz.folder, cluster=started.address) == JAZZ
    assert ww.count(f"file://{jazz.folder}", cluster=started.file, threads=1, verify=True) == JAZZ
    answered = answer_of("count", str(jazz.folder), "--cluster", started.file, "--threads", "2")
    assert (answered["answer"], answered["plan"]["threads"]) == (JAZZ, 2)


def test_hashed_parts_are_dealt_to_the_workers_that_are_there(started: Started, tmp_path: Path) -> None:
    ww.partition(fixture_pairs("jazz"), tmp_path / "store", parts=1, scheme="hashed")
    with distributed.Client(started.address) as client:
        client.wait_for_workers(2, PATIENCE)
    result = ww.run("count", tmp_path / "store", cluster=started.address, threads=1)
    assert (result.answer, len(result.task_seconds)) == (JAZZ, 2)
    assert "TRUST's rule for 2 workers: m = 2 with the n = 1 parts of this store" in result.plan.reasons


def test_errors_graphs_and_answers_come_back_from_workers(started: Started, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("0 1\n0 x y\n")
    with distributed.Client(started.address) as client:
        with pytest.raises(FormatError) as raised:
            client.submit(ww.count, str(bad)).result(PATIENCE)
        assert (raised.value.path, raised.value.line) == (str(bad), 2)
        graph = client.submit(ww.Graph, fixture_pairs("jazz")).result(PATIENCE)
        assert client.submit(ww.run, "count", graph).result(PATIENCE).answer == ww.count(graph) == JAZZ


def test_answers_of_many_numbers_are_exact(started: Started, jazz: Store) -> None:
    graph = ww.Graph(fixture_pairs("jazz"))
    assert ww.triangles(jazz.folder, cluster=started.address).tolist() == ww.triangles(graph).tolist()
    assert ww.k_truss(jazz.folder, 20, cluster=started.file).edges.tolist() == ww.k_truss(graph, 20).edges.tolist()


def test_workers_count_on_their_gpus_and_give_them_back(
    started: Started, jazz: Store, monkeypatch: pytest.MonkeyPatch, gpus: Gpus
) -> None:
    """Each of them has an emulated one; so the driver knows what it may ask for."""
    gpus()
    monkeypatch.setattr(_dask_workers, "do_batch", on_emulated_gpu)
    found = count_on_cluster(jazz, cluster=started.address, device="cuda", algorithm="toy")
    assert found.triangles == JAZZ
    assert any(re.search(r"worker on Emulated GPU \d+: \d+ tasks, ", why) for why in found.plan.reasons)
    with distributed.Client(started.address) as client:
        wait_for(lambda: set(client.run(live_bytes).values()) == {0})


def test_batches_may_hold_all_tasks(started: Started, jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert count_on_cluster(jazz, cluster=started.file).triangles == JAZZ


def test_a_damaged_block_is_named_and_the_workers_go_on(started: Started, jazz: Store) -> None:
    path = jazz.folder / "block-0-2.heads.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:])
    with pytest.raises(FormatError, match=r"block-0-2\.heads\.npy: has other bytes.*; partition the graph again"):
        count_on_cluster(jazz, cluster=started.address)
    path.write_bytes(whole)
    assert count_on_cluster(jazz, cluster=started.address).triangles == JAZZ
    assert all(process.poll() is None for process in started.processes)


def test_an_error_of_ours_comes_out_as_itself(
    started: Started, jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "begun").mkdir()
    monkeypatch.setattr(_dask_workers, "do_batch", partial(misbehaving, "fail", (3,), str(tmp_path / "begun")))
    with pytest.raises(FormatError, match="somewhere: is damaged; mend it"):
        count_on_cluster(jazz, cluster=started.address)
    assert "3-1" not in os.listdir(tmp_path / "begun")


def test_workers_that_find_another_graph_refuse(started: Started, jazz: Store) -> None:
    """The store was exchanged after the driver has opened it."""
    opened = open_store(jazz.folder)
    shutil.rmtree(jazz.folder)
    write_store(fixture_pairs("jazz")[1:], jazz.folder, parts=4)
    with pytest.raises(ClusterError, match=r"a worker finds the graph [0-9a-f]{12} there, and the driver has"):
        count_on_cluster(opened, cluster=started.address)


def test_workers_that_do_not_see_the_store_say_so(started: Started, jazz: Store) -> None:
    opened = open_store(jazz.folder)
    jazz.folder.rename(jazz.folder.with_name("elsewhere"))
    jazz.folder.mkdir()
    message = (
        rf"^worker tcp://127\.0\.0\.1:\d+ cannot see the store {jazz.folder}; put it where all workers can read it$"
    )
    for question in ("count", "triangles"):
        with pytest.raises(ClusterError, match=message):
            ww.run(question, opened, cluster=started.address)


def test_versions_have_to_be_the_same(started: Started, jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "__version__", "999.0")
    with pytest.raises(
        ClusterError, match=r"the driver has wedgewise 999\.0 and a worker .*; install the same version"
    ):
        count_on_cluster(jazz, cluster=started.address)


def test_what_workers_cannot_import_is_said(started: Started, jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_asked: Any) -> bytes:
        raise ModuleNotFoundError("No module named 'wedgewise'")

    monkeypatch.setattr(_dask_workers, "do_batch", missing)
    with pytest.raises(
        ClusterError, match=r"could not do tasks .*No module named 'wedgewise'.*need the same wedgewise"
    ):
        count_on_cluster(jazz, cluster=started.address)


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[Any]:
    """A cluster in this process, with two threads in its only worker, which declares no resource."""
    with (
        dask.config.set({"temporary-directory": str(tmp_path)}),
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            protocol="tcp://",
            dashboard_address="127.0.0.1:0",
            memory_limit="8GB",
            scheduler_kwargs={"dashboard": False},
        ) as local,
    ):
        yield local


def test_a_worker_does_one_batch_at_a_time_within_its_memory(
    threaded: Any, jazz: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where Dask would run two; the limit is what Dask allows the worker."""
    now, most, limits = 0, 0, set[int | None]()
    really_count, really_open = CountState.count, CountState.__init__

    def opened(self: CountState, order: Any, memory_limit: int | None, worker: str) -> None:
        limits.add(memory_limit)
        really_open(self, order, memory_limit, worker)

    def count(self: CountState, numbers: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        time.sleep(0.01)
        found = really_count(self, numbers)
        now -= 1
        return found

    monkeypatch.setattr(_worker_requests, "_state", None)
    monkeypatch.setattr(CountState, "__init__", opened)
    monkeypatch.setattr(CountState, "count", count)
    assert count_on_cluster(jazz, cluster=threaded.scheduler_address).triangles == JAZZ
    allowed = threaded.workers[0].memory_manager.memory_limit  # 8 GB, or all that there is
    assert (most, limits) == (1, {int(allowed * 0.8)})


def test_a_task_that_does_not_fit_is_refused(threaded: Any, jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from wedgewise.run import outofcore

    monkeypatch.setattr(_worker_requests, "_state", None)
    monkeypatch.setattr(outofcore, "available_after_loading", lambda *_: 1000)
    with pytest.raises(MemoryLimitError, match=r"bytes and 1,000 are left; raise the limit, or partition"):
        count_on_cluster(jazz, cluster=threaded.scheduler_address)


def test_a_scheduler_without_workers_is_not_waited_for_forever(
    threaded: Any, jazz: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_dask_workers, "NO_WORKER_SECONDS", 0.2)
    threaded.scale(0)
    wait_for(lambda: not threaded.scheduler.workers)
    with pytest.raises(ClusterError, match=r"there was no worker for 0\.2 s; start some with `dask worker`"):
        count_on_cluster(jazz, cluster=threaded.scheduler_address)


def test_a_scheduler_that_ends_is_noticed(threaded: Any, jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was finished before is in the journal."""
    monkeypatch.setattr(_dask_workers, "LOOK_SECONDS", 0.1)

    def end(_stage: str, done: int, _total: int) -> None:
        if done == 5:
            threaded.close()

    with pytest.raises(ClusterError, match="the scheduler is gone or does not answer; start it again"):
        count_on_cluster(jazz, cluster=threaded.scheduler_address, progress=end)
    monkeypatch.undo()
    assert ww.run("count", jazz.folder).answer == JAZZ


def test_replies_of_a_scheduler_that_is_gone_are_no_errors_of_workers() -> None:
    def no_answer(*_: Any, **__: Any) -> None:
        raise OSError("timed out")

    workers = _dask_workers.DaskWorkers.__new__(_dask_workers.DaskWorkers)
    workers._name = "tcp://there"
    workers._client = SimpleNamespace(status="closed", sync=no_answer, scheduler=SimpleNamespace(identity=None))
    failed: Any = SimpleNamespace(exception=lambda: RuntimeError("cancelled"))
    for ask in (lambda: workers._delivered(Assignment(0, (1, 2)), failed), workers._identity, workers._look):
        with pytest.raises(ClusterError, match="tcp://there: the scheduler is gone or does not answer; start it again"):
            ask()


@pytest.mark.parametrize(
    ("wanted", "declared", "used", "resources"),
    [
        (["GPU", "wedgewise"], {"a": ["GPU"], "b": ["wedgewise"], "c": []}, {"a"}, {"GPU": 1}),
        (["GPU", "wedgewise"], {"a": [], "b": ["wedgewise"]}, {"b"}, {"wedgewise": 1}),
        (["wedgewise"], {"a": ["GPU"], "b": ["GPU", "wedgewise"]}, {"b"}, {"wedgewise": 1}),
        (["wedgewise"], {"a": ["GPU"], "b": []}, {"a", "b"}, None),
    ],
)
def test_workers_that_declare_what_is_wanted_are_used(
    wanted: list[str], declared: dict[str, list[str]], used: set[str], resources: dict[str, float] | None
) -> None:
    """Those with GPUs for work on GPUs; and where a task was refused, those that have not refused it."""
    sent: list[dict[str, Any]] = []
    workers = _dask_workers.DaskWorkers.__new__(_dask_workers.DaskWorkers)
    known = {name: {"resources": dict.fromkeys(names, 1)} for name, names in declared.items()}
    workers._name, workers._wanted, workers._run, workers._under_way = "there", wanted, "run", {}
    workers._client = SimpleNamespace(
        status="running", sync=lambda *_, **__: {"workers": known}, scheduler=SimpleNamespace(identity=None)
    )
    workers._look()
    assert (workers.count, set(workers._names), workers._resources) == (len(used), used, resources)
    assert workers.has_others(set())
    assert not workers.has_others(used)

    def submit(*_: Any, **options: Any) -> None:
        sent.append(options)
        raise InterruptedError

    workers._client.submit = submit
    for refused_by in (frozenset[str](), frozenset(used)):
        with pytest.raises(InterruptedError):
            workers.submit(Assignment(0, (1,), refused_by=refused_by), "")
    assert [options["resources"] for options in sent] == [resources] * 2
    assert [options["allow_other_workers"] for options in sent] == [False, False]


def test_addresses_that_do_not_answer(jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dask_workers, "CONNECT_SECONDS", 0.3)
    with pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:9: no scheduler answers within 0\.3 s; start one"):
        ww.count(jazz.folder, cluster="tcp://127.0.0.1:9")
    with monkeypatch.context() as patched:
        patched.setattr(distributed, "Client", None)  # which would stay half open
        with pytest.raises(InputError, match="name a scheduler as tcp://host:8786"):
            ww.count(jazz.folder, cluster="carrier://pigeon:1")
    with pytest.raises(MissingFileError, match="neither an address such as tcp://host:8786 nor a scheduler file"):
        ww.count(jazz.folder, cluster=str(tmp_path / "nothing.json"))
    for text in ("{", "[]", "{}", "\xff"):
        (tmp_path / "broken.json").write_text(text)
        with pytest.raises(FormatError, match=r"broken\.json: has no address of a scheduler; start one"):
            ww.count(jazz.folder, cluster=str(tmp_path / "broken.json"))
    refused = invoke("count", str(jazz.folder), "--cluster", "tcp://127.0.0.1:9")
    assert (refused.exit_code, "no scheduler answers" in refused.output) == (1, True)


def test_without_the_extra_the_remedy_is_named(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "wedgewise\[cluster\]"'):
        ww.count(jazz.folder, cluster="tcp://127.0.0.1:9")


def test_workers_of_this_machine_need_no_extra(jazz: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert ww.count(jazz.folder, workers=1) == JAZZ


def test_a_lost_worker_of_a_cluster_costs_time_alone(
    jazz: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scheduler gives a task up with the first worker that is lost; the other worker does it alone."""
    (tmp_path / "begun").mkdir()
    (tmp_path / "dask").mkdir()
    monkeypatch.setattr(_dask_workers, "do_batch", partial(misbehaving, "die", (3,), str(tmp_path / "begun")))
    with dask_processes(tmp_path / "dask", DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as running:
        assert count_on_cluster(jazz, cluster=running.address).triangles == JAZZ
        assert sorted(process.poll() is None for process in running.processes) == [False, True, True]
    assert {"3-0", "3-1"} <= set(os.listdir(tmp_path / "begun"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
def test_a_cluster_behind_tls_takes_the_credentials_of_dask(jazz: Store, tmp_path: Path) -> None:
    """Those of its own configuration; without them, or with a file that is not there, the remedy is named."""
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=here", "-days", "2"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    credentials = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true", f"{tls}CA_FILE": certificate}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        credentials |= {f"{tls}{role}__CERT": certificate, f"{tls}{role}__KEY": key}
    with dask_processes(tmp_path, workers=1, **credentials) as running:
        assert running.address.startswith("tls://127.0.0.1:")
        ran = run("count", str(jazz.folder), "--cluster", running.address, env={**os.environ, **credentials})
        assert (ran.returncode, ran.stdout) == (0, f"{JAZZ}\n"), ran.stderr
        with pytest.raises(InputError, match=r"tls://.*has no TLS files for a client; set distributed"):
            ww.count(jazz.folder, cluster=running.address)
        wrong = {name: str(tmp_path / "gone") for name in ("ca-file", "client.cert", "client.key")}
        with (
            dask.config.set({f"distributed.comm.tls.{name}": path for name, path in wrong.items()}),
            pytest.raises(InputError, match=r"the TLS files .* cannot be read \(.*; set distributed"),
        ):
            ww.count(jazz.folder, cluster=running.address)


def test_what_cannot_be_asked_for(jazz: Store) -> None:
    with pytest.raises(InputError, match="pass cluster or workers, not both"):
        ww.count(jazz.folder, cluster="tcp://127.0.0.1:9", workers=2)
    with pytest.raises(PreconditionError, match="the graph: is not a store; workers need one: create it"):
        ww.count(fixture_pairs("karate"), workers=2)
    with pytest.raises(PreconditionError, match="with device='hybrid', or by workers; leave the device out"):
        ww.count(jazz.folder, device="cuda")
    refused = invoke("count", str(fixture_path("karate")), "--workers", "2")
    assert (refused.exit_code, "is not a store" in refused.output) == (1, True)


def test_what_is_all_in_the_journal_needs_no_workers(jazz: Store) -> None:
    def interrupt(_stage: str, done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ww.count(jazz.folder, progress=interrupt)
    assert ww.count(jazz.folder, cluster="tcp://127.0.0.1:9") == JAZZ


def test_the_functions_that_workers_call_are_ours() -> None:
    """Orders and replies are text: what workers unpickle are the names of functions."""
    assert _dask_workers.do_batch.__module__ == "wedgewise.run._dask_workers"
    assert _dask_workers.release_state.__module__ == "wedgewise.run._dask_workers"


def test_what_is_told_of_a_batch_that_has_arrived_is_passed_over() -> None:
    workers: Any = object.__new__(_dask_workers.DaskWorkers)
    workers._looked = time.monotonic() + 3600
    workers._under_way = {1: ("a batch", None)}
    workers._arrived = queue.SimpleQueue()
    for told in ((7, b"of one that is there"), (1, b"of one that is not")):
        workers._arrived.put(told)
    assert workers.delivery() == Delivery("a batch", b"of one that is not", is_whole=False)  # type: ignore[arg-type]

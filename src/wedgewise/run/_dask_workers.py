"""`Workers` of a Dask cluster that is there. Nothing is started here, and nothing listens in this process.

Every batch is one Dask task, which calls `do_batch` with a text and returns a few bytes. Nothing is scattered, nothing
depends on another task, and no result outlives its arrival. What is finished on the way is an event of one topic. Dask
itself sends a task again whose worker was lost, a few times; after that it is a loss for the driver to judge.
"""

from __future__ import annotations

import asyncio
import json
import queue
import secrets
import time
from collections.abc import Sequence, Set
from concurrent.futures import Future
from typing import Any

from wedgewise.errors import ClusterError, FormatError, InputError, MissingFileError
from wedgewise.machine.libraries import library
from wedgewise.run._dispatch import Assignment, Delivery

TOPIC = "wedgewise"  # of events, for what is finished before its batch is
RESOURCE = "wedgewise"  # that a worker declares to do one batch at a time
GPU_RESOURCE = "GPU"  # that a worker declares to have a GPU, as people who use dask-cuda do
CONNECT_SECONDS = 10
NO_WORKER_SECONDS = 60  # without any worker, before giving up
ANSWER_SECONDS = 60  # for a scheduler that is busy
LOOK_SECONDS = 1.0  # between looks at the workers
TLS = "set distributed.comm.tls as https://distributed.dask.org/en/stable/tls.html says"
DASK_MEMORY_SHARE = 0.8  # of a worker's limit, above which Dask pauses it


def do_batch(message: str, run: str, number: int) -> bytes:
    """Runs in a worker: without a limit in the batch, its memory is what Dask allows it."""
    from distributed import get_worker

    from wedgewise.run._worker_requests import do_request

    worker = get_worker()
    allowed = worker.memory_manager.memory_limit
    return do_request(
        message,
        int(DASK_MEMORY_SHARE * allowed) if allowed else None,
        lambda result: worker.log_event(TOPIC, {"run": run, "batch": number, "result": result}),
        worker.address,
    )


def release_state() -> None:
    """Runs in a worker when a driver has ended."""
    from wedgewise.run import _worker_requests

    _worker_requests.release_state()


def connect(cluster: str, *, on_gpus: bool = False) -> DaskWorkers:
    """The workers of a cluster that is there; `cluster` is the address of its scheduler, or the path of its file.

    With `on_gpus`, they are those that declare a GPU, where some do.
    """
    distributed = library("distributed")
    address = cluster if ":" in cluster else _address_in(cluster)
    if address.startswith("tls://"):
        _check_credentials(cluster)
    try:
        _check_scheme(address)
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise ClusterError(
            f"{cluster}: no scheduler answers within {CONNECT_SECONDS} s; start one with `dask scheduler`, or check "
            "the address and the network"
        ) from error
    except ValueError as error:
        raise InputError(f"{cluster}: {error}; name a scheduler as tcp://host:8786") from error
    return DaskWorkers(client, cluster, [GPU_RESOURCE, RESOURCE] if on_gpus else [RESOURCE])


def _check_scheme(address: str) -> None:
    """Raise where Dask has no such way to talk: a client that finds this out stays half open, and can stop the next."""
    from distributed.comm.addressing import parse_address
    from distributed.comm.registry import get_backend

    get_backend(parse_address(address)[0])


def _check_credentials(cluster: str) -> None:
    """Refuse a scheduler that asks for credentials where Dask's own configuration has none to show."""
    try:
        context = library("distributed").Security().get_connection_args("client")["ssl_context"]
    except OSError as error:
        raise InputError(f"{cluster}: the TLS files of Dask's configuration cannot be read ({error}); {TLS}") from error
    if context is None:
        raise InputError(f"{cluster}: Dask's configuration has no TLS files for a client; {TLS}")


def _address_in(scheduler_file: str) -> str:
    """The address that a scheduler wrote into its file."""
    try:
        with open(scheduler_file, "rb") as file:
            return str(json.load(file)["address"])
    except OSError as error:
        raise MissingFileError(
            f"{scheduler_file}: is neither an address such as tcp://host:8786 nor a scheduler file"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            "has no address of a scheduler", path=scheduler_file, remedy="start one with `dask scheduler`"
        ) from error


class DaskWorkers:
    """The workers that a Dask client reaches; those that declare the first of some resources that any declares."""

    def __init__(self, client: Any, name: str, wanted: Sequence[str] = (RESOURCE,)) -> None:
        self._client, self._name, self._wanted = client, name, wanted
        self._names = frozenset[str]()
        self._run = secrets.token_hex(8)
        self._arrived: queue.SimpleQueue[tuple[int, Future[bytes] | bytes]] = queue.SimpleQueue()
        self._under_way: dict[int, tuple[Assignment, Any]] = {}
        self._resources: dict[str, float] | None = None
        self._looked = self._seen = time.monotonic()
        try:
            client.subscribe_topic(TOPIC, self._hear)
            self.wait_for(1)
        except BaseException:
            self.close()
            raise

    @property
    def count(self) -> int:
        return len(self._names)

    def has_others(self, names: Set[str]) -> bool:
        self._look()
        return not self._names <= names

    def wait_for(self, workers: int) -> None:
        """Wait until there are so many."""
        self._look()
        while self.count < workers:
            time.sleep(LOOK_SECONDS / 10)
            self._look()

    def submit(self, batch: Assignment, message: str) -> None:
        number = batch.number
        others = sorted(self._names - batch.refused_by) if batch.refused_by else []
        future = self._client.submit(
            do_batch,
            message,
            self._run,
            number,
            key=f"wedgewise-{self._run}-{number}",
            pure=False,
            resources=self._resources,
            workers=others or None,
            allow_other_workers=bool(others),  # where these have gone meanwhile, others refuse it again
        )
        self._under_way[number] = batch, future
        result = asyncio.run_coroutine_threadsafe(
            self._client.gather(future, asynchronous=True), self._client.loop.asyncio_loop
        )
        result.add_done_callback(lambda done: self._arrived.put((number, done)))

    def delivery(self) -> Delivery:
        while True:
            if time.monotonic() - self._looked > LOOK_SECONDS:
                self._look()
            try:
                number, result = self._arrived.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            if number not in self._under_way:  # what was sent of a batch that has arrived before that
                continue
            if isinstance(result, bytes):
                return Delivery(self._under_way[number][0], result, is_whole=False)
            batch, future = self._under_way.pop(number)
            future.release()
            return self._delivered(batch, result)

    def close(self) -> None:
        if self._client.status == "running":
            if self._under_way:
                self._client.cancel([future for _, future in self._under_way.values()], force=True)
            self._have_states_released()
        self._under_way.clear()
        self._client.close(timeout=CONNECT_SECONDS)

    def _have_states_released(self) -> None:
        """Let workers, which go on, give up blocks and the memory of GPUs; nobody waits for that.

        One that has gone leaves its request to another, so that no scheduler waits for it.
        """
        for name in self._names:
            key = f"wedgewise-{self._run}-release-{name}"
            release = self._client.submit(release_state, key=key, pure=False, workers=name, allow_other_workers=True)
            library("distributed").fire_and_forget(release)

    def _hear(self, event: tuple[float, Any]) -> None:
        """Called by Dask's thread for every event of any run."""
        _, sent = event
        if sent["run"] == self._run:
            self._arrived.put((sent["batch"], sent["result"]))

    def _delivered(self, batch: Assignment, result: Future[bytes]) -> Delivery:
        """A result, or a loss; whatever else happens in a worker is raised, and not tried again."""
        from distributed import KilledWorker

        error = result.exception()
        if error is None:
            return Delivery(batch, result.result())
        if isinstance(error, KilledWorker):
            return Delivery(batch, None, error.allowed_failures + 1)
        if self._client.status != "running":
            raise self._gone() from error
        raise ClusterError(
            f"{self._name}: a worker could not do tasks {', '.join(map(str, batch.tasks[:5]))} "
            f"({type(error).__name__}: {error}); its log says more; all of them need the same wedgewise"
        ) from error

    def _look(self) -> None:
        """How many workers there are."""
        if self._client.status != "running":
            raise self._gone()
        known = self._identity()["workers"]
        self._resources, self._names = None, frozenset(known)
        for resource in self._wanted:
            able = frozenset(name for name, worker in known.items() if resource in worker["resources"])
            if able:
                self._resources, self._names = {resource: 1}, able
                break
        self._looked = time.monotonic()
        if self.count:
            self._seen = self._looked
        elif self._looked - self._seen > NO_WORKER_SECONDS:
            raise ClusterError(
                f"{self._name}: there was no worker for {NO_WORKER_SECONDS} s; start some with `dask worker`, and give "
                "the same command again: it continues this work"
            )

    def _identity(self) -> Any:
        """What the scheduler says of itself and its workers."""
        try:
            return self._client.sync(self._client.scheduler.identity, callback_timeout=ANSWER_SECONDS)
        except OSError as error:
            raise self._gone() from error

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"{self._name}: the scheduler is gone or does not answer; start it again, and then give the same command: "
            "it continues this work"
        )

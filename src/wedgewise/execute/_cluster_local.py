"""A Dask scheduler in this process, and workers that are processes of this machine.

The workers end with the scheduler, however this process ends: they close when the connection to it breaks. They have no
nannies; what has ended is started again here, a few times. Dask's memory manager is off: workers keep to our budget.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

from wedgewise.errors import ClusterError
from wedgewise.execute._dask import RESOURCE
from wedgewise.interop.libraries import library
from wedgewise.storage import scratch_file

WORKER_TTL_SECONDS = 30.0  # without a sign of life, before the tasks of a worker are given to others
RESTARTS_PER_WORKER = 6  # more than it takes to name a poison task
LOG_TAIL = 2_000
HELD_BACK = signal.SIGINT, signal.SIGTERM


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Let no signal come between the start of a process, or of a connection, and our knowing of it."""
    if threading.current_thread() is not threading.main_thread():  # signals are handled there alone
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in HELD_BACK}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for first in came[:1]:
            signal.raise_signal(first)


@contextmanager
def dask_kept_quiet() -> Iterator[None]:
    """Let Dask's scheduler print nothing of connections to processes that we end ourselves."""
    handlers = [(handler, handler.level) for handler in logging.getLogger("distributed").handlers]
    for handler, _ in handlers:
        handler.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for handler, level in handlers:
            handler.setLevel(level)


class LocalCluster:
    """A scheduler and its workers on the loopback interface, at ports that the system chooses."""

    def __init__(self, workers: int) -> None:
        distributed = library("distributed")
        self._held = ExitStack()
        self._held.enter_context(dask_kept_quiet())  # until the scheduler's thread has ended
        self._folder = self._held.enter_context(tempfile.TemporaryDirectory(prefix="wedgewise-workers-"))
        self._logs: list[BinaryIO] = [self._held.enter_context(scratch_file(self._folder)) for _ in range(workers)]
        self._scheduler: Any = distributed.LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=False,  # would end before the thread does
            scheduler_kwargs={"dashboard": False, "worker_ttl": WORKER_TTL_SECONDS, "allowed_failures": 0},
        )
        self.address: str = self._scheduler.scheduler_address
        self._restarts = RESTARTS_PER_WORKER * workers
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the workers."""
        for number in range(len(self._logs)):
            self._processes.append(self._start(number))

    def keep_up(self) -> None:
        """Start workers again that have ended; raise when they do so again and again."""
        for number, process in enumerate(self._processes):
            if process.poll() is None:
                continue
            if self._restarts == 0:
                raise ClusterError(
                    f"workers on this machine ended again and again, the last one with exit code {process.returncode}: "
                    f"{self._last_words(number)}"
                )
            self._restarts -= 1
            with signals_held_back():
                self._processes[number] = self._start(number)

    def kill(self) -> None:
        """End all workers now, stopped ones as well."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    def close(self) -> None:
        """Leave nothing behind."""
        with self._held:
            self.kill()
            self._scheduler.close()

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        options = [self.address, "--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "0"]
        options += ["--resources", f"{RESOURCE}=1", "--death-timeout", "30", "--local-directory", self._folder]
        command = (
            f"import sys; sys.path[:] = {sys.path!r}\nfrom distributed.cli.dask_worker import main; main({options!r})"
        )
        return subprocess.Popen(
            [sys.executable, "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=self._logs[number],
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for this process, which ends them
        )

    def _last_words(self, number: int) -> str:
        log = self._logs[number]
        log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL))
        return log.read().decode(errors="replace").strip()

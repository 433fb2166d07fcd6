"""Workers that are processes of this machine, each at the other end of two pipes.

    LocalWorkers ─tasks→ standard input of a worker; its standard output ─results→ LocalWorkers

Nothing listens, so that nobody else can talk to a worker: no port, no socket, no folder, no file with a name. A worker
ends with this process, however that ends. One that has ended, or stands still, is replaced, a few times.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from wedgewise.errors import ClusterError
from wedgewise.machine.files import scratch_file
from wedgewise.machine.libraries import python_command
from wedgewise.run._count_worker import process_name
from wedgewise.run._device_counting import VISIBLE
from wedgewise.run._dispatch import Assignment, Delivery
from wedgewise.run._worker_process import ALIVE, DONE, FAILED, READY

PROGRAM = "from wedgewise.run._worker_process import main; main()"
SILENT_SECONDS = 30.0  # without a sign of life, before a worker is replaced
RESTARTS_PER_WORKER = 6  # more than it takes to name a poison task
LOOK_SECONDS = 1.0  # between looks at the workers
EXIT_SECONDS = 1.0  # for a worker that has closed its pipes, before it is killed
LOG_TAIL = 2_000
READ_BYTES = 1 << 16
HELD_BACK = signal.SIGINT, signal.SIGTERM


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Let no signal come between the start of a process and our knowing of it."""
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


class LocalWorkers:
    """So many processes, each with its GPUs; those that are not there are started when a delivery is waited for."""

    def __init__(self, workers: int, gpus: Sequence[str] = ()) -> None:
        self.count = workers
        self._restarts = RESTARTS_PER_WORKER * workers
        self._waiting: deque[tuple[Assignment, str]] = deque()
        self._deliveries: deque[Delivery] = deque()
        self._held = ExitStack()
        self._selector = self._held.enter_context(selectors.DefaultSelector())
        logs = [self._held.enter_context(scratch_file(tempfile.gettempdir())) for _ in range(workers)]
        self._workers = [
            LocalWorker(log, self._selector, {VISIBLE: gpus[number]} if gpus else {}) for number, log in enumerate(logs)
        ]

    def wait_for(self, workers: int) -> None:
        """Wait until so many are ready."""
        while sum(worker.is_ready for worker in self._workers) < workers:
            self.restart_workers()
            self._listen()

    def has_others(self, names: Set[str]) -> bool:
        return any(worker.name not in names for worker in self._workers)

    def submit(self, batch: Assignment, message: str) -> None:
        self._waiting.append((batch, message))

    def delivery(self) -> Delivery:
        while not self._deliveries:
            self.restart_workers()
            self._hand_out()
            self._listen()
        return self._deliveries.popleft()

    def restart_workers(self) -> None:
        """Start workers that are not there; raise when they end again and again."""
        for worker in self._workers:
            if worker.is_running:
                continue
            if worker.exit_code is not None:
                if self._restarts == 0:
                    raise ClusterError(
                        f"workers on this machine ended again and again, the last one with exit code "
                        f"{worker.exit_code}: {worker.log_tail()}"
                    )
                self._restarts -= 1
            with signals_held_back():
                worker.start()

    def close(self) -> None:
        with signals_held_back(), self._held:
            for worker in self._workers:
                worker.end()

    def _hand_out(self) -> None:
        """One batch for every worker that has none, of those that it has not refused."""
        for worker in self._workers:
            if not worker.is_ready or worker.batch is not None:
                continue
            for number, (batch, message) in enumerate(self._waiting):
                if worker.name not in batch.refused_by:
                    del self._waiting[number]
                    worker.take(batch, message)
                    break

    def _listen(self) -> None:
        """Take what workers say; kill those that have said nothing for too long, whose end is heard then."""
        for key, _ in self._selector.select(LOOK_SECONDS):
            worker: LocalWorker = key.data
            if not worker.is_running:  # it was found to have ended a moment ago
                continue
            if key.events == selectors.EVENT_WRITE:
                worker.send()
            else:
                self._hear(worker)
        for worker in self._workers:
            if worker.is_running and time.monotonic() - worker.heard_at > SILENT_SECONDS:
                worker.kill()

    def _hear(self, worker: LocalWorker) -> None:
        lines = worker.lines()
        if lines is None:
            worker.end(EXIT_SECONDS)
            if worker.batch is not None:
                self._deliveries.append(Delivery(worker.batch, None, deaths=1))
                worker.batch = None
            return
        for kind, _, text in (line.partition(b" ") for line in lines):
            if kind == READY:
                worker.is_ready = True
            elif kind != ALIVE and worker.batch is not None:
                self._take(worker, worker.batch, kind, text)

    def _take(self, worker: LocalWorker, batch: Assignment, kind: bytes, text: bytes) -> None:
        """What a worker says of its batch; any error but a `WedgewiseError` ends the work at once."""
        if kind == FAILED:
            raise ClusterError(
                f"a worker on this machine could not do tasks {', '.join(map(str, batch.tasks[:5]))} "
                f"({json.loads(text)}); count without workers to see where"
            )
        self._deliveries.append(Delivery(batch, text, is_whole=kind == DONE))
        if kind == DONE:
            worker.batch = None


class LocalWorker:
    """A process and its two pipes; when it has ended, another one can be started in its place."""

    def __init__(self, log: BinaryIO, selector: selectors.BaseSelector, environment: Mapping[str, str]) -> None:
        self._log, self._selector, self._environment = log, selector, {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None
        self._input = self._output = -1  # descriptors
        self._unsent = memoryview(b"")
        self._begun = bytearray()  # of a line that has not arrived whole
        self.is_ready = False
        self.batch: Assignment | None = None
        self.heard_at = 0.0
        self.exit_code: int | None = None  # of the last process that has ended

    @property
    def name(self) -> str:
        """As in its results; nothing while it is not running."""
        return "" if self._process is None else process_name(self._process.pid)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Start the process; it imports from where this one does."""
        process = subprocess.Popen(
            python_command(PROGRAM),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is for this process, which ends them
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self.heard_at = process, time.monotonic()
        self._input, self._output = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._input, False)
        self._selector.register(self._output, selectors.EVENT_READ, self)

    def take(self, batch: Assignment, message: str) -> None:
        """Send the tasks of a batch, as far as the pipe takes them now; the rest follows when it has."""
        self.batch = batch
        self._unsent = memoryview(message.encode() + b"\n")
        self._selector.register(self._input, selectors.EVENT_WRITE, self)

    def send(self) -> None:
        """Send on, as far as the pipe takes it."""
        try:
            self._unsent = self._unsent[os.write(self._input, self._unsent) :]
        except BrokenPipeError:  # its end is heard at the other pipe
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._selector.unregister(self._input)

    def lines(self) -> list[bytes] | None:
        """The whole lines that have arrived; None when there are no more to come."""
        arrived = os.read(self._output, READ_BYTES)
        if not arrived:
            return None
        self.heard_at = time.monotonic()
        *lines, self._begun = (self._begun + arrived).split(b"\n")
        return [bytes(line) for line in lines]

    def kill(self) -> None:
        """End the process now, a stopped one as well."""
        if self._process is not None:
            self._process.kill()

    def end(self, grace_seconds: float = 0.0) -> None:
        """End the process, after a moment in which it may do so by itself, and forget its pipes."""
        if self._process is None:
            return
        for descriptor in (self._input, self._output):
            with suppress(KeyError):  # input is watched only where some is unsent
                self._selector.unregister(descriptor)
        with self._process:  # closes the pipes
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_seconds)
            self._process.kill()
        self.exit_code, self._process = self._process.returncode, None
        self._unsent, self._begun, self.is_ready = memoryview(b""), bytearray(), False

    def log_tail(self) -> str:
        """The end of its log."""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - LOG_TAIL))
        return self._log.read().decode(errors="replace").strip()

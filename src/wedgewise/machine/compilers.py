"""Processes that compile kernels: one for each thread that waits for one, up to as many as there are cores.

Numba compiles one kernel at a time in a process, and takes memory that does not come back. So the package's kernels are
compiled by processes of our own. Each takes requests on its standard input, a line of JSON each, and answers with the
machine code on its standard output; it ends when nobody has asked for a while, or within a second after the process
that asks, however that ended.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, BinaryIO

from wedgewise.machine import hardware, signatures
from wedgewise.machine.kernel_sources import identity_of
from wedgewise.machine.libraries import python_command

PACKAGE = __name__.partition(".")[0]
IDLE_SECONDS = 10.0
LOOK_SECONDS = 0.5
PROGRAM = f"from {__name__} import serve; serve()"

_lock = threading.Lock()
_idle: list[_Compiler] = []
_asked: dict[int, _Compiler] = {}  # by the thread that waits
_inherited: list[_Compiler] = []  # in a forked process: those of its parent


class StoppedCompilingError(BaseException):
    """Ends the compiling of a kernel whose result nobody waits for any more; never leaves its thread."""


def compile_elsewhere(marked: Any, kinds: tuple[str | type, ...], title: str) -> bytes | None:
    """The stored form of a kernel, compiled by another process; None where this process has to."""
    module, name = marked.function.__module__, marked.__name__
    if module.partition(".")[0] != PACKAGE or getattr(sys.modules.get(module), name, None) is not marked:
        return None  # another process would not find it
    spelled, identity = signatures.spelled_kinds(kinds), identity_of(marked, kinds)
    request = {"module": module, "name": name, "kinds": spelled, "title": title, "identity": identity}
    with _as_many_as_cores():
        compiler = _take()
        if compiler is None:
            return None
        try:
            _asked[threading.get_ident()] = compiler
            code = compiler.ask(request)
        except BaseException:
            compiler.end()
            raise
        finally:
            del _asked[threading.get_ident()]
        if code is None:
            compiler.end()
            if compiler.is_stopped:
                raise StoppedCompilingError
        else:
            with _lock:
                _idle.append(compiler)
        return code or None


def stop_asking(threads: Collection[int]) -> None:
    """End the processes that these threads wait for."""
    for thread in threads:
        compiler = _asked.get(thread)
        if compiler is not None:
            compiler.is_stopped = True
            compiler.process.kill()


def end_compilers() -> None:
    """End those that wait for a request, which gives back their memory."""
    while True:
        compiler = _next_idle()
        if compiler is None:
            return
        compiler.end()


def serve() -> None:
    """Compile what is asked for on standard input until that ends: the program of such a process."""
    from wedgewise.machine import native

    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is no answer
    native.only_emit()
    for line in _lines_in_time(requests):
        try:
            code = _compiled(json.loads(line))
        except Exception:
            code = b""
        answers.write(len(code).to_bytes(8, "little") + code)
        answers.flush()


class _Compiler:
    """Such a process."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.process = subprocess.Popen(
            python_command(PROGRAM),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the process that asks
        )

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, request: dict[str, Any]) -> bytes | None:
        """The answer: empty where it failed, None where the process has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            length = self.process.stdout.read(8)
            code = self.process.stdout.read(int.from_bytes(length, "little"))
        except OSError:
            return None
        return code if len(length) == 8 and len(code) == int.from_bytes(length, "little") else None

    def end(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # of what was not written yet
                if pipe is not None:
                    pipe.close()
        self.process.wait()


def _take() -> _Compiler | None:
    """One that waits, or a new one; None where no process can be started."""
    while (compiler := _next_idle()) is not None:
        if compiler.is_alive:
            return compiler
        compiler.end()
    try:
        return _Compiler() if sys.executable else None
    except OSError:
        return None


def _next_idle() -> _Compiler | None:
    with _lock:
        return _idle.pop() if _idle else None


@cache
def _as_many_as_cores() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(hardware.usable_threads())


def _forget() -> None:
    """In a forked process, those of its parent are not ours to ask or to end."""
    global _lock
    _lock = threading.Lock()
    _as_many_as_cores.cache_clear()
    _inherited.extend([*_idle, *_asked.values()])
    _idle.clear()
    _asked.clear()


def _lines_in_time(requests: BinaryIO) -> Any:
    """Every line; this process ends when none has come for a while."""
    while True:
        patience = threading.Timer(IDLE_SECONDS, os._exit, (0,))
        patience.daemon = True
        patience.start()
        line = requests.readline()
        patience.cancel()
        if not line:
            return
        yield line


def _end_with(parent: int) -> None:
    """End this process soon after its parent: one that was killed has closed the pipes, which nobody sees here while
    LLVM compiles for seconds."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(0)


def _compiled(request: dict[str, Any]) -> bytes:
    """The stored form of the kernel that is asked for; nothing where it has been edited since it was asked for."""
    from wedgewise.machine import native

    marked = getattr(import_module(request["module"]), request["name"])
    kinds = signatures.kinds_of(request["kinds"])
    if identity_of(marked, kinds) != request["identity"]:
        return b""
    return native.compile_object(marked, kinds).to_bytes(request["title"])


atexit.register(end_compilers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

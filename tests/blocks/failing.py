"""A gate that every call of the file layer passes, and that can be shut at the n-th of them."""

from __future__ import annotations

import builtins
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wedgewise import storage

ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES)
CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "listdir", "ftruncate")


class Gate:
    """Fails the n-th call that passes, or all from there on; `fired` says whether one did.

    Calls are those of `os` whose paths are below a folder, or that have descriptors, and of files that `storage` opens.
    """

    def __init__(self, patch: pytest.MonkeyPatch, below: Path) -> None:
        self._below = str(below)
        self._left: int | None = None
        self._forever, self._errno = False, errno.EIO
        self.fired = False
        for name in CALLS:
            patch.setattr(os, name, self._gated(getattr(os, name)))
        patch.setattr(storage, "open", self._opened(builtins.open), raising=False)
        patch.setattr(tempfile, "TemporaryFile", self._opened(tempfile.TemporaryFile))

    def shut(self, number: int, forever: bool, error: int) -> None:
        """Let so many calls pass."""
        self._left, self._forever, self._errno, self.fired = number, forever, error, False

    def open(self) -> None:
        """Let all calls pass."""
        self._left = None

    def passing(self) -> None:
        """One call."""
        if self._left is None:
            return
        self._left -= 1
        if self._left == -1 or (self._left < 0 and self._forever):
            self.fired = True
            raise OSError(self._errno, os.strerror(self._errno))

    def _gated(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def call(target: Any, *arguments: Any, **others: Any) -> Any:
            if isinstance(target, int) or os.fspath(target).startswith(self._below):
                self.passing()
            return really(target, *arguments, **others)

        return call

    def _opened(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **others: Any) -> GatedFile:
            self.passing()
            return GatedFile(really(*arguments, **others), self)

        return call


class GatedFile:
    """A file whose writes and reads pass a gate."""

    def __init__(self, file: Any, gate: Gate) -> None:
        self._file, self._gate = file, gate

    def __enter__(self) -> GatedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        if name in ("write", "readinto", "read"):
            self._gate.passing()
        return getattr(self._file, name)

"""A disk that loses power: what was not synced may be lost, in any way that a file system may lose it.

The files are really written. Beside them, `Disk` notes what would be left: the bytes of a file as they were when it was
synced last, and the names of a folder as they were when that was. At the n-th call the power is cut: what is left is
laid out in another folder, where the same command is to go on.

    lost     nothing but what was synced
    early    names reach the disk at once, bytes do not: files that were not synced are there, and empty
    mixed    each name of a folder either way
"""

from __future__ import annotations

import builtins
import os
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from wedgewise.machine import files as storage

WAYS = ("lost", "early", "mixed")
CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "ftruncate")


class PowerCut(BaseException):
    """Ends everything."""


class Disk:
    """What is below `root`, as it is, and as it would be after a power cut.

    Parameters
    ----------
    patch : for the calls of `os` and of `storage`
    root : a folder whose files are on the disk now
    """

    def __init__(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        self.root, self.calls, self.cut_at = root, 0, -1
        self.left: Path | None = None
        self._numbers, self._of_inode = count(), dict[int, int]()
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._really = {name: getattr(os, name) for name in CALLS}
        self._settle(root)
        for name in CALLS:
            patch.setattr(os, name, getattr(self, f"_{name}", None) or self._counted(name))
        patch.setattr(storage, "open", self._open_file, raising=False)

    def cut(self, at: int, into: Path, way: str) -> None:
        """Cut the power before a call, and lay out what is left."""
        self.calls, self.cut_at, self._into, self._way = 0, at, into, way

    def lay_out(self, into: Path, way: str) -> None:
        """What would be left now."""
        mixing = random.Random(self.calls)
        self._lay_out(self.root, self._number(os.stat(self.root).st_ino), into, way, mixing)

    def _lay_out(self, now: Path | None, number: int, into: Path, way: str, mixing: random.Random) -> None:
        self._really["mkdir"](into)
        synced = self._names.get(number, {})
        present = self._listed(now) if now is not None and now.is_dir() else {}
        for name in sorted({*synced, *present}):
            source = mixing.choice((synced, present)) if way == "mixed" else synced if way == "lost" else present
            if name not in source:
                continue
            inner = source[name]
            if inner in self._names:
                below = None if now is None or present.get(name) != inner else now / name
                self._lay_out(below, inner, into / name, way, mixing)
            else:
                (into / name).write_bytes(self._bytes.get(inner, b""))

    def _settle(self, folder: Path) -> None:
        """Everything in a folder is on the disk."""
        number = self._number(os.stat(folder).st_ino)
        self._names[number] = self._listed(folder)
        for path in folder.iterdir():
            if path.is_dir():
                self._settle(path)
            else:
                self._bytes[self._number(path.stat().st_ino)] = path.read_bytes()

    def _listed(self, folder: Path) -> dict[str, int]:
        return {entry.name: self._number(entry.inode()) for entry in os.scandir(folder)}

    def _number(self, inode: int) -> int:
        return self._of_inode.setdefault(inode, next(self._numbers))

    def _renew(self, path: Any) -> None:
        """A file or folder was made: its inode may have been another one's."""
        self._of_inode[os.stat(path).st_ino] = next(self._numbers)

    def _count(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.cut_at:
            self.lay_out(self._into, self._way)
            self.left = self._into
            raise PowerCut

    def _counted(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **others: Any) -> Any:
            self._count()
            return self._really[name](*arguments, **others)

        return call

    def _open(self, path: Any, flags: int, *more: Any, **others: Any) -> int:
        is_new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        if is_new:
            self._count()
        descriptor: int = self._really["open"](path, flags, *more, **others)
        if is_new and os.path.lexists(path):
            self._renew(path)
        return descriptor

    def _open_file(self, path: Any, mode: str, **others: Any) -> Any:
        self._count()
        file = builtins.open(path, mode, **others)  # noqa: SIM115
        self._renew(path)
        return file

    def _mkdir(self, path: Any, *more: Any, **others: Any) -> None:
        self._count()
        self._really["mkdir"](path, *more, **others)
        self._renew(path)
        self._names[self._number(os.stat(path).st_ino)] = {}

    def _fsync(self, descriptor: int) -> None:
        self._count()
        self._really["fsync"](descriptor)
        number, opened = self._number(os.fstat(descriptor).st_ino), Path(f"/proc/self/fd/{descriptor}")
        if opened.is_dir():
            self._names[number] = self._listed(opened)
        else:
            self._bytes[number] = opened.read_bytes()

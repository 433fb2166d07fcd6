"""Where a store lies: a folder, or a URL that fsspec opens. Both are only read here."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from wedgewise.errors import FormatError, MissingDependencyError, MissingFileError, PreconditionError, WedgewiseError
from wedgewise.machine.libraries import library
from wedgewise.machine.own_files import open_regular
from wedgewise.store.manifest import AGAIN, MANIFEST, is_url

log = logging.getLogger("wedgewise")

ONLY_STORES = "a URL names a store, which `wedgewise partition` makes; download a graph's file first"
PAUSES = (0.2, 0.8, 3.2)  # seconds between attempts
LASTING = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, WedgewiseError)


def location_of(source: str | os.PathLike[str]) -> Location:
    """The location that a path or a URL names."""
    return _remote(str(source)) if is_url(source) else Folder(Path(source))


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of this machine, or of a file system that it mounts; ``str`` is what the user calls it."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_in_this_process(self) -> bool:
        """Whether other processes find something else there."""
        return False

    def name_of(self, file: str) -> str:
        """What to call a file in a message."""
        return str(self.path / file)

    @contextmanager
    def opened(self, file: str) -> Iterator[tuple[BinaryIO, int]]:
        """A file and its size in bytes: a regular one of the folder itself, no link, no pipe."""
        path = self.path / file
        try:
            found = open_regular(path)
        except OSError as error:
            raise _not_opened(str(path), error) from error
        if found is None:
            raise FormatError("is not a regular file", path=path, remedy=AGAIN)
        with found[0], _named(str(path), "check the disk"):
            yield found

    def sizes(self) -> None:
        """The bytes of every file, where asking for all takes as long as asking for one."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A folder of any file system that fsspec knows."""

    url: str
    root: str
    system: Any

    def __str__(self) -> str:
        return self.url

    @property
    def is_in_this_process(self) -> bool:
        protocol = self.system.protocol
        return "memory" in ((protocol,) if isinstance(protocol, str) else protocol)

    def name_of(self, file: str) -> str:
        return f"{self.url.rstrip('/')}/{file}"

    @contextmanager
    def opened(self, file: str) -> Iterator[tuple[BinaryIO, int]]:
        """A file, read in pieces as they are asked for."""
        path, name = f"{self.root}/{file}", self.name_of(file)
        try:
            size = patiently(name, lambda: int(self.system.size(path)))
            opened = SteadyFile(name, lambda: self.system.open(path, "rb"))
        except Exception as error:  # every file system has its own
            raise _not_opened(name, error, ONLY_STORES if file == MANIFEST else AGAIN) from error
        with closing(opened), _named(name, "try again"):
            yield cast(BinaryIO, opened), size

    def sizes(self) -> dict[str, int]:
        try:
            listed = patiently(self.url, lambda: self.system.ls(self.root, detail=True))
        except Exception as error:
            raise _not_opened(self.url, error) from error
        return {str(entry["name"]).rsplit("/", 1)[-1]: int(entry["size"] or 0) for entry in listed}


Location = Folder | Remote


class SteadyFile:
    """A file that is opened again, and read on where it was, when a read fails; after some attempts it fails."""

    def __init__(self, name: str, open_again: Callable[[], Any]) -> None:
        self._name, self._open_again = name, open_again
        self._file, self._at = patiently(name, open_again), 0

    def read(self, size: int = -1) -> bytes:
        found: bytes = self._patiently(lambda file: file.read(size))
        self._at += len(found)
        return found

    def readinto(self, part: memoryview) -> int:
        filled: int = self._patiently(lambda file: file.readinto(part))
        self._at += filled
        return filled

    def seek(self, to: int) -> int:
        self._at = self._patiently(lambda file: file.seek(to))
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._file.close()

    def _patiently(self, act: Callable[[Any], Any]) -> Any:
        is_first = True

        def attempt() -> Any:
            nonlocal is_first
            if not is_first:
                self._file.close()
                self._file = self._open_again()
                self._file.seek(self._at)
            is_first = False
            return act(self._file)

        return patiently(self._name, attempt)


def patiently(name: str, act: Callable[[], Any]) -> Any:
    """Do something with a file that is far away, again after a pause where its system fails in passing."""
    for pause in PAUSES:
        try:
            return act()
        except OSError as error:
            if isinstance(error, LASTING):
                raise
            log.info("%s: %s; trying again in %s s", name, error, pause)
            time.sleep(pause)
    return act()


def _remote(url: str) -> Remote:
    fsspec = library("fsspec")
    try:
        system, root = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise MissingDependencyError(f"{url}: {error}; {ONLY_STORES}") from error
    except ValueError as error:
        raise PreconditionError(f"{url}: cannot be read ({error}); name a folder or a URL of a known kind") from error
    return Remote(url, root.rstrip("/"), system)


@contextmanager
def _named(name: str, remedy: str) -> Iterator[None]:
    """Say which file it was that could not be read on."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WedgewiseError):
            raise
        reason = error.strerror or str(error) or type(error).__name__
        raise MissingFileError(f"{name}: cannot be read ({reason}); {remedy}") from error


def _not_opened(name: str, error: Exception, remedy: str = AGAIN) -> MissingFileError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return MissingFileError(f"{name}: cannot be opened ({reason}); {remedy}")

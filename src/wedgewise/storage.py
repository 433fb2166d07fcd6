"""The only module that opens a file for writing: whole files appear at once or not at all, lines are appended
whole."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from wedgewise.errors import StorageError, WedgewiseError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces `path` when the block ends without an exception.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and take the final name in
    one step. On any exception, KeyboardInterrupt included, the temporary file is removed and the old file is
    untouched.

    Parameters
    ----------
    path : the final name; a symbolic link is followed, so that the file it points at is replaced

    Raises
    ------
    StorageError
        When the file cannot be written, or when `path` is a folder, a device or a pipe.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "answer.txt"
    >>> with atomic_write(target) as file:
    ...     _ = file.write(b"45\\n")
    >>> target.read_bytes()
    b'45\\n'
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        mode = _mode_of_replaced(target)
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            if mode is not None:
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, WedgewiseError):
            raise _not_written(target, error) from error
        raise


@contextmanager
def scratch_file(folder: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield an empty file in a folder, to be written and read back; it has no name that outlives the process.

    Whatever ends the block, a kill included, nothing of it is left.

    Raises
    ------
    StorageError
        When the file cannot be made, written or read back.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            yield file
    except OSError as error:
        if isinstance(error, WedgewiseError):
            raise
        raise _not_written(Path(folder) / "temporary file", error) from error


@contextmanager
def partial_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file that grows over several runs, to be read and written; what it holds stays, whatever ends the block.

    One process at a time has it, where the system has locks on files. `put_in_place` gives it its final name.

    Raises
    ------
    StorageError
        When the file cannot be opened or written, or when another process has it.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
            _lock(file, path)
            try:
                yield file
            finally:
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        if isinstance(error, WedgewiseError):
            raise
        raise _not_written(Path(path), error) from error


def put_in_place(finished: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Give a finished file its final name in one step, instead of whatever had that name.

    Raises
    ------
    StorageError
        When that is not possible.
    """
    try:
        os.replace(finished, path)
        _sync_folder(Path(path).parent)
    except OSError as error:
        raise _not_written(Path(path), error) from error


def append_line(path: str | os.PathLike[str], text: str) -> None:
    """Append `text` and a newline to a file in one write, flushed to the disk; a missing file is created.

    A last line that a crash left without its newline is closed first, so that it cannot swallow this one.

    Raises
    ------
    StorageError
        When the line cannot be written, or not as a whole.
    ValueError
        When `text` holds a newline.
    """
    if "\n" in text:
        raise ValueError("append_line takes one line: the text holds a newline")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            line = (_missing_newline(descriptor) + text + "\n").encode()
            written = os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _not_written(Path(path), error) from error
    if written != len(line):
        raise StorageError(f"{path}: only {written} of {len(line)} bytes were written; free disk space and retry")


@contextmanager
def reading_back(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Yield a file that this package has written, to be read.

    Raises
    ------
    StorageError
        When the file cannot be opened or read.
    """
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        if isinstance(error, WedgewiseError):
            raise
        reason = error.strerror or str(error)
        raise StorageError(f"{path}: could not be read back ({reason}); check its permissions and the disk") from error


def _mode_of_replaced(target: Path) -> int | None:
    """The permissions to carry over from a file that is about to be replaced; None where there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(f"{target}: is not a regular file; name a file to write")
    return stat.S_IMODE(status.st_mode)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, where the system lets a folder be opened."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(file: BinaryIO, path: str | os.PathLike[str]) -> None:
    """Keep other processes out of a file until it is closed."""
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StorageError(f"{path}: another process is writing it; wait until it has ended") from error


def _missing_newline(descriptor: int) -> str:
    """A newline when the file ends inside a line, else nothing."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return ""
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return "" if os.read(descriptor, 1) == b"\n" else "\n"


def _not_written(path: Path, error: OSError) -> StorageError:
    reason = error.strerror or str(error)
    return StorageError(f"{path}: could not be written ({reason}); check the folder, its permissions and free space")

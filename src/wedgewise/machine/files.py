"""The only module that opens a file for writing: whole files appear at once or not at all, lines are appended
whole."""

from __future__ import annotations

import errno
import os
import platform
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from wedgewise.errors import StorageError, WedgewiseError
from wedgewise.machine.threads import run_tasks

NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
NO_SYNC = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}
HOLDER_BYTES = 200
SYNC_THREADS = 8
FILES_PER_THREAD = 64  # fewer are synced as soon, and each thread takes address space of its own
USUAL = "0" * 12  # in the name of a temporary file; of any other one, random digits


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, mode: int | None = None, to_disk: bool = True) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces `path` when the block ends without an exception.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and take the final name in
    one step. On any exception, KeyboardInterrupt included, the temporary file is removed and the old file is
    untouched. What a kill leaves of it is removed when the same file is written again.

    Parameters
    ----------
    path : the final name; a symbolic link is followed, so that the file it points at is replaced
    mode : who may read and write the file, from its first byte on; without it, as a file that is replaced
    to_disk : whether it is on the disk when the block ends; otherwise `sync_files` brings it there, and a power cut
        before that may leave any part of it

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
    with _writing(target):
        replaced = _mode_of_replaced(target)
        with _file_beside(target, mode) as (temporary, file):
            yield file
            file.flush()
            if mode is None and replaced is not None:
                os.chmod(temporary, replaced)
            if to_disk:
                os.fsync(file.fileno())
            file.close()
            os.replace(temporary, target)
        if to_disk:
            _sync_folder(target.parent)


def sync_files(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Bring files that were written, and their names, to the disk; those that are not there any more are left out.

    Several threads wait, since the system then writes many files at once: a twentieth of the time for small ones.

    Raises
    ------
    StorageError
        When that is not possible.
    """

    def sync(number: int, _worker: int) -> None:
        with _writing(paths[number]), suppress(FileNotFoundError):
            _sync(Path(paths[number]))

    run_tasks(sync, len(paths), min(SYNC_THREADS, 1 + len(paths) // FILES_PER_THREAD))
    for folder in {Path(path).parent for path in paths}:
        with _writing(folder):
            _sync_folder(folder)


@contextmanager
def scratch_file(folder: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield an empty file in a folder, to be written and read back; it has no name that outlives the process.

    Whatever ends the block, a kill included, nothing of it is left.

    Raises
    ------
    StorageError
        When the file cannot be made, written or read back.
    """
    with _writing(Path(folder) / "temporary file"), tempfile.TemporaryFile(dir=folder) as file:
        yield file


@contextmanager
def partial_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file that grows over several runs, to be read and written; what it holds stays, whatever ends the block.

    One process at a time has it, where the system has locks on files. `put_in_place` gives it its final name.

    Raises
    ------
    StorageError
        When the file cannot be opened or written, or when another process has it.
    """
    with _writing(path):
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(path, flags, 0o666), "r+b") as file:
            try:
                _lock(file.fileno())
            except BlockingIOError as error:
                raise StorageError(f"{path}: another process is writing it; wait until it has ended") from error
            try:
                yield file
            finally:
                file.flush()
                os.fsync(file.fileno())


@contextmanager
def process_lock(path: str | os.PathLike[str], remedy: str) -> Iterator[bool]:
    """Keep other processes out of a block by a lock file, which says who is in it and is removed behind it.

    The lock goes with the process, however that ends: a file that a kill left keeps nobody out. It is refused at once
    where another process has it. Yields whether the file system has locks; where it has none, nobody is kept out.

    Raises
    ------
    StorageError
        When another process has the lock, which is named together with `remedy`, or when the file cannot be opened.
    """
    descriptor, has_locks = _locked_file(Path(path), remedy)
    try:
        with _writing(path):
            os.ftruncate(descriptor, 0)
            since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
            holder = f"process {os.getpid()} on {platform.node() or 'this machine'}, since {since},"
            os.write(descriptor, holder.encode()[:HOLDER_BYTES])
        yield has_locks
    finally:
        with suppress(OSError):  # what stays is a file that nobody has locked
            os.unlink(path)
        os.close(descriptor)


@contextmanager
def storage_errors(path: str | os.PathLike[str], what: str, remedy: str) -> Iterator[None]:
    """Say which file it was, and what to do, where the system fails in a block that does `what` with it.

    Raises
    ------
    StorageError
        In place of every other OSError.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, WedgewiseError):
            raise
        reason = error.strerror or str(error) or type(error).__name__
        raise StorageError(f"{path}: could not be {what} ({reason}); {remedy}") from error


def is_writable(folder: str | os.PathLike[str]) -> bool:
    """Whether this process may make files in a folder."""
    return os.access(folder, os.W_OK | os.X_OK)


def put_in_place(finished: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Give a finished file its final name in one step, instead of whatever had that name.

    Raises
    ------
    StorageError
        When that is not possible.
    """
    with _writing(path):
        os.replace(finished, path)
        _sync_folder(Path(path).parent)


def make_folder(path: str | os.PathLike[str], *, parents: bool = False, mode: int = 0o777) -> None:
    """Make a folder, if it is not there, that survives a power cut as what is written into it does."""
    folder = Path(path)
    if folder.is_dir():
        return
    if parents:
        make_folder(folder.parent, parents=True)
    folder.mkdir(mode, exist_ok=True)
    _sync_folder(folder.parent)


def append_line(path: str | os.PathLike[str], text: str, *, to_disk: bool = True) -> None:
    """Append `text` and a newline to a file in one write; a missing file is created.

    A last line that a crash left without its newline is closed first, so that it cannot swallow this one. Whatever
    becomes of this process, the line stays; with `to_disk`, it and those before it survive a power cut as well.

    Raises
    ------
    StorageError
        When the line cannot be written, or not as a whole.
    ValueError
        When `text` holds a newline.
    """
    if "\n" in text:
        raise ValueError("append_line takes one line: the text holds a newline")
    with _writing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            line = (_missing_newline(descriptor) + text + "\n").encode()
            is_first = os.fstat(descriptor).st_size == 0
            written = os.write(descriptor, line)
            if to_disk:
                os.fsync(descriptor)
            if is_first:
                _sync_folder(Path(path).parent)
        finally:
            os.close(descriptor)
    if written != len(line):
        raise StorageError(f"{path}: only {written} of {len(line)} bytes were written; free disk space and retry")


@contextmanager
def _file_beside(target: Path, mode: int | None) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside another, and its name; on any exception it is removed.

    As a rule the name is always the same, and a lock says that somebody is writing: a file that nobody has locked was
    left by a kill, and goes. While somebody else writes, the name is another one.
    """
    name = f".{target.name[:100]}.{{}}.tmp"
    usual = target.with_name(name.format(USUAL))
    with ExitStack() as held:
        file, temporary = _locked_new(usual, mode, held), usual
        if file is None:
            temporary = target.with_name(name.format(secrets.token_hex(6)))
            file = held.enter_context(_new(temporary, mode))
        try:
            yield temporary, file
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def _new(path: Path, mode: int | None) -> BinaryIO:
    """A file that was not there."""
    opener = None if mode is None else lambda name, flags: os.open(name, flags, mode)
    return open(path, "xb", opener=opener)


def _locked_new(path: Path, mode: int | None, held: ExitStack) -> BinaryIO | None:
    """A new file, locked until `held` ends where there are locks; None where another process has one of that name."""
    _remove_if_left(path)
    try:
        file = held.enter_context(_new(path, mode))
    except FileExistsError:
        return None
    try:
        kept = os.dup(file.fileno())
        held.callback(os.close, kept)
        return file if not _lock(kept) or _is_at(path, kept) else None
    except BlockingIOError:  # somebody took it for one that was left
        return None
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _remove_if_left(path: Path) -> None:
    """Remove a file whose writer was killed: nobody has it locked."""
    with suppress(OSError):  # it is not there as a rule, and what stays is in nobody's way
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            if _lock(descriptor) and _is_at(path, descriptor):
                os.unlink(path)
        finally:
            os.close(descriptor)


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
    """Make a rename survive a power cut, where the system lets a folder be opened and synced."""
    try:
        _sync(folder)
    except PermissionError:
        return
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _locked_file(path: Path, remedy: str) -> tuple[int, bool]:
    """Open and lock a file that nobody removes meanwhile; whether it could be locked."""
    while True:
        with _writing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                has_locks = _lock(descriptor)
                if not has_locks or _is_at(path, descriptor):
                    return descriptor, has_locks
            except BlockingIOError as error:
                holder = _holder(descriptor)
                os.close(descriptor)
                raise StorageError(f"{path}: {holder} is at work; {remedy}") from error
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)  # of a file that its holder removed before it could be locked


def _lock(descriptor: int) -> bool:
    """Keep other processes out of a file until it is closed; whether there are locks to do so by."""
    try:
        import fcntl
    except ImportError:  # not POSIX
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> str:
    """Who wrote a lock file, as far as that is plain text."""
    text = os.pread(descriptor, HOLDER_BYTES, 0)
    is_plain = text.startswith(b"process ") and text.isascii() and text.decode().isprintable()
    return text.decode() if is_plain else "another process"


def _missing_newline(descriptor: int) -> str:
    """A newline when the file ends inside a line, else nothing."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return ""
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return "" if os.read(descriptor, 1) == b"\n" else "\n"


def _writing(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    return storage_errors(path, "written", "check the folder, its permissions and free space")

"""Files that are believed: regular ones of this user, in folders that nobody else can write to.

Kernels in the cache folder are machine code, and what is remembered of a fetched graph decides whether it is counted
again. Checksums find damage; that nobody else wrote a file is what these checks are for. Whoever owns the root folder
administers the machine and is trusted, because there is no way around.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path

log = logging.getLogger("wedgewise")

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MAX_LINKS = 40  # that a path may lead through, as on Linux

_noticed: set[str] = set()
_notice_listener: Callable[[str], None] | None = None


class UntrustedFileError(Exception):
    """A file is there, and is not one that this user alone can have written."""


def open_regular(path: Path) -> tuple[BufferedReader, int] | None:
    """A file to be read, and its size; None for what is no file. Links are not followed, pipes not waited for."""
    try:
        opened = _opened(path)
    except IsADirectoryError:
        return None
    try:
        status = os.fstat(opened.fileno())
    except OSError:
        opened.close()
        raise
    if stat.S_ISREG(status.st_mode):
        return opened, status.st_size
    opened.close()
    return None


def read_own(path: Path) -> bytes | None:
    """The bytes of a file that this user alone can have written; None where there is none.

    The folder is checked by `why_not_own`, so that nobody can put another file there meanwhile.

    Raises
    ------
    UntrustedFileError
        When it is a link, a pipe or a folder, of another user, writable by others, or cannot be read.
    """
    try:
        found = open_regular(path)
        if found is None:
            raise UntrustedFileError(f"{path} is no regular file")
        with found[0] as file:
            reason = why_not_own_file(path, os.fstat(file.fileno()))
            if reason is not None:
                raise UntrustedFileError(reason)
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UntrustedFileError(f"{path} cannot be read ({error.strerror or error})") from error


def read_trusted(path: Path) -> bytes | None:
    """The bytes of a file that this user alone can have written; None for any other, as if it was not there."""
    try:
        data = read_own(path)
        reason = None if data is None else why_not_own(path.parent)
    except UntrustedFileError as error:
        data, reason = None, str(error)
    if reason is not None:
        notice_once(str(path.parent), f"{path} is not read_trusted, because {reason}")
    return None if reason is not None else data


def notice_once(subject: str, line: str) -> None:
    """Say a line, unless one on the same subject was said: what is wrong with one file is wrong with many."""
    if subject not in _noticed:
        _noticed.add(subject)
        log.info("%s", line)
        if _notice_listener is not None:
            _notice_listener(line)


def on_notice(listener: Callable[[str], None] | None) -> None:
    """Tell `listener` every line that is logged here."""
    global _notice_listener
    _notice_listener = listener


def file_identity(path: str | os.PathLike[str]) -> dict[str, int]:
    """What the system says of a file, by which one that nobody has written, replaced or renamed is known again.

    Anybody can give another file the same size and modification time; the change time is the system's own, and moves
    with every write, rename and copy. So a copy of the same bytes is taken for another file. A restart of the machine
    changes none of it.
    """
    status = os.stat(path)
    return {
        "size": status.st_size,
        "time": status.st_mtime_ns,
        "inode": status.st_ino,
        "changed": status.st_ctime_ns,
    }


def why_not_own_file(path: Path, status: os.stat_result | None = None) -> str | None:
    """Why others could have written a file that is there; None where nobody could. Of its folder nothing is said."""
    status = os.lstat(path) if status is None else status
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is no regular file"
    if status.st_uid != _this_user(status.st_uid):
        return f"{path} belongs to another user (uid {status.st_uid})"
    return f"{path} can be written by others" if _others_write(status) else None


def why_not_own(folder: Path) -> str | None:
    """Why others could have put files into a folder; None where nobody could.

    Every folder and link on the way to it counts: who can rename one of them decides what is found at its end. In a
    folder like ``/tmp``, whose entries only their owners can rename, a folder of this user is safe.
    """
    try:
        trusted = {_this_user(os.lstat(folder).st_uid), os.lstat(folder.absolute().anchor).st_uid}
        for step in _way_to(folder.absolute()):
            status = os.lstat(step)
            if status.st_uid not in trusted:
                return f"{step} belongs to another user (uid {status.st_uid})"
            if not stat.S_ISLNK(status.st_mode) and _others_write(status) and not status.st_mode & stat.S_ISVTX:
                return f"{step} can be written by others"
        last = os.stat(folder)
    except OSError as error:
        return f"{folder} cannot be looked at ({error.strerror or error})"
    if last.st_uid != _this_user(last.st_uid):
        return f"{folder} belongs to another user (uid {last.st_uid})"
    return f"{folder} can be written by others" if _others_write(last) else None


def make_own_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, which nobody but this user can enter."""
    if folder.is_dir():
        return
    make_own_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _opened(path: Path) -> BufferedReader:
    extra = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | extra))


def _way_to(path: Path) -> Iterator[Path]:
    """Every folder and every link that the system goes through to an absolute path, and what lies at its end."""
    at, ahead, links = Path(path.anchor), list(reversed(path.parts[1:])), 0
    yield at
    while ahead:
        part = ahead.pop()
        at = at.parent if part == ".." else at / part
        yield at
        if at.is_symlink() and links < MAX_LINKS:
            target = at.parent / os.readlink(at)
            at, ahead, links = Path(target.anchor), [*ahead, *reversed(target.parts[1:])], links + 1


def _this_user(owner: int) -> int:
    """The user that this process acts for; where there are no such numbers, every owner is."""
    return os.geteuid() if hasattr(os, "geteuid") else owner


def _others_write(status: os.stat_result) -> bool:
    return os.name == "posix" and bool(status.st_mode & OTHERS_WRITE)

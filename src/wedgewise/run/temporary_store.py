"""A store that lasts as long as one question: in the system's temporary folder, or in a work folder, where the same
question finds it again after whatever ended it.

    tmp/wedgewise-…/in-use.lock      of whoever asks: where nobody has it, a kill has left the folder, which goes
    tmp/wedgewise-…/store/           the blocks

    work/wedgewise-KEY.lock          of whoever asks
    work/wedgewise-KEY/store/        the blocks, and what is finished of the question
    work/wedgewise-KEY/source.json   what they were made of, and how; written behind them
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wedgewise.errors import FormatError, MissingFileError
from wedgewise.machine.files import atomic_write, make_folder, named_failures, only_process
from wedgewise.machine.own_files import NotBelievedError, read_own
from wedgewise.run.journal import LOCK_SUFFIX, WAIT, key_of, refuse_link
from wedgewise.store.open import Store, open_store

PREFIX = "wedgewise-"
STORE, NOTE, IN_USE = "store", "source.json", f"in-use{LOCK_SUFFIX}"
ANOTHER = "name another folder for the work (--work, work_folder=)"

Make = Callable[[Path], Store]


@dataclass(frozen=True, slots=True)
class Identity:
    """What a store is made of: a `name` that stays when the source changes, and `facts` that do not."""

    name: str
    facts: Mapping[str, Any]


@contextmanager
def passing_store(make: Make) -> Iterator[Store]:
    """A store below the system's temporary folder; whatever ends the block, nothing is left of it.

    What a kill has left of others goes.
    """
    with named_failures("the system's temporary folder", "written to", ANOTHER):
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with only_process(folder / IN_USE, WAIT):
            _remove_what_kills_left(folder)
            yield make(folder / STORE)
    except BaseException:
        with suppress(OSError):  # what ended the block is raised
            shutil.rmtree(folder)
        raise
    _remove(folder)


@contextmanager
def kept_store(make: Make, work_folder: Path, identity: Identity, *, resume: bool) -> Iterator[tuple[Store, bool]]:
    """A store in a work folder, and whether it was there already; it is removed where the block succeeds.

    One process at a time has it. Of a source that has changed, or with `resume` false, it is made again.
    """
    with _own_folder(work_folder, PREFIX + key_of(name=identity.name)) as folder:
        found = _finished(folder, identity) if resume else None
        if found is not None:
            yield found, True
            return
        _empty(folder)
        made = make(folder / STORE)
        with atomic_write(folder / NOTE, mode=0o600) as file:
            file.write(_note(identity))
        yield made, False


def store_bytes(store: Store) -> int:
    """What the files of a store take on disk."""
    with named_failures(store.folder, "looked through", "check the folder and its permissions"):
        return sum(path.stat().st_size for path in store.folder.iterdir())


@contextmanager
def _own_folder(work_folder: Path, name: str) -> Iterator[Path]:
    """A folder for this process alone, removed where the block succeeds, or where nothing is in it."""
    folder, lock = work_folder / name, work_folder / f"{name}{LOCK_SUFFIX}"
    with named_failures(work_folder, "made", ANOTHER):
        make_folder(work_folder, parents=True)
    refuse_link(folder)
    refuse_link(lock)
    with only_process(lock, WAIT):
        with named_failures(folder, "made", ANOTHER):
            make_folder(folder, mode=0o700)
        try:
            yield folder
        except BrokenPipeError:  # a reader that has had enough
            _remove(folder)
            raise
        except BaseException:
            with suppress(OSError):  # which says that there is something to go on with
                folder.rmdir()
            raise
        _remove(folder)


def _finished(folder: Path, identity: Identity) -> Store | None:
    """The store of the same source and options that an earlier run finished."""
    try:
        return open_store(folder / STORE) if read_own(folder / NOTE) == _note(identity) else None
    except NotBelievedError:
        return None
    except (FormatError, MissingFileError):  # a run was killed while it removed them
        return None


def _note(identity: Identity) -> bytes:
    return json.dumps({"name": identity.name, **identity.facts}, sort_keys=True).encode() + b"\n"


def _empty(folder: Path) -> None:
    _remove(folder)
    with named_failures(folder, "made", ANOTHER):
        make_folder(folder, mode=0o700)


def _remove_what_kills_left(own: Path) -> None:
    """Remove the folders beside our own that belong to the same user and that nobody has locked any more."""
    for folder in own.parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another process has it, or removes it: it is in nobody's way
            is_ours = os.stat(folder, follow_symlinks=False).st_uid == own.stat().st_uid and not folder.is_symlink()
            if is_ours and folder != own and (folder / IN_USE).stat().st_size:  # its holder has written who it is
                with only_process(folder / IN_USE, WAIT) as has_locks:
                    if has_locks:
                        shutil.rmtree(folder)


def _remove(folder: Path) -> None:
    with named_failures(folder, "removed", "remove it"):
        shutil.rmtree(folder)

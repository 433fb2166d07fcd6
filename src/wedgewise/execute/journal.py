"""Finished tasks, a line each, so that work that was ended goes on where it was.

Every line names the work that it belongs to by a key, and has a checksum. A line that is torn, as the last one may be
when a process is killed, or damaged, is as if it was not there: its task is done again. Each line is on the disk before
the next task begins.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from wedgewise.errors import InputError, VerificationError
from wedgewise.execute.local import Partial
from wedgewise.storage import append_line

JOURNAL = "count.journal"
FIELDS = ("task", "triangles", "tests")


def key_of(**facts: Any) -> str:
    """A short name for work: of the graph, the options and whatever else its results depend on."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


class Journal:
    """The finished tasks of one piece of work; `done` has them by task."""

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.done: dict[int, Partial] = {}
        self._key = key

    def read(self) -> None:
        """Take in what is there; raise where it is of other work."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for line in file:
                found = _parse(line)
                if found is not None:
                    self._take(*found)

    def add(self, partial: Partial) -> None:
        """A task is finished."""
        record = {"key": self._key, **{name: getattr(partial, name) for name in FIELDS}}
        append_line(self.path, json.dumps({**record, "check": _check(record)}))
        self.done[partial.task] = partial

    def remove(self) -> None:
        """All tasks are finished, or none of them count."""
        self.path.unlink(missing_ok=True)
        self.done.clear()

    def _take(self, key: str, partial: Partial) -> None:
        if key != self._key:
            raise InputError(
                f"{self.path}: holds results for another graph, other options or another version; go on with those, "
                "or start again with resume=False (--restart)"
            )
        if self.done.setdefault(partial.task, partial) != partial:
            raise VerificationError(f"{self.path}: task {partial.task} has two results; start again with resume=False")


def _parse(line: bytes) -> tuple[str, Partial] | None:
    """The key and the result of a line; None where it is not whole."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.pop("check", None) != _check(record):
        return None
    if not all(type(record.get(name)) is int and record[name] >= 0 for name in FIELDS):
        return None
    return str(record.get("key")), Partial(*(record[name] for name in FIELDS))


def _check(record: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())

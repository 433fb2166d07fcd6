"""What driver and workers say to each other, as JSON: neither unpickles a class of which the other has another form.

Order   tasks for a worker, and all that it has to know to do them
Reply   what the tasks found, or the error of ours that ended them; at most 1 MB
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from inspect import signature
from typing import Any

from wedgewise import errors
from wedgewise.algorithms._passes import Partial
from wedgewise.errors import ClusterError, VerificationError, WedgewiseError
from wedgewise.version import __version__

MOST_REPLY_BYTES = 10**6
PLAIN = (str, int, float, type(None))


@dataclass(frozen=True, slots=True)
class Order:
    """Tasks of a store for one worker.

    Attributes
    ----------
    version : of the program that asks
    store : a folder or a URL, the same for all workers
    fingerprint : of the graph that has to be there
    key : of the work, which every result carries; see `wedgewise.run.outofcore.work_key`
    threads : for a worker; None is all that it may use
    memory_limit : for the size of a worker; None is what its machine has left
    tasks : their numbers
    """

    version: str
    store: str
    fingerprint: str
    key: str
    algorithm: str
    knobs: Mapping[str, int | str]
    threads: int | None
    memory_limit: int | None
    tasks: tuple[int, ...]

    def to_json(self) -> str:
        """The order as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Order:
        """The order that a driver of the same version wrote."""
        whole = json.loads(text)
        if whole["version"] != __version__:
            raise ClusterError(
                f"the driver has wedgewise {whole['version']} and a worker {__version__}; install the same version "
                "on both"
            )
        return cls(**{**whole, "tasks": tuple(whole["tasks"])})


@dataclass(frozen=True, slots=True)
class Finished:
    """What a task found, and how long it took."""

    partial: Partial
    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What the tasks of an order found."""

    key: str
    finished: tuple[Finished, ...]

    def to_json(self) -> bytes:
        """The reply as text of bounded size."""
        rows = [[*asdict(item.partial).values(), item.seconds] for item in self.finished]
        text = json.dumps({"key": self.key, "finished": rows}).encode()
        if len(text) > MOST_REPLY_BYTES:
            raise VerificationError(
                f"{len(rows):,} tasks make a reply of {len(text):,} bytes, over {MOST_REPLY_BYTES:,}: please report "
                "this"
            )
        return text

    @classmethod
    def from_json(cls, text: bytes) -> Reply:
        """The reply that a worker wrote; the error of ours that it has instead is raised."""
        whole = json.loads(text)
        if "error" in whole:
            raise _error_from(whole["error"])
        return cls(whole["key"], tuple(Finished(Partial(*row[:3]), row[3]) for row in whole["finished"]))


def error_to_json(error: WedgewiseError) -> bytes:
    """An error of ours as a reply."""
    plain = {name: value for name, value in vars(error).items() if isinstance(value, PLAIN)}
    return json.dumps({"error": {"type": type(error).__name__, "message": str(error), "fields": plain}}).encode()


def _error_from(described: Mapping[str, Any]) -> WedgewiseError:
    """The error that a worker met, as itself."""
    kind: type[WedgewiseError] = getattr(errors, described["type"])
    if "__init__" not in vars(kind):
        return kind(described["message"])
    return kind(**{name: described["fields"][name] for name in signature(kind).parameters})

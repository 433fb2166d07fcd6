"""The closed list of exceptions: each derives from WedgewiseError and from the built-in that fits.

Every message names what happened, where (file and line when there is one) and the remedy. Errors cross processes: they
pickle and copy with their attributes, whatever parameters they were made of.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from typing import Any


class WedgewiseError(Exception):
    """Base of everything that wedgewise raises on purpose."""

    def __reduce__(self) -> tuple[Callable[..., WedgewiseError], tuple[Any, ...], dict[str, Any]]:
        return _made_again, (type(self), *self.args), vars(self).copy()


class InputError(WedgewiseError, ValueError):
    """The caller's data or arguments cannot be used as they are."""


class FormatError(InputError):
    """A file's content is malformed.

    Parameters
    ----------
    reason : what is wrong, in one clause
    path : the file (or ``"<stdin>"``, ``"<array>"``)
    line : 1-based line number, or None for binary formats
    text : the offending text, shortened for display
    remedy : what the user can do about it
    """

    def __init__(
        self,
        reason: str,
        *,
        path: str | PathLike[str],
        line: int | None = None,
        text: str | None = None,
        remedy: str,
    ) -> None:
        self.reason = reason
        self.path = fspath(path)
        self.line = line
        self.text = None if text is None else _shorten(text)
        self.remedy = remedy
        where = self.path if line is None else f"{self.path}:{line}"
        shown = "" if self.text is None else f": {self.text!r}"
        super().__init__(f"{where}: {reason}{shown}; {remedy}")


class LimitError(InputError):
    """The input exceeds a cap of `wedgewise.stages.limits`; the message names the cap and how to raise it."""


class UnknownNameError(InputError):
    """No algorithm, generator, format, order or knob of that name; the message lists those there are."""


class UnknownLabelError(InputError, KeyError):
    """A graph has no vertex of that label; the message names the first such label."""

    __str__ = Exception.__str__  # a KeyError shows the quoted message


class PreconditionError(InputError):
    """An algorithm was handed a graph that lacks what it declares to need."""


class MissingFileError(WedgewiseError, FileNotFoundError):
    """The named file does not exist or cannot be opened."""


class MissingDependencyError(WedgewiseError, ImportError):
    """An optional package is needed; the message names the extra that installs it."""


class MemoryLimitError(WedgewiseError, MemoryError):
    """The work needs more memory than allowed or available: found before anything large was allocated where that can be
    foreseen, else named with the stage that ran out of it.

    Parameters
    ----------
    reason : what takes how much, and how much there is
    remedy : what the user can do about it
    """

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason if remedy is None else f"{reason}; {remedy}")
        self.reason, self.remedy = reason, remedy


class DeviceMemoryError(MemoryLimitError):
    """A GPU had less free memory than a step of the work asked for; smaller batches may fit, and the CPU can take over.

    Parameters
    ----------
    device : the GPU's name
    wanted : bytes that were asked for, or None where the driver did not say
    free : bytes that could be had
    """

    def __init__(self, device: str, *, wanted: int | None, free: int) -> None:
        self.device = device
        self.wanted = wanted
        self.free = free
        wanted_memory = "more memory was asked for" if wanted is None else f"{wanted:,} bytes were asked for"
        reason = f"{wanted_memory} and {free:,} are free"
        super().__init__(f"{device}: {reason}", "use device='cpu' or a smaller graph")
        self.reason = reason


class DeviceError(WedgewiseError, RuntimeError):
    """A GPU is not there, cannot be used, or failed; the message says what else to do."""


class ClusterError(WedgewiseError, RuntimeError):
    """Workers cannot be reached, are of another version, or are lost again and again; what is finished is kept."""


class VerificationError(WedgewiseError, ArithmeticError):
    """Two methods disagree, or an identity does not hold: a defect in wedgewise, never a property of the input."""


class StorageError(WedgewiseError, OSError):
    """A file could not be written, or read back; nothing half-written is left under its final name."""


class DownloadError(WedgewiseError, ConnectionError):
    """A graph could not be fetched; what has arrived of it stays, and the same call resumes from there."""


def _made_again(kind: type[WedgewiseError], *args: Any) -> WedgewiseError:
    """An error with its message as it was, made as the built-in that it is: its own parameters are not needed again."""
    laid_out: Any = kind
    while laid_out.__module__ != "builtins":
        laid_out = laid_out.__base__
    error: WedgewiseError = laid_out.__new__(kind, *args)
    built_in: Any = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    built_in.__init__(error, *args)
    return error


def _shorten(text: str, width: int = 80) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"

"""Where output goes.

Answers go to standard output: text, or one JSON object with ``--json``. Everything else goes to standard
error, and only to a terminal: progress bars when both streams are terminals, the lines about compiling when
standard error is one. ``--verbose`` writes stages and compilations as lines wherever standard error goes;
``--quiet`` writes neither.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from typer.core import TyperGroup

from wedgewise.cli import INTERRUPTED
from wedgewise.errors import WedgewiseError
from wedgewise.machine import jit
from wedgewise.report.objects import Object, to_json
from wedgewise.report.progress import Tell, progress_bar

FAILED = 1
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@dataclass(frozen=True, slots=True)
class Console:
    """How one command talks."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def is_read_by_a_person(self) -> bool:
        return sys.stdout.isatty() and not self.quiet

    def show(self, record: Object, text: Callable[[], str]) -> None:
        """Print the answer: the object as JSON when asked for, else the text."""
        print(to_json(record) if self.as_json else text())

    def say(self, line: str) -> None:
        """A line for whoever waits at a terminal, or reads what ``--verbose`` wrote."""
        if self.verbose or (sys.stderr.isatty() and not self.quiet):
            say(line)

    @contextmanager
    def stages(self) -> Iterator[Tell | None]:
        """What long work reports its progress to; None where nobody watches."""
        jit.on_compile(self.say)
        try:
            if self.verbose:
                yield _StageLines().tell
            else:
                with progress_bar(self.is_read_by_a_person and sys.stderr.isatty()) as tell:
                    yield tell
        finally:
            jit.on_compile(None)


class _StageLines:
    """Writes a line at the beginning of every stage."""

    def __init__(self) -> None:
        self.stage = ""

    def tell(self, stage: str, done: int, total: int) -> None:
        if stage != self.stage:
            self.stage = stage
            say(f"{stage} …")


def say(line: str) -> None:
    """A line on standard error."""
    print(line, file=sys.stderr, flush=True)


class Commands(TyperGroup):
    """The group of all commands: turns whatever ends one early into a line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as head, has had enough
            _forget_output()
            return None
        except KeyboardInterrupt:
            say("interrupted")
            sys.exit(INTERRUPTED)
        except WedgewiseError as error:
            say(f"error: {error}")
            sys.exit(FAILED)
        except OSError as error:
            if error.errno not in UNWRITABLE or error.filename is not None:
                raise
            _forget_output()
            say(f"error: standard output could not be written ({error.strerror}); free disk space and retry")
            sys.exit(FAILED)
        except MemoryError as error:
            say(f"error: out of memory ({error}); use a machine with more memory or a smaller graph")
            sys.exit(FAILED)
        return result


def _forget_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush is quiet too."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)

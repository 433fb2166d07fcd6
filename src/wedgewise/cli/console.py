"""Where output goes.

Answers go to standard output: text, or one JSON object with ``--json``. Everything else goes to standard
error, and only to a terminal: progress bars when both streams are terminals, the lines about compiling, and
about files that are not read_trusted, when standard error is one. ``--verbose`` writes stages and these lines
wherever standard error goes; ``--quiet`` writes neither. A note says wherever standard error goes what may be
wrong in how a file was read, but for ``--quiet``.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from typer.core import TyperGroup

from _wedgewise_start.signals import end
from wedgewise.cli import INTERRUPTED
from wedgewise.cli.option_names import in_options
from wedgewise.cli.streams import escaped
from wedgewise.errors import WedgewiseError
from wedgewise.machine import jit, own_files
from wedgewise.machine.progress import Progress, progress_bar
from wedgewise.report.objects import Object, to_json
from wedgewise.result import SCHEMA

FAILED = 1
UNCLEAR = "first line read as an edge"  # how a note begins on a reading that may be wrong
UNWRITABLE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO), "free disk space and retry"),
    errno.EBADF: "it is closed: leave it open, or write to a file with --output",
    errno.EAGAIN: "it is full and does not wait: put a pipe to cat behind the command",
}


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
        """Print the answer: the object as JSON, with the number of its schema, when asked for, else the text."""
        put(to_json({"schema": SCHEMA, **record}) if self.as_json else text())

    def say(self, line: str) -> None:
        """A line for whoever waits at a terminal, or reads what ``--verbose`` wrote."""
        if self.verbose or (sys.stderr.isatty() and not self.quiet):
            say(line)

    def note(self, notes: Iterable[str]) -> None:
        """Those notes on how a file was read that say that it may be wrong."""
        if not self.quiet:
            for note in notes:
                if note.startswith(UNCLEAR):
                    say(f"note: {note}")

    @contextmanager
    def stages(self) -> Iterator[Progress | None]:
        """What long work reports its progress to; None where nobody watches."""
        jit.on_compile(self.say)
        own_files.on_notice(self.say)
        try:
            if self.verbose:
                yield _StageLines().show
            else:
                with progress_bar(self.is_read_by_a_person and sys.stderr.isatty()) as progress:
                    yield progress
        finally:
            jit.on_compile(None)
            own_files.on_notice(None)


class _StageLines:
    """Writes a line at the beginning of every stage."""

    def __init__(self) -> None:
        self.stage = ""

    def show(self, stage: str, done: int, total: int) -> None:
        if stage != self.stage:
            self.stage = stage
            say(f"{stage} …")


def put(text: str) -> None:
    """A text on standard output; on a terminal nothing in it steers that."""
    print(escaped(text) if sys.stdout.isatty() else text)


def put_rows(rows: bytes) -> None:
    """Rows of an answer on standard output, in UTF-8 whatever it is; on a terminal nothing in them steers that."""
    sys.stdout.buffer.write(escaped(rows.decode()).encode() if sys.stdout.isatty() else rows)
    sys.stdout.buffer.flush()


def say(line: str) -> None:
    """A line on standard error, which stays one whatever it quotes; where nobody listens, it is not said."""
    with suppress(OSError):
        print(escaped(line.replace("\n", "\\u000a")), file=sys.stderr, flush=True)


@contextmanager
def signals_raised() -> Iterator[None]:
    """Have signals that would end the process raise exceptions in a block, as Python does by itself for Ctrl-C."""
    raised = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _terminate}
    ours = [number for number in raised if signal.getsignal(number) is end]
    for number in ours:
        signal.signal(number, raised[number])
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, end)


def _terminate(number: int, _frame: object) -> NoReturn:
    """Leave through the exception handlers, which remove temporary files, instead of dying on the spot."""
    sys.exit(128 + number)


class Commands(TyperGroup):
    """The group of all commands: turns whatever ends one early into a line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with signals_raised():
                result = super().invoke(ctx)
                sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as head, has had enough
            _forget_output()
            return None
        except KeyboardInterrupt:
            say("interrupted")
            sys.exit(INTERRUPTED)
        except WedgewiseError as error:
            say(f"error: {in_options(str(error))}")
            sys.exit(FAILED)
        except (MemoryError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.ENOMEM:  # as of a module that is read now
                raise
            say(f"error: out of memory ({error}); use a machine with more memory or a smaller graph")
            sys.exit(FAILED)
        return result

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; help and versions, which are printed before one begins, can fail to be written too."""
        try:
            try:
                return super().main(*args, **kwargs)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            _forget_output()
        except OSError as error:
            if error.errno not in UNWRITABLE or error.filename is not None:
                raise
            _forget_output()
            remedy = UNWRITABLE[error.errno]
            say(f"error: standard output could not be written ({error.strerror}); {remedy}")
            sys.exit(FAILED)


def _forget_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush is quiet too."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)

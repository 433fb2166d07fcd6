"""The standard streams as a command finds them: closed ones, ones of few characters, and terminals.

A closed stream fails where it is used, and only there: its number leads to nothing, so that no file that is opened
later gets it. A character that a stream does not have is shown as in JSON, as ``\\u2013``. So is whatever would steer a
terminal.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper

STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
ESCAPED = "wedgewise.escaped"


def prepare_streams() -> None:
    """Have every standard stream there, and able to say every text."""
    for number, name, mode in ((0, "stdin", os.O_WRONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:  # the mode lets nobody read from what was closed, nor write to it
            _lead_nowhere(number, mode)
            setattr(sys, name, TextIOWrapper(_binary(number), encoding="utf-8"))
    codecs.register_error(ESCAPED, _spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # whoever replaces a stream takes every text
            stream.reconfigure(errors=ESCAPED)


def escaped(text: str) -> str:
    """A text as a terminal may get it: what would move its cursor, colour it or turn its letters around is escaped."""
    return STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _binary(number: int) -> BufferedReader | BufferedWriter:
    if number == 0:
        return BufferedReader(FileIO(number, "r", closefd=False))
    return BufferedWriter(FileIO(number, "w", closefd=False))


def _lead_nowhere(number: int, mode: int) -> None:
    nothing = os.open(os.devnull, mode)
    if nothing != number:
        os.dup2(nothing, number)
        os.close(nothing)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that a stream does not have: the same as in JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs), error.end

"""Other people's programs in the comparison: a file of commands, and of what to look for in what they print.

    [[program]]
    name = "tc"
    command = ["./tc", "{text}", "--threads", "{threads}"]
    count = 'triangles: (\\d+)'
    seconds = 'kernel: ([\\d.]+) ms'
    unit = "ms"

``wedgewise bench SUITE --programs FILE`` gives each of them a column: `sources` makes them systems like any other,
whose source is the file itself, and the child process of a cell runs them as `external` says. A command is a list of
words, never a line for a shell. A program whose name has a slash is looked for from the folder of the file on, others
on PATH. It is run in an empty folder. A word may hold `PLACEHOLDERS`; a file is written only where a command names it.

Keys of a program
-----------------
name : the column of the table
command : the program and its arguments
count : a regular expression whose only group is the number of triangles; the last match counts
seconds : the same for the program's own clock; without it, ours is taken, from the start of the process to its end
unit : of these seconds, one of `UNITS`; s by default
device : where it runs, cpu or cuda; cpu by default
pairs : which pairs the files hold, one of `PAIRS`; simple by default
prepare : commands that are run before, once and not timed, such as converters
version : what is to be recorded of it
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from wedgewise.errors import FormatError, MissingFileError

if TYPE_CHECKING:
    from wedgewise_bench.systems import SystemSource

FILES = {"text": "graph.txt", "mtx": "graph.mtx", "npy": "graph.npy", "binary": "graph.bel32"}
"""Files that a command may ask for, and their names, whose suffixes are formats of `wedgewise.write.edges`."""

PLACEHOLDERS = {
    "text": "a file of lines with two ids, separated by a blank",
    "mtx": "a Matrix Market file: symmetric, pattern, ids from 1 on",
    "npy": "a NumPy array of two columns",
    "binary": "two ids of 32 bits after the other, little-endian, without a header",
    "vertices": "a number that all ids are below",
    "edges": "the number of pairs in these files",
    "threads": "how many threads the cell has",
    "scratch": "the folder in which it is run: empty at first, deleted with the cell",
    "folder": "the folder of the file of programs",
}
PAIRS = {
    "simple": "every edge once, its lower id first, without loops; ids from 0 on without gaps",
    "both": "the same edges in both directions",
    "raw": "what the graph's file holds: loops, copies and all",
}
DEVICES = ("cpu", "cuda")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
NAME = re.compile(r"\w[\w.+-]*")


@dataclass(frozen=True, slots=True)
class Program:
    """One program: how it is run, and what of its output is read; the fields are the keys of its file.

    ``folder`` is that of the file, ``seconds`` empty where our clock is taken.
    """

    name: str
    command: tuple[str, ...]
    count: str
    folder: Path
    seconds: str = ""
    unit: str = "s"
    device: str = "cpu"
    pairs: str = "simple"
    prepare: tuple[tuple[str, ...], ...] = ()
    version: str = ""

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """All of its commands, in the order in which they are run."""
        return (*self.prepare, self.command)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that its commands name."""
        named = {name for command in self.commands for word in command for name in _placeholders(word)}
        return tuple(name for name in FILES if name in named)

    @property
    def mark(self) -> str:
        """What is recorded of it: its version, and a digest of all that its file says of it."""
        said = {key: value for key, value in asdict(self).items() if key != "folder"}
        return f"{self.version} declared {hashlib.sha256(repr(said).encode()).hexdigest()[:12]}".lstrip()

    def path_of(self, name: str) -> str:
        """Where a command looks for a program."""
        return str(self.folder / name) if os.sep in name else name


def read_programs(path: Path) -> list[Program]:
    """The programs that a file declares, every key of theirs checked.

    Raises
    ------
    MissingFileError : there is no such file
    FormatError : it is no TOML, or a program lacks a key, or has one that is unknown or of no use
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingFileError(f"{path}: {error.strerror}; name a file that has [[program]] tables") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not a TOML file ({error})", path=path, remedy="mend it at that place") from error
    declared = tables.get("program")
    if set(tables) != {"program"} or not isinstance(declared, list) or not declared:
        raise FormatError(
            "holds something else than programs",
            path=path,
            remedy="write a [[program]] table for each and nothing else",
        )
    programs = [_Keys(path, number, table).program() for number, table in enumerate(declared, start=1)]
    names = [program.name for program in programs]
    for name in names:
        if names.count(name) > 1:
            raise FormatError(f"two programs are named {name!r}", path=path, remedy="give each a name of its own")
    return programs


def sources(path: Path, taken: Iterable[str] = ()) -> list[SystemSource]:
    """The programs of a file as systems under comparison, each answering ``count`` in its only way.

    Parameters
    ----------
    path : the file, which the child process of a cell reads again
    taken : names of systems that there are already

    Raises
    ------
    FormatError : a program has such a name, and whatever `read_programs` raises
    """
    from wedgewise_bench.systems import SystemSource

    programs = read_programs(path)
    for program in programs:
        if program.name in taken:
            raise FormatError(
                f"{program.name!r} is a system of the comparison already",
                path=path,
                remedy="name the program otherwise",
            )
    source = path.resolve()
    return [
        SystemSource(item.name, item.name, ("default",), source, devices=(item.device,), version=item.mark)
        for item in programs
    ]


class _Keys:
    """One table of a file, read key by key; what is wrong is said with its place."""

    def __init__(self, path: Path, number: int, table: Any) -> None:
        self.path = path
        self.place = f"program {number}"
        self.table: Mapping[str, Any] = table if isinstance(table, dict) else {}
        if isinstance(self.table.get("name"), str):
            self.place += f" ({self.table['name']})"

    def program(self) -> Program:
        known = [name for name in Program.__dataclass_fields__ if name != "folder"]
        for key in self.table:
            if key not in known:
                raise self._wrong(f"has no key {key!r}", f"known are: {', '.join(known)}")
        if "unit" in self.table and "seconds" not in self.table:
            raise self._wrong("has a unit and no seconds", "add the regular expression of its clock, or drop the unit")
        program = Program(
            name=self._text("name", NAME.fullmatch, "letters, digits, and . + - _ behind the first"),
            command=self._command(self.table.get("command"), "command"),
            count=self._pattern("count"),
            folder=self.path.resolve().parent,
            seconds=self._pattern("seconds") if "seconds" in self.table else "",
            unit=self._choice("unit", UNITS, "s"),
            device=self._choice("device", DEVICES, "cpu"),
            pairs=self._choice("pairs", PAIRS, "simple"),
            prepare=tuple(self._command(words, "prepare") for words in self._list("prepare")),
            version=self._text("version", bool, "some text") if "version" in self.table else "",
        )
        if program.pairs == "both" and "mtx" in program.files:
            raise self._wrong(
                "asks for {mtx} with pairs = 'both'", "a symmetric file has each edge once: take pairs = 'simple'"
            )
        return program

    def _text(self, key: str, is_right: Callable[[str], object], what: str) -> str:
        value = self.table.get(key)
        if not isinstance(value, str) or not is_right(value):
            raise self._wrong(f"has no {key} that can be used", f"write {key} = {what}")
        return value

    def _choice(self, key: str, choices: Iterable[str], usual: str) -> str:
        value = self.table.get(key, usual)
        if value not in list(choices):
            raise self._wrong(f"has {key} = {value!r}", f"{key} is one of: {', '.join(choices)}")
        return str(value)

    def _list(self, key: str) -> list[Any]:
        value = self.table.get(key, [])
        if not isinstance(value, list):
            raise self._wrong(f"has a {key} that is no list", f'write {key} = [["./convert", "{{text}}"]]')
        return value

    def _pattern(self, key: str) -> str:
        text = self._text(key, bool, "'a regular expression with one group'")
        try:
            groups = re.compile(text).groups
        except re.error as error:
            raise self._wrong(f"has {key} = {text!r}, no regular expression ({error})", "mend it") from error
        if groups != 1:
            raise self._wrong(f"has {key} = {text!r} with {groups} groups", "put the number, alone, into parentheses")
        return text

    def _command(self, words: Any, key: str) -> tuple[str, ...]:
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or not any(words[:1]):
            raise self._wrong(f"has a {key} that is no list of words", 'write each word by itself: ["./tc", "{text}"]')
        for word in words:
            self._check_placeholders(word)
        if "{" in words[0]:
            raise self._wrong(f"begins a {key} with {words[0]!r}", "name the program there")
        return tuple(words)

    def _check_placeholders(self, word: str) -> None:
        try:
            unknown = [name for name in _placeholders(word) if name not in PLACEHOLDERS]
        except ValueError as error:
            raise self._wrong(f"has the word {word!r} ({error})", "write {{ and }} for braces") from error
        if unknown:
            remedy = f"there are: {', '.join(f'{{{name}}}' for name in PLACEHOLDERS)}; write {{{{ and }}}} for braces"
            raise self._wrong(f"has the word {word!r}, where {{{unknown[0]}}} stands for nothing", remedy)

    def _wrong(self, reason: str, remedy: str) -> FormatError:
        return FormatError(f"{self.place} {reason}", path=self.path, remedy=remedy)


def _placeholders(word: str) -> list[str]:
    """What stands in braces in a word of a command, formats and conversions included."""
    return [
        name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
        for _, name, form, conversion in Formatter().parse(word)
        if name is not None
    ]

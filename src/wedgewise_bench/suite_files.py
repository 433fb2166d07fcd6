"""TOML → Suite: the suites that come with the package, in ``declared/``, and those of a user.

name = "few"                       # what it is called
summary = "one line"               # what it compares
title = "…"                        # of the tables; the summary by default
paper = "itc"                      # whose published numbers are shown beside ours
graphs = ["kronecker-16-seed1"]    # generated ones, torus3d-128 too, bundled ones, those that the catalogue generates
real = ["soc-Epinions1"]           # those that are here, of --data or of `wedgewise datasets`; or a number: all of
                                   # --data with so many edges
limit_seconds = 60                 # for each stage of a cell and each repeat
repeats = 10                       # at most
tables = ["answers", "metrics"]    # one of them, or several: count, answers, cuts, ways, metrics
counts = ["wedgewise"]             # who is asked for a count; everybody by default

[too_slow]                         # graphs on which a system is asked for nothing but a count
networkx = ["kronecker-18-seed1"]

[[matrix]]                         # a full product; several are joined
systems = ["wedgewise", "igraph"]  # everybody by default
devices = ["cpu", "cuda"]          # cpu by default; also hybrid. One that is not there is no error
algorithms = ["all", "eager[granularity=coarse]"]
questions = ["count", "k_truss[k=3]"]
rows = ["count", "edges", "file"]  # count by default
threads = [1, 2]                   # all by default; "sweep" is 1, 2, 4 … all
graphs = ["kronecker-18-seed1"]    # in place of those of the suite, `real` ones included

[matrix.knobs]                     # every combination is added to every algorithm of the matrix above
matrix_length = [4096, 16384]
order = ["degree", "id"]           # or relabel = ["rank", "indegree"]: how the graph is oriented, of `wedgewise` alone

[[target]]                         # a ratio of times: at_most or at_least
graph = "kronecker-18-seed1"
divided = ["wedgewise", "trussness"]
by = ["graphblas", "count"]
at_most = 3.1
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from wedgewise.errors import FormatError, InputError, MissingFileError
from wedgewise_bench import published
from wedgewise_bench.child import MAX_REPEATS
from wedgewise_bench.matrix import EVERY, Matrix
from wedgewise_bench.spec import Spec
from wedgewise_bench.suites import SECTIONS, Suite, Target
from wedgewise_bench.words import DEVICES, ROWS, parse_question

SWEEP = "sweep"
Value = TypeVar("Value")


@cache
def declared_suites() -> Mapping[str, Suite]:
    """The suites of the package by name."""
    folder = Path(str(files("wedgewise_bench") / "declared"))
    suites = [read_suite(path) for path in sorted(folder.glob("*.toml"))]
    return {suite.name: suite for suite in suites}


def read_suite(path: Path) -> Suite:
    """The suite of a TOML file.

    Raises
    ------
    FormatError : it says something else than a suite; names the key
    MissingFileError : there is no such file
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingFileError(f"{path}: cannot be read ({error.strerror}); name a file of a suite") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is no TOML ({error})", path=path, remedy="mend that place") from error
    return _suite(_TomlTable(content, path))


class _TomlTable:
    """A table of a file; every key is taken once, and what is left over is refused."""

    def __init__(self, content: Mapping[str, Any], path: Path, where: str = "") -> None:
        self._content, self._path, self._where = dict(content), path, where

    def take(self, key: str, check: Callable[[Any], Value], usual: Any = None) -> Value:
        """The value of a key, checked; without a `usual` one it must be there."""
        if key not in self._content:
            if usual is None:
                self.refuse(key, "is missing", "add it")
            found: Value = usual
            return found
        try:
            return check(self._content.pop(key))
        except _WrongValue as error:
            self.refuse(key, error.reason, error.remedy)
        except InputError as error:
            self.refuse(key, str(error), "mend it")

    def tables(self, key: str) -> list[_TomlTable]:
        """The tables of an array."""
        items = self.take(key, _list_of(_table), ())
        return [_TomlTable(item, self._path, f"{self._where}{key} {number}, ") for number, item in enumerate(items, 1)]

    def finish(self, known: str) -> None:
        """Refuse keys that nobody took."""
        for key in self._content:
            self.refuse(key, "is no key of this place", f"there are: {known}")

    def refuse(self, key: str, reason: str, remedy: str) -> NoReturn:
        raise FormatError(f"{self._where}{key}: {reason}", path=self._path, remedy=remedy)


class _WrongValue(Exception):
    """A value that cannot be; `_TomlTable.take` says where."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason, self.remedy = reason, remedy


def _suite(table: _TomlTable) -> Suite:
    suite = Suite(
        name=table.take("name", _text),
        summary=table.take("summary", _text),
        title=table.take("title", _text, ""),
        paper=table.take("paper", _one_of(published.keys()), ""),
        graphs=table.take("graphs", _list_of(_text), ()),
        real=table.take("real", _texts_or_number, ()),
        limit_seconds=table.take("limit_seconds", _positive, 120.0),
        repeats=table.take("repeats", _whole, MAX_REPEATS),
        tables=table.take("tables", _one_or_list(_one_of(SECTIONS)), ("answers",)),
        counts=table.take("counts", _list_of(_text), ()),
        too_slow=table.take("too_slow", _lists_by_name(_text), {}),
        matrices=tuple(_matrix(item) for item in table.tables("matrix")),
        targets=tuple(_target(item) for item in table.tables("target")),
    )
    if not suite.matrices:
        table.refuse("matrix", "is missing", "add [[matrix]] with at least one key, such as systems")
    table.finish(
        "name, summary, title, paper, graphs, real, limit_seconds, repeats, tables, counts, too_slow, matrix, target"
    )
    return suite


def _matrix(table: _TomlTable) -> Matrix:
    matrix = Matrix(
        systems=table.take("systems", _list_of(_text), ()),
        devices=table.take("devices", _list_of(_one_of(DEVICES)), ("cpu",)),
        algorithms=table.take("algorithms", _list_of(_way), ()),
        questions=table.take("questions", _list_of(_question), ("count",)),
        rows=table.take("rows", _list_of(_one_of(ROWS)), ("count",)),
        graphs=table.take("graphs", _list_of(_text), ()),
        knobs=table.take("knobs", _lists_by_name(_knob), {}),
        **table.take("threads", _threads, {}),
    )
    if matrix.knobs and not matrix.algorithms:
        table.refuse("knobs", "are of no algorithm", "name the algorithms of this matrix that have them")
    table.finish("systems, devices, algorithms, questions, rows, threads, graphs, knobs")
    return matrix


def _target(table: _TomlTable) -> Target:
    graph, divided, by = table.take("graph", _text), table.take("divided", _pair), table.take("by", _pair)
    most, least = table.take("at_most", _positive, 0.0), table.take("at_least", _positive, 0.0)
    if bool(most) == bool(least):
        table.refuse("at_most", "or at_least says what the ratio is to be", "give one of them")
    table.finish("graph, divided, by, at_most, at_least")
    return Target(graph, divided, by, most or least, is_least=bool(least))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _WrongValue(f"{value!r} is no text", "write it in quotation marks")
    return value


def _way(value: Any) -> str:
    text = _text(value)
    return text if text == EVERY else str(Spec.parse(text))


def _question(value: Any) -> str:
    return str(parse_question(_text(value)))


def _one_of(names: Any) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in list(names):
            raise _WrongValue(f"{value!r} is none of {', '.join(names)}", "name one of these")
        return str(value)

    return check


def _list_of(check: Callable[[Any], Value]) -> Callable[[Any], tuple[Value, ...]]:
    def checked(value: Any) -> tuple[Value, ...]:
        if not isinstance(value, list) or not value:
            raise _WrongValue(f"{value!r} is no list of values", "write it as [ …, … ], with at least one")
        return tuple(check(item) for item in value)

    return checked


def _one_or_list(check: Callable[[Any], Value]) -> Callable[[Any], tuple[Value, ...]]:
    return lambda value: _list_of(check)(value if isinstance(value, list) else [value])


def _lists_by_name(check: Callable[[Any], Value]) -> Callable[[Any], dict[str, tuple[Value, ...]]]:
    return lambda value: {name: _list_of(check)(items) for name, items in _table(value).items()}


def _texts_or_number(value: Any) -> tuple[str, ...] | int:
    return _list_of(_text)(value) if isinstance(value, list) else _whole(value)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _WrongValue(f"{value!r} is no table", "write it as [name] with lines of KEY = VALUE")
    return value


def _pair(value: Any) -> tuple[str, str]:
    system, *question = _list_of(_text)(value)
    if len(question) != 1:
        raise _WrongValue(f"{value!r} is no pair", "name a system and a question")
    return system, _question(question[0])


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _WrongValue(f"{value!r} is no whole number from 1 on", "write one")
    return value


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise _WrongValue(f"{value!r} is no number above 0", "write one")
    return float(value)


def _knob(value: Any) -> int | str:
    return value if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _threads(value: Any) -> dict[str, Any]:
    return {"sweeps_threads": True} if value == SWEEP else {"threads": _list_of(_whole)(value)}

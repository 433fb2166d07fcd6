"""Which columns of a table hold the ends of an edge: one rule for every file and every table in memory.

1. The columns that the user named, by name (in any case) or by position from 0.
2. A well-known pair of names, such as source and target or sender_id and receiver_id, in any case; where the user named
   one of the two, the other.
3. The columns that are left, where they are as many as ends are missing: two columns need nothing.
4. Without names, the first two, where nothing else could be meant: both hold integers, or every further column holds
   numbers or a dictionary as NetworkX writes it.

Everything else is an error that lists the columns: no guess is made between two readings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from wedgewise.errors import FormatError, InputError, UnknownNameError
from wedgewise.stages import Column

PAIRS = (
    ("source", "target"),
    ("source", "destination"),
    ("source", "dest"),
    ("src", "dst"),
    ("src", "dest"),
    ("src", "tgt"),
    ("from", "to"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("origin", "destination"),
    ("payer", "payee"),
    ("start", "end"),
    ("u", "v"),
)
NUMBERED = ("node", "vertex", "id", "user", "account", "person", "entity", "author", "name")
SUFFIXES = (
    *("", "id", "node", "nodeid", "vertex", "vertexid", "user", "userid", "account", "accountid"),
    *("key", "name", "number", "no", "code", "address", "ip"),
)
GENERATED = re.compile(r"(|[a-z_]*[a-z_])(\d{1,9})", re.IGNORECASE | re.ASCII)
GENERATED_PREFIXES = frozenset({"", "column", "column_", "col", "col_", "f", "field", "field_", "_c", "c", "v"})
MAX_LISTED = 40
ROLES = ("source", "target", "weight")


def _with_suffixes(stems: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    return frozenset((first + suffix, second + suffix) for (first, second), suffix in product(stems, SUFFIXES))


KNOWN_WORDS = _with_suffixes(pair for pair in PAIRS if len(pair[0]) > 1)  # that no vertices are called, unlike u and v
KNOWN = _with_suffixes(
    [*PAIRS, *((noun + one, noun + two) for noun in NUMBERED for one, two in (("1", "2"), ("a", "b")))]
)
ASK = "name the two in Graph or read: source=…, target=… (--source, --target), by name or by position from 0"


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """What the user said about the columns of a table; a column is a name, or a position from 0.

    ``header`` says whether the first line of a text file names the columns: True, False, or "auto" to look.
    """

    source: Column | None = None
    target: Column | None = None
    weight: Column | None = None
    header: bool | str = "auto"

    def __post_init__(self) -> None:
        for role in ROLES:
            column: object = getattr(self, role)
            if isinstance(column, np.integer):
                object.__setattr__(self, role, int(column))
            elif isinstance(column, bool) or not isinstance(column, str | int | None):
                raise InputError(f"{role}={column!r}: a column is a name, or a position from 0")
        if not (isinstance(self.header, bool) or self.header == "auto"):
            raise UnknownNameError(f"header={self.header!r}; there are: True, False, 'auto'")

    @property
    def given(self) -> dict[str, Column]:
        """The roles that have a column, with it."""
        return {role: column for role in ROLES if (column := getattr(self, role)) is not None}

    def check_header_unused(self, name: str) -> None:
        """Refuse the option `header` for a file whose columns have names of their own."""
        if self.header != "auto":
            raise InputError(f"{name}: header={self.header!r}, but only text files have a header; leave header out")

    def check_unused(self, name: str, why: str) -> None:
        """Refuse a choice where there are no columns to choose from."""
        said = [*self.given] + ["header"] * (self.header != "auto")
        if said:
            raise InputError(f"{name}: {', '.join(said)} given, but {why}; leave {' and '.join(said)} out")


ANY_COLUMNS = ColumnChoice()


@dataclass(frozen=True, slots=True)
class Ends:
    """The positions of the columns that are read; ``weight`` is None where weights are not."""

    source: int
    target: int
    weight: int | None = None

    @property
    def positions(self) -> tuple[int, ...]:
        """The columns that are read, in the order of their roles."""
        return (self.source, self.target) if self.weight is None else (self.source, self.target, self.weight)

    def among(self, names: Sequence[Column] | None, width: int) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        """The columns among `width` that are read, and those that are not, by name where there are names."""
        read = self.positions
        named = range(max(width, *read) + 1) if names is None else names
        others = [named[position] for position in range(width) if position not in read]
        return tuple(named[position] for position in read), tuple(others)


FIRST_TWO = Ends(0, 1)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What is known of a table before a column is chosen.

    Attributes
    ----------
    path : of the file, or what stands for it in messages
    width : how many columns there are
    names : of the columns; None where they have none
    first_two_serve : asked where there are more than two columns without names: whether the first two are the ends
    examples : fields of the first row, to be shown where there are no names
    """

    path: str
    width: int
    names: Sequence[Column] | None
    first_two_serve: Callable[[], bool] = lambda: False
    examples: Sequence[bytes] = ()


def choose_columns(table: TableFacts, choice: ColumnChoice) -> Ends:
    """Decide which columns are the ends of an edge and its weight, or say why that is open."""
    found = {role: _resolve(table, role, column) for role, column in choice.given.items()}
    if len(set(found.values())) < len(found):
        raise _wrong(table, f"one column is named for {' and '.join(found)}")
    missing = [role for role in ("source", "target") if role not in found]
    if missing:
        found |= zip(missing, _find_missing(table, missing, found), strict=True)
    return Ends(found["source"], found["target"], found.get("weight"))


def known_pairs(names: Sequence[Column], known: Iterable[tuple[str, str]] = KNOWN) -> list[tuple[int, int]]:
    """The positions of every two columns whose names belong together, first end first."""
    at: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        plain = "".join(letter for letter in str(name).lower() if letter.isalnum())
        at.setdefault(plain, []).append(position)
    return sorted({pair for first, second in known for pair in product(at.get(first, ()), at.get(second, ()))})


def names_given_column(names: Sequence[str], choice: ColumnChoice) -> bool:
    """Whether one of the names is what the user called a column, and is no position."""
    texts = [column for column in choice.given.values() if isinstance(column, str)]
    return any(_positions_of(text, names) and not (text.isdigit() and int(text) < len(names)) for text in texts)


def without_generated(names: Sequence[Column]) -> Sequence[Column] | None:
    """The names; None where a library made them up for a table without any: 0, 1, 2 or column_1, column_2."""
    matches = [GENERATED.fullmatch(str(name)) for name in names]
    parts = [(match[1].lower(), int(match[2])) for match in matches if match is not None]
    if len(parts) != len(names) or not parts or parts[0][0] not in GENERATED_PREFIXES or parts[0][1] > 1:
        return names
    due = [(parts[0][0], parts[0][1] + step) for step in range(len(names))]
    return None if parts == due else names


def _find_missing(table: TableFacts, missing: list[str], found: dict[str, int]) -> tuple[int, ...]:
    """The positions of the ends that the user did not name."""
    names, taken = table.names and without_generated(table.names), set(found.values())
    pairs = [pair for pair in known_pairs(names) if _agrees(pair, found)] if names else []
    if len(pairs) > 1:
        raise _undecided(table, "more than one pair of columns is named like the ends of an edge")
    if pairs:
        return tuple(position for position in pairs[0] if position not in taken)
    left = [position for position in range(table.width) if position not in taken]
    if len(left) == len(missing):
        return tuple(left)
    if len(left) < len(missing):
        raise FormatError(
            "no two columns to take the ends of edges from",
            path=table.path,
            text=", ".join(map(str, table.names or ())),
            remedy="name them source and target",
        )
    is_free = len(missing) == 2 and taken.isdisjoint(FIRST_TWO.positions)
    if is_free and not names and table.first_two_serve():
        return FIRST_TWO.positions
    raise _undecided(table, "nothing says which columns are the ends of an edge")


def _positions_of(column: Column, names: Sequence[Column]) -> list[int]:
    """Where a name is among others: as it is spelled, or else in any case."""
    exact = [position for position, name in enumerate(names) if name == column]
    return exact or [at for at, name in enumerate(names) if str(name).casefold() == str(column).casefold()]


def _agrees(pair: tuple[int, int], found: dict[str, int]) -> bool:
    """Whether a pair has the ends that were found, and not the weight."""
    ends = {"source": pair[0], "target": pair[1]}
    return all(ends[role] == at if role in ends else at not in pair for role, at in found.items())


def _resolve(table: TableFacts, role: str, column: Column) -> int:
    """The position of a column that the user named."""
    names = table.names
    if names is not None and isinstance(column, str):
        at = _positions_of(column, names)
        if len(at) > 1:
            raise _wrong(table, f"more than one column {column!r} to take {role}s from")
        if at:
            return at[0]
    position = int(column) if isinstance(column, int) or (column.isascii() and column.isdigit()) else None
    if position is not None and 0 <= position < table.width:
        return position
    raise _wrong(table, f"no column {column!r} to take {role}s from")


def _undecided(table: TableFacts, why: str) -> FormatError:
    is_text = table.names is None and table.examples
    headerless = "; if the first line names the columns: header=True (--header yes)" if is_text else ""
    return FormatError(f"{table.width} columns, and {why}: {_listed(table)}", path=table.path, remedy=ASK + headerless)


def _wrong(table: TableFacts, why: str) -> InputError:
    return InputError(f"{table.path}: {why}; there are: {_listed(table)}")


def _listed(table: TableFacts) -> str:
    """The columns as messages show them."""
    if table.names is not None:
        shown = [_quoted(name) for name in table.names]
    else:
        examples = [_quoted(example.decode("utf-8", "backslashreplace")) for example in table.examples]
        shown = [f"{position} ({example}, …)" for position, example in enumerate(examples)]
        shown += [str(position) for position in range(len(shown), table.width)]
    more = f", and {len(shown) - MAX_LISTED} more" if len(shown) > MAX_LISTED else ""
    return ", ".join(shown[:MAX_LISTED]) + more


def _quoted(name: Column) -> str:
    text = str(name)
    return repr(text if len(text) <= 40 else text[:39] + "…")

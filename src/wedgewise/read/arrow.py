"""Parquet, Arrow IPC and Feather → pairs in pieces (the extra `arrow`).

`wedgewise.read.columns` chooses the columns. Integers are labels as they stand; strings are numbered by first
appearance, and integers beside strings are taken as the text that they are in a CSV file. A null is an error.
Files are read some rows at a time. Held are the pairs, 8 or 16 bytes each, 8 bytes per weight, and the labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from wedgewise.errors import FormatError, MemoryLimitError, MissingDependencyError, WedgewiseError
from wedgewise.read import ReadOptions
from wedgewise.read._arrow_messages import DAMAGED, ArrowSource
from wedgewise.read._arrow_values import GrowingWeights, TextPairs, first_null, numbers, plain_type, slices
from wedgewise.read._parquet import ParquetSource
from wedgewise.read.columns import ColumnChoice, Ends, TableFacts, choose_columns, without_generated
from wedgewise.read.content import Content
from wedgewise.read.pieces import PairPieces, Piece, first_outside, interleave, kept_type
from wedgewise.stages import Column, Origin
from wedgewise.stages.limits import Limits

TEXT_TYPES = ("string", "large_string", "string_view")
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name
BYTES_PER_PAIR = 16


def pieces_of_parquet(content: Content, options: ReadOptions) -> PairPieces:
    """The two columns of a Parquet file that hold the ends of the edges, some rows at a time."""
    return _pieces_of_source(ParquetSource, content, "Parquet", options)


def pieces_of_arrow(content: Content, options: ReadOptions) -> PairPieces:
    """The two columns of an Arrow IPC file, stream or Feather file that hold the ends of the edges, in pieces."""
    return _pieces_of_source(ArrowSource, content, "Arrow", options)


def _pieces_of_source(
    kind: type[ParquetSource | ArrowSource], content: Content, format: str, options: ReadOptions
) -> PairPieces:
    import_pyarrow()
    with _failures_named(content.name):
        source = kind(content.file(), content.name, options.limits)
        if source.rows is not None:
            _check_rows(source.rows, options.limits, content.name)
        chosen = choose_arrow_columns(source.schema, options.labels, options.columns, content.name)
        batches = source.batches(list(chosen.names))
        found = pieces_of_batches(batches, chosen, Origin(content.name, format), options.limits)
    found.expected_pairs = source.rows
    found.pieces = _named_pieces(found.pieces, content.name)
    return found


def _named_pieces(pieces: Iterable[Piece], name: str) -> Iterator[Piece]:
    """The same pieces; Arrow's exceptions while they are made are ours."""
    with _failures_named(name):
        yield from pieces


def import_pyarrow() -> Any:
    """The module, or the remedy when it is missing."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingDependencyError(
            'Parquet and Arrow files need pyarrow; install it with: pip install "wedgewise[arrow]"'
        ) from error
    return pyarrow


@contextmanager
def _failures_named(name: str) -> Iterator[None]:
    """Arrow's own exceptions as ours."""
    import pyarrow

    try:
        yield
    except WedgewiseError:
        raise
    except MemoryError as error:
        raise MemoryLimitError(
            f"{name}: Arrow could not allocate what the file declares ({error}); it is damaged or too large"
        ) from error
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise FormatError("is not readable by Arrow", path=name, text=reason, remedy=DAMAGED) from error


def _check_rows(rows: int, limits: Limits, name: str) -> None:
    limits.check("pairs", rows, path=name)
    limits.check("decompressed_bytes", rows * BYTES_PER_PAIR, path=name)


@dataclass(frozen=True, slots=True)
class ArrowColumns:
    """The columns that are read of a table: their names, source, target and weight; those of all others; what labels
    are."""

    names: tuple[str, ...]
    used: tuple[Column, ...]
    ignored: tuple[Column, ...]
    kind: str


def choose_arrow_columns(schema: Any, labels: str, choice: ColumnChoice, name: str) -> ArrowColumns:
    """The columns of a schema that hold the ends, both integers or text, and the weight."""
    fields = [field for field in schema if not PANDAS_INDEX.fullmatch(field.name)]
    lost = _lost_index(schema.metadata)
    given = [field.name for field in fields] + lost
    kinds = [_kind(field.type) for field in fields] + ["int"] * len(lost)
    ends, shown = choose_named_columns(name, given, lambda: kinds, choice)
    names = tuple(given[position] for position in ends.positions)
    for column in names:
        if column in lost:
            reason = f"column {column!r} is not stored: it was a range that pandas kept as the index"
            raise FormatError(reason, path=name, remedy="write the frame again, after .reset_index()")
        if given.count(column) > 1:
            raise FormatError(f"two columns are called {column!r}", path=name, remedy="rename one of them")
    types = [f"{fields[position].name}: {fields[position].type}" for position in ends.positions[:2]]
    kind = label_kind([kinds[ends.source], kinds[ends.target]], types, labels, name)
    return ArrowColumns(names, *ends.among(shown, len(given)), kind)


def choose_named_columns(
    name: str, given: Sequence[str], kinds: Callable[[], Sequence[str]], choice: ColumnChoice
) -> tuple[Ends, Sequence[Column] | None]:
    """The columns that are read, and the names of all; None where a library made them up."""
    shown = without_generated(given)
    if shown is None:
        at: dict[Column | None, int] = {column: position for position, column in enumerate(given)}
        source, target, weight = (at.get(column, column) for column in (choice.source, choice.target, choice.weight))
        choice = replace(choice, source=source, target=target, weight=weight)
    return choose_columns(TableFacts(name, len(given), shown, lambda: first_two_serve(kinds())), choice), shown


def _lost_index(metadata: Any) -> list[str]:
    """The name of a pandas index that is no column because it was a range; pandas has written so into the metadata."""
    try:
        levels = json.loads((metadata or {}).get(b"pandas", b"{}"))["index_columns"]
        return [str(level["name"]) for level in levels if isinstance(level, dict) and level["name"] is not None]
    except (KeyError, TypeError, ValueError):  # somebody else's
        return []


def first_two_serve(kinds: Sequence[str]) -> bool:
    """Whether nothing but the first two of these columns without names can be meant: see `wedgewise.read.columns`."""
    return list(kinds[:2]) == ["int", "int"] or all(kind in ("int", "number") for kind in kinds[2:])


def label_kind(kinds: Sequence[str], types: Iterable[str], labels: str, name: str) -> str:
    """What labels are: "int" or "text"; an error that lists the types where they can be neither."""
    if not set(kinds) <= {"int", "text"} or (labels == "int" and "text" in kinds):
        needed = "integers" if labels == "int" else "integers or strings"
        raise FormatError(
            f"columns that are not {needed}", path=name, text=", ".join(types), remedy="cast both to one of these"
        )
    return "text" if labels == "text" or "text" in kinds else "int"


def _kind(kind: Any) -> str:
    from pyarrow import types

    value = plain_type(kind)
    if types.is_integer(value):
        return "int"
    if types.is_floating(value) or types.is_decimal(value):
        return "number"
    return "text" if str(value) in TEXT_TYPES else "other"


def pieces_of_batches(batches: Iterable[Any], chosen: ArrowColumns, origin: Origin, limits: Limits) -> PairPieces:
    """The pairs of the chosen columns, some rows at a time."""
    found = PairPieces(origin, columns=chosen.used, ignored_columns=chosen.ignored)
    found.pieces = _pieces(batches, chosen, found, limits)
    return found


def _pieces(batches: Iterable[Any], chosen: ArrowColumns, found: PairPieces, limits: Limits) -> Iterator[Piece]:
    """The pairs of some rows at a time; names and weights are known at the end."""
    texts = TextPairs(limits, found.name) if chosen.kind == "text" else None
    weights = GrowingWeights(limits, found.name) if len(chosen.names) == 3 else None
    rows = 0
    for batch in batches:
        columns = [batch.column(batch.schema.get_field_index(name)) for name in chosen.names]
        for column in columns:
            column.validate(full=True)
        for here in slices(columns):
            for column, name in zip(here[:2], chosen.names, strict=False):
                if (null := first_null(column)) is not None:
                    reason = f"row {rows + null} of column {name!r} is null"
                    raise FormatError(reason, path=found.name, remedy="drop rows with nulls")
            if weights is not None:
                weights.add(here[2])
            if texts is None:
                pairs = kept_type(interleave(*map(numbers, here[:2])))
                check_labels(pairs, found.name, rows)
            else:
                pairs = texts.pairs(*here[:2])
            rows += len(pairs)
            _check_rows(rows, limits, found.name)
            yield pairs
    if weights is not None:
        found.weights = weights.array()
    if texts is not None:
        found.names = texts.table.labels()
        found.vertices = len(found.names)


def check_labels(pairs: NDArray[Any], name: str, rows_before: int = 0) -> None:
    """Refuse two integer columns that have no common type, or hold what no label can be."""
    if pairs.dtype.kind not in "iu":
        raise FormatError("one column is uint64 and the other signed", path=name, remedy="cast both to int64")
    outside = first_outside(pairs)
    if outside is not None:
        raise FormatError(
            f"row {rows_before + outside[0] // 2} holds a number outside 0 … 2^63 − 1",
            path=name,
            text=str(outside[1]),
            remedy="renumber the vertices from 0",
        )

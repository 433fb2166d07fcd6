"""One table in every form that wedgewise reads: text files, binary files, objects of other libraries."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
from pyarrow import feather, ipc, parquet

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Form:
    """How a table is handed to wedgewise: `make` gives what `Graph` takes, and the keywords that belong to it."""

    name: str
    make: Callable[[Columns, Path], Any]


def _text(separator: str, quoting: int = csv.QUOTE_MINIMAL, *, ends: str = "\n") -> Callable[[Columns, Path], Any]:
    def make(columns: Columns, folder: Path) -> Path:
        path = folder / "table.txt"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=ends)  # type: ignore[arg-type]
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return path

    return make


def _gz(columns: Columns, folder: Path) -> Path:
    path = folder / "table.csv.gz"
    path.write_bytes(gzip.compress(_text(",")(columns, folder).read_bytes()))
    return path


def _stream(columns: Columns, folder: Path) -> io.BytesIO:
    return io.BytesIO(_text(",")(columns, folder).read_bytes())


def _arrow(columns: Columns) -> Any:
    return pyarrow.table({name: list(values) for name, values in columns.items()})


def _parquet(columns: Columns, folder: Path) -> Path:
    parquet.write_table(_arrow(columns), folder / "table.parquet", row_group_size=2)
    return folder / "table.parquet"


def _feather(columns: Columns, folder: Path) -> Path:
    feather.write_feather(_arrow(columns), str(folder / "table.feather"))
    return folder / "table.feather"


def _ipc(columns: Columns, folder: Path) -> Path:
    table = _arrow(columns)
    with ipc.new_stream(str(folder / "table.arrow"), table.schema) as writer:
        writer.write_table(table, 2)
    return folder / "table.arrow"


def _duckdb(columns: Columns, folder: Path) -> Any:
    return duckdb.connect().from_arrow(_arrow(columns))


TEXT_FORMS = [
    Form("csv", _text(",")),
    Form("csv quoted", _text(",", csv.QUOTE_ALL)),
    Form("csv crlf", _text(",", ends="\r\n")),
    Form("semicolons", _text(";")),
    Form("tsv", _text("\t")),
    Form("blanks", _text(" ")),
    Form("csv.gz", _gz),
    Form("stream", _stream),
]
TABLE_FORMS = [
    Form("parquet", _parquet),
    Form("feather", _feather),
    Form("arrow stream", _ipc),
    Form("pandas", lambda columns, _: pandas.DataFrame({name: list(values) for name, values in columns.items()})),
    Form("polars", lambda columns, _: polars.DataFrame({name: list(values) for name, values in columns.items()})),
    Form("pyarrow", lambda columns, _: _arrow(columns)),
    Form("duckdb", _duckdb),
]
FORMS = TEXT_FORMS + TABLE_FORMS

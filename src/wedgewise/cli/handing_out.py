"""Rows of an answer → a file, or text between tabs."""

from __future__ import annotations

import time
from dataclasses import replace

from wedgewise.cli.console import put, put_rows, say
from wedgewise.cli.options import Asking
from wedgewise.report.objects import Object, to_json
from wedgewise.result import Result
from wedgewise.write.answers import Answers, row_speller, write_answers


def write_table(table: Answers, output: str, result: Result) -> Result:
    """Write the file; the result with the seconds of that."""
    begin = time.perf_counter()
    write_answers(table, output)
    return replace(result, seconds={**result.seconds, "write": time.perf_counter() - begin})


def say_written(asking: Asking, record: Object) -> None:
    """Say that the rows are in a file."""
    if asking.as_json:
        put(to_json(record))
    elif not asking.quiet:
        put(f"{record['rows']:,} rows written to {record['output']}")


def print_rows(table: Answers, number: int | None = None) -> None:
    """Print rows as text between tabs; whoever interrupts a listing from `number` on learns where it stopped."""
    spell_rows = row_speller(table, "\t")
    printed = 0
    try:
        for block in table.small_blocks():
            put_rows(spell_rows(block))
            printed += len(block[0])
    except KeyboardInterrupt:
        if number is not None:
            say(f"{printed:,} triangles were printed; --start {number + printed} goes on behind them")
        raise

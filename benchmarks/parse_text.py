"""Parse one text edge list with wedgewise and with the table readers that can be imported; one table, one run.

    python benchmarks/parse_text.py --megabytes 200 --threads 2 --repeats 3

Every reader returns two integer columns in memory; the best of the repeats counts, with the file in the page cache.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

Reader = Callable[[Path, int], Any]
PAIRS_AT_ONCE = 500_000


@dataclass(frozen=True, slots=True)
class Timing:
    """Best and first seconds of one reader, and the sum of all labels that it read."""

    name: str
    best: float
    first: float
    checksum: int


def write_pairs(path: Path, megabytes: int, vertices: int) -> int:
    """Write random pairs below `vertices`, one a line with a tab between, and return how many."""
    rng = np.random.default_rng(1)
    pairs = 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 10**6:
            drawn = rng.integers(0, vertices, size=(PAIRS_AT_ONCE, 2)).tolist()
            file.write("".join([f"{u}\t{v}\n" for u, v in drawn]).encode())
            pairs += PAIRS_AT_ONCE
    return pairs


def read_wedgewise(path: Path, threads: int) -> Any:
    from wedgewise.read import read_edges

    return read_edges(path, format="text", threads=threads).pairs


def read_polars(path: Path, threads: int) -> Any:
    import polars

    return polars.read_csv(path, separator="\t", has_header=False, schema={"u": polars.UInt32, "v": polars.UInt32})


def read_pyarrow(path: Path, threads: int) -> Any:
    import pyarrow
    from pyarrow import csv

    pyarrow.set_cpu_count(threads)
    types = {"u": pyarrow.uint32(), "v": pyarrow.uint32()}
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=["u", "v"], block_size=2**23),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(column_types=types),
    )


def read_pandas(path: Path, threads: int) -> Any:
    import pandas

    return pandas.read_csv(path, sep="\t", header=None, names=["u", "v"], dtype=np.uint32, engine="c")


def read_duckdb(path: Path, threads: int) -> Any:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    columns = "{'u': 'UINTEGER', 'v': 'UINTEGER'}"
    query = f"SELECT * FROM read_csv(?, delim='\t', header=false, columns={columns})"
    return connection.execute(query, [str(path)]).fetchnumpy()


READERS: dict[str, Reader] = {
    "wedgewise": read_wedgewise,
    "polars": read_polars,
    "pyarrow": read_pyarrow,
    "pandas": read_pandas,
    "duckdb": read_duckdb,
}


def checksum(table: Any) -> int:
    """The sum of all labels, whatever type a reader returned."""
    if isinstance(table, np.ndarray):
        return int(table.sum(dtype=np.uint64))
    columns = [table["u"], table["v"]]
    return sum(int(np.asarray(column).sum(dtype=np.uint64)) for column in columns)


def measure(name: str, path: Path, threads: int, repeats: int) -> Timing:
    """Time `repeats` calls after a first one, which loads the library and compiles."""
    seconds = []
    total = 0
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        table = READERS[name](path, threads)
        seconds.append(time.perf_counter() - begin)
        total = checksum(table)
        del table
    return Timing(name, min(seconds[1:]), seconds[0], total)


def print_table(timings: list[Timing], megabytes: float) -> None:
    ours = timings[0].best
    print(f"{'reader':<12}{'seconds':>9}{'first':>9}{'GB/s':>8}{'ratio':>8}")
    for timing in timings:
        rate = megabytes / 1000 / timing.best
        print(f"{timing.name:<12}{timing.best:>9.3f}{timing.first:>9.3f}{rate:>8.2f}{timing.best / ours:>8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--vertices", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.txt"
        pairs = write_pairs(path, options.megabytes, options.vertices)
        megabytes = path.stat().st_size / 1e6
        print(f"{pairs:,} pairs, {megabytes:.0f} MB, {options.threads} threads, best of {options.repeats}")
        timings = []
        for name in READERS:
            if find_spec(name) is None:
                print(f"{name}: skipped, not installed")
                continue
            timings.append(measure(name, path, options.threads, options.repeats))
        if len({timing.checksum for timing in timings}) != 1:
            raise SystemExit(f"readers disagree: {timings}")
        print_table(timings, megabytes)


if __name__ == "__main__":
    main()

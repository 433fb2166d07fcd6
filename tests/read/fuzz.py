"""Mutated files of every format: the engine behind the fuzz tests.

Seeds are small valid files. A case is a seed with one to four mutations: bytes flipped, cut off, inserted,
doubled, spliced in from another seed, or the first bytes of another format. Everything follows from the
case's number, so that a failing case can be run again alone: ``run_case(seeds(folder), number, folder)``.

As a program it runs the cases from one number to another, and prints what came of them: a case that ends the
interpreter ends nothing else, and what other tests hold is not in the way of measuring.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np

from wedgewise.errors import WedgewiseError
from wedgewise.read import read_edges
from wedgewise.stages import EdgeList
from wedgewise.stages.limits import MAX_LABEL, Limits
from wedgewise.write.edges import write_edges

LIMITS = Limits(decompressed_bytes=2**24, line_bytes=2**16, vertices=10**6, pairs=10**6)
CASE_SECONDS = 0.5
CASE_BYTES = 200 * 10**6
WARM_UP_CASES = 50
MAX_SEED_BYTES = 2**16
MAGICS = (
    b"\x1f\x8b\x08",
    b"BZh9",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"\x93NUMPY\x01\x00",
    b"PK\x03\x04",
    b"PAR1",
    b"ARROW1\x00\x00",
    b"\xff\xff\xff\xff",
    b"%%MatrixMarket matrix coordinate pattern general\n",
    b"\x80\x04\x95",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
)
TOKENS = (
    b"-1",
    b"1.5",
    b"nan",
    b"1_000",
    b"99999999999999999999",
    b"\0",
    b"\n",
    b" ",
    b"%",
    b"#",
    b'"',
    b"\xff",
)


@dataclass(frozen=True, slots=True)
class Seed:
    """A valid file: its name tells the format where content cannot."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: whether it was read, its seconds of CPU time, and the memory that it took at its peak."""

    was_read: bool
    seconds: float
    taken: int


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cases were read and how many refused, and the most that any of them took."""

    read: int
    refused: int
    seconds: float
    taken: int


def seeds(folder: Path) -> list[Seed]:
    """A file of every format that is written, text and wrapped ones included."""
    edges = np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 7], [5, 11], [40, 300], [300, 70000]])
    small = edges[:6]
    made: list[Seed] = []
    for suffix in ("txt", "csv", "bel32", "bel64", "bel", "npy", "npz", "mtx", "metis", "parquet", "arrow"):
        path = folder / f"seed.{suffix}"
        write_edges(small if suffix == "metis" else edges, path, vertices=12 if suffix == "metis" else None)
        made.append(Seed(path.name, path.read_bytes()))
    for suffix in ("parquet", "arrow"):
        path = folder / f"names.{suffix}"
        write_edges(small, path, labels=[f"vertex {number}" for number in range(12)])
        made.append(Seed(path.name, path.read_bytes()))
    made += _by_hand()
    return made + [pack(seed, kind) for seed in made for kind in _PACKERS]


def pack(seed: Seed, kind: str) -> Seed:
    """The same file compressed."""
    return Seed(f"{seed.name}.{kind}", _PACKERS[kind](seed.content))


def mutate(seed: Seed, others: list[Seed], random: Random) -> Seed:
    """One to four mutations, sometimes compressed afterwards: damage behind an intact wrapping."""
    content = seed.content
    for _ in range(random.choice((1, 1, 2, 4))):
        content = random.choice(_MUTATIONS)(content, random.choice(others).content, random)
    mutant = Seed(seed.name, content[:MAX_SEED_BYTES])
    return pack(mutant, random.choice(list(_PACKERS))) if random.random() < 0.3 else mutant


def run_case(all_seeds: list[Seed], number: int, folder: Path) -> Outcome:
    """Read one mutated file, mapped or as a stream; it may be refused by a `WedgewiseError`."""
    random = Random(number)
    plain = [seed for seed in all_seeds if not seed.name.endswith(tuple(_PACKERS))]
    case = mutate(random.choice(plain if random.random() < 0.7 else all_seeds), all_seeds, random)
    path = folder / case.name
    path.write_bytes(case.content)
    held = _forget_peak()
    begin = time.process_time()
    try:
        if number % 2:
            check(read_edges(path, limits=LIMITS, threads=1))
        else:
            with open(path, "rb") as stream:
                check(read_edges(stream, limits=LIMITS, threads=1))
        was_read = True
    except WedgewiseError:
        was_read = False
    outcome = Outcome(was_read, time.process_time() - begin, _resident("VmHWM") - held)
    assert outcome.seconds <= CASE_SECONDS, f"case {number} ({case.name}) took {outcome.seconds:.2f} s"
    assert outcome.taken <= CASE_BYTES, f"case {number} ({case.name}) took {outcome.taken:,} bytes"
    return outcome


def run_cases(all_seeds: list[Seed], numbers: range, folder: Path) -> Tally:
    """Run many cases."""
    outcomes = [run_case(all_seeds, number, folder) for number in numbers]
    were_read = sum(outcome.was_read for outcome in outcomes)
    rest = outcomes[WARM_UP_CASES:]  # what the first ones take, they leave in caches
    longest, most = max(outcome.seconds for outcome in rest), max(outcome.taken for outcome in rest)
    return Tally(were_read, len(outcomes) - were_read, longest, most)


def run_elsewhere(numbers: range, folder: Path) -> Tally:
    """Run many cases in another process."""
    command = [sys.executable, __file__, str(folder), str(numbers.start), str(numbers.stop)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return Tally(**json.loads(found.stdout))


def check(edges: EdgeList) -> None:
    """What an EdgeList promises, whatever it was read from."""
    assert edges.pairs.ndim == 2
    assert edges.pairs.shape[1] == 2
    assert edges.pairs.flags.c_contiguous
    assert edges.pairs.dtype in (np.int32, np.int64, np.uint32, np.uint64)
    bound = MAX_LABEL if edges.vertices is None else edges.vertices - 1
    assert edges.vertices is None or 0 <= edges.vertices <= LIMITS.vertices
    assert edges.names is None or len(edges.names) == edges.vertices
    if len(edges.pairs):
        assert int(edges.pairs.min()) >= 0
        assert int(edges.pairs.max()) <= bound


def _by_hand() -> list[Seed]:
    real = b"%%MatrixMarket matrix coordinate real symmetric\n% weights\n5 5 3\n2 1 0.5\n3 1 -1e3\n5 4 7\n"
    weighted = b"% weights\n4 3 11 1\n9 2 5\n9 1 5 3 6\n% inside\n9 2 6 4 7\n9 3 7\n"
    csr = io.BytesIO()
    np.savez(csr, format=b"csr", shape=[3, 3], indptr=[0, 1, 2, 2], indices=[1, 2], data=[1, 1])
    squeezed = io.BytesIO()
    np.savez_compressed(squeezed, edges=np.array([[0, 1], [1, 2]]))
    return [
        Seed("real.mtx", real),
        Seed("weighted.graph", weighted),
        Seed("csr.npz", csr.getvalue()),
        Seed("squeezed.npz", squeezed.getvalue()),
        Seed("names.txt", b"# who knows whom\nada bob\nbob cy\ncy ada\n"),
        Seed("names.csv", b'source,target,weight\n"ada, b",bob,1\nbob,cy,2\n'),
        Seed("snap.txt", b"# FromNodeId\tToNodeId\n0\t1\r\n1\t2\r\n2\t0"),
        Seed("konect.tsv", b"% sym unweighted\n1 2 1 1300000000\n2 3 1 1300000001\n"),
    ]


def _zstd(content: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(content)


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda content: gzip.compress(content, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": _zstd,
}


def _flip(content: bytes, _: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for _flips in range(random.randint(1, 8) if changed else 0):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _overwrite(content: bytes, _: bytes, random: Random) -> bytes:
    at = random.randint(0, len(content))
    value = random.choice((b"\x00", b"\xff", b"\x7f", b"9")) * random.choice((1, 2, 4, 8))
    return content[:at] + value + content[at + len(value) :]


def _truncate(content: bytes, _: bytes, random: Random) -> bytes:
    return content[: random.randint(0, len(content))]


def _insert(content: bytes, _: bytes, random: Random) -> bytes:
    at = random.randint(0, len(content))
    new = random.choice(TOKENS) if random.random() < 0.5 else random.randbytes(random.randint(1, 16))
    return content[:at] + new + content[at:]


def _duplicate(content: bytes, _: bytes, random: Random) -> bytes:
    begin, end = sorted(random.randint(0, len(content)) for _ in range(2))
    return content[:end] + content[begin:end] * random.randint(1, 3) + content[end:]


def _splice(content: bytes, other: bytes, random: Random) -> bytes:
    return content[: random.randint(0, len(content))] + other[random.randint(0, len(other)) :]


def _swap_magic(content: bytes, _: bytes, random: Random) -> bytes:
    magic = random.choice(MAGICS)
    return magic + content[len(magic) if random.random() < 0.5 else 0 :]


def _inside_zip(content: bytes, other: bytes, random: Random) -> bytes:
    """Mutate one member of an archive and write the archive anew, checksums and all."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError, RuntimeError):
        return _flip(content, other, random)
    if members:
        chosen = random.choice(sorted(members))
        members[chosen] = random.choice((_flip, _overwrite, _truncate, _insert))(members[chosen], other, random)
    rebuilt = io.BytesIO()
    with zipfile.ZipFile(rebuilt, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return rebuilt.getvalue()


_MUTATIONS = (
    _flip,
    _overwrite,
    _truncate,
    _insert,
    _duplicate,
    _splice,
    _swap_magic,
    _inside_zip,
    _inside_zip,
)


def _resident(measure: str) -> int:
    """A resident size of this process, now (VmRSS) or at its peak (VmHWM), where the system tells."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{measure}:")), 0)


def _forget_peak() -> int:
    """Begin a new peak; the resident size at its beginning."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def main() -> None:
    """Run the cases that the command line names."""
    folder, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps(asdict(run_cases(seeds(folder), range(first, last), folder))))


if __name__ == "__main__":
    main()

"""Your file is data: bombs, pickles, endless lines and odd names cost an error, nothing else."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wedgewise.errors import FormatError, InputError, LimitError, MissingFileError, WedgewiseError
from wedgewise.read import read_edges
from wedgewise.read.text import BLOCK_BYTES
from wedgewise.stages.limits import Limits

MEBIBYTE = 2**20
BLOCKS = 7  # of a compressed text: one being decompressed, three waiting, three being cut into lines and parsed
TIGHT = Limits(decompressed_bytes=2 * MEBIBYTE)
BANNER = b"%%MatrixMarket matrix coordinate pattern general\n"


@contextmanager
def at_most(mebibytes: float, seconds: float = 5.0) -> Iterator[None]:
    """Fail when the block allocates more at its peak, or takes longer."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        yield
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak <= mebibytes * MEBIBYTE, f"{peak / MEBIBYTE:.1f} MiB at the peak"
    assert time.process_time() - begin <= seconds


def zstd(data: bytes) -> bytes:
    zstandard: Any = pytest.importorskip("zstandard")
    compressed: bytes = zstandard.ZstdCompressor().compress(data)
    return compressed


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}
BOMBS = {
    "text": (b"", b"1 2\n"),
    "blank": (b"", b" "),
    "bel32": (b"", b"\0"),
    "mtx": (BANNER + b"9 9 16000000\n", b"1 2\n"),
    "metis": (b"9 16000000\n", b"2 "),
}


def bomb(kind: str, inside: str) -> bytes:
    """64 MiB in one stream, or in 64 streams where compressing them at once takes long."""
    compress = COMPRESSORS[kind]
    begin, repeated = BOMBS[inside]
    if kind in ("gz", "zst"):
        return compress(begin + repeated * (64 * MEBIBYTE // len(repeated)))
    return compress(begin) + compress(repeated * (MEBIBYTE // len(repeated))) * 64


@pytest.mark.parametrize("kind", list(COMPRESSORS))
@pytest.mark.parametrize("inside", list(BOMBS))
def test_compression_bombs(tmp_path: Path, kind: str, inside: str) -> None:
    path = tmp_path / f"bomb.{kind}"
    path.write_bytes(bomb(kind, inside))
    format = None if inside == "blank" else inside
    with at_most(64), pytest.raises(LimitError):
        read_edges(path, format=format, limits=TIGHT, threads=1)


def test_a_compressed_line_without_end(tmp_path: Path) -> None:
    read_edges(io.BytesIO(b"1 2\n" * MEBIBYTE), threads=1)  # the compiler's time and memory are not the reader's
    path = tmp_path / "line.gz"
    path.write_bytes(gzip.compress(b"1" * (256 * MEBIBYTE), 1))
    with at_most(24), pytest.raises(LimitError, match=r"line\.gz:1: line bytes"):
        read_edges(path, threads=1)


@pytest.mark.parametrize("name", ["g.txt", "g.mtx", "g.metis"])
@pytest.mark.parametrize("byte", [b"1", b"a", b" ", b"%", b"\xe9"])
def test_one_endless_line(tmp_path: Path, name: str, byte: bytes) -> None:
    path = tmp_path / name
    path.write_bytes((BANNER if name == "g.mtx" else b"") + byte * (32 * MEBIBYTE))
    with at_most(16), pytest.raises(LimitError, match=f"{name}:{2 if name == 'g.mtx' else 1}: line bytes"):
        read_edges(path, threads=1)


@pytest.fixture(scope="module")
def kernels() -> None:
    """Loaded before anything is counted."""
    read_edges(io.BytesIO(b"1 2\n" * MEBIBYTE), threads=1)


@pytest.mark.parametrize("byte", [b"1", b"a", b" ", b"%", b"\xe9"])
@pytest.mark.parametrize("labels", ["int", "text"])
@pytest.mark.usefixtures("kernels")
def test_an_endless_line_behind_good_ones(tmp_path: Path, byte: bytes, labels: str) -> None:
    content = b"1 2\n" * 1000 + byte * (32 * MEBIBYTE)
    plain, packed = tmp_path / "g.txt", tmp_path / "g.gz"
    plain.write_bytes(content)
    with at_most(48), pytest.raises(LimitError, match=r"g\.txt:1001: line bytes"):
        read_edges(plain, labels=labels, threads=1)
    packed.write_bytes(gzip.compress(content, 1))
    with at_most(32 + BLOCKS * BLOCK_BYTES / MEBIBYTE), pytest.raises(LimitError, match=r"g\.gz:1001: line bytes"):
        read_edges(packed, labels=labels, threads=1)


def npy_header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


DECLARED = [
    ("g.mtx", BANNER + b"2000000000 2000000000 999999999999\n1 2\n"),
    ("g.mtx", BANNER + b"99999999999999999 99999999999999999 1\n1 2\n"),
    ("g.mtx", BANNER + b"9" * 400 + b" 1 1\n1 2\n"),
    ("g.metis", b"2000000000 999999999999\n2\n1\n"),
    ("g.metis", b"2000000000 0\n"),
    ("g.npy", npy_header("<i8", "(999999999999, 2)")),
    ("g.npy", npy_header("<i8", "(999999999999999999, 2)")),
    ("g.npy", npy_header("<i8", f"({'9' * 5000}, 2)")),
    ("g.npy", npy_header("<i8", f"({'1, ' * 3000}2)")),
    ("g.npy", npy_header("<i8", "(" * 9000)),
    ("g.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 99),
]


@pytest.mark.parametrize(("name", "content"), DECLARED)
@pytest.mark.parametrize("packed", [False, True])
def test_declared_sizes_are_not_believed(tmp_path: Path, name: str, content: bytes, packed: bool) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content) if packed else content)
    with at_most(8, seconds=1), pytest.raises(InputError):
        read_edges(path)


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def array_bytes(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def test_a_zip_bomb(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    pairs = 4 * MEBIBYTE
    path.write_bytes(archive({"edges.npy": npy_header("<i8", f"({pairs}, 2)") + bytes(16 * pairs)}))
    with at_most(8), pytest.raises(LimitError, match="decompressed bytes"):
        read_edges(path, limits=TIGHT)


def test_a_zip_member_that_declares_more_than_deflate_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    honest = archive({"edges.npy": array_bytes([[0, 1]])})
    size = struct.pack("<I", len(array_bytes([[0, 1]])))
    path.write_bytes(honest.replace(size, struct.pack("<I", 2**31)))
    with at_most(8), pytest.raises(FormatError, match=r"declares 2,147,483,648 bytes in \d+"):
        read_edges(path)


def test_overlapping_and_nameless_members(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    path.write_bytes(archive({f"{number}.npy": b"" for number in range(2000)}))
    with pytest.raises(FormatError, match="2,000 members"):
        read_edges(path)


@pytest.mark.parametrize("name", ["../../escaped.npy", "/tmp/escaped.npy", "a/../../escaped.npy", "edges.npy/"])
def test_names_in_an_archive_are_never_paths(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "inner" / "folder"
    folder.mkdir(parents=True)
    path = folder / "g.npz"
    path.write_bytes(archive({name: array_bytes([[0, 1]])}))
    before = sorted(tmp_path.rglob("*"))
    with suppress(FormatError):
        assert read_edges(path).pairs.tolist() == [[0, 1]]
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/escaped.npy").exists()


class Canary:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (os.mkdir, (str(self.path),))


def pickled_arrays(canary: Path) -> dict[str, bytes]:
    payload = pickle.dumps(Canary(canary))
    objects = npy_header("|O", "(1, 2)") + payload
    sparse = {"format.npy": objects, "shape.npy": objects, "indptr.npy": objects, "indices.npy": objects}
    return {
        "g.npy": objects,
        "short.npy": npy_header("|O8", "(1, 2)") + payload,
        "evaluated.npy": b"\x93NUMPY\x01\x00\x3a\x00" + f"__import__('os').mkdir({str(canary)!r})".ljust(58).encode(),
        "g.npz": archive({"edges.npy": objects}),
        "raw.npz": archive({"edges.npy": payload}),
        "sparse.npz": archive(sparse),
        "g.pickle": payload,
        "g.txt": payload,
        "g.npy.gz": gzip.compress(objects),
    }


def test_the_canary_sings_when_unpickled(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    pickle.loads(pickle.dumps(Canary(canary)))
    assert canary.exists()


@pytest.mark.parametrize("name", list(pickled_arrays(Path("x"))))
def test_nothing_is_unpickled(tmp_path: Path, name: str) -> None:
    canary = tmp_path / "canary"
    path = tmp_path / name
    path.write_bytes(pickled_arrays(canary)[name])
    for format in (None, "npy", "npz"):
        with pytest.raises(WedgewiseError):
            read_edges(path, format=format)
    assert not canary.exists()


ODD_IDS = ["nan", "1.5", "-1", "1_000", "٣", "1e3", "0x10", "+1", "９", "1\u00a0", str(2**63), "inf"]


@pytest.mark.parametrize("odd", ODD_IDS)
@pytest.mark.parametrize("name", ["g.txt", "g.mtx", "g.metis"])
def test_odd_ids_are_errors(tmp_path: Path, name: str, odd: str) -> None:
    text = {
        "g.txt": "".join(f"{row} {row + 1}\n" for row in range(50)) + f"{odd} 3\n",
        "g.mtx": f"{BANNER.decode()}9 9 2\n1 2\n{odd} 3\n",
        "g.metis": f"3 2\n2\n1 3\n{odd}\n",
    }[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    line = {"g.txt": 51, "g.mtx": 4, "g.metis": 4}[name]
    with pytest.raises(FormatError) as caught:
        read_edges(path)
    assert caught.value.line == line
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("large", [2**31 - 1, 2**31, 2**32, 2**63 - 1])
def test_large_ids_are_labels(tmp_path: Path, large: int) -> None:
    text = tmp_path / "g.txt"
    text.write_text(f"0 {large}\n")
    array = tmp_path / "g.npy"
    np.save(array, np.array([[0, large]]))
    raw = tmp_path / "g.bel64"
    raw.write_bytes(struct.pack("<qq", 0, large))
    for path in (text, array, raw):
        assert read_edges(path).pairs.tolist() == [[0, large]]


def test_links_are_followed_and_folders_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("0 1\n")
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_edges(link).pairs.tolist() == [[0, 1]]
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("dangling", "loop", "missing", "."):
        with pytest.raises(MissingFileError):
            read_edges(tmp_path / name)
    folder_link = tmp_path / "folder"
    folder_link.symlink_to(tmp_path)
    with pytest.raises(MissingFileError):
        read_edges(folder_link)


def test_a_broken_checksum_inside_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    content = bytearray(archive({"edges.npy": array_bytes([[0, 1], [1, 2]])}, zipfile.ZIP_STORED))
    content[content.index(b"NUMPY") + 130] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match='is no readable zip archive: "Bad CRC-32'):
        read_edges(path)


def test_a_deflate_stream_cut_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "g.txt.gz"
    whole = zlib.compress(b"0 1\n" * 10_000, wbits=31)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WedgewiseError):
        read_edges(path)


def test_a_broken_checksum_behind_the_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    content = bytearray(archive({"edges.npy": array_bytes(np.zeros((100_000, 2), np.int64))}, zipfile.ZIP_STORED))
    content[1_000_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match='is no readable zip archive: "Bad CRC-32'):
        read_edges(path)


def test_a_member_that_holds_less_than_it_declares(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    cut_off = npy_header("<i8", "(1000, 2)") + bytes(999 * 16)
    whole = archive({"edges.npy": cut_off})
    path.write_bytes(whole.replace(struct.pack("<I", len(cut_off)), struct.pack("<I", len(cut_off) + 16)))
    with pytest.raises(FormatError, match=r"a member that is cut off: 'edges\.npy'"):
        read_edges(path)

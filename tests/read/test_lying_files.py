"""Files that change while they are read, streams that have nothing now, odd types of arrays, misleading beginnings."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import select
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wedgewise as ww
from wedgewise.errors import FormatError, InputError, WedgewiseError
from wedgewise.read import content as content_module
from wedgewise.read import read_edges, sniff
from wedgewise.write.edges import write_edges

PAIRS = np.random.default_rng(5).integers(0, 1000, (200_000, 2)).astype(np.int32)
LIKE_GZIP = np.array([[0x00088B1F, 1], [1, 2], [2, 0x00088B1F]], "<i4")
SUFFIXES = ["txt", "bel32", "npy", "npz", "mtx", "metis", "parquet", "arrow"]


def simple_pairs() -> Any:
    return np.unique(PAIRS[PAIRS[:, 0] < PAIRS[:, 1]], axis=0)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / f"g.{suffix}"
    write_edges(simple_pairs(), path, vertices=1000)
    really = sniff.sniff

    def cut(content: Any) -> str:
        format = really(content)
        os.truncate(path, path.stat().st_size // 3)
        return format

    monkeypatch.setattr(sniff, "sniff", cut)
    with pytest.raises(FormatError) as caught:
        read_edges(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", ["txt", "bel32", "npy"])
def test_a_file_that_was_cut_is_told_by_its_sizes(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"g.{suffix}"
    write_edges(PAIRS, path)
    size, really = path.stat().st_size, content_module._Plain._read_at

    def cut(self: Any, at: int, room: Any) -> None:
        if len(room) > 2**19:
            os.truncate(path, 1000)
        really(self, at, room)

    monkeypatch.setattr(content_module._Plain, "_read_at", cut)
    with pytest.raises(FormatError, match=rf"has [\d,]+ bytes, and had {size:,} when it was opened; wait until"):
        ww.count(path)


def test_what_is_written_behind_the_end_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.txt"
    path.write_bytes(b"1 2\n2 3\n")
    really = sniff.sniff

    def lengthen(content: Any) -> str:
        with path.open("ab") as file:
            file.write(b"3 1\n")
        return really(content)

    monkeypatch.setattr(sniff, "sniff", lengthen)
    assert read_edges(path).pairs.tolist() == [[1, 2], [2, 3]]


def fed(pieces: list[bytes]) -> tuple[int, threading.Thread]:
    """A pipe that does not block, with a thread that fills it slowly."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def feed() -> None:
        for piece in pieces:
            time.sleep(0.02)
            os.write(writing, piece)
        os.close(writing)

    feeder = threading.Thread(target=feed)
    feeder.start()
    return reading, feeder


@pytest.mark.parametrize("buffering", [0, -1])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_stream_that_does_not_block_is_waited_for(buffering: int, compress: Any) -> None:
    data = compress(b"0 1\n1 2\n2 0\n")
    reading, feeder = fed([data[at : at + 5] for at in range(0, len(data), 5)])
    with open(reading, "rb", buffering=buffering) as stream:
        assert read_edges(stream).pairs.tolist() == [[0, 1], [1, 2], [2, 0]]
    feeder.join()


def test_standard_input_that_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, feeder = fed([b"0 1\n", b"1 2\n", b"2 0\n"])
    with open(reading) as standard_input:
        monkeypatch.setattr("sys.stdin", standard_input)
        assert ww.count("-") == 1
    feeder.join()


class Refusing:
    """A pipe that does not block, and says so as the system does; asked what to wait for, it gets its next bytes."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)

    def read(self, size: int) -> bytes:
        return os.read(self.reading, size)

    def fileno(self) -> int:
        if self.pieces:
            os.write(self.writing, self.pieces.pop(0))
        else:
            os.close(self.writing)
        return self.reading


@pytest.mark.parametrize("polls", [True, False])
def test_a_stream_that_refuses_to_block_is_waited_for(polls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not polls:
        monkeypatch.delattr(select, "poll", raising=False)
    stream = Refusing([b"0 1\n", b"1 2\n2 ", b"0\n"])
    assert ww.count(stream) == 1
    assert stream.pieces == []
    os.close(stream.reading)


def test_a_stream_that_cannot_be_waited_for_is_refused() -> None:
    class Nothing(io.RawIOBase):
        def read(self, size: int = -1) -> None:
            return None

    with pytest.raises(InputError, match=r"<stream>: has no bytes now .* pass a stream that waits for them"):
        read_edges(Nothing())  # type: ignore[arg-type]


def test_files_that_were_opened_as_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_bytes(b"0 1\n")
    with open(path) as file, pytest.raises(InputError, match=r"g\.txt: gives str, not bytes; open it with open\(path"):
        ww.read(file)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="<stream>: gives str"):
        ww.Graph(io.StringIO("0 1\n"))


def test_what_is_neither_path_nor_stream_is_refused() -> None:
    with pytest.raises(InputError, match="bytes: is neither a path nor a file"):
        read_edges(b"0 1\n")  # type: ignore[arg-type]


@pytest.mark.parametrize(("dtype", "n"), [("u1", 300), ("i1", 300), ("u2", 70_000), ("i2", 70_000)])
def test_columns_of_a_sparse_matrix_may_be_narrower_than_its_rows(tmp_path: Path, dtype: str, n: int) -> None:
    columns = np.array([5, 7, 9], dtype)
    offsets = np.zeros(n + 1, np.int64)
    offsets[n - 2 :] = [1, 2, 3]
    np.savez(tmp_path / "g.npz", indices=columns, indptr=offsets, shape=np.array([n, n]), format=np.array(b"csr"))
    found = read_edges(tmp_path / "g.npz")
    assert found.pairs.tolist() == [[n - 3, 5], [n - 2, 7], [n - 1, 9]]
    assert found.vertices == n


@pytest.mark.parametrize("others", ["i8", "u8", "u1", ">i4"])
def test_ends_of_any_two_types(tmp_path: Path, others: str) -> None:
    ends: dict[str, Any] = {"row": np.array([0, 1, 2], "u8"), "col": np.array([1, 2, 0], others)}
    np.savez(tmp_path / "g.npz", **ends, shape=np.array([3, 3]), format=np.array(b"coo"))
    assert read_edges(tmp_path / "g.npz").pairs.tolist() == [[0, 1], [1, 2], [2, 0]]


@pytest.mark.parametrize("layout", ["csr", "coo", "edges"])
def test_negative_sizes_are_refused(tmp_path: Path, layout: str) -> None:
    one = np.array([0])
    if layout == "edges":
        np.savez(tmp_path / "g.npz", edges=np.array([[0, 1]]), n=np.array(-5))
    else:
        arrays: dict[str, Any] = {"indices": one, "indptr": one, "row": one, "col": one}
        np.savez(tmp_path / "g.npz", **arrays, shape=np.array([-5, -5]), format=np.array(layout.encode()))
    with pytest.raises(FormatError, match="-5 vertices; the number of vertices is 0 or more"):
        read_edges(tmp_path / "g.npz")


def test_offsets_that_only_seem_to_ascend(tmp_path: Path) -> None:
    offsets = np.array([0, 2**62 + 5, -(2**62) - 5, 1])  # each step is positive in 64 bits
    np.savez(tmp_path / "g.npz", indices=np.array([0]), indptr=offsets, shape=np.array([3, 3]), format=np.array(b"csr"))
    with pytest.raises(FormatError, match="'indptr' does not go from 0 up"):
        read_edges(tmp_path / "g.npz")


@pytest.mark.parametrize("format", [None, "bel", "bel32"])
def test_raw_pairs_may_begin_like_a_compressed_file(tmp_path: Path, format: str | None) -> None:
    path = tmp_path / "g.bel"
    write_edges(LIKE_GZIP, path)
    assert read_edges(path, format=format).pairs.tolist() == LIKE_GZIP.tolist()
    assert ww.count(ww.read(path, format=format)) == 1
    packed = tmp_path / "g.bel.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_edges(packed, format=format).pairs.tolist() == LIKE_GZIP.tolist()


def test_raw_pairs_from_a_stream_may_too() -> None:
    raw = np.concatenate([LIKE_GZIP, PAIRS]).astype("<i4").tobytes()
    for data in (raw, gzip.compress(raw), bz2.compress(raw)):
        assert read_edges(io.BytesIO(data), format="bel32").pairs.tobytes() == raw


@pytest.mark.parametrize("first", [67_324_752, 827_474_256, 0x4D554E93, 0x4F525241])  # PK.., PAR1, .NUM, ARRO
@pytest.mark.parametrize("second", [0, 1, 20, 21])
def test_raw_pairs_may_begin_like_another_format(tmp_path: Path, first: int, second: int) -> None:
    pairs = np.array([[first, second], [second, 5], [5, first]], "<i4")
    write_edges(pairs, tmp_path / "g.bel")
    assert read_edges(tmp_path / "g.bel").pairs.tolist() == pairs.tolist()


@pytest.mark.parametrize("name", ["PAR1", "BZh", "BZh9", "BZh91AY", "PK", "ARROW1"])
@pytest.mark.parametrize("format", [None, "text"])
def test_names_may_begin_like_a_signature(tmp_path: Path, name: str, format: str | None) -> None:
    path = tmp_path / "g.txt"
    path.write_text(f"{name} ada\nada bob\nbob {name}\n")
    graph = ww.read(path, format=format)
    assert list(graph.labels) == [name, "ada", "bob"]
    assert ww.count(graph) == 1


def test_a_damaged_signature_is_still_named(tmp_path: Path) -> None:
    for data in (b"\x1f\x8b\x08\x00nothing else", b"BZh91AY&SYnothing else", b"PAR1\x15\x04\x15nothing else"):
        (tmp_path / "g").write_bytes(data)
        with pytest.raises(WedgewiseError, match=r"fetch the file again|is damaged"):
            read_edges(tmp_path / "g")

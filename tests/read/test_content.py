"""Bytes in, whatever the wrapping."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import zstandard

from wedgewise.errors import (
    FormatError,
    InputError,
    LimitError,
    MemoryLimitError,
    MissingDependencyError,
    MissingFileError,
    WedgewiseError,
)
from wedgewise.read import _byte_pieces, _decompress, read_edges
from wedgewise.read import content as content_module
from wedgewise.read.content import open_content
from wedgewise.stages.limits import Limits

TEXT = b"".join(b"%d %d\n" % (i, i * i % 1009) for i in range(20_000))
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda text: zstandard.ZstdCompressor().compress(text),
}
ALL = Limits()
SIGNATURE_BYTES = 10  # of the longest of a compression


def write(folder: Path, data: bytes, name: str = "graph.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def all_blocks(path: Path, size: int) -> list[bytes]:
    with open_content(path, ALL) as content:
        return [block.tobytes() for block in content.blocks(size)]


def test_a_plain_file_is_read_as_often_as_one_likes(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    with open_content(str(path), ALL) as content:
        assert (content.name, content.path, content.compression) == (str(path), path, None)
        assert content.head(7) == TEXT[:7]
        assert content.whole().tobytes() == TEXT
        for _ in range(2):
            assert b"".join(block.tobytes() for block in content.blocks(100)) == TEXT
        kept = content.whole()
    assert kept[:7].tobytes() == TEXT[:7]


@pytest.mark.parametrize("kind", COMPRESS)
def test_compression_is_known_by_content(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, COMPRESS[kind](TEXT), "no-suffix")
    with open_content(path, ALL) as content:
        assert content.compression == kind
        assert content.head(10) == TEXT[:10]
        assert content.head(100_000) == TEXT[:100_000]
        assert content.whole().tobytes() == TEXT
        assert content.head(10) == TEXT[:10]
        assert b"".join(block.tobytes() for block in content.blocks(1000)) == TEXT
    assert all_blocks(path, 1000) == [TEXT[at : at + 1000] for at in range(0, len(TEXT), 1000)]


@pytest.mark.parametrize("kind", COMPRESS)
def test_members_are_concatenated(tmp_path: Path, kind: str) -> None:
    compress = COMPRESS[kind]
    data = compress(TEXT[:999]) + compress(b"") + compress(TEXT[999:])
    assert b"".join(all_blocks(write(tmp_path, data), 2**20)) == TEXT


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_zeros_after_members_are_padding(tmp_path: Path, kind: str) -> None:
    data = COMPRESS[kind](TEXT) + bytes(512)
    assert b"".join(all_blocks(write(tmp_path, data), 2**20)) == TEXT


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_truncated_stream_is_named(tmp_path: Path, kind: str, keep: float) -> None:
    data = COMPRESS[kind](TEXT)
    path = write(tmp_path, data[: int(len(data) * keep)])
    with open_content(path, ALL) as content, pytest.raises(FormatError) as caught:
        content.whole()
    assert str(caught.value) == f"{path}: {kind} stream ends too early; fetch the file again"


@pytest.mark.parametrize("kind", COMPRESS)
def test_garbage_after_a_member_is_corrupt(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, COMPRESS[kind](TEXT) + b"garbage, not a member")
    with pytest.raises(FormatError, match=f"{kind} stream is corrupt .*; fetch the file again"):
        all_blocks(path, 2**20)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_flipped_byte_is_corrupt(tmp_path: Path, kind: str) -> None:
    data = bytearray(COMPRESS[kind](TEXT))
    data[len(data) // 2] ^= 0x55
    with pytest.raises(FormatError, match="fetch the file again"):
        all_blocks(write(tmp_path, bytes(data)), 2**20)


@pytest.mark.parametrize("kind", COMPRESS)
def test_bomb_stops_at_the_cap(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, COMPRESS[kind](bytes(50 * 2**20)))
    with (
        open_content(path, Limits(decompressed_bytes=3 * 2**20)) as content,
        pytest.raises(LimitError) as caught,
    ):
        content.whole()
    over = int(str(caught.value).split("decompressed bytes ")[1].split(" ")[0].replace(",", ""))
    assert 3 * 2**20 < over < 40 * 2**20
    assert "raise it with limits=Limits(decompressed_bytes=…)" in str(caught.value)


@pytest.mark.parametrize("kind", ["xz", "zst"])
def test_a_window_larger_than_what_is_left_is_refused(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, COMPRESS[kind](TEXT))
    said = rf"graph\.txt: the {kind} stream asks for more memory to decompress it than there is; raise the limit, or"
    with open_content(path, Limits(memory_bytes=1)) as content, pytest.raises(MemoryLimitError, match=said):
        next(content.blocks(2**20))


def test_gz_output_that_ends_with_a_full_piece(tmp_path: Path) -> None:
    data = bytes(3 * _decompress.PIECE_BYTES)
    assert b"".join(all_blocks(write(tmp_path, gzip.compress(data)), 2**20)) == data


def test_gz_without_its_checksum_is_truncated(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(TEXT)[:-8])
    with pytest.raises(FormatError, match="ends too early"):
        all_blocks(path, 2**20)


@pytest.mark.parametrize("data", [b"", gzip.compress(b"")], ids=["plain", "gz"])
def test_empty_is_fine(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data)
    with open_content(path, ALL) as content:
        assert content.head(10) == b""
        assert content.whole().dtype == np.uint8
        assert len(content.whole()) == 0
        assert list(content.blocks(10)) == []


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "absent.txt"
    with pytest.raises(MissingFileError) as caught:
        open_content(path, ALL)
    assert str(caught.value) == f"{path}: no such file; check the path"


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as caught:
        open_content(tmp_path, ALL)
    assert str(caught.value) == f"{tmp_path}: is a folder; name a file in it"


def test_nul_in_the_path() -> None:
    with pytest.raises(MissingFileError, match="is no path"):
        open_content("a\0b", ALL)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(MissingFileError) as caught:
        open_content("secret.txt", ALL)
    monkeypatch.undo()
    assert str(caught.value) == "secret.txt: cannot be opened (Permission denied); check its permissions"


def test_read_failure_is_ours() -> None:
    class Broken(io.RawIOBase):
        reads = 0

        def read(self, size: int = -1) -> bytes:
            self.reads += 1
            if self.reads > 1:
                raise OSError(5, "Input/output error")
            return b"0 1\n0 1\n"[:size]

    with pytest.raises(MissingFileError, match="<stream>: cannot be read"):
        open_content(Broken(), ALL)  # type: ignore[arg-type]


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    with open_content("-", ALL) as content:
        assert (content.name, content.path, content.compression) == ("<stdin>", None, "gz")
        assert content.whole().tobytes() == TEXT


def test_stdin_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    with (
        open_content("-", Limits(decompressed_bytes=100)) as content,
        pytest.raises(LimitError, match="<stdin>"),
    ):
        content.head(10)


def test_stream_stays_open() -> None:
    stream = io.BytesIO(TEXT)
    with open_content(stream, ALL) as content:
        assert content.name == "<stream>"
        assert b"".join(block.tobytes() for block in content.blocks(1000)) == TEXT
    assert not stream.closed


def test_pipe_with_short_reads(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def feed() -> None:
        with open(fifo, "wb", buffering=0) as out:
            for byte in b"\x1f\x8b":
                out.write(bytes([byte]))
            out.write(gzip.compress(TEXT)[2:])

    feeder = threading.Thread(target=feed)
    feeder.start()
    with open_content(fifo, ALL) as content:
        assert content.whole().tobytes() == TEXT
    feeder.join()


def test_stream_is_read_once(tmp_path: Path) -> None:
    with open_content(write(tmp_path, gzip.compress(TEXT)), ALL) as content:
        assert sum(len(block) for block in content.blocks(2**20)) == len(TEXT)
        for again in (content.whole, lambda: content.blocks(10), lambda: content.head(1)):
            with pytest.raises(InputError, match="can be read once; open it again"):
                again()


def test_stopping_early_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with open_content(write(tmp_path, gzip.compress(TEXT)), ALL) as content:
        blocks = content.blocks(1000)
        assert next(blocks).tobytes() == TEXT[:1000]
    assert threading.active_count() == before


def test_zst_without_a_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("the standard library has zst")
    path = write(tmp_path, COMPRESS["zst"](TEXT))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with open_content(path, ALL) as content, pytest.raises(MissingDependencyError) as caught:
        content.whole()
    assert str(caught.value) == "zst files need the package zstandard: pip install 'wedgewise[zstd]'"


def fault_of(path: Path) -> str | None:
    with open_content(path, Limits(decompressed_bytes=2**20)) as content:
        try:
            content.whole()
        except (FormatError, LimitError) as error:
            return str(error)
    return None


@pytest.mark.parametrize("kind", COMPRESS)
def test_every_mutation_of_a_member_reads_or_is_named(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(3)
    whole = COMPRESS[kind](TEXT[:400])
    for case in range(60):
        data = bytearray(whole)
        data[rng.integers(SIGNATURE_BYTES, len(data))] ^= 1 << int(rng.integers(8))
        path = write(tmp_path, bytes(data), f"{kind}{case}")
        fault = fault_of(path)
        assert fault is None or fault.startswith(f"{path}: ")


def test_zlib_is_not_taken_for_gz(tmp_path: Path) -> None:
    with open_content(write(tmp_path, zlib.compress(TEXT)), ALL) as content:
        assert content.compression is None


def test_a_system_that_reads_at_no_position_reads_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "preadv")
    with open_content(write(tmp_path, TEXT), ALL) as content:
        assert content.whole().tobytes() == TEXT


def test_a_file_is_closed_when_opening_fails_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[BinaryIO] = []

    def interrupted(file: BinaryIO) -> None:
        seen.append(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(content_module, "_size_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_content(write(tmp_path, TEXT), ALL)
    assert seen[0].closed


def test_standard_input_as_a_stream_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    with open_content(sys.stdin.buffer, ALL) as content:
        assert content.name == "<stdin>"


def test_no_piece_is_made_ahead_once_nobody_wants_more() -> None:
    pieces = iter([b"first", b"second"])
    ahead = _byte_pieces._PieceQueue(pieces)
    ahead.stop()
    ahead.produce()
    assert (ahead.take(), list(pieces)) == (b"", [b"second"])


def test_a_disk_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    path = write(tmp_path, TEXT)
    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(WedgewiseError, match=f"{re.escape(str(path))}.*Input/output error"), open_content(path, ALL):
        pass


def test_padding_between_members_may_be_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    padded = gzip.compress(TEXT) + bytes(2 * _decompress._INPUT_BYTES) + gzip.compress(TEXT)
    with open_content(write(tmp_path, padded, "padded.gz"), ALL) as content:
        assert content.whole().tobytes() == 2 * TEXT


@pytest.mark.parametrize("ours", [MemoryError, TypeError])
def test_what_is_no_error_of_a_decompressor_is_no_fault_of_the_file(ours: type[Exception]) -> None:
    class Failing:
        def decompress(self, *_: Any) -> bytes:
            raise ours

    with pytest.raises(ours):
        _decompress._next_piece(Failing(), b"", "gz", "file.gz")


def test_a_closed_standard_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(MissingFileError, match="<stdin>: is closed; name a file"):
        read_edges("-")

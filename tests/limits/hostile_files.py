"""Small files that ask for much memory, and how they are made in little: none of them is built whole anywhere."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MEBIBYTE = 1 << 20


def _repeated(text: bytes, mebibytes: int) -> Iterator[bytes]:
    piece = text * (MEBIBYTE // len(text))
    return (piece for _ in range(mebibytes))


def xz_text(path: Path, mebibytes: int = 96) -> None:
    """Lines of integers, one edge over and over."""
    packer = lzma.LZMACompressor(preset=0)
    with path.open("wb") as file:
        for piece in _repeated(b"1 2\n", mebibytes):
            file.write(packer.compress(piece))
        file.write(packer.flush())


def xz_names(path: Path, mebibytes: int = 24) -> None:
    """Lines of names, no two alike."""
    packer = lzma.LZMACompressor(preset=0)
    with path.open("wb") as file:
        for part in range(mebibytes):
            names = range(part * 50_000, (part + 1) * 50_000)
            file.write(packer.compress(b"".join(b"n%07d m%07d\n" % (name, name) for name in names)))
        file.write(packer.flush())


def xz_dictionary(path: Path) -> None:
    """A header that asks for a dictionary of 4 GiB, with valid checksums."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0}]
    data = bytearray(lzma.compress(b"1 2\n" * MEBIBYTE, format=lzma.FORMAT_XZ, filters=filters))
    size = (data[12] + 1) * 4
    block = data[12 : 12 + size]
    at = block.index(bytes([lzma.FILTER_LZMA2, 1])) + 2
    block[at] = 40  # 4 GiB - 1
    block[-4:] = struct.pack("<I", zlib.crc32(bytes(block[:-4])))
    data[12 : 12 + size] = block
    path.write_bytes(data)


def zst_window(path: Path) -> None:
    """A frame whose window is 128 MiB, the largest that is taken unasked."""
    zstandard = pytest.importorskip("zstandard")
    how = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=how).compressobj()
    with path.open("wb") as file:
        for piece in _repeated(b"1 2\n", 160):
            file.write(packer.compress(piece))
        file.write(packer.flush())


def npz_bytes(path: Path, mebibytes: int = 64) -> None:
    """An array of one-byte ids, which take eight times as much in memory."""
    size = mebibytes * MEBIBYTE
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 2), }" % (size // 2)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("edges.npy", "w") as member:
        member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n")
        for piece in _repeated(bytes(2), mebibytes):
            member.write(piece)


def npy_columns(path: Path, mebibytes: int = 64) -> None:
    """A plain array in Fortran's order, mostly holes, that takes no disk."""
    size = mebibytes * MEBIBYTE
    header = b"{'descr': '|u1', 'fortran_order': True, 'shape': (%d, 2), }" % (size // 2)
    with path.open("wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n")
        file.truncate(file.tell() + size)


def raw_holes(path: Path, mebibytes: int = 256) -> None:
    """Raw pairs of zeros, all of them holes."""
    with path.open("wb") as file:
        file.truncate(mebibytes * MEBIBYTE)


def zip_of_many(path: Path) -> None:
    """An archive that lists half a million members."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    count = 500_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(entry) * count, 4, 0)
    path.write_bytes(b"PK\x03\x04" + entry * count + end)


def endless_line(path: Path, mebibytes: int = 64) -> None:
    """One line that does not end."""
    with path.open("wb") as file:
        file.write(b"1 2\n3 4\n5 ")
        for piece in _repeated(b"6", mebibytes):
            file.write(piece)


FILES: dict[str, Callable[[Path], None]] = {
    "text.xz": xz_text,
    "names.xz": xz_names,
    "dictionary.xz": xz_dictionary,
    "window.zst": zst_window,
    "bytes.npz": npz_bytes,
    "columns.npy": npy_columns,
    "holes.bel32": raw_holes,
    "members.npz": zip_of_many,
    "line.txt": endless_line,
}

"""Members of a tar archive are bytes: links, devices, pipes and odd names lead nowhere, and bombs stop at a limit."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from wedgewise.datasets.obtain import read_graph
from wedgewise.errors import FormatError, InputError, LimitError
from wedgewise.read.limits import Limits

EDGES = b"0 1\n1 2\n0 2\n"
SECRET = b"7 8\n8 9\n7 9\n"


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, target, size
    return made


def archive(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as file:  # type: ignore[call-overload]
        for member, content in members:
            file.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder within another, beside a file that no archive may read."""
    (tmp_path / "secret").write_bytes(SECRET)
    inner = tmp_path / "inner"
    inner.mkdir()
    return inner


@pytest.mark.parametrize("name", ["../out.x", "/tmp/out.x", "a/../../out.x", "out.\udcff", "out." + "x" * 5000])
def test_names_of_members_are_never_paths(folder: Path, name: str) -> None:
    path = archive(folder / "g.tar.gz", [(entry(name, size=len(EDGES)), EDGES)])
    before = sorted(folder.parent.rglob("*"))
    assert read_graph(path).m == 3
    assert sorted(folder.parent.rglob("*")) == before
    assert not Path("/tmp/out.x").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE], ids=["symbolic", "hard"])
@pytest.mark.parametrize("target", ["{secret}", "../secret", "out.x", "nothing"])
def test_links_are_not_followed(folder: Path, kind: bytes, target: str) -> None:
    link = entry("x/out.x", kind, target.format(secret=folder.parent / "secret"))
    with pytest.raises(FormatError, match="the archive"):
        read_graph(archive(folder / "g.tar.gz", [(link, b"")]))


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE])
def test_what_is_no_file_is_passed_over(folder: Path, kind: bytes) -> None:
    odd = entry("x/out.x", kind)
    with pytest.raises(FormatError, match=r"neither out[.]NAME nor NAME[.]mtx"):
        read_graph(archive(folder / "g.tar.gz", [(odd, b"")]))
    followed = archive(folder / "h.tar.gz", [(odd, b""), (entry("out.x", size=len(EDGES)), EDGES)])
    assert read_graph(followed).m == 3


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_a_bomb_stops_at_the_limit(folder: Path, mode: str) -> None:
    content = b"0 1\n" * (1 << 17)
    path = archive(folder / f"g.tar.{mode[2:]}", [(entry("out.x", size=len(content)), content)], mode)
    with pytest.raises(LimitError, match="decompressed bytes"):
        read_graph(path, limits=Limits(decompressed_bytes=1 << 18))


@pytest.mark.parametrize("size", [1 << 20, 1 << 40, (1 << 63) - 1])
def test_a_member_that_declares_more_than_there_is(folder: Path, size: int) -> None:
    header = entry("out.x", size=size).tobuf(tarfile.GNU_FORMAT)
    path = folder / "g.tar"
    path.write_bytes(header + EDGES.ljust(512, b"\0"))
    with pytest.raises(InputError):
        read_graph(path)

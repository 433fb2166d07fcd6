"""Members of a tar archive are bytes: links, devices, pipes and odd names lead nowhere, and bombs stop at a limit."""

from __future__ import annotations

import gzip
import io
import lzma
import random
import tarfile
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from wedgewise.datasets.obtain import read_graph
from wedgewise.errors import FormatError, InputError, LimitError
from wedgewise.stages.limits import Limits

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


def raw(kind: bytes, size: int, name: str = "x", content: bytes = b"") -> bytes:
    """A header as it is written, and what follows it."""
    return entry(name, kind, size=size).tobuf(tarfile.GNU_FORMAT) + content.ljust(-(-len(content) // 512) * 512, b"\0")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE])
def test_a_header_takes_no_more_memory_than_a_name_needs(folder: Path, kind: bytes) -> None:
    path = folder / "g.tar.xz"
    with lzma.open(path, "wb", preset=0) as file:
        file.write(raw(kind, 64 << 20))
        for _ in range(64):
            file.write(b"a" * (1 << 20))
        file.write(raw(tarfile.REGTYPE, len(EDGES), "out.x", EDGES))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=r"holds a name or facts of 67,108,864 bytes, over the limit of 65,536"):
            read_graph(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_member_has_a_few_facts(folder: Path) -> None:
    """Each takes time, and a small archive can hold millions of them."""
    out = entry("out.x", size=len(EDGES)), EDGES
    for count in (1000, 1001):
        facts = b"5 a=\n" * count
        path = archive(folder / "g.tar.gz", [(entry("x", tarfile.XHDTYPE, size=len(facts)), facts), out])
        if count == 1000:
            assert read_graph(path).m == 3
        else:
            with pytest.raises(FormatError, match="the archive holds over 1,000 facts about a member; unpack it"):
                read_graph(path)


def test_many_headers_are_not_kept(folder: Path) -> None:
    names = raw(tarfile.GNUTYPE_LONGNAME, 5, content=b"out.y") * 2000 + raw(tarfile.DIRTYPE, 0)
    path = folder / "g.tar.gz"
    edges = raw(tarfile.REGTYPE, len(EDGES), "out.x", EDGES)
    path.write_bytes(gzip.compress(names + raw(b"0", 0) * 5000 + edges, 1))
    assert read_graph(path).m == 3


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("name", ["out.x", "a/" * 60 + "out.x", "a" * 140 + "/out.x", "é/out.é"])
def test_archives_of_every_form_are_read(folder: Path, form: int, name: str) -> None:
    path = folder / "g.tar"
    with tarfile.open(path, "w", format=form) as file:
        file.addfile(entry("a/README", size=700), io.BytesIO(bytes(700)))
        file.addfile(entry(name, size=len(EDGES)), io.BytesIO(EDGES))
    assert read_graph(path).m == 3


def test_a_size_beside_the_header_counts(folder: Path) -> None:
    facts = b"11 size=%d\n" % len(EDGES)
    path = folder / "g.tar"
    path.write_bytes(raw(tarfile.XHDTYPE, len(facts), content=facts) + raw(b"0", 0, "out.x", EDGES))
    assert read_graph(path).m == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (raw(tarfile.GNUTYPE_SPARSE, 0, "out.x"), "holds a sparse file"),
        (raw(tarfile.XHDTYPE, 22, content=b"22 GNU.sparse.major=1\n"), "holds a sparse file"),
        (raw(tarfile.XHDTYPE, 9, content=b"99 a=b\nxx"), "the facts about a member cannot be read"),
        (raw(tarfile.XHDTYPE, 4, content=b"path"), "the facts about a member cannot be read"),
        (raw(tarfile.XHDTYPE, 9, content=b"9 size=x\n"), "a size is not a number"),
        (raw(b"0", 5)[:100] + b"9" * 412, "a field of a header is not a number"),
        (raw(b"0", 5).replace(b"x", b"y"), "another checksum"),
        (raw(b"0", 5)[:300], "it ends too early"),
        (raw(b"0", 5000), "it ends too early"),
        (raw(tarfile.GNUTYPE_LONGNAME, 5000), "it ends too early"),
        (raw(b"0", 5000, "out.x", EDGES), "it ends too early"),
    ],
)
def test_damage_is_named(folder: Path, content: bytes, said: str) -> None:
    path = folder / "g.tar"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=said):
        read_graph(path)


@pytest.mark.parametrize("seed", range(10))
def test_damaged_archives_raise_our_errors_alone(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    facts = b"14 path=out.x\n"
    whole = raw(tarfile.XHDTYPE, 14, content=facts) + raw(tarfile.REGTYPE, len(EDGES), "x", EDGES) + bytes(1024)
    for _ in range(20):
        content = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path = folder / "g.tar"
        path.write_bytes(content[: chance.randrange(len(content) + 1)])
        with suppress(InputError):
            read_graph(path)

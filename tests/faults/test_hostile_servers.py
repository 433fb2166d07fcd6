"""Servers that answer with nonsense: one `WedgewiseError` each, nothing left behind, no file longer than it can be."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.http_server import Loopback, Served, answering, loopback

from wedgewise import datasets
from wedgewise.datasets import fetch as fetching
from wedgewise.datasets import obtain
from wedgewise.datasets.fetch import fetch
from wedgewise.datasets.urls import file_name
from wedgewise.errors import DownloadError

OK = b"HTTP/1.1 200 OK\r\n"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: "
CLOSE = b"\r\nConnection: close\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
CHUNK = b"1000\r\n%b\r\n" % bytes(4096)
PARTIAL = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/"
MOST = 1 << 16
LONG_BODY = 1 << 24
REPLIES: dict[str, tuple[bytes, str]] = {
    "no reason": (b"HTTP/1.1 404\r\n\r\n", "the server answers 404;"),
    "an empty reason": (b"HTTP/1.1 404 \r\n\r\n", "the server answers 404;"),
    "a long reason": (b"HTTP/1.1 404 " + b"x" * 60_000 + b"\r\n\r\n", "the server answers 404 xxx"),
    "no status": (b"HTTP/1.1 abc\r\n\r\n", "no answer"),
    "no HTTP": (b"\x16\x03\x01" * 30_000, "no answer"),
    "nothing": (b"", "no answer"),
    "a length of 5,000 digits": (OK + b"Content-Length: " + b"9" * 5000 + CLOSE, "a length that is not a number"),
    "a length in words": (OK + b"Content-Length: many" + CLOSE, "a length that is not a number"),
    "a negative length": (OK + b"Content-Length: -1" + CLOSE, "a length that is not a number"),
    "a length that is too large": (OK + b"Content-Length: 99999999" + CLOSE, "sends over 65,536 bytes"),
    "too much": (OK + CLOSE[2:] + b"x" * (MOST + 1), "sends over 65,536 bytes"),
    "too much in chunks": (OK + CHUNKED + CLOSE + CHUNK * 17, "over 65,536"),
    "chunks and a length": (OK + CHUNKED + b"\r\nContent-Length: 3" + CLOSE + CHUNK * 17, "over 65,536"),
    "chunks of no length": (OK + CHUNKED + CLOSE + b"zz\r\nabc\r\n", "the connection was lost"),
    "endless headers": (OK + b"X: y\r\n" * 100_000, "no answer"),
    "an endless header": (OK + b"X: " + b"y" * 1_000_000, "no answer"),
    "a range of many digits": (PARTIAL + b"9" * 5000 + CLOSE, "nobody asked for"),
    "on to ftp": (MOVED + b"ftp://127.0.0.1/graph" + CLOSE, "redirects to ftp://127.0.0.1/graph"),
    "on to a file": (MOVED + b"file:///etc/passwd" + CLOSE, "302"),
    "on to a broken address": (MOVED + b"http://[::1" + CLOSE, "is not valid"),
    "on to no host": (MOVED + b"http:///graph" + CLOSE, "302"),
    "on to a host of dots": (MOVED + b"http://a..b/graph" + CLOSE, "is not valid"),
    "on to a word for a port": (MOVED + b"http://127.0.0.1:port/" + CLOSE, "no answer"),
    "on to a port that is too large": (MOVED + b"http://127.0.0.1:99999999/" + CLOSE, "no answer"),
    "on to bytes": (MOVED + b"http://\xff\xfe/\x01" + CLOSE, "is not valid"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.0)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as served:
        yield served


@pytest.mark.parametrize("name", REPLIES)
def test_an_odd_answer_is_one_error(tmp_path: Path, name: str) -> None:
    reply, said = REPLIES[name]
    with answering(reply) as address, pytest.raises(DownloadError, match=re.escape(said)) as caught:
        fetch(address, tmp_path / "graph", "download", None, most_bytes=MOST)
    assert len(str(caught.value)) < 1000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("leads", ["on", "round"])
def test_what_comes_with_a_redirection_is_not_read(server: Loopback, tmp_path: Path, leads: str) -> None:
    server.files["graph"] = Served(b"0 1\n")
    target = server.url("graph") if leads == "on" else "/graph"
    reply = MOVED + target.encode() + CLOSE + bytes(LONG_BODY)
    with answering(reply) as address:
        tracemalloc.start()
        try:
            fetch(address, tmp_path / "graph", "download", None, most_bytes=MOST)
        except DownloadError:
            assert leads == "round"
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert (tmp_path / "graph").exists() == (leads == "on")
    assert peak < LONG_BODY // 4


@pytest.mark.parametrize("seed", range(40))
def test_damaged_answers_are_files_or_errors_of_ours(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    headers = OK + b'Content-Length: 5\r\nETag: "one"\r\nLast-Modified: now\r\n folded' + CLOSE
    reply = bytearray(headers + b"0 1\n\n")
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(reply))
        reply[place : place + chance.randrange(3)] = bytes(
            chance.choices(b"\r\n:;\0\xff 09-HTP", k=chance.randrange(3))
        )
    with answering(bytes(reply)) as address:
        try:
            fetch(address, tmp_path / "graph", "download", None, most_bytes=MOST)
        except DownloadError:
            return
    assert (tmp_path / "graph").stat().st_size <= MOST


def test_a_version_that_cannot_be_sent_back_names_none(server: Loopback, tmp_path: Path) -> None:
    content = bytes(3 * MOST // 4)
    server.files["graph"] = Served(content, etag='"a"\r\n folded', cuts=[len(content) // 2])
    fetch(server.url("graph"), tmp_path / "graph", "download", None, most_bytes=MOST)
    assert (tmp_path / "graph").read_bytes() == content
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "change", [{"bytes": "x"}, {"bytes": True}, {"etag": 5}, {"etag": "a\nb"}, {"modified": []}, {"more": 1}]
)
def test_a_note_of_another_kind_is_not_used(server: Loopback, tmp_path: Path, change: dict[str, object]) -> None:
    note = {"address": server.url("graph"), "bytes": 9, "etag": None, "modified": None, **change}
    (tmp_path / "graph.part").write_bytes(b"0 1")
    (tmp_path / "graph.part.json").write_text(json.dumps(note))
    server.files["graph"] = Served(b"0 1\n0 2\n\n", etag=None)
    fetch(server.url("graph"), tmp_path / "graph", "download", None, most_bytes=MOST)
    assert (tmp_path / "graph").read_bytes() == b"0 1\n0 2\n\n"


def test_a_graph_is_no_longer_than_its_edges_can_be(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEDGEWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(obtain, "SMALL_BYTES", 1000)
    monkeypatch.setattr(obtain, "EDGE_BYTES", 1)
    graph = datasets.find("ca-GrQc")
    most = obtain.most_bytes(graph)
    server.files["graph.txt"] = Served(bytes(most + 1), says_length=False)
    with pytest.raises(DownloadError, match=f"sends over {most:,} bytes, which is more than this graph takes"):
        datasets.get("ca-GrQc", source=server.url("graph.txt"))
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("address", ["http://[::1/g.txt", "https://[x]/"])
def test_an_address_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("WEDGEWISE_CACHE", str(tmp_path))
    with pytest.raises(DownloadError, match=r"is not an address|is not valid"):
        datasets.get("ca-GrQc", source=address)
    with pytest.raises(DownloadError, match="is not an address"):
        file_name("http://[::1")

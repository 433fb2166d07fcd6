"""Pairs that are received part by part, by hand and out of files of every format."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.deferred_copies import LateBus
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.machine.ring import Arriving, Ring
from wedgewise.read import read_edges, text
from wedgewise.write import edges as write

PAIRS: NDArray[np.uint32] = np.random.default_rng(3).integers(0, 1000, (5000, 2)).astype(np.uint32)


def arriving_on(bus: LateBus) -> Arriving:
    return Arriving(np, Ring(bus))


def test_parts_in_any_order_lie_where_they_came_to() -> None:
    arriving = arriving_on(LateBus())
    arriving.begin(100, np.uint32)
    for begin in (40, 0, 80, 20, 60):
        arriving.put(begin, PAIRS[begin : begin + 20])
    room = arriving._pieces[-1].rows
    arriving.end()
    received = arriving.finish()
    assert np.array_equal(received, PAIRS[:100])
    assert np.shares_memory(received, room)


def test_rows_that_nothing_came_to_do_not_count() -> None:
    arriving = arriving_on(LateBus())
    arriving.begin(100, np.uint32)
    for begin, end in ((70, 90), (10, 30), (30, 31), (5, 5)):
        arriving.put(begin, PAIRS[begin:end])
    arriving.end()
    assert np.array_equal(arriving.finish(), np.concatenate([PAIRS[10:31], PAIRS[70:90]]))


def test_pieces_follow_each_other_and_the_widest_type_stays() -> None:
    arriving = arriving_on(LateBus())
    arriving.begin(10, np.uint32)
    arriving.put(0, PAIRS[:10])
    arriving.end()
    arriving.begin(20, np.uint32)
    arriving.put(0, PAIRS[10:15])
    arriving.begin(20, np.uint64)
    arriving.put(0, PAIRS[10:30].astype(np.uint64) + 2**40)
    arriving.end()
    received = arriving.finish()
    assert received.dtype == np.uint64
    assert np.array_equal(received[:10], PAIRS[:10])
    assert np.array_equal(received[10:] - 2**40, PAIRS[10:30])


def test_nothing_is_under_way_behind_a_failure() -> None:
    bus = LateBus()

    def fail_half_way() -> None:
        with arriving_on(bus) as arriving:
            arriving.begin(len(PAIRS), np.uint32)
            arriving.put(0, PAIRS[:100])
            assert bus.under_way == 1
            raise FormatError("broken", path="x", remedy="repair it")

    with pytest.raises(FormatError):
        fail_half_way()
    assert bus.under_way == 0


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few kilobytes be many chunks of many blocks."""
    monkeypatch.setattr(text, "CHUNK_BYTES", 1500)
    monkeypatch.setattr(text, "ARRAY_CHUNK_BYTES", 1500)
    monkeypatch.setattr(text, "BLOCK_BYTES", 7000)


def lines(pairs: NDArray[Any]) -> bytes:
    return b"".join(b"%d %d\n" % (u, v) for u, v in pairs.tolist())


def received(source: Any, **options: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """What a receiver has and what the reader returned."""
    with arriving_on(LateBus()) as arriving:
        edge_list = read_edges(source, receiver=arriving, **options)
        return arriving.finish(), edge_list.pairs


TEXTS: dict[str, Callable[[], bytes]] = {
    "plain": lambda: lines(PAIRS),
    "without a last newline": lambda: lines(PAIRS)[:-1],
    "comments between": lambda: b"# one\n".join(lines(PAIRS[at : at + 170]) for at in range(0, len(PAIRS), 170)),
    "a large label late": lambda: lines(PAIRS) + b"5 8589934592\n",
    "large labels early": lambda: b"5 8589934592\n" + lines(PAIRS),
    "names": lambda: b"ada bob\nbob cy\n" * 3,
    "one line": lambda: b"7 8\n",
    "nothing": lambda: b"",
    "comments alone": lambda: b"# nothing\n" * 3,
}


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("wrapping", ["file", "gzip", "stream"])
@pytest.mark.parametrize("name", TEXTS)
def test_text_is_received_as_it_is_read(name: str, wrapping: str, threads: int, tmp_path: Path) -> None:
    content, source = TEXTS[name](), tmp_path / "graph.txt"
    source.write_bytes(gzip.compress(content) if wrapping == "gzip" else content)
    given = io.BytesIO(content) if wrapping == "stream" else source
    there, here = received(given, threads=threads, format="text")
    assert there.dtype == here.dtype
    assert np.array_equal(there, here)
    assert np.array_equal(here, read_edges(source, format="text").pairs)


@pytest.mark.usefixtures("small_chunks")
def test_text_is_handed_over_while_the_rest_is_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    class Watched(Arriving):
        def put(self, row: int, pairs: NDArray[Any]) -> None:
            seen.append("put")
            super().put(row, pairs)

    choose = text._choose_parser

    def watch_parser(size: int) -> text.Parser:
        parse = choose(size)

        def watched(*arguments: Any) -> tuple[int, int, int, int, int]:
            seen.append("parse")
            return parse(*arguments)

        return watched

    monkeypatch.setattr(text, "_choose_parser", watch_parser)
    source = tmp_path / "graph.txt"
    source.write_bytes(lines(PAIRS))
    with Watched(np, Ring(LateBus())) as arriving:
        read_edges(source, receiver=arriving, threads=1)
        assert np.array_equal(arriving.finish(), PAIRS)
    assert seen == ["parse", "put"] * (len(seen) // 2)
    assert len(seen) > 10


def test_a_faulty_line_ends_the_receiving(tmp_path: Path) -> None:
    source = tmp_path / "graph.txt"
    source.write_bytes(lines(PAIRS[:50]) + b"1 -2\n")
    with arriving_on(LateBus()) as arriving, pytest.raises(FormatError, match=r"graph\.txt:51"):
        read_edges(source, receiver=arriving)


@pytest.mark.parametrize("suffix", ["npy", "npz", "bel", "bel32", "bel64", "mtx", "metis"])
def test_other_formats_are_received_whole(suffix: str, tmp_path: Path) -> None:
    source = tmp_path / f"graph.{suffix}"
    write.write_edges(np.unique(PAIRS[PAIRS[:, 0] < PAIRS[:, 1]], axis=0), source, vertices=1000)
    there, here = received(source)
    assert there.dtype == here.dtype
    assert len(here) > 1000
    assert np.array_equal(there, here)

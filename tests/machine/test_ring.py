"""The ring of pinned buffers, on a bus that copies nothing before somebody waits."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from helpers.deferred_copies import LateBus
from numpy.typing import NDArray

from wedgewise.machine import ring
from wedgewise.machine.ring import Ring

PIECE, BUFFERS = 64, 3
SIZES = (0, 1, PIECE - 1, PIECE, PIECE + 1, BUFFERS * PIECE, (BUFFERS + 1) * PIECE, 50 * PIECE + 13)


@pytest.fixture(autouse=True, params=[1, 4], ids=lambda threads: f"{threads}_threads")
def small_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(ring, "BUFFERS", BUFFERS)
    monkeypatch.setattr("wedgewise.machine.hardware.usable_threads", lambda: request.param)


def some_bytes(size: int) -> NDArray[np.uint8]:
    return np.random.default_rng(size).integers(0, 256, size).astype(np.uint8)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_sent_arrives(size: int) -> None:
    bus, source, target = LateBus(), some_bytes(size), np.zeros(size, np.uint8)
    Ring(bus).send(source, target)
    assert np.array_equal(target, source)
    assert (bus.follows, bus.under_way, bus.copies) == (1, 0, -(-size // PIECE))


@pytest.mark.parametrize("size", SIZES)
def test_what_is_fetched_arrives(size: int) -> None:
    bus, source, target = LateBus(), some_bytes(size), np.zeros(size, np.uint8)
    Ring(bus).fetch(source, target)
    assert np.array_equal(target, source)
    assert (bus.follows, bus.under_way, bus.copies) == (1, 0, -(-size // PIECE))


@pytest.mark.parametrize("size", SIZES)
def test_every_section_is_heard_of_once_all_of_it_is_on_its_way(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "SECTION_BYTES", 2 * PIECE)
    bus, source, target = LateBus(), some_bytes(size), np.zeros(size, np.uint8)
    heard: dict[int, int] = {}

    def arrived(begin: int, end: int) -> None:
        assert np.array_equal(target[begin:end], source[begin:end])
        heard[begin] = end

    Ring(bus).send(source, target, arrived)
    assert heard == {begin: min(begin + 2 * PIECE, size) for begin in range(0, size, 2 * PIECE)}


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int64, np.float64])
def test_arrays_of_any_type_and_shape(dtype: Any) -> None:
    source = np.arange(2 * 333).reshape(-1, 2).astype(dtype)
    there, back = np.zeros_like(source), np.zeros_like(source)
    source.flags.writeable = False
    both_ways = Ring(LateBus())
    both_ways.send(source, there)
    both_ways.fetch(there, back)
    assert np.array_equal(back, source)


def test_buffers_are_pinned_when_needed_and_kept() -> None:
    bus = LateBus()
    reused = Ring(bus)
    assert bus.pinned == []
    reused.send(some_bytes(1), np.zeros(1, np.uint8))
    assert bus.pinned == [PIECE] * BUFFERS  # at once: later arrays do not wait for that
    for size in SIZES:
        reused.send(some_bytes(size), np.zeros(size, np.uint8))
        reused.fetch(some_bytes(size), np.zeros(size, np.uint8))
    assert bus.pinned == [PIECE] * BUFFERS


def test_buffers_that_are_pinned_before_are_not_later() -> None:
    bus = LateBus()
    ready = Ring(bus)
    for _ in range(2):
        ready.pin()
        assert bus.pinned == [PIECE] * BUFFERS
    ready.send(some_bytes(9 * PIECE), np.zeros(9 * PIECE, np.uint8))
    assert bus.pinned == [PIECE] * BUFFERS


class Stamped:
    """A stamp that knows how many copies were under way or done, and the last one that its thread has started."""

    def __init__(self, copies: int, own: int) -> None:
        self.copies = copies
        self.own = own

    def synchronize(self) -> None:
        """Nobody does."""


@pytest.mark.parametrize("size", SIZES)
def test_what_is_staged_says_when_its_pieces_moved(size: int) -> None:
    """Each piece's stamps enclose its own copy, however many copies other threads start between the two."""
    by_thread: dict[int, int] = {}
    bus = LateBus(lambda number: by_thread.update({threading.get_ident(): number}))
    source, target = some_bytes(size), np.zeros(size, np.uint8)
    timing = Ring(bus)
    before = time.perf_counter()
    moved = timing.stage_timed([source], [target], lambda: Stamped(bus.copies, by_thread.get(threading.get_ident(), 0)))
    bus.wait()
    after = time.perf_counter()
    assert np.array_equal(target, source)
    assert [piece.nbytes for piece in moved] == [len(source[at : at + PIECE]) for at in range(0, size, PIECE)]
    own_copies = []
    for piece in moved:
        assert isinstance(piece.begin, Stamped)
        assert isinstance(piece.end, Stamped)
        assert piece.begin.own <= piece.begin.copies < piece.end.own <= piece.end.copies
        own_copies.append(piece.end.own)
    assert sorted(own_copies) == list(range(1, len(moved) + 1))
    assert all(before <= begin <= end <= after for begin, end in (piece.filled for piece in moved))


def test_arrays_that_fit_a_buffer_together_go_together() -> None:
    bus = LateBus()
    sources = [some_bytes(size) for size in (PIECE // 2, 0, 7, PIECE, 3)]
    targets = [np.zeros_like(source) for source in sources]
    moved = Ring(bus).stage_timed(sources, targets, lambda: Stamped(0, 0))
    bus.wait()
    assert all(np.array_equal(there, here) for there, here in zip(targets, sources, strict=True))
    assert sorted(piece.nbytes for piece in moved) == sorted([PIECE, sum(map(len, sources)) - PIECE])


def test_a_buffer_waits_for_the_copy_out_of_it_and_no_other() -> None:
    """With one thread and three buffers, two copies stay under way while the third buffer is filled."""
    bus = LateBus()
    seen: list[int] = []
    bus.on_copy = lambda number: seen.append(bus.under_way)
    target = np.zeros(10 * PIECE, np.uint8)
    Ring(bus).stage(some_bytes(10 * PIECE), target)
    assert seen == [0, 1] + [BUFFERS - 1] * 8
    assert bus.under_way == BUFFERS


def test_staged_arrays_may_change_at_once() -> None:
    bus, source = LateBus(), some_bytes(5 * PIECE + 1)
    target, expected = np.zeros_like(source), source.copy()
    staging = Ring(bus)
    staging.stage(source, target)
    source.fill(0)
    assert bus.follows == 0
    bus.wait()
    assert np.array_equal(target, expected)


@pytest.mark.parametrize("direction", ["send", "fetch"])
def test_a_failing_copy_is_raised_when_all_others_are_done(direction: str) -> None:
    class BusError(RuntimeError):
        pass

    def fail(number: int) -> None:
        if number == 7:
            raise BusError

    bus, source, target = LateBus(fail), some_bytes(20 * PIECE), np.zeros(20 * PIECE, np.uint8)
    broken = Ring(bus)
    with pytest.raises(BusError):
        getattr(broken, direction)(source, target)
    assert bus.under_way == 0
    bus.on_copy = lambda number: None
    getattr(broken, direction)(source, target)
    assert np.array_equal(target, source)


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
@pytest.mark.parametrize("direction", ["send", "fetch"])
def test_an_interrupt_is_heard_when_nothing_is_under_way_any_more(direction: str) -> None:
    def interrupt(number: int) -> None:
        if number == 5:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001 if number <= 5 else 0.01)  # long enough for the signal to be heard on a busy machine

    pieces = 2000
    bus, source, target = LateBus(interrupt), some_bytes(pieces * PIECE), np.zeros(pieces * PIECE, np.uint8)
    interrupted = Ring(bus)
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child of a background job would ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            getattr(interrupted, direction)(source, target)
    finally:
        signal.signal(signal.SIGINT, ours)
    assert bus.under_way == 0
    assert 4 <= bus.copies < pieces
    bus.on_copy = lambda number: None
    interrupted.send(source, target)
    assert np.array_equal(target, source)


def test_transfers_at_once() -> None:
    shared = Ring(LateBus())
    sources = [some_bytes(40 * PIECE + number) for number in range(6)]
    targets = [np.zeros_like(source) for source in sources]

    def transfer(number: int) -> None:
        copied = np.zeros_like(sources[number])
        shared.send(sources[number], copied)
        shared.fetch(copied, targets[number])

    threads = [threading.Thread(target=transfer, args=(number,)) for number in range(len(sources))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(target, source) for target, source in zip(targets, sources, strict=True))

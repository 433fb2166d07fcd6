"""What comes in to a GPU, and what is handed out from there: narrow ids, masks, and arrays that somebody changes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRUTHS, fixture_pairs

import wedgewise as ww
from devices.real_device import needs_device
from wedgewise import interop
from wedgewise.machine import gpu
from wedgewise.prepare import clean

pytestmark = needs_device

KARATE = fixture_pairs("karate")
TRIANGLES = TRUTHS["karate"]["triangles"]
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def on_device(array: Any) -> Any:
    return gpu.find_device().xp.asarray(array)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("place", ["host", "device"])
def test_narrow_ids_are_widened_first(dtype: str, place: str) -> None:
    """Vertices up to the largest that the type holds, and declared ones beyond it."""
    top = min(np.iinfo(dtype).max, 10**6)
    pairs = np.array([(top, top - 1), (top - 1, top - 2), (top - 2, top), (top, 0), (0, top - 1)], dtype)
    given = on_device(pairs) if place == "device" else pairs
    for n in (None, top + 70_000):
        graph = ww.Graph(given, n=n, device="cuda")
        assert ww.count(graph, device="cuda") == 2
        assert sorted(graph.degrees[graph.degrees > 0].tolist()) == [2, 2, 3, 3]


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.masked_array(KARATE, mask=np.zeros_like(KARATE, np.bool_))
    with pytest.raises(ww.errors.InputError, match="masked"):
        ww.Graph(masked, device="cuda")


def test_nobody_can_change_what_a_graph_hands_out() -> None:
    graph = ww.Graph(on_device(KARATE * 5), device="cuda")
    for array in (graph.degrees, graph.labels, graph.edges):
        assert isinstance(array, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert ww.count(graph, device="cuda") == TRIANGLES


def test_arrays_of_a_device_may_change_afterwards() -> None:
    given = on_device(KARATE.astype(np.uint32))
    graph = ww.Graph(given, device="cuda")
    given[...] = 2**30 + 7
    assert ww.count(graph, device="cuda") == TRIANGLES
    assert int(ww.triangles(graph, device="cuda").sum()) == 3 * TRIANGLES


def test_an_array_that_is_changed_meanwhile_is_counted_or_refused() -> None:
    """The answer means nothing then, but nothing outside of the arrays is touched: the next one is right."""
    pairs = np.random.default_rng(1).integers(0, 1 << 12, (1 << 20, 2)).astype(np.uint32)
    ended = threading.Event()

    def scribble() -> None:
        while not ended.is_set():
            pairs[:: 1 << 10] ^= np.uint32(1 << 29)

    changing = threading.Thread(target=scribble)
    changing.start()
    try:
        for _ in range(5):
            try:
                assert ww.count(pairs, device="cuda") >= 0
            except ww.errors.WedgewiseError:
                continue
    finally:
        ended.set()
        changing.join()
    assert ww.count(KARATE, device="cuda") == TRIANGLES


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("spread", [1, 10**6])
def test_an_array_of_the_device_that_has_changed_is_refused(
    dtype: str, spread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the pass that finds the largest id, or the labels, and the one that sorts."""
    given = on_device((KARATE * spread).astype(dtype))
    step = "_slots" if spread == 1 else "number_pairs"
    really = getattr(clean, step)

    def spoil(*arguments: Any) -> Any:
        found = really(*arguments)
        (given if step == "_slots" else found)[::2] = 2**31 - 1
        return found

    monkeypatch.setattr(clean, step, spoil)
    with pytest.raises(ww.errors.InputError, match="the pairs changed while they were read"):
        ww.Graph(given, device="cuda")
    monkeypatch.undo()
    assert ww.count(KARATE, device="cuda") == TRIANGLES


def test_an_array_of_the_device_that_is_changed_meanwhile_is_counted_or_refused() -> None:
    xp = gpu.find_device().xp
    pairs = on_device(np.random.default_rng(1).integers(0, 1 << 12, (1 << 20, 2)).astype(np.uint32))
    ended = threading.Event()

    def scribble() -> None:
        with xp.cuda.Stream(non_blocking=True) as stream:
            while not ended.is_set():
                pairs[:: 1 << 10] ^= np.uint32(1 << 29)
                stream.synchronize()

    changing = threading.Thread(target=scribble)
    changing.start()
    try:
        for _ in range(20):
            try:
                assert ww.count(pairs, device="cuda") >= 0
            except ww.errors.WedgewiseError:
                continue
    finally:
        ended.set()
        changing.join()
    assert ww.count(KARATE, device="cuda") == TRIANGLES


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("place", ["host", "device"])
def test_every_layout_is_the_same_graph(dtype: str, place: str) -> None:
    pairs = KARATE.astype(dtype)
    wide = np.repeat(np.repeat(pairs, 2, axis=0), 2, axis=1)
    put = on_device if place == "device" else np.array
    given = put(pairs)
    read_only = pairs.copy()
    read_only.flags.writeable = False
    layouts = {
        "columns first": put(np.ascontiguousarray(pairs.T)).T,
        "reversed": put(pairs[::-1, ::-1].copy())[::-1, ::-1],
        "every other": put(wide)[::2, ::2],
        "read-only": read_only,
    }
    for name, layout in layouts.items():
        assert ww.count(layout, device="cuda") == TRIANGLES, name
    assert ww.count(interop.from_edge_index(given.T, device="cuda"), device="cuda") == TRIANGLES


def test_graphs_there_cross_processes() -> None:
    graph = ww.Graph(on_device(KARATE * 5), device="cuda")
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert list(again.labels) == list(graph.labels)
        assert ww.count(again, device="cuda") == ww.count(again, device="cpu") == TRIANGLES


FORKED = """
import os, sys
import wedgewise as ww
pairs = [(0, 1), (1, 2), (2, 0)]
assert ww.count(pairs, device="cuda") == 1
child = os.fork()
if child == 0:
    code = 0 if ww.count(pairs) == 1 and ww.run("count", pairs).device == "cpu" else 1
    try:
        ww.count(pairs, device="cuda")
        code = 2
    except ww.errors.DeviceError as error:
        code = code or (0 if "fork" in str(error) else 3)
    os._exit(code)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_takes_the_cpu() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKED], env=os.environ, timeout=120, check=False)
    assert ended.returncode == 0

"""Threads that write into arrays while graphs are made of them: ``python -m attack.changing SECONDS [KIND …]``.

Prints for each kind how often there was an answer and how often a `WedgewiseError`; anything else ends the process.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from emulate.emulator import EmulatedDevice
from numpy.typing import NDArray
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array

import wedgewise as ww
from wedgewise import interop
from wedgewise.prepare.clean import clean, clean_on_device
from wedgewise.stages import EdgeList, Origin
from wedgewise.store.build import write_store

VERTICES, PAIRS = 400, 40_000
Arrays = tuple[NDArray[Any], ...]
Made = tuple[Arrays, Callable[[], Any]]


def pairs_of(dtype: str, spread: int = 1) -> NDArray[Any]:
    return (np.random.default_rng(1).integers(0, VERTICES, (PAIRS, 2)) * spread).astype(dtype)


def counted(dtype: str, spread: int = 1, **options: Any) -> Made:
    pairs = pairs_of(dtype, spread)
    return (pairs,), lambda: ww.count(ww.Graph(pairs, device="cpu", **options), threads=2)


def cleaned(dtype: str, spread: int, *, compiled: bool) -> Made:
    """By kernels or by arrays, whichever would be taken for so few pairs."""
    pairs = pairs_of(dtype, spread)
    edges = EdgeList(pairs, Origin("<array>", "array"))
    return (pairs,), lambda: clean(edges, 2, compiled=compiled).edges().max(initial=0)


def cleaned_there(dtype: str, spread: int) -> Made:
    """By the code of a GPU, in whose memory somebody writes."""
    pairs, device = pairs_of(dtype, spread), EmulatedDevice()
    edges = EdgeList(np.empty((0, 2), dtype), Origin("<array>", "array"))
    return (pairs,), lambda: clean_on_device(edges, pairs, device).slot_keys.max(initial=0)


def weighed(dtype: str, *, directed: bool) -> Made:
    pairs, weights = pairs_of(dtype), np.random.default_rng(2).random(PAIRS)
    return (pairs, weights), lambda: ww.clustering(ww.Graph(pairs, weights=weights, directed=directed), weighted=True)


def matrix(kind: Callable[..., Any]) -> Made:
    ends = pairs_of("int32")
    made = kind(coo_array((np.ones(PAIRS), (ends[:, 0], ends[:, 1])), shape=(VERTICES, VERTICES)))
    parts = tuple(getattr(made, name) for name in ("indptr", "indices", "row", "col", "data") if hasattr(made, name))
    return parts, lambda: ww.Graph(made, weights=True)


def part_of_a_graph() -> Made:
    graph = ww.Graph(pairs_of("int32"))
    edges = np.arange(graph.m)
    return (edges,), lambda: ww.count(graph.subgraph(edges))


def stored(dtype: str) -> Made:
    pairs = pairs_of(dtype)

    def store() -> int:
        with tempfile.TemporaryDirectory() as folder:
            return ww.count(write_store(pairs, Path(folder) / "store", parts=2).folder)

    return (pairs,), store


def edge_index() -> Made:
    ends = np.ascontiguousarray(pairs_of("int64").T)
    return (ends,), lambda: ww.count(interop.from_edge_index(ends, n=VERTICES))


KINDS: dict[str, Callable[[], Made]] = {
    "int32": lambda: counted("int32"),
    "uint32": lambda: counted("uint32"),
    "int64": lambda: counted("int64"),
    "uint64": lambda: counted("uint64"),
    "declared": lambda: counted("uint32", n=VERTICES),
    "spread labels": lambda: counted("int64", 10**12),
    "kernels": lambda: cleaned("uint32", 1, compiled=True),
    "kernels that number": lambda: cleaned("uint64", 10**12, compiled=True),
    "arrays": lambda: cleaned("uint32", 1, compiled=False),
    "arrays that number": lambda: cleaned("int64", 10**12, compiled=False),
    "device": lambda: cleaned_there("uint32", 1),
    "device that numbers": lambda: cleaned_there("int64", 10**12),
    "weights": lambda: weighed("int64", directed=False),
    "directions": lambda: weighed("uint32", directed=True),
    "csr": lambda: matrix(csr_array),
    "csc": lambda: matrix(csc_array),
    "bsr": lambda: matrix(bsr_array),
    "coo": lambda: matrix(coo_array),
    "subgraph": part_of_a_graph,
    "store": lambda: stored("int64"),
    "edge_index": edge_index,
}


def scribble(arrays: Arrays, ended: threading.Event, seed: int) -> None:
    """Write anything anywhere for a moment: random bits, all bits, which is the largest or −1; then what was there."""
    random = np.random.default_rng(seed)
    before = [array.copy() for array in arrays]
    for number in itertools.count():
        if ended.is_set():
            return
        which = number % len(arrays)
        array, length = arrays[which], int(random.integers(1, len(arrays[which]) // 20))
        begin = int(random.integers(0, len(array) - length))
        some = array[begin : begin + length]
        noise = random.integers(0, 256, some.nbytes, np.uint8).view(array.dtype).reshape(some.shape)
        with np.errstate(invalid="ignore"):
            some[...] = noise if number % 3 else np.array(-1).astype(array.dtype)
        some[...] = before[which][begin : begin + length]


def attack(kind: str, seconds: float) -> Counter[str]:
    """How often there was an answer and how often an error, in so long, and once at least."""
    held, make = KINDS[kind]()
    arrays = tuple(array.reshape(-1) for array in held)  # the same memory
    make()  # loads the kernels
    ended, found = threading.Event(), Counter[str]()
    writers = [threading.Thread(target=scribble, args=(arrays, ended, seed), daemon=True) for seed in range(2)]
    for writer in writers:
        writer.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end or not found:
        try:
            make()
            found["answers"] += 1
        except ww.errors.WedgewiseError:
            found["errors"] += 1
    ended.set()
    for writer in writers:
        writer.join()
    return found


def main(seconds: str, *kinds: str) -> None:
    sys.setswitchinterval(1e-4)  # writers come between the steps, and do not keep the others waiting
    for kind in kinds or KINDS:
        found = attack(kind, float(seconds))
        print(f"{kind}: {found['answers']} answers, {found['errors']} errors", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

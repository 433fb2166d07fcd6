"""Journeys through the package, from files to answers, for tests that let something fail on the way."""

from __future__ import annotations

import gzip
import io
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from emulate.streaming import StreamingEmulator, toy
from helpers.failing_calls import Fault, installed
from helpers.graphs import fixture_pairs
from helpers.store_counts import count_on_cluster, each_task_by_itself
from helpers.stores import in_tiny_pieces
from run.cluster_workers import FakeWorkers

import wedgewise as ww
from wedgewise.algorithms import registry
from wedgewise.errors import StorageError
from wedgewise.machine import gpu
from wedgewise.machine.files import append_line
from wedgewise.read import read_edges
from wedgewise.report.objects import to_json
from wedgewise.report.text import result_text
from wedgewise.run import _process_workers, choose
from wedgewise.store.build import write_store
from wedgewise.store.manifest import is_store
from wedgewise.store.open import open_store
from wedgewise.write.answers import per_vertex, write_answers
from wedgewise.write.edges import write_edges

PAIRS = fixture_pairs("karate")
TRIANGLES = 45
ENGINE: dict[str, Any] = {"algorithm": "keystone", "threads": 2}
FORMATS = ("txt", "txt.gz", "mtx", "metis", "npy", "npz", "bel64", "parquet")


@dataclass(frozen=True, slots=True)
class Journey:
    """What is done, with the files of a folder; the value that it comes to is a value that can be compared.

    ``step`` is more than 1 for long journeys, of whose calls not every one fails in turn.
    """

    name: str
    go: Callable[[Path], Any]
    device: bool = False
    stores: bool = False
    step: int = 1


def make_inputs(folder: Path) -> None:
    """All files that journeys read."""
    folder.mkdir()
    for suffix in FORMATS:
        write_edges(PAIRS, folder / f"graph.{suffix}", vertices=34 if suffix == "metis" else None)
    write_store(folder / "graph.txt", folder / "store", parts=2, threads=2)
    shutil.copytree(folder / "store", folder / "begun")
    _leave_unfinished(folder / "begun")


def _leave_unfinished(store: Path) -> None:
    """Let a count and a question about vertices end behind their first steps."""
    for question in ("count", "triangles"):
        ww.run(question, store, **ENGINE)  # stores its kernels
        with each_task_by_itself(), installed(Fault("storage.write", 3)), suppress(StorageError):
            ww.run(question, store, **ENGINE)
    assert len(list(store.iterdir())) == len(list(store.with_name("store").iterdir())) + 2


def plain(value: Any) -> Any:
    """Arrays as lists, and trusses as what they hold."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, ww.Truss):
        return value.k, value.edges.tolist()
    return value


def _report(folder: Path) -> Any:
    """A verified count, and both of its reports but for what is measured."""
    result = ww.run("count", folder / "graph.txt", verify=True, **ENGINE)
    assert str(result.answer) in result_text(result, f"{result.answer} triangles")
    assert f'"answer": {result.answer}' in to_json(result.to_dict()).replace('":', '": ').replace("  ", " ")
    return result.answer, result.verified is not None  # from disk, another method is taken


def _from_disk(folder: Path) -> Any:
    """A count that memory has no room for, in a folder where it goes on."""
    with mock.patch.object(choose, "orient_bytes", return_value=1 << 63):
        result = ww.run("count", folder / "graph.npy", work_folder=folder / "made", **ENGINE)
    assert any("from disk" in reason for reason in result.plan.reasons)
    return result.answer


def _ask(question: str, file: str, **more: Any) -> Callable[[Path], Any]:
    return lambda folder: plain(ww.run(question, folder / file, **{**ENGINE, **more}).answer)


def _trusses(question: str, file: str, **more: Any) -> Callable[[Path], Any]:
    return lambda folder: plain(ww.run(question, folder / file, threads=2, **more).answer)


def _read(suffix: str) -> Callable[[Path], Any]:
    return lambda folder: plain(read_edges(folder / f"graph.{suffix}", threads=2).pairs)


def _read_stream(folder: Path) -> Any:
    return plain(read_edges(io.BytesIO(gzip.compress(b"0 1\n1 2\n0 2\n" * 999)), threads=2).pairs)


def _convert(suffix: str) -> Callable[[Path], Any]:
    def convert(folder: Path) -> Any:
        write_edges(read_edges(folder / "graph.txt").pairs, folder / f"made.{suffix}")
        return "written"

    return convert


def _write_answers(folder: Path) -> Any:
    graph = ww.Graph(folder / "graph.npy", threads=2)
    write_answers(per_vertex(graph, "triangles", ww.triangles(graph, threads=2)), folder / "made.csv")
    return "written"


def _write_listing(folder: Path) -> Any:
    return ww.write_triangles(folder / "graph.txt", folder / "made.tsv.gz", batch=7, threads=2)


def _partition(folder: Path) -> Any:
    made = folder / "made"
    store = open_store(made) if is_store(made) else write_store(folder / "graph.txt", made, parts=3, threads=2)
    return store.manifest.n, store.manifest.m, store.manifest.fingerprint


def _partition_labels(folder: Path) -> Any:
    """A store with every file that one can have, made in many pieces."""
    made, pairs = folder / "made", [(f"v{u}", f"v{v}") for u, v in PAIRS.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        in_tiny_pieces(patch)
        store = open_store(made) if is_store(made) else write_store(pairs, made, parts=2, threads=1)
    return store.manifest.to_json()


def _append(folder: Path) -> Any:
    append_line(folder / "made.jsonl", '{"a": 1}')
    return "written"


def _on_device(question: str, **more: Any) -> Callable[[Path], Any]:
    return lambda folder: plain(ww.run(question, folder / "graph.txt", device="cuda", threads=2, **more).answer)


def _hybrid(file: str, **knobs: Any) -> Callable[[Path], Any]:
    """A count by threads and by streams of a device, or by threads alone."""

    def go(folder: Path) -> Any:
        device = StreamingEmulator()
        with (
            closing(device),
            mock.patch.object(gpu, "find_devices", return_value=(device,)),
            mock.patch.dict(registry(), {("toy", "cuda"): toy()}),
        ):
            return ww.run("count", folder / file, device="hybrid", algorithm="toy", threads=2, knobs=knobs).answer

    return go


def _by_workers(folder: Path) -> Any:
    """A count by the driver of a cluster; its workers are in this process."""
    with mock.patch.object(_process_workers, "LocalWorkers", FakeWorkers):
        return count_on_cluster(folder / "store", workers=2, threads=1).triangles


JOURNEYS = (
    Journey("report", _report),
    *(Journey(f"read {suffix}", _read(suffix)) for suffix in FORMATS),
    Journey("read a stream", _read_stream),
    Journey("triangles", _ask("triangles", "graph.txt.gz")),
    Journey("support", _ask("edge_support", "graph.mtx")),
    Journey("list", _ask("list_triangles", "graph.npz")),
    Journey("clustering", _ask("clustering", "graph.bel64")),
    Journey("trussness", _trusses("trussness", "graph.metis"), step=2),
    Journey("k-truss", _trusses("k_truss", "graph.npy", k=4)),
    Journey("truss summary", _trusses("truss_summary", "graph.npy"), step=3),
    Journey("blocks", _ask("count", "graph.txt", algorithm="bbtc")),
    Journey("reference", _ask("count", "graph.txt", algorithm="reference")),
    *(Journey(f"convert to {suffix}", _convert(suffix)) for suffix in ("txt", "npz", "mtx.gz", "parquet")),
    Journey("from disk", _from_disk, step=4),
    Journey("write answers", _write_answers),
    Journey("write a listing", _write_listing, step=4),
    Journey("append", _append),
    Journey("partition", _partition),
    Journey("partition of labels", _partition_labels, step=7),
    Journey("count a store", _ask("count", "store"), stores=True),
    Journey("go on with a count", _ask("count", "begun"), stores=True),
    Journey("go on with triangles", _ask("triangles", "begun"), stores=True, step=2),
    Journey("triangles of a store", _ask("triangles", "store"), stores=True, step=2),
    Journey("support of a store", _ask("edge_support", "store"), stores=True, step=4),
    Journey("k-truss of a store", _ask("k_truss", "store", k=4), stores=True, step=7),
    Journey("hybrid count", _hybrid("graph.txt", parts=3, streams=2), step=5),
    Journey("hybrid count of a store", _hybrid("store", streams=2), stores=True, step=5),
    Journey("hybrid count on threads", _hybrid("store", places="cpu"), stores=True, step=2),
    Journey("count by workers", _by_workers, stores=True, step=2),
    Journey("count on a device", _on_device("count", algorithm="keystone"), device=True, step=2),
    Journey("triangles on a device", _on_device("triangles"), device=True),
    Journey("support on a device", _on_device("edge_support"), device=True),
    Journey("list on a device", _on_device("list_triangles"), device=True),
    Journey("k-truss on a device", _on_device("k_truss", k=4), device=True, step=3),
)

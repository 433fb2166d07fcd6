"""Ids of hashed parts: the blocks that memory would hold after `relabel`, and the answers of the graph."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import answer_of, invoke
from helpers.graphs import fixture_pairs, fixture_path, random_pairs
from helpers.stores import at_most, in_tiny_pieces

import wedgewise as ww
from wedgewise import generate
from wedgewise.errors import FormatError, InputError, UnknownNameError
from wedgewise.graph import Graph
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.prepare.orient import relabel
from wedgewise.stages.blocks import ID_NAMES
from wedgewise.store import build, ids
from wedgewise.store.build import write_store
from wedgewise.store.manifest import MANIFEST
from wedgewise.store.sort_and_deduplicate import SLOT_BYTES

GRAPHS = {
    "karate": fixture_pairs("karate"),
    "loops": np.concatenate([random_pairs(60, 400, seed=5), random_pairs(60, 30, seed=6) * 0 + 7]),
    "kronecker": generate.kronecker(10, seed=3).pairs(),
    "sparse": fixture_pairs("karate").astype(np.int64) * 2**33 + 5,
    "empty": np.empty((0, 2), np.int64),
}


@pytest.mark.parametrize("by", ID_NAMES)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_store_has_the_blocks_of_the_relabelled_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, by: str
) -> None:
    if name != "kronecker":
        in_tiny_pieces(monkeypatch)
        monkeypatch.setattr(ids, "PASS_KEYS", 11)
    graph = Graph(GRAPHS[name])
    parts = at_most(3, graph)
    store = write_store(GRAPHS[name], tmp_path / "store", parts=parts, scheme="hashed", ids=by, threads=2)
    renamed = relabel(graph.oriented(), by)
    assert store.vertex_of().tolist() == renamed.vertex_of.tolist()
    assert (store.manifest.wedges, list(store.labels())) == (renamed.wedges, list(graph.labels))
    for pair, block in blocks_of(renamed, store.partition).blocks.items():
        found = store.block(*pair)
        assert (found.offsets.tolist(), found.heads.tolist()) == (block.offsets.tolist(), block.heads.tolist())


@pytest.mark.parametrize("algorithm", ["keystone", "bbtc"])
@pytest.mark.parametrize("by", ["indegree", "classes"])
def test_counts_are_exact(tmp_path: Path, by: str, algorithm: str) -> None:
    pairs = generate.kronecker(9, seed=2).pairs()
    for parts in (1, 2, 5):
        store = ww.partition(pairs, tmp_path / str(parts), parts=parts, scheme="hashed", ids=by)
        assert ww.count(store, algorithm=algorithm) == ww.count(pairs)


@pytest.mark.parametrize("by", ["indegree", "classes"])
def test_answers_are_in_the_order_of_vertices(tmp_path: Path, by: str) -> None:
    pairs = generate.kronecker(8, seed=4).pairs().astype(np.int64) * 2**33
    store = ww.partition(pairs, tmp_path / "store", parts=3, scheme="hashed", ids=by)
    graph = Graph(pairs)
    for question in ("triangles", "edge_support"):
        found, due = (ww.run(question, source).answer for source in (store, graph))
        assert np.asarray(found).tolist() == np.asarray(due).tolist(), question
    trusses = [ww.k_truss(source, 4) for source in (store, graph)]
    assert trusses[0].edges.tolist() == trusses[1].edges.tolist()


def test_work_on_other_ids_is_not_resumed(tmp_path: Path) -> None:
    """Tasks of the same graph in as many parts have other triangles."""
    pairs = fixture_pairs("karate")
    stores = [ww.partition(pairs, tmp_path / by, parts=2, scheme="hashed", ids=by) for by in ID_NAMES]
    assert len({json.dumps(store.partition.to_dict()) for store in stores}) == 3
    assert len({ww.open_store(store.folder, tmp_path / "work").beside("x") for store in stores}) == 3
    manifest = json.loads((stores[0].folder / MANIFEST).read_text())
    assert set(manifest["partition"]) == {"kind", "n", "parts"}


def test_what_cannot_be_asked_for_is_refused(tmp_path: Path) -> None:
    pairs = fixture_pairs("karate")
    with pytest.raises(UnknownNameError, match="no ids named 'name'; there are: rank, indegree, classes"):
        ww.partition(pairs, tmp_path / "store", scheme="hashed", ids="name")
    with pytest.raises(InputError, match=r"parts by rectilinear cuts need ids by rank, not by classes; .*'hashed'"):
        ww.partition(pairs, tmp_path / "store", ids="classes")
    assert not (tmp_path / "store").exists()
    store = ww.partition(pairs, tmp_path / "store", scheme="hashed", ids="classes", parts=2)
    path = store.folder / MANIFEST
    for wrong in ("core", 5, None, ["rank"]):
        manifest = json.loads(path.read_text())
        manifest["partition"]["ids"] = wrong
        path.write_text(json.dumps(manifest))
        with pytest.raises(FormatError, match=r"the partition cannot be used .no ids by"):
            ww.open_store(store.folder)


def test_ids_on_the_command_line(tmp_path: Path) -> None:
    karate, made = str(fixture_path("karate")), str(tmp_path / "store")
    record = answer_of("partition", karate, made, "--scheme", "hashed", "--ids", "classes", "--parts", "2")
    assert (record["scheme"], record["blocks"]) == ("hashed", 4)
    assert ww.count(made) == 45
    assert invoke("partition", karate, str(tmp_path / "no"), "--ids", "classes").exit_code != 0


@pytest.mark.parametrize("by", ["indegree", "classes"])
def test_arrays_by_vertex_take_what_is_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    slots, peaks = 200_000, []
    really = ids.ranks_in_order

    def traced(*arguments: Any) -> Any:
        tracemalloc.start()
        try:
            return really(*arguments)
        finally:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    monkeypatch.setattr(build, "ranks_in_order", traced)
    monkeypatch.setattr(ids, "PASS_KEYS", 1 << 10)
    ring = np.column_stack([np.arange(slots), (np.arange(slots) + 1) % slots])
    write_store(ring, tmp_path / "store", scheme="hashed", ids=by, parts=1)
    beside = 17 * slots  # degrees and loops by slot; ranks, degrees and vertices
    assert peaks[0] + beside <= (SLOT_BYTES + ids.SLOT_BYTES[by]) * slots + 200_000, peaks[0] / slots

"""Trusses of real and of published graphs: the fixtures, and every graph of an external data folder."""

from __future__ import annotations

import json
import lzma
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.data_folder import FOLDER, graph_path, needs_the_folder, oracle_path
from helpers.data_folder import TRUTHS as FOLDER_TRUTHS
from helpers.graphs import TRUTHS, fixture_path, of_fit_size, published_generated
from numpy.typing import NDArray

import wedgewise as ww
from conformance.trusses import TRUSS_WAYS, Way, for_every_truss_way

MAX_GENERATED_EDGES = 12_000_000
# rounds at every k go over all living triangles, in arrays several times as slowly: these take seconds
EAGER_STEPS, PRODUCT_STEPS = 5_000_000, 100_000

FIXTURES = of_fit_size(*TRUTHS)


def steps(truth: dict[str, Any]) -> int:
    """How much a method that looks at every k in turn has to do."""
    return int(truth["kmax"] * (truth["m"] + truth["triangles"]))


def ways_to(truth: dict[str, Any]) -> list[Way]:
    """The ways that take seconds at most."""
    slow = {"reference": PRODUCT_STEPS, "peel": 2**63}
    return [way for way in TRUSS_WAYS if steps(truth) <= slow.get(way.algorithm, EAGER_STEPS)]


def edges_by_k(truth: dict[str, Any]) -> dict[int, int]:
    return {int(k): edges for k, edges in truth["truss_edges_by_k"].items()}


def hold_to(truth: dict[str, Any], graph: ww.Graph, way: Way) -> None:
    """Ask for all truss numbers, for the last truss and for single ones, and hold each to what is known."""
    numbers, kmax = ww.trussness(graph, **way.how), truth["kmax"]
    assert numbers.dtype == np.int64
    assert (graph.n, len(numbers)) == (truth["n"], truth["m"])
    assert 2 <= numbers.min() <= numbers.max() == kmax
    assert {k: int((numbers >= k).sum()) for k in edges_by_k(truth)} == edges_by_k(truth)
    last = ww.max_truss(graph, **way.how)
    assert last.k == kmax
    np.testing.assert_array_equal(last.edges, np.flatnonzero(numbers == kmax))
    for k in sorted({2, 3, (3 + kmax) // 2, kmax, kmax + 1}):
        found = ww.k_truss(graph, k, **way.how)
        assert found.k == k
        np.testing.assert_array_equal(found.edges, np.flatnonzero(numbers >= k))


@cache
def fixture(name: str) -> ww.Graph:
    """A fixture read once; its oriented forms stay with it."""
    return ww.read(fixture_path(name))


@lru_cache(maxsize=1)
def graph(name: str) -> ww.Graph:
    """A graph of the folder, read once for all ways."""
    return ww.read(graph_path(name))


@lru_cache(maxsize=1)
def generated(name: str) -> ww.Graph:
    stream = published_generated(name)
    return ww.Graph(stream.pairs(), n=stream.n)


def published_kmax() -> dict[str, tuple[int, int]]:
    """Edges and kmax of the published graphs that our generators rebuild, small ones first."""
    if FOLDER is None:
        return {}
    table = json.loads(oracle_path("graphchallenge_davis_tri_ktruss.json").read_text(encoding="utf-8"))["graphs"]
    known = {name: (row["Nedges"], row["kmax_truss"]) for name, row in table.items() if name[:2] in ("Th", "g-")}
    return {name: known[name] for name in sorted(known, key=known.__getitem__) if known[name][0] < MAX_GENERATED_EDGES}


PUBLISHED_KMAX = published_kmax()


def labelled(graph: ww.Graph, edges: NDArray[np.int64]) -> set[frozenset[int]]:
    """Edges as pairs of the labels that the file has."""
    return set(map(frozenset, np.asarray(graph.labels)[graph.edges[edges]].tolist()))


def pairs_of(name: str) -> NDArray[np.int64]:
    """The first two columns of one of cuGraph's files."""
    return np.loadtxt(oracle_path(f"cugraph/{name}.csv"), usecols=(0, 1), dtype=np.int64)


def collaborations() -> NDArray[np.int64]:
    """Pairs of actors for every film that they share."""
    path = Path(str(FOLDER)) / "NotreDame_actors.bipartite.xz"
    roles = np.unique(np.array(lzma.decompress(path.read_bytes()).split(), np.int64).reshape(-1, 2), axis=0)
    roles = roles[np.argsort(roles[:, 1], kind="stable")]
    _, firsts, sizes = np.unique(roles[:, 1], return_index=True, return_counts=True)
    pairs = []
    for size in np.unique(sizes):
        casts = roles[firsts[sizes == size][:, None] + np.arange(size), 0]
        pairs.append(casts[:, np.column_stack(np.triu_indices(size, 1))].reshape(-1, 2))
    return np.concatenate(pairs)


def test_every_fixture_has_all_its_trusses() -> None:
    for name, truth in TRUTHS.items():
        edges = edges_by_k(truth)
        assert list(edges) == list(range(2, truth["kmax"] + 1)), name
        assert edges[2] == truth["m"]
        assert list(edges.values()) == sorted(edges.values(), reverse=True)


@pytest.mark.parametrize(("name", "way"), [(name, way) for name in FIXTURES for way in ways_to(TRUTHS[name])], ids=str)
def test_fixtures_have_their_trusses(name: str, way: Way) -> None:
    hold_to(TRUTHS[name], fixture(name), way)


@pytest.mark.data
@needs_the_folder
@pytest.mark.parametrize(
    ("name", "way"), [(name, way) for name in sorted(FOLDER_TRUTHS) for way in ways_to(FOLDER_TRUTHS[name])], ids=str
)
def test_graphs_of_the_folder_have_their_trusses(name: str, way: Way) -> None:
    hold_to(FOLDER_TRUTHS[name], graph(name), way)


@pytest.mark.data
@needs_the_folder
def test_fixtures_and_folder_agree() -> None:
    for name in TRUTHS.keys() & FOLDER_TRUTHS.keys():
        assert TRUTHS[name]["truss_edges_by_k"] == FOLDER_TRUTHS[name]["truss_edges_by_k"], name


@pytest.mark.data
@needs_the_folder
@for_every_truss_way
@pytest.mark.parametrize("name", ["polbooks", "netscience"])
def test_5_trusses_of_cugraph(name: str, way: Way) -> None:
    held = ww.Graph(pairs_of(name))
    expected = set(map(frozenset, pairs_of(f"ktruss-{name}").tolist()))
    assert labelled(held, ww.k_truss(held, 5, **way.how).edges) == expected
    assert labelled(held, np.flatnonzero(ww.trussness(held, **way.how) >= 5)) == expected


@pytest.mark.data
@needs_the_folder
@pytest.mark.parametrize("name", PUBLISHED_KMAX)
def test_published_kmax_of_generated_graphs(name: str) -> None:
    edges, kmax = PUBLISHED_KMAX[name]
    assert generated(name).m == edges
    numbers = ww.trussness(generated(name), algorithm="peel", device="cpu")
    last = ww.max_truss(generated(name), algorithm="peel", device="cpu")
    assert numbers.max() == last.k == kmax
    np.testing.assert_array_equal(last.edges, np.flatnonzero(numbers == kmax))


@pytest.mark.data
@needs_the_folder
@pytest.mark.parametrize("way", [way for way in TRUSS_WAYS if way.algorithm not in ("peel", "reference")], ids=str)
@pytest.mark.parametrize("name", [name for name, (edges, _) in PUBLISHED_KMAX.items() if edges < 50_000])
def test_published_kmax_by_rounds_at_every_k(name: str, way: Way) -> None:
    last = ww.max_truss(generated(name), **way.how)
    assert last.k == PUBLISHED_KMAX[name][1]
    np.testing.assert_array_equal(last.edges, ww.max_truss(generated(name), algorithm="peel", device="cpu").edges)


@pytest.mark.data
@needs_the_folder
def test_actors_who_played_together() -> None:
    """KONECT's count, and the largest cast as the last truss."""
    held = ww.Graph(collaborations())
    assert (held.n, held.m, ww.count(held)) == (382_219, 15_038_083, 346_813_199)
    numbers = ww.trussness(held, algorithm="peel", device="cpu")
    last = ww.max_truss(held, algorithm="peel", device="cpu")
    assert numbers.max() == last.k == 294
    np.testing.assert_array_equal(last.edges, np.flatnonzero(numbers == 294))
    assert len(last) == 294 * 293 // 2

"""Every graph of an external data folder under every algorithm, and what third parties published about some."""

from __future__ import annotations

import lzma
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from helpers.data_folder import FOLDER, TRUTHS, graph_path, needs_the_folder, oracle_path
from numpy.typing import NDArray

import wedgewise as ww
from conformance.engines import for_every_algorithm, for_every_local_algorithm, that_answer

pytestmark = pytest.mark.data

TOLERANCE = 1e-12

for_every_lister = pytest.mark.parametrize("algorithm", that_answer("list_triangles"))


@lru_cache(maxsize=1)
def graph(name: str) -> ww.Graph:
    """The graph read once for all algorithms."""
    return ww.read(graph_path(name))


def lines_of(name: str) -> list[list[bytes]]:
    """The words of every line of an oracle's file."""
    content = oracle_path(name).read_bytes()
    text = lzma.decompress(content) if name.endswith(".xz") else content
    return [line.split() for line in text.splitlines() if line.strip()]


def graph_from(pairs: list[tuple[bytes, bytes]]) -> ww.Graph:
    """A graph whose vertices are the integers that occur."""
    return ww.Graph(np.array(pairs).astype(np.int64))


@lru_cache(maxsize=1)
def gnutella() -> ww.Graph:
    return graph_from([(line[0], line[1]) for line in lines_of("p2p-31/p2p-31.e.xz")])


def values_of(name: str, graph: ww.Graph) -> list[float]:
    """The value that an oracle's file gives to each vertex, in the order of the graph's labels."""
    known = {int(vertex): float(value) for vertex, value in lines_of(name)}
    assert list(known) == np.asarray(graph.labels).tolist()
    return list(known.values())


def keys_of(ends: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Both ends of every edge in one number."""
    wide = ends.astype(np.uint64)
    return wide[:, 0] << np.uint64(32) | wide[:, 1]


@needs_the_folder
def test_every_graph_of_the_folder_has_its_truth() -> None:
    files = {path.name.removesuffix(".el.xz") for path in (Path(str(FOLDER)) / "graphs").glob("*.el.xz")}
    assert files == set(TRUTHS)


@needs_the_folder
@for_every_algorithm
@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_counts(name: str, algorithm: str) -> None:
    result = ww.run("count", graph(name), algorithm=algorithm, device="cpu")
    truth = TRUTHS[name]
    assert (result.n, result.m, result.answer) == (truth["n"], truth["m"], truth["triangles"])


@needs_the_folder
@for_every_local_algorithm
@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_sums_over_vertices_and_edges(name: str, algorithm: str) -> None:
    truth = TRUTHS[name]
    at_vertex = ww.triangles(graph(name), algorithm=algorithm)
    at_edge = ww.edge_support(graph(name), algorithm=algorithm)
    assert (len(at_vertex), len(at_edge)) == (truth["n"], truth["m"])
    assert at_vertex.sum() == at_edge.sum() == 3 * truth["triangles"]
    assert at_edge.max(initial=0) == truth["max_edge_support"]
    around = np.zeros(truth["n"], np.int64)
    for end in graph(name).edges.T:
        np.add.at(around, end, at_edge)
    np.testing.assert_array_equal(around, 2 * at_vertex)  # each triangle of a vertex has two of its edges


@needs_the_folder
@for_every_lister
@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_the_ends_of_listings(name: str, algorithm: str) -> None:
    total = TRUTHS[name]["triangles"]
    edges = keys_of(graph(name).edges)
    for start in {0, max(0, total - 1000)}:
        listed = ww.list_triangles(graph(name), start=start, stop=start + 1000, algorithm=algorithm)
        assert len(set(map(tuple, listed.tolist()))) == len(listed) == min(1000, total - start)
        for ends in ([0, 1], [0, 2], [1, 2]):
            assert np.isin(keys_of(listed[:, ends]), edges).all()


@needs_the_folder
@for_every_local_algorithm
def test_triangles_of_p2p_31(algorithm: str) -> None:
    expected = values_of("p2p-31/p2p-31-triangles.xz", gnutella())
    np.testing.assert_array_equal(ww.triangles(gnutella(), algorithm=algorithm), expected)
    assert sum(expected) == 3 * TRUTHS["p2p-Gnutella31"]["triangles"]


@needs_the_folder
@for_every_local_algorithm
def test_local_clustering_of_p2p_31(algorithm: str) -> None:
    expected = values_of("p2p-31/p2p-31-lcc_auto.xz", gnutella())
    np.testing.assert_allclose(ww.clustering(gnutella(), algorithm=algorithm), expected, rtol=0, atol=TOLERANCE)


@needs_the_folder
@for_every_local_algorithm
def test_local_clustering_of_the_graphalytics_examples(algorithm: str) -> None:
    pairs = [(line[0], line[1]) for line in lines_of("graphalytics/example-undirected.e")]
    rows = [product(line[:1], line[1:]) for line in lines_of("graphalytics/lcc-undir-input")]
    for held, values in (
        (graph_from(pairs), "graphalytics/example-undirected-LCC"),
        (graph_from([pair for row in rows for pair in row]), "graphalytics/lcc-undir-output"),
    ):
        coefficients = ww.clustering(held, algorithm=algorithm)
        np.testing.assert_allclose(coefficients, values_of(values, held), rtol=0, atol=TOLERANCE)

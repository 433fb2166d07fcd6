"""Generated graphs and those by name: the same pairs everywhere, with their published figures."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import wedgewise as ww
from wedgewise import datasets, generate

from .stage import FAMILIES
from .tables import generated_table, recorded


def test_every_family_is_as_recorded() -> None:
    assert set(FAMILIES) == set(generate.GENERATORS)
    assert generated_table() == recorded("generated")


@pytest.mark.parametrize("name", FAMILIES)
def test_streams_give_the_same_pairs_in_blocks_and_by_threads(name: str) -> None:
    stream = generate.generate(name, **FAMILIES[name])
    pairs = stream.pairs()
    assert (type(stream), pairs.shape, pairs.dtype) == (generate.EdgeStream, (stream.pairs_count, 2), stream.dtype)
    np.testing.assert_array_equal(np.concatenate(list(stream.blocks())), pairs)
    np.testing.assert_array_equal(stream.pairs(threads=3), pairs)
    np.testing.assert_array_equal(getattr(generate, name)(**FAMILIES[name]).pairs(), pairs)
    if stream.expected_triangles is not None:
        graph = nx.Graph(pairs.tolist())
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
        truth = sum(nx.triangles(graph, backend="networkx").values()) // 3
        assert ww.count(pairs) == stream.expected_triangles == truth


def test_datasets_by_name() -> None:
    graph = datasets.load("Theory-3-4-5-B1k")
    assert (type(graph), graph.n, graph.m, ww.count(graph)) == (ww.Graph, 120, 346, 287)
    published = datasets.find("Twitter")
    assert type(published) is datasets.PublishedGraph
    assert datasets.catalogue()[published.name] == published
    assert {"Theory-3-4-5-B1k", "email-Enron"} <= set(datasets.catalogue())
    assert list(datasets.sources()) == ["itc", "wetric", "trust", "bbtc", "eager", "snap", "graphchallenge"]
    assert datasets.source_of("itc").leaves_dropped
    verified = datasets.verify("Theory-3-4-5-B1k", trusses=True)
    assert verified.agrees
    assert {finding.figure for finding in verified.findings} == {"n", "m", "triangles", "kmax"}


@pytest.mark.compiled
def test_the_graph_of_the_package() -> None:
    path = datasets.bundled("email-Enron")
    graph = ww.read(path)
    assert (path.name, graph.n, graph.m) == ("email-Enron.txt.xz", 36692, 183831)
    assert ww.count(graph) == datasets.BUNDLED["email-Enron"].triangles == 727044

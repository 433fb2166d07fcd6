"""Graphs of the external data folder against everything that the papers publish about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.data_folder import FOLDER, TRUTHS, graph_path, needs_the_folder

import wedgewise as ww
from wedgewise.datasets import catalogue, find, packaged
from wedgewise.datasets.check import compare

pytestmark = [pytest.mark.data, needs_the_folder]

SPELLED = {"loc-brightkite": "loc-brightkite_edges"}
PUBLISHED = {name: SPELLED.get(name, name) for name in TRUTHS if SPELLED.get(name, name) in catalogue()}


@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_are_the_published_ones(name: str) -> None:
    """Ids without an edge are not in the folder's files, so that sources that count them may have more vertices."""
    verification = compare(find(PUBLISHED[name]), ww.read(graph_path(name)), trusses=True)
    assert verification.agrees, verification.differences
    for finding in verification.findings:
        counts_ids = finding.source in ("bbtc", "snap", "graphchallenge") and finding.figure == "n"
        assert finding.agrees or (counts_ids and finding.published.value > finding.found), finding


def test_graphs_that_are_said_to_be_counted_are_those() -> None:
    said = {name for name, graph in catalogue().items() if graph.counted and graph.recipe is None}
    assert said == set(PUBLISHED.values())
    assert set(packaged.BUNDLED) <= said


def test_a_folder_is_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.datasets.cache.cache_root", lambda: tmp_path)
    graph = ww.datasets.load("as-caida20071105", source=Path(str(FOLDER)) / "graphs", paper="itc")
    assert (graph.n, graph.m) == (16_538, 43_444)

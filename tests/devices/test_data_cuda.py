"""Every graph of the data folder: by all algorithms on a real device, and the sums of the arrays."""

from __future__ import annotations

import pytest
from helpers.data_folder import TRUTHS, graph_path, needs_the_folder

import wedgewise as ww
from devices.real_device import RECORDS, needs_device

pytestmark = [*needs_device, needs_the_folder]


@pytest.mark.parametrize("name", TRUTHS or [None])
def test_every_graph_of_the_folder(name: str) -> None:
    known, graph = TRUTHS[name], ww.Graph(graph_path(name), device="cuda")
    assert (graph.n, graph.m) == (known["n"], known["m"])
    counts = {record.name: ww.count(graph, device="cuda", algorithm=record.name) for record in RECORDS}
    assert counts == dict.fromkeys(counts, known["triangles"])
    assert int(ww.triangles(graph, device="cuda").sum()) == 3 * known["triangles"]
    supports = ww.edge_support(graph, device="cuda")
    assert (len(supports), int(supports.sum())) == (graph.m, 3 * known["triangles"])

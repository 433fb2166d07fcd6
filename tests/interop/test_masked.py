"""Masked arrays are refused wherever arrays come in: their masks would be lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import igraph
import networkx
import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy.sparse import csr_array

import wedgewise as ww
from wedgewise import interop
from wedgewise.errors import InputError
from wedgewise.store.build import write_store

PAIRS = np.array([[0, 1], [1, 2], [2, 0]])
MASK = np.array([[False, False], [False, True], [False, False]])
MASKED = np.ma.array(PAIRS, mask=MASK)
WEIGHTS = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
GRAPH = ww.Graph(PAIRS)


def matrix(part: str) -> csr_array[Any]:
    made: Any = csr_array((np.ones(3), PAIRS.T.astype(np.int32)), (3, 3))
    setattr(made, part, np.ma.array(getattr(made, part), mask=[False, True, False]))
    return made


def weighted(kind: type, values: list[Any]) -> Any:
    edges = [(0, 1), (1, 2), (2, 0)]
    if kind is networkx.Graph:
        return networkx.Graph([(u, v, {"w": value}) for (u, v), value in zip(edges, values, strict=True)])
    return igraph.Graph(n=3, edges=edges, edge_attrs={"w": values})


WAYS: dict[str, Callable[[Path], Any]] = {
    "pairs": lambda _: ww.Graph(MASKED),
    "pairs without a mask": lambda _: ww.Graph(np.ma.array(PAIRS)),
    "a question": lambda _: ww.count(MASKED),
    "rows": lambda _: ww.Graph(list(MASKED)),
    "rows that are read once": lambda _: ww.Graph(iter(MASKED)),
    "values": lambda _: ww.Graph([(0, 1), (1, np.ma.masked)]),
    "weights": lambda _: ww.Graph(PAIRS, weights=WEIGHTS),
    "weights without a mask": lambda _: ww.Graph(PAIRS, weights=np.ma.array([1.0, 2.0, 3.0])),
    "listed weights": lambda _: ww.Graph(PAIRS, weights=[1.0, np.ma.masked, 3.0]),
    "weights of pairs": lambda _: ww.Graph(PAIRS.tolist(), weights=WEIGHTS),
    "weights of a frame": lambda _: ww.Graph(pd.DataFrame(PAIRS, columns=["u", "v"]), weights=WEIGHTS),
    "weights of a table": lambda _: ww.Graph(pyarrow.table({"u": [0, 1, 2], "v": [1, 2, 0]}), weights=WEIGHTS),
    "weights of igraph": lambda _: ww.Graph(weighted(igraph.Graph, [1.0, np.ma.masked, 2.0]), weights="w"),
    "values of a matrix": lambda _: ww.Graph(matrix("data"), weights=True),
    "values of a pattern": lambda _: ww.Graph(matrix("data")),
    "indices of a matrix": lambda _: ww.Graph(matrix("indices")),
    "edge_index": lambda _: interop.from_edge_index(MASKED.T),
    "weights of edge_index": lambda _: interop.from_edge_index(PAIRS.T, weights=WEIGHTS),
    "edges of a subgraph": lambda _: GRAPH.subgraph(np.ma.array([0, 1], mask=[False, True])),
    "listed edges of a subgraph": lambda _: GRAPH.subgraph([0, np.ma.masked]),  # type: ignore[list-item]
    "columns": lambda _: interop.edge_table(GRAPH, weight=WEIGHTS),
    "values for a matrix": lambda _: interop.to_scipy(GRAPH, WEIGHTS),
    "stores": lambda folder: write_store(MASKED, folder / "store"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_mask_is_never_lost(way: Callable[[Path], Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a masked array, .*\.compressed\(\).*\.filled\(value\)") as raised:
        way(tmp_path)
    assert str(raised.value).count("masked array") == 1


def test_attributes_of_networkx_are_numbers() -> None:
    with pytest.raises(InputError, match="weights are int or float"):
        ww.Graph(weighted(networkx.Graph, [1.0, np.ma.masked, 2.0]), weights="w")


def test_the_remedies_work() -> None:
    assert ww.Graph(np.ma.compress_rows(MASKED)).m == 2  # type: ignore[no-untyped-call]
    assert ww.Graph(MASKED.filled(3)).m == 3
    assert ww.Graph(PAIRS, weights=WEIGHTS.filled(0)).weights is not None

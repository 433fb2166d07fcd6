"""Weights of repeated edges: last, sum, max, min or an error, against plain Python over random multigraphs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas
import pytest

import wedgewise as ww
from wedgewise import interop
from wedgewise.errors import InputError, UnknownNameError
from wedgewise.prepare import attributes

Arc = tuple[Any, Any]

COMBINED: dict[str, Callable[[list[float]], float]] = {
    "last": lambda given: given[-1],
    "sum": lambda given: reduce(add, given),
    "max": max,
    "min": min,
}
every_way = pytest.mark.parametrize("combine", COMBINED)
every_kind = pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])


def rows_by_arc(pairs: list[Arc], *, directed: bool) -> dict[Arc, list[int]]:
    """The rows that give each arc; without directions, each edge by its ascending ends."""
    rows: dict[Arc, list[int]] = {}
    for row, (u, v) in enumerate(pairs):
        rows.setdefault((u, v) if directed else (min(u, v), max(u, v)), []).append(row)
    return rows


def combined(pairs: list[Arc], weights: list[float], combine: str, *, directed: bool) -> dict[Arc, float]:
    """What each arc, or edge, should weigh; loops included."""
    rows = rows_by_arc(pairs, directed=directed)
    return {arc: COMBINED[combine]([weights[row] for row in given]) for arc, given in rows.items()}


def weights_of(graph: ww.Graph) -> dict[Arc, float]:
    """The kept weights by arc, or by edge; an absent direction has none."""
    labels, found = interop.edge_table(graph), {}
    assert graph.weights is not None
    assert graph.attributes is not None
    for edge, (u, v) in enumerate(zip(labels["source"].tolist(), labels["target"].tolist(), strict=True)):
        if graph.attributes.directions is None:
            found[min(u, v), max(u, v)] = float(graph.weights[edge])
            continue
        for side, arc in enumerate(((u, v), (v, u))):
            if graph.attributes.directions[edge, side]:
                found[arc] = float(graph.weights[edge, side])
            else:
                assert graph.weights[edge, side] == 0
    return found


def drawn(seed: int) -> tuple[list[Arc], list[float]]:
    """A multigraph with loops, copies and both directions; its sums depend on their order."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    pairs = rng.integers(0, n, (int(rng.integers(1, 5 * n)), 2)) * int(rng.choice([1, 3, 10**12]))
    weights = rng.normal(size=len(pairs)) * 10.0 ** rng.integers(-8, 9, len(pairs))
    return [(u, v) for u, v in pairs.tolist()], weights.tolist()


def without_loops(weights: dict[Arc, float]) -> dict[Arc, float]:
    return {arc: weight for arc, weight in weights.items() if arc[0] != arc[1]}


@every_way
@every_kind
@pytest.mark.parametrize("text", [False, True], ids=["integers", "text"])
def test_weights_of_random_multigraphs(
    combine: str, directed: bool, text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attributes, "CHUNK", 7)
    for seed in range(60):
        pairs, weights = drawn(seed)
        if text:
            pairs = [(f"v{u}", f"v{v}") for u, v in pairs]
        graph = ww.Graph(pairs, weights=weights, directed=directed, combine=combine, threads=1 + seed % 3)
        expected = combined(pairs, weights, combine, directed=directed)
        assert weights_of(graph) == without_loops(expected)
        assert graph.attributes is not None
        assert graph.attributes.largest_weight == max(expected.values())


@every_kind
def test_the_first_repeated_row_is_named(directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributes, "CHUNK", 7)
    refused = 0
    for seed in range(120):
        pairs, weights = drawn(seed)
        pairs = pairs[: 1 + seed % 6]
        repeated = [rows for rows in rows_by_arc(pairs, directed=directed).values() if len(rows) > 1]
        if not repeated:
            graph = ww.Graph(pairs, weights=weights[: len(pairs)], directed=directed, combine="error")
            expected = combined(pairs, weights, "last", directed=directed)
            assert weights_of(graph) == without_loops(expected)
            continue
        first, second, *_ = min(repeated, key=lambda rows: rows[1])
        u, v = pairs[first]
        with pytest.raises(InputError) as caught:
            ww.Graph(pairs, weights=weights[: len(pairs)], directed=directed, combine="error")
        assert str(caught.value).startswith(f"<pairs>: rows {first} and {second} both give ({u}, {v}) a weight; leave")
        refused += 1
    assert 20 <= refused <= 100


@every_way
def test_the_default_is_the_last(combine: str) -> None:
    pairs, weights = [(0, 1), (1, 0), (0, 1), (2, 2), (2, 2)], [8.0, 9.0, 2.0, 7.0, 3.0]
    expected = {"last": (2.0, 3.0), "sum": (19.0, 19.0), "max": (9.0, 9.0), "min": (2.0, 3.0)}
    graph = ww.Graph(pairs, weights=weights, combine=combine)
    assert graph.weights is not None
    assert graph.attributes is not None
    assert (graph.weights.tolist(), graph.attributes.largest_weight) == ([expected[combine][0]], expected[combine][1])
    plain = ww.Graph(pairs, weights=weights).weights
    assert plain is not None
    assert plain.tolist() == [2.0]


@pytest.mark.parametrize(
    ("pairs", "weights", "directed", "message"),
    [
        (
            [("a", "b"), ("c", "b"), ("b", "a")],
            [1e308, 1.0, 1e308],
            False,
            r"the weights of \(a, b\), first given in row 0",
        ),
        ([(0, 1), (7, 5), (5, 7), (7, 5)], [1.0, -1e308, 1.0, -1e308], True, r"\(7, 5\), first given in row 1, add up"),
        ([(0, 1), (3, 3), (3, 3)], [1.0, 1e308, 1e308], False, r"the weights of \(3, 3\), first given in row 1"),
    ],
)
def test_sums_that_overflow_are_refused(pairs: Any, weights: list[float], directed: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ww.Graph(pairs, weights=weights, directed=directed, combine="sum")
    assert ww.Graph(pairs, weights=weights, directed=directed, combine="max").weights is not None


def test_an_edge_of_an_undirected_source_is_given_once() -> None:
    import networkx

    source = networkx.Graph()
    source.add_edge("ada", "bob", weight=2.5)
    kept = ww.Graph(source, weights="weight", directed=True, combine="error").weights
    assert kept is not None
    assert kept.tolist() == [[2.5, 2.5]]


def test_a_symmetric_matrix_gives_every_edge_twice() -> None:
    from scipy import sparse

    matrix = sparse.coo_array(([2.0, 2.0], ([0, 1], [1, 0])))
    summed = ww.Graph(matrix, weights=True, combine="sum").weights
    assert summed is not None
    assert summed.tolist() == [4.0]
    apart = ww.Graph(matrix, weights=True, combine="error", directed=True).weights
    assert apart is not None
    assert apart.tolist() == [[2.0, 2.0]]


def test_edges_of_dropped_leaves_are_not_combined() -> None:
    pairs, weights = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 2), (3, 3), (3, 3)], [1.0, 2.0, 3.0, 1e308, 1e308, 5.0, 6.0]
    for combine in ("sum", "error"):
        graph = ww.Graph(pairs, weights=weights, combine=combine, drop_leaves=True)
        assert graph.weights is not None
        assert graph.weights.tolist() == [1.0, 3.0, 2.0]


def test_a_column_of_a_table_is_combined() -> None:
    table = pandas.DataFrame({"source": ["b", "a"], "target": ["a", "b"], "since": [2019, 2021]})
    graph = ww.Graph(table, weights="since", combine="min")
    assert graph.weights is not None
    assert graph.weights.tolist() == [2019.0]
    with pytest.raises(InputError, match=re.escape("<table>: rows 0 and 1 both give (b, a) a weight; leave one out")):
        ww.Graph(table, weights="since", combine="error")


def test_edge_indices_hand_it_on() -> None:
    edge_index = np.array([[0, 1], [1, 0]])
    kept = interop.from_edge_index(edge_index, weights=[1.0, 2.0], combine="sum").weights
    assert kept is not None
    assert kept.tolist() == [3.0]


@pytest.mark.parametrize("combine", ["mean", "", "LAST"])
def test_unknown_ways_are_refused_with_those_there_are(combine: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        ww.Graph([(0, 1)], weights=[1.0], combine=combine)
    assert str(caught.value) == (f"no way to combine weights named {combine!r}; there are: last, sum, max, min, error")


def test_without_weights_there_is_nothing_to_combine() -> None:
    assert ww.Graph([(0, 1)], combine="last").weights is None
    with pytest.raises(InputError, match="<pairs>: combine='sum' where no weights are kept; pass weights too"):
        ww.Graph([(0, 1)], combine="sum")

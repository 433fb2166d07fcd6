"""Whatever type, layout and library pairs come in, they are the graph that plain Python makes of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wedgewise as ww
from attack.forms import DTYPES, LAYOUTS, LIBRARIES, from_edge_index, given_as
from wedgewise.errors import InputError
from wedgewise.machine.jit import JIT_DISABLED

N = 300  # more vertices than numbers of 8 bits
SOME = DTYPES[::3] if JIT_DISABLED else DTYPES  # of each size, sign and order of bytes


def drawn(dtype: str) -> NDArray[Any]:
    """Pairs up to the largest number that the type and the graph have, that one among them."""
    top = min(np.iinfo(dtype).max, N - 1)
    ends = np.random.default_rng(5).integers(0, top + 1, (900, 2))
    clique = np.array(list(combinations(range(top - 5, top + 1), 2)))
    return np.concatenate([ends, clique]).astype(dtype)


def plain_facts(pairs: NDArray[Any]) -> tuple[int, int, list[int]]:
    """Edges, triangles and degrees, by sets."""
    near: list[set[int]] = [set() for _ in range(N)]
    for u, v in pairs.tolist():
        if u != v:
            near[u].add(v)
            near[v].add(u)
    triangles = sum(len(near[u] & near[v]) for u in range(N) for v in near[u]) // 6
    return sum(map(len, near)) // 2, triangles, [len(row) for row in near]


def facts(graph: ww.Graph) -> tuple[int, int, list[int]]:
    return graph.m, ww.count(graph), graph.degrees.tolist()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", SOME)
def test_every_type_in_every_library(dtype: str, library: str) -> None:
    pairs = drawn(dtype)
    source, options = given_as(library, pairs, N)
    assert facts(ww.Graph(source, **options)) == plain_facts(pairs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", SOME)
def test_every_type_in_every_layout(dtype: str, layout: str) -> None:
    pairs, expected = LAYOUTS[layout](drawn(dtype)), plain_facts(drawn(dtype))
    assert pairs.dtype == np.dtype(dtype)
    assert facts(ww.Graph(pairs, n=N)) == expected
    assert facts(from_edge_index(pairs, N)) == expected
    graph = ww.Graph(pairs)
    assert (graph.m, ww.count(graph)) == expected[:2]
    assert ww.edge_ids(graph, pairs).max() == graph.m - 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_edges_and_weights_of_every_type(dtype: str) -> None:
    pairs = drawn("<i4")
    graph = ww.Graph(pairs, weights=np.arange(len(pairs)).astype(dtype))
    assert graph.weights is not None
    assert graph.weights.max() <= np.iinfo(dtype).max
    chosen = np.arange(100)[::-1].astype(dtype)[::3]
    assert graph.subgraph(chosen).m == len(chosen)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "u2"])
def test_a_matrix_has_more_rows_than_its_indices_count(dtype: str, kind: str) -> None:
    random = np.random.default_rng(6)
    pairs = np.stack([random.integers(0, N, 900), random.integers(0, 128, 900)], axis=1)
    if kind == "csc":
        pairs = pairs[:, ::-1]
    matrix, _ = given_as(kind, pairs, N)
    matrix.indices = matrix.indices.astype(dtype)
    assert facts(ww.Graph(matrix)) == plain_facts(pairs)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    "starts",
    [
        [0, 1, 2, 9],  # more entries than there are
        [0, 2, 1, 3],
        [1, 2, 3, 3],
        [0, -1, 2, 3],
        [0, 1, 3],
        [0, 1, 2, 3, 3],
        [0.0, 1.0, 2.5, 3.0],
    ],
)
def test_rows_of_a_matrix_that_do_not_fit_its_entries_are_refused(kind: str, starts: list[float]) -> None:
    matrix, _ = given_as(kind, np.array([(0, 1), (1, 2), (2, 0)]), 3)
    matrix.indptr = np.array(starts)
    with pytest.raises(InputError, match="rebuild the matrix"):
        ww.Graph(matrix)


def test_blocks_of_a_matrix_are_spread_out() -> None:
    edges = [(0, 1), (1, 2), (2, 0), (299, 298), (298, 150), (150, 299)]
    matrix: Any = given_as("csr", np.array(edges), N)[0].tobsr(blocksize=(3, 2))
    matrix.indices = matrix.indices.astype(np.uint8)
    matrix.data = np.ones_like(matrix.data)
    dense = [(u // 3 * 3 + down, v // 2 * 2 + across) for u, v in edges for down in range(3) for across in range(2)]
    assert facts(ww.Graph(matrix)) == plain_facts(np.array(dense))


@pytest.mark.parametrize("part", ["row", "col", "data"])
def test_parts_of_a_matrix_have_one_length(part: str) -> None:
    matrix, _ = given_as("coo", np.array([(0, 1), (1, 2), (2, 0)]), 3)
    setattr(matrix, part, getattr(matrix, part)[:1])
    with pytest.raises(InputError, match="rebuild the matrix"):
        ww.Graph(matrix, weights=True)

"""k-truss by its linear-algebraic definition, in array operations.

Paper: Blanco, Low, Kim, HPEC 2019, Algorithm 1. With A the symmetric adjacency matrix of the living edges, a round is

    S = AᵀA ∘ A,    M = S ≥ k − 2,    A = A ∘ M

until M changes nothing. An entry of the product is computed where A has one, as the sum over the shorter of both rows.
Memory: 40 bytes per edge, and `BATCH_PRODUCTS` × 41.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._ranges import even_bounds

BATCH_PRODUCTS = 1 << 19


def k_truss_by_products(edges: NDArray[np.uint32], n: int, k: int) -> tuple[NDArray[np.bool_], int]:
    """Whether each of the distinct edges u < v is in the k-truss, and the rounds that it took to know.

    Examples
    --------
    >>> import numpy as np
    >>> edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3]], np.uint32)
    >>> lives, rounds = k_truss_by_products(edges, 4, 3)
    >>> lives.tolist(), rounds
    ([True, True, True, False], 2)
    """
    lives, rounds, changed = np.ones(len(edges), np.bool_), 0, True
    while changed and lives.any():
        stays = supports_by_products(edges[lives], n) >= k - 2
        lives[lives] = stays
        rounds, changed = rounds + 1, not stays.all()
    return lives, rounds


def supports_by_products(edges: NDArray[np.uint32], n: int) -> NDArray[np.int64]:
    """The entries of AᵀA ∘ A at the given edges."""
    ends = edges.astype(np.uint64)
    entries = np.concatenate([ends[:, 0] << np.uint64(32) | ends[:, 1], ends[:, 1] << np.uint64(32) | ends[:, 0]])
    entries.sort()
    columns = entries & np.uint64(0xFFFFFFFF)
    starts = np.searchsorted(entries, np.arange(n + 1, dtype=np.uint64) << np.uint64(32))
    lengths = np.diff(starts)
    is_shorter = lengths[edges[:, 0]] <= lengths[edges[:, 1]]
    shorter, longer = np.where(is_shorter, ends.T, ends[:, ::-1].T)
    supports = np.zeros(len(edges), np.int64)
    for begin, end in pairwise(even_bounds(lengths[shorter], BATCH_PRODUCTS, least=1).tolist()):
        factors = lengths[shorter[begin:end]]
        edge = np.repeat(np.arange(end - begin), factors)
        first = starts[shorter[begin:end]] - (np.cumsum(factors) - factors)
        wanted = longer[begin:end][edge] << np.uint64(32) | columns[np.arange(len(edge)) + first[edge]]
        place = np.minimum(np.searchsorted(entries, wanted), len(entries) - 1)
        supports[begin:end] = np.bincount(edge[entries[place] == wanted], minlength=end - begin)
    return supports

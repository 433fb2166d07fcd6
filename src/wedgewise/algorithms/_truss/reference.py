"""k-truss by its linear-algebraic definition, in array operations.

Paper: Blanco, Low, Kim, HPEC 2019, Algorithm 1. With A the adjacency matrix of the remaining edges, a round is

    S = AᵀA ∘ A,    M = S ≥ k − 2,    A = A ∘ M

until M changes nothing. An entry of the product is computed where A has one, as the sum over the shorter of both rows.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._ranges import even_bounds

BATCH_PRODUCTS = 1 << 19
ROW_BYTES, EDGE_BYTES, PRODUCT_BYTES = 24, 120, 49


class ProductRounds:
    """What remains of some distinct edges u, v among `n` vertices; ``remaining`` counts them."""

    def __init__(self, ends: NDArray[np.uint32], n: int) -> None:
        self.remaining = len(ends)
        self._ends, self._n = ends, n
        self._remains = np.ones(len(ends), np.bool_)
        self._supports = np.empty(0, np.int64)

    def run_round(self, least: int) -> None:
        """Count the supports of the remaining edges; remove those of less than `least`."""
        self._supports = supports_by_products(self._ends[self._remains], self._n)
        stays = self._supports >= least
        self._remains[self._remains] = stays
        self.remaining = int(np.count_nonzero(stays))

    def least_support(self) -> int:
        """The least support of the remaining edges, after a round that removed none."""
        return int(self._supports.min())

    def survivors(self) -> NDArray[np.bool_]:
        """Whether each edge remains."""
        return self._remains.copy()


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
        position = np.minimum(np.searchsorted(entries, wanted), len(entries) - 1)
        supports[begin:end] = np.bincount(edge[entries[position] == wanted], minlength=end - begin)
    return supports


def product_bytes(n: int, m: int) -> int:
    """Peak of a round beyond the ends of all edges."""
    return EDGE_BYTES * m + ROW_BYTES * (n + 1) + PRODUCT_BYTES * (BATCH_PRODUCTS + n)

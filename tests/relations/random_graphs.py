"""Random small graphs, and how many of them a relation is tried on."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from helpers.graphs import SmallGraph
from hypothesis import settings
from hypothesis import strategies as st

from wedgewise.machine.jit import JIT_DISABLED

examples = settings(deadline=None, derandomize=True, max_examples=8 if JIT_DISABLED else 20)


@st.composite
def random_graphs(draw: Any, least: int = 0, most: int = 9) -> SmallGraph:
    """Any simple graph with `least` … `most` vertices, each edge one bit of an integer."""
    n = draw(st.integers(least, most))
    possible = list(combinations(range(n), 2))
    chosen = draw(st.integers(0, 2 ** len(possible) - 1))
    return SmallGraph(n, frozenset(pair for place, pair in enumerate(possible) if chosen >> place & 1))


graphs = random_graphs()
graphs_with_a_vertex = random_graphs(least=1)
graphs_with_an_edge = graphs.filter(lambda g: g.m > 0)
few_vertices = random_graphs(most=5)
integers = st.integers(0, 2**32 - 1)

"""What `wedgewise.interop` promises as a whole: examples, lazy imports, remedies, NetworkX, directions."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from typing import Any

import igraph
import networkit
import networkx
import numpy as np
import pytest

import wedgewise as ww
from interop.messy_pairs import GRAPHS, MessyGraph
from wedgewise import interop
from wedgewise.errors import InputError, MissingDependencyError

LIBRARIES = {"scipy", "pyarrow", "networkx", "igraph", "networkit", "graphblas", "pandas", "polars", "torch", "cupy"}


@pytest.mark.parametrize("name", interop.__all__)
def test_every_public_name_has_an_example_that_runs(name: str) -> None:
    value = getattr(interop, name)
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", {name: value}, name, None, None)
    assert test.examples, f"{name} has no example in its docstring"
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_importing_and_asking_load_no_library() -> None:
    """An object of no library is refused without a look at the libraries."""
    asked = (
        "import sys, numpy, wedgewise as ww; from wedgewise import interop\n"
        "interop.edges_from([(0, 1)], [2.0]); interop.edges_from(numpy.array([[0, 1]]))\n"
        "try: interop.edges_from(7)\n"
        "except ww.errors.InputError: print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert "wedgewise" in loaded
    assert LIBRARIES.isdisjoint(loaded)


@pytest.mark.parametrize(
    ("convert", "module", "remedy"),
    [
        (interop.to_scipy, "scipy.sparse", 'scipy is needed for this; install it with: pip install "wedgewise[scipy]"'),
        (interop.to_arrow, "pyarrow", 'pyarrow is needed for this; install it with: pip install "wedgewise[arrow]"'),
        (interop.to_igraph, "igraph", "igraph is needed for this; install it with: pip install igraph"),
        (interop.to_networkit, "networkit", "networkit is needed for this; install it with: pip install networkit"),
        (
            interop.to_graphblas,
            "graphblas",
            "graphblas is needed for this; install it with: pip install python-graphblas",
        ),
        (
            interop.to_networkx,
            "networkx",
            'networkx is needed for this; install it with: pip install "wedgewise[networkx]"',
        ),
        (interop.to_pandas, "pandas", "pandas is needed for this; install it with: pip install pandas"),
        (interop.to_polars, "polars", "polars is needed for this; install it with: pip install polars"),
    ],
)
def test_a_missing_library_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, convert: Any, module: str, remedy: str
) -> None:
    graph = ww.Graph([(0, 1)])
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError) as caught:
        convert(graph)
    assert str(caught.value) == remedy


def test_a_library_that_is_half_imported_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    monkeypatch.delattr(networkx, "Graph")
    assert interop.edges_from([(0, 1)]).pairs.tolist() == [[0, 1]]


@pytest.mark.parametrize("source", [7, None, {0: [1]}, object()])
def test_anything_else_is_refused_with_what_would_do(source: Any) -> None:
    with pytest.raises(InputError) as caught:
        interop.edges_from(source)
    assert str(caught.value) == (
        f"cannot read edges from {type(source).__name__}; pass a (k, 2) integer array, an iterable of pairs, "
        "a SciPy sparse matrix, a table, a graph of another library or a path"
    )


@pytest.mark.parametrize("messy", GRAPHS, ids=range(len(GRAPHS)))
def test_networkx_both_ways(messy: MessyGraph) -> None:
    source = networkx.MultiGraph(messy.arcs)
    source.add_nodes_from(range(messy.n))
    graph = ww.Graph(source)
    assert list(graph.labels) == list(source)
    given = interop.to_networkx(graph)
    assert list(given) == list(source)
    assert sorted((min(edge), max(edge)) for edge in given.edges) == messy.edges


def directions_kept(source: Any) -> list[list[bool]]:
    """For each edge u < v, whether u → v and whether v → u is known."""
    attributes = ww.Graph(source, directed=True).attributes
    assert attributes is not None
    assert attributes.directions is not None
    directions: list[list[bool]] = attributes.directions.tolist()
    return directions


def in_igraph(directed: bool) -> Any:
    return igraph.Graph(n=3, edges=[(0, 2), (2, 1)], directed=directed)


def in_networkit(directed: bool) -> Any:
    return networkit.GraphFromCoo((np.array([0, 2]), np.array([2, 1])), n=3, directed=directed)


def in_networkx(directed: bool) -> Any:
    graph = networkx.DiGraph() if directed else networkx.Graph()
    graph.add_nodes_from(range(3))
    graph.add_edges_from([(0, 2), (2, 1)])
    return graph


@pytest.mark.parametrize("make", [in_igraph, in_networkit, in_networkx])
def test_directions_of_a_directed_source_are_kept(make: Any) -> None:
    assert directions_kept(make(directed=True)) == [[True, False], [False, True]]


@pytest.mark.parametrize("make", [in_igraph, in_networkit, in_networkx])
def test_an_undirected_source_has_both_directions(make: Any) -> None:
    assert directions_kept(make(directed=False)) == [[True, True], [True, True]]


@pytest.mark.parametrize(("make", "weights"), [(in_igraph, [2.0, 5.0]), (in_networkx, "weight")])
def test_an_undirected_edge_weighs_the_same_both_ways(make: Any, weights: Any) -> None:
    source = make(directed=False)
    if weights == "weight":
        networkx.set_edge_attributes(source, {(0, 2): 2.0, (2, 1): 5.0}, "weight")
    kept = ww.Graph(source, weights=weights, directed=True).weights
    assert kept is not None
    assert kept.tolist() == [[2.0, 2.0], [5.0, 5.0]]

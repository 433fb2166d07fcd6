"""The NetworkX backend: NetworkX calls these functions in place of its own where the user asked for wedgewise.

Arguments, answers and exceptions are NetworkX's; what wedgewise reads differently is refused in `can_run` or by the
conversion, with the reason, and NetworkX answers it itself.
"""

from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sized
from functools import cached_property
from itertools import chain, islice
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from wedgewise import api, api_listing, api_similarity, api_trusses
from wedgewise.algorithms._truss import MIN_K
from wedgewise.answer_types import GeneralizedDegree
from wedgewise.errors import InputError
from wedgewise.graph import Graph
from wedgewise.interop.graphs import networkx_from_edges
from wedgewise.read.objects.graphs import edges_from_networkx
from wedgewise.stages import EdgeList

NAME = "wedgewise"
BREAK_EVEN_SIZE = 1000  # nodes and edges; below, NetworkX answers before the conversion has begun to pay
BREAK_EVEN_CORES = 4000  # the same for core numbers, which NetworkX finds in one pass
BREAK_EVEN_PAIRS = 1000  # of a converted graph; of any other also a share of its nodes and edges
SIZE_PER_PAIR = 10
ENTRIES_PER_NODE = 10  # of a graph as they often are; counting them would take as long as some answers
LISTING_BATCH = 1 << 16
HAS_LOOPS = (
    "Input graph has self loops which is not permitted; Consider using G.remove_edges_from(nx.selfloop_edges(G))."
)
DIRECTED_CORES = "NetworkX's core numbers of a directed graph count an edge in each direction"
COMPONENTS = ("connected_components", "number_connected_components")
OF_PAIRS = ("jaccard_coefficient", "preferential_attachment")
CORES = ("core_number", "k_core", "k_shell")
CUTS = ("k_truss", "k_core", "k_shell")
OWN_ADJACENCY = ("adj", "adjacency", "__getitem__", "__iter__", "__contains__", "nbunch_iter")


class ConvertedGraph:
    """A NetworkX graph as wedgewise holds it; NetworkX keeps it with the original until that changes.

    Nodes keep their order. Self-loops stay in the edge list and parallel edges become one; of the attributes only the
    weight that was asked for is kept, or `source`, the original, which has them all.
    """

    __networkx_backend__ = NAME

    def __init__(
        self, edge_list: EdgeList, nodes: list[Any], multigraph: bool, weight: Hashable | None, source: Any = None
    ) -> None:
        self.edge_list = edge_list
        self.nodes = nodes
        self.weight = weight
        self.source = source
        self.multigraph = multigraph
        self.graph = Graph(edge_list.pairs, n=len(nodes), directed=not edge_list.undirected, weights=edge_list.weights)
        self._cached: dict[Hashable, Any] = {}

    @cached_property
    def _adj(self) -> dict[Any, int]:
        """The number of every node, under the name by which `nx.Graph.nbunch_iter` knows the nodes."""
        return dict(zip(self.nodes, range(len(self.nodes)), strict=True))

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self._adj
        except TypeError:  # unhashable: not a node, as in NetworkX
            return False

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def is_directed(self) -> bool:
        """Whether the original was directed."""
        return not self.edge_list.undirected

    def is_multigraph(self) -> bool:
        """Whether the original was a multigraph."""
        return self.multigraph

    def vertices(self, nodes: Any) -> dict[Any, int]:
        """The numbers of the asked nodes, with NetworkX's exceptions for what is neither a node nor nodes."""
        return {node: self._adj[node] for node in nx.Graph.nbunch_iter(self, nodes)}

    def cached(self, cache_key: Hashable, answer: Callable[[Graph], Any]) -> Any:
        """An answer about the whole graph, computed at the first call: the next question is about another node."""
        if cache_key not in self._cached:
            self._cached[cache_key] = answer(self.graph)
        return self._cached[cache_key]

    def values_by_node(self, nodes: Any, cache_key: str, answer: Callable[[Graph], NDArray[Any]]) -> Any:
        """Numbers per vertex as NetworkX returns them: one number, or a dictionary by node."""
        if nodes is None:
            return dict(zip(self.nodes, answer(self.graph).tolist(), strict=True))
        vertices = self.vertices(nodes)
        found = self.cached(cache_key, answer)[list(vertices.values())].tolist()
        return found[0] if nodes in self else dict(zip(vertices, found, strict=True))

    def weighted_by(self, weight: Hashable | None) -> ConvertedGraph:
        """The same graph with an attribute as weight, which NetworkX expects of one that has all attributes."""
        if weight in (None, self.weight):
            return self
        converted: ConvertedGraph = self.cached(("weighted by", weight), lambda _: _convert(self.source, weight))
        return converted

    def subgraph(self, edges: NDArray[np.int64]) -> Any:
        """Some edges of `graph` with their ends, as a graph of the original's class with its attributes and order."""
        taken = np.isin(_keys(self.edge_list.pairs), _keys(self.graph.edges[edges]), assume_unique=True)
        pairs = self.edge_list.pairs[taken]
        node, data, adjacency = self.nodes.__getitem__, self.source._node, self.source._adj
        found = type(self.source)()
        found.graph.update(self.source.graph)
        found.add_nodes_from((node(v), data[node(v)]) for v in np.unique(pairs).tolist())
        found.add_edges_from((node(u), node(v), adjacency[node(u)][node(v)]) for u, v in pairs.tolist())
        return found

    def __deepcopy__(self, memo: Any) -> ConvertedGraph:
        nodes, source = copy.deepcopy(self.nodes, memo), memo.get(id(self.source), self.source)
        if source is self.source and all(map(operator.is_, nodes, self.nodes)):
            return self  # it never changes
        return ConvertedGraph(self.edge_list, nodes, self.multigraph, self.weight, source)

    def __reduce__(self) -> Any:
        return ConvertedGraph, (self.edge_list, self.nodes, self.multigraph, self.weight, self.source)


class Backend:
    """What the ``networkx.backends`` entry point names: the functions, the conversions and what they refuse."""

    def triangles(self, G: ConvertedGraph, nodes: Any = None) -> Any:
        """The triangles of each node."""
        if nodes is not None:
            _refuse_multigraph(G)
        return G.values_by_node(nodes, "triangles", api.triangles)

    def all_triangles(self, G: ConvertedGraph, nbunch: Any = None) -> Iterator[tuple[Any, Any, Any]]:
        """Every triangle, or those with a node of `nbunch`: its nodes first, the others in the graph's order."""
        first = () if nbunch is None else tuple(G.vertices(nbunch).values())
        position = np.arange(len(first), len(first) + len(G))
        position[list(first)] = np.arange(len(first))
        label = G.nodes.__getitem__
        for rows in api_listing.iter_triangles(G.graph, batch=LISTING_BATCH):
            if nbunch is not None:
                rows = rows[(position[rows] < len(first)).any(axis=1)]
                rows = np.take_along_axis(rows, np.argsort(position[rows], axis=1), axis=1)
            yield from zip(*(map(label, column.tolist()) for column in rows.T), strict=True)

    def clustering(self, G: ConvertedGraph, nodes: Any = None, weight: Hashable | None = None) -> Any:
        """The clustering coefficient of one node, or of each node."""
        _refuse_multigraph(G)
        weighted = weight is not None
        cache_key = "weighted clustering" if weighted else "clustering"
        converted = G.weighted_by(weight)
        return converted.values_by_node(nodes, cache_key, lambda graph: api.clustering(graph, weighted=weighted))

    def average_clustering(
        self, G: ConvertedGraph, nodes: Any = None, weight: Hashable | None = None, count_zeros: bool = True
    ) -> float:
        """The mean clustering coefficient, summed in NetworkX's order."""
        values = self.clustering(G, nodes, weight).values()
        if not count_zeros:
            values = [value for value in values if abs(value) > 0]
        return float(sum(values) / len(values))

    def transitivity(self, G: ConvertedGraph) -> float:
        """The share of closed wedges."""
        _refuse_multigraph(G)
        return api.transitivity(G.graph)

    def generalized_degree(self, G: ConvertedGraph, nodes: Any = None) -> Any:
        """A Counter of each node's edges by their number of triangles."""
        _refuse_multigraph(G)
        if nodes is None:
            return dict(zip(G.nodes, _counters(api.generalized_degree(G.graph)), strict=True))
        vertices = G.vertices(nodes)
        table = G.cached("generalized_degree", api.generalized_degree)
        if nodes in G:
            return Counter(table[vertices[nodes]])
        return {node: Counter(table[vertex]) for node, vertex in vertices.items()}

    def k_truss(self, G: ConvertedGraph, k: int) -> Any:
        """The k-truss as a NetworkX graph of the same class; below k = 2 it is the 2-truss, as in NetworkX."""
        _refuse_loops(G)
        return G.subgraph(api_trusses.k_truss(G.graph, max(MIN_K, int(k))).edges)

    def core_number(self, G: ConvertedGraph) -> dict[Any, int]:
        """The core number of each node."""
        _refuse_loops(G)
        return dict(zip(G.nodes, G.cached("core_number", api_similarity.core_number).tolist(), strict=True))

    def k_core(self, G: ConvertedGraph, k: Any = None, core_number: None = None) -> Any:
        """The k-core, cut out by NetworkX once the core numbers are known."""
        return nx.k_core(G.source, k, self.core_number(G), backend="networkx")

    def k_shell(self, G: ConvertedGraph, k: Any = None, core_number: None = None) -> Any:
        """The k-shell, cut out in the same way."""
        return nx.k_shell(G.source, k, self.core_number(G), backend="networkx")

    def connected_components(self, G: ConvertedGraph) -> Iterator[set[Any]]:
        """The nodes of every component, in the order of their first nodes."""
        component = G.cached("connected_components", api_similarity.connected_components)
        nodes = map(G.nodes.__getitem__, np.argsort(component, kind="stable").tolist())
        for size in np.bincount(component).tolist():
            yield set(islice(nodes, size))

    def number_connected_components(self, G: ConvertedGraph) -> int:
        """The number of components."""
        return int(G.cached("connected_components", api_similarity.connected_components).max(initial=-1)) + 1

    def jaccard_coefficient(self, G: ConvertedGraph, ebunch: Any = None) -> Iterator[tuple[Any, Any, Any]]:
        """Each pair with its Jaccard coefficient; of two nodes without neighbours that is the integer 0."""
        pairs, values, degrees = _of_pairs(G, ebunch, "jaccard")
        ends = zip(pairs, values, degrees.tolist(), strict=True)
        return ((u, v, value if any(degree) else 0) for (u, v), value, degree in ends)

    def preferential_attachment(self, G: ConvertedGraph, ebunch: Any = None) -> Iterator[tuple[Any, Any, int]]:
        """Each pair with the product of its degrees."""
        pairs, values, _ = _of_pairs(G, ebunch, "preferential_attachment")
        return ((u, v, value) for (u, v), value in zip(pairs, values, strict=True))

    def can_run(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
        """Whether wedgewise means the same as NetworkX here; if not, why."""
        graph = args[0] if args else kwargs["G"]
        if name == "transitivity" and graph.is_directed():
            return "NetworkX's transitivity of a directed graph counts among successors alone"
        if name in CORES and graph.is_directed():
            return DIRECTED_CORES
        if name in CUTS:
            return _can_cut(name, graph, args, kwargs)
        if name in OF_PAIRS and not isinstance(_argument("ebunch", 1, args, kwargs), Sized):
            return "ebunch is not a collection of pairs: NetworkX lists every pair without an edge, or reads it once"
        weight = _argument("weight", 2, args, kwargs)
        if callable(weight):
            return "weight is a function; pass the name of an edge attribute"
        if not isinstance(graph, ConvertedGraph):
            return _can_convert(graph)
        known = weight in (None, graph.weight) or graph.source is not None
        return True if known else f"the graph was converted without its {weight!r}"

    def should_run(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
        """Whether converting the graph pays; if not, why."""
        graph = args[0] if args else kwargs["G"]
        least = BREAK_EVEN_CORES if name in CORES else BREAK_EVEN_SIZE
        if len(graph) < least and (size := _size(graph)) < least:
            return f"NetworkX answers sooner on {size} nodes and edges; converting pays from {least}"
        if name in CUTS:
            return True
        cache = getattr(graph, "__networkx_cache__", None)
        converted = bool(cache and cache.get("backends", {}).get(NAME))
        if name in COMPONENTS:
            return converted or "NetworkX walks over the graph once, and so does the conversion"
        if name in OF_PAIRS:
            return _pairs_pay(name, graph, len(_argument("ebunch", 1, args, kwargs)), converted)
        nodes = _argument("nbunch" if name == "all_triangles" else "nodes", 1, args, kwargs)
        if nodes is None or converted or _looks_far(graph, nodes):
            return True
        return "NetworkX looks at the asked nodes' surroundings alone, which are smaller than the graph"

    def convert_from_nx(
        self,
        graph: Any,
        edge_attrs: Mapping[Hashable, Any] | None = None,
        *,
        preserve_edge_attrs: bool = False,
        preserve_node_attrs: bool = False,
        **_names: Any,
    ) -> ConvertedGraph:
        """Convert a NetworkX graph, with the weights named by `edge_attrs`; NetworkX keeps the result."""
        weight = None if graph.is_multigraph() or not edge_attrs else next(iter(edge_attrs))
        return _convert(graph, weight, keep_source=preserve_edge_attrs or preserve_node_attrs)

    def convert_to_nx(self, result: Any, **_names: Any) -> Any:
        """Make a converted graph a NetworkX graph again; every other answer is one of Python's own types already."""
        if not isinstance(result, ConvertedGraph):
            return result
        return networkx_from_edges(result.edge_list, result.nodes, multigraph=result.multigraph, weight=result.weight)


def _convert(graph: Any, weight: Hashable | None, *, keep_source: bool = False) -> ConvertedGraph:
    """Convert a NetworkX graph, or leave it to NetworkX with the reason."""
    try:
        edge_list = edges_from_networkx(graph, weight)
        source = graph if keep_source else None
        converted = ConvertedGraph(edge_list, list(graph), graph.is_multigraph(), weight, source)
    except InputError as error:
        raise NotImplementedError(str(error)) from error
    if edge_list.weights is not None and edge_list.weights.max(initial=-np.inf) == 0:
        raise NotImplementedError("the largest weight is 0, and weights are divided by it")
    return converted


def _keys(pairs: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each pair of vertices."""
    ends = pairs.astype(np.uint64)
    return ends[:, 0] << np.uint64(32) | ends[:, 1]


def _argument(name: str, position: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """An argument by position or by name; None where it is left out."""
    return args[position] if position < len(args) else kwargs.get(name)


def _can_cut(name: str, graph: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether a subgraph can be cut out of a graph; if not, why."""
    k = _argument("k", 1, args, kwargs)
    if name == "k_truss":
        if not isinstance(k, (int, np.integer)):
            return f"k is {k!r}; pass an integer"
    elif _argument("core_number", 2, args, kwargs) is not None:
        return "the core numbers are given: NetworkX has only to cut"
    if isinstance(graph, ConvertedGraph):
        return True if graph.source is not None else "the graph was converted without its attributes"
    return _can_convert(graph, (*OWN_ADJACENCY, "copy"))


def _can_convert(graph: Any, reached_by: tuple[str, ...] = OWN_ADJACENCY) -> bool | str:
    """Whether a graph's own dictionaries are all there is to it; if not, what else."""
    if hasattr(graph, "_graph"):
        return "a view changes with its graph, which a converted copy would not; pass a copy: view.copy()"
    own = nx.MultiGraph if graph.is_multigraph() else nx.Graph
    if graph.is_directed():
        own = nx.MultiDiGraph if graph.is_multigraph() else nx.DiGraph
    for name in reached_by:
        if getattr(type(graph), name, None) is not getattr(own, name):
            return f"{type(graph).__name__} has a {name} of its own"
    return True


def _size(graph: Any) -> int:
    """Nodes and edges together; quicker than NetworkX's own count of edges."""
    entries = sum(map(len, graph._adj.values()))
    return len(graph) + (entries if graph.is_directed() else entries // 2)


def _looks_far(graph: Any, nodes: Any) -> bool:
    """Whether NetworkX would read about as much for these nodes as a conversion; an iterator is not looked into."""
    if nodes not in graph and not (isinstance(nodes, Sized) and isinstance(nodes, Iterable)):
        return True
    adjacency, limit = graph._adj, ENTRIES_PER_NODE * len(graph)
    read = 0
    for node in graph.nbunch_iter(nodes):
        for neighbour in adjacency[node]:
            read += len(adjacency[neighbour])
            if read > limit:
                return True
    return False


def _pairs_pay(name: str, graph: Any, pairs: int, converted: bool) -> bool | str:
    """Whether so many pairs are worth a conversion; if not, why."""
    if name == "preferential_attachment":
        return "NetworkX multiplies two degrees as soon as wedgewise finds the two nodes"
    least = BREAK_EVEN_PAIRS if converted else max(BREAK_EVEN_PAIRS, _size(graph) // SIZE_PER_PAIR)
    return pairs >= least or f"NetworkX answers sooner for fewer than {least} pairs of this graph; {pairs} are asked"


def _counters(table: GeneralizedDegree) -> Iterator[Counter[int]]:
    """All rows of the table; filled as dictionaries, which takes a third of the time that Counter's own way takes."""
    entries = zip(table.supports.tolist(), table.edges.tolist(), strict=True)
    for size in np.diff(table.offsets).tolist():
        counter: Counter[int] = Counter.__new__(Counter)
        dict.update(counter, islice(entries, size))
        yield counter


def _of_pairs(graph: ConvertedGraph, ebunch: Any, measure: str) -> tuple[list[Any], list[Any], NDArray[Any]]:
    """The pairs, a measure's value of each and their degrees; NetworkX's exception for what is not a node."""
    pairs = list(ebunch)
    for u, v in pairs:
        for node in (u, v):
            if node not in graph:
                raise nx.NodeNotFound(f"Node {node} not in G.")
    tails, heads = graph.edge_list.pairs.T
    ends = np.fromiter(map(graph._adj.__getitem__, chain.from_iterable(pairs)), np.int64).reshape(-1, 2)
    if (tails == heads).any() or (ends[:, 0] == ends[:, 1]).any():
        raise NotImplementedError("NetworkX counts a loop as a neighbour, and compares a node with itself")
    values = api_similarity.similarity(graph.graph, measure, pairs=ends)
    return pairs, values.tolist(), graph.graph.degrees[ends]


def _refuse_loops(graph: ConvertedGraph) -> None:
    """Raise what NetworkX raises."""
    tails, heads = graph.edge_list.pairs.T
    if (tails == heads).any():
        raise nx.NetworkXNotImplemented(HAS_LOOPS)


def _refuse_multigraph(graph: ConvertedGraph) -> None:
    """Raise what NetworkX raises."""
    if graph.multigraph:
        raise nx.NetworkXNotImplemented("not implemented for multigraph type")


backend = Backend()

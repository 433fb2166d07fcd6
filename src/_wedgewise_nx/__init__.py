"""What NetworkX learns about the wedgewise backend at every ``import networkx``: facts only, nothing is imported."""

from __future__ import annotations

from typing import Any

FUNCTIONS = {
    "triangles": "Counts are exact; a question about some nodes keeps the whole answer for the next one.",
    "all_triangles": "The same triangles, in another order.",
    "clustering": "Directed and weighted graphs too; weights that are not finite numbers are left to NetworkX.",
    "average_clustering": "As `clustering`.",
    "transitivity": "Undirected graphs; NetworkX's reading of directed ones is left to NetworkX.",
    "generalized_degree": "The same Counters.",
    "k_truss": "A graph of the same class, with its attributes and order; k that is no integer is left to NetworkX.",
    "core_number": "Undirected graphs.",
    "k_core": "Undirected graphs: the core numbers are found here, NetworkX cuts.",
    "k_shell": "As `k_core`.",
    "connected_components": "The same sets in the same order, from a graph that was converted before.",
    "number_connected_components": "As `connected_components`.",
    "jaccard_coefficient": "Pairs that are given as a collection, of graphs without loops.",
    "preferential_attachment": "As `jaccard_coefficient`; only where it is asked of wedgewise by name.",
}


def get_info() -> dict[str, Any]:
    """The answer to NetworkX's ``networkx.backend_info`` entry point.

    Examples
    --------
    >>> sorted(get_info()["functions"])[:3]
    ['all_triangles', 'average_clustering', 'clustering']
    """
    return {
        "backend_name": "wedgewise",
        "project": "wedgewise",
        "package": "wedgewise",
        "short_summary": "Triangles, clustering and trusses, exact, on all cores.",
        "functions": {name: {"additional_docs": remark} for name, remark in FUNCTIONS.items()},
    }

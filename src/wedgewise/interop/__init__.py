"""Graphs of other libraries ⇄ wedgewise: NumPy and DLPack arrays, tables, sparse matrices, graphs.

`wedgewise.Graph` takes all of them (`wedgewise.read.objects`); the functions ``to_…`` give a graph back to its
neighbours. No library is imported before it is needed.
"""

from wedgewise.interop.graphs import to_igraph, to_networkit, to_networkx
from wedgewise.interop.matrices import from_edge_index, to_edge_index, to_graphblas, to_scipy
from wedgewise.interop.tables import edge_table, to_arrow, to_pandas, to_polars, vertex_table
from wedgewise.read.objects import edges_from

__all__ = [
    "edge_table",
    "edges_from",
    "from_edge_index",
    "to_arrow",
    "to_edge_index",
    "to_graphblas",
    "to_igraph",
    "to_networkit",
    "to_networkx",
    "to_pandas",
    "to_polars",
    "to_scipy",
    "vertex_table",
]

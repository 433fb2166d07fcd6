"""Trusses: every edge's truss number, one k-truss, the last one, and what each of them has.

The k-truss is the largest subgraph in which every edge lies in at least k − 2 triangles of the subgraph.
"""

from wedgewise.truss.decompose import MaxTruss, k_truss, max_truss, truss_bytes, trussness
from wedgewise.truss.summary import TrussLevel, summarise, truss_components, truss_summary

__all__ = [
    "MaxTruss",
    "TrussLevel",
    "k_truss",
    "max_truss",
    "summarise",
    "truss_bytes",
    "truss_components",
    "truss_summary",
    "trussness",
]

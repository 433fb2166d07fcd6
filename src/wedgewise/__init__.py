"""Every triangle question about a graph, answered exactly and fast.

Readers, stages and algorithms are imported by the first question that needs them; stores, `generate`, `datasets` and
`interop` when they are named. `read` and `algorithms` are packages too, which the imports below load before the
functions take their names.
"""

import typing as _typing

from _wedgewise_start import signals as signals  # before the imports below, which take a while
from wedgewise import errors
from wedgewise.answer_types import Similarity, TopSimilar, Truss, TrussLevel
from wedgewise.api import (
    Result,
    algorithms,
    average_clustering,
    clustering,
    count,
    edge_support,
    explain,
    generalized_degree,
    read,
    run,
    transitivity,
    triangles,
)
from wedgewise.api_listing import iter_triangles, list_triangles, write_triangles
from wedgewise.api_similarity import (
    common_neighbors,
    connected_components,
    core_number,
    degeneracy,
    similarity,
    top_similar,
)
from wedgewise.api_trusses import k_truss, max_truss, truss_components, truss_summary, trussness
from wedgewise.graph import Graph
from wedgewise.run.plan import Plan
from wedgewise.stages.limits import Limits
from wedgewise.version import __version__

if _typing.TYPE_CHECKING:
    from wedgewise.row_edges import edge_ids as edge_ids
    from wedgewise.store.build import partition as partition
    from wedgewise.store.open import Store as Store
    from wedgewise.store.open import open_store as open_store

__all__ = [
    "Graph",
    "Limits",
    "Plan",
    "Result",
    "Similarity",
    "Store",
    "TopSimilar",
    "Truss",
    "TrussLevel",
    "__version__",
    "algorithms",
    "average_clustering",
    "clustering",
    "common_neighbors",
    "connected_components",
    "core_number",
    "count",
    "degeneracy",
    "edge_ids",
    "edge_support",
    "errors",
    "explain",
    "generalized_degree",
    "iter_triangles",
    "k_truss",
    "list_triangles",
    "max_truss",
    "open_store",
    "partition",
    "read",
    "run",
    "similarity",
    "top_similar",
    "transitivity",
    "triangles",
    "truss_components",
    "truss_summary",
    "trussness",
    "write_triangles",
]


_MODULES = ("datasets", "generate", "interop", "types")
_NAMES = {"Store": "store.open", "edge_ids": "row_edges", "open_store": "store.open", "partition": "store.build"}


def __getattr__(name: str) -> _typing.Any:
    if name in _MODULES or name in _NAMES:
        from importlib import import_module

        module = import_module(f"{__name__}.{_NAMES.get(name, name)}")
        return module if name in _MODULES else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

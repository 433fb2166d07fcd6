"""One graph in every integer type, layout and library that pairs come in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import igraph
import networkit
import networkx
import numpy as np
import pandas as pd
import polars
import pyarrow
from graphblas import Matrix
from scipy import sparse

from wedgewise import interop

DTYPES = tuple(f"{order}{kind}{size}" for order in "<>" for kind in "iu" for size in (1, 2, 4, 8))
NATIVE = "<" if sys.byteorder == "little" else ">"

Pairs = Any  # an array of integers of shape (k, 2)


def _padded(pairs: Pairs) -> Pairs:
    wide = np.full((2 * len(pairs) + 1, 5), 99, pairs.dtype)
    wide[1::2, 1:4:2] = pairs
    return wide[1::2, 1:4:2]


def _misaligned(pairs: Pairs) -> Pairs:
    found = np.frombuffer(b"x" + pairs.tobytes(), np.uint8)[1:].view(pairs.dtype)
    return found.reshape(pairs.shape)


def _read_only(pairs: Pairs) -> Pairs:
    pairs = pairs.copy()
    pairs.flags.writeable = False
    return pairs


def _in_records(pairs: Pairs) -> Pairs:
    """A view of two fields among others."""
    records = np.zeros(len(pairs), np.dtype([("mark", "u1"), ("ends", pairs.dtype, 2)]))
    records["ends"] = pairs
    return records["ends"]


LAYOUTS: dict[str, Callable[[Pairs], Pairs]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "reversed": lambda pairs: pairs[::-1, ::-1].copy()[::-1, ::-1],
    "every other": _padded,
    "misaligned": _misaligned,
    "read-only": _read_only,
    "field": _in_records,
}


class Exported:
    """An array that others see through DLPack alone."""

    def __init__(self, array: Pairs) -> None:
        self._array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def _exportable(pairs: Pairs) -> Pairs:
    """In the machine's own bytes, and rows that are whole numbers apart: DLPack has no others."""
    native = pairs.astype(pairs.dtype.newbyteorder("="), copy=False)
    return native.copy() if any(stride % native.itemsize for stride in native.strides) else native


def _narrow(matrix: Any, dtype: np.dtype[Any]) -> Any:
    """The same matrix with indices of a type that SciPy itself would not choose."""
    for part in ("row", "col", "indices"):
        if hasattr(matrix, part):
            setattr(matrix, part, getattr(matrix, part).astype(dtype))
    return matrix


def _sparse(kind: str) -> Callable[[Pairs, int], Any]:
    def make(pairs: Pairs, n: int) -> Any:
        ends = pairs.astype(np.int64)
        whole = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
        matrix: Any = whole.asformat("csr").tobsr(blocksize=(1, 1)) if kind == "bsr" else whole.asformat(kind)
        return _narrow(matrix, pairs.dtype)

    return make


def _frame(pairs: Pairs, _n: int) -> Any:
    return pd.DataFrame({"source": pairs[:, 0], "target": pairs[:, 1]})


def _columns(pairs: Pairs) -> dict[str, Pairs]:
    """For libraries that want the machine's own bytes in a row."""
    native = np.ascontiguousarray(pairs.T, pairs.dtype.newbyteorder("="))
    return {"source": native[0], "target": native[1]}


def _networkx(pairs: Pairs, n: int) -> Any:
    graph = networkx.empty_graph(n)
    graph.add_edges_from(pairs.tolist())
    return graph


def _networkit(pairs: Pairs, n: int) -> Any:
    graph = networkit.Graph(n)
    for u, v in pairs.tolist():
        graph.addEdge(u, v)
    return graph


def _graphblas(pairs: Pairs, n: int) -> Any:
    ends = np.unique(pairs.astype(np.uint64), axis=0)
    return Matrix.from_coo(ends[:, 0], ends[:, 1], 1, nrows=n, ncols=n)


LIBRARIES: dict[str, Callable[[Pairs, int], Any]] = {
    "array": lambda pairs, _: pairs,
    "memoryview": lambda pairs, _: memoryview(pairs),
    "dlpack": lambda pairs, _: Exported(_exportable(pairs)),
    "rows": lambda pairs, _: list(pairs),
    "tuples": lambda pairs, _: (tuple(pair) for pair in pairs.tolist()),
    "coo": _sparse("coo"),
    "csr": _sparse("csr"),
    "csc": _sparse("csc"),
    "bsr": _sparse("bsr"),
    "lil": _sparse("lil"),
    "dok": _sparse("dok"),
    "pandas": _frame,
    "pyarrow": lambda pairs, _: pyarrow.table(_columns(pairs)),
    "polars": lambda pairs, _: polars.DataFrame(_columns(pairs)),
    "networkx": _networkx,
    "igraph": lambda pairs, n: igraph.Graph(n=n, edges=pairs.tolist()),
    "networkit": _networkit,
    "graphblas": _graphblas,
}
NAME_THEIR_VERTICES = ("coo", "csr", "csc", "bsr", "lil", "dok", "networkx", "igraph", "networkit", "graphblas")


def given_as(library: str, pairs: Pairs, n: int) -> tuple[Any, dict[str, Any]]:
    """What `Graph` gets for pairs among n vertices, and with which options."""
    return LIBRARIES[library](pairs, n), {} if library in NAME_THEIR_VERTICES else {"n": n}


def from_edge_index(pairs: Pairs, n: int) -> Any:
    """The graph by way of PyTorch Geometric's layout."""
    return interop.from_edge_index(np.ascontiguousarray(pairs.T), n=n)

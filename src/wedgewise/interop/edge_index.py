"""PyTorch Geometric's ``edge_index``, a (2, k) array of sources and targets ⇄ Graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.gpu import find_device
from wedgewise.read.objects.arrays import device_view, lies_on_cuda
from wedgewise.read.objects.foreign import as_array

if TYPE_CHECKING:
    from wedgewise.graph import Graph


def from_edge_index(edge_index: Any, n: int | None = None, **options: Any) -> Graph:
    """Make a graph of a (2, k) array whose rows are sources and targets.

    Parameters
    ----------
    edge_index : (2, k) array of integers: NumPy's, or any that speaks DLPack, such as a PyTorch tensor, in the host's
        memory or on a CUDA device. The two rows are interleaved where they lie, which takes one copy, unless the array
        is the transpose of a C-contiguous (k, 2) array.
    n : number of vertices, ``data.num_nodes``; without it the vertices are the ids that occur
    options : further keywords of `wedgewise.Graph`, such as ``weights=data.edge_weight``

    Returns
    -------
    Graph

    Examples
    --------
    >>> import numpy as np
    >>> from wedgewise import interop
    >>> interop.from_edge_index(np.array([[0, 1, 2], [1, 2, 0]]), n=4)
    Graph('<array>', n=4, m=3)
    """
    from wedgewise.graph import Graph

    ends = device_view(edge_index, find_device()) if lies_on_cuda(edge_index) else as_array(edge_index)
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise InputError(
            f"<edge_index>: shape {ends.shape} where (2, k) is needed; "
            "one row per edge, of shape (k, 2), goes to wedgewise.Graph"
        )
    return Graph(ends.T, n=n, **options)


def to_edge_index(graph: Graph) -> NDArray[np.int64]:
    """Give every edge in both directions as a (2, 2m) array of vertex indices.

    The first m columns are the rows of ``graph.edges`` and the other m the same edges reversed, so that
    ``np.tile(values, 2)`` lays values per edge out alike.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> interop.to_edge_index(ww.Graph([(0, 1), (1, 2)]))
    array([[0, 1, 1, 2],
           [1, 2, 0, 1]])
    """
    both = np.empty((2, 2 * graph.m), np.int64)
    both[:, : graph.m] = graph.edges.T
    both[:, graph.m :] = graph.edges.T[::-1]
    return both

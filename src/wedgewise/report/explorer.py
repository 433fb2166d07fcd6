"""A small graph → the data and the form by which readers of its page walk from vertex to vertex."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from wedgewise.graph import Graph
from wedgewise.report.objects import label_rows
from wedgewise.report.summary import shown

MAX_EDGES = 100_000
FORM = """\
<p>Type the label of a vertex, or part of it. Then choose a neighbour to go on from there.</p>
<p><label>Vertex <input id="explorer-search" type="search" autocomplete="off" list="explorer-found"></label>
<datalist id="explorer-found"></datalist></p>
<div id="explorer" aria-live="polite"></div>
"""


def explorer_data(graph: Graph, triangles: NDArray[np.int64], numbers: NDArray[np.int64]) -> str:
    """What the page knows of every vertex and edge, as JSON; nothing of a graph with more than `MAX_EDGES`.

    Parameters
    ----------
    triangles : of every vertex
    numbers : the truss number of every edge
    """
    if graph.m > MAX_EDGES or graph.n > MAX_EDGES or not graph.m:
        return ""
    labels = list(map(shown, label_rows(graph.labels, np.arange(graph.n).reshape(1, -1))[0]))
    first, second = graph.edges.T.tolist()
    found = {"labels": labels, "from": first, "to": second, "truss": numbers.tolist(), "triangles": triangles.tolist()}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def explorer_html(data: str) -> str:
    """The form, with what it needs beside it."""
    return f'{FORM}<script type="application/json" id="explorer-data">{data}</script>'

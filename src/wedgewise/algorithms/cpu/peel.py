"""What: trusses by peeling: edges with too few triangles are removed in rounds, and their triangles with them.

Paper: none; our own. The order of levels is that of J. Wang and J. Cheng, "Truss decomposition in massive networks",
VLDB 2012.
Who does what: supports are counted by keystone. A round of many edges goes on all threads: a task finds the
triangles of a range of them and writes down which edges lose one, sorted into shares; then each share is applied by one
task, so that nothing is atomic. A round of few is peeled serially. Where much of what remains is lost, its
triangles are counted again instead.
Input: ids by rank. The order is that of the degrees where these differ much, since look-ups then stay among the hubs;
else that of the vertices, since neighbours are then often near each other. Output: the truss number of every arc, or
whether it is in a truss. Memory: 73 bytes per edge, 32 per vertex and 8 more for every thread, and
buffers of 90 MB at most.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms._contract import Algorithm, TrussAnswer
from wedgewise.algorithms._truss import decompose
from wedgewise.algorithms.cpu._truss_close import close_edges
from wedgewise.stages import Ids

SKEWED = 8  # a largest degree so many times the mean calls for the order by degree


def preferred_order(degrees: Ids) -> str:
    """By degree where the degrees differ much."""
    total = int(degrees.sum(dtype=np.uint64))
    return "degree" if int(degrees.max(initial=0)) * len(degrees) > SKEWED * total else "id"


ALGORITHM = Algorithm(
    name="peel",
    device="cpu",
    unit="graph",
    answers={
        "trussness": TrussAnswer(decompose.trussness, decompose.trussness_bytes, (close_edges,)),
        "k_truss": TrussAnswer(decompose.k_truss, decompose.truss_bytes, (close_edges,)),
        "max_truss": TrussAnswer(decompose.max_truss, decompose.truss_bytes, (close_edges,)),
    },
    paper="our own",
    summary="Peels edges in rounds, without atomics: the removed ones write down what the others lose.",
    limits="graphs have fewer than 2^32 edges",
    relabellings=("rank",),
    most_arcs=1 << 32,
    prefers=preferred_order,
)

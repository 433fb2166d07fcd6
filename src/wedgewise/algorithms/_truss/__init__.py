"""Drivers that find trusses: rounds until nothing changes, above the kernels.

The k-truss is the largest subgraph in which every edge lies in at least k − 2 triangles of the subgraph; the truss
number of an edge is the largest k whose k-truss holds it, at least 2. `wedgewise.trussness` and its neighbours are what
users call.
"""

MIN_K = 2  # every edge is in the 2-truss
STAGE = "truss"  # of progress

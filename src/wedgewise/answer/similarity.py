"""What common neighbours sum up to → measures of similarity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._similarity import MEASURES, lanes_of, values_of
from wedgewise.answer_types import Similarity
from wedgewise.graph import Graph
from wedgewise.machine.threads import run_chunks

CHUNK = 1 << 16  # pairs whose temporaries stay in the cache
VALUE_BYTES = 8


def similarity_of(graph: Graph, measures: tuple[str, ...], sums: NDArray[Any], ends: Any, threads: int) -> Similarity:
    """Every measure of every pair, given the sums of their common neighbours, [pairs, lanes]."""
    lanes, degrees = lanes_of(measures), graph.degrees
    values = {name: np.empty(len(ends), np.int64 if MEASURES[name].counts else np.float64) for name in measures}

    def fill(part: slice) -> None:
        for name, filled in values.items():
            filled[part] = values_of(name, lanes, sums[part], degrees, ends[part])

    run_chunks(fill, len(ends), CHUNK, threads)
    return Similarity(ends, values)

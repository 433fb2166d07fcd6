"""What a question about a whole graph takes: every form of the graph, every stage, on the CPU and on a GPU.

    read and clean    pairs + `clean_bytes`
    orient            simple graph + `orient_bytes`
    compute, answer   simple graph + oriented graph + `bytes_needed` + what the question's answer takes

What an algorithm takes is declared beside it, what an answer takes beside its question. Tasks on blocks:
`run.task_memory`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from wedgewise.algorithms._contract import TRUSSES, Shape
from wedgewise.prepare.clean import clean_bytes
from wedgewise.prepare.radix import counting_workers

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm

HELD_BYTES = {"pairs": (0, 8), "simple graph": (12, 8), "oriented graph": (8, 4)}  # by vertex, and by pair or edge


def held_bytes(form: str, n: int, m: int) -> int:
    """What a form of the graph holds; a simple graph has degrees and labels."""
    by_vertex, by_edge = HELD_BYTES[form]
    return by_vertex * n + by_edge * m


def cleaning_bytes(n: int, pairs: int, threads: int) -> int:
    """What reading and cleaning take at their peak."""
    return held_bytes("pairs", n, pairs) + clean_bytes(pairs, n, threads)


def answering_bytes(n: int, m: int, threads: int, computing: int) -> int:
    """What orienting, computing and answering take at their peak; `computing` is beyond the oriented graph."""
    after = max(orient_bytes(n, m, threads), held_bytes("oriented graph", n, m) + computing)
    return held_bytes("simple graph", n, m) + after


def orient_bytes(n: int, m: int, threads: int) -> int:
    """Peak of `orient` beyond the simple graph: two key buffers and the arcs; ranks, counts and offsets."""
    return 20 * m + (21 + 4 * counting_workers(max(m, n), n, threads)) * n


def device_bytes(algorithm: Algorithm, computes: str, shape: Shape, knobs: Mapping[str, int | str]) -> int:
    """What an answer takes beyond the oriented graph: what is made of it, or arrays while they are put into order."""
    by_edge = dict.fromkeys(("edge_support", *TRUSSES), 28 * shape.m)
    ordering = {"triangles": 24 * shape.n, **by_edge}.get(computes, 0)
    return max(algorithm.whole_on_device(computes).bytes_needed(shape, knobs), ordering)

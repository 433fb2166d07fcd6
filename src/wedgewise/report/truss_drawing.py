"""The vertices and edges of a small part of a graph → a drawing, laid out by springs and repulsion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wedgewise.report.page import escaped

SIDE = 640
MARGIN = 16
ROUNDS = 120
RADIUS = 5

Positions = NDArray[np.float64]


def drawing_svg(labels: tuple[int | str, ...], edges: NDArray[np.int64]) -> str:
    """An SVG of a graph; pointing at a vertex shows its label.

    Parameters
    ----------
    labels : of the vertices
    edges : (m, 2) numbers of vertices

    Examples
    --------
    >>> drawing_svg(("a", "b"), np.array([[0, 1]])).count("<circle")
    2
    """
    points = _on_paper(laid_out(len(labels), edges))
    lines = "".join(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" for (x0, y0), (x1, y1) in points[edges].tolist())
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"><title>{escaped(label)}</title></circle>'
        for label, (x, y) in zip(labels, points.tolist(), strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}">'
        f'<path d="{lines}" fill="none" stroke="currentColor" stroke-width="0.6" opacity="0.35"/>'
        f'<g fill="var(--series-1)">{circles}</g></svg>'
    )


def laid_out(n: int, edges: NDArray[np.int64]) -> Positions:
    """Places of vertices, the same for the same graph: edges pull, vertices push, and steps become shorter."""
    angle = np.arange(n) * np.pi * (3 - 5**0.5)  # a sunflower: no two places are the same
    points = np.sqrt(np.arange(n) + 0.5)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    joined = np.zeros((n, n))
    joined[edges[:, 0], edges[:, 1]] = joined[edges[:, 1], edges[:, 0]] = 1
    wanted = 1.5
    for step in np.linspace(1.0, 0.02, ROUNDS).tolist():
        apart = points[:, None] - points[None]
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 0.01)
        force = wanted**2 / distance**2 - joined * distance / wanted
        moves = (apart * force[..., None]).sum(axis=1)
        length = np.maximum(np.hypot(*moves.T), 0.01)[:, None]
        points = points + moves / length * np.minimum(length, step)
    return np.asarray(points)


def _on_paper(points: Positions) -> Positions:
    """The same places within the margins."""
    least, most = points.min(axis=0), points.max(axis=0)
    scale = (SIDE - 2 * MARGIN) / max(float((most - least).max()), 1e-9)
    return np.asarray((points - (least + most) / 2) * scale + SIDE / 2)

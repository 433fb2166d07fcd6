"""`Result`, an answer with everything that a report needs, and the answers about trusses that are no arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.execute.timeline import Timeline
from wedgewise.graph import CleanReport
from wedgewise.plan import Plan

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Result:
    """An answer with everything that a report needs.

    Attributes
    ----------
    answer : the exact answer; an int for ``count``, an array for ``triangles`` and so on
    question, algorithm, device : what was asked and what answered
    plan : the whole Plan, with reasons
    seconds : wall-clock seconds by stage
    n, m : vertices and edges after cleaning
    cleaned : what cleaning dropped
    wedges_tested : membership tests (comparisons for merging algorithms); 0 for trusses and for what
        is asked of the vertices and edges of a store: these count none
    verified : how the answer was confirmed, or None
    peak_bytes : largest resident size of this process so far
    machine, version : where and by what
    task_seconds : of a store, the seconds of every task by its number; not in `to_dict`
    timeline : of a hybrid count, what ran where and when

    Examples
    --------
    >>> import wedgewise as ww
    >>> result = ww.run("count", [(0, 1), (1, 2), (2, 0), (0, 0)], verify=True)
    >>> result.answer, result.m, result.cleaned.loops, result.verified is not None
    (1, 3, 1, True)
    """

    answer: Any
    question: str
    algorithm: str
    device: str
    plan: Plan
    seconds: dict[str, float]
    n: int
    m: int
    cleaned: CleanReport
    wedges_tested: int
    verified: str | None
    peak_bytes: int
    machine: str
    version: str
    task_seconds: Mapping[int, float] = field(default_factory=dict)
    timeline: Timeline | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object with the same keys but ``task_seconds``, and ``schema``; arrays become lists."""
        plain = {"schema": SCHEMA, **asdict(replace(self, answer=None, task_seconds={}, timeline=None))}
        plain["answer"] = _plain(self.answer)
        plain["timeline"] = None if self.timeline is None else self.timeline.to_dict()
        del plain["task_seconds"]
        return plain


def _plain(answer: Any) -> Any:
    """An answer in numbers and lists; JSON has no NaN, so that None stands for it."""
    if isinstance(answer, np.ndarray):
        items = answer.tolist()
        return [_plain(item) for item in items] if answer.dtype.kind == "f" else items
    if isinstance(answer, float):
        return None if isnan(answer) else answer
    if isinstance(answer, tuple):
        return [_plain(item) for item in answer]
    return (
        answer
        if isinstance(answer, int)
        else {part.name: _plain(getattr(answer, part.name)) for part in fields(answer)}
    )


@dataclass(frozen=True, slots=True)
class Truss:
    """The k-truss of a graph: ``edges`` says which of ``Graph.edges`` are in it, ascending; its length is their number.

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.Graph([(10, 20), (20, 30), (30, 10), (30, 40)])
    >>> truss = ww.k_truss(g, 3)
    >>> len(truss), g.subgraph(truss.edges).labels.tolist()
    (3, [10, 20, 30])
    """

    k: int
    edges: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.edges)


@dataclass(frozen=True, slots=True)
class TrussLevel:
    """What the k-truss of a graph has; vertices without edges in it are not counted.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.truss_summary([(0, 1), (1, 2), (2, 0), (2, 3)])[1]
    TrussLevel(k=3, edges=3, vertices=3, components=1)
    """

    k: int
    edges: int
    vertices: int
    components: int

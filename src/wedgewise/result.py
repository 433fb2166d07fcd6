"""`Result`: an answer with everything that a report needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from wedgewise.graph import CleanReport
from wedgewise.plan import Plan

if TYPE_CHECKING:
    from wedgewise.questions import GeneralizedDegree

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
    wedges_tested : membership tests (comparisons for merging algorithms)
    verified : how the answer was confirmed, or None
    peak_bytes : largest resident size of this process so far
    machine, version : where and by what

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

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object with the same keys and ``schema``; arrays become lists."""
        plain = {"schema": SCHEMA, **asdict(replace(self, answer=None))}
        plain["answer"] = _plain(self.answer)
        return plain


def _plain(answer: Any) -> Any:
    """An answer in numbers and lists; JSON has no NaN, so that None stands for it."""
    if isinstance(answer, np.ndarray):
        items = answer.tolist()
        return [_plain(item) for item in items] if answer.dtype.kind == "f" else items
    if isinstance(answer, float):
        return None if isnan(answer) else answer
    return answer if isinstance(answer, int) else {name: _plain(part) for name, part in _parts(answer)}


def _parts(answer: GeneralizedDegree) -> list[tuple[str, Any]]:
    return [("offsets", answer.offsets), ("supports", answer.supports), ("edges", answer.edges)]

"""`Result`, an answer with everything that a report needs."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import asdict, dataclass, field, fields, replace
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from wedgewise.answer_types import Truss
from wedgewise.run.plan import Plan
from wedgewise.stages import CleanReport, LabelledGraph

if TYPE_CHECKING:
    from wedgewise.run.timeline import Timeline

SCHEMA = 1


@dataclass(frozen=True, slots=True, repr=False)
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
        is asked of the vertices and edges of a store: these count none. CPUs and GPUs make different numbers of tests,
        and the sum is of those that counted
    verified : how the answer was confirmed, or None
    peak_bytes : largest resident size of this process so far
    machine, version : where and by what
    task_seconds : of a store, the seconds of every task by its number; not in `to_dict`
    timeline : of a hybrid count, what ran where and when
    graph : what the rows of tables are labelled by, None for numbers; as long as the result is held, so is the graph.
        It is neither in `to_dict` nor in ``==``; a pickle takes it along

    Examples
    --------
    >>> import wedgewise as ww
    >>> result = ww.run("count", [(0, 1), (1, 2), (2, 0), (0, 0)], verify=True)
    >>> repr(result)[:24]
    'Result(count=1, n=3, m=3'
    >>> result.answer, result.m, result.cleaned.loops, result.verified is not None
    (1, 3, 1, True)
    >>> ww.run("triangles", [("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "dee")]).to_pandas()
      vertex  triangles
    0    ada          1
    1    bob          1
    2     cy          1
    3    dee          0
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
    graph: LabelledGraph | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        how = f"{self.algorithm} on {self.device}, {sum(self.seconds.values()):.3g} s"
        verified = ", verified" if self.verified else ""
        return f"Result({self.question}={_short(self.answer)}, n={self.n}, m={self.m}, {how}{verified})"

    def _repr_html_(self) -> str:
        from wedgewise.machine.notebook import facts_html

        facts = [
            ("answer", _short(self.answer)),
            ("graph", f"{self.n:,} vertices, {self.m:,} edges"),
            ("computed by", f"{self.algorithm} on {self.device}"),
            ("seconds", ", ".join(f"{taken:.3g} {stage}" for stage, taken in self.seconds.items())),
            ("verified", self.verified or "not asked for"),
        ]
        return facts_html(self.question, facts)

    def to_arrow(self) -> Any:
        """The answer as a ``pyarrow.Table``, its vertices by their labels; `to_pandas` has the columns.

        Examples
        --------
        >>> import wedgewise as ww
        >>> ww.run("list_triangles", [(10, 20), (20, 30), (30, 10)]).to_arrow().to_pylist()
        [{'u': 10, 'v': 20, 'w': 30}]
        """
        return self._table("pyarrow")

    def to_pandas(self) -> Any:
        """The answer as a ``pandas.DataFrame``, its vertices by their labels.

        The columns are ``vertex`` and ``triangles``, ``clustering``, ``component`` or ``core``; ``source``, ``target``
        and ``support``, ``truss`` or measures of similarity; ``source`` and ``target`` for the edges of one truss;
        ``u``, ``v`` and ``w`` for triangles; ``vertex``, ``support`` and ``edges`` for `generalized_degree`; the fields
        of `TrussLevel` for `truss_summary`. A store, and a file that was answered from disk, are read for that, all
        labels and edges at once and whatever limit the question had.

        Raises
        ------
        InputError
            When the answer is one number, or the file has changed since.
        MissingDependencyError
            When the library is not installed.

        Examples
        --------
        >>> import wedgewise as ww
        >>> ww.run("edge_support", [(10, 20), (20, 30), (30, 10), (30, 40)]).to_pandas()
           source  target  support
        0      10      20        1
        1      10      30        1
        2      20      30        1
        3      30      40        0
        """
        return self._table("pandas")

    def to_polars(self) -> Any:
        """The answer as a ``polars.DataFrame``, its vertices by their labels; `to_pandas` has the columns.

        Examples
        --------
        >>> import wedgewise as ww
        >>> ww.run("k_truss", [(10, 20), (20, 30), (30, 10), (30, 40)], k=3).to_polars().rows()
        [(10, 20), (10, 30), (20, 30)]
        """
        return self._table("polars")

    def _table(self, module: str) -> Any:
        from wedgewise.interop.tables import tabulate
        from wedgewise.result_tables import answer_columns

        return tabulate(module, lambda: answer_columns(self.question, self.answer, self.graph))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object: ``schema`` and all but ``task_seconds`` and ``graph``; arrays become lists."""
        plain = {"schema": SCHEMA, **asdict(replace(self, answer=None, task_seconds={}, timeline=None, graph=None))}
        plain["answer"] = _plain(self.answer)
        plain["timeline"] = None if self.timeline is None else self.timeline.to_dict()
        del plain["task_seconds"], plain["graph"]
        return plain


def _short(answer: Any) -> str:
    """An answer in a few words: a number as it is, and of many rows how many."""
    if isinstance(answer, np.ndarray):
        return f"<{answer.dtype} array of {' × '.join(f'{side:,}' for side in answer.shape)}>"
    if isinstance(answer, int | float | Truss):
        return repr(answer)
    return f"<{len(answer):,} rows>" if isinstance(answer, Sized) else f"<{type(answer).__name__}>"


def _plain(answer: Any) -> Any:
    """An answer in numbers and lists; JSON has no NaN, so that None stands for it."""
    if isinstance(answer, np.ndarray):
        items = answer.tolist()
        return [_plain(item) for item in items] if answer.dtype.kind == "f" else items
    if isinstance(answer, float):
        return None if isnan(answer) else answer
    if isinstance(answer, tuple):
        return [_plain(item) for item in answer]
    if isinstance(answer, Mapping):
        return {name: _plain(value) for name, value in answer.items()}
    return (
        answer
        if isinstance(answer, int | str)
        else {part.name: _plain(getattr(answer, part.name)) for part in fields(answer)}
    )

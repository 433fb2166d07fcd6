"""Partials → the answer: every task exactly once, exact Python integers, identities checked."""

from __future__ import annotations

from dataclasses import dataclass

from wedgewise.errors import VerificationError
from wedgewise.execute.local import Execution


@dataclass(frozen=True, slots=True)
class Total:
    """The exact count and the membership tests that it took."""

    triangles: int
    tests: int


def reduce(execution: Execution, m: int, wedges: int) -> Total:
    """Add the partials up; refuse an incomplete set and a count beyond what any graph can have."""
    missing = set(range(execution.tasks)) - set(execution.partials)
    if missing or len(execution.partials) != execution.tasks:
        raise VerificationError(f"{len(missing)} of {execution.tasks} tasks have no result")
    partials = execution.partials.values()
    total = Total(sum(p.triangles for p in partials), sum(p.tests for p in partials))
    if total.triangles > wedges or 9 * total.triangles**2 > 2 * m**3:
        raise VerificationError(
            f"{total.triangles:,} triangles cannot occur among {m:,} edges and {wedges:,} wedges: please report this"
        )
    return total

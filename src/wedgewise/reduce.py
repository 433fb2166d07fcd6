"""Partials → what was computed: every task exactly once, exact Python integers, identities checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wedgewise.algorithms._contract import Work
from wedgewise.errors import VerificationError
from wedgewise.execute.local import Execution
from wedgewise.plan import Plan

if TYPE_CHECKING:
    from wedgewise.execute.device_listing import DeviceListing

TIMES_SEEN = {"triangles": 3, "edge_support": 3, "list_triangles": 1}  # how often an array counts each triangle


@dataclass(frozen=True, slots=True)
class Computed:
    """The exact count, the membership tests that it took, and the work with its filled array; see `Execution`."""

    triangles: int
    tests: int
    work: Work
    listing: DeviceListing | None = None


def reduce(execution: Execution, plan: Plan) -> Computed:
    """Add the partials up; refuse an incomplete set, a count beyond what any graph can have, sums that disagree."""
    missing = set(range(execution.tasks)) - set(execution.partials)
    if missing or len(execution.partials) != execution.tasks:
        raise VerificationError(f"{len(missing)} of {execution.tasks} tasks have no result")
    partials = execution.partials.values()
    computed = Computed(
        sum(p.triangles for p in partials),
        sum(p.tests for p in partials),
        execution.work,
        execution.listing,
    )
    if computed.triangles > plan.wedges or 9 * computed.triangles**2 > 2 * plan.m**3:
        raise VerificationError(
            f"{computed.triangles:,} triangles cannot occur among {plan.m:,} edges and {plan.wedges:,} wedges: "
            "please report this"
        )
    _check_sum(computed, plan)
    return computed


def _check_sum(computed: Computed, plan: Plan) -> None:
    """Σt = 3T = Σs, and a listing has T rows."""
    if computed.work.filled is None or plan.computes not in TIMES_SEEN:
        return
    total = int(computed.work.filled.sum(dtype=np.uint64))
    due = TIMES_SEEN[plan.computes] * computed.triangles
    if total != due:
        raise VerificationError(
            f"{plan.algorithm}: the sum of {plan.computes} is {total:,} where {computed.triangles:,} triangles make "
            f"{due:,}: please report this"
        )

"""Execution → what was computed: every task exactly once, exact Python integers, identities checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wedgewise.algorithms._contract import FoundTruss, Work
from wedgewise.algorithms._truss import MIN_K
from wedgewise.errors import VerificationError
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.threads import run_chunks
from wedgewise.run.in_memory import Execution
from wedgewise.run.plan import Plan
from wedgewise.stages.tasks import exact_sum

if TYPE_CHECKING:
    from wedgewise.run.device import DeviceListing

CHUNK = 1 << 20  # numbers that a thread adds up at a time
TIMES_SEEN = {"triangles": 3, "edge_support": 3, "list_triangles": 1}  # how often an array counts each triangle


@dataclass(frozen=True, slots=True)
class Computed:
    """The exact count, the membership tests that it took, and the work with its filled array; see `Execution`.

    Of a truss there are its ``k`` and what was filled.
    """

    triangles: int
    tests: int
    work: Work
    listing: DeviceListing | None = None
    k: int | None = None


@memory_for("reduce")
def reduce(execution: Execution, plan: Plan) -> Computed:
    """Add the partials up; refuse an incomplete set, a count beyond what any graph can have, sums that disagree."""
    results = execution.results
    missing = int(np.count_nonzero(~results.is_done))
    if missing:
        raise VerificationError(f"{missing} of {len(results.is_done)} tasks have no result")
    computed = Computed(exact_sum(results.triangles), exact_sum(results.tests), execution.work, execution.listing)
    if not can_occur(computed.triangles, plan):
        raise VerificationError(
            f"{computed.triangles:,} triangles cannot occur among {plan.m:,} edges and {plan.wedges:,} wedges: "
            "please report this"
        )
    _check_sum(computed, plan)
    return computed


def can_occur(triangles: int, plan: Plan) -> bool:
    """Whether a graph of so many edges and wedges can have so many triangles: T ≤ wedges, and T ≤ (√2/3) m^1.5."""
    return triangles <= plan.wedges and 9 * triangles**2 <= 2 * plan.m**3


def _check_sum(computed: Computed, plan: Plan) -> None:
    """Σt = 3T = Σs, and a listing has T rows."""
    if computed.work.filled is None or plan.computes not in TIMES_SEEN:
        return
    filled = computed.work.filled
    total = sum(run_chunks(lambda part: int(filled[part].sum(dtype=np.uint64)), len(filled), CHUNK, plan.threads))
    due = TIMES_SEEN[plan.computes] * computed.triangles
    if total != due:
        raise VerificationError(
            f"{plan.algorithm}: the sum of {plan.computes} is {total:,} where {computed.triangles:,} triangles make "
            f"{due:,}: please report this"
        )


@memory_for("reduce")
def reduce_truss(found: FoundTruss, plan: Plan) -> Computed:
    """What was found of trusses; refuse one of fewer edges than any of its k has, and numbers that no edge can have."""
    if len(found.filled) != plan.m:
        raise VerificationError(f"{plan.algorithm}: {len(found.filled):,} of {plan.m:,} edges: please report this")
    for k, edges in _truss_sizes(found, plan).items():
        _check_truss(k, edges, found, plan)
    return Computed(0, 0, Work((), found.filled), k=found.k)


def _truss_sizes(found: FoundTruss, plan: Plan) -> dict[int, int]:
    """How many edges are in the trusses that were found, by k."""
    if plan.computes != "trussness":
        return {found.k: int(np.count_nonzero(found.filled))}
    in_level = np.bincount(found.filled) if found.in_level is None else found.in_level
    levels, edges = np.flatnonzero(in_level), np.cumsum(in_level[::-1])[::-1]
    return dict(zip(levels.tolist(), edges[levels].tolist(), strict=True))


def _check_truss(k: int, edges: int, found: FoundTruss, plan: Plan) -> None:
    """A k-truss that has edges has C(k, 2) at least; only one that was asked for by its k may have none."""
    may_be_empty = plan.computes == "k_truss" or plan.m == 0
    if not MIN_K <= k <= found.k or (edges == 0 and not may_be_empty) or 0 < edges < k * (k - 1) // 2:
        raise VerificationError(
            f"{plan.algorithm}: a {k}-truss of {edges:,} edges cannot occur among {plan.m:,} edges, with {found.k} the "
            "largest k: please report this"
        )

"""Plan → truss: one call of an algorithm that finds trusses, on the host or on a GPU."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Algorithm, FoundTruss, TrussJob
from wedgewise.algorithms._truss import LEAST_K
from wedgewise.errors import PreconditionError
from wedgewise.machine import jit
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import onward
from wedgewise.prepare.device_forms import DeviceForms
from wedgewise.run.plan import Plan
from wedgewise.stages import DeviceGraph, OrientedGraph


@memory_for("truss")
def find_truss(plan: Plan, graph: OrientedGraph, job: TrussJob) -> FoundTruss:
    """Find what is planned, by arc."""
    _check_form(plan, graph)
    known = known_truss(graph.m, job)
    if known is not None:
        return known
    algorithm = _able(plan)
    found = algorithm.truss_on_cpu(plan.computes).find(graph, replace(job, tell=onward(job.tell)))
    if not algorithm.compiled:
        jit.work_by_arrays(plan.estimated_seconds)
    return found


@memory_for("truss")
def find_truss_on_device(
    plan: Plan, graph: DeviceGraph, forms: DeviceForms, job: TrussJob
) -> tuple[FoundTruss, dict[str, float]]:
    """The same on a GPU, in the order of the edges and brought back; and the seconds of finding it."""
    _check_form(plan, graph)
    known = known_truss(graph.m, job)
    if known is not None:
        return known, {"truss": 0.0}
    device, answer = forms.device, _able(plan).truss_on_device(plan.computes)
    with device.memory():
        begin = time.perf_counter()
        found = answer.find(graph, replace(job, tell=onward(job.tell)), device)
        device.synchronize()
        seconds = {"truss": time.perf_counter() - begin}
        settled = found.filled if graph.follows_edges else found.filled[forms.places(graph)]
        return FoundTruss(found.k, device.download(settled), found.rounds), seconds


def known_truss(m: int, job: TrussJob) -> FoundTruss | None:
    """The k-trusses that need no look at the graph: all of it, or nothing where m edges are less than C(k, 2)."""
    if job.k is None:
        return None
    if job.k > LEAST_K and job.k * (job.k - 1) // 2 <= m:
        return None
    return FoundTruss(job.k, np.full(m, job.k == LEAST_K), 0)


def _able(plan: Plan) -> Algorithm:
    """The algorithm of a plan; refuses more edges than it takes."""
    algorithm = find(plan.algorithm, plan.device)
    if plan.m >= algorithm.most_arcs:
        raise PreconditionError(
            f"{plan.m:,} edges; {plan.algorithm} on {plan.device} takes fewer than {algorithm.most_arcs:,}: use another"
        )
    return algorithm


def _check_form(plan: Plan, graph: OrientedGraph | DeviceGraph) -> None:
    if (graph.order, graph.named_by) != (plan.order, plan.relabel):
        raise PreconditionError(
            f"planned for {plan.order} order and ids by {plan.relabel}, handed {graph.order} and {graph.named_by}"
        )

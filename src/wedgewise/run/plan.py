"""`Plan`: what will be done for a request, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from wedgewise.algorithms._contract import Shape


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """The tasks of a hybrid count, and what they may take.

    Attributes
    ----------
    parts, blocks : what ids are cut into, and the blocks that have arcs
    tasks : those with work; of them `host_tasks` are for threads alone, `device_only_tasks` for GPUs alone
    devices, streams : the GPUs, and how many tasks each of them does at a time
    threads, cutoff : how many count themselves; they leave so many of the heaviest tasks to the GPUs
    device_bytes, host_bytes : what blocks and work may take on each GPU, and on the host beyond blocks in memory
    """

    parts: int
    blocks: int
    tasks: int
    host_tasks: int
    device_only_tasks: int
    devices: tuple[str, ...]
    streams: int
    threads: int
    cutoff: int
    device_bytes: int
    host_bytes: int

    def facts(self) -> list[tuple[str, str]]:
        """As a plan shows them."""
        gpus = f"{self.streams} streams on each of: {', '.join(self.devices)}" if self.devices else "no GPU"
        alone = f"{self.host_tasks:,} for threads alone, {self.device_only_tasks:,} for GPUs alone"
        return [
            ("blocks", f"{self.blocks:,} of {self.parts:,} parts, {self.tasks:,} tasks: {alone}"),
            ("places", f"{gpus}; {self.threads} threads, which leave the {self.cutoff:,} heaviest tasks to GPUs"),
            ("budgets", f"{self.device_bytes:,} bytes on each GPU, {self.host_bytes:,} on the host"),
        ]


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done and why; ``str(plan)`` is the explanation.

    Attributes
    ----------
    question, computes : what was asked, and what the algorithm computes for it
    algorithm, device, threads, knobs : what computes it
    order, relabel : which end of an edge its arc starts from, and what gives the ids
    n, m, wedges : the size of the oriented graph
    bytes_needed, beyond : the peak of memory, beyond what is there already
    estimated_seconds : of the work
    reasons : why it was planned so
    blocks : of a hybrid count, its tasks
    known : what can be said of a graph that was not read, whose `n`, `m` and `wedges` are then zero

    Examples
    --------
    >>> import wedgewise as ww
    >>> plan = ww.explain("count", [(0, 1), (1, 2), (2, 0)], algorithm="forward", threads=2)
    >>> print(str(plan).partition(chr(10))[0])
    count: forward on cpu, 2 threads
    """

    question: str
    computes: str
    algorithm: str
    device: str
    order: str
    relabel: str
    threads: int
    knobs: dict[str, int | str]
    n: int
    m: int
    wedges: int
    bytes_needed: int
    estimated_seconds: float
    reasons: tuple[str, ...]
    blocks: BlockPlan | None = None
    beyond: str = "the oriented graph"
    known: str | None = None

    def _facts(self) -> list[tuple[str, str]]:
        size = f"{self.n:,} vertices, {self.m:,} edges, {self.wedges:,} candidate pairs in {self.order} order"
        knobs = ", ".join(f"{name}={value}" for name, value in self.knobs.items()) or "none"
        return [
            ("graph", self.known or size),
            ("ids", f"by {self.relabel}"),
            ("knobs", knobs),
            *([] if self.blocks is None else self.blocks.facts()),
            ("memory", f"{self.bytes_needed:,} bytes beyond {self.beyond}"),
            ("time", f"about {self.estimated_seconds:.3g} s of work"),
            *(("because", reason) for reason in self.reasons),
        ]

    def _headline(self) -> str:
        return f"{self.question}: {self.algorithm} on {self.device}, {self.threads} threads"

    def __str__(self) -> str:
        return "\n".join([self._headline(), *(f"  {name:<9} {value}" for name, value in self._facts())])

    def _repr_html_(self) -> str:
        from wedgewise.machine.notebook import facts_html

        return facts_html(self._headline(), self._facts())


class OrientedShape(NamedTuple):
    """The oriented graph that a plan is made for: its size, its order, and what gives its ids."""

    shape: Shape
    order: str = "degree"
    relabel: str = "rank"


def plan_of(
    question: str,
    oriented_shape: OrientedShape,
    *,
    algorithm: str,
    threads: int,
    knobs: dict[str, int | str],
    bytes_needed: int,
    reasons: tuple[str, ...],
    computes: str | None = None,
    device: str = "cpu",
    estimated_seconds: float = 0.0,
    blocks: BlockPlan | None = None,
    beyond: str = "the oriented graph",
    known: str | None = None,
) -> Plan:
    """The plan of every home: what was decided for a question about a graph of this form."""
    return Plan(
        question=question,
        computes=computes or question,
        algorithm=algorithm,
        device=device,
        order=oriented_shape.order,
        relabel=oriented_shape.relabel,
        threads=threads,
        knobs=knobs,
        n=oriented_shape.shape.n,
        m=oriented_shape.shape.m,
        wedges=oriented_shape.shape.wedges or 0,
        bytes_needed=bytes_needed,
        estimated_seconds=estimated_seconds,
        reasons=reasons,
        blocks=blocks,
        beyond=beyond,
        known=known,
    )


def with_reasons(plan: Plan, reasons: tuple[str, ...]) -> Plan:
    """The plan with further reasons, those that it has not yet."""
    return replace(plan, reasons=(*plan.reasons, *(reason for reason in reasons if reason not in plan.reasons)))

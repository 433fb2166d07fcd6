"""What is compared: one declaration per suite, which ``wedgewise bench NAME`` runs.

Experiments of the papers on blocks, on the CPU, each by a suite and what to add to its command; --graphs takes larger
ones:

    BBTC, figure 4     blocks --threads 1        counts by lists, maps and both for each number of parts; latapy beside
    BBTC, figure 6     blocks                    estimators: correlation, share of the list with the longest tasks
    BBTC, table 5      blocks                    speed-up of workers by estimator, or by number (in the records)
    BBTC, table 6      blocks                    cutting and counting for 8, 16 and 32 parts, its own half
    BBTC, figure 7     blocks --threads 1 2 4    cutting and counting on more threads in place of GPUs
    TRUST, table 4     balance                   tasks, blocks and arcs per task for n parts and m shares
    TRUST, table 6     balance --threads 1       space IR and time IR by ids and parts

BBTC's figures 8 and 9 and the times of figures 6 and 7 on GPUs need one: the streams and the cut-off are knobs of
device="hybrid". Its table 7, scaled down, is ``partition`` and ``count`` under --memory. BBTC has no experiment on
other cuts than its own; ``scheme=even`` is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from wedgewise import generate
from wedgewise.bench import cuts, graphs, table
from wedgewise.bench.blocks import Blocks
from wedgewise.bench.child import MOST_REPEATS
from wedgewise.bench.record import KMAX, QUESTIONS, ROWS, Cell, Record

KRONECKER_12, KRONECKER_16, KRONECKER_18, KRONECKER_20 = (f"kronecker-{scale}-seed1" for scale in (12, 16, 18, 20))
UNIFORM = "uniform-1048576-16777216-seed1"
SMALL_WORLD = "small_world-1000000-20-p0.1-seed1"
KRONECKER_22, KRONECKER_24 = generate.kronecker(22, seed=1), generate.kronecker(24, seed=1)
SMALL = (generate.kronecker(8, seed=1), generate.complete_tripartite(20, 30, 40))
"""Graphs that the slowest of our algorithms decomposes within a second."""

EVERY = "all"
"""In place of a name: every algorithm of our own on the CPU."""

LAST_TRUSS = f"k_truss[k={KMAX}]"
USUAL_QUESTIONS = tuple(f"{name}[k=3]" if name == "k_truss" else name for name in QUESTIONS)
TRUSS_GRAPHS = ("soc-Slashdot0902", "web-Stanford", "cnr-2000")
EAGER_GRAPHS = (
    *("ca-GrQc", "ca-HepTh", "ca-AstroPh", "ca-CondMat", "as20000102", "as-caida20071105"),
    *(f"p2p-Gnutella{day}" for day in ("04", "05", "06", "08", "09", "24", "25", "30", "31")),
    *(f"oregon{number}_010{day}" for number in (1, 2) for day in (331, 407, 414, 421, 428, 505, 512, 519, 526)),
    *("email-Enron", "email-EuAll", "loc-brightkite_edges", "loc-gowalla_edges"),
    *("soc-Epinions1", "soc-Slashdot0811", "soc-Slashdot0902", "cit-HepTh", "cit-HepPh", "cit-Patents"),
    *("amazon0302", "amazon0312", "amazon0505", "amazon0601", "roadNet-PA", "roadNet-TX", "roadNet-CA"),
)
"""Blanco, Low, Kim, HPEC 2019, table I, by their names in the SNAP collection."""


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio of times on one graph: that of a question to one system, divided by that of another.

    Each is a system and a question; ``divided`` is looked at way by way, ``by`` at its fastest. The ratio is to be at
    most ``bound``, or at least that.
    """

    graph: str
    divided: tuple[str, str]
    by: tuple[str, str]
    bound: float
    is_least: bool = False

    def rows(self, records: Sequence[Record]) -> Iterator[list[str]]:
        """What was measured, a row for each way."""
        seconds, references = (self._medians(records, *measured) for measured in (self.divided, self.by))
        for way in seconds if references else ():
            ratio = seconds[way] / min(references.values())
            is_reached = ratio >= self.bound if self.is_least else ratio <= self.bound
            yield [
                self.graph,
                f"{self.divided[1]} by {self.divided[0]}, {way}",
                f"{self.by[1]} by {self.by[0]}",
                table.ratio_text(ratio),
                f"{'≥' if self.is_least else '≤'} {self.bound:g}×",
                "reached" if is_reached else "missed",
            ]

    def _medians(self, records: Sequence[Record], system: str, question: str) -> dict[str, float]:
        """The median of every way that answered rightly; of several numbers of threads, the fastest."""
        found: dict[str, float] = {}
        for record in records:
            cell, outcome = record.cell, record.outcome
            is_meant = (cell.graph, cell.system, cell.question, cell.row) == (self.graph, system, question, "count")
            if is_meant and outcome.status == "ok" and outcome.median is not None:
                found[cell.way] = min(outcome.median, found.get(cell.way, outcome.median))
        return found


@dataclass(frozen=True, slots=True)
class Suite:
    """One comparison: which graphs, which questions, who answers them and for how long, and what its tables show.

    Attributes
    ----------
    name, summary : what it is called, and what it compares in one line
    graphs : generated and bundled ones, by name
    real : of the graphs in a data folder those of these names, or all that have so many edges
    questions, rows : what is asked, and how much of it is timed
    systems : who takes part; everybody where none is named
    algorithms : of our own, each asked what it answers; `EVERY` stands for all of them
    cuts : the ways of the system `blocks`, where it takes part
    sweeps_threads : whether it runs with 1, 2, 4 … threads by itself, or with all alone
    limit_seconds, repeats : for each stage of a cell and each repeat; how many of these there are at most
    counts : who is asked for a count; everybody where none is named
    too_slow : the graphs on which a system would take minutes or hours for anything but a count
    targets : ratios that are set against the measured ones
    tables : makes the text of the tables
    """

    name: str
    summary: str
    graphs: tuple[str, ...]
    tables: Callable[[Sequence[Record]], str]
    real: tuple[str, ...] | int = ()
    questions: tuple[str, ...] = ("count",)
    rows: tuple[str, ...] = ("count",)
    systems: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ("auto",)
    cuts: tuple[str, ...] = ()
    sweeps_threads: bool = False
    limit_seconds: float = 120.0
    repeats: int = MOST_REPEATS
    counts: tuple[str, ...] = ()
    too_slow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()

    def wants(self, cell: Cell) -> bool:
        """Whether a cell of the matrix is run."""
        if cell.question == "count":
            return not self.counts or cell.system in self.counts
        return cell.graph not in self.too_slow.get(cell.system, ())

    def render(self, records: Sequence[Record]) -> str:
        """The tables, and the targets as far as they were measured."""
        text = self.tables(records)
        rows = [row for target in self.targets for row in target.rows(records)]
        header = ["graph", "divided", "by", "ratio", "target", ""]
        return f"{text}\n## Targets\n\n{table.markdown(header, rows)}\n" if rows else text


def known_graphs(data: Path | None, threads: int) -> dict[str, graphs.BenchGraph]:
    """Every graph that can be named: generated ones, bundled ones, and all of a data folder."""
    small = [graphs.from_stream(stream, threads) for stream in SMALL]
    real = [] if data is None else graphs.real_graphs(data, least_edges=0)
    large = [graphs.from_stream(stream, threads) for stream in (KRONECKER_22, KRONECKER_24)]
    everything = [*small, *graphs.answer_graphs(threads), *graphs.generated_graphs(threads), *large, *real]
    return {graph.name: graph for graph in everything}


def usual_graphs(suite: Suite, data: Path | None) -> list[str]:
    """The names of the graphs that a suite runs on by itself; of those in a data folder, the ones that are there."""
    if data is None:
        return list(suite.graphs)
    if isinstance(suite.real, int):
        real = [graph.name for graph in graphs.real_graphs(data, suite.real)]
    else:
        there = {graph.name for graph in graphs.real_graphs(data, least_edges=0)}
        real = [name for name in suite.real if name in there]
    return list(dict.fromkeys([*suite.graphs, *real]))


SMOKE = Suite(
    name="smoke",
    summary="every question to every CPU algorithm of our own, on two small graphs: about a minute",
    graphs=tuple(stream.name for stream in SMALL),
    tables=partial(table.render_answers, title="Every answer by every CPU algorithm, all in one run"),
    questions=USUAL_QUESTIONS,
    systems=(table.OURS,),
    algorithms=(EVERY, "eager[granularity=coarse]"),
    limit_seconds=30.0,
    repeats=1,
)

CPU = Suite(
    name="cpu",
    summary="counting against every peer: the graph loaded, from pairs in memory, from a file",
    graphs=(KRONECKER_16, KRONECKER_18, KRONECKER_20, UNIFORM, SMALL_WORLD),
    tables=table.render,
    real=100_000,
    rows=ROWS,
)

ANSWERS = Suite(
    name="answers",
    summary="every question against every peer that answers it, on loaded graphs",
    graphs=(KRONECKER_16, KRONECKER_18, "email-Enron"),
    tables=table.render_answers,
    real=400_000,
    questions=USUAL_QUESTIONS,
    limit_seconds=60.0,
)

TRUSSES = Suite(
    name="trusses",
    summary="truss numbers, the last truss and the 3-truss against every peer that has them, set against targets",
    graphs=(KRONECKER_12, KRONECKER_16, KRONECKER_18, KRONECKER_20, SMALL_WORLD),
    tables=partial(table.render_answers, title="Trusses on the CPU, all in one run"),
    real=TRUSS_GRAPHS,
    questions=("count", "trussness", "max_truss", "k_truss[k=3]"),
    counts=(table.OURS, "graphblas"),
    too_slow={
        "graphblas": (KRONECKER_20, SMALL_WORLD, *TRUSS_GRAPHS),
        "lagraph": (KRONECKER_18, KRONECKER_20, SMALL_WORLD, *TRUSS_GRAPHS),
        "networkx": (KRONECKER_18, KRONECKER_20, SMALL_WORLD, *TRUSS_GRAPHS),
    },
    targets=(
        # half of what the best public program takes, in counts by GraphBLAS
        Target(KRONECKER_18, (table.OURS, "trussness"), ("graphblas", "count"), 3.1),
        Target(KRONECKER_20, (table.OURS, "trussness"), ("graphblas", "count"), 2.4),
        Target(SMALL_WORLD, (table.OURS, "trussness"), ("graphblas", "count"), 4.8),
        Target(KRONECKER_18, ("graphblas", "k_truss[k=3]"), (table.OURS, "trussness"), 10.0, is_least=True),
    ),
)

EAGER = Suite(
    name="eager",
    summary="the eager k-truss of Blanco, Low and Kim: fine over coarse, K = 3 and K = Kmax, from one thread to all",
    graphs=(KRONECKER_12, KRONECKER_16, "email-Enron"),
    tables=partial(table.render_answers, title="Eager k-truss on the CPU, fine and coarse, all in one run"),
    real=EAGER_GRAPHS,
    questions=("k_truss[k=3]", LAST_TRUSS),
    systems=(table.OURS,),
    algorithms=("eager[granularity=fine]", "eager[granularity=coarse]"),
    sweeps_threads=True,
)

BLOCKS = Suite(
    name="blocks",
    summary="BBTC's blocks: parts, lists and maps, estimators, cutting against counting; whole graphs beside them",
    graphs=(KRONECKER_16,),
    tables=partial(cuts.render_cuts, title="Blocks on the CPU, all in one run"),
    systems=(Blocks.name, table.OURS),
    algorithms=("latapy", "bbtc", "keystone"),
    cuts=(
        *(f"bbtc[parts={p},method={method}]" for p in (1, 4, 8, 16, 32) for method in ("list", "hashmap", "auto")),
        *(f"bbtc[parts=16,threshold={threshold}]" for threshold in (1, 4, 40)),
        "bbtc[parts=16,scheme=even]",
        *(f"keystone[parts={p}]" for p in (1, 4, 8, 16, 32)),
    ),
)

BALANCE = Suite(
    name="balance",
    summary="TRUST's hashed parts: arcs per task, space IR and time IR by ids and parts, more workers imagined",
    graphs=(KRONECKER_16, KRONECKER_18),
    tables=partial(cuts.render_cuts, title="Balance of blocks on the CPU, all in one run"),
    systems=(Blocks.name,),
    cuts=(
        *(
            f"{algorithm}[scheme=hashed,parts={n},ids={ids}]"
            for algorithm in ("keystone", "bbtc")
            for n in (2, 4, 8)
            for ids in ("indegree", "classes", "rank")
        ),
        "keystone[scheme=hashed,parts=8,ids=indegree,shares=2]",
        "keystone[scheme=rectilinear,parts=8]",
    ),
    repeats=3,
)

SUITES = {suite.name: suite for suite in (SMOKE, CPU, ANSWERS, TRUSSES, EAGER, BLOCKS, BALANCE)}

"""Find trusses on a GPU; check every answer; print and store the tables.

PYTHONPATH=src python benchmarks/trusses_gpu.py --data graphs --output results
PYTHONPATH=src python benchmarks/trusses_gpu.py --what peel --scales 18 20 --graphs cit-HepPh web-Stanford --data graphs
PYTHONPATH=src python benchmarks/trusses_gpu.py --what --records results/trusses_gpu.jsonl

eager     the published eager k-truss, fine and coarse, K = 3 and K = Kmax, on the graphs of --data: CUDA events around
          all rounds of a run, warm, the median of --repeats; millions of edges per second; fine over coarse
peel      our own: k = 3, 10, 30, the last truss and all truss numbers, on Kronecker graphs and those of --data: CUDA
          events around everything from rows that lie on the device; the same from the oriented graph; and the whole
          call, answer brought back
threads   eager on this machine's cores, fine and coarse, K = 3 and K = Kmax, from one thread to all

The truth is the host's own decomposition, once per graph, itself compared with what truths.json knows, in or above the
folder. Records add up: those of earlier runs, given by --records, are printed with the new ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import DeviceTrussAnswer, FoundTruss, TrussJob
from wedgewise.algorithms._truss import rounds
from wedgewise.algorithms.cpu.eager import EagerRows
from wedgewise.algorithms.gpu.eager import EagerDeviceRows
from wedgewise.algorithms.gpu.peel import TrussesOnDevice, has_many_wedges
from wedgewise.errors import VerificationError
from wedgewise.generate import kronecker
from wedgewise.machine import files as storage
from wedgewise.machine import gpu, hardware
from wedgewise.stages import DeviceGraph
from wedgewise_bench.graphs import BenchGraph as KnownGraph
from wedgewise_bench.graphs import choose_graphs, from_stream, real_graphs
from wedgewise_bench.spec import Spec
from wedgewise_bench.stopwatch import Stopwatch
from wedgewise_bench.table import markdown, ratio_text

TITLES = {
    "eager": "Eager, as published, on the device: all rounds, median, warm",
    "peel": "Our own on the device: from rows, from the oriented graph, and the whole call; median, warm",
    "threads": "Eager, as published, on the host: all rounds, median, warm",
}
GRANULARITIES = ("fine", "coarse")
PEELED = (3, 10, 30)
CALLS = 5
PUBLISHED = [
    *("p2p-Gnutella31", "email-Enron", "ca-AstroPh", "cit-HepTh", "email-EuAll"),
    *("soc-Epinions1", "cit-HepPh", "soc-Slashdot0902"),
]
GRAPHS = {"eager": PUBLISHED, "peel": ["cit-HepPh", "web-Stanford"], "threads": PUBLISHED}

PAPER_MS = {
    "ca-AstroPh": (2.055, 51.303),
    "cit-HepPh": (2.693, 42.338),
    "cit-HepTh": (5.291, 131.030),
    "email-Enron": (4.599, 180.731),
    "email-EuAll": (4.771, 93.244),
    "p2p-Gnutella31": (0.203, 0.431),
    "soc-Epinions1": (5.599, 582.784),
    "soc-Slashdot0902": (5.865, 164.038),
}
"""Blanco, Low, Kim, HPEC 2019, table I: K = 3 on a V100, fine and coarse."""

ANCHORS_MS = {
    "kronecker-18-seed1": {"k_truss[k=3]": 3.11, "k_truss[k=10]": 30.9, "k_truss[k=30]": 31.1},
    "kronecker-20-seed1": {"k_truss[k=3]": 17.7, "k_truss[k=10]": 162.0, "k_truss[k=30]": 137.0, "max_truss": 361.0},
    "cit-HepPh": {"k_truss[k=3]": 0.22, "k_truss[k=10]": 1.64},
    "web-Stanford": {"k_truss[k=3]": 0.98, "k_truss[k=10]": 4.77, "k_truss[k=30]": 2.35, "max_truss": 253.0},
}
"""What KTrussExplorer (one k) and kmax-truss-gpu (the last truss) took on an H200, by their own clocks; their Kronecker
graphs had another seed."""


Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Measured:
    """One question to one algorithm on one graph; the median of the seconds, or what went wrong.

    Of peel there are also the seconds of preparing and finding, and those of the whole call. ``rounds`` are those that
    the answer took.
    """

    what: str
    graph: str
    edges: int
    question: str
    k: int
    way: str
    threads: int
    seconds: float
    rounds: int
    found_seconds: float | None = None
    asked_seconds: float | None = None
    problem: str | None = None


class Subject:
    """A graph, its truss numbers by the host, and how to compare with them."""

    def __init__(self, known: KnownGraph) -> None:
        self.name = known.name
        self.graph = ww.Graph(known.make_pairs())
        self.numbers = ww.trussness(self.graph, device="cpu", algorithm="peel")
        for k, edges in known.trusses.items():
            if np.count_nonzero(self.numbers >= k) != edges:
                raise VerificationError(f"{self.name}: the host finds another {k}-truss than the {edges:,} edges known")

    @cached_property
    def kmax(self) -> int:
        return int(self.numbers.max(initial=2))

    def problem(self, question: str, k: int, values: NDArray[Any]) -> str | None:
        """What is wrong with an answer by edge: truss numbers, or whether each edge is in the k-truss."""
        expected = self.numbers if question == "trussness" else self.numbers >= k
        wrong = int(np.count_nonzero(values != expected))
        return f"{wrong:,} edges are wrong" if wrong else None

    def by_edge(self, form: DeviceGraph, device: gpu.CopyingDevice, found: FoundTruss) -> NDArray[Any]:
        """What was found by arc of the device, by edge of the host."""
        filled = found.filled if form.follows_edges else found.filled[self.graph.device_forms.positions(form)]
        return device.download(filled)


def repeated(
    prepare: Callable[[], Any], work: Callable[[Any], Found], repeats: int, device: gpu.Device | None
) -> tuple[Found, float]:
    """What the last run found and the median of the seconds of `work`, after a run that warms up."""
    taken = []
    for _ in range(1 + repeats):
        prepared = prepare()
        with Stopwatch(device) as watch:
            found = work(prepared)
        taken.append(watch.seconds)
    return found, statistics.median(taken[1:])


def eager(subject: Subject, device: gpu.CopyingDevice, repeats: int) -> Iterator[Measured]:
    """All rounds on the device, from rows that lie there."""
    form = subject.graph.on_device("id", "rank")
    with device.memory():
        yield from rounds_of(
            partial(Measured, "eager", subject.name, subject.graph.m, threads=0),
            subject,
            lambda granularity: EagerDeviceRows(form, granularity, device),
            partial(subject.by_edge, form, device),
            partial(repeated, repeats=repeats, device=device),
        )


def threads(subject: Subject, counts: Sequence[int], repeats: int) -> Iterator[Measured]:
    """All rounds on the host, by so many threads."""
    oriented = subject.graph.oriented("id")
    for number in counts:
        yield from rounds_of(
            partial(Measured, "threads", subject.name, subject.graph.m, threads=number),
            subject,
            partial(EagerRows, oriented, threads=number),
            lambda found: np.asarray(found.filled),
            partial(repeated, repeats=repeats, device=None),
        )


def rounds_of(
    measured: Callable[..., Measured],
    subject: Subject,
    rows: Callable[[str], rounds.Rounds],
    by_edge: Callable[[FoundTruss], NDArray[Any]],
    timed: Callable[..., tuple[tuple[rounds.Rounds, int], float]],
) -> Iterator[Measured]:
    """Fine and coarse, K = 3 and K = Kmax."""
    for question, k in (("k_truss[k=3]", 3), ("k_truss[k=kmax]", subject.kmax)):
        for granularity in GRANULARITIES:
            (pruned, number), seconds = timed(partial(rows, granularity), partial(pruned_to, k))
            problem = subject.problem(question, k, by_edge(FoundTruss(k, pruned.survivors(), number)))
            way = f"eager[granularity={granularity}]"
            yield measured(question, k, way, seconds=seconds, rounds=number, problem=problem)


def pruned_to(k: int, rows: rounds.Rounds) -> tuple[rounds.Rounds, int]:
    """Rows that hold the k-truss alone, and how many rounds it took."""
    return rows, len(rounds.peel(rows, k, TrussJob(k), rows.remaining))


def peel(subject: Subject, device: gpu.CopyingDevice, repeats: int) -> Iterator[Measured]:
    """Everything that our own algorithm does on the device, and the whole call."""
    algorithm = find("peel", "cuda")
    form = subject.graph.on_device(algorithm.orders[0], "rank")
    for asked in [
        *(Spec("k_truss", {"k": k}) for k in PEELED if k <= subject.kmax),
        Spec("max_truss"),
        Spec("trussness"),
    ]:
        details: dict[str, Any] = {name: int(value) for name, value in asked.settings.items()}
        job, answer = TrussJob(details.get("k"), algorithm.settings(None)), algorithm.truss_on_device(asked.name)
        with device.memory():
            prepare, work = partial(ready, form, job, asked.name, device), partial(run, job, asked.name)
            seconds = repeated(prepare, work, repeats, device)[1]
            found, found_seconds = repeated(lambda: form, partial(_find, answer, job, device), repeats, device)
            problem = subject.problem(asked.name, found.k, subject.by_edge(form, device, found))
        if not details and found.k != subject.kmax:
            problem = f"kmax is {subject.kmax}, not {found.k}"
        call = partial(ww.run, asked.name, subject.graph, device="cuda", algorithm="peel", **details)
        whole = statistics.median(sum(call().seconds.values()) for _ in range(min(CALLS, repeats)))
        fields = "peel", subject.name, subject.graph.m, str(asked), found.k, "peel", 0
        yield Measured(*fields, seconds, found.rounds, found_seconds, whole, problem)


def ready(form: DeviceGraph, job: TrussJob, question: str, device: gpu.Device) -> TrussesOnDevice:
    """The graph as the answer's kernels read it."""
    by_keystone = question == "trussness" or (job.k != PEELED[0] and has_many_wedges(form))
    return TrussesOnDevice(form, job.knobs, device, by_keystone=by_keystone)


def run(job: TrussJob, question: str, trusses: TrussesOnDevice) -> FoundTruss:
    """What the kernels do of it."""
    by_question = {"k_truss": trusses.k_truss, "max_truss": trusses.max_truss, "trussness": trusses.trussness}
    return by_question[question](job)


def _find(answer: DeviceTrussAnswer, job: TrussJob, device: gpu.Device, form: DeviceGraph) -> FoundTruss:
    return answer.find(form, job, device)


def text_of(measured: list[Measured], stamp: dict[str, str | None]) -> str:
    """All tables; of repeated measurements the last one counts."""
    latest = {(item.what, item.graph, item.question, item.way, item.threads): item for item in measured}
    parts = []
    for what, title in TITLES.items():
        items = [item for item in latest.values() if item.what == what]
        if items:
            parts.append(f"## {title}\n\n{peel_table(items) if what == 'peel' else eager_table(items)}")
    problems = [f"- {item.way} on {item.graph}, {item.question}: {item.problem}" for item in measured if item.problem]
    where = "\n".join(f"- {name}: {value}" for name, value in stamp.items() if value is not None)
    wrong = ["## What went wrong\n\n" + "\n".join(problems)] if problems else []
    return "\n\n".join(["# Trusses on a GPU", where, *parts, *wrong]) + "\n"


def eager_table(items: list[Measured]) -> str:
    """A row for each graph, k and number of threads; fine over coarse, with the geometric means at the end."""
    fine, coarse = (
        {(item.graph, item.question, item.threads): item for item in items if item.way.endswith(f"={granularity}]")}
        for granularity in GRANULARITIES
    )
    on_device = items[0].what == "eager"
    rows, ratios = [], dict[tuple[str, int], list[float]]()
    for place in fine.keys() & coarse.keys():
        ratios.setdefault(place[1:], []).append(coarse[place].seconds / fine[place].seconds)
    for place in (place for place in fine if place in coarse):
        one, other = fine[place], coarse[place]
        published = PAPER_MS.get(one.graph) if one.question == "k_truss[k=3]" else None
        rows.append(
            [
                *(one.graph, f"{one.edges:,}", str(one.k), str(one.threads or "–"), str(one.rounds)),
                *(_ms(one.seconds), f"{one.edges / one.seconds / 1e6:.1f}"),
                *(_ms(other.seconds), f"{other.edges / other.seconds / 1e6:.1f}"),
                ratio_text(other.seconds / one.seconds),
                *(["–" if published is None else f"{published[0]:g}, {published[1]:g}"] if on_device else []),
            ]
        )
    for (question, number), found in sorted(ratios.items()):
        mean = ratio_text(statistics.geometric_mean(found))
        k = question.removeprefix("k_truss[k=").removesuffix("]")
        rows.append(["geometric mean", "–", k, str(number or "–"), *["–"] * 5, mean, *(["–"] if on_device else [])])
    header = ["graph", "edges", "k", "threads", "rounds", "fine, ms", "ME/s", "coarse, ms", "ME/s", "fine over coarse"]
    return markdown([*header, *(["on a V100, as published, ms"] if on_device else [])], rows)


def peel_table(items: list[Measured]) -> str:
    """A row for each graph and question, next to what other programs took."""
    rows = []
    for item in items:
        published = ANCHORS_MS.get(item.graph, {}).get(item.question)
        rows.append(
            [
                *(item.graph, f"{item.edges:,}", item.question, str(item.k), str(item.rounds)),
                *(_ms(item.seconds), f"{item.edges / item.seconds / 1e6:.0f}"),
                *("–" if taken is None else _ms(taken) for taken in (item.found_seconds, item.asked_seconds)),
                "–" if published is None else f"{published:g}",
                ratio_text(None if published is None else published / 1e3 / item.seconds),
            ]
        )
    header = [
        "graph",
        "edges",
        "question",
        "k",
        "rounds",
        "ms",
        "ME/s",
        "prepared too, ms",
        "whole call, ms",
        "another program, ms",
        "ratio",
    ]
    return markdown(header, rows)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def measure(options: argparse.Namespace, device: gpu.CopyingDevice | None) -> Iterator[Measured]:
    """Everything that is asked for, a graph at a time; nothing of a device without one."""
    for known in known_graphs(options):
        subject, wanted = Subject(known), [what for what in options.what if takes(what, known.name, options)]
        if device is not None and "eager" in wanted:
            yield from eager(subject, device, options.repeats)
        if device is not None and "peel" in wanted:
            yield from peel(subject, device, options.repeats)
        if "threads" in wanted:
            yield from threads(subject, options.threads, options.repeats)
        subject.graph.release()


def takes(what: str, name: str, options: argparse.Namespace) -> bool:
    """Whether a part is measured on a graph: on generated ones only peel, on real ones as asked for."""
    if name in _generated_names(options):
        return what == "peel"
    return name in (options.graphs or GRAPHS[what])


def known_graphs(options: argparse.Namespace) -> list[KnownGraph]:
    """Those that some part is measured on."""
    known = [from_stream(kronecker(scale, seed=1), max(options.threads)) for scale in options.scales]
    names = _generated_names(options)
    if options.data is not None:
        known += real_graphs(options.data, least_edges=0)
        names += options.graphs or [name for what in options.what for name in GRAPHS[what]]
    chosen = choose_graphs(known, list(dict.fromkeys(names)))
    return [graph for graph in chosen if any(takes(what, graph.name, options) for what in options.what)]


def _generated_names(options: argparse.Namespace) -> list[str]:
    return [kronecker(scale, seed=1).name for scale in options.scales]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="*", choices=list(TITLES), default=list(TITLES))
    parser.add_argument("--scales", type=int, nargs="*", default=[18, 20], help="of the Kronecker graphs of peel")
    parser.add_argument("--data", type=Path, help="folder of NAME.el.xz with a truths.json in or above it")
    parser.add_argument("--graphs", nargs="+", help="of the folder, for every part; default: those of each part")
    parser.add_argument("--threads", type=int, nargs="+", default=_powers(hardware.usable_threads()))
    parser.add_argument("--repeats", type=int, default=20, help="timed runs, after one that warms up")
    parser.add_argument("--records", type=Path, nargs="*", default=[], help="records of earlier runs to print too")
    parser.add_argument("--output", type=Path, help="folder for the records, one JSON object a line, and the tables")
    return parser.parse_args(arguments)


def _powers(most: int) -> list[int]:
    """1, 2, 4 … and the number of threads itself."""
    return sorted({most, *(1 << bits for bits in range(most.bit_length()))})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store; the exit status is 1 when an answer was wrong."""
    options = parse(arguments)
    lines = [json.loads(line) for path in options.records for line in path.read_text().splitlines()]
    measured = [Measured(**{name: line.get(name) for name in Measured.__dataclass_fields__}) for line in lines]
    device = gpu.find_device() if {"eager", "peel"} & set(options.what) else None
    machine = hardware.look().description
    stamp = {"device": None if device is None else device.name, "machine": machine, "version": ww.__version__}
    for item in measure(options, device):
        measured.append(item)
        text = item.problem or f"{_ms(item.seconds)} ms"
        print(f"{item.graph:20} {item.question:16} {item.way:26} {item.threads or '':>2} {text}", flush=True)
        if options.output is not None:
            line = json.dumps({"date": datetime.now(UTC).isoformat(), **stamp, **asdict(item)})
            storage.append_line(options.output / "trusses_gpu.jsonl", line)
    text = text_of(measured, stamp)
    print(f"\n{text}")
    if options.output is not None:
        with storage.atomic_write(options.output / "trusses_gpu.md") as file:
            file.write(text.encode())
    return int(any(item.problem is not None for item in measured))


if __name__ == "__main__":
    sys.exit(main())

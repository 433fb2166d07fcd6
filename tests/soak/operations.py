"""What a soak does over and over: one operation of a random kind, compared with what is true.

An operation depends on nothing but its seed and its number, so that it can be done again alone.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from emulate.emulated_cases import block_knob
from emulate.emulator import COMPILER
from helpers.commands import COMMAND, PATIENCE
from numpy.typing import NDArray

import wedgewise as ww
from soak import victim
from soak.damage import damage
from soak.draws import BLOCKS, Drawn, Way, draw_any, draw_graph, draw_question, draw_way
from soak.machines import emulated_gpu, emulated_gpus, pieces, unsynced
from soak.truths import Truth, is_same, plain
from soak.victim import MOMENTS, PARTITION
from wedgewise.algorithms import ENGINE, find, registry
from wedgewise.errors import InputError, MemoryLimitError, WedgewiseError
from wedgewise.run._hybrid_plan import BOTH, COUNTED_ON, CPU, GPU
from wedgewise.run._hybrid_queue import SCHEDULES
from wedgewise.stages.tasks import ESTIMATORS
from wedgewise.store.build import write_store
from wedgewise.store.manifest import MANIFEST

TESTS = Path(__file__).resolve().parent.parent

STORE_QUESTIONS = ("count", "triangles", "edge_support", "k_truss")
STORE_LABELS = ("compact", "spread", "text")
COUNT_BLOCKS = tuple(name for (name, where), record in registry().items() if where == "cpu" and record.triples)
COUNT_BLOCKS_THERE = tuple(name for (name, where), record in registry().items() if where == "cuda" and record.triples)
ASKED_AT_ONCE = 6
DAMAGES = 6  # to copies of one store
REAL_KILLS = 0.05  # of the questions that are ended: a process takes a second
Progress = Callable[[str], None]


class Difference(Exception):
    """An answer is not what is true."""


def check(way: Way, answer: Any, truth: Truth) -> None:
    """Compare an answer, or raise."""
    found, expected = plain(answer), truth.answer(way.question, way.details)
    if not is_same(way.question, found, expected, way.details):
        raise Difference(f"{way}: {_shortened(found)} where {_shortened(expected)} is true")


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:400]} …"


def ask(random: Random, progress: Progress) -> None:
    """Several questions about one graph, which keeps what it has prepared."""
    drawn = draw_any(random)
    device = "cuda" if COMPILER and drawn.arcs is None and random.random() < 0.3 else "cpu"
    with emulated_gpu(), pieces(random) as how:
        progress(f"{drawn.name}, on {device}, {how}")
        graph, truth = drawn.graph(random.choice(("cpu", device))), drawn.truth()
        for _ in range(random.randint(1, 4)):
            way = draw_way(random, graph, truth, device)
            progress(str(way))
            _answer(way, graph, truth)


def _answer(way: Way, graph: Any, truth: Truth) -> None:
    """Ask, and compare; knobs may be refused that no device has room for, and questions that a limit leaves none."""
    try:
        answer = way.ask(graph).answer
    except InputError:
        if "knobs" not in way.how:
            raise
        return
    except MemoryLimitError:
        if "memory_limit" not in way.how:
            raise
        return
    check(way, answer, truth)
    if way.question == "list_triangles" and not {"order", "relabel"} & set(way.how):
        in_order = ww.list_triangles(graph, algorithm="reference", device="cpu")
        if plain(answer) != plain(in_order):
            raise Difference(f"{way}: another order of the rows than that of the reference")


def look_around(random: Random, progress: Progress) -> None:
    """What a graph tells of itself without a question, and its triangles in batches."""
    drawn = draw_graph(random)
    progress(drawn.name)
    graph, truth = drawn.graph(), drawn.truth()
    near: list[list[int]] = [[] for _ in range(truth.n)]
    for u, v in truth.edges.tolist():
        near[u].append(v)
        near[v].append(u)
    some = sorted(random.sample(range(len(truth.edges)), random.randint(0, len(truth.edges))))
    part, batch = graph.subgraph(np.array(some, random.choice(("i8", "u4"))) if some else []), random.randint(1, 50)
    told = {
        "size": ((graph.n, graph.m), (truth.n, len(truth.edges))),
        "edges": (graph.edges.tolist(), truth.edges.tolist()),
        "degrees": (graph.degrees.tolist(), truth.degrees),
        "paths": (graph.paths, sum(d * (d - 1) // 2 for d in truth.degrees)),
        "neighbours": (_neighbours(graph), [sorted(row) for row in near]),
        "subgraph": (ww.count(part), Truth(truth.edges[some], truth.n).known.count),
        "batches": (
            [row for rows in ww.iter_triangles(graph, batch=batch) for row in rows.tolist()],
            plain(ww.list_triangles(graph)),
        ),
    }
    for what, (found, expected) in told.items():
        if found != expected:
            raise Difference(f"{what} of {drawn.name}: {_shortened(found)} where {_shortened(expected)} is true")


def _neighbours(graph: ww.Graph) -> list[list[int]]:
    """The vertices next to each vertex, found by their labels."""
    labels = list(graph.labels)
    return [[int(graph.index(near)) for near in row] for row in graph.neighbors(labels)]


def ask_together(random: Random, progress: Progress) -> None:
    """Several threads at once, about one graph that none of them has prepared."""
    drawn = draw_any(random)
    with pieces(random) as how:
        graph, truth = drawn.graph(), drawn.truth()
        ways = [draw_way(random, graph, truth, "cpu") for _ in range(ASKED_AT_ONCE)]
        progress(f"{drawn.name}, {how}, at once: {'; '.join(map(str, ways))}")
        with ThreadPoolExecutor(random.randint(2, 4)) as callers:
            for asked in [callers.submit(_answer, way, graph, truth) for way in ways]:
                asked.result()


def count_by_blocks(random: Random, progress: Progress) -> None:
    """On emulated GPUs and threads together, in any division of the work."""
    drawn = draw_graph(random)
    algorithm = random.choice(COUNT_BLOCKS_THERE)
    knobs = _hybrid_knobs(random, algorithm)
    if random.random() < 0.6:
        knobs["parts"] = min(random.choice((1, 2, 3, 5)), max(1, drawn.n))
    how = {"device": "hybrid", "algorithm": algorithm, "threads": random.randint(1, 4), "knobs": knobs}
    way = Way("count", {}, how)
    with emulated_gpus(random) as devices:
        progress(f"{drawn.name}, on {len(devices)} GPUs of {devices[0].capacity:,} bytes: {way}")
        try:
            check(way, way.ask(drawn.graph()).answer, drawn.truth())
        except MemoryLimitError:
            if knobs.get("places") != GPU:  # else nobody has room for a task that GPUs have not
                raise
        if any(device.live for device in devices):
            raise Difference(f"{way}: blocks that were copied to a GPU are still there")


def _hybrid_knobs(random: Random, algorithm: str) -> dict[str, int | str]:
    tried: Mapping[str, tuple[int | str, ...]] = {
        "schedule": SCHEDULES,
        "estimator": tuple(ESTIMATORS),
        "cutoff": (0, 30, 100),
        "streams": (1, 2, 4),
        "places": COUNTED_ON,
    }
    knobs = {name: random.choice(values) for name, values in tried.items() if random.random() < 0.6}
    there = knobs.get("places") != CPU
    return knobs | (block_knob(find(algorithm, "cuda"), random.choice(BLOCKS)) if there else {})


def ask_store(random: Random, progress: Progress) -> None:
    """A store of a graph: interrupted at any step, it goes on; nothing is left beside the blocks."""
    drawn = draw_graph(random, labels=STORE_LABELS)
    with tempfile.TemporaryDirectory() as folder, emulated_gpus(random), pieces(random) as how:
        store = _store(random, drawn, Path(folder))
        progress(f"store of {drawn.name}, {how}")
        truth, held = drawn.truth(), _names(store)
        for _ in range(random.randint(1, 3)):
            way = _store_way(random, truth)
            last = random.randint(0, 6)
            progress(f"{way}, interrupted at step {last}")
            with suppress(KeyboardInterrupt):
                ww.run(way.question, store, progress=_interrupting(last), **way.how, **way.details)
            check(way, way.ask(store).answer, truth)
            if _names(store) != held:
                raise Difference(f"{way}: left {_names(store) - held} in the store")


def kill_store(random: Random, progress: Progress) -> None:
    """The same with processes that die while they write down what they have done."""
    drawn = draw_graph(random, labels=STORE_LABELS)
    with tempfile.TemporaryDirectory() as folder:
        store, truth = _store(random, drawn, Path(folder)), drawn.truth()
        question, details = draw_question(random, truth, STORE_QUESTIONS)
        way = Way(question, details, {})
        for _ in range(random.randint(1, 2)):
            line, moment = random.randint(0, 5), random.choice(MOMENTS)
            progress(f"store of {drawn.name}: {way}, killed {moment} line {line} of its journal")
            asked = (str(store), question, str(details.get("k", 0)), str(line), moment)
            _run([sys.executable, "-m", "soak.victim", *asked], expected=(0, -9))
        check(way, way.ask(store).answer, truth)


def damage_store(random: Random, progress: Progress) -> None:
    """A store whose question was ended, and whose files are damaged then: the right answer, or a `WedgewiseError`.

    What was damaged is most often what was written down; starting again gives the right answer then.
    """
    drawn = draw_graph(random, labels=STORE_LABELS)
    with tempfile.TemporaryDirectory() as folder, unsynced(), pieces(random) as how:
        store, truth = _store(random, drawn, Path(folder)), drawn.truth()
        held = _files(store)
        question, details = draw_question(random, truth, STORE_QUESTIONS)
        way = Way(question, details, {"threads": random.randint(1, 2)})
        progress(f"store of {drawn.name}, {how}: {way}, {_ended(random, way, store)}")
        written = [path for path in _files(store) if path not in held]
        for number in range(DAMAGES):
            hurt = random.choice(written if written and random.random() < 0.8 else held)
            again = Path(shutil.copytree(store, Path(folder) / f"again-{number}"))
            progress(damage(random, again / hurt))
            try:
                check(way, way.ask(again).answer, truth)
            except WedgewiseError as error:
                progress(f"refused: {error}")
                if hurt in written:
                    check(way, ww.run(question, again, resume=False, **way.how, **details).answer, truth)


def _files(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _ended(random: Random, way: Way, store: Path) -> str:
    """End a question at a line of its journal, now and then by a real kill; how."""
    line, moment = random.randint(0, 5), random.choice(MOMENTS)
    if random.random() < REAL_KILLS:
        asked = (str(store), way.question, str(way.details.get("k", 0)), str(line), moment)
        _run([sys.executable, "-m", "soak.victim", *asked], expected=(0, -9))
        return f"killed {moment} line {line}"
    with victim.ended_at(line, moment), suppress(victim.Ended):
        way.ask(store)
    return f"ended {moment} line {line}"


def kill_partition(random: Random, progress: Progress) -> None:
    """A store that a process was killed at making is made again."""
    drawn = draw_graph(random, labels=("compact", "spread"))
    parts, number = _parts(random, drawn), random.randint(0, 30)
    with tempfile.TemporaryDirectory() as folder:
        pairs, store = Path(folder) / "pairs.npy", Path(folder) / "store"
        np.save(pairs, drawn.source)
        progress(f"{drawn.name} in {parts} parts, killed at file {number}")
        asked = (folder, PARTITION, str(parts), str(number), MOMENTS[0])
        _run([sys.executable, "-m", "soak.victim", *asked], expected=(0, -9))
        if not (store / MANIFEST).exists():
            write_store(pairs, store, parts=parts)
        way = _store_way(random, drawn.truth())
        progress(str(way))
        with emulated_gpus(random):
            check(way, way.ask(store).answer, drawn.truth())


def ask_file(random: Random, progress: Progress) -> None:
    """A text file with comments, blank lines and any separators, read at the question."""
    drawn = draw_graph(random, labels=("compact", "spread"))
    with tempfile.TemporaryDirectory() as folder, pieces(random) as how:
        path, truth = _written(random, drawn.source, Path(folder)), drawn.truth()
        way = draw_way(random, drawn.graph(), truth, "cpu")
        progress(f"file {path.name} of {drawn.name}, {how}: {way}")
        _answer(way, path, truth)


def ask_processes(random: Random, progress: Progress) -> None:
    """Several processes at once, while this one asks the same."""
    drawn = draw_graph(random, labels=("compact", "spread"))
    with tempfile.TemporaryDirectory() as folder:
        path, truth = _written(random, drawn.source, Path(folder)), drawn.truth()
        names = [random.choice(("auto", "forward", "hashmap", "keystone")) for _ in range(random.randint(2, 3))]
        progress(f"file of {drawn.name}, counted at once by {', '.join(names)}")
        commands = [[*COMMAND, "count", str(path), "--algorithm", name] for name in names]
        with ThreadPoolExecutor(len(commands)) as callers:
            asked = [callers.submit(_run, command) for command in commands]
            counted = {"this process": str(ww.count(path, device="cpu"))}
            counted |= {" ".join(command): each.result().strip() for command, each in zip(commands, asked, strict=True)}
        for name, found in counted.items():
            if found != str(truth.known.count):
                raise Difference(f"{name}: {found} where {truth.known.count} is true")


def _parts(random: Random, drawn: Drawn) -> int:
    """Of a store, no more than it has vertices."""
    return min(random.randint(1, 4), max(1, len(np.unique(drawn.pairs))))


def _store(random: Random, drawn: Drawn, folder: Path) -> Path:
    parts, scheme = _parts(random, drawn), random.choice(("rectilinear", "hashed"))
    threads = random.randint(1, 3)
    return write_store(drawn.source, folder / "store", parts=parts, scheme=scheme, threads=threads).folder


def _store_way(random: Random, truth: Truth) -> Way:
    question, details = draw_question(random, truth, STORE_QUESTIONS)
    how: dict[str, Any] = {"threads": random.randint(1, 3)}
    if question == "count" and random.random() < 0.5:
        how["algorithm"] = random.choice(COUNT_BLOCKS)
    elif question == "count" and COMPILER:
        how |= {"device": "hybrid", "algorithm": ENGINE, "knobs": {**_hybrid_knobs(random, ENGINE), "places": BOTH}}
    return Way(question, details, how)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _interrupting(last: int) -> Callable[[str, int, int], None]:
    left = last

    def progress(_stage: str, _done: int, _total: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    return progress


def _written(random: Random, pairs: NDArray[Any], folder: Path) -> Path:
    """A text file of the pairs."""
    text = "".join(_lines(random, pairs)).removesuffix("\n" if random.random() < 0.5 else "")
    if random.random() < 0.3:
        path = folder / "graph.txt.gz"
        path.write_bytes(gzip.compress(text.encode()))
        return path
    path = folder / "graph.txt"
    path.write_text(text, encoding="utf-8")
    return path


def _lines(random: Random, pairs: NDArray[Any]) -> Iterator[str]:
    separator, end = random.choice((" ", "\t", "  ", ",")), random.choice(("\n", "\r\n"))
    yield f"# a graph{end}"
    for u, v in np.asarray(pairs).tolist():
        if random.random() < 0.02:
            yield random.choice((end, f"% said in between{end}"))
        yield f"{u}{separator}{v}{end}"


def _run(command: list[str], expected: tuple[int, ...] = (0,)) -> str:
    """What a process prints; an end other than expected is a difference."""
    found = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env={**os.environ, "PYTHONPATH": found}
    )
    if ended.returncode not in expected:
        raise Difference(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr}")
    return ended.stdout


Operation = Callable[[Random, Progress], None]
NEEDS_COMPILER = ("blocks",)  # kernels of GPUs, emulated
OPERATIONS: Mapping[str, tuple[Operation, int]] = {
    "ask": (ask, 60),
    "together": (ask_together, 12),
    "around": (look_around, 8),
    "blocks": (count_by_blocks, 8),
    "store": (ask_store, 8),
    "file": (ask_file, 8),
    "killed": (kill_store, 2),
    "damaged": (damage_store, 4),
    "partitioned": (kill_partition, 1),
    "processes": (ask_processes, 2),
}
"""Every kind of operation, and how often it is drawn."""
KINDS = tuple(kind for kind in OPERATIONS if COMPILER or kind not in NEEDS_COMPILER)

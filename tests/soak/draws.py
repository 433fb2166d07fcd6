"""Random graphs in every form that users hand them over, and random ways to ask about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from attack.forms import DTYPES, LAYOUTS, LIBRARIES, given_as
from conformance.engines import knob_values as cpu_values
from emulate.emulated_cases import block_knob
from emulate.emulated_cases import knob_values as cuda_values
from helpers.graphs import both_ways, distinct_edges
from numpy.typing import NDArray

import wedgewise as ww
from soak.truths import Arcs, Truth
from wedgewise import generate
from wedgewise.algorithms._contract import Algorithm
from wedgewise.answer.questions import QUESTIONS

MAX_LABEL = 2**62
MAX_THREADS = 4
MEMORY_LIMITS = (1 << 40, 1 << 25, 1 << 22)  # bytes: all fits, the smaller go on from disk or are refused
BLOCKS = (32, 64, 96, 256)  # threads, each of which has a stack in the emulator


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph: what `wedgewise.Graph` gets, and its pairs by vertex, in the order of the vertices that it makes."""

    name: str
    pairs: NDArray[np.int64]
    n: int
    source: Any
    options: dict[str, Any] = field(default_factory=dict)
    arcs: Arcs | None = None

    def truth(self) -> Truth:
        return Truth(self.pairs, self.n, self.arcs)

    def graph(self, device: str = "cpu") -> ww.Graph:
        return ww.Graph(self.source, device=device, **self.options)


def _small(random: Random) -> dict[str, Callable[[], generate.EdgeStream]]:
    """Every family, with parameters that leave a few hundred edges at most."""
    seed, size = random.randrange(2**32), random.randint(3, 24)
    return {
        "kronecker": lambda: generate.kronecker(random.randint(2, 6), edgefactor=random.randint(1, 9), seed=seed),
        "rmat": lambda: generate.rmat(random.randint(2, 6), edgefactor=random.randint(1, 9), seed=seed),
        "uniform": lambda: generate.uniform(4 * size, random.randint(0, 500), seed=seed),
        "small_world": lambda: generate.small_world(8 + size, 2 * random.randint(1, 4), random.random(), seed=seed),
        "torus3d": lambda: generate.torus3d(random.randint(3, 4)),
        "complete": lambda: generate.complete(size),
        "complete_tripartite": lambda: generate.complete_tripartite(1 + size % 5, 2 + size % 7, size),
        "turan": lambda: generate.turan(size, random.randint(1, size)),
        "octahedron": lambda: generate.octahedron(random.randint(1, 10)),
        "star": lambda: generate.star(10 * size),
        "wheel": lambda: generate.wheel(3 + 3 * size),
        "windmill": lambda: generate.windmill(size, clique=random.randint(3, 5)),
        "book": lambda: generate.book(5 * size),
        "cycle": lambda: generate.cycle(3 * size),
        "path": lambda: generate.path(2 * size),
        "petersen": generate.petersen,
        "hypercube": lambda: generate.hypercube(random.randint(1, 6)),
        "grid8": lambda: generate.grid8(random.randint(1, 10)),
        "kronecker_of_stars": lambda: generate.kronecker_of_stars(
            (3, 2 + size % 4), random.choice(("Bk", "B1k", "B2k"))
        ),
    }


FAMILIES = tuple(_small(Random(0)))


def draw_pairs(random: Random) -> tuple[str, NDArray[np.int64]]:
    """The pairs of a generated graph or any at all, spoilt by loops, copies and turned copies."""
    kind = random.choice((*FAMILIES, "any", "any", "any", "nothing"))
    numbers = np.random.default_rng(random.randrange(2**63))
    if kind == "nothing":
        return kind, np.empty((0, 2), np.int64)
    if kind == "any":
        n = random.randint(1, 80)
        pairs = numbers.integers(0, n, (random.randint(0, 8 * n), 2))
    else:
        pairs = _small(random)[kind]().pairs().astype(np.int64)
    if len(pairs) and random.random() < 0.5:
        again = pairs[numbers.integers(0, len(pairs), len(pairs) // 3 + 1)]
        loops = numbers.choice(pairs.reshape(-1), 3).repeat(2).reshape(-1, 2)
        pairs = numbers.permutation(np.concatenate([pairs, again, again[:, ::-1], loops]))
    return kind, pairs


def renumbered(pairs: NDArray[np.int64], *, by_appearance: bool = False) -> tuple[NDArray[np.int64], int]:
    """The pairs with numbers 0 … n − 1 for what occurs in them: ascending, or as they appear; and n."""
    occurring, firsts, places = np.unique(pairs.reshape(-1), return_index=True, return_inverse=True)
    if by_appearance:
        rank = np.empty(len(occurring), np.int64)
        rank[np.argsort(firsts)] = np.arange(len(occurring))
        places = rank[places]
    return places.reshape(-1, 2).astype(np.int64), len(occurring)


LABELS = ("padded", "compact", "spread", "text", "foreign", "foreign")


def draw_graph(random: Random, *, labels: tuple[str, ...] = LABELS) -> Drawn:
    """A graph under labels of some kind."""
    family, raw = draw_pairs(random)
    kind = random.choice(labels)
    name = f"{family} with {kind} labels"
    if kind == "foreign":
        return _draw_foreign(random, family, raw)
    if kind == "padded":
        n = int(raw.max(initial=-1)) + 1 + random.randint(0, 5)
        return Drawn(name, raw, n, raw.astype(random.choice((np.int32, np.int64, np.uint32, np.uint64))), {"n": n})
    pairs, n = renumbered(raw, by_appearance=kind == "text")
    if kind == "compact":
        return Drawn(name, pairs, n, pairs.astype(random.choice((np.int32, np.int64, np.uint32, np.uint64))))
    if kind == "spread":
        chosen = np.array(sorted(random.sample(range(MAX_LABEL), n)), np.int64)
        return Drawn(name, pairs, n, chosen[pairs].astype(random.choice((np.int64, np.uint64))))
    names = [f"v{number}·{random.choice('äß—x')}" for number in range(n)]
    return Drawn(name, pairs, n, [(names[u], names[v]) for u, v in pairs.tolist()])


def _draw_foreign(random: Random, family: str, pairs: NDArray[np.int64]) -> Drawn:
    """The pairs in any type, layout and library that has room for their numbers."""
    top = int(pairs.max(initial=0))
    dtype = random.choice([dtype for dtype in DTYPES if top <= np.iinfo(dtype).max])
    layout, library = random.choice(tuple(LAYOUTS)), random.choice(tuple(LIBRARIES))
    n = top + 1 + random.randint(0, 300)
    source, options = given_as(library, LAYOUTS[layout](pairs.astype(dtype)), n)
    return Drawn(f"{family} as {dtype}, {layout}, {library}", pairs, n, source, options)


def draw_weighted(random: Random) -> Drawn:
    """A graph that keeps weights and no directions: each edge stands for two arcs of one weight."""
    family, raw = draw_pairs(random)
    pairs, n = renumbered(raw)
    edges = distinct_edges(pairs)
    weights = np.random.default_rng(random.randrange(2**32)).uniform(0.1, 5.0, len(edges))
    arcs = Arcs(np.concatenate([edges, edges[:, ::-1]]), np.tile(weights, 2))
    return Drawn(f"{family} with weights", pairs, n, edges, {"n": n, "weights": weights}, arcs)


def draw_any(random: Random) -> Drawn:
    """A graph, with or without directions and weights."""
    return random.choices((draw_graph, draw_directed, draw_weighted), (8, 1, 1))[0](random)


def draw_directed(random: Random) -> Drawn:
    """A graph that keeps directions and weights."""
    family, raw = draw_pairs(random)
    pairs, n = renumbered(raw)
    arcs, weights = both_ways(pairs, seed=random.randrange(2**32))
    options = {"n": n, "directed": True, "weights": weights}
    return Drawn(f"{family} with directions and weights", pairs, n, arcs, options, Arcs(arcs, weights))


@dataclass(frozen=True, slots=True)
class Way:
    """A question and everything that may be chosen about how it is answered."""

    question: str
    details: Mapping[str, Any]
    how: Mapping[str, Any]

    def ask(self, graph: Any) -> ww.Result:
        return ww.run(self.question, graph, **self.how, **self.details)

    def __str__(self) -> str:
        return f"{self.question} {dict(self.details)} {dict(self.how)}"


def draw_question(
    random: Random, truth: Truth, questions: tuple[str, ...] = tuple(QUESTIONS)
) -> tuple[str, dict[str, Any]]:
    """A question with its details."""
    question, details = random.choice(questions), dict[str, Any]()
    if question in ("k_truss", "truss_components"):
        details["k"] = random.randint(2, truth.kmax + 1)
    if question in ("clustering", "average_clustering") and truth.arcs is not None:
        details["weighted"] = random.random() < 0.5
    elif question in ("clustering", "average_clustering", "transitivity"):
        details["undefined"] = random.choice(("zero", "nan"))
    if question in ("similarity", "top_similar"):
        details["measure"] = random.choice(("common_neighbors", "jaccard", "overlap", "sorensen"))
    if question == "top_similar":
        details["k"] = random.randint(1, 5)
    if question == "average_clustering":
        details["count_zeros"] = random.random() < 0.5
    return question, details


def draw_way(random: Random, graph: ww.Graph, truth: Truth, device: str) -> Way:
    """A question, and how to answer it on a device."""
    question, details = draw_question(random, truth)
    how: dict[str, Any] = {"device": device, "threads": random.randint(1, MAX_THREADS)}
    full = QUESTIONS[question].details(details)
    computes = QUESTIONS[question].computes(graph, full)
    able = [record for record in ww.algorithms() if record.device == device and computes in record.answers]
    if able and random.random() < 0.85:
        how |= _draw_algorithm(random, random.choice(able), device)
    if random.random() < 0.1:
        how["verify"] = True
    if random.random() < 0.1:
        how["memory_limit"] = random.choice(MEMORY_LIMITS)
    return Way(question, details, how)


def _draw_algorithm(random: Random, record: Algorithm, device: str) -> dict[str, Any]:
    how: dict[str, Any] = {"algorithm": record.name}
    if random.random() < 0.5:
        how |= {"order": random.choice(record.orders), "relabel": random.choice(record.relabellings)}
    values = cpu_values if device == "cpu" else cuda_values
    tried = [knob for knob in record.knobs if random.random() < 0.3]
    knobs = {knob.name: random.choice(values(knob)) for knob in tried if values(knob)}
    knobs |= block_knob(record, random.choice(BLOCKS))
    return how | ({"knobs": knobs} if knobs else {})

"""The graphs of the comparison, written once as array and as text, so that all cells read the same bytes."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise import api_trusses, datasets, generate
from wedgewise.datasets.cache import folder_of
from wedgewise.errors import FormatError, MissingFileError, UnknownNameError
from wedgewise.machine import files as storage
from wedgewise.machine.jit import cache_root
from wedgewise.machine.own_files import why_not_own_file
from wedgewise.read import read_edges
from wedgewise_bench.record_fields import COUNT, anything, by_name, of_form, text
from wedgewise_bench.spec import INTEGER, Spec
from wedgewise_bench.words import KMAX

MIN_REAL_EDGES = 100_000
LINES_AT_ONCE = 2**18
TRUTH = {"m": COUNT, "triangles": COUNT, "truss_edges_by_k": by_name(of_form(INTEGER, "k"), COUNT)}

SMALL = (generate.kronecker(8, seed=1), generate.complete_tripartite(20, 30, 40))
"""Graphs that the slowest of our algorithms decomposes within a second."""

LARGE = (generate.kronecker(22, seed=1), generate.kronecker(24, seed=1))
NAMED: Mapping[re.Pattern[str], Callable[..., generate.EdgeStream]] = {
    re.compile(r"kronecker-(\d+)-seed(\d+)"): lambda scale, seed: generate.kronecker(scale, seed=seed),
    re.compile(r"torus3d-(\d+)"): generate.torus3d,
}
"""Graphs of any size: what their names look like, and the generator that takes the numbers in them."""

ALIASES = {"loc-brightkite": "loc-brightkite_edges"}
"""Names in data folders of graphs that the catalogue has by another one."""

KNOWN_TRIANGLES = {
    "kronecker-12-seed1": 481_604,
    "kronecker-16-seed1": 15_678_782,
    "kronecker-18-seed1": 82_845_405,
    "kronecker-20-seed1": 424_620_647,
    "uniform-1048576-16777216-seed1": 5_413,
    "small_world-1000000-20-p0.1-seed1": 32_796_285,
}
"""Counts of generated graphs without a formula: NetworKit, GraphBLAS and wedgewise agreed on each."""

KNOWN_TRUSSES = {
    "kronecker-12-seed1": {3: 46_292, 50: 2_713},
    "kronecker-16-seed1": {3: 834_450, 116: 8_996},
    "kronecker-18-seed1": {3: 3_410_465, 164: 227_580},
    "small_world-1000000-20-p0.1-seed1": {3: 8_999_394, 11: 114_154},
}
"""Edges of the 3-truss and of the last one: GraphBLAS, peel and eager agreed on each."""


@dataclass(frozen=True, slots=True)
class BenchGraph:
    """A graph that can be prepared: its name, a mark of its content, its raw pairs, and what is known of it.

    ``edges`` are those of the simple graph. ``trusses`` has the edges of k-trusses by k, with that of the largest k if
    any; it may be empty.
    """

    name: str
    fingerprint: Callable[[], str]
    make_pairs: Callable[[], NDArray[Any]]
    triangles: int | None
    trusses: Mapping[int, int] = field(default_factory=dict)
    edges: int | None = None


@dataclass(frozen=True, slots=True)
class PreparedGraph:
    """A graph on disk: the same raw pairs, in the same order, as ``.npy`` and as text; and what is known of it."""

    name: str
    pairs_path: Path
    text_path: Path
    pairs: int
    triangles: int | None
    trusses: Mapping[int, int] = field(default_factory=dict)
    edges: int | None = None
    searched_kmax: int | None = None

    @property
    def kmax(self) -> int:
        """The largest k whose k-truss has edges, known or found by `with_kmax`."""
        found = max(self.trusses, default=self.searched_kmax)
        assert found is not None
        return found

    def details(self, asked: Spec) -> dict[str, int]:
        """The parameters of a question as numbers: `KMAX` is the largest k of this graph."""
        return {name: self.kmax if value == KMAX else int(value) for name, value in asked.settings.items()}

    def expected(self, asked: Spec) -> int | None:
        """The number that the answer must imply, where it is known."""
        match asked.name:
            case "trussness" | "max_truss":
                return max(self.trusses, default=None)
            case "k_truss":
                k = self.details(asked)["k"]
                return 0 if self.trusses and k > max(self.trusses) else self.trusses.get(k)
        return self.triangles

    def with_kmax(self, threads: int) -> PreparedGraph:
        """The same with its largest k: by our own search where it is not known, which then is no proof of an answer."""
        if self.trusses:
            return self
        last = api_trusses.max_truss(np.load(self.pairs_path, allow_pickle=False), device="cpu", threads=threads)
        return replace(self, searched_kmax=last.k)


def generated_graphs(threads: int = 1) -> list[BenchGraph]:
    """Kronecker 16, 18 and 20, a uniform graph of 16 M pairs, a small world of 10 M."""
    streams = [
        *(generate.kronecker(scale, seed=1) for scale in (16, 18, 20)),
        generate.uniform(n=2**20, m=2**24, seed=1),
        generate.small_world(n=10**6, k=20, p=0.1, seed=1),
    ]
    return [from_stream(stream, threads) for stream in streams]


def answer_graphs(threads: int = 1) -> list[BenchGraph]:
    """Kronecker 12, 16 and 18, and the bundled real graphs."""
    streams = [generate.kronecker(scale, seed=1) for scale in (12, 16, 18)]
    return [*(from_stream(stream, threads) for stream in streams), *map(from_bundled, datasets.BUNDLED)]


def from_stream(stream: generate.EdgeStream, threads: int = 1) -> BenchGraph:
    """A generated graph; its mark is a hash of its size, its first block and its last."""

    def fingerprint() -> str:
        size, most = stream.pairs_count, min(stream.pairs_count, 2**16)
        ends = stream.block(0, most).tobytes() + stream.block(size - most, size).tobytes()
        return _digest(f"{size} ".encode() + ends)

    triangles = stream.expected_triangles
    if triangles is None:
        triangles = KNOWN_TRIANGLES.get(stream.name)
    trusses = KNOWN_TRUSSES.get(stream.name, {})
    return BenchGraph(stream.name, fingerprint, lambda: stream.pairs(threads=threads), triangles, trusses)


def from_bundled(name: str) -> BenchGraph:
    """A graph that comes with the package."""
    path, known = datasets.bundled(name), datasets.BUNDLED[name]

    def make_pairs() -> NDArray[Any]:
        return read_edges(path).pairs

    return BenchGraph(name, lambda: _digest(path.read_bytes()), make_pairs, known.triangles, edges=known.m)


def real_graphs(folder: Path, least_edges: int = MIN_REAL_EDGES) -> list[BenchGraph]:
    """Every ``NAME.el.xz`` of a folder with enough edges, smallest first.

    ``truths.json`` lies in that folder or above it and gives the edges ``m`` and the ``triangles`` of each
    name, and if it likes the edges of its k-trusses as ``truss_edges_by_k``, that of the largest k included.
    """
    truths_path = next((p for p in (folder / "truths.json", folder.parent / "truths.json") if p.exists()), None)
    if truths_path is None:
        raise MissingFileError(
            f"{folder}: has no graphs: no truths.json in or above it; name a folder of graphs with known counts"
        )
    truths = _truths(truths_path)
    here = [(truth["m"], name) for name, truth in truths.items() if (folder / f"{name}.el.xz").exists()]
    if not here:
        raise MissingFileError(
            f"{folder}: has no graphs: none of the {len(truths)} in {truths_path} is there as NAME.el.xz"
        )
    found = [(edges, name) for edges, name in here if edges >= least_edges]
    return [_from_compressed(name, folder / f"{name}.el.xz", truths[name]) for _, name in sorted(found)]


def published_graphs(threads: int = 1) -> list[BenchGraph]:
    """Those of the catalogue of datasets that are here: their files lie in its folder, or they are generated."""
    found = (_published(graph, threads) for graph in datasets.catalogue().values())
    return [graph for graph in found if graph is not None]


def _published(graph: datasets.PublishedGraph, threads: int) -> BenchGraph | None:
    if graph.recipe is not None:
        return replace(from_stream(graph.recipe.stream(), threads), name=graph.name)
    folder = None if cache_root() is None else folder_of(graph.name)
    record = None if folder is None else folder.record()
    if folder is None or record is None or folder.file() is None:
        return None

    def make_pairs() -> NDArray[Any]:
        return datasets.load(graph.name, threads=threads).edges

    mark, counted = record.sha256[:12], record.counted
    return BenchGraph(graph.name, lambda: mark, make_pairs, counted.get("triangles"), edges=counted.get("m"))


def known_graphs(data: Path | None, threads: int = 1) -> dict[str, BenchGraph]:
    """Every graph by name: generated ones, bundled ones, those of the catalogue that are here, all of a data folder.

    Of one name, that of the data folder counts, then the bundled one.
    """
    streams = [from_stream(stream, threads) for stream in (*SMALL, *LARGE)]
    real = [] if data is None else real_graphs(data, least_edges=0)
    real += [replace(graph, name=ALIASES[graph.name]) for graph in real if graph.name in ALIASES]
    usual = [*streams[: len(SMALL)], *answer_graphs(threads), *generated_graphs(threads), *streams[len(SMALL) :]]
    known = {graph.name: graph for graph in (*usual, *published_graphs(threads))}
    return known | {graph.name: graph for graph in (*map(from_bundled, datasets.BUNDLED), *real)}


def named_graphs(data: Path | None, names: Iterable[str], threads: int = 1) -> dict[str, BenchGraph]:
    """`known_graphs`, and graphs of any size by these names: Kronecker graphs, 3D tori."""
    known = known_graphs(data, threads)
    for name, (pattern, generator) in product(names, NAMED.items()):
        found = None if name in known else pattern.fullmatch(name)
        if found is not None:
            known[name] = from_stream(generator(*map(int, found.groups())), threads)
    return known


def choose_graphs(graphs: list[BenchGraph], names: list[str] | None) -> list[BenchGraph]:
    """The named graphs, or all of them."""
    known = {graph.name: graph for graph in graphs}
    for name in names or []:
        if name not in known:
            raise UnknownNameError(f"no graph named {name!r}; there are: {', '.join(known)}")
    return [known[name] for name in names or known]


def prepare(graph: BenchGraph, folder: Path, *, as_text: bool = True) -> PreparedGraph:
    """Write the graph into `folder`, or take it from there when this user wrote the same graph before.

    Where nobody reads the text, it need not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{graph.name}-{graph.fingerprint()}"
    pairs_path, text_path = folder / f"{stem}.npy", folder / f"{stem}.txt"
    if not _is_ours(pairs_path):
        with storage.atomic_write(pairs_path, mode=0o600) as file:
            np.save(file, np.ascontiguousarray(graph.make_pairs()), allow_pickle=False)
    with pairs_path.open("rb") as file:
        pairs, dtype = _header(file)
        if as_text and not _is_ours(text_path):
            with storage.atomic_write(text_path, mode=0o600) as text:
                text.writelines(_text_blocks(file, dtype))
    return PreparedGraph(graph.name, pairs_path, text_path, pairs, graph.triangles, graph.trusses, graph.edges)


def _is_ours(path: Path) -> bool:
    """Whether a file is there that this user alone can have written."""
    return os.path.lexists(path) and why_not_own_file(path) is None


def _header(file: IO[bytes]) -> tuple[int, np.dtype[Any]]:
    """How many pairs a ``.npy`` file has, and of what type; the file stands at the first of them then."""
    np.lib.format.read_magic(file)
    (pairs, _), _, dtype = np.lib.format.read_array_header_1_0(file)
    return pairs, dtype


def _truths(path: Path) -> dict[str, Any]:
    """What is known of the graphs of a folder, checked as far as it is used."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        by_name(text, by_name(text, anything, TRUTH))(found, "it")
    except OSError as error:
        raise MissingFileError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"says nothing of graphs ({error})", path=path, remedy="mend that place") from error
    lacking = [name for name, truth in found.items() if not {"m", "triangles"} <= set(truth)]
    if lacking:
        raise FormatError(f"does not know m and triangles of {lacking[0]}", path=path, remedy="add them")
    return dict(found)


def _from_compressed(name: str, path: Path, truth: Mapping[str, Any]) -> BenchGraph:
    def make_pairs() -> NDArray[Any]:
        numbers = np.array(lzma.decompress(path.read_bytes()).split(), dtype=np.int64)
        return numbers.reshape(-1, 2).astype(np.int32)

    trusses = {int(k): edges for k, edges in truth.get("truss_edges_by_k", {}).items()}
    return BenchGraph(name, lambda: _digest(path.read_bytes()), make_pairs, truth["triangles"], trusses, truth["m"])


def _text_blocks(file: IO[bytes], dtype: np.dtype[Any]) -> Iterator[bytes]:
    """Lines of two numbers separated by a space, many at a time."""
    while data := file.read(2 * dtype.itemsize * LINES_AT_ONCE):
        numbers = np.frombuffer(data, dtype).tolist()
        yield b"%d %d\n" * (len(numbers) // 2) % tuple(numbers)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]

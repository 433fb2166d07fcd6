"""Prepared graphs, and the helpers that the peers share."""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import graphblas
import networkit
import networkx
import numpy as np
import pyarrow
import pytest
from numpy.typing import NDArray

import wedgewise as ww
from bench.canned_cells import SETTING
from wedgewise import generate
from wedgewise.datasets import catalogue
from wedgewise.datasets.cache import CachedFile, checksum, folder_of
from wedgewise.errors import FormatError, MissingFileError, UnknownNameError
from wedgewise_bench import graphs, lagraph, peers
from wedgewise_bench.digest import summarise
from wedgewise_bench.ours import Wedgewise
from wedgewise_bench.runner import Bench, matrix
from wedgewise_bench.spec import Spec
from wedgewise_bench.systems import SystemSource, systems_in
from wedgewise_bench.watch import CellLimits

WRITTEN = {"k_truss": ("k_truss[k=4]", "k_truss[k=kmax]")}
ASKED = [
    (source, text)
    for module in (peers, lagraph)
    for source in systems_in(module)
    for question in source.questions
    for text in WRITTEN.get(question, (question,))
]


def brute_force(pairs: NDArray[Any]) -> int:
    n = int(pairs.max()) + 1
    adjacency = np.zeros((n, n), np.int64)
    adjacency[pairs[:, 0], pairs[:, 1]] = 1
    adjacency |= adjacency.T
    np.fill_diagonal(adjacency, 0)
    return int(np.trace(adjacency @ adjacency @ adjacency)) // 6  # 3 corners, 2 directions


def messy_pairs() -> NDArray[Any]:
    return np.random.default_rng(5).integers(0, 40, size=(300, 2), dtype=np.int32)


def data_folder(folder: Path) -> Path:
    (folder / "graphs").mkdir()
    truths: dict[str, dict[str, Any]] = {}
    for name, n in (("large", 9), ("small", 4), ("tiny", 3)):
        stream = generate.complete(n)
        text = "".join(f"{u} {v}\n" for u, v in stream.pairs().tolist())
        (folder / "graphs" / f"{name}.el.xz").write_bytes(lzma.compress(text.encode()))
        truths[name] = {"m": stream.pairs_count, "triangles": stream.expected_triangles}
    truths["small"]["truss_edges_by_k"] = {"2": 6, "4": 6}
    truths["absent"] = {"m": 10**9, "triangles": 0}
    (folder / "truths.json").write_text(json.dumps(truths))
    return folder / "graphs"


def test_array_and_text_hold_the_same_raw_pairs(tmp_path: Path) -> None:
    stream = generate.kronecker(8, seed=3)
    prepared = graphs.prepare(graphs.from_stream(stream), tmp_path / "work")
    pairs = np.load(prepared.pairs_path)
    assert np.array_equal(pairs, stream.pairs())
    assert np.array_equal(np.loadtxt(prepared.text_path, dtype=np.int64), pairs)
    assert (prepared.pairs, prepared.name) == (len(pairs), stream.name)


def test_prepared_graphs_are_reused_and_never_stale(tmp_path: Path) -> None:
    made: list[str] = []

    def graph(mark: str) -> graphs.BenchGraph:
        def make_pairs() -> NDArray[Any]:
            made.append(mark)
            return messy_pairs()

        return graphs.BenchGraph("g", lambda: mark, make_pairs, None)

    first = graphs.prepare(graph("a"), tmp_path)
    assert graphs.prepare(graph("a"), tmp_path) == first
    assert graphs.prepare(graph("b"), tmp_path).pairs_path != first.pairs_path
    assert made == ["a", "b"]
    for path in (first.pairs_path, first.text_path):
        content = path.read_bytes()
        path.write_bytes(b"of others")
        path.chmod(0o666)
        graphs.prepare(graph("a"), tmp_path)
        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o777 == 0o600
    assert made == ["a", "b", "a"]


def test_the_count_of_every_generated_graph_is_known() -> None:
    found = {graph.name: graph.triangles for graph in graphs.generated_graphs()}
    found |= {graph.name: graph.triangles for graph in graphs.answer_graphs() if graph.name.startswith("kronecker")}
    assert found == graphs.KNOWN_TRIANGLES


def test_known_trusses_are_those_of_the_graphs() -> None:
    assert set(graphs.KNOWN_TRUSSES) <= set(graphs.KNOWN_TRIANGLES)
    (smallest,) = [graph for graph in graphs.answer_graphs() if graph.name == "kronecker-12-seed1"]
    supports = ww.edge_support(smallest.make_pairs(), algorithm="reference")
    assert np.count_nonzero(supports) == smallest.trusses[3]  # the edges in triangles


def test_bundled_graphs_take_part() -> None:
    (enron,) = [graph for graph in graphs.answer_graphs() if graph.name == "email-Enron"]
    assert enron.triangles == 727_044
    assert len(peers.simple_pairs(enron.make_pairs()).first) == enron.edges == 183_831


def test_fingerprint_follows_the_content() -> None:
    marks = {graphs.from_stream(generate.kronecker(6, seed=seed)).fingerprint() for seed in (1, 2, 1)}
    assert len(marks) == 2


def test_real_graphs_are_those_with_enough_edges_and_known_counts(tmp_path: Path) -> None:
    found = graphs.real_graphs(data_folder(tmp_path), least_edges=6)
    assert [(graph.name, graph.triangles) for graph in found] == [("small", 4), ("large", 84)]
    assert brute_force(found[1].make_pairs()) == 84
    assert len(peers.simple_pairs(found[1].make_pairs()).first) == found[1].edges


def test_a_folder_without_truths_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"no truths\.json"):
        graphs.real_graphs(tmp_path / "nothing" / "here")


@pytest.mark.parametrize(
    ("truths", "message"),
    [
        ("{", r"truths\.json: says nothing of graphs \(.*\); mend that place"),
        ("[" * 100_000, r"truths\.json: says nothing of graphs \(.*\); mend that place"),
        ('{"tiny": {"m": "3", "triangles": 1}}', r"truths\.json: says nothing of graphs \(.*m.*\); mend that place"),
        ('{"tiny": {"m": 3}}', r"truths\.json: does not know m and triangles of tiny; add them"),
    ],
    ids=["no json", "too deep", "text for a number", "no triangles"],
)
def test_truths_that_cannot_be_used_are_refused(tmp_path: Path, truths: str, message: str) -> None:
    folder = data_folder(tmp_path)
    (tmp_path / "truths.json").write_text(truths)
    with pytest.raises(FormatError, match=message):
        graphs.real_graphs(folder, least_edges=0)


def test_truths_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "truths.json").mkdir()
    with pytest.raises(MissingFileError, match=r"truths\.json: cannot be read \(Is a directory\); check its perm"):
        graphs.real_graphs(tmp_path, least_edges=0)


def test_what_is_known_of_trusses(tmp_path: Path) -> None:
    small, large = graphs.real_graphs(data_folder(tmp_path), least_edges=6)
    known = graphs.prepare(small, tmp_path / "work")
    texts = ["trussness", "max_truss", "k_truss[k=2]", "k_truss[k=3]", "k_truss[k=kmax]", "k_truss[k=5]", "count"]
    assert [known.expected(Spec.parse(text)) for text in texts] == [4, 4, 6, None, 6, 0, 4]
    assert known.details(Spec.parse("k_truss[k=kmax]")) == {"k": 4}
    assert known.with_kmax(1) is known
    unknown = graphs.prepare(large, tmp_path / "work")
    assert unknown.expected(Spec("trussness")) is unknown.expected(Spec("k_truss", {"k": 3})) is None
    searched = unknown.with_kmax(1)
    assert searched.details(Spec.parse("k_truss[k=kmax]")) == {"k": 9}
    assert searched.expected(Spec.parse("k_truss[k=kmax]")) is None  # our own search proves nobody wrong


def test_graphs_of_the_catalogue_take_part_where_they_are_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEDGEWISE_CACHE", str(tmp_path))
    here = {graph.name for graph in graphs.published_graphs()}
    assert "Theory-3-4-5-B1k" in here  # is generated
    assert "ca-GrQc" not in here
    graph_folder = folder_of("ca-GrQc")
    graph_folder.make()
    (graph_folder.path / "ca-GrQc.txt").write_text("5 7\n7 9\n9 5\n5 5\n")
    mark = checksum(graph_folder.path / "ca-GrQc.txt")
    size = (graph_folder.path / "ca-GrQc.txt").stat().st_size
    graph_folder.remember(CachedFile("ca-GrQc.txt", size, mark, "here", counted={"triangles": 1}, verified=(mark,)))
    found = graphs.known_graphs(None)["ca-GrQc"]
    assert (found.triangles, found.fingerprint()) == (1, mark[:12])
    prepared = graphs.prepare(found, tmp_path / "work", as_text=False)
    assert np.load(prepared.pairs_path).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert not prepared.text_path.exists()


def test_graphs_of_any_size_can_be_named() -> None:
    known = graphs.named_graphs(None, ["kronecker-5-seed7", "kronecker-8-seed1", "torus3d-3", "torus3d", "nix"])
    assert np.array_equal(known["kronecker-5-seed7"].make_pairs(), generate.kronecker(5, seed=7).pairs())
    assert brute_force(known["torus3d-3"].make_pairs()) == known["torus3d-3"].triangles == 27
    assert not {"nix", "torus3d"} & set(known)


def test_a_graph_of_a_data_folder_has_the_name_of_the_catalogue_too(tmp_path: Path) -> None:
    folder = data_folder(tmp_path)
    (folder / "large.el.xz").rename(folder / "loc-brightkite.el.xz")
    truths = json.loads((tmp_path / "truths.json").read_text())
    (tmp_path / "truths.json").write_text(json.dumps({"loc-brightkite": truths["large"]}))
    known = graphs.known_graphs(folder)
    assert known["loc-brightkite_edges"].fingerprint() == known["loc-brightkite"].fingerprint()
    assert known["loc-brightkite_edges"].triangles == 84
    assert set(graphs.ALIASES.values()) <= set(catalogue())


def test_graphs_are_chosen_by_name() -> None:
    known = graphs.generated_graphs()
    assert [graph.name for graph in graphs.choose_graphs(known, None)] == [graph.name for graph in known]
    chosen = graphs.choose_graphs(known, [known[2].name])
    assert [graph.name for graph in chosen] == [known[2].name]
    with pytest.raises(UnknownNameError, match="no graph named 'twitter'; there are: kronecker-16"):
        graphs.choose_graphs(known, ["twitter"])


@pytest.mark.parametrize("descending", [False, True])
def test_peers_get_the_same_graph(descending: bool) -> None:
    pairs = messy_pairs()
    simple = peers.simple_pairs(pairs)
    renamed = peers.renamed_by_degree(simple, descending)
    for edges in (simple, renamed):
        columns = np.stack([edges.first, edges.second], axis=1)
        assert (columns[:, 0] < columns[:, 1]).all()
        assert len(np.unique(columns, axis=0)) == len(columns)
        assert brute_force(columns) == brute_force(pairs)
        assert np.array_equal(np.bincount(columns.reshape(-1), minlength=edges.n), edges.degrees)
    steps = np.diff(renamed.degrees)
    assert (steps <= 0).all() if descending else (steps >= 0).all()
    assert renamed.wedges == simple.wedges == sum(d * (d - 1) // 2 for d in simple.degrees.tolist())


def test_peers_read_text_as_it_was_written(tmp_path: Path) -> None:
    pairs = messy_pairs()
    prepared = graphs.prepare(graphs.BenchGraph("g", lambda: "x", lambda: pairs, None), tmp_path)
    assert np.array_equal(peers.read_text_pairs(str(prepared.text_path), 1), pairs)


@pytest.mark.parametrize("count", [0.5, 1.01, float(2**50), float("inf")])
def test_a_quotient_that_is_no_integer_is_refused(count: float) -> None:
    with pytest.raises((ArithmeticError, OverflowError)):
        peers._nearest(count)


@pytest.mark.deep
@pytest.mark.parametrize(("source", "question"), ASKED, ids=[f"{source.name}-{name}" for source, name in ASKED])
def test_installed_peers_answer_exactly(source: SystemSource, question: str, tmp_path: Path) -> None:
    pairs = messy_pairs()
    graph = graphs.prepare(graphs.BenchGraph("g", lambda: "x", lambda: pairs, brute_force(pairs)), tmp_path / "work")
    graph = graph.with_kmax(1)
    limits = CellLimits(30.0, 2**31, repeats=1)
    bench = Bench({source.name: source}, {"g": graph}, limits, SETTING, tmp_path / "results.jsonl")
    rows = ["count", "file"] if question == "count" else ["count"]
    outcomes = [bench.run_cell(cell) for cell in matrix([source], ["g"], rows, [2], [question])]
    if outcomes[0].status == "unavailable":
        pytest.skip(f"{source.package} is not installed")
    digest = "" if question == "count" else our_digest(question, pairs, graph)
    found = [(outcome.status, outcome.message, outcome.digest) for outcome in outcomes]
    assert found == [("ok", "", digest)] * len(outcomes)


class PyGraph:
    """As much of a graph of rustworkx as is asked for, which is not among the packages of the tests."""

    def __init__(self, *, multigraph: bool) -> None:
        assert multigraph
        self.nodes: list[int] = []

    def add_nodes_from(self, nodes: range) -> None:
        self.nodes.extend(nodes)

    def add_edges_from_no_data(self, edges: list[tuple[int, int]]) -> None:
        self.edges = edges

    def transitivity(self) -> float:
        degrees = np.bincount(np.array(self.edges).reshape(-1), minlength=len(self.nodes))
        return 3 * brute_force(np.array(self.edges)) / int((degrees * (degrees - 1) // 2).sum())


@pytest.fixture
def peers_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let peers be loaded into this process, and be for other tests what they were."""
    rustworkx = ModuleType("rustworkx")
    rustworkx.PyGraph, rustworkx.transitivity = PyGraph, PyGraph.transitivity  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rustworkx", rustworkx)
    monkeypatch.setattr(peers, "_hide", lambda _package: None)
    monkeypatch.setattr(graphblas, "init", lambda *_, **__: None)  # which can be done once
    networkit_threads, arrow_threads, nthreads = (
        networkit.getMaxNumberOfThreads(), pyarrow.cpu_count(), graphblas.ss.config["nthreads"]
    )  # fmt: skip
    preferred = networkx.config.backend_priority
    yield
    networkx.config.backend_priority = preferred
    networkit.setNumberOfThreads(networkit_threads)
    pyarrow.set_cpu_count(arrow_threads)
    graphblas.ss.config["nthreads"] = nthreads


@pytest.mark.usefixtures("peers_here")
@pytest.mark.parametrize("source", systems_in(peers), ids=lambda source: source.name)
def test_peers_answer_as_we_do(source: SystemSource, tmp_path: Path) -> None:
    pairs = messy_pairs()
    graph = graphs.prepare(graphs.BenchGraph("g", lambda: "x", lambda: pairs, brute_force(pairs)), tmp_path)
    graph = graph.with_kmax(1)
    kind: Any = next(item for item in vars(peers).values() if getattr(item, "name", None) == source.name)
    for text, algorithm in product([text for asked, text in ASKED if asked == source], kind.algorithms):
        question, system = Spec.parse(text), kind(algorithm, 1, {})
        system.load()
        prepared = system.prepare_file(str(graph.text_path))
        answer = getattr(system, question.name)(prepared, **graph.details(question))
        if question.name == "count":
            assert answer == brute_force(pairs)
            continue
        found = summarise(question.name, system.frame(prepared), system.values(question.name, prepared, answer))
        assert found[1] == our_digest(text, pairs, graph), (text, algorithm)


def test_a_package_that_is_hidden_is_as_if_it_were_not_there() -> None:
    peers._hide("package_that_nobody_has")
    peers._hide("json")  # it is there already, and stays
    try:
        with pytest.raises(ModuleNotFoundError):
            import_module("package_that_nobody_has")
        assert import_module("json") is json
    finally:
        del sys.modules["package_that_nobody_has"]


def our_digest(text: str, pairs: NDArray[Any], graph: graphs.PreparedGraph) -> str:
    """The digest of our own answer by the reference."""
    question, details = Spec.parse(text).name, graph.details(Spec.parse(text))
    system = Wedgewise("reference", 1, {})
    system.load()
    prepared = system.prepare(pairs)
    answer = getattr(system, question)(prepared, **details)
    number, digest = summarise(question, system.frame(prepared), system.values(question, prepared, answer))
    assert number == graph.expected(Spec.parse(text)) or (question in ("trussness", "max_truss", "k_truss") and number)
    return digest


def test_our_own_system_counts_exactly(tmp_path: Path) -> None:
    pairs = messy_pairs()
    prepared = graphs.prepare(graphs.BenchGraph("g", lambda: "x", lambda: pairs, None), tmp_path)
    system = Wedgewise("auto", 2, {})
    system.load()
    assert system.count(system.prepare(pairs)) == brute_force(pairs)
    assert system.count(system.prepare_file(str(prepared.text_path))) == brute_force(pairs)

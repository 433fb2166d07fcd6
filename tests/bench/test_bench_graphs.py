"""Prepared graphs, the helpers that the peers share, and the script on a tiny matrix."""

from __future__ import annotations

import json
import lzma
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_helpers import SETTING
from numpy.typing import NDArray

from wedgewise import generate
from wedgewise.bench import graphs, peers
from wedgewise.bench.digest import summarise
from wedgewise.bench.ours import Wedgewise
from wedgewise.bench.record import QUESTIONS
from wedgewise.bench.runner import Bench, matrix
from wedgewise.bench.systems import SystemSource, systems_in
from wedgewise.bench.watch import CellLimits
from wedgewise.errors import MissingFileError, UnknownNameError

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"


ASKED = [(source, question) for source in systems_in(peers) for question in source.questions]


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
    truths = {}
    for name, n in (("large", 9), ("small", 4), ("tiny", 3)):
        stream = generate.complete(n)
        text = "".join(f"{u} {v}\n" for u, v in stream.pairs().tolist())
        (folder / "graphs" / f"{name}.el.xz").write_bytes(lzma.compress(text.encode()))
        truths[name] = {"m": stream.pairs_count, "triangles": stream.expected_triangles}
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


def test_the_count_of_every_generated_graph_is_known() -> None:
    found = {graph.name: graph.triangles for graph in graphs.generated_graphs()}
    found |= {graph.name: graph.triangles for graph in graphs.answer_graphs() if graph.name.startswith("kronecker")}
    assert found == graphs.KNOWN_TRIANGLES


def test_bundled_graphs_take_part() -> None:
    (enron,) = [graph for graph in graphs.answer_graphs() if graph.name == "email-Enron"]
    assert enron.triangles == 727_044
    assert len(peers.simple_pairs(enron.make_pairs()).first) == 183_831


def test_fingerprint_follows_the_content() -> None:
    marks = {graphs.from_stream(generate.kronecker(6, seed=seed)).fingerprint() for seed in (1, 2, 1)}
    assert len(marks) == 2


def test_real_graphs_are_those_with_enough_edges_and_known_counts(tmp_path: Path) -> None:
    found = graphs.real_graphs(data_folder(tmp_path), least_edges=6)
    assert [(graph.name, graph.triangles) for graph in found] == [("small", 4), ("large", 84)]
    assert brute_force(found[1].make_pairs()) == 84


def test_a_folder_without_truths_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"no truths\.json"):
        graphs.real_graphs(tmp_path / "nothing" / "here")


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


@pytest.mark.parametrize(("source", "question"), ASKED, ids=[f"{source.name}-{name}" for source, name in ASKED])
def test_installed_peers_answer_exactly(source: SystemSource, question: str, tmp_path: Path) -> None:
    pairs = messy_pairs()
    graph = graphs.prepare(graphs.BenchGraph("g", lambda: "x", lambda: pairs, brute_force(pairs)), tmp_path / "work")
    limits = CellLimits(30.0, 2**31, repeats=1)
    bench = Bench({source.name: source}, {"g": graph}, limits, SETTING, tmp_path / "results.jsonl")
    rows = ["count", "file"] if question == "count" else ["count"]
    outcomes = [bench.run_cell(cell) for cell in matrix([source], ["g"], rows, 2, [question])]
    if outcomes[0].status == "unavailable":
        pytest.skip(f"{source.package} is not installed")
    digest = "" if question == "count" else our_digest(question, pairs)
    found = [(outcome.status, outcome.message, outcome.digest) for outcome in outcomes]
    assert found == [("ok", "", digest)] * len(outcomes)


def our_digest(question: str, pairs: NDArray[Any]) -> str:
    """The digest of our own answer by the reference."""
    system = Wedgewise("reference", 1, {})
    system.load()
    prepared = system.prepare(pairs)
    answer = getattr(system, question)(prepared)
    triangles, digest = summarise(question, system.frame(prepared), system.values(question, prepared, answer))
    assert triangles == brute_force(pairs)
    return digest


def test_our_own_system_counts_exactly(tmp_path: Path) -> None:
    pairs = messy_pairs()
    prepared = graphs.prepare(graphs.BenchGraph("g", lambda: "x", lambda: pairs, None), tmp_path)
    system = Wedgewise("auto", 2, {})
    system.load()
    assert system.count(system.prepare(pairs)) == brute_force(pairs)
    assert system.count(system.prepare_file(str(prepared.text_path))) == brute_force(pairs)


def run_script(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> int:
    path = str(SCRIPTS / name)
    monkeypatch.setattr(sys, "argv", [path, *arguments])
    script = runpy.run_path(path)
    status: int = script["main"]()
    return status


def test_script_writes_records_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_folder(tmp_path)
    monkeypatch.setattr(graphs.real_graphs, "__defaults__", (6,))
    options = ["--data", str(data), "--graphs", "small", "--systems", "wedgewise", "--rows", "count", "edges"]
    folders = ["--work", str(tmp_path / "work"), "--output", str(tmp_path / "out")]
    assert run_script(monkeypatch, "cpu.py", *options, *folders) == 0
    printed = capsys.readouterr()
    assert printed.err.count("small") == 2
    assert (tmp_path / "out" / "cpu.md").read_text() == printed.out.removesuffix("\n")
    (results,) = (tmp_path / "out").glob("cpu-*.jsonl")
    assert [json.loads(line)["status"] for line in results.read_text().splitlines()] == ["ok", "ok"]
    assert str(tmp_path) not in results.read_text()


def test_script_names_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_script(monkeypatch, "cpu.py", "--systems", "gephi") == 2
    assert "no system named 'gephi'" in capsys.readouterr().err


def answers_options(folder: Path) -> list[str]:
    data = data_folder(folder)
    return ["--data", str(data), "--graphs", "small", "--work", str(folder / "work"), "--repeats", "1"]


def test_answers_script_asks_every_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = answers_options(tmp_path)
    monkeypatch.setattr(graphs.real_graphs, "__defaults__", (6,))
    output = tmp_path / "out"
    assert run_script(monkeypatch, "answers.py", *options, "--systems", "wedgewise", "--output", str(output)) == 0
    printed = capsys.readouterr()
    assert (output / "answers.md").read_text() == printed.out.removesuffix("\n")
    (results,) = output.glob("answers-*.jsonl")
    found = [json.loads(line) for line in results.read_text().splitlines()]
    assert [line["cell"]["question"] for line in found] == list(QUESTIONS)
    assert {(line["status"], line["answer"]) for line in found} == {("ok", 4)}


def test_answers_script_fails_when_we_do_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = answers_options(tmp_path)
    monkeypatch.setattr(graphs.real_graphs, "__defaults__", (6,))
    limits = ["--limit-gigabytes", "0.001", "--questions", "triangles", "--systems", "wedgewise"]
    assert run_script(monkeypatch, "answers.py", *options, *limits) == 1
    assert "out of memory" in capsys.readouterr().out
    assert not (tmp_path / "answers.md").exists()

"""Triangles and supports of stores: those of the same graph in memory, in its order, in every format, within limits."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import answer_of, invoke
from helpers.graphs import DENSE, TRUTHS, fixture_pairs, of_fit_size
from helpers.stores import (
    WITHOUT_TRIANGLES,
    at_most,
    computed_slices,
    kill_at_slice,
    limit_leaving,
    names_in,
    peak_of,
    run_measured,
)

import wedgewise as ww
from wedgewise import generate
from wedgewise.answer import store_results as store_answers
from wedgewise.answer.disk import find_arrays
from wedgewise.cli.console import Console
from wedgewise.errors import (
    FormatError,
    InputError,
    MemoryLimitError,
    PreconditionError,
    StorageError,
    VerificationError,
)
from wedgewise.run import row_order, sliced_answer
from wedgewise.run.checkpoint import FinishedSlices
from wedgewise.run.request import Request
from wedgewise.store.build import write_store
from wedgewise.store.open import Store
from wedgewise.write.edges import write_edges

SCHEMES = ("rectilinear", "hashed")
TRIANGLES, EDGES = TRUTHS[DENSE]["triangles"], TRUTHS[DENSE]["m"]
QUESTIONS = {"triangles": ("vertex", "triangles"), "support": ("u", "v", "support"), "truss": ("u", "v")}
LABELS: dict[str, dict[str, Any]] = {
    "text": {"a": "ada", "b": "bob", "c": 'cy "c"', "d": "d,e", "e": "é", "x": "x"},
    "sparse": {"a": 7, "b": 10**12, "c": 3, "d": 2**40, "e": 0, "x": 99},
    "numbers": {name: number for number, name in enumerate("abcdex")},
}
PAIRS = ["ab", "bc", "ca", "cd", "de", "ec", "ba", "aa", "xx", "bd"]


def labelled_file(folder: Path, kind: str) -> Path:
    """Two triangles that share a vertex, one more edge, a copy, loops, and a vertex without edges."""
    path = folder / f"{kind}.tsv"
    names = LABELS[kind]
    path.write_text("".join(f"{names[pair[0]]}\t{names[pair[1]]}\n" for pair in PAIRS), encoding="utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(fixture_pairs(DENSE), tmp_path / "store", parts=4)


@pytest.fixture
def karate(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("karate"), tmp_path / "karate", parts=3)


def rows_of(text: str, separator: str) -> list[tuple[str, ...]]:
    return sorted(tuple(line.split(separator)) for line in text.splitlines())


@pytest.mark.compiled  # minutes without
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("name", ["karate", "lesmis", "jazz", "atlas_union"])
def test_answers_are_those_in_memory(tmp_path: Path, name: str, parts: int, scheme: str) -> None:
    graph, folder = ww.Graph(fixture_pairs(name)), tmp_path / "store"
    before = names_in(write_store(fixture_pairs(name), folder, parts=parts, scheme=scheme).folder)
    for threads, limit in ((1, None), (2, 2**34)):
        for ask in (ww.triangles, ww.edge_support):
            found, expected = ask(folder, threads=threads, memory_limit=limit), ask(graph)
            assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
    assert names_in(folder) == before


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", of_fit_size("karate", "lesmis", "atlas_union"))
def test_coefficients_are_those_in_memory(tmp_path: Path, name: str, parts: int, scheme: str) -> None:
    """The same floats."""
    graph, folder = ww.Graph(fixture_pairs(name)), tmp_path / "store"
    before = names_in(write_store(fixture_pairs(name), folder, parts=parts, scheme=scheme).folder)
    for undefined in ("zero", "nan"):
        found, expected = (ww.clustering(source, undefined=undefined) for source in (folder, graph))
        np.testing.assert_array_equal(found, expected)
        for count_zeros in (True, False):
            mean, due = (
                ww.average_clustering(source, undefined=undefined, count_zeros=count_zeros)
                for source in (folder, graph)
            )
            assert mean == due
    assert ww.transitivity(folder) == ww.transitivity(graph)
    assert names_in(folder) == before


def test_coefficients_of_stores_are_written_resumed_and_explained(store: Store, tmp_path: Path) -> None:
    graph = ww.Graph(fixture_pairs(DENSE))
    ended_after(store, "clustering", 2)
    assert "clustering-slices" in names_in(store.folder)
    target = tmp_path / "c.npy"
    record = answer_of("clustering", str(store.folder), "--output", str(target))
    assert (record["question"], record["rows"]) == ("clustering", graph.n)
    np.testing.assert_array_equal(np.load(target), ww.clustering(graph))
    assert "clustering-slices" not in names_in(store.folder)
    result = ww.run("clustering", store.folder, verify=True)
    assert result.verified == "the sum is three times the triangles that bbtc counts"
    for question in ("clustering", "average_clustering", "transitivity"):
        assert ww.explain(question, store.folder).question == question
    with pytest.raises(PreconditionError, match="a store has no weights; ask the graph's file"):
        ww.clustering(store.folder, weighted=True)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_labels_and_order_are_those_of_the_file(tmp_path: Path, kind: str, scheme: str) -> None:
    path = labelled_file(tmp_path, kind)
    graph, store = ww.read(path), write_store(path, tmp_path / "store", parts=3, scheme=scheme)
    assert list(store.labels()) == list(graph.labels)
    assert ww.triangles(store.folder).tolist() == ww.triangles(graph).tolist()
    assert ww.edge_support(store.folder).tolist() == ww.edge_support(graph).tolist()
    for question in QUESTIONS:
        ask = [question, *(["--k", "3"] if question == "truss" else [])]
        found, expected = (invoke(*ask, str(source)) for source in (store.folder, path))
        assert (found.exit_code, found.stderr) == (0, "")
        assert rows_of(found.stdout, "\t") == rows_of(expected.stdout, "\t")
    assert invoke("triangles", str(store.folder)).stdout == invoke("triangles", str(path)).stdout


@pytest.mark.parametrize("pairs", WITHOUT_TRIANGLES)
def test_stores_without_triangles(tmp_path: Path, pairs: Any) -> None:
    graph = ww.Graph(pairs)
    for parts in {1, at_most(3, graph)}:
        folder = write_store(pairs, tmp_path / str(parts), parts=parts).folder
        assert ww.triangles(folder).tolist() == ww.triangles(graph).tolist()
        assert ww.edge_support(folder).tolist() == ww.edge_support(graph).tolist()
        assert len(ww.k_truss(folder, 3)) == 0
        assert ww.k_truss(folder, 2).edges.tolist() == list(range(graph.m))


def columns_in(path: Path, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The rows of an answer file, however it is written; those of text are text."""
    if path.suffix == ".npy":
        found = np.load(path)
        return sorted(map(tuple, found.tolist())) if found.ndim == 2 else list(enumerate(found.tolist()))
    if path.suffix == ".npz":
        with np.load(path) as held:
            assert set(held) == set(columns)
            return sorted(zip(*(held[name].tolist() for name in columns), strict=True))
    if path.suffix in (".parquet", ".arrow", ".feather"):
        return sorted(zip(*arrow_columns(path, columns), strict=True))
    import gzip

    whole = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    separator = "," if ".csv" in path.name else "\t"
    header, *lines = whole.decode().splitlines()
    assert tuple(header.split(separator)) == columns
    return sorted(tuple(map(int, line.split(separator))) for line in lines)


def arrow_columns(path: Path, columns: tuple[str, ...]) -> list[list[Any]]:
    pytest.importorskip("pyarrow")
    from pyarrow import ipc, parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else ipc.open_file(path).read_all()
    assert tuple(table.column_names) == columns
    return [table.column(name).to_pylist() for name in columns]


@pytest.mark.compiled  # minutes without
@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "npy", "npz", "parquet", "arrow", "feather"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_format_holds_the_rows(
    tmp_path: Path, question: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_order, "PIECE_ROWS", 37)
    path = tmp_path / "graph.txt"
    write_edges(fixture_pairs(DENSE), path)
    folder = str(write_store(path, tmp_path / "store", parts=3).folder)
    more = ["--k", "12"] if question == "truss" else []
    files = []
    for source, name in ((folder, "stored"), (str(path), "graph")):
        files.append(tmp_path / f"{name}.{suffix}")
        record = answer_of(question, source, *more, "--output", str(files[-1]))
        assert record["output"] == str(files[-1])
    found, expected = (columns_in(file, QUESTIONS[question]) for file in files)
    assert found == expected
    assert record["rows"] == len(found) > 0


def test_text_labels_do_not_go_into_numbers(tmp_path: Path) -> None:
    folder = str(write_store(labelled_file(tmp_path, "text"), tmp_path / "store", parts=2).folder)
    for question, suffix in (("support", "npy"), ("support", "npz"), ("triangles", "npz")):
        refused = invoke(question, folder, "--output", str(tmp_path / f"x.{suffix}"))
        assert (refused.exit_code, "the labels are text" in refused.stderr) == (1, True)
    assert invoke("triangles", folder, "--output", str(tmp_path / "x.npy")).exit_code == 0
    assert invoke("support", folder, "--output", str(tmp_path / "x.doc")).exit_code == 1


def test_what_a_store_does_not_answer_is_refused(store: Store) -> None:
    folder = str(store.folder)
    with pytest.raises(PreconditionError, match=r"a store answers count, .*, not max_truss"):
        ww.max_truss(folder)
    for device in ("cuda", "hybrid"):
        with pytest.raises(PreconditionError, match="leave the device out"):
            ww.triangles(folder, device=device)
    with pytest.raises(PreconditionError, match="bbtc on cpu does not compute triangles"):
        ww.triangles(folder, algorithm="bbtc")
    for command in ("list", "info"):
        refused = invoke(command, folder)
        assert (refused.exit_code, "a store" in refused.stderr, "file" in refused.stderr) == (1, True, True), command
    for arguments, why in (
        (["truss", "--max"], "a store answers"),
        (["support", "--json"], "too many rows for one JSON object"),
        (["support", "--labels", "int"], "not a file; leave out: --labels"),
        (["explain", "--drop-leaves"], "not a file; leave out: --drop-leaves"),
    ):
        refused = invoke(arguments[0], folder, *arguments[1:])
        assert (refused.exit_code, why in refused.stderr) == (1, True), arguments


def test_sums_are_verified(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, dict[str, Any]] = {"triangles": {}, "edge_support": {}, "k_truss": {"k": 5}}
    for question, details in asked.items():
        result = ww.run(question, store.folder, verify=True, **details)
        assert result.verified == "the sum is three times the triangles that bbtc counts"
        assert (result.plan.question, result.plan.algorithm, result.m) == (question, "keystone", store.manifest.m)
    assert answer_of("support", str(store.folder), "--verify", "--output", str(store.folder / "x.csv"))["verified"]
    monkeypatch.setattr(store_answers.Supports, "support", 3 * TRIANGLES - 1)
    with pytest.raises(VerificationError, match="please report this"):
        ww.edge_support(store.folder, verify=True)


def test_a_truss_that_is_known_at_once_needs_no_sum(store: Store) -> None:
    result = ww.run("k_truss", store.folder, k=2, verify=True)
    assert (len(result.answer), result.verified) == (store.manifest.m, "known without counting")


def test_what_does_not_fit_is_refused_before_the_work(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sliced_answer, "bytes_for_slices", lambda *_limit: 60_000)
    with pytest.raises(MemoryLimitError, match=r"edge_support takes .* are left; raise the limit, or let the command"):
        ww.edge_support(store.folder)
    with pytest.raises(MemoryLimitError, match="or let the command write it: --output streams"):
        ww.k_truss(store.folder, 5)
    refused = invoke("triangles", str(store.folder), "--output", "x.csv")
    assert (refused.exit_code, "the answer to triangles takes" in refused.stderr) == (1, True)
    monkeypatch.setattr("wedgewise.answer.disk.array_bytes", lambda *_: 0)
    with pytest.raises(MemoryLimitError, match="partition the graph into more parts"):
        ww.edge_support(store.folder)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: type("Usage", (), {"free": 5}))
    with pytest.raises(StorageError, match=r"keeps .* bytes on disk while it works, and 5 are free"):
        ww.edge_support(store.folder)


class Ended(Exception):
    """Ends work from within."""


def ended_after(store: Store, question: str, slices: int) -> None:
    """Begin a question, and end it when it has put so many slices on the disk."""
    left = slices
    really = FinishedSlices.put

    def put(self: Any, number: Any, array: Any) -> None:
        nonlocal left
        if left == 0:
            raise Ended
        left -= 1
        really(self, number, array)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FinishedSlices, "put", put)
        with pytest.raises(Ended):
            ww.run(question, store.folder)


@pytest.mark.parametrize("question", ["triangles", "edge_support"])
def test_ended_work_goes_on(store: Store, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ww.run(question, fixture_pairs(DENSE)).answer.tolist()
    ended_after(store, question, 2)
    slices = computed_slices(monkeypatch)
    assert ww.run(question, store.folder).answer.tolist() == expected
    assert 0 not in slices
    assert len(slices) == (4 if question == "triangles" else 10) - 2
    assert not [name for name in names_in(store.folder) if "slices" in name]


def test_damaged_slices_are_found_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ww.edge_support(fixture_pairs(DENSE)).tolist()
    ended_after(store, "edge_support", 4)
    path = store.folder / "edge_support-slices" / "slice-1.npy"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    slices = computed_slices(monkeypatch)
    assert ww.edge_support(store.folder).tolist() == expected
    assert slices == [1, 4, 5, 6, 7, 8, 9]


def test_a_slice_that_changes_while_it_is_used_is_an_error(store: Store) -> None:
    path = store.folder / "edge_support-slices" / "slice-3.npy"

    def change_and_use() -> None:
        with find_arrays(Request("edge_support"), store, None) as (found, _):
            path.write_bytes(path.read_bytes()[:-1] + b"\x07")
            found.array()

    with pytest.raises(FormatError, match="has other bytes than were written"):
        change_and_use()
    assert ww.edge_support(store.folder).tolist() == ww.edge_support(fixture_pairs(DENSE)).tolist()


def test_other_options_are_refused_until_restart(store: Store, tmp_path: Path) -> None:
    ended_after(store, "edge_support", 4)
    with pytest.raises(InputError, match="other options"):
        ww.edge_support(store.folder, knobs={"hubs": 0})
    target = str(tmp_path / "x.csv")
    arguments = ("support", str(store.folder), "--knob", "hubs=0", "--output", target)
    assert invoke(*arguments).exit_code == 1
    assert invoke(*arguments, "--restart").exit_code == 0
    assert ww.triangles(store.folder).sum() == 3 * TRIANGLES  # another question has slices of its own


def test_what_was_found_stays_until_it_is_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = invoke("support", str(store.folder), "--output", str(tmp_path / "nowhere" / "x.csv"))
    assert refused.exit_code == 1
    slices = computed_slices(monkeypatch)
    assert invoke("support", str(store.folder), "--output", str(tmp_path / "x.csv")).exit_code == 0
    assert slices == []
    assert "edge_support-slices" not in names_in(store.folder)


def test_what_a_reader_has_had_enough_of_is_given_up(karate: Store) -> None:
    def end_within(error: Exception) -> None:
        with find_arrays(Request("edge_support"), karate, None):
            raise error

    for error, is_left in ((BrokenPipeError(), False), (OSError(28, "No space left on device"), True)):
        with pytest.raises(type(error)):
            end_within(error)
        assert ("edge_support-slices" in names_in(karate.folder)) == is_left


def test_progress_is_told(store: Store, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    ww.edge_support(store.folder, progress=lambda *news: told.append(news))
    assert told[-1][0] == "edge_support"
    assert told[-1][1] == told[-1][2] >= len(told) > 1
    lines = invoke("support", str(store.folder), "--verbose", "--output", str(tmp_path / "x.csv")).stderr
    assert "edge_support …\nwrite …\n" in lines


@pytest.mark.parametrize("arguments", [["triangles"], ["support"], ["truss", "--k", "4"]], ids=lambda given: given[0])
def test_a_person_gets_summaries(karate: Store, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(Console, "is_read_by_a_person", True)
    shown = invoke(arguments[0], str(karate.folder), *arguments[1:]).stdout
    headline = {
        "triangles": "45 triangles through ",
        "support": "45 triangles on 78 edges\n",
        "truss": f"{len(ww.k_truss(fixture_pairs('karate'), 4))} edges and ",
    }[arguments[0]]
    assert shown.startswith(headline)
    assert 3 < len(shown.splitlines()) < 60


@pytest.mark.parametrize("moment", ["before", "between", "after"])
def test_a_killed_question_repeats_at_most_one_owner(
    store: Store, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at_slice(store, "edge_support", 3, moment)
    slices = computed_slices(monkeypatch)
    assert ww.edge_support(store.folder).tolist() == ww.edge_support(fixture_pairs(DENSE)).tolist()
    assert len(slices) == 10 - 3 - (moment == "after")


@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its own size from /proc")
def test_a_process_that_begins_larger_keeps_to_its_limit(tmp_path: Path) -> None:
    """Of a million pairs."""
    write_edges(generate.kronecker(16, seed=4).pairs(threads=2), tmp_path / "graph.bel32")
    graph = ww.read(tmp_path / "graph.bel32")
    env, limit = limit_leaving(60_000_000)
    within = ("--memory", str(limit))
    peak_of("partition", "graph.bel32", "store", "--memory", "256MB", "--parts", "3", cwd=tmp_path)
    supports = ww.edge_support(graph)
    for suffix in ("csv", "npy"):
        peak, _ = peak_of("support", "store", *within, "--output", f"s.{suffix}", cwd=tmp_path, env=env)
        assert peak <= limit
    rows = np.load(tmp_path / "s.npy")
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    assert np.array_equal(rows[order, 2], supports)
    peak, shown = peak_of("triangles", "store", *within, "--quiet", cwd=tmp_path, env=env)
    assert peak <= limit
    assert sum(int(line.split("\t")[1]) for line in shown.splitlines()) == int(supports.sum())


@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its own size from /proc")
@pytest.mark.parametrize("scheme", ["rectilinear", pytest.param("hashed", marks=pytest.mark.deep)])
def test_a_store_answers_every_question_within_the_limit_that_it_was_cut_for(tmp_path: Path, scheme: str) -> None:
    write_edges(generate.kronecker(17, seed=4).pairs(threads=2), tmp_path / "graph.bel32")
    (env, _), limit = limit_leaving(60_000_000), 320_000_000
    within = ("--memory", str(limit))
    peak_of("partition", "graph.bel32", "store", "--scheme", scheme, *within, cwd=tmp_path, env=env)
    for question in (("support",), ("truss", "--k", "40")):
        name, *more = question
        peak, _ = peak_of(name, "store", *more, *within, "--output", "a.npy", cwd=tmp_path, env=env)
        assert peak <= limit


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its own size from /proc")
@pytest.mark.parametrize(
    ("scale", "suffixes"), [(17, ("parquet", "arrow", "csv.gz", "csv.zst", "csv.bz2")), (14, ("csv.xz",))]
)  # the last one takes most of a minute for as many rows
def test_formats_keep_to_the_limit_or_are_refused(tmp_path: Path, scale: int, suffixes: tuple[str, ...]) -> None:
    write_edges(generate.kronecker(scale, seed=4).pairs(threads=2), tmp_path / "graph.bel32")
    peak_of("partition", "graph.bel32", "store", "--memory", "256MB", cwd=tmp_path)
    for suffix, limit in product(suffixes, (256, 320)):
        peak, ran = run_measured("support", "store", "--memory", f"{limit}MB", "--output", f"s.{suffix}", cwd=tmp_path)
        if ran.returncode == 0:
            assert peak <= limit * 10**6, suffix
        else:
            assert "raise the limit" in ran.stderr, suffix


def test_what_is_on_disk_is_summed_up_for_a_reader(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.cli.answers._is_summarised", lambda *_: True)
    graph = ww.Graph(fixture_pairs(DENSE))
    average = invoke("clustering", str(store.folder)).stdout
    assert f"{ww.average_clustering(graph):.3f}"[:4] in average
    largest = int(ww.trussness(graph).max())
    assert f"largest truss number {largest}, found in" in invoke("truss", str(store.folder)).stdout


def test_degrees_for_a_transitivity_have_to_fit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.answer.disk.bytes_for_slices", lambda *_: 0)
    with pytest.raises(MemoryLimitError, match=r"degrees take [\d,]+ bytes and 0 are left"):
        ww.transitivity(store.folder)

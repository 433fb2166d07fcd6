"""Listings: every triangle once, in one order, cut anywhere, in bounded memory."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from itertools import combinations, islice
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from conformance.engines import VARIED_GRAPHS, held, in_order, that_answer
from helpers.graphs import known_by_sets, random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.errors import InputError, MemoryLimitError, MissingDependencyError, UnknownNameError
from wedgewise.run import listing as listing_module
from wedgewise.run.listing import Listing

MIXED = ww.Graph(random_pairs(30, 200, seed=4), n=33)
WITHOUT_TRIANGLES = {
    "no vertex": ww.Graph(np.empty((0, 2), np.int64), n=0),
    "no edge": ww.Graph(np.empty((0, 2), np.int64), n=7),
    "loops": ww.Graph(np.array([(1, 1), (2, 2)])),
    "one edge": ww.Graph(np.array([(1, 2)])),
    "bipartite": ww.Graph(generate.hypercube(4).pairs()),
}
BATCHES = (1, 2, 7, 1000)

for_every_lister = pytest.mark.parametrize("algorithm", that_answer("list_triangles"))


def whole(graph: ww.Graph, algorithm: str) -> NDArray[np.uint32]:
    return ww.list_triangles(graph, algorithm=algorithm)


def joined(batches: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    return np.concatenate([np.empty((0, 3), np.uint32), *batches])


@for_every_lister
@pytest.mark.parametrize("seed", range(8))
def test_every_triangle_is_listed_once_in_ascending_rows(algorithm: str, seed: int) -> None:
    pairs = random_pairs(25, 140, seed)
    listed = ww.list_triangles(ww.Graph(pairs, n=25), algorithm=algorithm)
    assert listed.dtype == np.uint32
    assert listed.flags.c_contiguous
    assert listed.flags.writeable
    assert (np.diff(listed.astype(np.int64), axis=1) > 0).all()
    np.testing.assert_array_equal(in_order(listed), known_by_sets(pairs, 25).list_triangles)


@for_every_lister
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batches_join_to_the_whole(algorithm: str, batch: int, threads: int) -> None:
    expected = whole(MIXED, algorithm)
    batches = list(ww.iter_triangles(MIXED, batch=batch, threads=threads, algorithm=algorithm))
    np.testing.assert_array_equal(joined(batches), expected)
    full, rest = divmod(len(expected), batch)
    assert [len(rows) for rows in batches] == [batch] * full + [rest] * (rest > 0)
    assert all(rows.dtype == np.uint32 for rows in batches)


@for_every_lister
def test_the_order_does_not_depend_on_the_kernels_being_loaded(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = whole(MIXED, algorithm)
    for pays in (True, False):
        monkeypatch.setattr("wedgewise.machine.jit.pays", lambda *_, pays=pays: pays)
        np.testing.assert_array_equal(whole(MIXED, algorithm), expected)


@for_every_lister
def test_every_cut_is_a_slice_of_the_whole(algorithm: str) -> None:
    graph = ww.Graph(random_pairs(12, 60, seed=6), n=12)
    expected = whole(graph, algorithm)
    total = len(expected)
    assert total > 20
    for start in range(total + 1):
        for stop in range(start, total + 2):
            cut = ww.list_triangles(graph, start=start, stop=stop, algorithm=algorithm)
            np.testing.assert_array_equal(cut, expected[start:stop])
        np.testing.assert_array_equal(ww.list_triangles(graph, start=start, algorithm=algorithm), expected[start:])


@for_every_lister
@pytest.mark.parametrize("name", VARIED_GRAPHS)
def test_random_cuts_of_larger_graphs(algorithm: str, name: str) -> None:
    graph = held(name).graph
    expected = whole(graph, algorithm)
    random = np.random.default_rng(3)
    for start, stop in np.sort(random.integers(0, len(expected) + 1, (12, 2)), axis=1).tolist():
        cut = ww.list_triangles(graph, start=start, stop=stop, algorithm=algorithm)
        np.testing.assert_array_equal(cut, expected[start:stop])


@for_every_lister
def test_tasks_and_blocks_of_arcs_leave_the_order_alone(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tasks and blocks per stretch, so that cuts fall inside arcs and inside blocks."""
    expected = whole(MIXED, algorithm)
    for task, block in ((1, 1), (2, 3), (7, 5), (1000, 2)):
        monkeypatch.setattr(listing_module, "TASK_TRIANGLES", task)
        monkeypatch.setattr(listing_module, "BLOCK_ARCS", block)
        for threads in (1, 4):
            np.testing.assert_array_equal(ww.list_triangles(MIXED, algorithm=algorithm, threads=threads), expected)
            batches = list(ww.iter_triangles(MIXED, batch=11, algorithm=algorithm, threads=threads))
            np.testing.assert_array_equal(joined(batches), expected)


@for_every_lister
@pytest.mark.parametrize("had", [0, 1, 5, 13, 14])
def test_a_listing_resumes_after_what_was_had(algorithm: str, had: int) -> None:
    expected = whole(MIXED, algorithm)
    first = joined(list(islice(ww.iter_triangles(MIXED, batch=7, algorithm=algorithm), 2)))[:had]
    rest = joined(list(ww.iter_triangles(MIXED, batch=7, start=had, algorithm=algorithm)))
    np.testing.assert_array_equal(np.concatenate([first, rest]), expected)


@for_every_lister
def test_another_process_would_resume_at_the_same_place(algorithm: str) -> None:
    """A graph made anew, of the same edges in another order and direction, lists in the same order."""
    pairs = random_pairs(40, 300, seed=9)
    expected = whole(ww.Graph(pairs, n=40), algorithm)
    again = ww.Graph(np.random.default_rng(1).permutation(pairs)[:, ::-1], n=40)
    np.testing.assert_array_equal(ww.list_triangles(again, start=50, algorithm=algorithm), expected[50:])


@for_every_lister
def test_stop_ends_a_listing(algorithm: str) -> None:
    expected = whole(MIXED, algorithm)
    batches = list(ww.iter_triangles(MIXED, batch=4, start=3, stop=14, algorithm=algorithm))
    assert [len(rows) for rows in batches] == [4, 4, 3]
    np.testing.assert_array_equal(joined(batches), expected[3:14])
    assert list(ww.iter_triangles(MIXED, start=5, stop=5, algorithm=algorithm)) == []
    beyond = joined(list(ww.iter_triangles(MIXED, stop=10**15, algorithm=algorithm)))
    np.testing.assert_array_equal(beyond, expected)


@for_every_lister
@pytest.mark.parametrize("name", WITHOUT_TRIANGLES)
def test_graphs_without_triangles_list_nothing(algorithm: str, name: str) -> None:
    graph = WITHOUT_TRIANGLES[name]
    listed = ww.list_triangles(graph, algorithm=algorithm)
    assert listed.shape == (0, 3)
    assert listed.dtype == np.uint32
    assert list(ww.iter_triangles(graph, algorithm=algorithm)) == []
    assert ww.list_triangles(graph, start=0, stop=5, algorithm=algorithm).shape == (0, 3)
    with pytest.raises(InputError, match="start is 1, but there are 0 triangles"):
        ww.list_triangles(graph, start=1, algorithm=algorithm)


def test_rows_are_vertex_indices_whatever_the_labels() -> None:
    sparse = ww.Graph([(10**12, 5), (5, 70), (70, 10**12), (70, 3)])
    assert ww.list_triangles(sparse).tolist() == [[1, 2, 3]]
    assert [int(label) for label in np.asarray(sparse.labels)[[1, 2, 3]]] == [5, 70, 10**12]
    named = ww.Graph([("c", "a"), ("a", "b"), ("b", "c"), ("b", "d")])
    assert [[named.labels[v] for v in row] for row in ww.list_triangles(named).tolist()] == [["c", "a", "b"]]


def test_without_arrow_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r'output="arrow" needs pyarrow: pip install "wedgewise\[arrow\]"'):
        next(ww.iter_triangles([(0, 1)], output="arrow"))


def test_arrow_batches_hold_the_same_triangles() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    expected = ww.list_triangles(MIXED)
    batches = list(ww.iter_triangles(MIXED, batch=100, output="arrow"))
    assert all(isinstance(batch, pyarrow.RecordBatch) for batch in batches)
    table = pyarrow.Table.from_batches(batches)
    assert table.schema.names == ["u", "v", "w"]
    assert {str(kind) for kind in table.schema.types} == {"uint32"}
    columns = np.column_stack([table[name].to_numpy() for name in table.schema.names])
    np.testing.assert_array_equal(columns, expected)
    assert list(ww.iter_triangles(WITHOUT_TRIANGLES["bipartite"], output="arrow")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 0}, "batch is at least 1, not 0"),
        ({"batch": -5}, "batch is at least 1, not -5"),
        ({"start": -1}, "start is -1, but there are 10 triangles; start at 0 … 10"),
        ({"start": 11}, "start is 11, but there are 10 triangles; start at 0 … 10"),
        ({"start": 4, "stop": 3}, "stop is 3, before start at 4"),
        ({"stop": -1}, "stop is -1, before start at 0"),
        ({"output": "csv"}, "output is numpy or arrow, not 'csv'"),
        ({"threads": 0}, "threads is at least 1, not 0"),
    ],
)
def test_bad_arguments_are_named_before_the_first_batch(arguments: dict[str, Any], message: str) -> None:
    clique = ww.Graph(generate.complete(5).pairs())
    with pytest.raises(InputError) as caught:
        ww.iter_triangles(clique, **arguments)
    assert message in str(caught.value)
    if not {"batch", "output"} & set(arguments):
        with pytest.raises(InputError) as caught:
            ww.list_triangles(clique, **arguments)
        assert message in str(caught.value)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.npy", "t.csv.gz"])
def test_a_listing_is_written_by_labels(name: str, tmp_path: Path) -> None:
    labelled = ww.Graph(MIXED.edges.astype(np.int64) * 10 + 7)
    written = ww.write_triangles(labelled, tmp_path / name, batch=100, start=5)
    rows = np.asarray(labelled.labels)[ww.list_triangles(labelled, start=5)]
    assert written == len(rows)
    assert np.array_equal(read_rows(tmp_path / name), rows)


def read_rows(path: Path) -> Any:
    """The rows of a file, by other means than ours."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".parquet":
        return np.stack([column.to_numpy() for column in pyarrow.parquet.read_table(path).columns], axis=1)
    return np.loadtxt(path, np.int64, delimiter="\t" if path.suffix == ".tsv" else ",", skiprows=1)


def test_a_listing_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ww.errors.UnknownNameError, match="csv"):
        ww.write_triangles(MIXED, tmp_path / "triangles.docx")
    with pytest.raises(ww.errors.InputError, match="batch is at least 1"):
        ww.write_triangles(MIXED, tmp_path / "t.csv", batch=0)
    text = ww.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada")])
    with pytest.raises(ww.errors.InputError, match="npy"):
        ww.write_triangles(text, tmp_path / "t.npy")
    assert list(tmp_path.iterdir()) == []
    assert text.preparations == 0


def test_a_listing_has_no_other_parameters() -> None:
    with pytest.raises(UnknownNameError, match="list_triangles has no parameter 'batch'; it has: start, stop"):
        ww.run("list_triangles", MIXED, batch=3)
    with pytest.raises(UnknownNameError, match="no algorithm named 'nothing'"):
        ww.iter_triangles(MIXED, algorithm="nothing")
    with pytest.raises(MemoryLimitError, match="raise memory_limit"):
        ww.iter_triangles(MIXED, memory_limit=1000)


def test_a_listing_that_is_abandoned_leaves_nothing_behind() -> None:
    graph = ww.Graph(generate.complete(60).pairs())
    ww.list_triangles(graph, stop=10)
    threads = set(threading.enumerate())
    before = graph.nbytes
    batches = ww.iter_triangles(graph, batch=100, threads=3)
    next(batches)
    next(batches)
    del batches
    gc.collect()
    assert set(threading.enumerate()) == threads
    assert graph.nbytes == before
    assert not any(type(kept) is Listing for kept in gc.get_objects())
    assert len(ww.list_triangles(graph)) == comb(60, 3)


def test_two_listings_of_one_graph_do_not_disturb_each_other() -> None:
    expected = ww.list_triangles(MIXED)
    first, second = ww.iter_triangles(MIXED, batch=10), ww.iter_triangles(MIXED, batch=10)
    taken = [rows for pair in zip(first, second, strict=True) for rows in pair]
    np.testing.assert_array_equal(joined(taken[::2]), expected)
    np.testing.assert_array_equal(joined(taken[1::2]), expected)


def test_batches_are_the_callers_own() -> None:
    expected = ww.list_triangles(MIXED)
    taken = []
    for rows in ww.iter_triangles(MIXED, batch=10):
        taken.append(rows.copy())
        rows[:] = 0
    np.testing.assert_array_equal(joined(taken), expected)


@pytest.mark.compiled
@for_every_lister
def test_memory_is_bounded_by_the_batch(algorithm: str) -> None:
    """1.3 million triangles take 16 MB; iterating over them holds 1 MB: batches, and some bytes per edge."""
    n, batch = 200, 1000
    graph = ww.Graph(generate.complete(n).pairs())
    list(islice(ww.iter_triangles(graph, batch=batch, threads=1, algorithm=algorithm), 3))  # loads the kernels
    tracemalloc.start()
    try:
        batches = ww.iter_triangles(graph, batch=batch, threads=1, algorithm=algorithm)
        listed = len(next(batches))  # counting what each edge opens takes as much as the algorithm declares
        tracemalloc.reset_peak()
        listed += sum(len(rows) for rows in batches)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert listed == comb(n, 3)
    assert peak <= 1 << 20


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", that_answer("list_triangles", compiled=True))
def test_a_listing_starts_late_without_listing_what_is_before(algorithm: str) -> None:
    graph = ww.Graph(generate.complete(600).pairs())
    total = comb(600, 3)
    last = ww.list_triangles(graph, start=total - 5, algorithm=algorithm)
    assert len(last) == 5
    tracemalloc.start()
    try:
        tail = next(ww.iter_triangles(graph, batch=10, start=total - 5, algorithm=algorithm))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(tail, last)
    assert peak < total


def test_every_clique_of_three_in_a_clique() -> None:
    listed = ww.list_triangles(generate.complete(9).pairs())
    assert sorted(map(tuple, listed.tolist())) == list(combinations(range(9), 3))

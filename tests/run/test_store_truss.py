"""The k-truss of stores: that of the same graph in memory, after any end, from bitmaps that are whole or not there."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import answer_of, invoke, left_on_terminal
from helpers.cut_graphs import rows_of
from helpers.graphs import DENSE, SmallGraph, fixture_pairs, of_fit_size
from helpers.stores import at_most, computed_slices, kill_at_slice, names_in, peak_of
from hypothesis import given, settings
from hypothesis import strategies as st
from relations.random_graphs import random_graphs

import wedgewise as ww
from wedgewise import generate
from wedgewise.errors import InputError, PreconditionError, VerificationError
from wedgewise.machine.budget import MIN_LIMIT
from wedgewise.run import _truss_blocks
from wedgewise.run._truss_blocks import ArcBitmap, ArcLevels, remaining_part
from wedgewise.run.checkpoint import FinishedSlices
from wedgewise.run.truss_of_store import Round
from wedgewise.stages.blocks import Block
from wedgewise.store.build import write_store
from wedgewise.store.open import Store
from wedgewise.write.edges import write_edges

SCHEMES = ("rectilinear", "hashed")
K = 8  # takes several rounds


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(fixture_pairs(DENSE), tmp_path / "store", parts=4)


def rounds_in(store: Store) -> list[str]:
    return [name for name in names_in(store.folder) if name.startswith("truss")]


def expected_of(k: int) -> list[int]:
    edges: list[int] = ww.k_truss(fixture_pairs(DENSE), k).edges.tolist()
    return edges


@pytest.mark.compiled  # minutes without
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("name", ["karate", "jazz", "atlas_union"])
def test_trusses_are_those_in_memory(tmp_path: Path, name: str, parts: int, scheme: str) -> None:
    graph = ww.Graph(fixture_pairs(name))
    store = write_store(fixture_pairs(name), tmp_path / "store", parts=parts, scheme=scheme)
    most = int(ww.trussness(graph).max())
    for k in sorted({2, 3, 4, most, most + 1, 10**6}):
        found, expected = ww.k_truss(store.folder, k), ww.k_truss(graph, k)
        assert (found.k, found.edges.dtype, found.edges.tolist()) == (k, expected.edges.dtype, expected.edges.tolist())
    assert rounds_in(store) == []


@given(random_graphs(most=11), st.integers(3, 6), st.integers(1, 5), st.sampled_from(SCHEMES))
@settings(deadline=None, derandomize=True, max_examples=25)
def test_random_graphs_have_their_trusses(
    tmp_path_factory: pytest.TempPathFactory, small: SmallGraph, k: int, parts: int, scheme: str
) -> None:
    pairs = np.array(small.pairs, np.int64).reshape(-1, 2)
    parts = at_most(parts, ww.Graph(pairs))
    folder = write_store(pairs, tmp_path_factory.mktemp("random") / "store", parts=parts, scheme=scheme).folder
    assert ww.k_truss(folder, k).edges.tolist() == ww.k_truss(pairs, k).edges.tolist()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", of_fit_size("karate", "jazz", "atlas_union"))
def test_truss_numbers_are_those_in_memory(tmp_path: Path, name: str, parts: int, scheme: str) -> None:
    graph, store = ww.Graph(fixture_pairs(name)), tmp_path / "store"
    before = names_in(write_store(fixture_pairs(name), store, parts=parts, scheme=scheme).folder)
    found, expected = ww.trussness(store), ww.trussness(graph)
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
    assert names_in(store) == before


@given(random_graphs(most=11), st.integers(1, 5), st.sampled_from(SCHEMES))
@settings(deadline=None, derandomize=True, max_examples=15)
def test_random_graphs_have_their_truss_numbers(
    tmp_path_factory: pytest.TempPathFactory, small: SmallGraph, parts: int, scheme: str
) -> None:
    """One more for all old edges where a vertex is joined to all others."""
    pairs = np.array(small.pairs, np.int64).reshape(-1, 2)
    apex = pairs.max(initial=0) + 1
    parts = at_most(parts, ww.Graph(pairs))
    joined = np.concatenate([pairs, [(vertex, apex) for vertex in range(apex)]])
    numbers = []
    for number, of in enumerate((pairs, joined)):
        folder = tmp_path_factory.mktemp("random") / str(number)
        numbers.append(ww.trussness(write_store(of, folder, parts=parts, scheme=scheme).folder).tolist())
        assert numbers[-1] == ww.trussness(of).tolist()
    assert [number - 1 for number, edge in zip(numbers[1], ww.Graph(joined).edges, strict=True) if edge[1] < apex] == (
        numbers[0]
    )


@pytest.mark.parametrize("ends", [1, 7, 30])
def test_ended_truss_numbers_go_on(store: Store, ends: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without doing again what was finished."""
    finished, left, really = 0, -1, FinishedSlices.put

    def put(self: Any, number: Any, array: Any) -> None:
        nonlocal finished, left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        really(self, number, array)
        finished += 1

    monkeypatch.setattr(FinishedSlices, "put", put)
    expected = ww.trussness(store.folder).tolist()
    assert expected == ww.trussness(fixture_pairs(DENSE)).tolist()
    all_of_them, finished, left = finished, 0, ends + 1
    with pytest.raises(KeyboardInterrupt):
        ww.trussness(store.folder)
    assert (finished, len(rounds_in(store)) in (1, 2)) == (ends, True)
    assert ww.trussness(store.folder).tolist() == expected
    assert finished == all_of_them
    assert rounds_in(store) == []


def test_truss_numbers_are_written_and_are_not_verified(store: Store, tmp_path: Path) -> None:
    target, graph = tmp_path / "numbers.npy", ww.Graph(fixture_pairs(DENSE))
    record = answer_of("truss", str(store.folder), "--output", str(target))
    assert (record["question"], record["rows"]) == ("trussness", store.manifest.m)
    labels = np.asarray(graph.labels)[graph.edges]
    expected = [(*edge, number) for edge, number in zip(labels.tolist(), ww.trussness(graph).tolist(), strict=True)]
    assert sorted(map(tuple, np.load(target).tolist())) == sorted(expected)
    shown = left_on_terminal("truss", str(store.folder))
    assert f"largest truss number {int(ww.trussness(graph).max())}, found in " in shown
    with pytest.raises(PreconditionError, match="truss numbers of a store are not verified; verify the k-trusses"):
        ww.trussness(store.folder, verify=True)
    assert ww.explain("trussness", store.folder).computes == "trussness"


def test_k_is_checked(store: Store) -> None:
    for k in (1, 2.5):
        with pytest.raises(InputError, match="k is"):
            ww.k_truss(store.folder, k)  # type: ignore[arg-type]


@pytest.mark.parametrize("arcs", [0, 1, 7, 8, 9, 31, 64])
def test_dead_arcs_are_left_out(arcs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, some of them empty, over the borders of pieces."""
    monkeypatch.setattr(_truss_blocks, "PIECE_ARCS", 16)
    random = np.random.default_rng(arcs)
    offsets = np.sort(np.concatenate([[0, 0], random.integers(0, arcs + 1, 9), [arcs, arcs]])).astype(np.uint32)
    block = Block(offsets, np.arange(arcs, dtype=np.uint32), arcs)
    kept = ArcBitmap.all(arcs)
    assert kept.remaining == arcs
    for least in (2, 3, 5):
        supports = random.integers(0, 6, kept.remaining).astype(np.uint32)
        before = remaining_part(block, kept)
        after = kept.after_round(supports, least + 2, arcs)
        strong = [
            head for head, support in zip(before.heads.tolist(), supports.tolist(), strict=True) if support >= least
        ]
        part = remaining_part(block, after)
        assert part.heads.tolist() == strong
        assert rows_of(part) == [[head for head in row if head in strong] for row in rows_of(block)]
        assert (after.removed, after.remaining) == (len(before.heads) - len(strong), len(strong))
        assert after.support == int(supports[supports >= least].sum())
        assert ArcBitmap.of(after.to_array(), arcs).to_array().tolist() == after.to_array().tolist()
        kept = after
    assert kept.after_round(None, 9, arcs).removed == 0


def test_bits_that_do_not_fit_are_an_error() -> None:
    kept = ArcBitmap.all(20)
    for arcs in (19, 33):
        with pytest.raises(VerificationError, match="start again"):
            ArcBitmap.of(kept.to_array(), arcs)
    with pytest.raises(VerificationError, match="supports for 20 living arcs"):
        kept.after_round(np.zeros(21, np.uint32), 3, 20)
    with pytest.raises(VerificationError, match="supports for 20 living arcs"):
        ArcLevels.all(20).after_round(np.zeros(21, np.uint32), 3, 20)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_that_are_left_out_would_have_lost_nothing(
    tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cliques that hang together by a tail: rounds eat the tail, and most blocks are not looked at again."""
    cliques = [(u + base, v + base) for base in (0, 20) for v in range(8) for u in range(v)]
    tail = [(7 + step, 7 + step + hop) for step in range(12) for hop in (1, 2)]
    pairs = np.array(cliques + tail)
    store = write_store(pairs, tmp_path / "store", parts=6, scheme=scheme)
    slices = computed_slices(monkeypatch)
    sparing = ww.k_truss(store.folder, 4).edges.tolist()
    looked_at = len(slices)
    slices.clear()
    monkeypatch.setattr(Round, "can_take_from", lambda self: self.remaining > 0)
    assert ww.k_truss(store.folder, 4).edges.tolist() == sparing == ww.k_truss(pairs, 4).edges.tolist()
    assert looked_at < len(slices) or scheme == "hashed"  # which deals the tail out to all blocks


def test_two_rounds_are_on_disk_at_most(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    really = FinishedSlices.put

    def put(self: Any, number: Any, array: Any) -> None:
        really(self, number, array)
        seen.append(rounds_in(store))

    monkeypatch.setattr(FinishedSlices, "put", put)
    told: list[tuple[str, int, int]] = []
    truss = ww.k_truss(store.folder, K, progress=lambda *news: told.append(news))
    assert truss.edges.tolist() == expected_of(K)
    assert max(map(len, seen)) == 2
    rounds = sorted({stage for stage, _, _ in told}, key=lambda stage: int(stage.split()[1]))
    assert rounds[0] == "round 1"
    assert len(rounds) > 2
    assert all(later[1] > earlier[1] for earlier, later in pairwise(told) if earlier[0] == later[0])


@pytest.mark.compiled  # minutes without
@pytest.mark.parametrize("moment", ["before", "between", "after"])
@pytest.mark.parametrize("number", [13, *(pytest.param(other, marks=pytest.mark.deep) for other in (0, 20, 31))])
def test_a_killed_truss_repeats_at_most_one_block(
    store: Store, number: int, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = len(_puts(store, monkeypatch))
    kill_at_slice(store, "k_truss", number, moment)
    assert len(_puts(store, monkeypatch)) == whole - number - (moment == "after")


def _puts(store: Store, patch: pytest.MonkeyPatch) -> list[str]:
    """Find the truss, and see which slices are put."""
    puts: list[str] = []
    really = FinishedSlices.put

    def put(self: Any, number: Any, array: Any) -> None:
        puts.append(f"{self.folder.name} {number}")
        really(self, number, array)

    with patch.context() as context:
        context.setattr(FinishedSlices, "put", put)
        assert ww.k_truss(store.folder, K).edges.tolist() == expected_of(K)
    assert rounds_in(store) == []
    return puts


def test_a_damaged_bitmap_of_the_round_in_hand_is_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_at_slice(store, "k_truss", 15, "after")
    _flip(store.folder / "truss-round-2" / "slice-2.npy")
    assert _puts(store, monkeypatch)[0] == "truss-round-2 2"


def test_a_damaged_bitmap_of_a_whole_round_starts_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_at_slice(store, "k_truss", 15, "after")
    _flip(store.folder / "truss-round-1" / "slice-5.npy")
    assert _puts(store, monkeypatch)[0] == "truss-round-1 5"


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def test_another_truss_is_refused_until_restart(store: Store) -> None:
    kill_at_slice(store, "k_truss", 12, "after")
    with pytest.raises(InputError, match="other options"):
        ww.k_truss(store.folder, K + 1)
    folder = str(store.folder)
    refused = invoke("truss", folder, "--k", str(K + 1))
    assert (refused.exit_code, refused.stdout, "--restart" in refused.stderr) == (1, "", True)
    shown = invoke("truss", folder, "--k", str(K + 1), "--restart").stdout
    assert len(shown.splitlines()) == len(expected_of(K + 1))
    assert rounds_in(store) == []


def test_a_truss_that_needs_no_rounds_leaves_those_of_another_alone(store: Store) -> None:
    kill_at_slice(store, "k_truss", 12, "after")
    before = rounds_in(store)
    assert before
    for k in (2, 1000):
        ww.k_truss(store.folder, k)
    assert rounds_in(store) == before


def test_the_command_says_what_the_truss_has(store: Store, tmp_path: Path) -> None:
    target, graph = str(tmp_path / "truss.csv"), ww.Graph(fixture_pairs(DENSE))
    edges = graph.edges[ww.k_truss(graph, K).edges]
    vertices = len(np.unique(edges))
    record = answer_of("truss", str(store.folder), "--k", str(K), "--output", target)
    assert (record["k"], record["edges"], record["vertices"]) == (K, len(edges), vertices)
    assert record["rounds"] > 2
    said = invoke("truss", str(store.folder), "--k", str(K), "--output", target).stdout
    assert said.startswith(f"{len(edges):,} edges and {vertices:,} vertices in the {K}-truss, found in ")
    assert said.endswith(f"{len(edges):,} rows written to {target}\n")
    assert said.partition("\n")[0] in left_on_terminal("truss", str(store.folder), "--k", str(K))


@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its own size from /proc")
def test_a_process_never_exceeds_its_limit(tmp_path: Path) -> None:
    """Of a million pairs, in blocks of which some lose most of their arcs."""
    write_edges(generate.kronecker(16, seed=4).pairs(threads=2), tmp_path / "graph.bel32")
    peak_of("partition", "graph.bel32", "store", "--memory", "256MB", "--parts", "3", cwd=tmp_path)
    graph = ww.read(tmp_path / "graph.bel32")
    arguments = ("truss", "store", "--k", "20", "--memory", "256MB", "--output", "truss.npy")
    peak, _ = peak_of(*arguments, cwd=tmp_path)
    assert peak <= MIN_LIMIT
    expected = np.asarray(graph.labels)[graph.edges[ww.k_truss(graph, 20).edges]]
    assert sorted(map(tuple, np.load(tmp_path / "truss.npy").tolist())) == sorted(map(tuple, expected.tolist()))

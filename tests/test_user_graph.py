"""What `Graph` and the questions refuse, and the defects that verification would find."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.sparse import csr_array

import wedgewise as ww
from wedgewise import answering, clean, generate, verify
from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import Shape
from wedgewise.cli import doctor
from wedgewise.errors import InputError, PreconditionError, VerificationError
from wedgewise.graph import OrientedGraph
from wedgewise.machine import jit
from wedgewise.plan import Options, Plan, make_plan
from wedgewise.questions import Question

TRIANGLE = [(0, 1), (1, 2), (2, 0)]


def test_a_graph_shows_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("4 5\n5 6\n")
    assert repr(ww.read(path)) == f"Graph({str(path)!r}, n=3, m=2)"


def test_the_number_of_vertices_is_said_once() -> None:
    matrix = csr_array(([1], ([0], [1])), shape=(3, 3))
    assert ww.Graph(matrix).n == 3
    with pytest.raises(InputError, match="names its own 3 vertices; leave n out"):
        ww.Graph(matrix, n=5)
    with pytest.raises(InputError, match="n is at least 0, not -1"):
        ww.Graph(TRIANGLE, n=-1)


def test_names_stay_with_the_vertices_that_stay(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("leaf ada\nada bob\nbob eve\neve ada\n")
    graph = ww.read(path, drop_leaves=True)
    assert graph.labels == ["ada", "bob", "eve"]
    assert graph.cleaned.leaves_dropped == 1
    assert ww.count(graph) == 1


@pytest.mark.parametrize("spread", [10**9, 10**12])
def test_more_distinct_labels_than_ids_are_refused(monkeypatch: pytest.MonkeyPatch, spread: int) -> None:
    monkeypatch.setattr(clean, "MAX_ID", 3)
    pairs = [(0, spread), (2 * spread, 3 * spread)]
    with pytest.raises(InputError, match="4 distinct labels; at most 3 vertices are supported"):
        ww.Graph(pairs)


def test_an_algorithm_answers_what_it_declares() -> None:
    with pytest.raises(PreconditionError, match="forward on cpu does not compute triangles"):
        make_plan("clustering", "triangles", Shape(3, 3, 1), "degree", "rank", Options(algorithm="forward"))


def test_large_graphs_are_verified_by_a_compiled_method() -> None:
    plan = replace(ww.explain("count", TRIANGLE), wedges=verify.BY_ARRAYS_WEDGES + 1)
    assert verify._recount_method(replace(plan, algorithm="keystone")) == "hashmap"
    assert verify._recount_method(replace(plan, algorithm="hashmap")) == "forward"


def test_a_lost_arc_does_not_pass_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = answering._prepare

    def lossy(question: Question, computes: str, graph: ww.Graph, options: Options) -> tuple[OrientedGraph, Plan]:
        oriented, plan = prepare(question, computes, graph, options)
        if options.order != "core":
            return oriented, plan
        return replace(oriented, out_neighbours=oriented.out_neighbours[:-1]), plan

    monkeypatch.setattr(answering, "_prepare", lossy)
    with pytest.raises(VerificationError, match="189 arcs for 190 edges"):
        ww.count(generate.complete(20).pairs(), verify=True)


def test_two_algorithms_of_one_name_are_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    walk: Any = pkgutil.walk_packages
    monkeypatch.setattr(pkgutil, "walk_packages", lambda *args, **more: [*walk(*args, **more)] * 2)
    with pytest.raises(RuntimeError, match=r"registers \('\w+', 'cpu'\) a second time"):
        registry.__wrapped__()


def test_warming_says_what_it_compiles(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def compile_one(listener: Any) -> None:
        if listener is not None:
            listener("compiling forward.count_range")

    monkeypatch.setattr(doctor, "KERNEL_BYTES", 1000)
    monkeypatch.setattr(doctor, "WARM_SCALE", 4)
    monkeypatch.setattr(jit, "on_compile", compile_one)
    assert doctor.warm_kernels()["compiled"] == 1
    assert capsys.readouterr().err == "compiling forward.count_range\n"

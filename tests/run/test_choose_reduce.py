"""The planner, the reducer and the questions above them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wedgewise as ww
from wedgewise import errors, generate
from wedgewise.algorithms import find, registry
from wedgewise.algorithms._contract import Counts, Knob, Shape, Work
from wedgewise.algorithms._ranges import arc_bounds, even_bounds
from wedgewise.algorithms.cpu import _keystone_close
from wedgewise.algorithms.cpu._keystone_hubs import choose_hubs, largest_hubs, row_bytes
from wedgewise.machine import gpu, hardware, jit
from wedgewise.prepare.clean import clean
from wedgewise.prepare.orient import orient
from wedgewise.run.choose import make_plan
from wedgewise.run.in_memory import Execution, execute
from wedgewise.run.plan import OrientedShape
from wedgewise.run.reduce import reduce
from wedgewise.run.request import Request
from wedgewise.stages import EdgeList, OrientedGraph, Origin
from wedgewise.stages.tasks import TaskResults

TOOLS = Path(__file__).parents[2] / "tools"
TRIANGLE = [(0, 1), (1, 2), (2, 0)]


def test_progress_names_the_stage() -> None:
    told: list[tuple[str, int, int]] = []
    ww.count(generate.complete(30).pairs(), progress=lambda *what: told.append(what))
    assert told
    assert told[-1][0] == "count"
    assert told[-1][1] == told[-1][2]


def test_the_bar_is_quiet_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert ww.count(TRIANGLE, progress=True) == 1
    assert capsys.readouterr().out == ""


def test_bounds_cover_everything_once() -> None:
    for work in (np.ones(1), np.zeros(10), np.arange(1000.0), np.array([0, 0, 1e12, 0])):
        bounds = even_bounds(work)
        assert (bounds[0], bounds[-1]) == (0, len(work))
        assert (np.diff(bounds) > 0).all()
    graph = ww.Graph(generate.complete(100).pairs()).oriented()
    bounds = arc_bounds(graph.offsets)
    assert (bounds[0], bounds[-1]) == (0, graph.n)
    assert (np.diff(bounds) > 0).all()


def reduced(triangles: int, m: int, wedges: int, tasks: int = 1) -> int:
    """What the reducer makes of one task that found so many triangles."""
    plan = replace(ww.explain("count", TRIANGLE), m=m, wedges=wedges)
    results = TaskResults.none(tasks)
    results.put(0, triangles, 1)
    return reduce(Execution(results, Work(())), plan).triangles


def test_an_incomplete_or_impossible_set_of_partials_is_refused() -> None:
    with pytest.raises(errors.VerificationError, match="1 of 2 tasks"):
        reduced(1, m=3, wedges=3, tasks=2)
    with pytest.raises(errors.VerificationError, match="cannot occur"):
        reduced(2, m=3, wedges=1)
    with pytest.raises(errors.VerificationError, match="cannot occur"):
        reduced(3, m=3, wedges=100)
    assert reduced(1, m=3, wedges=1) == 1


def test_the_reducer_allows_every_complete_graph() -> None:
    for n in range(3, 40):
        m, triangles = n * (n - 1) // 2, n * (n - 1) * (n - 2) // 6
        assert reduced(triangles, m, triangles) == triangles


def test_a_plan_for_another_orientation_is_refused() -> None:
    graph = ww.Graph(generate.complete(5).pairs())
    plan = ww.explain("count", graph)
    with pytest.raises(errors.PreconditionError, match="planned for degree order"):
        execute(plan, graph.oriented("id"))


def test_verification_recounts_by_another_method() -> None:
    graph = ww.Graph(generate.complete(20).pairs())
    result = ww.run("count", graph, algorithm="keystone", verify=True)
    assert result.verified == "recounted by reference over core order"
    again = ww.run("count", graph, algorithm="reference", verify=True).verified
    assert again == f"recounted by {'hashmap' if jit.is_loaded() else 'example'} over core order"
    assert ww.run("count", graph).verified is None


def test_a_wrong_count_does_not_pass_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ww.Graph(generate.complete(20).pairs())
    right = _keystone_close.close_range

    def wrong(*args: Any) -> Counts:
        triangles, tests = right(*args)
        return int(triangles) // 2, tests

    monkeypatch.setattr(_keystone_close, "close_range", wrong)
    with pytest.raises(errors.VerificationError, match=r"keystone counts .* reference 1,140"):
        ww.count(graph, algorithm="keystone", verify=True)


def test_a_second_question_prepares_nothing_again() -> None:
    graph = ww.Graph(generate.complete(12).pairs())
    ww.count(graph)
    prepared = graph.preparations
    ww.count(graph)
    ww.run("count", graph, algorithm="forward")
    assert graph.preparations == prepared == 1
    ww.run("count", graph, algorithm="forward", relabel="classes")
    assert graph.preparations == prepared + 1


def test_auto_takes_arrays_for_small_graphs_until_kernels_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = OrientedShape(Shape(100, 500, 2000)), OrientedShape(Shape(10**6, 10**7, 10**9))
    monkeypatch.setattr(jit, "JIT_DISABLED", False)
    monkeypatch.setattr(jit, "is_loaded", lambda: False)
    monkeypatch.setattr(jit, "_array_seconds", 0.0)
    assert make_plan(Request(threads=2), "count", small).algorithm == "reference"
    assert make_plan(Request(threads=2), "count", large).algorithm == "keystone"
    monkeypatch.setattr(jit, "load_seconds", lambda *_kernels: 0.0)
    plan = make_plan(Request(threads=3), "count", large)
    assert (plan.algorithm, plan.threads) == ("keystone", 3)
    assert "its kernels are loaded" in str(plan)


def test_knobs_without_an_algorithm_are_those_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether kernels are loaded decides how fast a small graph is counted, never whether its knobs are known."""
    monkeypatch.setattr(jit, "is_loaded", lambda: False)
    monkeypatch.setattr(jit, "_array_seconds", 0.0)
    result = ww.run("count", TRIANGLE, knobs={"hubs": 512})
    assert (result.answer, result.algorithm, result.plan.knobs["hubs"]) == (1, "keystone", 512)
    with pytest.raises(errors.UnknownNameError, match="keystone has no knob 'hup'"):
        ww.count(TRIANGLE, knobs={"hup": 1})


def known_to_be_stored() -> None:
    """Stands for a kernel."""


def never_stored() -> None:
    """Stands for another one."""


def test_kernels_are_cheap_once_they_are_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(jit.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(jit, "JIT_DISABLED", False)
    monkeypatch.setattr(jit, "is_loaded", lambda: False)
    monkeypatch.setattr(jit, "_array_seconds", 0.0)
    known, other = jit.kernel(known_to_be_stored), jit.kernel(never_stored)
    assert jit.load_seconds(known) == jit.COMPILE_SECONDS
    (tmp_path / "kernels-0").mkdir()
    (tmp_path / "kernels-0" / f"{__name__}.known_to_be_stored-0{jit.OBJECT_SUFFIX}").touch()
    assert jit.load_seconds(known) == jit.LOAD_SECONDS
    assert jit.load_seconds(known, other) == jit.COMPILE_SECONDS, "an earlier process did not need it either"
    assert jit.pays(0.2, known)
    assert [jit.pays(0.1, known) for _ in range(3)] == [False, True, True], "work by arrays adds up"
    monkeypatch.setattr(jit, "is_loaded", lambda: True)
    assert jit.load_seconds(known) == 0
    assert jit.pays(0, known)
    assert not jit.pays(0.2, other), "what this process has loaded does not make it compile the rest"
    monkeypatch.setattr(jit, "JIT_DISABLED", True)
    assert not jit.pays(10**6, known)


@pytest.mark.compiled
def test_a_process_that_asks_again_and_again_loads_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ww.Graph(generate.complete(60).pairs())
    monkeypatch.setattr(jit, "is_loaded", lambda: False)
    monkeypatch.setattr(jit, "_array_seconds", 0.0)
    chosen = []
    while "keystone" not in chosen:
        chosen.append(ww.run("count", graph).algorithm)
        assert len(chosen) < 10_000
    assert chosen[0] == "reference"


def test_explain_says_what_run_does() -> None:
    graph = generate.complete(10).pairs()
    ww.count(graph, algorithm="latapy")  # its kernel is loaded: what that takes is in no estimate any more
    plan = ww.explain("count", graph, algorithm="latapy", knobs={"threshold": 3}, threads=2)
    result = ww.run("count", graph, algorithm="latapy", knobs={"threshold": 3}, threads=2)
    assert result.plan == plan
    assert "latapy on cpu, 2 threads" in str(plan)
    assert "threshold=3" in str(plan)
    assert "asked for by name" in str(plan)


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"algorithm": "quantum"}, errors.UnknownNameError, "there are: bbtc, eager, example, forward, hash"),
        ({"device": "abacus"}, errors.UnknownNameError, "no device named 'abacus'"),
        ({"order": "alphabetical"}, errors.PreconditionError, "takes the orders degree, core, id"),
        ({"relabel": "classes", "algorithm": "keystone"}, errors.PreconditionError, "takes ids by rank"),
        ({"threads": 0}, errors.InputError, "threads is at least 1"),
        ({"algorithm": "latapy", "knobs": {"k": 1}}, errors.UnknownNameError, "latapy has no knob 'k'"),
        ({"algorithm": "latapy", "knobs": {"threshold": -1}}, errors.InputError, "threshold is at least 0, not -1"),
        ({"algorithm": "bbtc", "knobs": {"parts": 37}}, errors.InputError, "parts is at most 36, not 37"),
        ({"device": "hybrid", "knobs": {"cutoff": 101}}, errors.InputError, "cutoff is at most 100, not 101"),
        ({"algorithm": "latapy", "knobs": {"threshold": "x"}}, errors.InputError, "an integer of at least 0"),
    ],
)
def test_bad_arguments_are_named(keywords: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        ww.run("count", TRIANGLE, **keywords)
    assert message in str(caught.value)


def test_unknown_questions_are_refused() -> None:
    with pytest.raises(errors.UnknownNameError, match="there are: count"):
        ww.run("colour", TRIANGLE)


def test_knobs_with_choices() -> None:
    knob = Knob("unit", "warp", "who works", choices=("warp", "block"))
    assert knob.parse("block") == "block"
    with pytest.raises(errors.InputError, match="one of warp, block"):
        knob.parse("grid")


def test_a_result_says_everything() -> None:
    result = ww.run("count", generate.complete(6).pairs())
    assert (result.answer, result.n, result.m, result.device) == (20, 6, 15, "cpu")
    assert result.cleaned.edges == 15
    assert set(result.seconds) == {"read and clean", "orient", "count"}
    assert result.peak_bytes > 10**6
    assert result.version == ww.__version__
    record = result.to_dict()
    assert record["schema"] == 1
    assert set(record) - {"schema"} == set(type(result).__dataclass_fields__) - {"task_seconds", "graph"}


def test_hub_rows_never_outweigh_the_arcs() -> None:
    for n, m in [(0, 0), (100, 50), (10**6, 10**5), (10**6, 10**7), (10**7, 10**9)]:
        hubs = largest_hubs(n, m)
        assert row_bytes(hubs) <= 4 * m
        assert hubs <= n


def oriented_by_arrays(stream: generate.EdgeStream) -> OrientedGraph:
    edges = EdgeList(stream.pairs(), Origin(stream.name, "array"))
    return orient(clean(edges, 1, compiled=False), threads=1, compiled=False)


def test_hubs_are_chosen_where_they_pay() -> None:
    skewed = oriented_by_arrays(generate.kronecker(scale=15, seed=2))
    flat = oriented_by_arrays(generate.small_world(1 << 15, 10, 0.1, seed=2))
    assert choose_hubs(skewed, 2) >= 1024
    assert choose_hubs(flat, 2) == 0


@pytest.mark.parametrize("hubs", [0, 512, 1024, 1 << 20])
@pytest.mark.parametrize("ratio", [0, 1, 10**6])
def test_keystone_counts_the_same_with_any_hubs(hubs: int, ratio: int) -> None:
    graph = ww.Graph(generate.kronecker(scale=11, edgefactor=2 if jit.JIT_DISABLED else 16, seed=9).pairs())
    expected = ww.count(graph, algorithm="reference")
    knobs = {"hubs": hubs, "probe_ratio": ratio}
    assert ww.count(graph, algorithm="keystone", knobs=knobs) == expected


def test_the_machine_is_described() -> None:
    machine = hardware.look()
    assert 1 <= machine.threads <= 4096
    assert machine.memory_bytes > 10**8
    assert f"{machine.threads} threads" in machine.description


def test_quotas_cap_threads_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/sys/fs/cgroup/cpu.max": ["150000", "100000"],
        "/sys/fs/cgroup/memory.max": ["1000000"],
        "/sys/fs/cgroup/memory.current": ["400000"],
    }
    monkeypatch.setattr(hardware, "_text", lambda path: " ".join(files.get(path, [])))
    hardware._cgroup_cores.cache_clear()
    hardware._memory_files.cache_clear()
    try:
        assert hardware.usable_threads() == 1
        assert hardware.available_memory() == 600_000
    finally:
        hardware._cgroup_cores.cache_clear()
        hardware._memory_files.cache_clear()


def test_a_copied_example_is_registered_everywhere(tmp_path: Path) -> None:
    package = Path(ww.__file__).parent
    shutil.copytree(package, tmp_path / "wedgewise", ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / "wedgewise" / "algorithms"
    text = (folder / "example.py").read_text().replace('name="example"', 'name="novel"')
    (folder / "cpu" / "novel.py").write_text(text)
    script = (
        "import pages; import wedgewise as ww;"
        "assert ww.count([(0, 1), (1, 2), (2, 0)], algorithm='novel') == 1;"
        "assert 'novel' in [a.name for a in ww.algorithms()]; assert 'novel' in pages.algorithms_page();"
        "print('known')"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{TOOLS}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == "known\n", found.stderr


def test_find_lists_what_there_is() -> None:
    assert find("forward", "cpu").name == "forward"
    listed = ", ".join(sorted(name for name, where in registry() if where == "cuda"))
    assert "keystone" in listed
    with pytest.raises(errors.UnknownNameError, match=f"on cuda; there are: {listed}$"):
        find("forward", "cuda")


def test_what_no_engine_of_a_gpu_computes_stays_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "is_likely", lambda: True)
    weighted = ww.Graph(TRIANGLE, weights=[1.0, 2.0, 3.0])
    assert ww.explain("clustering", weighted, weighted=True).device == "cpu"

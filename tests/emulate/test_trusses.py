"""Every registered algorithm that finds trusses on CUDA, without a GPU; and questions, from source to result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRUTHS, truss_details

import wedgewise as ww
from emulate.copying import EmulatedGpu, install
from emulate.emulated_cases import needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.truss_cases import PLAIN, RECORDS, TrussCase, cases_of, check, found_by, graph_of
from wedgewise.algorithms._contract import TRUSSES, Shape, TrussJob
from wedgewise.answer import device_home as home
from wedgewise.errors import VerificationError
from wedgewise.prepare.device_forms import copy_graph
from wedgewise.run.device import find_truss_on_device

pytestmark = needs_compiler
LITTLE = 1 << 10
ATLAS_EDGES = {3: 9_387, 4: 3_745, 5: 799, 6: 131, 7: 21}
CASES = tuple(case for algorithm in RECORDS for case in cases_of(algorithm))
ANSWERS = tuple((algorithm, computes) for algorithm in RECORDS for computes in TRUSSES)

for_every_algorithm = pytest.mark.parametrize("algorithm", RECORDS)
for_every_answer = pytest.mark.parametrize(("algorithm", "computes"), ANSWERS)


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    """A device in the place of the GPU."""
    found = EmulatedGpu()
    install(found, monkeypatch)
    return found


def test_who_finds_trusses() -> None:
    assert "eager" in RECORDS
    for record in RECORDS.values():
        assert set(TRUSSES) <= set(record.answers)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_trusses_are_those_of_the_reference(device: EmulatedDevice, case: TrussCase) -> None:
    check(case, device)


@pytest.mark.deep
@for_every_algorithm
def test_every_small_graph_at_once(device: EmulatedDevice, algorithm: str) -> None:
    numbers = found_by(TrussCase(algorithm, "atlas_union"), device).filled
    assert {k: int((numbers >= k).sum()) for k in ATLAS_EDGES} == ATLAS_EDGES
    for k, edges in ATLAS_EDGES.items():
        assert found_by(TrussCase(algorithm, "atlas_union", "k_truss", k), device).filled.sum() == edges


@for_every_algorithm
def test_published_kmax(device: EmulatedDevice, algorithm: str) -> None:
    for name in ("karate", "lesmis"):
        assert found_by(TrussCase(algorithm, name, "max_truss"), device).k == TRUTHS[name]["kmax"]


@for_every_answer
def test_a_second_run_gives_the_same(device: EmulatedDevice, algorithm: str, computes: str) -> None:
    case = TrussCase(algorithm, PLAIN, computes, 5 if computes == "k_truss" else None)
    first, second = found_by(case, device), found_by(case, device)
    assert (first.k, first.filled.tolist()) == (second.k, second.filled.tolist())


@for_every_answer
def test_a_small_device_finds_the_same(algorithm: str, computes: str) -> None:
    case = TrussCase(algorithm, PLAIN, computes, 5 if computes == "k_truss" else None)
    check(case, EmulatedDevice(sms=1, shared_bytes=48 << 10))


@for_every_answer
def test_progress_is_told(algorithm: str, computes: str) -> None:
    record, found, told = RECORDS[algorithm], EmulatedGpu(), list[tuple[str, int, int]]()
    job = TrussJob(5 if computes == "k_truss" else None, record.settings(None), 1, lambda *line: told.append(line))
    graph = graph_of(PLAIN).oriented(record.orders[0], record.relabellings[0])
    with found.memory():
        rounds = record.truss_on_device(computes).find(copy_graph(graph, found), job, found).rounds
    assert 0 < len(told) <= rounds
    assert {(stage, total) for stage, _, total in told} == {("truss", graph.m)}
    assert all(0 <= done <= total for _, done, total in told)


@for_every_algorithm
def test_questions_are_answered_in_the_order_of_the_edges(emulated: EmulatedGpu, algorithm: str) -> None:
    pairs = [("di", "cy"), ("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("eve", "di"), ("ada", "ada")]
    for order in RECORDS[algorithm].orders:
        graph = ww.Graph(pairs, device="cuda")
        result = ww.run("trussness", graph, device="cuda", algorithm=algorithm, order=order, verify=True)
        assert (result.device, result.algorithm, result.answer.dtype) == ("cuda", algorithm, np.int64)
        assert result.answer.tolist() == ww.trussness(pairs, device="cpu").tolist()
        truss = ww.run("k_truss", graph, k=3, device="cuda", algorithm=algorithm, order=order, verify=True).answer
        assert truss.edges.tolist() == ww.k_truss(pairs, 3, device="cpu").edges.tolist()
    how: dict[str, Any] = {"device": "cuda", "algorithm": algorithm}
    assert ww.max_truss(pairs, **how).k == 3
    assert ww.truss_summary(pairs, **how) == ww.truss_summary(pairs, device="cpu")
    components = ww.truss_components(pairs, 3, **how)
    assert components.tolist() == ww.truss_components(pairs, 3, device="cpu").tolist()
    assert len(ww.k_truss(pairs, 9, **how)) == 0
    assert len(ww.k_truss(pairs, 2, **how)) == 5


@for_every_answer
def test_an_interrupt_leaves_nothing_behind(emulated: EmulatedGpu, algorithm: str, computes: str) -> None:
    graph, details = graph_of("skewed-6"), truss_details(computes)

    def interrupt(*_line: object) -> None:
        raise KeyboardInterrupt

    how: dict[str, Any] = {"device": "cuda", "algorithm": algorithm}
    before = ww.run(computes, graph, **how, **details).to_dict()["answer"]
    held = graph.device_nbytes
    with pytest.raises(KeyboardInterrupt):
        ww.run(computes, graph, progress=interrupt, **how, **details)
    assert graph.device_nbytes == held
    assert ww.run(computes, graph, **how, **details).to_dict()["answer"] == before
    graph.release_device()


@for_every_answer
def test_without_room_the_host_answers(emulated: EmulatedGpu, algorithm: str, computes: str) -> None:
    graph, details = ww.Graph(graph_of("skewed-6").edges), truss_details(computes)
    graph.on_device(RECORDS[algorithm].orders[0], RECORDS[algorithm].relabellings[0])
    emulated.free = LITTLE
    result = ww.run(computes, graph, device="cuda", algorithm=algorithm, **details)
    assert result.device == "cpu"
    assert any(reason.startswith("on the CPU, because the GPU has too little memory") for reason in result.plan.reasons)
    assert result.to_dict()["answer"] == ww.run(computes, graph, device="cpu", **details).to_dict()["answer"]


@for_every_answer
def test_memory_is_planned_for(emulated: EmulatedGpu, algorithm: str, computes: str) -> None:
    """What the plan says is enough: it is asked for before, and no array of the work is larger."""
    graph, details = ww.Graph(graph_of("skewed-6").edges), truss_details(computes)
    asked: dict[str, Any] = {"device": "cuda", "algorithm": algorithm, **details}
    plan = ww.explain(computes, graph, **asked)
    record = RECORDS[algorithm]
    shape = Shape(plan.n, plan.m, plan.wedges)
    assert plan.bytes_needed >= record.truss_on_device(computes).bytes_needed(shape, record.settings(None)) > 0
    emulated.free = plan.bytes_needed
    assert ww.run(computes, graph, **asked).device == "cuda"
    emulated.free = plan.bytes_needed - 1
    assert ww.run(computes, graph, **asked).device == "cpu"


@for_every_answer
def test_verification_finds_a_liar(
    emulated: EmulatedGpu, monkeypatch: pytest.MonkeyPatch, algorithm: str, computes: str
) -> None:
    """One edge of the last truss, or of the one that is asked for, is not in it."""
    details = truss_details(computes, 3)
    find = find_truss_on_device

    def lie(*asked: Any) -> Any:
        found, seconds = find(*asked)
        filled = found.filled.copy()
        last = np.flatnonzero(filled == filled.max())[0]
        filled[last] = filled[last] - 1 if computes == "trussness" else False
        return replace(found, filled=filled), seconds

    monkeypatch.setattr(home, "find_truss_on_device", lie)
    with pytest.raises(VerificationError, match=f"-truss by one of {algorithm} and "):
        ww.run(computes, graph_of("book-100"), device="cuda", algorithm=algorithm, verify=True, **details)


def test_auto_takes_what_is_there(emulated: EmulatedGpu) -> None:
    """Peeling where it is registered for CUDA; else the host, and the plan says why."""
    plan = ww.explain("trussness", graph_of(PLAIN), device="cuda")
    if "peel" in RECORDS:
        assert (plan.algorithm, plan.device) == ("peel", "cuda")
    else:
        assert plan.device == "cpu"
        assert "on the CPU: nothing computes trussness on a GPU" in plan.reasons

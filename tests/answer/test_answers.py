"""The questions: what they hand out, what they prepare, what they refuse, and the defects that checks find."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from math import isnan
from typing import Any

import networkx as nx
import numpy as np
import pytest
from conformance.engines import held, that_answer
from helpers.graphs import TRIANGLE_QUESTIONS, both_ways, distinct_edges, known_by_sets, random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Algorithm, Answer, Knobs, Pass, Work
from wedgewise.answer import memory_home
from wedgewise.answer_types import GeneralizedDegree
from wedgewise.errors import InputError, UnknownNameError, VerificationError
from wedgewise.graph import GRAPH_KEYWORDS
from wedgewise.run import in_memory
from wedgewise.run.listing import Listing
from wedgewise.stages import OrientedGraph

PAIRS = random_pairs(30, 180, seed=7)
KNOWN = known_by_sets(PAIRS, 32)
LOCAL = that_answer("triangles", "edge_support")
SEEDS = range(6)

for_every_question = pytest.mark.parametrize("question", sorted(TRIANGLE_QUESTIONS))


def graph() -> ww.Graph:
    """A graph with triangles, two vertices without an edge, loops and copies; nothing prepared."""
    return ww.Graph(PAIRS, n=32)


def attributed() -> ww.Graph:
    """A graph that keeps directions and weights."""
    arcs, weights = both_ways(PAIRS, seed=1)
    return ww.Graph(arcs, n=32, directed=True, weights=weights)


# What is handed out


@pytest.mark.parametrize("algorithm", LOCAL)
def test_arrays_are_signed_ordered_and_the_callers_own(algorithm: str) -> None:
    held_graph = graph()
    for answer in (
        ww.triangles(held_graph, algorithm=algorithm),
        ww.edge_support(held_graph, algorithm=algorithm),
        ww.clustering(held_graph, algorithm=algorithm),
    ):
        assert answer.dtype in (np.int64, np.float64)
        assert answer.flags.c_contiguous
        before = answer.copy()
        answer[:] = -1
        assert before.any()
    np.testing.assert_array_equal(ww.triangles(held_graph, algorithm=algorithm), KNOWN.triangles)
    np.testing.assert_array_equal(ww.edge_support(held_graph, algorithm=algorithm), KNOWN.edge_support)


def test_scalars_are_plain_numbers() -> None:
    assert type(ww.count(graph())) is int
    assert type(ww.transitivity(graph())) is float
    assert type(ww.average_clustering(graph())) is float
    counted = ww.generalized_degree(graph())[0]
    assert {type(number) for item in counted.items() for number in item} == {int}


@pytest.mark.parametrize("algorithm", LOCAL)
def test_answers_follow_sparse_labels_in_ascending_order(algorithm: str) -> None:
    names = np.sort(np.random.default_rng(2).choice(10**15, 32, replace=False))
    sparse = ww.Graph(names[PAIRS])
    present = np.unique(PAIRS)
    assert list(sparse.labels) == names[present].tolist()
    np.testing.assert_array_equal(ww.triangles(sparse, algorithm=algorithm), KNOWN.triangles[present])
    np.testing.assert_array_equal(present[sparse.edges], distinct_edges(PAIRS))
    np.testing.assert_array_equal(ww.edge_support(sparse, algorithm=algorithm), KNOWN.edge_support)


@pytest.mark.parametrize("algorithm", LOCAL)
def test_answers_follow_text_labels_in_order_of_appearance(algorithm: str) -> None:
    named = ww.Graph([(f"v{u}", f"v{v}") for u, v in PAIRS.tolist()])
    number = [int(str(label).removeprefix("v")) for label in named.labels]
    assert number != sorted(number)
    np.testing.assert_array_equal(ww.triangles(named, algorithm=algorithm), KNOWN.triangles[number])
    supports = dict(zip(map(tuple, distinct_edges(PAIRS).tolist()), KNOWN.edge_support.tolist(), strict=True))
    expected = [supports[min(number[u], number[v]), max(number[u], number[v])] for u, v in named.edges.tolist()]
    assert ww.edge_support(named, algorithm=algorithm).tolist() == expected


@pytest.mark.parametrize("algorithm", LOCAL)
def test_vertices_without_an_edge_have_no_triangles(algorithm: str) -> None:
    padded = ww.Graph(PAIRS, n=100)
    at_vertex = ww.triangles(padded, algorithm=algorithm)
    assert len(at_vertex) == 100
    assert not at_vertex[32:].any()
    np.testing.assert_array_equal(at_vertex[:32], KNOWN.triangles)
    degrees = ww.generalized_degree(padded, algorithm=algorithm)
    assert (len(degrees), degrees[99]) == (100, {})


def test_undefined_coefficients_are_zero_or_nan() -> None:
    paw = ww.Graph([(0, 1), (1, 2), (2, 0), (2, 3)], n=5)
    assert ww.clustering(paw).tolist() == [1, 1, 1 / 3, 0, 0]
    assert np.isnan(ww.clustering(paw, undefined="nan")).tolist() == [False, False, False, True, True]
    assert ww.average_clustering(paw) == pytest.approx((2 + 1 / 3) / 5, rel=1e-15)
    assert ww.average_clustering(paw, undefined="nan") == pytest.approx((2 + 1 / 3) / 3, rel=1e-15)
    edge = ww.Graph([(0, 1)])
    assert (ww.transitivity(edge), ww.average_clustering(edge)) == (0.0, 0.0)
    assert isnan(ww.transitivity(edge, undefined="nan"))
    assert isnan(ww.average_clustering(edge, undefined="nan"))
    assert isnan(ww.average_clustering(edge, undefined="nan", count_zeros=False))
    both = ww.Graph([(0, 1), (1, 0)], directed=True)  # total degree 2, but both arcs join the same two vertices
    assert ww.clustering(both).tolist() == [0, 0]
    assert np.isnan(ww.clustering(both, undefined="nan")).all()


def test_a_generalized_degree_is_a_sequence_of_dictionaries() -> None:
    degrees = ww.generalized_degree(graph())
    assert isinstance(degrees, GeneralizedDegree)
    assert len(list(degrees)) == len(degrees) == 32
    assert degrees[-1] == degrees[31]
    with pytest.raises(IndexError):
        degrees[32]
    assert degrees.offsets[-1] == len(degrees.supports) == len(degrees.edges)
    for vertex, (begin, end) in enumerate(zip(degrees.offsets, degrees.offsets[1:], strict=False)):
        assert (np.diff(degrees.supports[begin:end]) > 0).all()
        assert sum(support * edges for support, edges in degrees[vertex].items()) == 2 * KNOWN.triangles[vertex]


@for_every_question
def test_results_are_json(question: str) -> None:
    result = ww.run(question, graph(), verify=True)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["schema"] == 1
    assert plain["question"] == plain["plan"]["question"] == question
    answer = result.answer
    if isinstance(answer, GeneralizedDegree):
        expected: Any = {name: getattr(answer, name).tolist() for name in ("offsets", "supports", "edges")}
    else:
        expected = answer.tolist() if isinstance(answer, np.ndarray) else answer
    assert plain["answer"] == expected


@for_every_question
def test_functions_give_what_run_gives(question: str) -> None:
    answer, result = getattr(ww, question)(PAIRS), ww.run(question, PAIRS)
    np.testing.assert_equal(_parts(answer), _parts(result.answer))
    assert result.question == question


def _parts(answer: Any) -> Any:
    return (answer.offsets, answer.supports, answer.edges) if isinstance(answer, GeneralizedDegree) else answer


@for_every_question
def test_every_question_is_explained_without_being_answered(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any) -> None:
        raise AssertionError("explained by doing it")

    monkeypatch.setattr(memory_home, "execute", refuse)
    plan = ww.explain(question, graph(), threads=3)
    assert (plan.question, plan.threads, plan.n, plan.m) == (question, 3, 32, len(KNOWN.edge_support))
    assert str(plan).startswith(f"{question}: {plan.algorithm} on cpu, 3 threads")
    assert plan.computes in ("count", "triangles", "edge_support", "list_triangles")
    assert plan.bytes_needed > 0


# What is prepared


def test_a_second_question_prepares_nothing_again() -> None:
    held_graph = graph()
    for question in ("count", "triangles", "clustering", "average_clustering", "transitivity", "list_triangles"):
        ww.run(question, held_graph)
        assert held_graph.preparations == 1, question
    list(ww.iter_triangles(held_graph, batch=5))
    assert held_graph.preparations == 1
    for question in ("edge_support", "generalized_degree", *sorted(TRIANGLE_QUESTIONS)):
        ww.run(question, held_graph)
        assert held_graph.preparations == 2, question  # the places of the edges among the arcs, found once


@pytest.mark.parametrize("algorithm", LOCAL)
def test_algorithms_share_what_is_prepared(algorithm: str) -> None:
    held_graph = graph()
    for question in sorted(TRIANGLE_QUESTIONS):
        ww.run(question, held_graph, algorithm=algorithm)
        ww.run(question, held_graph, algorithm="reference", threads=2)
    assert held_graph.preparations == 2


def test_verification_prepares_one_more_order_once() -> None:
    held_graph = graph()
    for question in (*sorted(TRIANGLE_QUESTIONS), *sorted(TRIANGLE_QUESTIONS)):
        ww.run(question, held_graph, verify=True)
    assert held_graph.preparations == 3


def test_directions_and_weights_are_aligned_once() -> None:
    held_graph = attributed()
    for weighted in (False, True, True):
        ww.clustering(held_graph, weighted=weighted)
        ww.average_clustering(held_graph, weighted=weighted)
    ww.edge_support(held_graph)
    assert held_graph.preparations == 2


def test_released_forms_are_prepared_again() -> None:
    held_graph = graph()
    first = ww.edge_support(held_graph)
    held_graph.release()
    np.testing.assert_array_equal(ww.edge_support(held_graph), first)
    assert held_graph.preparations == 4


def test_questions_from_many_threads_agree_and_prepare_once() -> None:
    held_graph, answers = graph(), []

    def ask_both() -> None:
        answers.append((ww.triangles(held_graph, threads=2), ww.edge_support(held_graph, threads=2)))

    askers = [threading.Thread(target=ask_both) for _ in range(6)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len(answers) == 6
    for at_vertex, at_edge in answers:
        np.testing.assert_array_equal(at_vertex, KNOWN.triangles)
        np.testing.assert_array_equal(at_edge, KNOWN.edge_support)
    assert held_graph.preparations == 2


# What checks find


SAMPLED = {
    "triangles": "30 vertices by the edges among their neighbours",
    "clustering": "30 vertices by the edges among their neighbours",
    "average_clustering": "30 vertices by the edges among their neighbours",
    "edge_support": "edges by the common neighbours of their ends",
    "generalized_degree": "edges by the common neighbours of their ends",
    "list_triangles": "rows by their edges",
}


@for_every_question
@pytest.mark.parametrize("algorithm", ["reference", "keystone"])
def test_verification_says_what_it_did(question: str, algorithm: str) -> None:
    verified = ww.run(question, graph(), algorithm=algorithm, verify=True).verified
    assert verified is not None
    recount, _, sample = verified.partition("; ")
    assert recount.startswith("recounted by ")
    assert recount.endswith(" over core order")
    assert algorithm not in recount
    assert sample.endswith(SAMPLED.get(question, ""))
    assert bool(sample) == (question in SAMPLED)
    assert ww.run(question, graph(), algorithm=algorithm).verified is None


def test_weighted_answers_are_verified() -> None:
    for weighted in (False, True):
        for algorithm in that_answer("weighted_triangles"):
            result = ww.run("clustering", attributed(), weighted=weighted, algorithm=algorithm, verify=True)
            assert "vertices by the edges among their neighbours" in str(result.verified)


Spoil = Callable[[NDArray[Any]], None]


def spoiled(answer: Answer, spoil: Spoil) -> Answer:
    """An answer whose last pass changes what the others filled."""

    def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
        work = answer.prepare(graph, knobs, threads)

        def run(_begin: int, _end: int, _workspace: None) -> tuple[int, int]:
            assert work.filled is not None
            spoil(work.filled)
            return 0, 0

        return replace(work, passes=(*work.passes, Pass(np.array([0, 1]), run)))

    return replace(answer, prepare=prepare)


@pytest.fixture
def spoil_answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Spoil], None]:
    """Make every algorithm wrong in what it fills for one question."""

    def make_wrong(computes: str, spoil: Spoil) -> None:
        def find_wrong(name: str, device: str) -> Algorithm:
            record = find(name, device)
            wrong = {computes: spoiled(record.on_cpu(computes), spoil)} if computes in record.answers else {}
            return replace(record, answers={**record.answers, **wrong})

        monkeypatch.setattr(in_memory, "find", find_wrong)

    return make_wrong


def move_one(place: int) -> Spoil:
    """Credit one triangle to the wrong place, so that sums stay as they are."""

    def spoil(filled: NDArray[Any]) -> None:
        donors = np.flatnonzero(filled)
        donor = donors[place % len(donors)]
        filled[donor] -= filled.dtype.type(1)
        filled[donor - 1] += filled.dtype.type(1)

    return spoil


def lose_one(filled: NDArray[Any]) -> None:
    filled[np.flatnonzero(filled)[-1]] -= filled.dtype.type(1)


def keep(filled: NDArray[Any]) -> None:
    """Change nothing."""


Spoiler = Callable[[str, Spoil], None]
ASKED_FOR = [
    ("triangles", "triangles"),
    ("clustering", "triangles"),
    ("average_clustering", "triangles"),
    ("edge_support", "edge_support"),
    ("generalized_degree", "edge_support"),
    ("list_triangles", "list_triangles"),
]
for_every_array = pytest.mark.parametrize(("question", "computes"), ASKED_FOR)


@pytest.mark.parametrize("algorithm", LOCAL)
@pytest.mark.parametrize("place", [0, 3, 17, -1])
@pytest.mark.parametrize(("question", "computes"), [asked for asked in ASKED_FOR if asked[0] != "list_triangles"])
def test_verification_finds_one_wrong_number(
    question: str, computes: str, place: int, algorithm: str, spoil_answers: Spoiler
) -> None:
    small = ww.Graph(generate.wheel(20).pairs())  # 21 vertices and 40 edges: all of them in the sample
    spoil_answers(computes, move_one(place))
    ww.run(question, small, algorithm=algorithm)
    with pytest.raises(VerificationError, match=r"(vertex|edge) \d+.*please report this"):
        ww.run(question, small, algorithm=algorithm, verify=True)


@pytest.mark.parametrize("wrong", [[0, 1, 5], [1, 2, 3]])
def test_verification_looks_rows_of_a_listing_up(wrong: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is no triangle of the clique 0 … 4, or the same one every time."""
    clique = ww.Graph(generate.complete(5).pairs(), n=6)
    monkeypatch.setattr(Listing, "stretch", lambda *_: np.array([wrong], np.uint32))
    with pytest.raises(VerificationError, match=r"lacks an edge: \[0, 1, 5\]|has a triangle twice"):
        ww.list_triangles(clique, verify=True)


@pytest.mark.parametrize("algorithm", LOCAL)
@for_every_array
def test_sums_that_disagree_are_never_handed_out(
    question: str, computes: str, algorithm: str, spoil_answers: Spoiler
) -> None:
    spoil_answers(computes, keep)
    ww.run(question, graph(), algorithm=algorithm)
    spoil_answers(computes, lose_one)
    with pytest.raises(VerificationError, match=f"{algorithm}: the sum of {computes} is .* please report this"):
        ww.run(question, graph(), algorithm=algorithm)


@pytest.mark.parametrize("algorithm", LOCAL)
def test_a_batch_of_a_wrong_listing_is_never_handed_out(algorithm: str, spoil_answers: Spoiler) -> None:
    spoil_answers("list_triangles", lose_one)
    with pytest.raises(VerificationError, match="the sum of list_triangles"):
        ww.iter_triangles(graph(), algorithm=algorithm)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("algorithm", that_answer("weighted_triangles"))
def test_verification_finds_a_wrong_weighted_sum(algorithm: str, weighted: bool, spoil_answers: Spoiler) -> None:
    def spoil(filled: NDArray[Any]) -> None:
        filled[np.flatnonzero(filled)[2]] += filled.dtype.type(1)

    spoil_answers("weighted_triangles", spoil)
    with pytest.raises(VerificationError, match="please report this"):
        ww.clustering(attributed(), weighted=weighted, algorithm=algorithm, verify=True)


@for_every_question
def test_verification_finds_a_wrong_total(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A triangle that is found twice, in the total and in the array alike."""

    def find_wrong(name: str, device: str) -> Algorithm:
        record = find(name, device)
        return replace(record, answers={name: twice(record.on_cpu(name)) for name in record.answers})

    def twice(answer: Answer) -> Answer:
        def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
            work = answer.prepare(graph, knobs, threads)

            def run(_begin: int, _end: int, _workspace: None) -> tuple[int, int]:
                if work.filled is not None:
                    share = 1 if work.fill is not None else 3
                    work.filled[np.flatnonzero(work.filled)[:share]] += work.filled.dtype.type(1)
                return 1, 0

            return replace(work, passes=(*work.passes, Pass(np.array([0, 1]), run)))

        return replace(answer, prepare=prepare)

    monkeypatch.setattr(
        in_memory, "find", lambda name, device: find_wrong(name, device) if name == "keystone" else find(name, device)
    )
    with pytest.raises(VerificationError, match=r"keystone counts .* triangles, \w+ .*: please report this"):
        ww.run(question, graph(), algorithm="keystone", verify=True)


# What is refused


@pytest.mark.parametrize(
    ("question", "parameter", "known"),
    [
        ("count", "undefined", "none"),
        ("triangles", "weighted", "none"),
        ("edge_support", "start", "none"),
        ("list_triangles", "undefined", "start, stop"),
        ("clustering", "count_zeros", "weighted, undefined"),
        ("average_clustering", "start", "weighted, undefined, count_zeros"),
        ("transitivity", "weighted", "undefined"),
        ("generalized_degree", "batch", "none"),
    ],
)
def test_parameters_of_other_questions_are_refused(question: str, parameter: str, known: str) -> None:
    given: dict[str, Any] = {parameter: 0}
    for refuse in (ww.run, ww.explain):
        with pytest.raises(UnknownNameError, match=f"{question} has no parameter {parameter!r}; it has: {known}$"):
            refuse(question, graph(), **given)
    with pytest.raises(TypeError, match=parameter):
        getattr(ww, question)(graph(), **given)


def test_bad_values_are_named() -> None:
    for question in ("clustering", "average_clustering", "transitivity"):
        with pytest.raises(InputError, match="undefined is one of zero, nan, not 'none'"):
            ww.run(question, graph(), undefined="none")
    with pytest.raises(UnknownNameError, match="no question named 'nucleus'; there are: count, triangles"):
        ww.run("nucleus", graph())
    with pytest.raises(InputError, match=r"needs a graph that keeps weights: pass Graph\(…, weights=…\)"):
        ww.clustering(graph(), weighted=True)


@for_every_question
def test_a_refusal_prepares_nothing(question: str) -> None:
    held_graph = graph()
    with pytest.raises(InputError, match="threads is at least 1, not 0"):
        ww.run(question, held_graph, threads=0)
    with pytest.raises(UnknownNameError, match="no algorithm named"):
        ww.run(question, held_graph, algorithm="unheard-of")
    assert held_graph.preparations == 0


# NetworkX's definitions


def networkx_graph(seed: int, kind: type = nx.Graph) -> nx.Graph:
    """A random graph with loops, perhaps vertices without an edge, and weights."""
    random = np.random.default_rng(seed)
    theirs = kind()
    theirs.add_nodes_from(range(18))
    for u, v in random_pairs(18, 40 + 10 * seed, seed).tolist():
        theirs.add_edge(u, v, weight=float(random.uniform(0.1, 9)))
    return theirs


def ours_of(theirs: nx.Graph, *, directed: bool = False, weighted: bool = False) -> ww.Graph:
    """The same graph, from its arrays alone."""
    arcs = np.array(list(theirs.edges), np.int64).reshape(-1, 2)
    weights = np.array([weight for *_, weight in theirs.edges(data="weight")])
    return ww.Graph(arcs, n=18, directed=directed, weights=weights if weighted else None)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("algorithm", LOCAL)
def test_undirected_answers_are_those_of_networkx(seed: int, algorithm: str) -> None:
    theirs = networkx_graph(seed)
    ours = ours_of(theirs)
    assert ww.triangles(ours, algorithm=algorithm).tolist() == list(nx.triangles(theirs).values())
    np.testing.assert_array_equal(ww.clustering(ours, algorithm=algorithm), list(nx.clustering(theirs).values()))
    assert ww.transitivity(ours, algorithm=algorithm) == nx.transitivity(theirs)
    for count_zeros in (True, False):
        average = ww.average_clustering(ours, count_zeros=count_zeros, algorithm=algorithm)
        assert average == pytest.approx(nx.average_clustering(theirs, count_zeros=count_zeros), rel=1e-14)
    degrees = ww.generalized_degree(ours, algorithm=algorithm)
    theirs.remove_edges_from(list(nx.selfloop_edges(theirs)))
    assert [Counter(row) for row in degrees] == list(nx.generalized_degree(theirs).values())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("algorithm", that_answer("weighted_triangles", "triangles"))
def test_clustering_is_that_of_networkx(seed: int, kind: type, weighted: bool, algorithm: str) -> None:
    theirs = networkx_graph(seed, kind)
    ours = ours_of(theirs, directed=kind is nx.DiGraph, weighted=weighted)
    weight = "weight" if weighted else None
    expected = list(nx.clustering(theirs, weight=weight).values())
    np.testing.assert_allclose(
        ww.clustering(ours, weighted=weighted, algorithm=algorithm), expected, rtol=1e-13, atol=1e-16
    )
    for count_zeros in (True, False):
        average = ww.average_clustering(ours, weighted=weighted, count_zeros=count_zeros, algorithm=algorithm)
        assert average == pytest.approx(
            nx.average_clustering(theirs, weight=weight, count_zeros=count_zeros), rel=1e-13
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_weighted_sums_have_the_same_bits_on_any_number_of_threads(weighted: bool) -> None:
    for algorithm in that_answer("weighted_triangles"):
        answers = {
            ww.clustering(held("skewed").graph, weighted=weighted, threads=threads, algorithm=algorithm).tobytes()
            for threads in (1, 2, 3, 8)
        }
        assert len(answers) == 1


@pytest.mark.parametrize("question", ["count", "edge_support", "iter_triangles"])
def test_questions_say_where_columns_are_named(question: str) -> None:
    with pytest.raises(InputError, match=r"pass wedgewise\.Graph\(data, source=…, target=…\)"):
        getattr(ww, question)("nowhere.csv", source="u", target="v")


@pytest.mark.parametrize("ask", [ww.run, ww.explain])
def test_run_and_explain_say_where_labels_are_named(ask: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="labels=…: these are options of Graph"):
        ask("count", "nowhere.csv", labels="text")


def test_questions_name_every_keyword_of_reading() -> None:
    shared = {"device", "threads"}
    assert set(GRAPH_KEYWORDS) == set(signature(ww.Graph).parameters) - shared - {"data"}

"""Nothing that is handed out, and nothing that was handed in, lets anybody change a graph behind its back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from helpers.graphs import fixture_pairs
from helpers.same_answers import assert_same
from numpy.typing import NDArray
from scipy.sparse import csr_array

import wedgewise as ww
from wedgewise.answer.questions import QUESTIONS
from wedgewise.stages import read_only

KARATE = fixture_pairs("karate")
WEIGHTS = np.arange(1, len(KARATE) + 1, dtype=np.float64)
HELD = (str, bytes, int, float, complex, type(None), range)

SOURCES: dict[str, Callable[[], dict[str, Any]]] = {
    "int32": lambda: {"source": KARATE.astype(np.int32)},
    "int64": lambda: {"source": KARATE.astype(np.int64)},
    "uint32": lambda: {"source": KARATE.astype(np.uint32)},
    "uint64": lambda: {"source": KARATE.astype(np.uint64)},
    "declared": lambda: {"source": KARATE.astype(np.uint32), "n": 40},
    "slots as labels": lambda: {"source": KARATE.astype(np.int64) * 3},
    "sparse labels": lambda: {"source": KARATE.astype(np.int64) * 10**12},
    "leaves dropped": lambda: {"source": KARATE.astype(np.int64), "drop_leaves": True},
    "weights": lambda: {"source": KARATE.astype(np.int64), "directed": True, "weights": WEIGHTS.copy()},
    "a transposed array": lambda: {"source": np.ascontiguousarray(KARATE.astype(np.int64).T).T},
    "a matrix": lambda: {"source": csr_array((WEIGHTS.copy(), KARATE.T.astype(np.int32)), (40, 40)), "weights": True},
}


def arrays_in(held: Any, seen: set[int]) -> Iterator[NDArray[Any]]:
    """Every array that public attributes lead to."""
    if id(held) in seen or isinstance(held, HELD) or callable(held):
        return
    seen.add(id(held))
    if isinstance(held, np.ndarray):
        yield held
        return
    if isinstance(held, dict | list | tuple):
        further = list(held.values()) if isinstance(held, dict) else list(held)
    elif is_dataclass(held) or isinstance(held, ww.Graph):
        names = [field.name for field in fields(held)] if is_dataclass(held) else []
        names += [name for name in dir(type(held)) if isinstance(getattr(type(held), name), property)]
        names += list(getattr(held, "__dict__", ()))
        further = [getattr(held, name) for name in names if not name.startswith("_") and "device" not in name]
    else:
        return
    for value in further:
        yield from arrays_in(value, seen)


def details_of(question: str) -> dict[str, Any]:
    return {"k": 4} if "k" in QUESTIONS[question].defaults else {}


def answers_of(graph: ww.Graph) -> list[Any]:
    return [ww.run(name, graph, **details_of(name)).answer for name in QUESTIONS]


def scribble(held: Any) -> int:
    """Write over all that can be written to, or made so; how many arrays can not."""
    refused = 0
    for array in arrays_in(held, set()):
        ways: tuple[Any, ...] = array, array.base
        for way in ways:
            try:
                way.flags.writeable = way is array or way.flags.writeable  # who owns memory may always write to it
                way[...] = 77
            except (ValueError, TypeError, AttributeError):
                refused += way is array
    return refused


def graph_of(given: dict[str, Any]) -> ww.Graph:
    return ww.Graph(given["source"], **{name: value for name, value in given.items() if name != "source"})


@pytest.mark.parametrize("name", SOURCES)
def test_no_array_of_a_graph_lets_anybody_change_it(name: str) -> None:
    graph = graph_of(SOURCES[name]())
    forms = [graph.oriented(order, by) for order in ("degree", "core", "id") for by in ("rank", "classes")]
    places = [graph.arcs_of_edges(form) for form in forms]
    for array in (graph.degrees, graph.edges, graph.labels, graph.weights, *places):
        assert not isinstance(array, np.ndarray) or not array.flags.writeable
    for array in arrays_in([graph, forms, places], set()):
        if array.flags.writeable:  # it was made for the caller
            continue
        assert not isinstance(array.base, np.ndarray) or not array.base.flags.writeable
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
            array.flags.writeable = True
    assert scribble([graph, forms, places]) > 8
    for answer, before in zip(answers_of(graph), answers_of(graph_of(SOURCES[name]())), strict=True):
        assert_same(answer, before)


def test_arrays_of_copies_cannot_be_written_to_either() -> None:
    graph = ww.Graph(KARATE * 3, directed=True, weights=WEIGHTS)
    for again in (pickle.loads(pickle.dumps(graph)), copy.copy(graph), copy.deepcopy(graph)):
        held: tuple[Any, ...] = again.degrees, again.edges, again.labels, again.weights, again.simple.slot_keys
        assert not any(array.flags.writeable for array in held)
        assert again.simple.labels is again.simple.slots


@pytest.mark.parametrize("name", SOURCES)
def test_arrays_that_were_handed_in_may_change_afterwards(name: str) -> None:
    given = SOURCES[name]()
    expected = answers_of(graph_of(SOURCES[name]()))
    graph = graph_of(given)
    source, weights = given["source"], given.get("weights")
    for array in (source.data, source.indices) if isinstance(source, csr_array) else (source, weights):
        if isinstance(array, np.ndarray):
            assert array.flags.writeable
            array[...] = 2**30 + 7
    for answer, before in zip(answers_of(graph), expected, strict=True):
        assert_same(answer, before)


@pytest.mark.parametrize("name", ["int64", "slots as labels", "weights"])
def test_answers_that_were_changed_do_not_change_later_ones(name: str) -> None:
    graph = graph_of(SOURCES[name]())
    expected = answers_of(graph_of(SOURCES[name]()))
    for question in QUESTIONS:
        scribble(ww.run(question, graph, **details_of(question)))
    for answer, before in zip(answers_of(graph), expected, strict=True):
        assert_same(answer, before)


def test_blocks_of_triangles_are_the_callers_own() -> None:
    graph = ww.Graph(KARATE)
    before = ww.list_triangles(graph)
    for block in ww.iter_triangles(graph):
        scribble(block)
    assert_same(ww.list_triangles(graph), before)


def test_text_labels_name_the_same_vertices_whatever_becomes_of_the_pairs() -> None:
    pairs = [["ada", "bob"], ["bob", "cy"], ["cy", "ada"]]
    graph = ww.Graph(pairs)
    pairs[0][0] = "eve"
    assert list(graph.labels) == ["ada", "bob", "cy"]


def test_what_is_no_array_stays_as_it_is() -> None:
    assert read_only(range(3)) == range(3)

"""Errors, answers and graphs cross processes: they pickle, copy, and come back through pools and Dask as they were."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import PATIENCE
from helpers.graphs import TRIANGLE_QUESTIONS, fixture_pairs
from helpers.same_answers import assert_same

import wedgewise as ww
from wedgewise import errors
from wedgewise.answer_types import GeneralizedDegree
from wedgewise.run.timeline import BatchSpan, Copy, Timeline
from wedgewise.stages import CleanReport

WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "old pickle": lambda value: pickle.loads(pickle.dumps(value, 0)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
KARATE = fixture_pairs("karate")
NAMED = [(f"person {u}", f"person {v}") for u, v in KARATE.tolist()]

ERRORS = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
MADE: dict[type, Callable[[], Exception]] = {
    errors.FormatError: lambda: errors.FormatError("is bad", path=Path("g.txt"), line=3, text="x", remedy="mend it"),
    errors.DeviceMemoryError: lambda: errors.DeviceMemoryError("GPU", wanted=None, free=7),
}
OBJECTS: dict[type, Callable[[], Any]] = {
    ww.Limits: lambda: ww.Limits(vertices=7),
    ww.Plan: lambda: ww.explain("count", KARATE),
    ww.Result: lambda: ww.run("triangles", KARATE, verify=True),
    ww.Truss: lambda: ww.k_truss(KARATE, 4),
    ww.Store: lambda: ww.partition(KARATE, Path(tempfile.mkdtemp()) / "store"),
    ww.TrussLevel: lambda: ww.truss_summary(KARATE)[0],
    ww.Similarity: lambda: ww.run("similarity", KARATE).answer,
    ww.TopSimilar: lambda: ww.top_similar(KARATE, "cosine", 3),
    CleanReport: lambda: ww.Graph(KARATE).cleaned,
    GeneralizedDegree: lambda: ww.generalized_degree(KARATE),
    Timeline: lambda: Timeline(
        (BatchSpan(0, "gpu", "stream", 0.0, 2.0, 1.0, (Copy(0, 1, 8, (0, 1)),)),), (("gpu", "stream"),)
    ),
}
GRAPHS: dict[str, dict[str, Any]] = {
    "ranges": {"source": KARATE, "n": 40},
    "slots as labels": {"source": KARATE * 3},
    "sparse labels": {"source": KARATE * 10**12},
    "text labels": {"source": NAMED},
    "directions and weights": {"source": KARATE, "directed": True, "weights": np.arange(len(KARATE)) + 1.0},
    "nothing": {"source": np.empty((0, 2), np.int64)},
}

every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def test_every_public_class_is_tried_here() -> None:
    public = {value for name in ww.__all__ if inspect.isclass(value := getattr(ww, name))}
    assert public <= {*OBJECTS, ww.Graph}


@every_way
@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_errors_stay_what_they_are(kind: type[Exception], way: Callable[[Any], Any]) -> None:
    error = MADE.get(kind, lambda: kind("what happened; and the remedy"))()
    error.add_note("further")
    again = way(error)
    assert type(again) is kind
    assert (str(again), repr(again), again.args, vars(again)) == (str(error), repr(error), error.args, vars(error))
    assert getattr(again, "msg", None) == getattr(error, "msg", None)


@every_way
@pytest.mark.parametrize("kind", OBJECTS, ids=lambda kind: kind.__name__)
def test_answers_stay_what_they_are(kind: type, way: Callable[[Any], Any]) -> None:
    value = OBJECTS[kind]()
    again = way(value)
    assert type(again) is type(value) is kind
    assert_same(again, value)


@every_way
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_stay_what_they_are(name: str, way: Callable[[Any], Any]) -> None:
    options = dict(GRAPHS[name])
    graph = ww.Graph(options.pop("source"), **options)
    ww.triangles(graph)
    again = way(graph)
    assert (again.n, again.m, again.cleaned, again.origin) == (graph.n, graph.m, graph.cleaned, graph.origin)
    assert list(again.labels) == list(graph.labels)
    assert (again.preparations, again.directed) == (0, graph.directed)
    assert_same(again.weights, graph.weights)
    for question in TRIANGLE_QUESTIONS:
        assert_same(ww.run(question, again).answer, ww.run(question, graph).answer)


def test_what_was_prepared_is_not_taken_along() -> None:
    graph = ww.Graph(KARATE)
    small = len(pickle.dumps(graph))
    graph.oriented()
    assert len(graph.edges) == 78
    assert len(pickle.dumps(graph)) == small


def test_a_copy_prepares_and_releases_for_itself() -> None:
    graph = ww.Graph(KARATE)
    graph.oriented()
    again = copy.copy(graph)
    again.oriented("core")
    again.release()
    assert graph.nbytes > again.nbytes
    with graph._lock:
        other = threading.Thread(target=lambda: again.edges)
        other.start()
        other.join(PATIENCE)
        assert not other.is_alive()


POOL = """
import multiprocessing, sys
import wedgewise as ww
from wedgewise.errors import FormatError

if __name__ == "__main__":
    path, method = sys.argv[1:]
    graph = ww.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    graph.oriented()
    with multiprocessing.get_context(method).Pool(1) as pool:
        try:
            pool.map_async(ww.count, [path]).get(50)
        except FormatError as error:
            print(error.path == path, error.line)
        result = pool.apply_async(ww.run, ["triangles", graph]).get(50)
        print(pool.apply_async(ww.count, [graph]).get(50), result.answer)
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_pool_ends_with_the_error_of_its_worker(method: str, tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    (tmp_path / "bad.txt").write_text("0 1\n1 2\n0 x y\n")
    command = [sys.executable, str(tmp_path / "pool.py"), str(tmp_path / "bad.txt"), method]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, env=environment, check=False)
    assert ran.stdout == "True 3\n1 [1 1 1 0]\n", ran.stderr

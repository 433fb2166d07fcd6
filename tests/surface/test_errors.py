"""Every exception that the documentation names, raised where it says, and crossing processes."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import wedgewise as ww
from wedgewise import datasets, errors, generate, interop

from .stage import make_files

TRIANGLE = [(0, 1), (1, 2), (2, 0), (2, 3)]
RAISED: list[tuple[type[errors.WedgewiseError], Callable[[Path], Any]]] = [
    (errors.FormatError, lambda at: ww.read(at / "bad.txt")),
    (errors.FormatError, lambda at: ww.read(at / "small.txt", format="npy")),
    (errors.FormatError, lambda at: ww.read(at / "names.csv", header=False)),
    (errors.InputError, lambda at: ww.read(at / "names.csv", source="nix")),
    (errors.MissingFileError, lambda at: ww.read(at / "nowhere.txt")),
    (errors.MissingFileError, lambda at: ww.count(at / "nowhere.txt")),
    (errors.LimitError, lambda at: ww.read(at / "small.txt", limits=ww.Limits(pairs=3))),
    (errors.LimitError, lambda at: ww.read(at / "karate.txt.xz", limits=ww.Limits(decompressed_bytes=10))),
    (errors.LimitError, lambda _: ww.Graph([(0, 1)], n=99, limits=ww.Limits(vertices=9))),
    (errors.InputError, lambda _: ww.Graph(42)),
    (errors.InputError, lambda _: ww.Graph(np.zeros((3, 3), int))),
    (errors.InputError, lambda _: ww.Graph(np.zeros((3, 2)))),
    (errors.InputError, lambda _: ww.Graph([(0, -1)])),
    (errors.InputError, lambda _: ww.Graph(TRIANGLE, n=2)),
    (errors.InputError, lambda _: ww.Graph(TRIANGLE, weights=[1.0])),
    (errors.InputError, lambda _: ww.Graph(TRIANGLE, weights=[1, 2, 3, np.nan])),
    (errors.InputError, lambda _: ww.Graph([(0, 1), (1, 0)], weights=[1, 2], combine="error")),
    (errors.InputError, lambda _: ww.Graph(TRIANGLE, combine="sum")),
    (errors.InputError, lambda _: ww.Graph(TRIANGLE).subgraph([4])),
    (errors.InputError, lambda _: ww.k_truss(TRIANGLE, 1)),
    (errors.InputError, lambda _: ww.k_truss(TRIANGLE, 2.5)),  # type: ignore[arg-type]
    (errors.InputError, lambda _: ww.run("k_truss", TRIANGLE)),
    (errors.InputError, lambda _: ww.clustering(TRIANGLE, weighted=True)),
    (errors.InputError, lambda _: ww.clustering(TRIANGLE, undefined="nix")),
    (errors.InputError, lambda _: ww.list_triangles(TRIANGLE, start=2)),
    (errors.InputError, lambda _: ww.list_triangles(TRIANGLE, start=1, stop=0)),
    (errors.InputError, lambda _: ww.iter_triangles(TRIANGLE, batch=0)),
    (errors.InputError, lambda _: ww.edge_ids(ww.Graph(TRIANGLE), [(0, 3)])),
    (errors.InputError, lambda _: interop.from_edge_index(np.zeros((3, 2), int))),
    (errors.InputError, lambda _: generate.cycle(2)),
    (errors.UnknownLabelError, lambda _: ww.Graph(TRIANGLE).index(9)),
    (errors.UnknownLabelError, lambda _: ww.Graph(nx.Graph([("a", "b")])).degree("c")),
    (errors.UnknownNameError, lambda _: ww.count(TRIANGLE, algorithm="nix")),
    (errors.UnknownNameError, lambda _: ww.count(TRIANGLE, device="nix")),
    (errors.UnknownNameError, lambda _: ww.count(TRIANGLE, algorithm="latapy", knobs={"nix": 1})),
    (errors.UnknownNameError, lambda _: ww.run("nix", TRIANGLE)),
    (errors.UnknownNameError, lambda _: ww.run("count", TRIANGLE, nix=1)),
    (errors.UnknownNameError, lambda _: ww.explain("nix", TRIANGLE)),
    (errors.UnknownNameError, lambda _: ww.Graph(TRIANGLE, device="nix")),
    (errors.UnknownNameError, lambda _: ww.Graph(TRIANGLE, combine="nix")),
    (errors.UnknownNameError, lambda at: ww.read(at / "small.txt", format="nix")),
    (errors.UnknownNameError, lambda _: ww.edge_ids(ww.Graph(TRIANGLE), TRIANGLE, missing="nix")),
    (errors.InputError, lambda _: ww.iter_triangles(TRIANGLE, output="nix")),
    (errors.UnknownNameError, lambda _: generate.generate("nix")),
    (errors.UnknownNameError, lambda _: generate.generate("cycle", nix=1)),
    (errors.UnknownNameError, lambda _: datasets.find("nix")),
    (errors.UnknownNameError, lambda at: ww.write_triangles(TRIANGLE, at / "out.nix")),
    (errors.PreconditionError, lambda _: ww.triangles(TRIANGLE, algorithm="forward")),
    (errors.PreconditionError, lambda _: ww.run("count", TRIANGLE, order="nix")),
    (errors.PreconditionError, lambda _: ww.run("count", TRIANGLE, relabel="nix")),
    (errors.PreconditionError, lambda _: ww.triangles(TRIANGLE, device="hybrid")),
    (errors.MemoryLimitError, lambda _: ww.count(TRIANGLE, memory_limit=10)),
    (errors.MemoryLimitError, lambda _: ww.clustering(TRIANGLE, memory_limit=10)),
    (errors.StorageError, lambda at: ww.write_triangles(TRIANGLE, at / "no folder" / "out.csv")),
    (errors.DownloadError, lambda _: datasets.get("ca-GrQc", source="http://127.0.0.1:9/graph.txt")),
    (errors.MissingFileError, lambda _: datasets.verify("ca-GrQc")),
]


@pytest.mark.parametrize(("kind", "call"), RAISED, ids=[f"{n}-{kind.__name__}" for n, (kind, _) in enumerate(RAISED)])
def test_the_documented_error_is_raised(
    kind: type[errors.WedgewiseError], call: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEDGEWISE_CACHE", str(tmp_path / "cache"))
    make_files(tmp_path)
    with pytest.raises(kind) as raised:
        call(tmp_path)
    assert type(raised.value) is kind
    assert "\n" not in str(raised.value)


def test_every_error_is_raised_or_has_a_reason_not_to_be_here() -> None:
    elsewhere = {
        "WedgewiseError": "the base",
        "DeviceError": "below, where there is no GPU",
        "DeviceMemoryError": "needs a GPU",
        "ClusterError": "of stores: test_stores.py",
        "VerificationError": "of stores: test_kills.py",
        "MissingDependencyError": "below",
    }
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    there = {value.__name__ for value in classes if value.__module__ == errors.__name__}
    assert {kind.__name__ for kind, _ in RAISED} | set(elsewhere) == there


def test_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    try:
        assert ww.count(TRIANGLE, device="cuda") == 1
    except errors.WedgewiseError as error:
        assert type(error) in (errors.DeviceError, errors.MissingDependencyError)  # noqa: PT017


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_library_that_is_not_there(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    result = ww.run("triangles", TRIANGLE)
    with pytest.raises(errors.MissingDependencyError, match=library):
        getattr(result, f"to_{library.removeprefix('py')}")()


def test_a_malformed_file_is_named_with_its_line(tmp_path: Path) -> None:
    make_files(tmp_path)
    with pytest.raises(errors.FormatError) as raised:
        ww.read(tmp_path / "bad.txt")
    error = raised.value
    assert (error.path, error.line, error.text) == (str(tmp_path / "bad.txt"), 3, "1.5")
    assert error.reason
    assert error.remedy
    assert str(error).startswith(f"{tmp_path / 'bad.txt'}:3: ")


def test_errors_cross_processes() -> None:
    made = (
        errors.FormatError("is bad", path="a.txt", line=3, text="x", remedy="mend it"),
        errors.DeviceMemoryError("a GPU", wanted=9, free=3),
        errors.UnknownLabelError("no vertex 9"),
        errors.InputError("no"),
    )
    for error in made:
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))

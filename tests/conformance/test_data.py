"""Every graph of an external data folder, counted under every algorithm.

The folder, named by the environment variable WEDGEWISE_DATA, holds ``truths.json`` (n, m and triangles by
name) and ``graphs/NAME.el.xz``.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import wedgewise as ww
from conformance.engines import for_every_algorithm

pytestmark = pytest.mark.data

FOLDER = os.environ.get("WEDGEWISE_DATA")


def truths() -> dict[str, dict[str, Any]]:
    """What is known of every graph of the folder; empty when no folder is named."""
    if FOLDER is None:
        return {}
    known: dict[str, dict[str, Any]] = json.loads((Path(FOLDER) / "truths.json").read_text(encoding="utf-8"))
    return known


TRUTHS = truths()


@lru_cache(maxsize=1)
def graph(name: str) -> ww.Graph:
    """The graph read once for all algorithms."""
    return ww.read(Path(str(FOLDER)) / "graphs" / f"{name}.el.xz")


@pytest.mark.skipif(FOLDER is None, reason="WEDGEWISE_DATA names no data folder")
def test_every_graph_of_the_folder_has_its_truth() -> None:
    files = {path.name.removesuffix(".el.xz") for path in (Path(str(FOLDER)) / "graphs").glob("*.el.xz")}
    assert files == set(TRUTHS)


@pytest.mark.skipif(FOLDER is None, reason="WEDGEWISE_DATA names no data folder")
@for_every_algorithm
@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_counts(name: str, algorithm: str) -> None:
    result = ww.run("count", graph(name), algorithm=algorithm, device="cpu")
    truth = TRUTHS[name]
    assert (result.n, result.m, result.answer) == (truth["n"], truth["m"], truth["triangles"])

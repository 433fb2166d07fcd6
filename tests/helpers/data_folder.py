"""The external data folder that the environment variable WEDGEWISE_DATA names.

It holds ``truths.json`` (n, m, triangles and the largest support of an edge, by name), ``graphs/NAME.el.xz``, and
``oracles/`` with per-vertex answers of other programs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = os.environ.get("WEDGEWISE_DATA")

needs_the_folder = pytest.mark.skipif(FOLDER is None, reason="WEDGEWISE_DATA names no data folder")


def _truths() -> dict[str, dict[str, Any]]:
    if FOLDER is None:
        return {}
    known: dict[str, dict[str, Any]] = json.loads((Path(FOLDER) / "truths.json").read_text(encoding="utf-8"))
    return known


TRUTHS = _truths()  # what is known of every graph of the folder; empty when no folder is named


def graph_path(name: str) -> Path:
    return Path(str(FOLDER)) / "graphs" / f"{name}.el.xz"


def oracle_path(name: str) -> Path:
    return Path(str(FOLDER)) / "oracles" / name

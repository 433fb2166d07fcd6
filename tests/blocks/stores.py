"""Stores to test with: made of small graphs in small pieces, and changed in every way that a disk or a person may."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wedgewise.partition import gather, runs, sources, turn, write_blocks
from wedgewise.partition.manifest import MANIFEST
from wedgewise.partition.store import Store

TINY = (
    (gather, "RUN_KEYS", 40),
    (gather, "PIECE_PAIRS", 13),
    (sources, "PIECE_PAIRS", 13),
    (sources, "BLOCK_BYTES", 112),
    (runs, "FEWEST_KEYS", 4),
    (runs, "MOST_KEYS", 64),
    (turn, "TURN_KEYS", 31),
    (write_blocks, "PIECE_ARCS", 17),
    (write_blocks, "PIECE_ROWS", 5),
)


def in_tiny_pieces(patch: pytest.MonkeyPatch) -> None:
    """Make small graphs cross the borders of pieces, runs, merges and rows."""
    for module, name, value in TINY:
        patch.setattr(module, name, value)


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Rewrite the manifest."""
    path = folder / MANIFEST
    whole = json.loads(path.read_text())
    change(whole)
    path.write_text(json.dumps(whole))


def reseal(folder: Path, number: int, which: str, array: NDArray[Any]) -> None:
    """Put other numbers into a block, with a manifest that vouches for them."""
    path = Path()

    def change(whole: dict[str, Any]) -> None:
        nonlocal path
        record = whole["blocks"][number][which]
        path = folder / record["file"]
        np.save(path, array)
        record["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()

    change_manifest(folder, change)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def read_everything(store: Store) -> None:
    """Every block, and everything about vertices."""
    for pair in store.manifest.blocks:
        store.block(*pair)
    store.vertex_of()
    store.labels()

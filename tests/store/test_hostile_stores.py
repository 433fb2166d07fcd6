"""What a store says of itself, and what others wrote down of work on it, is not believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.graphs import fixture_pairs

import wedgewise as ww
from wedgewise.errors import FormatError, StorageError
from wedgewise.run import checkpoint
from wedgewise.run.checkpoint import JOURNAL, line_of
from wedgewise.store.build import write_store
from wedgewise.store.manifest import MANIFEST
from wedgewise.store.open import Store

SOMEBODY, ELSE = 12_345, 12_346
WAYS: dict[str, dict[str, Any]] = {
    "a task at a time": {},
    "hybrid": {"device": "hybrid", "knobs": {"places": "cpu"}},
    "workers": {"workers": 1},
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("karate"), tmp_path / "store", parts=2)


@pytest.mark.parametrize("question", ["count", "triangles"])
def test_results_of_another_user_are_not_believed(store: Store, monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    path = store.beside(JOURNAL)
    if question == "triangles":
        path = store.beside("triangles-slices") / checkpoint.SLICES
        path.parent.mkdir()
    path.write_text(line_of({"key": "of other work"}) + "\n")
    owners = [SOMEBODY, ELSE]
    monkeypatch.setattr(checkpoint, "owner_of", lambda _file: owners.pop(0))
    with pytest.raises(StorageError, match=r"journal: was written by another user \(uid 12345\).*--restart.*--work"):
        ww.run(question, store.folder)
    assert path.exists()
    assert ww.run(question, store.folder, resume=False).answer is not None
    assert owners == []


def test_names_of_users_may_be_those_of_the_file_system(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as gives all files to one user, ours included."""
    store.beside(JOURNAL).write_text("torn")
    monkeypatch.setattr(checkpoint, "owner_of", lambda _file: SOMEBODY)
    assert ww.count(store.folder) == 45


@pytest.mark.parametrize("way", ["a task at a time", "hybrid", pytest.param("workers", marks=pytest.mark.deep)])
def test_a_manifest_with_too_few_wedges_is_named(store: Store, way: str) -> None:
    said = json.loads((store.folder / MANIFEST).read_text())
    (store.folder / MANIFEST).write_text(json.dumps({**said, "wedges": 44}))
    wrong = r"manifest.json: says that there are 78 edges and 44 wedges, and 45 triangles were found; start again by"
    with pytest.raises(FormatError, match=wrong):
        ww.run("count", store.folder, **WAYS[way])

"""Which directions files and matrices have when they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

import wedgewise as ww

MATRIX = "%%MatrixMarket matrix coordinate pattern"
ONE_WAY, BOTH_WAYS = [[True, False], [False, True]], [[True, True], [True, True]]
FILES = {
    "general.mtx": (f"{MATRIX} general\n3 3 2\n1 2\n3 2\n", ONE_WAY),
    "symmetric.mtx": (f"{MATRIX} symmetric\n3 3 2\n2 1\n3 2\n", BOTH_WAYS),
    "path.metis": ("3 2\n2\n1 3\n2\n", BOTH_WAYS),
    "pairs.txt": ("0 1\n2 1\n", ONE_WAY),
}


@pytest.mark.parametrize("name", FILES)
def test_files_without_directions_have_both(name: str, tmp_path: Path) -> None:
    content, directions = FILES[name]
    (tmp_path / name).write_text(content)
    graph = ww.read(tmp_path / name, directed=True)
    assert graph.attributes is not None
    assert graph.attributes.directions is not None
    assert graph.attributes.directions.tolist() == directions
    assert graph.directed
    assert not ww.read(tmp_path / name).directed


def test_weights_of_a_file_are_a_column(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("0 1 2.5\n")
    with pytest.raises(ww.errors.InputError, match="name the column that holds them: weight=…"):
        ww.Graph(tmp_path / "g.txt", weights=True)
    graph = ww.Graph(tmp_path / "g.txt", weight=2)
    assert graph.weights is not None
    assert graph.weights.tolist() == [2.5]

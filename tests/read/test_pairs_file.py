"""Raw binary pairs and how their width is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wedgewise.errors import FormatError
from wedgewise.read import read_edges

EDGES = np.array([[0, 1], [1, 2], [2, 40]])


@pytest.mark.parametrize(("dtype", "name"), [("<i4", "bel32"), ("<i8", "bel64")])
@pytest.mark.parametrize("suffix", ["bel", "named"])
def test_both_widths_are_read_as_they_are(tmp_path: Path, dtype: str, name: str, suffix: str) -> None:
    path = tmp_path / f"g.{name if suffix == 'named' else suffix}"
    path.write_bytes(EDGES.astype(dtype).tobytes())
    edges = read_edges(path)
    assert edges.pairs.tolist() == EDGES.tolist()
    assert edges.pairs.dtype == np.dtype(dtype)
    assert edges.origin.format == name
    assert edges.origin.notes[0].endswith("as named" if suffix == "named" else "by its content")


def test_the_array_outlives_the_file(tmp_path: Path) -> None:
    path = tmp_path / "g.bel32"
    path.write_bytes(EDGES.astype("<i4").tobytes())
    edges = read_edges(path)
    path.unlink()
    assert edges.pairs.tolist() == EDGES.tolist()


@pytest.mark.parametrize("format", ["bel32", "bel64"])
def test_format_settles_what_content_cannot(tmp_path: Path, format: str) -> None:
    path = tmp_path / "g.bel"
    path.write_bytes(np.array([1, 0, 2, 0], "<i4").tobytes())
    with pytest.raises(FormatError, match="reads as 64-bit pairs and as 32-bit pairs with vertex 0"):
        read_edges(path)
    expected = [[1, 0], [2, 0]] if format == "bel32" else [[1, 2]]
    assert read_edges(path, format=format).pairs.tolist() == expected


def test_one_large_second_id_is_enough_for_32_bits(tmp_path: Path) -> None:
    path = tmp_path / "g.bel"
    pairs = np.zeros((2_000_000, 2), "<i4")
    pairs[-1] = [3, 4]
    path.write_bytes(pairs.tobytes())
    assert read_edges(path).origin.format == "bel32"
    pairs[-1] = [3, 0]
    path.write_bytes(pairs.tobytes())
    assert read_edges(path).origin.format == "bel64"


def test_an_odd_number_of_32_bit_pairs_into_vertex_zero(tmp_path: Path) -> None:
    path = tmp_path / "g.bel"
    path.write_bytes(np.array([[1, 0], [2, 0], [3, 0]], "<i4").tobytes())
    assert read_edges(path).pairs.tolist() == [[1, 0], [2, 0], [3, 0]]


def test_empty(tmp_path: Path) -> None:
    path = tmp_path / "g.bel"
    path.write_bytes(b"")
    assert read_edges(path).pairs.shape == (0, 2)

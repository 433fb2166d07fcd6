"""Edge arrays and sparse matrices as NumPy and SciPy save them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wedgewise.read import read_edges

EDGES = [[0, 1], [1, 2], [2, 40]]


@pytest.mark.parametrize("dtype", ["<i4", "<i8", "<u4", "<u8"])
def test_a_plain_npy_is_read_as_it_is(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "g.npy"
    np.save(path, np.array(EDGES, dtype))
    edges = read_edges(path)
    assert edges.pairs.tolist() == EDGES
    assert edges.pairs.dtype == np.dtype(dtype)
    assert edges.pairs.flags.writeable
    assert edges.vertices is None


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i2", "<u2", ">i4", ">i8", ">u8"])
def test_other_integer_types_are_converted(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "g.npy"
    np.save(path, np.array(EDGES, dtype))
    edges = read_edges(path)
    assert edges.pairs.tolist() == EDGES
    assert edges.pairs.dtype.isnative
    assert edges.pairs.dtype.itemsize in (4, 8)


def test_fortran_order(tmp_path: Path) -> None:
    path = tmp_path / "g.npy"
    np.save(path, np.asfortranarray(EDGES))
    edges = read_edges(path)
    assert edges.pairs.tolist() == EDGES
    assert edges.pairs.flags.c_contiguous


def test_header_of_version_two(tmp_path: Path) -> None:
    path = tmp_path / "g.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array(file, np.array(EDGES), version=(2, 0), allow_pickle=False)
    assert read_edges(path).pairs.tolist() == EDGES


def test_two_by_two_is_two_pairs(tmp_path: Path) -> None:
    path = tmp_path / "g.npy"
    np.save(path, np.array([[5, 6], [7, 8]]))
    assert read_edges(path).pairs.tolist() == [[5, 6], [7, 8]]


@pytest.mark.parametrize("arrays", [{"edges": EDGES, "weights": [1.0]}, {"arr_0": EDGES}])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_by_name_or_the_only_one(tmp_path: Path, arrays: dict[str, Any], save: Any) -> None:
    path = tmp_path / "g.npz"
    save(path, **{name: np.array(values) for name, values in arrays.items()})
    edges = read_edges(path)
    assert edges.pairs.tolist() == EDGES
    assert edges.vertices is None


def test_npz_with_the_number_of_vertices(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    np.savez(path, edges=np.array(EDGES), n=np.array(50))
    assert read_edges(path).vertices == 50


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("compressed", [True, False])
def test_scipy_matrices(tmp_path: Path, layout: str, compressed: bool) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    path = tmp_path / "g.npz"
    ends = np.array(EDGES).T
    entries = sparse.coo_array((np.array([1.0, 0.0, 2.0]), (ends[0], ends[1])), shape=(45, 45))
    sparse.save_npz(path, entries.asformat(layout), compressed=compressed)
    edges = read_edges(path)
    assert sorted(sorted(pair) for pair in edges.pairs.tolist()) == EDGES
    assert edges.vertices == 45

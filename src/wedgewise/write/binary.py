"""Columns of numbers and labels → .npy, .npz, .parquet and .arrow files: what edges and answers share."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wedgewise.read.arrow import import_pyarrow
from wedgewise.stages.labels import TextLabels

MAX_STRING_BYTES = 2**31 - 1


def write_npy_header(file: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """The header of an array; NumPy makes it equally long whatever the number of rows."""
    np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": shape})


@dataclass(frozen=True, slots=True)
class Member:
    """An array of an .npz file, made block by block."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Iterable[NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _OneWay:
    """A compressor as `zipfile` has to see it: what was written cannot be changed."""

    write: Callable[[bytes], int]
    flush: Callable[[], None]


def write_npz(file: BinaryIO, members: Mapping[str, Member]) -> None:
    """Arrays by name, one after the other."""
    import zipfile

    target: Any = file if isinstance(file, io.BufferedWriter) else _OneWay(file.write, file.flush)
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in members.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                write_npy_header(member, array.dtype, array.shape)
                for block in array.blocks:
                    member.write(block.astype(array.dtype, copy=False).tobytes())


def write_table(
    form: str,
    file: BinaryIO,
    columns: Mapping[str, np.dtype[Any] | None],
    blocks: Iterable[Iterable[NDArray[Any]]],
    names: TextLabels | None,
    block_rows: int,
) -> None:
    """A "parquet" or "arrow" file of named columns.

    Columns without a dtype hold vertices, and are written as their `names`; no block has more than `block_rows` rows.
    """
    pyarrow = import_pyarrow()
    text = labels = None
    if names is not None:  # Arrow's usual type holds 2 GiB of text in the rows that are written at once
        longest = int(np.diff(names.offsets).max(initial=0))
        text = pyarrow.string() if longest * block_rows <= MAX_STRING_BYTES else pyarrow.large_string()
        labels = names.to_arrow()
    schema = pyarrow.schema(
        [(name, text if dtype is None else pyarrow.from_numpy_dtype(dtype)) for name, dtype in columns.items()]
    )

    def array(column: NDArray[Any], dtype: np.dtype[Any] | None) -> Any:
        if dtype is None:
            assert labels is not None
            return labels.take(pyarrow.array(np.ascontiguousarray(column, np.int64))).cast(text)
        return pyarrow.array(np.ascontiguousarray(column, dtype))

    with _table_writer(form, file, schema) as writer:
        for block in blocks:
            arrays = [array(column, dtype) for column, dtype in zip(block, columns.values(), strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _table_writer(form: str, file: BinaryIO, schema: Any) -> Any:
    if form == "parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(file, schema)
    from pyarrow import ipc

    return ipc.new_file(file, schema)

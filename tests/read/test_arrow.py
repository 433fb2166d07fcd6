"""Parquet, Arrow IPC and Feather tables."""

from __future__ import annotations

import gc
import io
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wedgewise.errors import (
    FormatError,
    InputError,
    LimitError,
    MemoryLimitError,
    MissingDependencyError,
    WedgewiseError,
)
from wedgewise.read import _arrow_messages, _arrow_values, arrow, read_edges
from wedgewise.read._arrow_messages import ArrowSource
from wedgewise.read.columns import ColumnChoice
from wedgewise.read.objects import edges_from
from wedgewise.stages.label_table import LabelTable
from wedgewise.stages.limits import Limits

pyarrow = pytest.importorskip("pyarrow")

KINDS = ("parquet", "arrow", "feather", "stream")


def save(folder: Path, kind: str, columns: dict[str, Any]) -> Path:
    from pyarrow import feather, ipc, parquet

    path = folder / f"g.{kind}"
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=2)
    elif kind == "feather":
        feather.write_feather(table, str(path), compression="lz4")
    else:
        with (ipc.new_file if kind == "arrow" else ipc.new_stream)(str(path), table.schema) as writer:
            writer.write_table(table, 2)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [("source", "target"), ("Src", "DST"), ("u", "v"), ("from", "to")])
def test_integer_columns(tmp_path: Path, kind: str, names: tuple[str, str]) -> None:
    path = save(tmp_path, kind, {"id": [9, 9, 9], names[0]: [0, 1, 2], names[1]: [1, 2, 40]})
    edges = read_edges(path)
    assert edges.pairs.tolist() == [[0, 1], [1, 2], [2, 40]]
    assert len(edges.ignored_columns) == 1
    assert edges.vertices is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_strings_are_numbered_by_first_appearance(tmp_path: Path, kind: str, as_dictionary: bool) -> None:
    columns = [pyarrow.array(texts) for texts in (["b", "a", "b"], ["c", "b", "d"])]
    if as_dictionary:
        columns = [column.dictionary_encode() for column in columns]
    edges = read_edges(save(tmp_path, kind, dict(zip(("u", "v"), columns, strict=True))))
    assert edges.names == ["b", "c", "a", "d"]
    assert edges.pairs.tolist() == [[0, 1], [2, 0], [0, 3]]
    assert edges.vertices == 4


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows(tmp_path: Path, kind: str) -> None:
    empty = pyarrow.array([], pyarrow.int64())
    assert read_edges(save(tmp_path, kind, {"u": empty, "v": empty})).pairs.shape == (0, 2)
    texts = pyarrow.array([], pyarrow.string())
    assert read_edges(save(tmp_path, kind, {"u": texts, "v": texts})).names == []


INTEGERS = pyarrow.array([0, 1, 2])
REFUSED = [
    ({"u": [0, 1, None], "v": INTEGERS}, {}, "row 2 of column 'u' is null; drop rows with nulls"),
    ({"u": INTEGERS}, {}, "no two columns to take the ends of edges from: 'u'; name them source and target"),
    (
        {"u": [0.5, 1.0, 2.0], "v": INTEGERS},
        {},
        "columns that are not integers or strings: 'u: double",
    ),
    ({"u": INTEGERS, "v": ["a", "b", "c"]}, {"labels": "int"}, "columns that are not integers: 'u: int64"),
    ({"u": INTEGERS, "v": [1, -5, 2]}, {}, "row 1 holds a number outside 0 … 2^63 − 1: '-5'; renumber"),
    (
        {"u": INTEGERS, "v": pyarrow.array([1, 2, 3], pyarrow.uint64())},
        {},
        "one column is uint64 and the other",
    ),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("columns", "options", "message"), REFUSED)
def test_refusals(tmp_path: Path, kind: str, columns: dict[str, Any], options: dict[str, str], message: str) -> None:
    path = save(tmp_path, kind, columns)
    with pytest.raises(FormatError) as caught:
        read_edges(path, **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{path}: {message}")


def test_more_rows_than_the_limits_allow(tmp_path: Path) -> None:
    path = save(tmp_path, "parquet", {"u": INTEGERS, "v": INTEGERS})
    with pytest.raises(LimitError, match="pairs 3 over the limit of 2"):
        read_edges(path, limits=Limits(pairs=2))
    with pytest.raises(LimitError, match="decompressed bytes 48 over the limit of 40"):
        read_edges(path, limits=Limits(decompressed_bytes=40))


def test_without_pyarrow_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path, "parquet", {"u": INTEGERS, "v": INTEGERS})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "wedgewise\[arrow\]"'):
        read_edges(path)


def test_what_arrow_cannot_allocate_is_ours() -> None:
    refused = pytest.raises(MemoryLimitError, match=r"g\.parquet: Arrow could not allocate what the file declares")
    with refused, arrow._failures_named("g.parquet"):
        raise MemoryError("malloc of size 2^60 failed")


BYTES = pyarrow.int8()
LONG_TEXT = "a text of more than twelve bytes"


def coded(codes: list[int | None], values: Any) -> Any:
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, BYTES), values)


def run_ends(ends: list[int], values: Any) -> Any:
    return pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array(ends, pyarrow.int32()), values)


TEXTS = pyarrow.array(["a", None, "c"])
VIEWS = pyarrow.array(["a", LONG_TEXT, "a"], pyarrow.string_view())
ODD_COLUMNS = [
    ("a null that no row refers to", coded([0, 2, 0], TEXTS), [["a", "0"], ["c", "1"], ["a", "2"]]),
    ("codes of codes", coded([1, 0, 1], coded([2, 0], TEXTS)), [["a", "0"], ["c", "1"], ["a", "2"]]),
    ("runs", run_ends([2, 3], pyarrow.array([5, 7])), [[5, 0], [5, 1], [7, 2]]),
    ("runs of text", run_ends([2, 3], pyarrow.array(["x", "y"])), [["x", "0"], ["x", "1"], ["y", "2"]]),
    ("runs of codes", run_ends([2, 3], coded([2, 0], TEXTS)), [["c", "0"], ["c", "1"], ["a", "2"]]),
    ("views", VIEWS, [["a", "0"], [LONG_TEXT, "1"], ["a", "2"]]),
    ("codes of views", coded([1, 0, 1], VIEWS), [[LONG_TEXT, "0"], ["a", "1"], [LONG_TEXT, "2"]]),
]
ODD_REFUSALS = [
    ("a null among the values", coded([0, 1, 2], TEXTS), "row 1 of column 'u' is null; drop rows with nulls"),
    ("a null among the codes", coded([0, 2, None], TEXTS), "row 2 of column 'u' is null; drop rows with nulls"),
    ("nulls alone", coded([None] * 3, pyarrow.array([], pyarrow.string())), "row 0 of column 'u' is null; drop"),
    ("a null among integers", coded([0, 1, 0], pyarrow.array([4, None])), "row 1 of column 'u' is null; drop"),
    ("a null of nulls", coded([0, 1, 0], coded([0, None], TEXTS)), "row 1 of column 'u' is null; drop"),
    ("nulls of no codes", coded([None] * 3, coded([], TEXTS)), "row 0 of column 'u' is null; drop"),
    ("a null in a run", run_ends([2, 3], pyarrow.array([4, None])), "row 2 of column 'u' is null; drop"),
    ("a null among views", pyarrow.array(["a", None, "c"], pyarrow.string_view()), "row 1 of column 'u' is null"),
    ("an extension", pyarrow.array([b"0123456789abcdef"] * 3, pyarrow.uuid()), "columns that are not integers or"),
    ("nothing", pyarrow.nulls(3), "columns that are not integers or strings: 'u: null, v: int64'; cast both"),
    ("lists", pyarrow.array([[1], [2], [3]]), "columns that are not integers or strings: 'u: list<"),
    ("truths", pyarrow.array([True, False, True]), "columns that are not integers or strings: 'u: bool, v: int64'"),
    ("bytes", pyarrow.array([b"a", b"b", b"c"]), "columns that are not integers or strings: 'u: binary, v: int64'"),
]


def named(edges: Any) -> list[list[Any]]:
    """The pairs by their labels."""
    rows: list[list[Any]] = edges.pairs.tolist()
    return rows if edges.names is None else [[edges.names[end] for end in row] for row in rows]


@pytest.mark.parametrize(("what", "column", "rows"), ODD_COLUMNS)
def test_however_values_are_stored(tmp_path: Path, what: str, column: Any, rows: list[list[Any]]) -> None:
    table = pyarrow.table({"u": column, "v": INTEGERS})
    assert named(edges_from(table)) == rows
    if what == "codes of codes":  # Arrow writes them and cannot read them
        return
    for kind in ("arrow", "stream"):
        assert named(read_edges(save(tmp_path, kind, table))) == rows


@pytest.mark.parametrize(("what", "column", "message"), ODD_REFUSALS)
def test_whatever_cannot_be_a_vertex(tmp_path: Path, what: str, column: Any, message: str) -> None:
    table = pyarrow.table({"u": column, "v": INTEGERS})
    with pytest.raises(FormatError) as caught:
        edges_from(table)
    assert str(caught.value).startswith(f"<table>: {message}")
    if what in ("a null of nulls", "nulls of no codes"):  # codes of codes
        return
    for kind in ("arrow", "stream"):
        path = save(tmp_path, kind, table)
        with pytest.raises(FormatError) as caught:
            read_edges(path)
        assert str(caught.value).startswith(f"{path}: {message}")


def test_nulls_among_coded_weights_have_their_row(tmp_path: Path) -> None:
    table = pyarrow.table({"u": INTEGERS, "v": INTEGERS, "w": coded([0, None, 0], pyarrow.array([0.5]))})
    with pytest.raises(InputError, match="the weight of row 1 is nan; drop such rows"):
        read_edges(save(tmp_path, "arrow", table), columns=ColumnChoice(weight="w"))
    unallocated = pyarrow.Array.from_buffers(pyarrow.float64(), 0, [None, None])
    assert np.isnan(_arrow_values.numbers(coded([None] * 3, unallocated))).tolist() == [True] * 3
    nothing = table.set_column(2, "w", coded([None] * 3, unallocated))
    with pytest.raises(InputError, match="the weight of row 0 is nan; drop such rows"):
        read_edges(save(tmp_path, "arrow", nothing), columns=ColumnChoice(weight="w"))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_without_rows_and_columns_of_one_name(tmp_path: Path, kind: str) -> None:
    table = pyarrow.table({"u": INTEGERS, "v": INTEGERS})
    gaps = pyarrow.concat_tables([table.slice(0, 0), table.slice(0, 2), table.slice(0, 0), table.slice(2)])
    assert len(read_edges(save(tmp_path, kind, gaps)).pairs) == 3
    with pytest.raises(FormatError, match="no two columns to take the ends of edges from"):
        read_edges(save(tmp_path, kind, pyarrow.table({})))
    others = pyarrow.Table.from_arrays([INTEGERS] * 4, names=["u", "x", "x", "v"])
    if kind == "feather":  # which is not written with two columns of one name
        return
    assert len(read_edges(save(tmp_path, kind, others)).pairs) == 3
    path = save(tmp_path, kind, others.rename_columns(["u", "x", "u", "v"]))
    with pytest.raises(FormatError, match="two columns are called 'u'; rename one of them"):
        read_edges(path, columns=ColumnChoice(source=0, target=3))


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_whose_name_begins_like_another(tmp_path: Path, kind: str) -> None:
    inner = pyarrow.array([{"b": "x"}] * 3)
    table = pyarrow.table({"u.b": INTEGERS, "u": inner, "v": INTEGERS, "v.b": ["p", "q", "r"]})
    edges = read_edges(save(tmp_path, kind, table), columns=ColumnChoice(source="u.b", target="v"))
    assert edges.pairs.tolist() == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["string", "dictionary", "integers"])
def test_numbers_do_not_depend_on_where_rows_are_cut(
    tmp_path: Path, kind: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = np.random.default_rng(5).integers(0, 60, (2, 500))
    columns = [pyarrow.array([f"v{end}" for end in column]) for column in ends.tolist()]
    if form == "dictionary":
        columns = [column.dictionary_encode() for column in columns]
    if form == "integers":
        columns = [pyarrow.array(column) for column in ends]
    path = save(tmp_path, kind, {"u": columns[0], "v": columns[1]})
    whole = read_edges(path)
    monkeypatch.setattr(_arrow_values, "SLICE_ROWS", 7)
    monkeypatch.setattr(_arrow_values, "SLICE_BYTES", 9)
    cut = read_edges(path)
    assert cut.pairs.tolist() == whole.pairs.tolist()
    numbers = {name: number for number, name in reversed(list(enumerate(f"v{end}" for end in ends.T.reshape(-1))))}
    assert cut.names == (None if form == "integers" else sorted(numbers, key=numbers.__getitem__))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_ends_anywhere_is_refused(tmp_path: Path, kind: str) -> None:
    path = save(tmp_path, kind, {"u": INTEGERS, "v": ["a", "b", "c"]})
    data = path.read_bytes()
    for end in range(8, len(data) - 1, 13):
        path.write_bytes(data[:end])
        with suppress(WedgewiseError):  # a stream may end between two batches
            read_edges(path)


def first_batch(path: Path) -> tuple[bytearray, int, _arrow_messages._FlatTable]:
    """An Arrow file, where the header of its first batch begins, and that header."""
    data = bytearray(path.read_bytes())
    source = ArrowSource(io.BytesIO(data), "g.arrow", Limits())
    at = source._blocks()[1][0]
    message = source._message(at)
    assert message is not None
    return data, at + 8, _arrow_messages._FlatTable.root(bytes(data[at + 8 : message.body]))


def refusal(path: Path, data: bytes | bytearray) -> str:
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        read_edges(path)
    start, end = f"{path}: is not readable by Arrow: '", "'; the file is damaged: write it again"
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith(end)
    return str(caught.value)[len(start) : -len(end)]


def test_a_batch_without_its_header_is_damaged(tmp_path: Path) -> None:
    path = save(tmp_path, "arrow", {"u": INTEGERS, "v": INTEGERS})
    data, begin, message = first_batch(path)
    fields = message.at - struct.unpack_from("<i", message.text, message.at)[0]
    struct.pack_into("<H", data, begin + fields + 4 + 2 * 2, 0)  # the third field is nowhere
    assert refusal(path, data) == f"a message that cannot be read at byte {begin - 8:,}"


def test_a_compressed_buffer_behind_the_end_is_damaged(tmp_path: Path) -> None:
    path = save(tmp_path, "feather", {"u": np.arange(1000), "v": np.arange(1000)})
    data, begin, message = first_batch(path)
    batch = message.table(2)
    place = batch.position(2)
    assert place is not None
    first = place + struct.unpack_from("<I", batch.text, place)[0] + 4
    struct.pack_into("<q", data, begin + first + 16, len(data))  # of the second buffer: the first is that of nulls
    assert refusal(path, data) == "ends too early"


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        ("size", 0, "no footer"),
        ("size", -1, "no footer"),
        ("size", 10**9, "no footer"),
        ("footer", 10**9, "a footer that cannot be read"),
        ("footer", 0, "a footer that lists other batches than before"),
    ],
)
def test_a_footer_that_is_overwritten_while_the_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, value: int, reason: str
) -> None:
    """Arrow checks the footer when it opens the file; we read it after that."""
    path = save(tmp_path, "arrow", {"u": INTEGERS, "v": INTEGERS})
    whole, really = path.read_bytes(), ArrowSource._open
    data, size_at = bytearray(whole), len(whole) - _arrow_messages.END_BYTES
    begin = size_at - struct.unpack_from("<i", whole, size_at)[0]
    struct.pack_into("<i", data, size_at if at == "size" else begin, value)

    def overwrite(self: ArrowSource, positions: list[int]) -> Any:
        reader = really(self, positions)
        if positions:  # of the columns that are read: what follows are the batches
            self._file = io.BytesIO(data)
        return reader

    monkeypatch.setattr(ArrowSource, "_open", overwrite)
    assert refusal(path, whole) == reason


def test_columns_of_extensions_are_not_asked_for_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def note(more: int) -> int:
        asked.append(more)
        return more

    monkeypatch.setattr(_arrow_messages, "SMALL_BYTES", 0)
    monkeypatch.setattr(_arrow_messages, "with_what_is_beside", note)
    plain = pyarrow.table({"u": INTEGERS, "v": INTEGERS})
    uuids = pyarrow.array([b"0123456789abcdef"] * 3, pyarrow.uuid())
    shaped = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12).reshape(3, 4))
    found = []
    for table in (plain, plain.add_column(1, "id", uuids), plain.add_column(0, "shape", shaped)):
        edges = read_edges(save(tmp_path, "arrow", table))
        assert edges.pairs.tolist() == [[0, 0], [1, 1], [2, 2]]
        found.append(asked[:])
        asked.clear()
    assert found == [found[0]] * 3
    assert len(found[0]) == 2  # batches


def test_nothing_but_labels_is_held_after_reading(tmp_path: Path) -> None:
    path = save(tmp_path, "parquet", {"u": ["a", "b"], "v": ["b", "c"]})
    gc.collect()
    gc.disable()
    try:
        edges = read_edges(path)
        assert not [held for held in gc.get_objects() if type(held) is LabelTable]  # proxies may be dead
    finally:
        gc.enable()
    assert edges.names == ["a", "b", "c"]

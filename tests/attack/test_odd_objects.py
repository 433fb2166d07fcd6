"""Objects that are no pairs, or only nearly: the right graph or one clear `WedgewiseError`, never another error."""

from __future__ import annotations

import datetime
import decimal
import fractions
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import igraph
import networkx
import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy.sparse import csr_array

import wedgewise as ww
from wedgewise import interop
from wedgewise.errors import InputError

PAIRS = [(0, 1), (1, 2), (2, 0)]
ARRAY: Any = np.array(PAIRS)
RECORDS = np.zeros(3, [("u", "i4"), ("v", "i4")])
ANY_DAY = datetime.date(2020, 1, 1)


def breaking_off() -> Iterator[tuple[int, int]]:
    yield 0, 1
    raise RuntimeError("the source ran dry")


class AsArray:
    """What NumPy makes an array of, by any function."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._make()


class Unreadable:
    def __iter__(self) -> Iterator[Any]:
        raise KeyError("nothing here")


class Miscounting:
    """A row that has three values and says two."""

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[int]:
        return iter((1, 2, 3))


class Uncountable:
    def __len__(self) -> int:
        raise OSError("no length")


class Stubborn(int):
    def __int__(self) -> int:
        raise RuntimeError("no number")

    __index__ = __int__


class Dlpack:
    """An array of another library that breaks its promise."""

    def __init__(self, device: Any, capsule: Any) -> None:
        self._device, self._capsule = device, capsule

    def __dlpack_device__(self) -> Any:
        if isinstance(self._device, Exception):
            raise self._device
        return self._device

    def __dlpack__(self, **_: Any) -> Any:
        if isinstance(self._capsule, Exception):
            raise self._capsule
        return self._capsule


class Streamed:
    """A table that breaks its promise."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, _: Any = None) -> Any:
        if isinstance(self._capsule, Exception):
            raise self._capsule
        return self._capsule


def released() -> memoryview:
    view = memoryview(ARRAY)
    view.release()
    return view


def frame(u: Any, v: Any = (1, 2, 0)) -> Any:
    return pd.DataFrame({"u": u, "v": v})


RIGHT: dict[str, Callable[[], Any]] = {
    "two dimensions": lambda: memoryview(ARRAY),
    "two dimensions of bytes": lambda: memoryview(ARRAY.astype(np.uint8)),
    "columns first": lambda: memoryview(ARRAY.copy(order="F")),
    "bytes turned": lambda: memoryview(ARRAY.astype(">i2")),
    "rows of NumPy": lambda: list(ARRAY),
    "mixed widths": lambda: [(np.uint8(0), 1), (np.int64(1), np.uint64(2)), (2, 0)],
    "sets": lambda: [{0, 1}, {1, 2}, {2, 0}],
    "read once": lambda: iter(PAIRS),
    "nullable": lambda: frame(pd.array([0, 1, 2], "Int8"), pd.array([1, 2, 0], "UInt16")),
    "Arrow's integers": lambda: frame(pd.array([0, 1, 2], "int64[pyarrow]")),
    "categories that do not occur": lambda: frame(
        pd.Categorical(list("abc"), categories=list("zabcy")), pd.Categorical(list("bca"), categories=list("xabc"))
    ),
    "categories of numbers": lambda: frame(pd.Categorical([0, 1, 2], categories=[9, 2, 1, 0])),
    "sparse": lambda: frame(pd.arrays.SparseArray([0, 1, 2])),
    "strings": lambda: frame(pd.array(["a", "b", "c"], "string"), ["b", "c", "a"]),
    "bytes turned in a frame": lambda: frame(np.array([0, 1, 2], ">i4")),
    "columns without names": lambda: pd.DataFrame(ARRAY, columns=[None, None]),
}

WRONG: dict[str, Callable[[], Any]] = {
    "one dimension": lambda: memoryview(b"abcd"),
    "no dimension": lambda: memoryview(ARRAY[0, 0:1].reshape(())),
    "three dimensions": lambda: memoryview(ARRAY.reshape(3, 1, 2)),
    "fractions": lambda: memoryview(ARRAY.astype(np.float64)),
    "characters": lambda: memoryview(b"abcd").cast("c", (2, 2)),
    "released": released,
    "bytes": lambda: b"0 1\n",
    "bytearray": lambda: bytearray(b"0 1\n"),
    "a dictionary": lambda: {0: 1},
    "nothing": lambda: None,
    "a number": lambda: 5,
    "a class": lambda: int,
    "text": lambda: ["ab", "cd"],
    "a generator that raises": breaking_off,
    "no iterator": Unreadable,
    "a row without a length": lambda: [Uncountable()],
    "a row of another length": lambda: [Miscounting(), (0, 1)],
    "one number in a row": lambda: [np.array(1), np.array(2)],
    "ragged": lambda: [(0, 1), (1,)],
    "nested": lambda: [[[0, 1], [1, 2]]],
    "an integer that is none": lambda: [(Stubborn(1), 2)],
    "long integers": lambda: [(2**70, 1)],
    "long negative integers": lambda: [(-(2**70), 1)],
    "unsigned beyond labels": lambda: [(np.uint64(2**63), 1)],
    "bools": lambda: [(True, False)],
    "NumPy's bools": lambda: [(np.True_, np.False_)],
    "NaN": lambda: [(float("nan"), 1)],
    "None": lambda: [(None, 1)],
    "decimals": lambda: [(decimal.Decimal(1), 2)],
    "complex": lambda: [(1j, 2)],
    "dates": lambda: [(ANY_DAY, 2)],
    "half a character": lambda: [("\ud800", "a")],
    "an array that raises": lambda: AsArray(lambda: 1 // 0),
    "an array that lies": lambda: AsArray(lambda: "abc"),
    "zero dimensions": lambda: np.array(5),
    "records": lambda: RECORDS,
    "records in pairs": lambda: np.zeros((3, 2), [("u", "i4")]),
    "complex array": lambda: ARRAY.astype(np.complex128),
    "moments": lambda: ARRAY.astype("M8[s]"),
    "durations": lambda: ARRAY.astype("m8[s]"),
    "truths": lambda: ARRAY.astype(np.bool_),
    "byte strings": lambda: ARRAY.astype("S"),
    "strings of NumPy": lambda: ARRAY.astype("U"),
    "raw": lambda: np.zeros((3, 2), "V4"),
    "objects": lambda: ARRAY.astype(object),
    "infinite": lambda: np.full((2, 2), np.inf),
    "negatively infinite": lambda: np.full((2, 2), -np.inf),
    "no numbers": lambda: np.full((2, 2), np.nan),
    "a capsule that raises": lambda: Dlpack((1, 0), KeyError("dl")),
    "a capsule that is none": lambda: Dlpack((1, 0), 5),
    "a device that raises": lambda: Dlpack(OSError("gone"), None),
    "a device that is none": lambda: Dlpack("cpu", None),
    "a stream that raises": lambda: Streamed(KeyError("arrow")),
    "a stream that is none": lambda: Streamed(5),
    "a series": lambda: pd.Series([1, 2, 3]),
    "an Arrow array": lambda: pyarrow.array([1, 2]),
    "mixed": lambda: frame([0, "a", 2]),
    "null": lambda: frame(pd.array([0, None, 2], "Int64")),
    "null category": lambda: frame(pd.Categorical(["a", None, "c"]), ["a", "b", "c"]),
    "fractions in a frame": lambda: frame([0.0, 1.0, 2.0]),
    "NaN in a frame": lambda: frame([0.0, np.nan, 2.0]),
    "infinity in a frame": lambda: frame([0.0, np.inf, 2.0]),
    "bools in a frame": lambda: frame([True, False, True]),
    "complex in a frame": lambda: frame([1j, 2, 3]),
    "moments in a frame": lambda: frame(pd.to_datetime(["2020"] * 3)),
    "intervals in a frame": lambda: frame(pd.interval_range(0, 3)),
    "bytes in a frame": lambda: frame([b"a", b"b", b"c"]),
    "long integers in a frame": lambda: frame(np.array([2**70, 1, 2], object)),
    "unsigned beside signed": lambda: frame(np.array([1, 2, 3], np.uint64), np.array([1, 2, 3])),
    "one column": lambda: pd.DataFrame({"a": [1]}),
    "no column": pd.DataFrame,
}

WEIGHTS: dict[str, Any] = {
    "NaN": [1, np.nan, 2],
    "infinite": [1, np.inf, 2],
    "negatively infinite": [-np.inf, 1, 2],
    "complex": [1j, 2, 3],
    "moments": np.array([1, 2, 3], "M8[s]"),
    "durations": np.array([1, 2, 3], "m8[s]"),
    "text": ["1", "2", "3"],
    "byte strings": np.array([b"1", b"2", b"3"]),
    "None": [None, 1, 2],
    "decimals": [decimal.Decimal(1)] * 3,
    "fractions": [fractions.Fraction(1, 3)] * 3,
    "too few": [1, 2],
    "two dimensions": [[1], [2], [3]],
    "ragged": [[1], [2, 3], 4],
    "one number": 5,
    "one of NumPy's": np.float64(5),
    "longer than floats": [10**400, 1, 2],
    "beyond floats": np.full(3, np.finfo(np.longdouble).max),
    "a generator": breaking_off(),
    "records": np.zeros(3, [("a", "f8")]),
    "a dictionary": {1: 2},
    "a set": {1, 2, 3},
    "bytes": b"abc",
    "null": pd.array([1, None, 2], "Int64"),
    "categories": pd.Series(["a", "b", "c"], dtype="category"),
    "an array that raises": AsArray(lambda: 1 // 0),
    "an array that lies": AsArray(lambda: "abc"),
    "no iterator": Unreadable(),
    "a capsule that raises": Dlpack((1, 0), KeyError("dl")),
    "a device that raises": Dlpack(OSError("gone"), None),
    "a name": "w",
}
SOURCES: dict[str, Callable[[], Any]] = {
    "array": lambda: ARRAY,
    "pairs": lambda: PAIRS,
    "pandas": lambda: frame([0, 1, 2]),
    "Arrow": lambda: pyarrow.table({"u": [0, 1, 2], "v": [1, 2, 0]}),
    "igraph": lambda: igraph.Graph(n=3, edges=PAIRS),
    "networkit": lambda: interop.to_networkit(ww.Graph(ARRAY)),
    "matrix": lambda: csr_array(np.ones((3, 3))),
}


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as raised:
        call()
    text = str(raised.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT)
def test_what_holds_pairs_is_the_graph(make: Callable[[], Any]) -> None:
    graph = ww.Graph(make())
    assert (graph.n, graph.m, ww.count(graph)) == (3, 3, 1)


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_what_holds_none_is_refused(make: Callable[[], Any]) -> None:
    refusal(lambda: ww.Graph(make()))
    refusal(lambda: ww.edge_ids(ww.Graph(ARRAY), make()))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_what_is_no_weight_is_refused(weights: Any, source: str) -> None:
    refusal(lambda: ww.Graph(SOURCES[source](), weights=weights))


@pytest.mark.parametrize("weights", [5, (1, 2, 3), range(3), np.float64(5), True], ids=repr)
def test_what_names_no_attribute_is_refused(weights: Any) -> None:
    refusal(lambda: ww.Graph(networkx.Graph(PAIRS), weights=weights))


@pytest.mark.parametrize("values", [[1j, 2, 3], [1, np.nan, 2], ["1", "2", "3"], pd.array([1, None, 2], "Int64")])
def test_a_column_that_holds_no_weights_is_refused(values: Any) -> None:
    table = frame([0, 1, 2]).assign(w=values)
    refusal(lambda: ww.Graph(table, weight="w"))
    refusal(lambda: ww.Graph(table, weights="w"))


NO_EDGES = [weights for name, weights in WEIGHTS.items() if name != "too few"]


@pytest.mark.parametrize("edges", [*NO_EDGES, [-1], [3], [2**70], np.array([2**64 - 1], np.uint64), 1.5])
def test_what_is_no_number_of_an_edge_is_refused(edges: Any) -> None:
    refusal(lambda: ww.Graph(ARRAY).subgraph(edges))


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_what_is_no_edge_index_is_refused(make: Callable[[], Any]) -> None:
    refusal(lambda: interop.from_edge_index(make()))


def test_the_reason_of_another_error_is_kept() -> None:
    text = refusal(lambda: ww.Graph(breaking_off()))
    assert text == "<pairs>: RuntimeError: the source ran dry; pass pairs such as (0, 1)"
    with pytest.raises(InputError) as raised:
        ww.Graph(breaking_off())
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_no_memory_stays_no_memory() -> None:
    def without_memory() -> Iterator[Any]:
        yield 0, 1
        raise MemoryError

    with pytest.raises(ww.errors.MemoryLimitError):
        ww.Graph(without_memory())


def test_binary_streams_are_files() -> None:
    assert ww.Graph(io.BytesIO(b"0 1\n1 2\n2 0\n")).m == 3


class Reading:
    """A stream that reads as it is told to."""

    def __init__(self, read: Any) -> None:
        self.read = read


def closed_file() -> io.BytesIO:
    stream = io.BytesIO(b"0 1\n")
    stream.close()
    return stream


def fail_to_read(_size: int) -> bytes:
    raise RuntimeError("the line\nis dead")


STREAMS: dict[str, tuple[Callable[[], Any], str]] = {
    "closed": (closed_file, "ValueError: I/O operation on closed file."),
    "raises": (lambda: Reading(fail_to_read), "RuntimeError: the line is dead"),
    "has none": (lambda: Reading(None), "TypeError: 'NoneType' object is not callable"),
    "takes no size": (lambda: Reading(lambda: b"0 1\n"), "TypeError: "),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_cannot_be_read_is_named(name: str) -> None:
    make, reason = STREAMS[name]
    for ask in (ww.Graph, ww.count):
        with pytest.raises(InputError) as caught:
            ask(make())
        message = str(caught.value)
        assert message.startswith(f"<stream>: cannot be read ({reason}")
        assert message.endswith("; pass a file opened by open(path, 'rb')")


ODD: list[Any] = ["3", 2.5, [4], b"x", object(), {}, True]
PARAMETERS: list[tuple[Callable[..., Any], str, str, list[Any]]] = [
    (ww.Graph, "n", "n is an integer, not ", ODD),
    (ww.Graph, "threads", "threads is an integer, not ", ODD),
    (ww.count, "threads", "threads is an integer, not ", ODD),
    (ww.count, "memory_limit", "memory_limit is an integer, not ", ODD),
    (ww.trussness, "memory_limit", "memory_limit is an integer, not ", ODD),
    (ww.count, "workers", "workers is an integer, not ", ODD),
    (ww.Graph, "limits", "limits is a wedgewise.Limits, not ", [5, "x", {}, {"pairs": 5}, []]),
]
NAMES: list[tuple[str, str, list[Any]]] = [
    ("format", "format is the name of a format, not ", [5, ["text"], {}, b"text", ARRAY]),
    ("labels", "labels is one of auto, int, text, not ", [5, ["text"], {}, None, ARRAY]),
    ("limits", "limits is a wedgewise.Limits, not ", [5, "x", {}]),
    ("threads", "threads is an integer, not ", ODD),
]


@pytest.mark.parametrize(("ask", "name", "message", "values"), PARAMETERS)
def test_a_parameter_of_another_type_is_named(ask: Callable[..., Any], name: str, message: str, values: Any) -> None:
    for value in values:
        with pytest.raises(InputError) as caught:
            ask(PAIRS, **{name: value})
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("name", "message", "values"), NAMES)
def test_a_parameter_of_a_file_of_another_type_is_named(
    tmp_path: Path, name: str, message: str, values: list[Any]
) -> None:
    (tmp_path / "g.txt").write_text("0 1\n")
    for value in values:
        with pytest.raises(InputError) as caught:
            ww.read(tmp_path / "g.txt", **{name: value})
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize("cap", ["decompressed_bytes", "line_bytes", "vertices", "pairs", "memory_bytes"])
def test_a_cap_is_an_integer(cap: str) -> None:
    for value in ODD:
        with pytest.raises(InputError, match=f"{cap} is an integer, not "):
            ww.Limits(**{cap: value})
    number: Any = np.uint8(200)
    assert ww.Limits(**{cap: number}) == ww.Limits(**{cap: 200})


def test_a_long_value_is_shown_in_short() -> None:
    long: Any = list(range(10**6))
    with pytest.raises(InputError) as caught:
        ww.Graph(PAIRS, n=long)
    assert len(str(caught.value)) < 100


def test_integers_of_other_libraries_are_integers() -> None:
    numbers: list[Any] = [np.int8(5), np.uint64(2), np.int64(10**9)]
    graph = ww.Graph(PAIRS, n=numbers[0], threads=numbers[1])
    assert (graph.n, type(graph.n)) == (5, int)
    assert ww.count(graph, threads=numbers[1], memory_limit=numbers[2]) == 1

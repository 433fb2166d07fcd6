"""Text files as tables: headers, columns, labels and weights, by kernels and line by line alike."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wedgewise as ww
from wedgewise.errors import FormatError, InputError
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.read import _fields, _text_arrays, _text_kernel, read_edges, text
from wedgewise.read.columns import ColumnChoice
from wedgewise.stages import EdgeList


@pytest.fixture(params=["kernels", "lines"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test of this file finds columns by kernels, and line by line."""
    name: str = request.param
    monkeypatch.setattr(_fields, "_takes_kernels", lambda size: name == "kernels")
    return name


def read(data: bytes, threads: int = 2, labels: str = "auto", **choice: Any) -> EdgeList:
    return read_edges(io.BytesIO(data), threads=threads, labels=labels, columns=ColumnChoice(**choice))


def rows(found: EdgeList) -> list[tuple[Any, Any]]:
    names = found.names
    return [(int(u), int(v)) if names is None else (names[u], names[v]) for u, v in found.pairs.tolist()]


HEADERS: dict[str, tuple[bytes, dict[str, Any], list[tuple[Any, Any]]]] = {
    "known names": (b"from,to\nann,bob\n", {}, [("ann", "bob")]),
    "known names of numbers": (b"from,to\n1,2\n", {}, [(1, 2)]),
    "known names far right": (b"a,b,u,v\n9,9,1,2\n9,9,2,3\n", {}, [(1, 2), (2, 3)]),
    "known names in a sentence": (b"Start Node ID,End Node ID,when\nann,bob,1\n", {}, [("ann", "bob")]),
    "the index of a frame": (b",source,target\n0,ann,bob\n1,bob,cy\n", {}, [("ann", "bob"), ("bob", "cy")]),
    "the index of a frame, tabs": (b"\tsource\ttarget\n0\t1\t2\n1\t2\t3\n", {}, [(1, 2), (2, 3)]),
    "numbers below other names": (b"anfang,ende\n1,2\n2,3\n", {}, [(1, 2), (2, 3)]),
    "numbers below a third name": (b"a,b,c\nx,y,1\ny,z,2\n", {"source": "a", "target": "b"}, [("x", "y"), ("y", "z")]),
    "named by the user": (b"anfang,ende\nann,bob\n", {"source": "anfang", "target": "ende"}, [("ann", "bob")]),
    "named in another case": (
        b"Anfang,Ende,q\nann,bob,x\n",
        {"source": "anfang", "target": "ENDE", "header": True},
        [("ann", "bob")],
    ),
    "said to be one": (b"anfang,ende\nann,bob\n", {"header": True}, [("ann", "bob")]),
    "said to be none": (b"from,to\nann,bob\n", {"header": False}, [("from", "to"), ("ann", "bob")]),
    "no numbers anywhere": (b"anfang,ende\nann,bob\n", {}, [("anfang", "ende"), ("ann", "bob")]),
    "an unknown number in the first line": (b"ann,bob,NA\nbob,cy,5\n", {}, [("ann", "bob"), ("bob", "cy")]),
    "tabs with blanks between": (b"id\tnote\tsrc\tdst\n1\tsome text\t5\t7\n2\tmore\t7\t9\n", {}, [(5, 7), (7, 9)]),
    "NetworkX": (b"ann bob {'weight': 3}\nbob cy {}\n", {}, [("ann", "bob"), ("bob", "cy")]),
    "a position as text": (b"x,1,2\ny,2,3\n", {"source": "1", "target": "2"}, [(1, 2), (2, 3)]),
    "a position in the first line": (
        b"1 2 5\n2 3 7\n",
        {"source": "0", "target": "1", "weight": "2"},
        [(1, 2), (2, 3)],
    ),
    "a weight among many": (b"1 2 5 9\n2 3 7 9\n", {"weight": 2}, [(1, 2), (2, 3)]),
    "a name among those of another case": (b"A,a,b\n9,1,2\n", {"source": "a", "target": "b"}, [(1, 2)]),
    "a number above numbers": (
        b"node1 node2 4\nnode2 node3 5\nnode3 node1 6\n",
        {},
        [("node1", "node2"), ("node2", "node3"), ("node3", "node1")],
    ),
    "a number above numbers, behind well-known words": (b"source,target,2019\nann,bob,5\n", {}, [("ann", "bob")]),
    "names that are labels below": (b"bob,ann\n7,8\nbob,7\n", {}, [("bob", "ann"), ("7", "8"), ("bob", "7")]),
    "names that are labels below, said to be names": (
        b"u,v\nann,u\n",
        {"header": True},
        [("ann", "u")],
    ),
    "a header that comes again": (b"from,to\nann,bob\nfrom,to\n", {}, [("ann", "bob"), ("from", "to")]),
    "decimal commas": (b"a;b;1,5\nb;c;2,5\n", {}, [("a", "b"), ("b", "c")]),
    "decimal commas below a header": (b"a;b;w\nx;y;1,5\n", {"source": 0, "target": 1}, [("x", "y")]),
    "more commas than semicolons": (b"ann,bob,x;y\n", {"source": 0, "target": 1}, [("ann", "bob")]),
    "commas in some rows, semicolons in all": (b"a,b;c\nd,e,f;g\n", {}, [("a,b", "c"), ("d,e,f", "g")]),
    "both, and neither even": (b"a,b;c\na,b,c;d;e\n", {"source": 0, "target": 1}, [("a", "b;c"), ("a", "b")]),
    "names in a comment": (b"# id,source,target\n1,2,3\n2,3,4\n", {}, [(2, 3), (3, 4)]),
    "names in a comment, with blanks between": (b"#id source target\r\n1,2,3\r\n", {}, [(2, 3)]),
    "names in a comment that the user gave": (
        b"% a b c\n1 2 3\n2 3 4\n",
        {"source": "B", "target": "C"},
        [(2, 3), (3, 4)],
    ),
    "names in a comment that is not the last": (b"# id,source,target\n# two\n1,2,3\n", {}, [(1, 2)]),
    "names in a comment where the first line is an edge": (
        b"# id,source,target\n1,2,3\n",
        {"header": False},
        [(1, 2)],
    ),
    "more words in a comment than columns": (b"# by source and target\n1 2 3\n", {}, [(1, 2)]),
    "tabs between few blanks": (b"a b\tc\tsrc\tdst\n1\t2 2\t5\t7\n1\t2\t7\t9\n", {}, [(5, 7), (7, 9)]),
    "one tab behind two integers": (b"1 2\t5\n2 3\t7\n", {}, [(1, 2), (2, 3)]),
    "marks of comments as labels": (
        b"source;target\n#a;b\n%c;#a\n# no row\n#;x;y\n",
        {},
        [("#a", "b"), ("%c", "#a")],
    ),
    "marks of comments as labels, quotes that do not match": (b'source,target\na,b\n#a,"b\n', {}, [("a", "b")]),
    "empty columns behind the last": (b"source,target,\n1,2\n2,3,\n3,4, ,\r\n", {}, [(1, 2), (2, 3), (3, 4)]),
    "empty columns behind the last, of text": (b"source\ttarget\na\tb\t\nb\tc\n", {}, [("a", "b"), ("b", "c")]),
    "quotes between tabs": (b'"source"\t"target"\n"a"\t"b c"\n', {}, [("a", "b c")]),
    "quotes between blanks": (b'source target note\n1 2 "x y"\n2 "3" ""\n', {}, [(1, 2), (2, 3)]),
    "quotes in a dictionary": (b'a b {\'x\': "O\'Neil"}\nb c {"y": 1}\n', {}, [("a", "b"), ("b", "c")]),
    "a dictionary below a header": (b"source target data\n1 2 {'w': 3}\n2 3 {}\n", {}, [(1, 2), (2, 3)]),
    "a name that is a number": (b"2019,2020,2021\n5,6,7\n", {"source": "2020", "target": "2021"}, [(6, 7)]),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_and_columns(name: str) -> None:
    data, choice, wanted = HEADERS[name]
    assert rows(read(data, **choice)) == wanted


def test_notes_say_which_way_the_first_line_was_read() -> None:
    assert read(b"from,to\nann,bob\n").origin.notes == ("header row skipped: from,to",)
    unclear = "first line read as an edge, though its labels occur nowhere else: 'anfang', 'ende' "
    assert read(b"anfang,ende\nann,bob\n").origin.notes[0].startswith(unclear)
    for settled in (False, True):
        assert unclear not in str(read(b"anfang,ende\nann,bob\n", header=settled).origin.notes)
    assert read(b"ann,bob\nbob,cy\n").origin.notes == ()
    graph = ww.Graph(io.BytesIO(b"anfang,ende\nann,bob\n"))
    assert graph.cleaned.notes == graph.origin.notes


def test_notes_say_that_the_first_line_may_be_a_header() -> None:
    settle = "(header=True or --header yes if it names the columns)"
    names = f"first line read as an edge, though it looks like names of columns: 'u', 'v' {settle}"
    assert read(b"u v\nv w\nw u\n").origin.notes == (names,)
    numbers = f"first line read as an edge, though it may number the columns: '0', '1', '2' {settle}"
    assert read(b"0,1,2\n5,7,9\n7,8,9\n").origin.notes == (numbers,)
    assert read(b"0,1,2\n5,7,9\n7,8,9\n", header=False).origin.notes == ()
    for usual in (b"0 1\n", b"0 1\n1 2\n", b"0 2\n3 4\n"):
        assert read(usual).origin.notes == ()


def test_notes_say_what_a_comment_named() -> None:
    assert read(b"# id,source,target\n1,2,3\n").origin.notes == ("columns named by a comment: id,source,target",)
    snap = read(b"# FromNodeId\tToNodeId\n0\t1\n")
    assert (snap.origin.notes, snap.columns) == ((), (0, 1))


@pytest.mark.parametrize("rows", [b"1,2\n", b"a,b\n"], ids=["integers", "text"])
def test_notes_count_comments_below_the_first_row(rows: bytes) -> None:
    header = "header row skipped: source,target"
    assert read(b"# above\nsource,target\n" + rows).origin.notes == (header,)
    one = "1 line that begins with # or %, below the first row, skipped as comment"
    assert read(b"source,target\n" + rows + b"# one\n" + rows).origin.notes == (header, one)
    two = "2 lines that begin with # or %, below the first row, skipped as comments"
    for data in (rows + b"#a,b\n \n%\n" + rows, (rows + b"#a,b\n \n%\n" + rows).replace(b",", b" ")):
        assert two in read(data).origin.notes
    assert two in ww.Graph(io.BytesIO(rows + b"#\n%\n" + rows)).cleaned.notes


def test_a_sample_of_labels_that_begin_like_comments() -> None:
    data = b"source,target\n" + b"".join(b"#%d,b%d\n" % (i, i) for i in range(20_000))
    assert len(rows(read(data))) == 20_000


MANY = 300  # rows before the one that is looked at: more than the sample has

LATE: dict[str, tuple[bytes, bytes, str]] = {
    "an empty cell between tabs": (b"2\t3\t4\n", b"1\t\t4\n", "empty label: '1\\t\\t4'"),
    "a blank in a cell between tabs": (b"2\t3\t4\n", b"1 5\t4\t4\n", "label is no non-negative integer: '1 5'"),
    "an empty cell below a header": (b"source\ttarget\tw\n2\t3\t4\n", b"1\t\t4\n", "empty label: '1\\t\\t4'"),
    "a narrow row": (b"u v w\n1 2 3\n", b"1 2\n", "2 columns in the row where the header has 3: '1 2'"),
    "a wide row": (b"u v\n1 2\n", b"1 2 3\n", "3 columns in the row where the header has 2: '1 2 3'"),
    "a narrow row, commas": (b"u,v,w\n1,2,3\n", b"1,2\n", "2 columns in the row where the header has 3: '1,2'"),
    "a wide row, commas": (b"u,v,w\n1,2,3\n", b"1,2,3,4\n", "4 columns in the row where the header has 3: '1,2,3,4'"),
    "a wide row of text": (b"u;v;w\na;b;c\n", b"a;b;c;d\n", "4 columns in the row where the header has 3: 'a;b;c;d'"),
    "a narrow row of text": (b"u\tv\tw\na\tb\tc\n", b"a\tb\n", "2 columns in the row where the header has 3"),
    "a mark of comments": (b"u,v\n1,2\n", b"#3,4\n", "label is no non-negative integer: '#3'"),
}


@pytest.mark.parametrize("name", LATE)
@pytest.mark.parametrize("parse", [_text_arrays.parse_range, _text_kernel.parse_range], ids=["arrays", "kernel"])
def test_rows_behind_the_sample(name: str, parse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, last, message = LATE[name]
    monkeypatch.setattr(text, "_choose_parser", lambda size: parse)
    first_row = begin.split(b"\n")[-2] + b"\n"
    data = begin + first_row * MANY
    for faulty in (data + last, begin + last + first_row):
        with pytest.raises(ww.errors.FormatError) as caught:
            read(faulty)
        line = faulty[: faulty.rindex(last)].count(b"\n") + 1
        assert str(caught.value).startswith(f"<stream>:{line}: {message}")
    assert len(read(data).pairs) == MANY + 1


def test_blanks_and_tabs() -> None:
    assert rows(read(b"1 2\n" + b"2\t3\n" * 2)) == [(1, 2), (2, 3), (2, 3)]
    with pytest.raises(ww.errors.FormatError, match=f"<stream>:{MANY + 1}: only one label in the line: '1 2'"):
        read(b"2\t3\n" * MANY + b"1 2\n")


@pytest.mark.parametrize("parse", [_text_arrays.parse_range, _text_kernel.parse_range], ids=["arrays", "kernel"])
def test_late_rows_that_are_left_to_the_rules(parse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_choose_parser", lambda size: parse)
    data = b"source,target\n" + b"1,2\n" * MANY + b'# one\n2,3,""\n"3", 4 , ,\r\n4,5,\n5,4294967296,""\n'
    found = read(data)
    assert rows(found)[MANY:] == [(2, 3), (3, 4), (4, 5), (5, 2**32)]
    assert "1 line that begins with # or %" in str(found.origin.notes)
    data = b"1 2 x\n" * MANY + b'2 3 "a b" c\n3 4 {"a": 5}\n4 5 " ""b"" "\n'
    found = read(data)
    assert rows(found)[MANY:] == [(2, 3), (3, 4), (4, 5)]
    assert found.ignored_columns == (2, 3)
    for last in (b'2 3 "a b\n', b'2 3 "a"b\n'):
        with pytest.raises(ww.errors.FormatError, match=f"<stream>:{MANY + 1}: quotes do not match"):
            read(b"1 2 x\n" * MANY + last)


def test_utf16_is_called_so(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        (tmp_path / "t.csv").write_text("source,target\n1,2\n", encoding=encoding)
        with pytest.raises(ww.errors.FormatError, match=r"t\.csv:1: UTF-16 text; convert the file to UTF-8 \(iconv"):
            ww.read(tmp_path / "t.csv")


REFUSED: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "row names of R": (
        b"source target w\n1 a b 1\n2 b c 2\n",
        {},
        ":2: 4 columns in the row where the header has 3: '1 a b 1'; give every row a column for every name: quote",
    ),
    "a comma without quotes": (
        b"sender,receiver,amount\nSmith, Ann,bob,5\nbob,cy,6\n",
        {},
        ":2: 4 columns in the row where the header has 3: 'Smith, Ann,bob,5'",
    ),
    "a blank for an empty cell": (b"source target w\n1  4\n2 3 4\n", {}, ":2: 2 columns in the row where the header"),
    "a blank for a missing number": (
        b"a b w\nx y 5\ny z \n",
        {"source": 0, "target": 1},
        ":3: 2 columns in the row where the header has 3: 'y z'",
    ),
    "two separators": (b"a;b,c\n", {}, "commas and semicolons separate the same number of columns; put fields"),
    "more than one partner": (
        b"source,target,dest\n1,2,3\n",
        {"source": "source"},
        "3 columns, and more than one pair of columns is named like the ends of an edge",
    ),
    "an open quote between tabs": (b'u\tv\na\tb\n"a\tb\n', {}, ":3: quotes do not match: '\"a\\tb'"),
    "letters behind a quote between blanks": (b'u v\na b\n"a"b c\n', {}, ":3: quotes do not match: '\"a\"b c'"),
    "a relation between": (
        b"ann,knows,bob\nbob,knows,cy\n",
        {},
        "3 columns, and nothing says which columns are the ends of an edge: 0 ('ann', …), 1 ('knows', …), 2 ('bob', …)",
    ),
    "an id before text": (b"1,ann,bob\n2,bob,cy\n", {}, "0 ('1', …), 1 ('ann', …), 2 ('bob', …)"),
    "unknown names": (b"a,b,c\n1,2,3\n", {}, "3 columns, and nothing says which columns"),
    "a header is a remedy": (b"ann,knows,bob\n", {}, "if the first line names the columns: header=True (--header yes)"),
    "a name of two columns": (
        b"a,a,b\n1,2,3\n",
        {"source": "a", "target": "b"},
        "<stream>: more than one column 'a' to take sources from; there are: 'a', 'a', 'b'",
    ),
    "a name of two columns in other cases": (
        b"Ann,ANN,b\n1,2,3\n",
        {"source": "b", "target": "ann"},
        "<stream>: more than one column 'ann' to take targets from; there are: 'Ann', 'ANN', 'b'",
    ),
    "a return within a line": (b"a,b\n" * MANY + b"c,d\re\n", {}, f":{MANY + 1}: carriage return"),
    "a short line": (b"u,v,w\n1,2,3\n4,5\n", {"weight": "w"}, ":3: 2 columns in the row where the header has 3: '4,5'"),
    "a short line without a header": (
        b"1,2,3\n4,5\n",
        {"weight": 2},
        ":2: no weight in the line: '4,5'; give every edge",
    ),
    "an empty weight": (b"u,v,w\n1,2,\n", {"weight": "w"}, ":2: no weight in the line: '1,2,'"),
    "a word for a weight": (b"u,v,w\n1,2,3\n1,2,x\n", {"weight": "w"}, ":3: weight is no finite number: 'x'"),
    "an infinite weight": (b"u,v,w\n1,2,inf\n", {"weight": "w"}, ":2: weight is no finite number: 'inf'"),
    "an underscore in a weight": (b"u,v,w\n1,2,1_0\n", {"weight": "w"}, ":2: weight is no finite number: '1_0'"),
    "too few columns": (
        b"1,2,3\n4,5\n",
        {"source": 1, "target": 2},
        ":2: 2 columns in the line where 3 are needed: '4,5'",
    ),
    "an integer that is none": (b"a,u,v\nx,1,2\nx,1,-2\nx,3,4\n", {}, ":3: label is no non-negative integer: '-2'"),
    "a large integer": (b"a,u,v\nx,1,2\nx,1,9223372036854775808\n", {}, ":3: label over 2^63 - 1"),
    "a line end in quotes": (
        b'u,v,note\n1,2,"one\n3,4,two"\n',
        {},
        ":2: quotes do not match: '1,2,\"one'; close every quote in its line",
    ),
    "a line end in quotes among names": (b'u,v\n"a\nb",c\n', {}, ":2: quotes do not match"),
    "NUL": (b"u,v\nann,b\0b\n", {}, ":2: NUL byte in a label"),
    "invalid UTF-8": (b"u,v\nann,bob\nann,b\xffb\n", {}, ":3: invalid UTF-8 in a label"),
    "half a character in each of two labels": (b"u,v\nann,bob\na\xc3,\xa4b\n", {}, ":3: invalid UTF-8 in a label"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    data, choice, message = REFUSED[name]
    with pytest.raises(ww.errors.InputError) as caught:
        read(data, **choice)
    assert message in str(caught.value)


def test_quoted_fields() -> None:
    data = b'id,source,target\n1,"Doe, J.","O""Neil"\n2,"b, c" , " d "\n3,e,"Doe, J."\n'
    assert rows(read(data)) == [("Doe, J.", 'O"Neil'), ("b, c", " d "), ("e", "Doe, J.")]


WEIGHTS = [
    "0",
    "-0",
    "1",
    "-1.5",
    "3.",
    ".5",
    "1e3",
    "2.5E-3",
    "123456789012345678901234567890",
    "0.1",
    "1e308",
    "+7",
    "9007199254740993",
    "0.30000000000000004",
    "1e-320",
    "4.35",
    "179769313486231570000000000000",
]


def test_weights_are_the_nearest_doubles() -> None:
    data = b"u,v,w\n" + b"".join(b"%d,%d,%s\n" % (i, i + 1, text.encode()) for i, text in enumerate(WEIGHTS))
    found = read(data, weight="w").weights
    assert found is not None
    assert found.tobytes() == np.array([float(text) for text in WEIGHTS]).tobytes()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_written_weights_come_back(weights: list[float]) -> None:
    data = b"u,v,w\n" + b"".join(b"1,2,%s\n" % repr(weight).encode() for weight in weights)
    found = read(data, weight="w").weights
    assert found is not None
    assert found.tolist() == weights


def text_table(count: int, distinct: int) -> tuple[bytes, list[tuple[str, str]]]:
    numbers = np.random.default_rng(count).integers(0, distinct, (count, 2)).tolist()
    wanted = [(f"näme{u}", f"näme{v}") for u, v in numbers]
    lines = [f"{i};{u};x{i};{v}\n" + "# a comment\n" * (i % 7 == 0) for i, (u, v) in enumerate(wanted)]
    return b"row;from;note;to\n" + "".join(lines).encode(), wanted


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("chunk", [40, 200, 10_000])
def test_numbers_do_not_depend_on_threads_and_chunks(threads: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, wanted = text_table(120, 37)
    monkeypatch.setattr(text, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(text, "BLOCK_BYTES", 3 * chunk)
    found = read(data, threads=threads)
    assert found.names is not None
    assert list(found.names) == list(dict.fromkeys(label for pair in wanted for label in pair))
    assert rows(found) == wanted
    assert found.ignored_columns == ("row", "note")


def test_wide_numbers_in_some_chunks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", 20)
    wanted = [(1, 2), (3, 2**32 - 1), (2**32, 4), (5, 6), (7, 2**63 - 1), (8, 9)]
    assert rows(read(b"note,u,v\n" + b"".join(b"none,%d,%d\n" % pair for pair in wanted))) == wanted


def test_the_first_fault_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", 50)
    data, _ = text_table(60, 9)
    lines = data.split(b"\n")
    lines[40] = b"only one"
    lines[55] = b"1;a\xff;x;b"
    with pytest.raises(ww.errors.FormatError, match=re.escape(":41: only one label in the line")):
        read(b"\n".join(lines), threads=3)


def test_too_many_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", 20)
    data = b"a,b\n# no row\nb,a\na,b\nb,c\nc,d\n"
    with pytest.raises(ww.errors.LimitError, match=re.escape("<stream>:5: vertices 3 over the limit of 2")):
        read_edges(io.BytesIO(data), threads=2, limits=ww.Limits(vertices=2))


field = st.one_of(
    st.text(st.sampled_from('aä,;" \t'), max_size=4),
    st.integers(-5, 2**64).map(str),
    st.sampled_from(['"', '""', '"a"', '"a,b"', '"a""b"', '" x "', "#c", "%", "0", "1.5", "\r", "\xa0", "\x0b"]),
)
line = st.lists(field, min_size=1, max_size=5)


@pytest.mark.parametrize("way", ["kernels"], indirect=True)  # it compares both
@settings(
    max_examples=100 if JIT_DISABLED else 400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(line, max_size=12), st.sampled_from(",;\t "), st.sampled_from(["auto", "int", "text"]), st.booleans())
def test_kernels_and_lines_agree(lines: list[list[str]], separator: str, labels: str, weighs: bool) -> None:
    data = "\n".join(separator.join(fields) for fields in lines).encode()
    choice = {"source": 0, "target": 1, **({"weight": 2} if weighs else {})}
    outcomes = []
    for kernels in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_fields, "_takes_kernels", lambda size, kernels=kernels: kernels)
            try:
                found = read(data, labels=labels, **choice)
            except ww.errors.InputError as error:
                outcomes.append(str(error))
            else:
                weights = None if found.weights is None else found.weights.tolist()
                outcomes.append(str((rows(found), weights, found.ignored_columns, found.origin.notes)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.compiled
@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled with the JIT off")
def test_kernels_have_one_signature() -> None:
    read(b"a,u,v,w\nx,1,2,3\n", weight="w")
    read(b"a,u,v\nx,y,z\n")
    from wedgewise.read import _field_kernel

    assert len(_field_kernel.find_fields.signatures) == 1


def test_quotes_behind_the_first_rows_stop_the_kernel_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, plain = tmp_path / "quoted.csv", "1,2\n" * 150  # so many that the look at the first rows sees no quote
    monkeypatch.setattr(text, "_choose_parser", lambda _size: _text_kernel.parse_range)
    path.write_text(plain + '"3",4,"a ""b"" c"\n5,"6"\n7,8,"a ""b"""\n9,10,x\n')
    assert read_edges(path).pairs[150:].tolist() == [[3, 4], [5, 6], [7, 8], [9, 10]]
    path.write_text(plain + '"5000000000","6"\n')
    assert read_edges(path).pairs[150:].tolist() == [[5_000_000_000, 6]]
    for odd in ('7,8,"open', '7,8,"closed" early', '7,8,"closed"early,9'):
        path.write_text(f"{plain}{odd}\n9,10\n")
        with pytest.raises(FormatError, match=f":151: quotes do not match: '{odd}'"):
            read_edges(path)


def test_one_column_of_weights_is_enough() -> None:
    table = pa.table({"source": [0], "target": [1], "amount": [2.0]})
    with pytest.raises(InputError, match="leave one out"):
        ww.Graph(table, weight="amount", weights="amount")


def test_weights_of_several_chunks_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", 8)
    rows = "".join(f"a{number},b{number},{number}\n" for number in range(20))
    found = ww.Graph(io.BytesIO(f"source,target,amount\n{rows}".encode()), weight="amount")
    assert found.weights is not None
    assert found.weights.tolist() == list(map(float, range(20)))

"""Text edge lists: every form that is read, every fault with its exact message, both parsers alike."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wedgewise.errors import FormatError, InputError, LimitError, UnknownNameError, VerificationError
from wedgewise.machine.jit import JIT_DISABLED, kernel_view
from wedgewise.read import ReadOptions, _text_arrays, _text_kernel, read_edges, text
from wedgewise.read.columns import ANY_COLUMNS
from wedgewise.read.content import open_content
from wedgewise.read.pieces import edges_of_pieces
from wedgewise.read.text import pieces_of_text
from wedgewise.stages import EdgeList
from wedgewise.stages.limits import Limits

PARSERS: dict[str, Callable[..., tuple[int, int, int, int, int]]] = {
    "arrays": _text_arrays.parse_range,
    "kernel": _text_kernel.parse_range,
}
AS_TEXT = 'read it with labels="text" (--labels text) if labels are names'
TWO = "write two labels in every line"
SHARE = 4 if JIT_DISABLED else 1  # of the examples, one in so many


@pytest.fixture(params=PARSERS, autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test of this file runs with either parser of integers."""
    name: str = request.param
    monkeypatch.setattr(text, "_choose_parser", lambda size: PARSERS[name])
    return name


def read(data: bytes, labels: str = "auto", limits: Limits | None = None, threads: int = 2) -> EdgeList:
    limits = limits or Limits()
    with open_content(io.BytesIO(data), limits) as content:
        pieces = pieces_of_text(content, ReadOptions(labels, ANY_COLUMNS, limits, threads, whole=True))
        return edges_of_pieces(pieces, limits)


def cut_into_chunks(patch: pytest.MonkeyPatch, size: int) -> None:
    """Let either parser work on chunks of about `size` bytes."""
    patch.setattr(text, "CHUNK_BYTES", size)
    patch.setattr(text, "ARRAY_CHUNK_BYTES", size)


def pairs(data: bytes, labels: str = "auto") -> list[list[int]]:
    found = read(data, labels)
    assert found.names is None
    assert found.vertices is None
    return [[int(u), int(v)] for u, v in found.pairs]


def named(data: bytes, labels: str = "auto") -> list[tuple[str, str]]:
    found = read(data, labels)
    assert found.names is not None
    assert found.vertices == len(found.names)
    return [(found.names[u], found.names[v]) for u, v in found.pairs]


INTEGER_FILES = {
    "snap": b"# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n",
    "konect": b"% sym unweighted\n% 2 3 3\n0 1\n1 2\n",
    "csv": b"0,1\n1,2\n",
    "csv with blanks": b"0, 1\n 1 ,\t2 \n",
    "tsv": b"0\t1\n1\t2\n",
    "semicolons": b"0;1\n1;2\n",
    "csv with a header": b"source,target\n0,1\n1,2\n",
    "csv with an unknown header": b"anfang,ende\n0,1\n1,2\n",
    "csv with a quoted header": b'"source","target"\n0,1\n1,2\n',
    "header between comments": b"# first\nFromNodeId ToNodeId\n# second\n0 1\n1 2\n",
    "crlf": b"0 1\r\n1 2\r\n",
    "crlf twice": b"0 1\r\r\n1 2\r\r\n",
    "crlf comment": b"# hello\r\n0 1\r\n\r\n1 2\r\n",
    "no last newline": b"0 1\n1 2",
    "return instead of the last newline": b"0 1\n1 2\r",
    "blank lines": b"\n\n0 1\n \t\n1 2\n\n",
    "blanks around": b"  0   1  \n\t1 \t 2\t\n",
    "vertical tab and form feed": b"0\x0b1\n1\x0c2\n",
    "mark of byte order": b"\xef\xbb\xbf0 1\n1 2\n",
    "mark of byte order before a comment": b"\xef\xbb\xbf# hello\n0 1\n1 2\n",
    "comments in the middle": b"0 1\n# middle\n % other \xff\x00 bytes\n1 2\n",
    "quoted": b'"0","1"\n"1","2"\n',
    "leading zeros": b"00 0000000000000000000000000001\n01 2\n",
}


@pytest.mark.parametrize("name", INTEGER_FILES)
def test_integer_files(name: str) -> None:
    found = read(INTEGER_FILES[name])
    assert found.pairs.tolist() == [[0, 1], [1, 2]]
    assert found.pairs.dtype == np.uint32
    assert found.pairs.flags.c_contiguous
    assert (found.names, found.vertices, found.ignored_columns) == (None, None, ())


def test_origin_tells_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_bytes(b"source,target\n0,1\n")
    with open_content(path, Limits()) as content:
        origin = pieces_of_text(content, ReadOptions("auto", ANY_COLUMNS, Limits(), 1)).origin
    assert (origin.name, origin.format) == (str(path), "text")
    assert origin.notes == ("header row skipped: source,target",)
    assert read(b"0 1\n").origin.notes == ()


@pytest.mark.parametrize(
    ("data", "columns"),
    [
        (b"0 1 2.5\n1 2\n", 1),
        (b"0 1 2.5 1234567\n1 2 x y  z \n", 3),
        (b"0,1,2.5\n1,2,,\n", 2),
        (b"0,1,a name, and more\r\n1,2\r\n", 2),
        (b"0;1;0,5\n1;2;1,5\n", 1),
        (b"0 1 hello,world\n1 2 bye,bye\n", 1),
        (b"0 1 \xff\x00\n1 2\n", 1),
    ],
)
def test_extra_columns_are_dropped_and_counted(data: bytes, columns: int) -> None:
    found = read(data)
    assert found.pairs.tolist() == [[0, 1], [1, 2]]
    assert len(found.ignored_columns) == columns


@pytest.mark.parametrize("labels", ["auto", "int"])
@pytest.mark.parametrize("data", [b"", b"\n\n", b"# only\n% comments", b"\xef\xbb\xbf", b"source target\n"])
def test_files_without_pairs(data: bytes, labels: str) -> None:
    found = read(data, labels)
    assert found.pairs.dtype == np.uint32
    assert (found.pairs.shape, found.names) == ((0, 2), None)


@pytest.mark.parametrize("label", [2**32 - 1, 2**32, 10**15 - 1, 10**15, 10**16, 10**18, 2**63 - 1])
@pytest.mark.parametrize("lines", [1, 300])
def test_width_follows_the_largest_label(label: int, lines: int) -> None:
    data = b"1 2\n" * (lines - 1) + b"%d 3\n" % label + b"4 %d\n" % label + b"5 6\n" * 20
    found = read(data)
    assert found.pairs.dtype == (np.uint32 if label < 2**32 else np.uint64)
    assert found.pairs[lines - 1 : lines + 1].tolist() == [[label, 3], [4, label]]
    assert found.pairs[lines + 1 :].tolist() == [[5, 6]] * 20


def test_every_number_of_digits() -> None:
    values = [int("1234567890123456789"[:digits]) for digits in range(1, 20)]
    wanted = [[u, v] for u in values for v in values]
    assert pairs(b"".join(b"%d\t%d\n" % (u, v) for u, v in wanted)) == wanted
    assert pairs(b"".join(b"%d,%d\r\n" % (u, v) for u, v in wanted)) == wanted


TEXT_FILES = {
    "blanks": (b"alice bob\nbob  carol 7\n", [("alice", "bob"), ("bob", "carol")]),
    "dois": (b"10.1000/182 10.1000/7\n", [("10.1000/182", "10.1000/7")]),
    "tabs keep spaces": (b"Alan Turing\tKurt G\xc3\xb6del\n", [("Alan Turing", "Kurt Gödel")]),
    "commas": (b"alice, bob\nbob,carol\r\n", [("alice", "bob"), ("bob", "carol")]),
    "quotes": (b'"Doe, J.","O""Neil"\nalice,bob\n', [("Doe, J.", 'O"Neil'), ("alice", "bob")]),
    "semicolons": (b'a;"b;c"\nd;e;1\n', [("a", "b;c"), ("d", "e")]),
    "known header": (b"Source,Target\nalice,bob\n", [("alice", "bob")]),
    "no header": (b"anfang,ende\nalice,bob\n", [("anfang", "ende"), ("alice", "bob")]),
    "some numbers": (b"alice 1\n1 2\nbob 3\n", [("alice", "1"), ("1", "2"), ("bob", "3")]),
    "comments": (b"# one\nalice bob\n% two \xff\n\nbob carol", [("alice", "bob"), ("bob", "carol")]),
    "empty comment": (b"#\nalice bob\nbob carol\n", [("alice", "bob"), ("bob", "carol")]),
    "quotes between blanks": (b'"a b" "c ""d"""  7\n', [("a b", 'c "d"')]),
    "quotes between tabs": (b'"a\tb"\t"c"\n"c"\t d \n', [("a\tb", "c"), ("c", "d")]),
}


@pytest.mark.parametrize("name", TEXT_FILES)
def test_text_files(name: str) -> None:
    data, wanted = TEXT_FILES[name]
    assert named(data) == wanted


def test_text_labels_are_numbered_by_first_appearance() -> None:
    found = read(b"b a 1 2\na c\nb b\n")
    assert found.names == ["b", "a", "c"]
    assert found.pairs.tolist() == [[0, 1], [1, 2], [0, 0]]
    assert found.pairs.dtype == np.uint32
    assert len(found.ignored_columns) == 2


def test_labels_override() -> None:
    assert named(b"01 1\n", labels="text") == [("01", "1")]
    assert pairs(b"01 1\n") == [[1, 1]]
    with pytest.raises(FormatError, match="<stream>:1: label is no non-negative integer: 'alice'"):
        read(b"alice bob\ncarol dave\n", labels="int")
    with pytest.raises(UnknownNameError, match="no kind of labels named 'float'; there are: auto, int, text"):
        read_edges(io.BytesIO(b"0 1\n"), labels="float")


def test_half_of_the_lines_decide() -> None:
    assert named(b"1 2\na b\nc d\n") == [("1", "2"), ("a", "b"), ("c", "d")]
    with pytest.raises(FormatError, match="<stream>:2: label is no non-negative integer: 'a'"):
        read(b"1 2\na b\n")


def test_lines_after_the_sample_do_not_decide() -> None:
    with pytest.raises(FormatError, match="<stream>:101: label is no non-negative integer: 'a'"):
        read(b"1 2\n" * 100 + b"a b\n" * 1000)


def test_long_preamble_does_not_hide_the_labels() -> None:
    assert named(b"# words\n" * 50_000 + b"alice bob\n") == [("alice", "bob")]
    assert pairs(b"# words\n" * 50_000 + b"1,2\n") == [[1, 2]]


MANGLED = {
    "negative": (b"0 1\n1 -3\n", 2, "label is no non-negative integer: '-3'", AS_TEXT),
    "fraction": (b"0 1\n1.5 2\n", 2, "label is no non-negative integer: '1.5'", AS_TEXT),
    "nan": (b"0 1\nnan 2\n", 2, "label is no non-negative integer: 'nan'", AS_TEXT),
    "infinity": (b"0 1\n2 inf\n", 2, "label is no non-negative integer: 'inf'", AS_TEXT),
    "exponent": (b"0 1\n1e3 2\n", 2, "label is no non-negative integer: '1e3'", AS_TEXT),
    "underscore": (b"0 1\n1_000 2\n", 2, "label is no non-negative integer: '1_000'", AS_TEXT),
    "plus": (b"0 1\n+5 2\n", 2, "label is no non-negative integer: '+5'", AS_TEXT),
    "hexadecimal": (b"0 1\n0x1F 2\n", 2, "label is no non-negative integer: '0x1F'", AS_TEXT),
    "unicode digits": ("0 1\n１２ 2\n".encode(), 2, "label is no non-negative integer: '１２'", AS_TEXT),
    "2^63": (b"0 1\n9223372036854775808 2\n", 2, "label over 2^63 - 1: '9223372036854775808'", AS_TEXT),
    "2^64": (b"0 1\n18446744073709551616 2\n", 2, "label over 2^63 - 1: '18446744073709551616'", AS_TEXT),
    "20 digits": (
        b"0 1\n2 99999999999999999999\n",
        2,
        "label over 2^63 - 1: '99999999999999999999'",
        AS_TEXT,
    ),
    "word": (b"0 1\n1 2\n2 x\n", 3, "label is no non-negative integer: 'x'", AS_TEXT),
    "word behind digits": (b"0 1\n1 2x\n", 2, "label is no non-negative integer: '2x'", AS_TEXT),
    "comment behind a pair": (b"0 1\n1 #2\n", 2, "label is no non-negative integer: '#2'", AS_TEXT),
    "comma among blanks": (b"0 1\n1 2\n2,3 4\n", 3, "label is no non-negative integer: '2,3'", AS_TEXT),
    "blank among commas": (b"0,1\n1,2\n2,3 4\n", 3, "label is no non-negative integer: '3 4'", AS_TEXT),
    "colon": (b"0 1\n1 2\n0:1 4\n", 3, "label is no non-negative integer: '0:1'", AS_TEXT),
    "lines are counted": (
        b"# c\n\n0 1\n\r\n% c\n1 -2\n",
        6,
        "label is no non-negative integer: '-2'",
        AS_TEXT,
    ),
    "header and fault": (b"source,target\n1,-1\n", 2, "label is no non-negative integer: '-1'", AS_TEXT),
    "second header": (b"from to\n0 1\nfrom to\n", 3, "label is no non-negative integer: 'from'", AS_TEXT),
    "one label": (b"0 1\n7\n", 2, "only one label in the line: '7'", f"{TWO}, or # before a comment"),
    "one label at the end": (
        b"0 1\n 7 ",
        2,
        "only one label in the line: '7'",
        f"{TWO}, or # before a comment",
    ),
    "one name": (b"a b\nb\n", 2, "only one label in the line: 'b'", f"{TWO}, or # before a comment"),
    "count before pairs": (
        b"3\n0 1\n",
        1,
        "only one label in the line: '3'",
        f"{TWO}, or # before a comment",
    ),
    "empty first": (b"0,1\n,2\n", 2, "empty label: ',2'", TWO),
    "empty second": (b"0,1\n1,\n", 2, "empty label: '1,'", TWO),
    "empty middle": (b"0,1\n1,,2\n", 2, "empty label: '1,,2'", TWO),
    "empty name": (b"a;b\n; c\n", 2, "empty label: '; c'", TWO),
    "empty quoted name": (b'a,b\n"",c\n', 2, "empty label: '\"\",c'", TWO),
    "open quote": (
        b'a,b\n"c,d\n',
        2,
        "quotes do not match: '\"c,d'",
        "close every quote in its line and double those inside; line ends inside quotes are not read",
    ),
    "NUL in an integer": (
        b"0 1\n1\x00 2\n",
        2,
        "NUL byte in a label: '1\\x00'",
        "convert the file to UTF-8 text; it is binary or UTF-16",
    ),
    "NUL in a name": (
        b"a b\nc\x00 d\n",
        2,
        "NUL byte in a label: 'c\\x00'",
        "convert the file to UTF-8 text; it is binary or UTF-16",
    ),
    "a hole of NUL bytes": (
        b"0 1\n" + bytes(12),
        2,
        "only one label in the line: '" + "\\x00" * 12 + "'",
        f"{TWO}, or # before a comment",
    ),
    "Latin-1 in an integer": (
        b"0 1\n1 2\xb2\n",
        2,
        "invalid UTF-8 in a label: '2\\\\xb2'",
        "convert the file to UTF-8",
    ),
    "Latin-1 in a name": (
        b"a b\nG\xf6del c\n",
        2,
        "invalid UTF-8 in a label: 'G\\\\xf6del'",
        "convert the file to UTF-8",
    ),
    "surrogate in a name": (
        b"a b\n\xed\xa0\x80 c\n",
        2,
        "invalid UTF-8 in a label: '\\\\xed\\\\xa0\\\\x80'",
        "convert the file to UTF-8",
    ),
    "returns as line ends": (
        b"0 1\r1 2\r",
        1,
        "carriage return inside a line: '0 1\\r1 2'",
        "convert the line ends to \\n or \\r\\n (for instance with tr '\\r' '\\n')",
    ),
    "return in a comment": (
        b"# hello\r0 1\r1 2\r",
        1,
        "carriage return inside a line: '# hello\\r0 1\\r1 2'",
        "convert the line ends to \\n or \\r\\n (for instance with tr '\\r' '\\n')",
    ),
    "return in a later comment": (
        b"0 1\n# hello\r0 1\n",
        2,
        "carriage return inside a line: '# hello\\r0 1'",
        "convert the line ends to \\n or \\r\\n (for instance with tr '\\r' '\\n')",
    ),
    "return behind columns": (
        b"0 1 x\r2 3\n",
        1,
        "carriage return inside a line: '0 1 x\\r2 3'",
        "convert the line ends to \\n or \\r\\n (for instance with tr '\\r' '\\n')",
    ),
    "return among names": (
        b"a b\nc\rd\n",
        2,
        "carriage return inside a line: 'c\\rd'",
        "convert the line ends to \\n or \\r\\n (for instance with tr '\\r' '\\n')",
    ),
    "long label is shortened": (
        b"0 1\n2 " + b"-" * 300 + b"\n",
        2,
        "label is no non-negative integer: '" + "-" * 79 + "…'",
        AS_TEXT,
    ),
}


@pytest.mark.parametrize("name", MANGLED)
@pytest.mark.parametrize("far", [False, True], ids=["short", "far"])
def test_mangled_files(name: str, far: bool) -> None:
    data, line, reason, remedy = MANGLED[name]
    if far:
        data = b"# comment\n" * 100 + data
        line = line + 100
    with pytest.raises(FormatError) as caught:
        read(data)
    assert str(caught.value) == f"<stream>:{line}: {reason}; {remedy}"
    assert caught.value.line == line


def test_utf16() -> None:
    for order in ("utf-16-le", "utf-16-be"):
        with pytest.raises(FormatError) as caught:
            read("\ufeff0 1\n".encode(order))
        wanted = "<stream>:1: UTF-16 text; convert the file to UTF-8 (iconv -f utf-16 -t utf-8)"
        assert str(caught.value) == wanted


LONG = Limits(line_bytes=20)


@pytest.mark.parametrize(
    ("data", "line", "length"),
    [
        (b"0 1\n1 2" + b" " * 30 + b"\n", 2, 33),
        (b"0 1\n1" + b" " * 30 + b"2\n", 2, 32),
        (b"0 1\n1 2 " + b"x" * 30, 2, 34),
        (b"0 1\n" + b"0" * 30 + b"1 2\n", 2, 33),
        (b"0 1\n" + b"x" * 40 + b"\n", 2, 40),
        (b"# " + b"x" * 40 + b"\n0 1\n", 1, 42),
        (b"0 1\n# " + b"x" * 40 + b"\n", 2, 42),
        (b"a b\n" + b"c" * 40 + b" d\n", 2, 42),
        (b"0 1\n12345678901 123456789\n", 2, 21),
    ],
)
def test_long_lines(data: bytes, line: int, length: int) -> None:
    with pytest.raises(LimitError) as caught:
        read(data, limits=LONG)
    assert str(caught.value) == (
        f"<stream>:{line}: line bytes {length} over the limit of 20; "
        "raise it with limits=Limits(line_bytes=…) if the file is trusted"
    )


def test_line_of_exactly_the_limit() -> None:
    assert len(read(b"1234567890 123456789\n12 345678901234 5678", limits=LONG).ignored_columns) == 1


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gz"])
def test_endless_line(monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]) -> None:
    monkeypatch.setattr(text, "BLOCK_BYTES", 4096)
    with pytest.raises(LimitError, match=r"<stream>:3: line bytes .* over the limit of 20;"):
        read(compress(b"0 1\n2 3\n" + b"7" * 100_000), limits=LONG)


@pytest.mark.parametrize("labels", ["int", "text"])
@pytest.mark.parametrize("length", [21, 50, 71, 500])
@pytest.mark.parametrize("before", range(10, 24))
def test_long_lines_across_chunks(monkeypatch: pytest.MonkeyPatch, labels: str, length: int, before: int) -> None:
    cut_into_chunks(monkeypatch, 50)
    data = b"0 1\n" * before + b"3 " * (length // 2) + b"4" * (length % 2) + b"\n-1\n"
    with pytest.raises(LimitError, match=rf"<stream>:{before + 1}: line bytes \d+ over the limit of 20;"):
        read(data, labels, limits=LONG)


def test_chunks_are_bounded_by_the_line_limit() -> None:
    content = np.frombuffer(b"0 1\n" * 10 + b"7" * 500 + b"\n0 1\n", np.uint8)
    cuts = text.cut_at_newlines(content, 50, 20)
    assert (cuts[0], cuts[-1]) == (0, len(content))
    assert max(np.diff(cuts)) == 71
    assert text.cut_at_newlines(content, 30, 600) == [0, 32, 541, 545]


def test_pairs_and_names_are_limited() -> None:
    with pytest.raises(LimitError, match="<stream>: pairs 3 over the limit of 2"):
        read(b"0 1\n1 2\n2 3\n", limits=Limits(pairs=2))
    with pytest.raises(LimitError, match="<stream>: pairs 3 over the limit of 2"):
        read(b"a b\na b\na b\n", limits=Limits(pairs=2))
    with pytest.raises(LimitError, match="<stream>:2: vertices 3 over the limit of 2"):
        read(b"a b\na c\n", limits=Limits(vertices=2))


def random_pairs(count: int, top: int) -> tuple[bytes, list[list[int]]]:
    rng = np.random.default_rng(count + top)
    wanted = rng.integers(0, top, size=(count, 2)).tolist()
    return b"".join(b"%d %d\n" % (u, v) for u, v in wanted), wanted


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_chunks_join_in_order(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    cut_into_chunks(monkeypatch, 100)
    data, wanted = random_pairs(500, 10**6)
    assert read(data, threads=threads).pairs.tolist() == wanted
    spread = data.replace(b"\n", b"\n# a comment\n\n")
    assert read(spread, threads=threads).pairs.tolist() == wanted


def test_fault_in_the_first_bad_chunk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_into_chunks(monkeypatch, 50)
    data, _ = random_pairs(200, 1000)
    lines = data.split(b"\n")
    lines[120], lines[150], lines[180] = b"5 -6", b"5 99999999999", b"-7 5"
    with pytest.raises(FormatError, match=r"<stream>:121: .*'-6'"):
        read(b"\n".join(lines))
    lines[110] = b"5 99999999999"
    with pytest.raises(FormatError, match=r"<stream>:121: .*'-6'"):
        read(b"\n".join(lines))


@pytest.mark.parametrize("block", [7, 64, 1000])
def test_blocks_join_in_order(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(text, "BLOCK_BYTES", block)
    data, wanted = random_pairs(100, 1000)
    data = b"# head\r\nsource target\n" + data + b"# middle\n1 2"
    assert pairs(gzip.compress(data)) == [*wanted, [1, 2]]
    with pytest.raises(FormatError, match=r"<stream>:105: .*'-1'"):
        read(gzip.compress(data + b"\n3 -1\n5 6\n"))
    names = b"".join(b"v%d w%d\n" % (u, v) for u, v in wanted)
    assert named(gzip.compress(names)) == [(f"v{u}", f"w{v}") for u, v in wanted]


def test_wide_labels_in_a_late_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK_BYTES", 64)
    data, wanted = random_pairs(200, 1000)
    found = read(data + b"99999999999 1\n" + data)
    assert found.pairs.dtype == np.uint64
    assert found.pairs.tolist() == [*wanted, [99999999999, 1], *wanted]


TOKENS = st.sampled_from(
    [
        b"0",
        b"7",
        b"42",
        b"007",
        b"1234567",
        b"12345678",
        b"123456789",
        b"123456789012345",
        b"1234567890123456",
        b"4294967295",
        b"4294967296",
        b"9223372036854775807",
        b"0" * 30 + b"5",
    ]
)
BAD_TOKENS = st.sampled_from(
    [b"-3", b"1.5", b"x", b"\0", b"\xff", b"9223372036854775808", b"9" * 40, b"", b"#", b":", b"/"]
)


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A file and its separator; about half of the files have a fault."""
    delimiter = draw(st.sampled_from([b" ", b",", b";", b"\t"]))
    usual = [b" ", b"\t", b"  ", b"\x0b\t"] if delimiter == b" " else [delimiter, b" " + delimiter + b"\x0b"]
    spoiled = draw(st.booleans())
    gap = st.sampled_from(usual + ([b",", b" ", b",,", b"\r"] if spoiled else []))
    token = TOKENS | BAD_TOKENS if spoiled else TOKENS
    lines = []
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            line = draw(st.sampled_from([b"", b" ", b"# c, d", b"\t%", b"#\xff"]))
        else:
            line = draw(st.sampled_from([b"", b"", b" "])) + draw(token)
            for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
                line += draw(gap) + draw(token)
        lines.append(line + draw(st.sampled_from([b"\n", b"\n", b"\r\n", b" \n"])))
    data = b"".join(lines)
    return (data[:-1] if draw(st.booleans()) else data), delimiter


which_compares_both = pytest.mark.parametrize("parser", ["kernel"], indirect=True)


def outcome(
    parser: str, data: bytes, delimiter: bytes, line_limit: int, mask: int, width: int = 0
) -> tuple[object, ...]:
    out = np.zeros(2 * (data.count(b"\n") + 1), dtype=np.uint32 if mask < 2**32 else np.uint64)
    whole = kernel_view(np.frombuffer(data + b"8" * 70, dtype=np.uint8))
    word = np.uint64
    numbers = word(line_limit), word(width), word(mask)
    found = PARSERS[parser](whole, word(0), word(len(data)), np.uint8(delimiter[0]), *numbers, out)
    status, position, count, columns, comments = map(int, found)
    return status, position, out[: 2 * count].tolist(), (columns, comments) if status == 0 else None


@which_compares_both
@settings(max_examples=600 // SHARE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(), st.sampled_from([2**20, 15]), st.sampled_from([2**32 - 1, 2**63 - 1]), st.sampled_from([0, 2, 3]))
def test_both_parsers_agree(case: tuple[bytes, bytes], line_limit: int, mask: int, width: int) -> None:
    data, delimiter = case
    if width and delimiter != b" " and (b"#" in data or b"%" in data):
        width = 0  # the kernel leaves it to the rules whether such a line is a row
    kernel, arrays = (outcome(parser, data, delimiter, line_limit, mask, width) for parser in ("kernel", "arrays"))
    assert kernel == arrays


def answer(parser: str, data: bytes, labels: str) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_choose_parser", lambda size: PARSERS[parser])
        cut_into_chunks(patch, 64)
        try:
            found = read(data, labels)
        except InputError as error:
            return type(error), str(error)
        return found.pairs.tolist(), found.pairs.dtype, found.ignored_columns, found.names, found.origin


@which_compares_both
@settings(max_examples=300 // SHARE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(), st.sampled_from(["auto", "int"]))
def test_both_paths_give_the_same_edges_and_errors(case: tuple[bytes, bytes], labels: str) -> None:
    assert answer("kernel", case[0], labels) == answer("arrays", case[0], labels)


@which_compares_both
@settings(max_examples=300 // SHARE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.sampled_from(["auto", "int", "text"]))
def test_any_bytes_read_or_raise_ours(data: bytes, labels: str) -> None:
    if data.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")):
        return
    assert answer("kernel", data, labels) == answer("arrays", data, labels)


@settings(max_examples=200 // SHARE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)), max_size=30))
def test_written_pairs_come_back(wanted: list[tuple[int, int]]) -> None:
    data = b"".join(b"%d %d\n" % pair for pair in wanted)
    assert pairs(data) == [list(pair) for pair in wanted]


names_of_letters = st.text(
    st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], blacklist_characters='#%"\u00a0'),
    min_size=1,
)


@settings(max_examples=200 // SHARE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(names_of_letters, names_of_letters), max_size=20))
def test_written_names_come_back(wanted: list[tuple[str, str]]) -> None:
    data = b"x y\n" + b"".join(f"{u} {v}\n".encode() for u, v in wanted)
    assert named(data, labels="text") == [("x", "y"), *wanted]


def test_small_files_do_not_wait_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(_text_kernel.parse_range, "_loaded", {})
    assert text._choose_parser(text.KERNEL_BYTES - 1) is _text_arrays.parse_range
    wanted = _text_arrays.parse_range if JIT_DISABLED else _text_kernel.parse_range
    assert text._choose_parser(text.KERNEL_BYTES) is wanted


def test_large_files_are_worth_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(text, "JIT_DISABLED", False)
    assert text._choose_parser(text.KERNEL_BYTES) is _text_kernel.parse_range


@pytest.mark.parametrize(
    ("status", "message"),
    [(1, "a label over 2^63 - 1 was not refused"), (2, ":1: a valid line was refused")],
)
def test_a_defect_of_a_parser_is_no_answer(monkeypatch: pytest.MonkeyPatch, status: int, message: str) -> None:
    monkeypatch.setattr(text, "_choose_parser", lambda size: lambda *arguments: (status, 0, 0, 0, 0))
    with pytest.raises(VerificationError, match=re.escape(message)):
        read(b"0 1\n")


@pytest.mark.compiled
@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled with the JIT off")
def test_kernel_has_one_signature_per_width() -> None:
    for mask in (2**32 - 1, 2**63 - 1):
        outcome("kernel", b"0 1\n", b" ", 100, mask)
    read(b"0 1\n")
    assert len(_text_kernel.parse_range.signatures) == 2

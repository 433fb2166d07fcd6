"""Whatever labels and ids are written, in any format and compression: they are read back as they were, or refused."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import invoke
from hypothesis import given, settings
from hypothesis import strategies as st

import wedgewise as ww
from wedgewise.errors import InputError
from wedgewise.read import read_edges
from wedgewise.write.answers import some_edges, with_value, write_answers
from wedgewise.write.edges import WRITERS, write_edges

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("zstandard")

COMPRESSIONS = ("", ".gz", ".bz2", ".xz", ".zst")
TABLES = ("parquet", "arrow", "feather")
ROWS_ONLY = ("mtx", "metis", "graph")
SPECIAL = (
    *("source", "target", "from", "to", "u", "v", "Source", "TARGET", "node1", "node2", "id", "weight"),
    *(
        "a;b",
        "c;d",
        "1;2",
        "3;4;5",
        "a,b",
        "a b",
        "a\tb",
        " a",
        "a ",
        "a\nb",
        "a\rb",
        "a\vb",
        "\f",
        '"a"',
        'a"b',
        "'a'",
    ),
    *(
        "#a",
        "%a",
        "a#",
        "%%MatrixMarket",
        "01",
        "1",
        "2",
        "1e5",
        "nan",
        "inf",
        "-1",
        "+1",
        "1_0",
        "0x1",
        "١",
        "½",
        "1.5",
    ),
    *("", "a\0b", "\ufeff", "\ufeffa", "PAR1", "ARROW1", "PK\x03\x04", "BZh9", "\x1f", "é", "e\u0301", "É", "ß", "SS"),
    *("null", "NA", "?", "-", "{'a':1}", "a\u2028b", "a\x85b", "\x1c", "x" * 5000, "=1+1", "\\", "\\N", "true", "None"),
)
IDS = (
    0,
    1,
    2,
    5,
    35615,
    67324752,
    827474256,
    1330795073,
    12631,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**53 + 1,
    2**63 - 1,
)

labels = st.lists(
    st.sampled_from(SPECIAL) | st.text(st.characters(codec="utf-8"), max_size=4), min_size=2, max_size=6, unique=True
)
suffixes = st.tuples(st.sampled_from(list(WRITERS)), st.sampled_from(COMPRESSIONS))


def rows_over(vertices: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    end = st.integers(0, vertices - 1)
    return st.lists(st.tuples(end, end), min_size=1, max_size=8)


def examples(ordinary: int, deep: int) -> Callable[[Any], Any]:
    """The number of examples of an ordinary run, or of a deep one."""
    return pytest.mark.parametrize(
        "most", [pytest.param(ordinary, id="few"), pytest.param(deep, id="many", marks=pytest.mark.deep)]
    )


def search(most: int, check: Callable[..., None], **drawn: Any) -> None:
    settings(max_examples=most, deadline=None, derandomize=True, database=None)(given(**drawn)(check))()


def written(folder: str, suffix: tuple[str, str], pairs: list[tuple[int, int]], **how: Any) -> Path | None:
    """The file; None where it was refused, which leaves nothing and names the file."""
    path = Path(folder) / f"g.{suffix[0]}{suffix[1]}"
    refusal = None
    try:
        write_edges(np.array(pairs, np.int64).reshape(-1, 2), path, **how)
    except InputError as error:
        refusal = str(error)
    assert refusal is None or (str(path) in refusal and os.listdir(folder) == [])
    return path if refusal is None else None


@examples(100, 5_000)
def test_text_labels_come_back_or_are_refused(most: int) -> None:
    def check(names: list[str], suffix: tuple[str, str], data: st.DataObject) -> None:
        pairs = data.draw(rows_over(len(names))) * data.draw(st.sampled_from([1, 40]))
        with tempfile.TemporaryDirectory() as folder:
            path = written(folder, suffix, pairs, labels=names)
            if path is None:
                assert suffix[0] not in TABLES
                return
            found = read_edges(path)
        assert found.names is not None
        assert [(found.names[u], found.names[v]) for u, v in found.pairs.tolist()] == [
            (names[u], names[v]) for u, v in pairs
        ]

    search(most, check, names=labels, suffix=suffixes, data=st.data())


@examples(100, 5_000)
def test_integers_come_back_or_are_refused(most: int) -> None:
    def check(pairs: list[tuple[int, int]], suffix: tuple[str, str], labelled: bool) -> None:
        if suffix[0] in ROWS_ONLY:
            pairs = [(u % 9, v % 9) for u, v in pairs]
        numbers = sorted({end for pair in pairs for end in pair})
        vertices = [(numbers.index(u), numbers.index(v)) for u, v in pairs]
        with tempfile.TemporaryDirectory() as folder:
            if labelled:
                path = written(folder, suffix, vertices, labels=np.array(numbers))
            else:
                path = written(folder, suffix, pairs)
            if path is None:
                assert suffix[0] not in ("txt", "tsv", "csv", "npy", "npz", *TABLES)
                return
            found = read_edges(path)
            rows = [(int(u), int(v)) for u, v in found.pairs.tolist()]
        assert found.names is None
        if suffix[0] in ROWS_ONLY:
            assert sorted(sorted(row) for row in rows) == sorted(sorted(pair) for pair in pairs)
            assert found.vertices == max(map(max, pairs)) + 1
        else:
            assert rows == pairs

    end = st.sampled_from(IDS) | st.integers(0, 2**63 - 1)
    drawn = st.lists(st.tuples(end, end), min_size=1, max_size=8)
    search(most, check, pairs=drawn, suffix=suffixes, labelled=st.booleans())


HEADED = {
    "the names of columns": [("source", "target"), ("b", "c")],
    "text over numbers": [("a", "b"), ("1", "2"), ("c", "d")],
    "a byte order mark": [("\ufeffa", "b"), ("b", "c")],
    "a signature of bzip2": [("BZh91AY&SY", "b"), ("b", "c")],
}


@pytest.mark.parametrize(("name", "separator"), [("txt", " "), ("csv", ","), ("tsv", "\t")])
@pytest.mark.parametrize("rows", HEADED.values(), ids=HEADED)
def test_a_header_tells_what_the_first_edge_is(
    tmp_path: Path, rows: list[tuple[str, str]], name: str, separator: str
) -> None:
    source, output = tmp_path / "in.parquet", tmp_path / f"out.{name}"
    parquet.write_table(pa.table(list(zip(*rows, strict=True)), ["source", "target"]), source)
    invoke("convert", str(source), str(output))
    lines = [("source", "target"), *rows]
    assert output.read_text(encoding="utf-8") == "".join(f"{u}{separator}{v}\n" for u, v in lines)
    before, after = ww.read(source), ww.read(output)
    assert (list(after.labels), after.edges.tolist()) == (list(before.labels), before.edges.tolist())


def test_semicolons_do_not_separate_labels(tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    write_edges(np.array([[0, 1], [1, 2]]), output, labels=["a;b", "c;d", "e;f"])
    assert list(ww.read(output).labels) == ["a;b", "c;d", "e;f"]


REFUSED: list[tuple[str, list[str], str]] = [
    ("txt", ["01", "1"], "text labels such as '01' would be read back as numbers; write .parquet or .arrow"),
    ("csv", ["1;2;7", "3"], "the label '1;2;7' would not be read back as it is; write .parquet or .arrow"),
    ("tsv", ["nan", "1e5"], "text labels such as 'nan' would be read back as numbers; write .parquet or .arrow"),
    ("csv", ["1;2;a", "b", "c", "d"], "the label '1;2;a' would not be read back as it is; write .parquet or .arrow"),
    ("txt", ["x", "y", "1", "2", "3", "4"], "text labels such as '1' would be read back as numbers; write .parquet"),
    ("txt", ["a", "b", "1", "2", "source", "d"], "the label 'source' would not be read back as it is; write .parquet"),
    ("txt", ["x" * 2**20, "b"], "makes a line of more than 1,048,576 bytes, which readers of text refuse; write .parq"),
]


@pytest.mark.parametrize(("name", "names", "message"), REFUSED)
def test_labels_that_would_not_come_back_are_named(tmp_path: Path, name: str, names: list[str], message: str) -> None:
    pairs = np.arange(len(names)).reshape(-1, 2)
    with pytest.raises(InputError) as caught:
        write_edges(pairs, tmp_path / f"g.{name}", labels=names)
    assert str(caught.value).startswith(f"{tmp_path}/g.{name}: ")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000
    write_edges(pairs, tmp_path / "g.parquet", labels=names)
    assert list(ww.read(tmp_path / "g.parquet").labels) == names


MISTAKEN: list[tuple[str, str | None, list[int], str]] = [
    ("g.bel", "csv", [0, 1], "would be read as bel, by its suffix or its first bytes, and is text"),
    ("g.csv", "metis", [0, 1], "would be read as text, by its suffix or its first bytes, and is metis"),
    ("g.bel", None, [2**31, 1], "64-bit ids that all differ look like 32-bit pairs too; name the file .bel64"),
    ("g.mtx", None, [2**31, 1], "2,147,483,649 vertices, of which this format has a number or a row each, are more"),
]


@pytest.mark.parametrize(("name", "format", "pair", "message"), MISTAKEN)
def test_files_that_would_be_mistaken_are_refused(
    tmp_path: Path, name: str, format: str | None, pair: list[int], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        write_edges(np.array([pair]), tmp_path / name, format=format)
    assert str(caught.value).startswith(f"{tmp_path / name}: {message}")
    assert os.listdir(tmp_path) == []
    write_edges(np.array([pair]), tmp_path / "g.npy")
    assert read_edges(tmp_path / "g.npy").pairs.tolist() == [pair]


@pytest.mark.parametrize("name", ["g.bel", "g.bel32", "g.bel.gz"])
@pytest.mark.parametrize("first", [35615, 827474256], ids=["gzip", "Parquet"])
def test_signatures_in_raw_pairs_are_data(tmp_path: Path, name: str, first: int) -> None:
    write_edges(np.array([[first, 1]]), tmp_path / name)
    assert read_edges(tmp_path / name).pairs.tolist() == [[first, 1]]


def test_the_signature_of_a_stream_in_raw_pairs_is_data(tmp_path: Path) -> None:
    write_edges(np.array([[2**32 - 1, 1]]), tmp_path / "g.bel64")
    assert read_edges(tmp_path / "g.bel64").pairs.tolist() == [[2**32 - 1, 1]]


def test_small_blocks_are_judged_together(tmp_path: Path) -> None:
    rows = np.array([[0, 1], [2, 3], [4, 5]])
    write_edges(iter(rows.reshape(-1, 1, 2)), tmp_path / "g.txt", labels=["a", "b", "1", "2", "c", "d"])
    assert list(ww.read(tmp_path / "g.txt").labels) == ["a", "b", "1", "2", "c", "d"]


@pytest.mark.parametrize("first", ["#a", "%a", " a", "a\t", 'a"', "a,b", "\ufeffa"])
def test_edges_of_an_answer_come_back(tmp_path: Path, first: str) -> None:
    names = [first, "b", "c"]
    graph = ww.Graph([(first, "b"), ("b", "c"), ("c", first)])
    for answers in (some_edges(graph, np.arange(3)), with_value(some_edges(graph, np.arange(3)), "truss", 3)):
        write_answers(answers, tmp_path / "answer.csv")
        found = ww.read(tmp_path / "answer.csv")
        assert sorted(found.labels) == sorted(names)
        assert found.m == 3
        with (tmp_path / "answer.csv").open(encoding="utf-8", newline="") as file:
            assert {cell for row in csv.DictReader(file) for cell in (row["u"], row["v"])} == set(names)


def test_negative_labels_of_an_answer_stay_negative(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    graph = ww.Graph(networkx.Graph([(-1, 2), (2, 3), (3, -1)]))
    write_answers(some_edges(graph, np.arange(3)), tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text() == "u,v\n-1,2\n-1,3\n2,3\n"


@pytest.mark.parametrize("suffix", TABLES)
def test_labels_of_two_gibibytes_a_block(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's usual strings have no room for them."""
    monkeypatch.setattr("wedgewise.write.binary.MAX_STRING_BYTES", 1000)
    names = ["a", "b" * 30, "c"]
    write_edges(np.array([[0, 1], [1, 2]]), tmp_path / f"g.{suffix}", labels=names)
    assert list(ww.read(tmp_path / f"g.{suffix}").labels) == names
    graph = ww.Graph([(names[0], names[1]), (names[1], names[2])])
    write_answers(some_edges(graph, np.arange(2)), tmp_path / f"answer.{suffix}")
    assert sorted(ww.read(tmp_path / f"answer.{suffix}").labels) == sorted(names)

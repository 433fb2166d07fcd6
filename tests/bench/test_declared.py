"""Suites from TOML: what a file says becomes cells, and what it says wrongly is named with its place and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from wedgewise.errors import FormatError, MissingFileError, UnknownNameError
from wedgewise_bench.matrix import Matrix, joined
from wedgewise_bench.record import Cell
from wedgewise_bench.suite_files import declared_suites, read_suite
from wedgewise_bench.systems import algorithms_on

LEAST = 'name = "few"\nsummary = "a few"\n'
WHOLE = """
name = "few"
summary = "a few"
title = "A few"
paper = "eager"
graphs = ["kronecker-8-seed1"]
real = ["ca-GrQc"]
limit_seconds = 1.5
repeats = 2
tables = ["answers", "metrics"]
counts = ["wedgewise"]

[too_slow]
networkx = ["kronecker-8-seed1"]

[[matrix]]
systems = ["wedgewise"]
devices = ["cpu", "cuda"]
algorithms = ["keystone", "trust"]
threads = [2, 1]

[[matrix]]
systems = ["wedgewise"]
devices = ["cuda"]
algorithms = ["wetric[spread=4]"]
questions = ["count"]
rows = ["count", "edges"]
graphs = ["kronecker-9-seed1"]

[matrix.knobs]
matrix_length = [0, 1024]
cooperation = ["on"]

[[matrix]]
threads = "sweep"
questions = ["k_truss[k=kmax]"]

[[target]]
graph = "kronecker-8-seed1"
divided = ["wedgewise", "trussness"]
by = ["graphblas", "count"]
at_least = 2
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "few.toml"
    path.write_text(text)
    return path


def ways_of(cells: list[Cell]) -> list[tuple[str, str, int]]:
    return [(cell.way, cell.device, cell.threads) for cell in cells]


def test_everything_that_a_file_may_say(tmp_path: Path) -> None:
    suite = read_suite(written(tmp_path, WHOLE))
    assert (suite.name, suite.summary, suite.title, suite.paper) == ("few", "a few", "A few", "eager")
    assert (suite.graphs, suite.real) == (("kronecker-8-seed1",), ("ca-GrQc",))
    assert (suite.limit_seconds, suite.repeats, suite.tables) == (1.5, 2, ("answers", "metrics"))
    assert (suite.counts, suite.too_slow) == (("wedgewise",), {"networkx": ("kronecker-8-seed1",)})
    assert (suite.devices, suite.questions, suite.rows) == (
        ("cpu", "cuda"),
        ("count", "k_truss[k=kmax]"),
        ("count", "edges"),
    )
    assert suite.systems == ()  # the last matrix names nobody
    (target,) = suite.targets
    assert (target.divided, target.by, target.bound, target.is_least) == (
        ("wedgewise", "trussness"),
        ("graphblas", "count"),
        2.0,
        True,
    )
    first, second, last = suite.matrices
    assert ways_of(list(first.cells(["g"]))) == [
        ("keystone", "cpu", 1),  # trust is nowhere but on a GPU
        ("keystone", "cpu", 2),
        ("keystone", "cuda", 2),  # threads change nothing there
        ("trust", "cuda", 2),
    ]
    assert {cell.way for cell in second.cells(["g"])} == {
        f"wetric[spread=4,matrix_length={length},cooperation=on]" for length in (0, 1024)
    }
    assert (second.graphs, last.sweeps_threads, last.threads) == (("kronecker-9-seed1",), True, ())


def test_little_need_be_said(tmp_path: Path) -> None:
    suite = read_suite(written(tmp_path, LEAST + "real = 5\n[[matrix]]\n"))
    assert suite.matrices == (Matrix(),)
    assert (suite.real, suite.tables, suite.devices) == (5, ("answers",), ("cpu",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "few"', "few.toml: summary: is missing; add it"),
        (LEAST, "few.toml: matrix: is missing; add [[matrix]] with at least one key, such as systems"),
        (LEAST + "matrix = 3", "matrix: 3 is no list of values; write it as [ …, … ], with at least one"),
        (LEAST + "matrix = [3]", "matrix: 3 is no table; write it as [name] with lines of KEY = VALUE"),
        (LEAST + "[[matrix]]\ngraph = []", "few.toml: matrix 1, graph: is no key of this place; there are: systems, "),
        (LEAST + "speed = 3\n[[matrix]]", "few.toml: speed: is no key of this place; there are: name, summary, "),
        (LEAST + "repeats = 0\n[[matrix]]", "few.toml: repeats: 0 is no whole number from 1 on; write one"),
        (LEAST + "repeats = true\n[[matrix]]", "repeats: True is no whole number"),
        (LEAST + "limit_seconds = -1\n[[matrix]]", "limit_seconds: -1 is no number above 0; write one"),
        (LEAST + "graphs = 'g'\n[[matrix]]", "graphs: 'g' is no list of values"),
        (LEAST + "graphs = [3]\n[[matrix]]", "graphs: 3 is no text; write it in quotation marks"),
        (LEAST + "tables = 'pie'\n[[matrix]]", "tables: 'pie' is none of count, answers, cuts, ways, metrics"),
        (LEAST + "paper = 'nix'\n[[matrix]]", "paper: 'nix' is none of bbtc, eager, itc, trust, wetric"),
        (LEAST + "[[matrix]]\n[[matrix]]\ndevices = ['gpu']", "matrix 2, devices: 'gpu' is none of cpu, cuda, hybrid"),
        (LEAST + "[[matrix]]\nrows = ['all']", "matrix 1, rows: 'all' is none of count, edges, file; name one of"),
        (LEAST + "[[matrix]]\nquestions = ['nix']", "matrix 1, questions: no question named 'nix'; there are: count"),
        (LEAST + "[[matrix]]\nalgorithms = ['a[']", "matrix 1, algorithms: 'a[' is neither a name nor NAME[KEY=VALUE"),
        (LEAST + "[[matrix]]\nthreads = 'all'", "matrix 1, threads: 'all' is no list of values"),
        (LEAST + "[[matrix]]\n[matrix.knobs]\nspread = [1]", "matrix 1, knobs: are of no algorithm; name the"),
        (LEAST + "[[matrix]]\n[[target]]\ngraph = 'g'", "few.toml: target 1, divided: is missing; add it"),
        (
            LEAST + "[[matrix]]\n[[target]]\ngraph = 'g'\ndivided = ['a', 'count']\nby = ['b']",
            "target 1, by: ['b'] is no pair; name a system and a question",
        ),
        (
            LEAST + "[[matrix]]\n[[target]]\ngraph = 'g'\ndivided = ['a', 'count']\nby = ['b', 'count']",
            "target 1, at_most: or at_least says what the ratio is to be; give one of them",
        ),
        ("name = ", "few.toml: is no TOML (Invalid value (at end of document)); mend that place"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_suite(written(tmp_path, text))
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"few\.toml: cannot be read \(No such file or directory\); name a file"):
        read_suite(tmp_path / "few.toml")


def test_every_file_of_the_package_is_named_as_its_suite() -> None:
    assert all(name == suite.name for name, suite in declared_suites().items())


def test_every_algorithm_is_that_of_the_device() -> None:
    cells = list(Matrix(systems=("wedgewise",), devices=("cuda", "hybrid"), algorithms=("all",)).cells(["g"]))
    assert {cell.algorithm for cell in cells if cell.device == "hybrid"} == set(algorithms_on("hybrid"))
    assert {cell.algorithm for cell in cells if cell.device == "cuda"} < set(algorithms_on("cuda"))  # some find trusses
    assert {"trust", "keystone"} <= {cell.algorithm for cell in cells if cell.device == "cuda"}


def test_algorithms_and_knobs_that_are_not_there_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="nix"):
        list(Matrix(algorithms=("nix",)).cells(["g"]))
    with pytest.raises(UnknownNameError, match="keystone has no knob 'wings'"):
        list(Matrix(algorithms=("keystone",), knobs={"wings": (1,)}).cells(["g"]))


def test_cells_of_several_matrices_are_joined_by_graph() -> None:
    ours = [Cell("a", "x", graph, row, 2) for graph in "gh" for row in ("count", "edges")]
    theirs = [Cell("b", "y", graph, "count", threads) for graph in "gh" for threads in (1, 2)]
    assert [(cell.graph, cell.row, cell.threads, cell.system) for cell in joined([*ours, *theirs, ours[0]])] == [
        *(("g", "count", 1, "b"), ("g", "count", 2, "a"), ("g", "count", 2, "b"), ("g", "edges", 2, "a")),
        *(("h", "count", 1, "b"), ("h", "count", 2, "a"), ("h", "count", 2, "b"), ("h", "edges", 2, "a")),
    ]

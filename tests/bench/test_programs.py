"""Programs of other people: their file is checked, and however they end is a result of the cell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wedgewise as ww
from bench.canned_cells import SETTING
from bench.test_limits import has_ended, wait_until
from wedgewise.errors import FormatError, MissingFileError
from wedgewise_bench import external, watch
from wedgewise_bench.external import External, class_of
from wedgewise_bench.graphs import BenchGraph, prepare
from wedgewise_bench.programs import PAIRS, PLACEHOLDERS, read_programs, sources
from wedgewise_bench.record import Cell, Outcome
from wedgewise_bench.runner import Bench

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-program.md"
COMPILER = shutil.which("cc")
PAIRS_OF_K4 = np.array([[9, 2], [2, 9], [2, 2], [2, 5], [5, 9], [7, 9], [7, 2], [5, 7]], np.int32)
"""All six edges between the vertices 2, 5, 7 and 9, one of them twice, and a loop: four triangles."""

EDGES_OF_K4 = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
TELLING = f"""#!{sys.executable} -S
import os, sys, time
match sys.argv[1]:
    case "show":
        print(*sys.argv[2:], "triangles: 4")
    case "print":
        print(sys.argv[2])
    case "complain":
        sys.stderr.write("started\\nout of /secret/luck\\n")
        sys.exit(3)
    case "die":
        os.kill(os.getpid(), 11)
    case "convert":
        open("converted", "wb").write(open(sys.argv[2], "rb").read())
    case "hang":
        import subprocess
        helper = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], process_group=0)
        open(sys.argv[2], "w").write(f"{{helper.pid}}\\n")
        helper.wait()
    case "hold":
        hoard = bytearray(b"x" * 2**20) * 100
        print(sys.argv[2:], "in 2 us, triangles: 4")
    case "eat":
        hoard = bytearray(b"x" * 2**20) * 700
        time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def declare(folder: Path, command: object = ("./tell", "show"), **keys: object) -> Path:
    """A file with one program, which does what its first argument says."""
    program = folder / "tell"
    program.write_text(TELLING)
    program.chmod(0o755)
    keys = {"name": "tell", "command": command, "count": r"triangles: (\S+)"} | keys
    text = "".join(f"{key} = {literal(value)}\n" for key, value in keys.items() if value is not None)
    (folder / "programs.toml").write_text(f"[[program]]\n{text}")
    return folder / "programs.toml"


def literal(value: object) -> str:
    """A value of a test as TOML writes it."""
    if isinstance(value, str):
        return json.dumps(value)
    return f"[{', '.join(map(literal, value))}]" if isinstance(value, list | tuple) else repr(value)


def system_of(path: Path) -> External:
    return class_of(str(path), "tell")("default", 3, {})


def counted(path: Path, pairs: Any = PAIRS_OF_K4) -> int:
    system = system_of(path)
    return system.count(system.prepare(pairs))


def run_cell(folder: Path, path: Path, row: str = "count", seconds: float = 20.0) -> Outcome:
    """The outcome of a cell of the program, on four vertices."""
    (system,) = sources(path)
    graph = prepare(BenchGraph("k4", lambda: "mark", lambda: PAIRS_OF_K4, 4), folder / "work")
    limits = watch.CellLimits(seconds, 400 * 2**20, repeats=2)
    bench = Bench({"tell": system}, {"k4": graph}, limits, SETTING, folder / "results.jsonl")
    return bench.run_cell(Cell("tell", "default", "k4", row, 1))


def text_pairs(path: Path) -> list[tuple[int, int]]:
    return [(int(first), int(second)) for first, second in map(str.split, path.read_text().splitlines())]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ("simple", EDGES_OF_K4),
        ("both", [*EDGES_OF_K4, *((v, u) for u, v in EDGES_OF_K4)]),
        ("raw", [tuple(pair) for pair in PAIRS_OF_K4.tolist()]),
    ],
)
def test_files_hold_the_pairs_that_were_asked_for(tmp_path: Path, pairs: str, expected: list[tuple[int, int]]) -> None:
    words = ["./tell", "show", "{text}", "{npy}", "{binary}", "{vertices}", "{edges}", "{threads}", "{scratch}"]
    values = system_of(declare(tmp_path, words, pairs=pairs)).prepare(PAIRS_OF_K4)
    assert text_pairs(Path(values["text"])) == expected
    assert np.load(values["npy"]).tolist() == np.fromfile(values["binary"], "<i4").reshape(-1, 2).tolist()
    assert np.load(values["npy"]).tolist() == [list(pair) for pair in expected]
    numbers = (int(values[name]) for name in ("vertices", "edges", "threads"))
    assert tuple(numbers) == (10 if pairs == "raw" else 4, len(expected), 3)
    assert list(Path(values["scratch"]).iterdir()) == []


def test_only_files_that_are_named_are_written(tmp_path: Path) -> None:
    values = system_of(declare(tmp_path, ["./tell", "show", "--graph={mtx}"])).prepare(PAIRS_OF_K4)
    graph = Path(values["mtx"])
    assert sorted(item.name for item in graph.parent.iterdir()) == ["graph.mtx", "scratch"]
    assert ww.count(graph) == 4


def test_files_of_an_empty_graph(tmp_path: Path) -> None:
    for pairs in PAIRS:
        path = declare(tmp_path, ["./tell", "show", "{text}", "{edges} {vertices}"], pairs=pairs)
        assert counted(path, np.empty((0, 2), np.uint32)) == 4


def test_words_reach_the_program_as_they_are(tmp_path: Path) -> None:
    """Blanks, quotes and dollars mean nothing; doubled braces are braces."""
    path = declare(
        tmp_path, ["./tell", "show", "a  b;$HOME", "*", "{{}}"], count=r"^a  b;\$HOME \* \{\} triangles: (4)"
    )
    assert counted(path) == 4


def test_preparations_are_run_once_before(tmp_path: Path) -> None:
    convert = ["./tell", "convert", "{text}"]
    path = declare(tmp_path, ["./tell", "show", "{scratch}"], prepare=[convert])
    values = system_of(path).prepare(PAIRS_OF_K4)
    assert text_pairs(Path(values["scratch"]) / "converted") == EDGES_OF_K4


def test_files_are_replaced_by_those_of_the_next_graph(tmp_path: Path) -> None:
    system = system_of(declare(tmp_path, ["./tell", "show", "{text}"]))
    first = system.prepare(PAIRS_OF_K4)
    assert text_pairs(Path(system.prepare_file(first["text"])["text"])) == EDGES_OF_K4
    assert not Path(first["text"]).exists()


@pytest.mark.parametrize("number", ["1234567", "1,234,567", "1'234'567", "1_234_567"])
def test_the_last_number_counts_with_or_without_separators(tmp_path: Path, number: str) -> None:
    path = declare(tmp_path, ["./tell", "print", f"triangles: 5\ntriangles: {number}\n"])
    assert counted(path) == 1_234_567


def test_only_the_end_of_a_long_output_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "SEARCHED_BYTES", 20)
    assert counted(declare(tmp_path, ["./tell", "print", "triangles: 4" + "." * 5], count=r"triangles: (\d+)")) == 4
    with pytest.raises(RuntimeError, match="nothing matches"):
        counted(declare(tmp_path, ["./tell", "print", "triangles: 4" + "." * 20]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["print", ""], r"tell: nothing matches count = .*, it printed nothing"),
        (["print", "a\nb\n\n"], r"tell: nothing matches count = .*, its last words: b"),
        (["print", "triangles: -4"], r"tell printed '-4' for its count, no whole number; mend its regex"),
        (["complain"], r"\./tell: exit status 3, its last words: out of /secret/luck"),
        (["die"], r"\./tell: SIGSEGV, it printed nothing"),
    ],
)
def test_what_is_no_answer_is_said(tmp_path: Path, words: list[str], message: str) -> None:
    with pytest.raises(RuntimeError, match=f"^{message}$"):
        counted(declare(tmp_path, ["./tell", *words]))


def test_its_own_clock_is_taken_for_a_loaded_graph(tmp_path: Path) -> None:
    words = ["./tell", "print", "kernel 1.5 ms, triangles: 4"]
    system = system_of(declare(tmp_path, words, seconds=r"kernel (\S+)", unit="ms"))
    prepared = system.prepare(PAIRS_OF_K4)
    system.count(prepared)
    assert system.measured() == {"stages": {"kernel": 0.0015}, "edges": 6}
    assert system.facts(prepared)["clock"] == "ours"
    system.prepare_question("count", prepared)
    assert system.measured() == {"stages": {"kernel": 0.0015}, "edges": 6, "seconds": 0.0015}
    assert system.facts(prepared) == {
        "program": " ".join(words),
        "version": system.program.version,
        "pairs": "simple",
        "clock": "its own",
    }


@pytest.mark.parametrize("seconds", ["fast", "-1", "nan", "inf"])
def test_a_time_is_a_number(tmp_path: Path, seconds: str) -> None:
    path = declare(tmp_path, ["./tell", "print", f"kernel {seconds}, triangles: 4"], seconds=r"kernel (\S+),")
    with pytest.raises(RuntimeError, match=f"tell printed '{seconds}' for its seconds"):
        counted(path)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["./tell"], None),
        (["sh", "tell"], None),
        (["./missing"], "no program ./missing that can be run; build it there"),
        (["./programs.toml"], "no program ./programs.toml that can be run; build it there"),
        (["no-such-program"], "no program no-such-program that can be run; put its folder on PATH"),
    ],
)
def test_a_program_that_is_not_there_is_unavailable(tmp_path: Path, command: list[str], message: str | None) -> None:
    assert system_of(declare(tmp_path, command)).why_unavailable() == message
    assert system_of(declare(tmp_path, ["./tell"], prepare=[command])).why_unavailable() == message


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"name": None}, r"program 1 has no name that can be used; write"),
        ({"name": "a b"}, r"has no name that can be used; write name = letters"),
        ({"command": "./tell {text}"}, r"\(tell\) has a command that is no list of words"),
        ({"command": []}, r"has a command that is no list of words"),
        ({"command": ["", "x"]}, r"has a command that is no list of words"),
        ({"command": ["./tell", 3]}, r"has a command that is no list of words"),
        ({"command": ["{text}"]}, r"begins a command with '\{text\}'; name the program there"),
        ({"command": ["./tell", "{txt}"]}, r"where \{txt\} stands for nothing; there are: \{text\}, \{mtx\}"),
        ({"command": ["./tell", "{text!r}"]}, r"where \{text!r\} stands for nothing"),
        ({"command": ["./tell", "{threads:04}"]}, r"where \{threads:04\} stands for nothing"),
        ({"command": ["./tell", "{"]}, r"has the word '\{' \(.*\); write \{\{ and \}\} for braces"),
        ({"count": None}, r"has no count that can be used; write count = 'a regular"),
        ({"count": "("}, r"has count = '\(', no regular expression"),
        ({"count": "12"}, r"has count = '12' with 0 groups; put the number, alone, into parentheses"),
        ({"count": "(1)(2)"}, r"with 2 groups"),
        ({"seconds": 3}, r"has no seconds that can be used"),
        ({"unit": "ms"}, r"has a unit and no seconds; add the regular expression of its clock"),
        ({"seconds": "(.)", "unit": "min"}, r"has unit = 'min'; unit is one of: s, ms, us, ns"),
        ({"device": "tpu"}, r"has device = 'tpu'; device is one of: cpu, cuda"),
        ({"pairs": ["raw"]}, r"has pairs = \['raw'\]; pairs is one of: simple, both, raw"),
        ({"pairs": "both", "command": ["./tell", "{mtx}"]}, r"asks for \{mtx\} with pairs = 'both'"),
        ({"prepare": "./convert"}, r"has a prepare that is no list"),
        ({"prepare": ["./convert"]}, r"has a prepare that is no list of words"),
        ({"version": 1.2}, r"has no version that can be used"),
        ({"regex": "x"}, r"has no key 'regex'; known are: name, command, count, seconds, unit"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused(tmp_path: Path, keys: dict[str, object], message: str) -> None:
    path = declare(tmp_path, **keys)
    with pytest.raises(FormatError, match=f"^{re.escape(str(path))}: (program 1 )?.*{message}"):
        read_programs(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds something else than programs"),
        ("program = 3", "holds something else than programs"),
        ("program = [3]", "program 1 has no name"),
        ("[[program]]\nname = 'a'\n[other]\n", "holds something else than programs"),
        ("[[program]\n", "not a TOML file"),
        ("\udcff", "not a TOML file"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "programs.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(FormatError, match=message):
        read_programs(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"none\.toml: No such file or directory; name a file that has"):
        read_programs(tmp_path / "none.toml")


def test_names_are_not_taken_twice(tmp_path: Path) -> None:
    path = declare(tmp_path, device="cuda")
    (source,) = sources(path, taken=["igraph"])
    assert (source.name, source.source, source.devices, source.questions) == ("tell", path, ("cuda",), ("count",))
    with pytest.raises(FormatError, match="'tell' is a system of the comparison already"):
        sources(path, taken=["igraph", "tell"])
    path.write_text(path.read_text() * 2)
    with pytest.raises(FormatError, match="two programs are named 'tell'"):
        sources(path)


def test_what_is_recorded_of_a_program_follows_from_what_its_file_says(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    marks = [
        sources(declare(folder, words, **keys))[0].version
        for folder, words, keys in (
            (tmp_path, ["./tell"], {"version": "1.2"}),
            (tmp_path / "elsewhere", ["./tell"], {"version": "1.2"}),
            (tmp_path, ["./tell", "more"], {"version": "1.2"}),
            (tmp_path, ["./tell"], {}),
        )
    ]
    assert marks[0] == marks[1]
    assert len(set(marks)) == 3
    assert marks[0].startswith("1.2 declared ")
    assert marks[3].startswith("declared ")


def test_a_cell_has_its_time_its_memory_and_how_it_was_run(tmp_path: Path) -> None:
    words = ["./tell", "hold", "{binary}"]
    outcome = run_cell(tmp_path, declare(tmp_path, words, seconds="in (.) us", unit="us", version="1.2"))
    assert (outcome.status, outcome.message, outcome.answer, outcome.edges) == ("ok", "", 4, 6)
    assert outcome.seconds == outcome.stages["kernel"] == (2e-6, 2e-6)
    assert outcome.peak_bytes is not None
    assert 100 * 2**20 < outcome.peak_bytes < 400 * 2**20
    assert outcome.facts == {
        "program": "./tell hold {binary}",
        "version": "1.2",
        "pairs": "simple",
        "clock": "its own",
    }


def test_a_wrong_count_is_wrong(tmp_path: Path) -> None:
    outcome = run_cell(tmp_path, declare(tmp_path, ["./tell", "print", "triangles: 5"]))
    assert (outcome.status, outcome.message) == ("wrong", "5 instead of 4")
    assert len(outcome.seconds) == 2
    assert all(seconds > 0 for seconds in outcome.seconds)


def test_a_crash_and_a_missing_program_are_results(tmp_path: Path) -> None:
    crashed = run_cell(tmp_path, declare(tmp_path, ["./tell", "complain"]))
    assert (crashed.status, crashed.stage) == ("crashed", "count")
    assert crashed.message == "RuntimeError: ./tell: exit status 3, its last words: out of luck"
    assert run_cell(tmp_path, declare(tmp_path, ["./missing"])).status == "unavailable"


def test_a_time_limit_ends_a_program_with_what_it_started_and_its_files(tmp_path: Path, temporary: Path) -> None:
    outcome = run_cell(tmp_path, declare(tmp_path, ["./tell", "hang", "{folder}/pid", "{text}"]), seconds=3)
    assert (outcome.status, outcome.message) == ("timeout", "count took over 3 s")
    wait_until(lambda: has_ended(int((tmp_path / "pid").read_text())))
    assert list(temporary.iterdir()) == []


def test_a_memory_limit_holds_for_the_program(tmp_path: Path) -> None:
    outcome = run_cell(tmp_path, declare(tmp_path, ["./tell", "eat"]))
    assert (outcome.status, outcome.message) == ("out_of_memory", "count took over 419,430,400 bytes")
    assert outcome.peak_bytes is not None
    assert 400 * 2**20 < outcome.peak_bytes < 4 * 2**30


@pytest.mark.deep
def test_no_program_outlives_a_killed_parent(tmp_path: Path) -> None:
    path = declare(tmp_path, ["./tell", "hang", "{folder}/pid"])
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from pathlib import Path\n"
        "from bench.test_programs import run_cell\n"
        f"run_cell(Path({str(tmp_path)!r}), Path({str(path)!r}))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    pid_file = tmp_path / "pid"
    wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    parent.kill()
    parent.wait()
    wait_until(lambda: has_ended(int(pid_file.read_text())))


@pytest.mark.deep
def test_a_file_row_takes_the_whole_process(tmp_path: Path) -> None:
    words = ["./tell", "show", "{text}", "in 2 us"]
    outcome = run_cell(tmp_path, declare(tmp_path, words, seconds="in (.) us", unit="us"), row="file")
    assert (outcome.status, outcome.answer) == ("ok", 4)
    assert min(outcome.seconds) > 0.005
    assert outcome.facts["clock"] == "ours"


def test_the_page_names_every_placeholder() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in PLACEHOLDERS if f"`{{{name}}}`" not in text] == []
    assert [name for name in PAIRS if f'`"{name}"`' not in text] == []


@pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    text, path = PAGE.read_text(encoding="utf-8"), tmp_path / "programs.toml"
    blocks = {kind: re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for kind in ("c", "toml")}
    (tmp_path / "tc.c").write_text(blocks["c"][0])
    path.write_text("\n".join(blocks["toml"]))
    subprocess.run([str(COMPILER), "-o", "tc", "tc.c"], cwd=tmp_path, check=True)
    program, *others = read_programs(path)
    assert [item.name for item in others] == ["gapbs", "trust-authors"]
    system = class_of(str(path), program.name)("default", 1, {})
    assert system.why_unavailable() is None
    assert system.count(system.prepare(PAIRS_OF_K4)) == 4
    assert system.measured()["stages"]["kernel"] >= 0

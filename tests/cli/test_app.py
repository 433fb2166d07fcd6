"""The command line: what it prints where, its exit codes, and how it ends early."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import KARATE, PATIENCE, RESULT_KEYS, answer_of, interrupt, invoke, run
from helpers.graphs import TRUTHS

import wedgewise as ww
from wedgewise.cli import demo, doctor
from wedgewise.cli.app import app
from wedgewise.cli.convert import ALL_ROWS, NO_LABELS
from wedgewise.cli.options import parse_size
from wedgewise.datasets import Dataset
from wedgewise.errors import MissingFileError
from wedgewise.generate import GENERATORS, complete
from wedgewise.machine import jit, progress, signatures
from wedgewise.read import FORMATS
from wedgewise.report.text import bytes_text, result_text
from wedgewise.write.edges import write_edges

SMALL_PARAMETERS: dict[str, dict[str, str]] = {
    "kronecker": {"scale": "6", "edgefactor": "4", "seed": "7"},
    "rmat": {"scale": "6", "a": "0.5"},
    "uniform": {"n": "50", "m": "200"},
    "torus3d": {"side": "3"},
    "small_world": {"n": "30", "k": "4", "p": "0"},
    "complete": {"n": "9"},
    "complete_tripartite": {"a": "2", "b": "3", "c": "4"},
    "turan": {"n": "10", "r": "3"},
    "octahedron": {"dimension": "4"},
    "star": {"leaves": "5"},
    "wheel": {"rim": "6"},
    "windmill": {"blades": "4"},
    "book": {"pages": "7"},
    "cycle": {"n": "3"},
    "path": {"n": "5"},
    "petersen": {},
    "hypercube": {"dimension": "4"},
    "grid8": {"side": "5"},
    "kronecker_of_stars": {"leaves": "3,4,5", "variant": "B1k"},
}


@pytest.fixture
def triangle_file(tmp_path: Path) -> str:
    """Loops, copies, a reversed copy and a third column around two triangles and a leaf."""
    path = tmp_path / "small.txt"
    path.write_text("0 1 9\n1 0 9\n1 2 9\n2 0 9\n2 0 9\n2 2 9\n3 1 9\n3 2 9\n3 7 9\n")
    return str(path)


def test_count_in_a_pipe_is_the_integer_alone() -> None:
    result = invoke("count", KARATE)
    assert (result.exit_code, result.stdout) == (0, "45\n")


def test_json_has_the_keys_of_result_and_schema() -> None:
    record = answer_of("count", KARATE)
    assert set(record) == {"schema"} | RESULT_KEYS
    assert (record["schema"], record["answer"], record["n"], record["m"]) == (1, 45, 34, 78)
    assert list(record["seconds"]) == ["read and clean", "orient", "count"]


def test_count_reads_standard_input() -> None:
    assert invoke("count", "-", stdin="a b\nb c\nc a\n").stdout == "1\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--algorithm", "example"),
        ("--algorithm", "reference", "--order", "core", "--relabel", "indegree"),
        ("--device", "cpu", "--threads", "3"),
        ("--memory", "1GB"),
        ("--labels", "text"),
        ("--format", "text", "--drop-leaves"),
        ("--limit", "vertices=34", "--limit", "pairs=1k"),
    ],
    ids=" ".join,
)
def test_options_do_not_change_the_count(options: tuple[str, ...]) -> None:
    assert invoke("count", KARATE, *options).stdout == "45\n"


def test_options_reach_the_plan() -> None:
    record = answer_of("count", KARATE, "--algorithm", "latapy", "--knob", "threshold=5", "--threads", "3")
    assert record["algorithm"] == "latapy"
    assert record["plan"]["threads"] == 3
    assert list(record["plan"]["knobs"].values()) == [5]


def test_verify_says_how() -> None:
    assert "recounted by" in answer_of("count", KARATE, "--verify")["verified"]


def test_cleaning_is_reported(triangle_file: str) -> None:
    cleaned = answer_of("count", triangle_file)["cleaned"]
    assert cleaned == {
        "pairs": 9,
        "edges": 6,
        "loops": 1,
        "duplicates": 1,
        "reversed_copies": 1,
        "dropped_columns": 1,
        "leaves_dropped": 0,
        "columns": [0, 1],
        "ignored_columns": [2],
        "notes": [],
    }
    report = result_text(ww.run("count", ww.read(triangle_file, drop_leaves=True)), "1 triangle")
    assert "dropped: 1 loop, 1 duplicate, 1 reversed copy, 1 further column (position 2), 1 leaf" in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("count", "nowhere.txt"), "error: nowhere.txt: no such file; check the path\n"),
        (("count", KARATE, "--algorithm", "nix"), "error: no algorithm named 'nix' on cpu"),
        (("count", KARATE, "--order", "nix"), "error: keystone takes the orders"),
        (("count", KARATE, "--device", "nix"), "error: no device named 'nix'"),
        (("count", KARATE, "--knob", "nix=1"), "error: "),
        (("count", KARATE, "--limit", "nix=1"), "error: no limit named 'nix'"),
        (("count", KARATE, "--limit", "vertices=9"), "vertices"),
        (("count", KARATE, "--memory", "1kB"), "bytes and 1,000 are allowed"),
        (("count", KARATE, "--format", "nix"), "error: no format named 'nix'"),
        (("explain", KARATE, "--question", "nix"), "error: no question named 'nix'"),
        (("convert", KARATE, "out.nix"), "error: out.nix: no format named 'nix' to write"),
        (("generate", "complete", "--n", "many", "out.txt"), "error: n: 'many' is not of kind int"),
        (("generate", "cycle", "--n", "2", "out.txt"), "error: cycle: n=2 cannot be used"),
    ],
)
def test_our_errors_are_one_line_and_exit_1(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("count",),
        ("count", KARATE, "--nix"),
        ("count", KARATE, "--threads", "0"),
        ("count", KARATE, "--memory", "lots"),
        ("count", KARATE, "--knob", "threshold"),
        ("count", KARATE, "--limit", "=3"),
        ("generate", "nix", "out.txt"),
        ("generate", "complete", "out.txt"),
        ("generate", "complete", "--n", "3"),
        ("nix",),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error" in result.stderr


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError("Unable to allocate 9 EiB"), "Unable to allocate 9 EiB"),
        (OSError(errno.ENOMEM, "Cannot allocate memory", "html"), "[Errno 12] Cannot allocate memory: 'html'"),
    ],
)
def test_running_out_of_memory_is_a_line(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("wedgewise.cli.app.answer", fail)
    result = invoke("count", KARATE)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: out of memory ({said}); ")


def test_ctrl_c_in_a_command_exits_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wedgewise.cli.app.answer", interrupted)
    result = invoke("count", KARATE)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("wedgewise.cli.app.answer", fail)
    assert isinstance(invoke("count", KARATE).exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1GB", 10**9), ("512MiB", 512 * 2**20), ("1.5k", 1500), ("7", 7), ("2 TiB", 2**41), ("0.5gib", 2**29)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_sizes_are_shown_with_three_digits() -> None:
    assert [bytes_text(size) for size in (999, 1000, 1_234_567, 5 * 10**10)] == [
        "999 bytes",
        "1 kB",
        "1.23 MB",
        "50 GB",
    ]


def test_info_describes_the_graph(triangle_file: str) -> None:
    record = answer_of("info", triangle_file)
    assert (record["n"], record["m"], record["labels"]) == (5, 6, "integers")
    degrees = (record["degree_least"], record["degree_median"], record["degree_largest"])
    assert degrees == (1, 3, 3)  # of vertices 0, 1, 2, 3, 7: 2, 3, 3, 3, 1
    assert record["wedges"] == 1 + 3 + 3 + 3
    assert record["count_bytes"] > 0
    text = invoke("info", triangle_file).stdout
    assert "1 least, 3 median, 3 largest" in text
    assert "10 paths of two edges" in text


def test_info_of_an_empty_graph(tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.write_text("# nothing\n")
    record = answer_of("info", str(path))
    assert (record["n"], record["m"], record["wedges"], record["degree_median"]) == (0, 0, 0, 0)


def test_info_names_text_labels(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("ada bob\nbob cy\n")
    assert answer_of("info", str(path))["labels"] == "text"
    assert "text, as in the file" in invoke("info", str(path)).stdout


def test_explain_names_the_question() -> None:
    plan = answer_of("explain", KARATE, "--question", "transitivity")
    assert (plan["question"], plan["computes"]) == ("transitivity", "count")
    assert invoke("explain", KARATE, "--question", "edge_support").stdout.startswith("edge_support: ")


def test_explain_is_the_plan() -> None:
    assert "because" in invoke("explain", KARATE).stdout
    assert answer_of("explain", KARATE, "--order", "core")["order"] == "core"


@pytest.mark.parametrize("suffix", ["txt.gz", "csv", "tsv.xz", "bel", "bel64", "npy", "npz", "parquet", "arrow"])
@pytest.mark.parametrize("clean", [(), ("--clean",)], ids=["raw", "clean"])
def test_convert_keeps_labels_and_triangles(
    suffix: str, clean: tuple[str, ...], triangle_file: str, tmp_path: Path
) -> None:
    output = str(tmp_path / f"out.{suffix}")
    record = answer_of("convert", triangle_file, output, *clean)
    assert record["pairs"] == (6 if clean else 9)
    written = ww.read(output)
    assert list(written.labels) == [0, 1, 2, 3, 7]
    assert ww.count(written) == 2


@pytest.mark.parametrize("suffix", ["mtx", "metis"])
def test_convert_to_row_numbers(suffix: str, triangle_file: str, tmp_path: Path) -> None:
    output = str(tmp_path / f"out.{suffix}")
    assert answer_of("convert", triangle_file, output, "--clean")["n"] == 5
    assert (ww.read(output).n, ww.count(output)) == (5, 2)


def test_convert_says_what_a_format_does_not_hold(triangle_file: str, tmp_path: Path) -> None:
    def notes(source: str, name: str, *options: str) -> list[str]:
        said: list[str] = answer_of("convert", source, str(tmp_path / name), *options)["notes"]
        assert invoke("convert", source, str(tmp_path / name), *options).stdout.splitlines()[1:] == said
        return said

    rows = str(tmp_path / "rows.mtx")
    write_edges(np.array([[0, 1], [1, 2]]), rows, vertices=7)
    left_out = "4 vertices without an edge are not in it; .npz, .mtx and .metis hold them"
    assert notes(rows, "out.csv") == notes(rows, "out.csv", "--clean") == [left_out]
    assert notes(rows, "out.npz") == notes(rows, "out.metis", "--clean") == []
    assert notes(triangle_file, "out.csv") == notes(triangle_file, "out.npz", "--clean") == []
    assert notes(triangle_file, "out.mtx") == [ALL_ROWS]
    assert notes(triangle_file, "out.mtx", "--clean") == [NO_LABELS]


def test_convert_keeps_names(tmp_path: Path) -> None:
    source, output = tmp_path / "names.txt", tmp_path / "names.csv"
    source.write_text("ada bob\nbob cy\ncy ada\n")
    assert invoke("convert", str(source), str(output)).stdout == f"3 pairs written to {output}\n"
    assert output.read_text() == "ada,bob\nbob,cy\ncy,ada\n"


def test_convert_takes_the_named_format(tmp_path: Path) -> None:
    output = tmp_path / "out.data"
    invoke("convert", KARATE, str(output), "--to", "bel64")
    assert output.stat().st_size == 16 * TRUTHS["karate"]["m"]


def test_small_parameters_cover_every_generator() -> None:
    assert set(SMALL_PARAMETERS) == set(GENERATORS)


@pytest.mark.parametrize("family", SMALL_PARAMETERS)
def test_generate_writes_every_family(family: str, tmp_path: Path) -> None:
    output = str(tmp_path / "graph.bel32")
    options = [part for name, value in SMALL_PARAMETERS[family].items() for part in (f"--{name}", value)]
    record = answer_of("generate", family, *options, output)
    assert set(record) == {"schema", "name", "parameters", "n", "pairs", "expected_triangles", "output"}
    assert Path(output).stat().st_size == 8 * record["pairs"]
    if record["expected_triangles"] is not None:
        assert ww.count(output) == record["expected_triangles"]


def test_generate_without_a_name_lists_families() -> None:
    assert "windmill --blades INT [--clique 3]" in invoke("generate").stdout
    assert [item["name"] for item in answer_of("generate")["generators"]] == list(GENERATORS)


def test_generate_help_names_parameters() -> None:
    shown = invoke("generate", "kronecker", "--help").stdout
    assert "--edgefactor" in shown
    assert "16 by default" in shown


def test_generate_is_deterministic(tmp_path: Path) -> None:
    outputs = [tmp_path / "a.bel", tmp_path / "b.bel"]
    for output, threads in zip(outputs, "14", strict=True):
        arguments = ("--scale", "8", "--seed", "3", "--threads", threads, str(output), "--verbose")
        assert "generate" in invoke("generate", "kronecker", *arguments).stderr
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_algorithms_lists_the_registry() -> None:
    known = [(record.name, record.device) for record in ww.algorithms()]
    assert [(record["name"], record["device"]) for record in answer_of("algorithms")["algorithms"]] == known
    shown = invoke("algorithms").stdout
    assert all(f"{name} ({device}): " in shown for name, device in known)


def test_doctor_examines() -> None:
    record = answer_of("doctor")
    assert record["version"] == ww.__version__
    assert all(record["packages"].values())
    assert all(record["bundled"].values())
    assert f"wedgewise {ww.__version__}" in invoke("doctor").stdout


@pytest.mark.compiled  # in another process
def test_doctor_works_where_nothing_is_writable() -> None:
    unwritable = {**os.environ, "WEDGEWISE_CACHE": "/dev/null/cache", "HOME": "/dev/null"}
    result = run("doctor", env=unwritable)
    assert (result.returncode, result.stderr) == (0, "")
    assert "no folder is writable" in result.stdout or "NUMBA_DISABLE_JIT" in result.stdout


def test_doctor_warms_every_listed_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []
    monkeypatch.setattr(jit, "JIT_DISABLED", False)
    monkeypatch.setattr(jit.CpuKernel, "load", lambda marked, kinds: loaded.append((marked, kinds)))
    record = answer_of("doctor", "--warm")
    assert record["warmed"]["compiled"] == 0
    assert sorted(map(repr, loaded)) == sorted(map(repr, signatures.listed()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"jit": False}, "run as plain Python: NUMBA_DISABLE_JIT is set"),
        (
            {"cache": None},
            "no folder is writable by you alone: compiled in every process; name one with WEDGEWISE_CACHE",
        ),
        ({}, "0 compiled in /cache; `wedgewise doctor --warm` compiles them ahead"),
        ({"kernels_cached": 9}, "9 compiled in /cache"),
        ({"kernels_shipped": 9}, "9 shipped for processors like this one"),
        ({"kernels_shipped": 9, "packages": {"numba": None}}, "numba        not needed: kernels are shipped"),
        ({"packages": {"numba": None}}, "numba        MISSING"),
        ({"warmed": {"compiled": 4, "seconds": 2.345}}, "0 compiled in /cache (4 of them now, in 2.3 s)"),
        ({"extras": {"arrow": None}}, '[arrow]      not installed: pip install "wedgewise[arrow]"'),
        ({"bundled": {"email-Enron": False}}, "email-Enron  MISSING: reinstall from a wheel"),
    ],
)
def test_doctor_says_what_is_missing(changes: dict[str, Any], said: str) -> None:
    sound = {**doctor.examine(None), "jit": True, "cache": "/cache", "kernels_cached": 0}
    assert f"{said}\n" in doctor.doctor_text({**sound, **changes}) + "\n"


def test_doctor_finds_missing_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Path:
        raise MissingFileError(f"{name}: gone; reinstall")

    monkeypatch.setattr(doctor, "bundled", missing)
    monkeypatch.setattr(doctor, "EXTRAS", {"none": "no-such-distribution"})
    record = doctor.examine(None)
    assert record["bundled"] == {"email-Enron": False}
    assert record["extras"] == {"none": None}


def test_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    karate = Dataset("karate", "karate.el.xz", 34, 78, 45, "a club", "Zachary 1977")
    monkeypatch.setattr(demo, "BUNDLED", {"karate": karate})
    monkeypatch.setattr(demo, "bundled", lambda _name: KARATE)
    monkeypatch.setattr(demo, "NAME", "karate")
    monkeypatch.setattr(demo, "COMPARED", ("reference", "example"))
    record = answer_of("demo")
    assert record["answer"] == 45
    assert record["matches_published"]
    assert record["hubs"][0]["degree"] == 17
    assert sum(row["vertices"] for row in record["degrees"]) == 34
    assert "45, as published" in invoke("demo").stdout


@pytest.mark.compiled
def test_demo_counts_the_bundled_graph() -> None:
    result = run("demo")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("727,044 triangles\n")
    assert "as published" in result.stdout


def test_version() -> None:
    assert invoke("--version").stdout == f"wedgewise {ww.__version__}\n"


def test_every_command_has_json() -> None:
    names = [command.name or command.callback.__name__ for command in app.registered_commands]  # type: ignore[union-attr]
    questions = {"count", "triangles", "support", "truss", "list", "clustering", "transitivity", "similarity"}
    others = {"info", "explain", "convert", "partition", "algorithms", "doctor", "demo", "bench", "report"}
    assert set(names) == questions | others
    for name in [*names, "generate"]:
        assert "--json" in invoke(name, "--help").stdout


def test_every_format_can_be_named() -> None:
    for name in FORMATS:
        assert "no format named" not in invoke("info", KARATE, "--format", name).output


@pytest.mark.compiled  # in another process
def test_a_piped_count_loads_neither_rich_nor_numba() -> None:
    traced = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "wedgewise", "count", KARATE],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert traced.stdout == "45\n"
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in traced.stderr.splitlines()}
    assert "wedgewise" in loaded
    assert loaded.isdisjoint({"numba", "scipy", "pyarrow", "rich", "networkx"})


@pytest.mark.compiled  # in another process
def test_a_pipe_hears_of_stages_with_verbose_only(tmp_path: Path) -> None:
    cold = {**os.environ, "WEDGEWISE_CACHE": str(tmp_path)}
    silent = run("count", KARATE, "--algorithm", "forward", env=cold)  # compiles, and does not say so
    assert (silent.stdout, silent.stderr) == ("45\n", "")
    run("count", KARATE)  # may have to compile
    spoken = run("count", KARATE, "--verbose")
    assert (spoken.stdout, spoken.stderr) == ("45\n", "count …\n")


@pytest.mark.compiled
def test_ctrl_c_stops_a_long_count(tmp_path: Path) -> None:
    write_edges(complete(770).pairs(), tmp_path / "graph.npy")  # 76 million wedges: seconds in NumPy
    arguments = ("count", "graph.npy", "--algorithm", "reference")
    code, rest, seconds = interrupt(tmp_path, "count …\n", signal.SIGINT, *arguments)
    assert (code, rest) == (130, "interrupted\n")
    assert seconds < 1
    assert [path.name for path in tmp_path.iterdir()] == ["graph.npy"]


@pytest.mark.compiled  # in another process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_generator_leaves_no_file(number: signal.Signals, code: int, tmp_path: Path) -> None:
    arguments = ("generate", "kronecker", "--scale", "26", "graph.bel")
    returned, rest, seconds = interrupt(tmp_path, "generate …\n", number, *arguments)
    assert (returned, rest) == (code, "interrupted\n" if code == 130 else "")
    assert seconds < 1
    assert list(tmp_path.iterdir()) == []


def test_progress_is_a_bar_once_work_lasts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def draw() -> str:
        with progress.progress_bar(True) as shown:
            assert shown is not None
            shown("count", 1, 2)
            shown("verify", 1, 2)
        return capsys.readouterr().err

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert draw() == ""
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0)
    assert "verify" in draw()
    monkeypatch.delenv("FORCE_COLOR")
    assert draw() == ""


def test_progress_of_unknown_length_is_shown_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress_bar(True) as shown:
        assert shown is not None
        shown("read and clean", 0, 0)
    assert "read and clean" in capsys.readouterr().err


def test_progress_can_be_a_callable_or_nothing() -> None:
    seen: list[tuple[str, int, int]] = []
    assert ww.count(KARATE, progress=lambda *told: seen.append(told)) == 45
    assert seen[-1][0] == "count"
    assert seen[-1][1] == seen[-1][2] > 0
    with progress.progress_bar(None) as shown:
        assert shown is None

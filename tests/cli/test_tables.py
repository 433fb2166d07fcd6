"""The columns of a table on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.commands import invoke

TRANSFERS = "when,user,item,amount\n1,ann,bob,5\n2,bob,cy,6.5\n3,cy,ann,2\n4,ann,bob,1\n"


@pytest.fixture
def transfers(tmp_path: Path) -> str:
    path = tmp_path / "transfers.csv"
    path.write_text(TRANSFERS)
    return str(path)


ENDS = "--source", "user", "--target", "item"


@pytest.mark.parametrize("command", ["count", "triangles", "support", "truss", "clustering", "list", "info", "explain"])
def test_every_command_takes_columns(command: str, transfers: str) -> None:
    assert invoke(command, transfers).exit_code == 1
    assert "nothing says which columns are the ends" in invoke(command, transfers).stderr
    assert invoke(command, transfers, *ENDS).exit_code == 0
    assert invoke(command, transfers, "--source", "1", "--target", "2").exit_code == 0


def test_json_shows_what_was_read(transfers: str) -> None:
    for command in ("count", "info"):
        cleaned = json.loads(invoke(command, transfers, *ENDS, "--json").stdout)["cleaned"]
        assert (cleaned["columns"], cleaned["ignored_columns"]) == (["user", "item"], ["when", "amount"])
        assert cleaned["notes"] == ["header row skipped: when,user,item,amount"]


def test_info_shows_what_was_read(transfers: str) -> None:
    shown = invoke("info", transfers, *ENDS, "--weight", "amount").stdout
    assert "read from columns (user, item, amount); dropped: 1 duplicate, 1 further column (when)" in shown


def test_a_header_is_settled(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("anfang,ende\nann,bob\nbob,cy\ncy,ann\n")
    assert "first line read as an edge, though its labels occur nowhere else" in invoke("info", str(path)).stdout
    for header, vertices in (("yes", 3), ("no", 5), ("auto", 5)):
        assert json.loads(invoke("info", str(path), "--header", header, "--json").stdout)["n"] == vertices


UNCLEAR = "anfang,ende\nann,bob\nbob,cy\ncy,ann\n"
COMMANDS = {
    "count": (),
    "triangles": (),
    "support": ("--output", "out.csv"),
    "truss": ("--json",),
    "clustering": (),
    "list": (),
    "transitivity": (),
    "info": ("--json",),
    "explain": (),
    "convert": ("out.parquet",),
    "convert --clean": ("out.parquet",),
    "partition": ("store",),
    "report": ("--json",),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_doubts_are_said_wherever_output_goes(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("unclear.csv").write_text(UNCLEAR)
    name, *options = command.split()
    graph = ("--graph",) if name == "report" else ()
    said = invoke(name, *options, *graph, "unclear.csv", *COMMANDS[command])
    assert said.exit_code == 0, said.output
    assert said.stderr == (
        "note: first line read as an edge, though its labels occur nowhere else: 'anfang', 'ende' "
        "(header=True or --header yes if it names the columns)\n"
    )


def test_what_is_clear_is_not_said(transfers: str) -> None:
    assert invoke("count", transfers, *ENDS).stderr == ""
    Path(transfers).write_text(UNCLEAR)
    assert invoke("count", transfers, "--header", "yes").stderr == ""


def test_quiet_commands_say_no_doubts(tmp_path: Path) -> None:
    path = tmp_path / "unclear.csv"
    path.write_text(UNCLEAR)
    assert invoke("count", str(path), "--quiet").stderr == ""
    assert invoke("triangles", str(path), "-q").stderr == ""


def test_positions_of_columns_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("9 1 2\n9 2 3\n")
    shown = invoke("info", str(path), "--source", "1", "--target", "2").stdout
    assert "2 pairs read from columns (positions 1, 2); dropped: 1 further column (position 0)" in shown
    shown = invoke("info", str(path)).stdout
    assert "2 pairs read from columns (positions 0, 1); dropped: 1 further column (position 2)" in shown
    path.write_text("1 2\n2 3\n")
    assert "2 pairs read; dropped: nothing" in invoke("info", str(path)).stdout


def test_explain_says_what_was_read(transfers: str, tmp_path: Path) -> None:
    cleaned = json.loads(invoke("explain", transfers, *ENDS, "--json").stdout)["cleaned"]
    assert (cleaned["pairs"], cleaned["columns"]) == (4, ["user", "item"])
    store = str(tmp_path / "store")
    invoke("partition", transfers, store, *ENDS)
    assert json.loads(invoke("explain", store, "--json").stdout)["cleaned"] is None


def test_errors_name_the_option(transfers: str) -> None:
    unweighted = invoke("clustering", transfers, *ENDS, "--combine", "sum").stderr
    assert "--combine sum where no weights are kept; pass weights too: --weight for a column" in unweighted
    repeated = invoke("clustering", transfers, *ENDS, "--weight", "amount", "--combine", "error").stderr
    assert "combine them by --combine: 'last', 'sum', 'max' or 'min'" in repeated


def test_weights_of_repeated_edges(transfers: str) -> None:
    def coefficients(*options: str) -> str:
        return str(invoke("clustering", transfers, *ENDS, *options).stdout)

    unweighted, last = coefficients(), coefficients("--weight", "amount")
    assert len({unweighted, last, coefficients("--weight", "amount", "--combine", "sum")}) == 3
    assert last == coefficients("--weight", "amount", "--combine", "last")
    refused = invoke("clustering", transfers, *ENDS, "--weight", "amount", "--combine", "error")
    assert refused.exit_code == 1
    assert "rows 0 and 3 both give" in refused.stderr


def test_stores_and_conversions(transfers: str, tmp_path: Path) -> None:
    store, output = str(tmp_path / "store"), str(tmp_path / "g.parquet")
    assert invoke("partition", transfers, store, *ENDS).exit_code == 0
    assert invoke("count", store).stdout == "1\n"
    refused = invoke("count", store, "--source", "user")
    assert refused.exit_code == 1
    assert "is a store, not a file; leave out: --source\n" in refused.stderr
    assert invoke("convert", transfers, output, *ENDS).exit_code == 0
    assert invoke("count", output).stdout == "1\n"

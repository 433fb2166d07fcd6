"""The documentation says what is there: modules, formats, commands, limits, links, and pages made from the code."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from graphs import fixture_pairs
from typer.testing import CliRunner

import wedgewise
from wedgewise.cli.app import app
from wedgewise.errors import StorageError
from wedgewise.read import FORMATS
from wedgewise.read.limits import DEFAULT_LIMITS
from wedgewise.report.pages import PAGES, write_pages

PACKAGE = Path(wedgewise.__file__).parent
ROOT = PACKAGE.parent.parent
DOCUMENTS = sorted(
    path
    for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "decisions", ROOT / "benchmarks")
    for path in folder.glob("*.md")
)
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def table_cells(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


def test_architecture_names_every_module_once() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    described = re.findall(r"^- `([\w/]+\.py)`: \S", text, re.MULTILINE)
    there = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    assert sorted(described) == sorted(there)


@pytest.mark.parametrize("name", PAGES)
def test_committed_pages_are_what_the_code_makes(name: str) -> None:
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run `make docs`"


def test_pages_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "wedgewise.report.pages", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert made.stdout.split() == [str(tmp_path / name) for name in PAGES]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(PAGES)
    with pytest.raises(StorageError):
        write_pages(tmp_path / "nowhere")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), target


def test_readme_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(f"{u} {v}\n" for u, v in fixture_pairs("karate").tolist())
    (tmp_path / "graph.txt.gz").write_bytes(gzip.compress(lines.encode()))
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("45\n45 {")


def test_readme_table_has_every_command() -> None:
    documented = [cells[0].strip("`").split()[1] for cells in table_cells(README, "Commands")]
    shown = CliRunner().invoke(app, ["--help"]).stdout.partition("Commands:\n")[2]
    there = re.findall(r"^  (\w+)  ", shown, re.MULTILINE)
    assert sorted(documented) == sorted(there)


def test_readme_table_has_every_format() -> None:
    documented = [name for cells in table_cells(README, "Formats") for name in re.findall(r"`(\w+)`", cells[0])]
    assert sorted(documented) == sorted(FORMATS)


def test_security_table_has_every_limit() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    documented = {cells[0].strip("`"): int(cells[1].replace(",", "")) for cells in table_cells(text, "Limits")}
    assert documented == {field.name: getattr(DEFAULT_LIMITS, field.name) for field in fields(DEFAULT_LIMITS)}


def test_index_lists_every_decision() -> None:
    listed = re.findall(r"\(decisions/([\w-]+\.md)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert listed == [path.name for path in DECISIONS]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_decisions_have_context_choice_and_cost(path: Path) -> None:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0].startswith(f"{path.stem[:4]}: ")
    assert headings[1:] == ["Context", "Choice", "Cost"]


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {wedgewise.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {wedgewise.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

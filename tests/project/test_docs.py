"""The documentation says what is there: modules, formats, commands, limits, links, pages made from the code, and
examples whose output is what happens."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import statistics
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from pages import make_pages, write_pages
from typer.testing import CliRunner

import wedgewise
from wedgewise.cli.app import app
from wedgewise.cli.console import Console
from wedgewise.errors import StorageError
from wedgewise.read import FORMATS
from wedgewise.stages.limits import DEFAULT_LIMITS

PACKAGE = Path(wedgewise.__file__).parent
ROOT = PACKAGE.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *PAGES])
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
MADE = make_pages()
DOCUMENTED_MODULES = ("wedgewise", *(f"wedgewise.{name}" for name in ("datasets", "errors", "generate", "interop")))
BUNDLED = re.compile(r"bundled\(|load\(|kronecker\(")
EXAMPLES = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def table_cells(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


def examples_of(path: Path) -> list[tuple[str, str, int]]:
    """Language, text and line of every block of a page that shows what happens."""
    text = path.read_text(encoding="utf-8")
    return [(block[1], block[2], text.count("\n", 0, block.start())) for block in EXAMPLES.finditer(text)]


def run_python(code: str, known: dict[str, object], name: str, line: int) -> dict[str, object]:
    """Run a block of examples after those before it, compare what it shows, and return the names that there are now."""
    test = doctest.DocTestParser().get_doctest(code, known, name, name, line)
    told: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    assert runner.run(test, out=told.append, clear_globs=False).failed == 0, "".join(told)
    return test.globs


def run_console(session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the commands of a session as on a terminal; an ellipsis (…) in what it shows stands for anything."""
    monkeypatch.setattr(Console, "is_read_by_a_person", property(lambda console: not console.quiet))
    for command, shown in re.findall(r"^\$ wedgewise (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        result = CliRunner().invoke(app, shlex.split(command))
        expected = ".*".join(map(re.escape, shown.strip().split("…")))
        assert re.fullmatch(expected, result.output.strip(), re.DOTALL), f"{command}\n{result.output}"


def example_pages() -> list[object]:
    """The pages with examples; those that read the bundled graph are for compiled kernels."""
    return [
        pytest.param(
            path,
            id=str(path.relative_to(ROOT)),
            marks=pytest.mark.compiled if BUNDLED.search(path.read_text(encoding="utf-8")) else (),
        )
        for path in [ROOT / "README.md", *PAGES]
        if examples_of(path)
    ]


@pytest.mark.parametrize("path", example_pages())
def test_examples_show_what_happens(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    for language, text, line in examples_of(path):
        if language == "python":
            known = run_python(text, known, path.name, line)
        else:
            run_console(text, monkeypatch)


def test_examples_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> x = 1\n```\n\n```python\n>>> x\n2\n```\n")
    (_, first, line), (_, second, _) = examples_of(page)
    known = run_python(first, {}, "page.md", line)
    with pytest.raises(AssertionError, match="Expected:"):
        run_python(second, known, "page.md", line)
    with pytest.raises(AssertionError, match="wedgewise 0"):
        run_console("$ wedgewise --version\nwedgewise … and more\n", monkeypatch)


def test_python_blocks_are_examples() -> None:
    for path in PAGES:
        for language, text, _ in examples_of(path):
            assert (">>> " if language == "python" else "$ wedgewise ") in text, path.name


def internal_imports(text: str) -> list[str]:
    """Modules of ours that examples import, but for those that the reference documents."""
    found = re.findall(r"^(?:>>> |\.\.\. |\s*)(?:from|import) (wedgewise[\w.]*)", text, re.MULTILINE)
    return [name for name in found if name not in DOCUMENTED_MODULES]


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_import_nothing_internal(path: Path) -> None:
    for _, text, _ in examples_of(path):
        assert internal_imports(text) == []


def test_internal_imports_are_found() -> None:
    assert internal_imports(">>> from wedgewise.store.build import write_store\n") == ["wedgewise.store.build"]
    assert internal_imports(">>> import wedgewise as ww\n>>> from wedgewise.datasets import bundled\n") == []


@pytest.mark.parametrize("name", MADE)
def test_committed_pages_are_what_the_code_makes(name: str) -> None:
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == MADE[name], "run `make docs`"


@pytest.mark.parametrize("name", [name for name in MADE if name.endswith(".ipynb")])
def test_notebooks_have_the_text_and_the_examples_of_their_pages(name: str) -> None:
    """Those examples are run with their page."""
    page = (DOCS / name).with_suffix(".md")
    notebook = json.loads(MADE[name])
    cells = {kind: [cell for cell in notebook["cells"] if cell["cell_type"] == kind] for kind in ("markdown", "code")}
    assert "".join(cells["markdown"][0]["source"]).startswith("# ")
    examples = [example for _, text, _ in examples_of(page) for example in doctest.DocTestParser().get_examples(text)]
    assert "".join("".join(cell["source"]) + "\n" for cell in cells["code"]) == "".join(e.source for e in examples)
    outputs = ["".join(cell["outputs"][0]["data"]["text/plain"]) + "\n" for cell in cells["code"] if cell["outputs"]]
    assert outputs == [example.want for example in examples if example.want]


def test_every_algorithm_has_its_page_and_no_page_is_left_over() -> None:
    assert sorted(f"algorithms/{path.name}" for path in (DOCS / "algorithms").iterdir()) == sorted(
        name for name in MADE if name.startswith("algorithms/")
    )
    for algorithm in wedgewise.algorithms():
        page = MADE[f"algorithms/{algorithm.name}-{algorithm.device}.md"]
        for part in (algorithm.summary, "**What**: ", "**Paper**: ", "**Who does what**: ", "**Memory**: "):
            assert part in page
        assert all(f"| `{knob.name}` | {knob.default} |" in page for knob in algorithm.knobs)


def test_pages_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "tools" / "pages.py", tmp_path], capture_output=True, text=True, check=True
    )
    assert made.stdout.split() == [str(tmp_path / name) for name in MADE]
    assert write_pages(tmp_path) == [tmp_path / name for name in MADE]
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == set(MADE)
    with pytest.raises(StorageError):
        write_pages(tmp_path / "nowhere" / "at all")
    (tmp_path / "file").touch()
    with pytest.raises(StorageError):
        write_pages(tmp_path / "file")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), target


def test_readme_table_has_every_command() -> None:
    documented = [cells[0].strip("`").split()[1] for cells in table_cells(README, "Commands")]
    shown = CliRunner().invoke(app, ["--help"]).stdout.partition("Commands:\n")[2]
    there = re.findall(r"^  (\w+)  ", shown, re.MULTILINE)
    assert sorted(documented) == sorted(there)


def test_tables_have_every_format() -> None:
    files = (DOCS / "how-to" / "files.md").read_text(encoding="utf-8")
    for text in (README, files):
        documented = [name for cells in table_cells(text, "Formats") for name in re.findall(r"`(\w+)`", cells[0])]
        assert sorted(documented) == sorted(FORMATS)


def test_security_table_has_every_limit() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    documented = {cells[0].strip("`"): cells[1] for cells in table_cells(text, "Limits")}
    defaults = {field.name: getattr(DEFAULT_LIMITS, field.name) for field in fields(DEFAULT_LIMITS)}
    assert documented == {
        name: "what the machine has left" if cap is None else f"{cap:,}" for name, cap in defaults.items()
    }


def test_reference_has_every_public_name() -> None:
    from wedgewise import generate, interop

    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    described = set(re.findall(r"^\.\. auto\w+:: wedgewise\.([\w.]+)$", pages, re.MULTILINE))
    assert set(wedgewise.__all__) - {"__version__"} <= described
    assert {f"generate.{name}" for name in generate.__all__ if callable(getattr(generate, name))} <= described
    assert {f"interop.{name}" for name in interop.__all__} <= described


def test_promises_name_tests_that_exist() -> None:
    text = (DOCS / "promises.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (?:(\d)\. |Coverage)", text, flags=re.MULTILINE)
    assert sections[1::2] == [*map(str, range(1, 10)), None]
    for section in sections[2::2]:
        assert re.search(r"^- `tests/[\w/]+\.py::\w+`$", section, re.MULTILINE), section
    for file, function in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        assert f"\ndef {function}(" in (ROOT / file).read_text(encoding="utf-8"), (file, function)


def test_every_promise_of_the_readme_leads_to_its_tests() -> None:
    headings = re.findall(r"^## (\d)\. (.+)$", (DOCS / "promises.md").read_text(encoding="utf-8"), re.MULTILINE)
    promised = re.findall(r"^(\d)\. \*\*(.+?)\.?\*\*.*?\(docs/promises\.md#(.+?)\)", README, re.MULTILINE | re.DOTALL)
    assert [(number, title) for number, title, _ in promised] == headings
    for number, title, anchor in promised:
        assert anchor == re.sub(r"[^\w-]", "", f"{number} {title}".lower().replace(" ", "-"))


def test_every_decision_is_listed() -> None:
    listed = re.findall(r"\(decisions/([\w-]+\.md)\)", (DOCS / "decisions.md").read_text(encoding="utf-8"))
    assert listed == [path.name for path in DECISIONS]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_decisions_have_context_choice_and_cost(path: Path) -> None:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0].startswith(f"{path.stem[:4]}: ")
    assert headings[1:] == ["Context", "Choice", "Cost"]


def test_the_paper_cites_what_its_bibliography_has() -> None:
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper.md").read_text(encoding="utf-8")))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {wedgewise.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {wedgewise.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_picture_of_kernels_has_the_numbers_of_the_records() -> None:
    """Its text says them all, and the drawing shows as many."""
    from wedgewise_bench.record import read_records

    found = re.search(r"!\[(.*?): (keystone .*?)\]\((.*?)\)", (DOCS / "how-to/gpu.md").read_text(encoding="utf-8"))
    assert found is not None
    medians = {
        record.cell.algorithm: statistics.median(record.outcome.seconds)
        for suite in ("wetric", "itc")  # of what both have, the latter
        for record in read_records(ROOT / "benchmarks" / "results" / f"{suite}-2026-11-16.jsonl")
        if (record.cell.graph, record.cell.row, dict(record.cell.knobs)) == ("kronecker-20-seed1", "count", {})
    }
    expected = {name: f"{medians['polak'] / seconds:.3g}" for name, seconds in medians.items() if name != "polak"}
    assert dict(pair.split() for pair in found[2].split(", ")) == expected
    drawing = (DOCS / "how-to" / found[3]).read_text(encoding="utf-8")
    drawn = {text for name, ratio in expected.items() for text in (f">{name}<", f">{ratio}×<") if text in drawing}
    assert len(drawn) == 2 * len(expected)


def figures_of(page: str, section: str) -> dict[tuple[str, str], float]:
    """The numbers of the first table below a heading of a page of results, by row and column."""
    text = (ROOT / "benchmarks" / "results" / page).read_text(encoding="utf-8")
    lines = [line for line in text.partition(section)[2].partition("\n## ")[0].splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {
        (row[0].strip("`"), name): float(cell) for row in rows for name, cell in zip(head[1:], row[1:], strict=True)
    }


def test_the_first_figures_of_the_readme_are_those_of_the_records() -> None:
    from wedgewise_bench.record import read_records

    networkx = figures_of("networkx.md", "# NetworkX")
    alone, through = networkx["clustering", "NetworkX s"], networkx["clustering", "first call s"]
    assert f"183,831 edges | {alone:.2f} s | {through:.3f} s |" in README
    file = {
        record.cell.system: statistics.median(record.outcome.seconds)
        for record in read_records(ROOT / "benchmarks" / "results" / "cpu-2026-11-15.jsonl")
        if (record.cell.graph, record.cell.row) == ("kronecker-20-seed1", "file") and record.outcome.seconds
    }
    ours = file.pop("wedgewise")
    assert f"| {ours:.2f} s | starting Python" in README
    assert f"other library that we tried took {min(file.values()):.1f} s" in README
    paper = " ".join((ROOT / "paper.md").read_text(encoding="utf-8").split())
    assert f"all clustering coefficients take {through:.3f} s in place of {alone:.1f} s" in paper
    assert f"is counted in {ours:.2f} s" in paper
    assert f"that was tried took {min(file.values()):.1f} s" in paper


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/gpu.md"])
def test_times_of_kernels_have_preparation_and_the_whole_beside_them(page: str) -> None:
    kernels, preparation, whole = (
        figures_of("gpu.md", f"## {name}\n") for name in ("Kernels", "Preparation", "End to end")
    )
    records = (ROOT / "benchmarks" / "results" / "gpu-2026-11-19.jsonl").read_text(encoding="utf-8").splitlines()
    of_pairs = {line["graph"]: line["seconds"] for line in map(json.loads, records) if line["name"] == "int32 pairs"}
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (Kronecker \d\d|`\w+`) \|.*? ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) >= 2
    for name, *shown in rows:
        if name in of_pairs:
            kernel, prepare, wall = (1e3 * of_pairs[name][stage] for stage in ("kernel", "prepare", "wall"))
        else:
            key = name.strip("`"), "Kronecker 20"
            kernel, prepare, wall = kernels[key], preparation[key], whole[key]
        for number, exact in zip(shown, (kernel, kernel + prepare, wall), strict=True):
            assert abs(float(number) - exact) <= 0.51 * 10.0 ** -len(number.partition(".")[2]), (name, number, exact)


def test_the_list_of_reruns_has_as_many_cells_as_the_records() -> None:
    """All of them correct, as it says."""
    from wedgewise_bench.record import read_records

    folder = ROOT / "benchmarks" / "results"
    said = re.findall(r"`([\w-]+\.jsonl)` \| (\d+)", (folder / "papers.md").read_text(encoding="utf-8"))
    assert len(said) > 5
    for name, cells in said:
        records = read_records(folder / name)
        assert {record.outcome.status for record in records} == {"ok"}
        assert len({repr(record.cell) for record in records}) == int(cells), name

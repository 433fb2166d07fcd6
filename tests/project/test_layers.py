"""Imports keep to the layers, ARCHITECTURE.md shows the layers that there are, and the figures are true."""

from __future__ import annotations

import re
from pathlib import Path

import figures
import pytest
from layers import LAYERS, broken_imports

ROOT = Path(__file__).parents[2]


def test_imports_keep_to_the_layers() -> None:
    assert list(broken_imports()) == []


@pytest.mark.parametrize(
    ("module", "line", "said"),
    [
        (
            "machine/threads",
            "from wedgewise.run import in_memory",
            "imports wedgewise.run.in_memory, which is above",
        ),
        ("errors", "def f():\n    from wedgewise import api", "wedgewise.errors imports wedgewise.api"),
        (
            "prepare/clean",
            "if TYPE_CHECKING:\n    import wedgewise.graph",
            "clean imports wedgewise.graph",
        ),
        (
            "prepare/clean",
            "from wedgewise.read import content",
            "wedgewise.prepare → wedgewise.read → ",
        ),
    ],
)
def test_what_breaks_them_is_named(module: str, line: str, said: str, tmp_path: Path) -> None:
    for name in ("errors", "api", "graph", "machine/threads", "run/in_memory", "prepare/clean", "read/content"):
        path = tmp_path / "wedgewise" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        (path.parent / "__init__.py").write_text("")
    (tmp_path / "wedgewise" / "read" / "content.py").write_text("from wedgewise.prepare import clean\n")
    (tmp_path / "wedgewise" / f"{module}.py").write_text(line)
    assert any(said in broken for broken in broken_imports(tmp_path))


def test_architecture_shows_every_layer_in_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    shown = [name.removesuffix("/").removesuffix(".py") for row in rows for name in re.findall(r"`(.*?)`", row)]
    layer = {name.removeprefix("wedgewise.").replace(".", "/"): at for at, names in enumerate(LAYERS) for name in names}
    layer["__init__"] = layer.pop("wedgewise")
    assert [layer[name] for name in shown] == sorted(layer[name] for name in shown)
    packages = {path.name for path in (ROOT / "src" / "wedgewise").iterdir() if (path / "__init__.py").is_file()}
    assert packages <= set(shown)


def test_figures_are_those_of_the_modules(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "one.py").write_text(
        '"""One\n\ntwo.\n"""\n\n\ndef f(a, b, /, c, d, e, g, h, i, j, *, k):\n    return a\n'
    )
    (tmp_path / "cli" / "two.py").write_text(
        "def f(a, b, c, d, e, f, g, h, i): ...\n" + "x = 1\n" * figures.LONG_MODULE
    )
    size = figures.size_of(tmp_path)
    assert (size.modules, size.lines, size.statements) == (2, 9 + figures.LONG_MODULE, 5 + figures.LONG_MODULE)
    assert (size.docstring_lines, size.long_modules) == (4, (f"cli/two.py ({figures.LONG_MODULE + 1})",))
    assert list(figures.crowded_functions(tmp_path)) == ["one.py:7 f (9)"]


def test_calls_and_hops_are_counted_by_file(tmp_path: Path) -> None:
    def inner() -> list[int]:
        return [abs(x) for x in range(3)]

    def action() -> None:
        inner()
        inner()

    assert figures.calls_and_hops(action, Path(__file__).parent) == (3, 1)
    assert figures.calls_and_hops(action, tmp_path) == (0, 0)


def test_all_figures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert figures.main() == 0
    printed = capsys.readouterr().out
    assert "0 imports that break the layers" in printed
    assert re.search(r"a count of a file: [1-9]\d* calls, [1-9]\d* hops", printed)

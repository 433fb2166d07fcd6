"""Imports keep to the layers, and ARCHITECTURE.md shows the layers that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from layers import LAYERS, broken_imports

ROOT = Path(__file__).parents[1]


def test_imports_keep_to_the_layers() -> None:
    assert list(broken_imports()) == []


@pytest.mark.parametrize(
    ("module", "line", "said"),
    [
        (
            "machine/threads",
            "from wedgewise.run import local",
            "imports wedgewise.run.local, which is above",
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
    for name in ("errors", "api", "graph", "machine/threads", "run/local", "prepare/clean", "read/content"):
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

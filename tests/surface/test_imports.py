"""The rule of this folder: nothing is imported but what users import."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
PARTS = ("datasets", "errors", "generate", "interop", "types")
DOCUMENTED = {"wedgewise", *(f"wedgewise.{part}" for part in PARTS)}
LIBRARIES = {"hypothesis", "networkx", "numpy", "pandas", "polars", "pyarrow", "pytest", "scipy"}
OWN = {path.stem for path in FOLDER.glob("*.py")}


def imported(source: str) -> set[str]:
    """Every module that a file imports, its own folder's as ``.name``; of `wedgewise` the names behind it too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            found |= {f".{node.module or alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            inner = {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "wedgewise" else set()
            found |= {node.module} | inner
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("importorskip", "setattr"):
            texts = [part.value for part in node.args if isinstance(part, ast.Constant)]
            found |= {text for text in texts if isinstance(text, str) and text.startswith("wedgewise")}
    return found


def is_allowed(name: str) -> bool:
    if name.startswith("."):
        return name[1:] in OWN
    top = name.partition(".")[0]
    return name in DOCUMENTED or (top in LIBRARIES | set(sys.stdlib_module_names) and not name.startswith("wedgewise"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_only_public_names_are_imported(path: Path) -> None:
    assert [name for name in sorted(imported(path.read_text(encoding="utf-8"))) if not is_allowed(name)] == []


def test_the_rule_can_fail() -> None:
    refused = (
        "from wedgewise.run.plan import Options",
        "import wedgewise.cli.app",
        "from wedgewise import cli",
        "from helpers.graphs import karate",
        "from .. import commands",
        'monkeypatch.setattr("wedgewise.api.run", None)',
    )
    for source in refused:
        assert not all(map(is_allowed, imported(source))), source
    assert all(map(is_allowed, imported("import os\nfrom wedgewise import errors\nfrom .shell import run")))

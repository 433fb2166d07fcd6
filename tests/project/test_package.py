"""The package as it is shipped: what importing it loads, what it exports, and rules that every module keeps."""

from __future__ import annotations

import ast
import doctest
import inspect
import shutil
import subprocess
import sys
import types
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

import wedgewise

PACKAGE = Path(wedgewise.__file__).parent
ROOT = PACKAGE.parent.parent
MODULES = sorted([*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "wedgewise_bench").rglob("*.py")])
HEAVY = {"numba", "scipy", "cupy", "distributed", "pyarrow", "zstandard", "rich", "typer"} | {
    "pandas",
    "polars",
    "networkx",
    "igraph",
    "networkit",
    "graphblas",
}
WRITING_METHODS = {"write_text", "write_bytes", "touch", "tofile", "savez", "savetxt"}
WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"}


def those_that_call(names: set[str]) -> set[str]:
    """The modules that call one of these, as they lie below the sources."""
    return {name_of(path) for path in MODULES if names & {name for name, _ in calls(path)}}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call of a module with the last part of the called name."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr, node


def opens_for_writing(name: str, call: ast.Call) -> bool:
    """Whether a call creates or changes a file: by mode, by flags, or by what the method does."""
    named = {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}
    if named & {"devnull", "ZipInfo"}:  # nothing is kept, or a member of an archive that is open already
        return False
    if name in WRITING_METHODS:
        return True
    texts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)]
    modes = [text for text in texts if isinstance(text, str) and len(text) <= 3 and set(text) <= set("rwaxbt+")]
    return name == "open" and (bool(named & WRITING_FLAGS) or any(set(mode) & set("wax+") for mode in modes))


def test_import_loads_nothing_heavy() -> None:
    shown = "import sys, wedgewise; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    assert HEAVY.isdisjoint(loaded)


def test_import_is_quick() -> None:
    """Processor time, which other processes hardly touch: 0.3 s is the aim, twice that a failure."""
    timed = "import time; begin = time.process_time(); import wedgewise; print(time.process_time() - begin)"
    taken = [
        float(subprocess.run([sys.executable, "-c", timed], capture_output=True, check=True).stdout) for _ in range(5)
    ]
    assert min(taken) < 0.6


def test_all_is_complete() -> None:
    public = {
        name
        for name, value in vars(wedgewise).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert set(wedgewise.__all__) == public | {"__version__", "errors", *wedgewise._NAMES}


@pytest.mark.parametrize("name", [name for name in wedgewise.__all__ if callable(getattr(wedgewise, name))])
def test_every_public_name_has_an_example_that_runs(name: str) -> None:
    value = getattr(wedgewise, name)
    documentation = inspect.getdoc(value) or ""
    test = doctest.DocTestParser().get_doctest(documentation, {}, name, None, None)
    assert test.examples, f"{name} has no example in its docstring"
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_every_error_is_documented_and_of_one_family() -> None:
    defined = [value for value in vars(wedgewise.errors).values() if isinstance(value, type)]
    errors = [value for value in defined if value.__module__ == "wedgewise.errors"]
    assert len(errors) >= 11
    for error in errors:
        assert issubclass(error, wedgewise.errors.WedgewiseError)
        assert inspect.getdoc(error)
        assert len(error.__mro__) > 4 or error is wedgewise.errors.WedgewiseError  # a built-in that fits


def test_version_is_readable() -> None:
    assert metadata.version("wedgewise") == wedgewise.__version__


def test_types_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_every_module_says_what_it_is() -> None:
    assert [name_of(path) for path in MODULES if tree_of(path).body and not ast.get_docstring(tree_of(path))] == []


def test_only_reports_print() -> None:
    assert {name.rpartition("/")[0] for name in those_that_call({"print"})} <= {"wedgewise/cli"}


def test_only_storage_opens_files_for_writing() -> None:
    writing = {name_of(path) for path in MODULES if any(opens_for_writing(name, call) for name, call in calls(path))}
    assert writing == {"wedgewise/machine/files.py"}


def test_only_jit_calls_numba() -> None:
    compiling = those_that_call({"njit", "jit", "vectorize", "guvectorize", "cfunc"})
    assert compiling <= {"wedgewise/machine/native.py"}


def test_the_rules_can_fail(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        'open(p, "wb")\nPath(p).open(mode="a")\nos.open(p, os.O_WRONLY)\np.write_text("x")\n'
        'open(p, "rb")\nopen(os.devnull, "w")\nos.open(p, os.O_RDONLY)\n'
    )
    assert [call.lineno for name, call in calls(path) if opens_for_writing(name, call)] == [1, 2, 3, 4]


@pytest.mark.deep
def test_a_wheel_has_the_data(tmp_path: Path) -> None:
    uv = shutil.which("uv")
    build = [uv, "build", "--wheel", "--out-dir"] if uv else [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w"]
    subprocess.run([*build, str(tmp_path), "."] if not uv else [*build, str(tmp_path)], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("wedgewise-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("py.typed", "data/email-Enron.txt.xz", "data/README.md", "cli/app.py", "__main__.py"):
        assert f"wedgewise/{part}" in names
    assert {"_wedgewise_nx/__init__.py", "_wedgewise_start/__init__.py"} <= set(names)
    ours = ("wedgewise/", "wedgewise_bench/")
    assert sum(name.startswith(ours) and name.endswith(".py") for name in names) == len(MODULES)
    assert {"wedgewise_bench/declared/cpu.toml", "wedgewise_bench/published/trust.toml"} <= set(names)
    assert not any(name.startswith("tests") for name in names)

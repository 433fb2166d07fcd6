"""Install a wheel into an environment of its own, outside the source tree, and run the tests of the surface there.

    python tools/try_wheel.py WHEEL [LOCK]

Numba is not installed: every listed kernel has to be in the wheel, for each level of processors, and what the tests
call is found there or fails. With a lock, packages are those that it names, each by its hash.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TESTS = Path(__file__).parents[1] / "tests" / "surface"
NEEDED = ["numpy", "typer", "rich", "networkx", "scipy", "pyarrow", "matplotlib", "pandas", "polars", "zstandard"]
NEEDED += ["distributed", "fsspec"]
TESTING = ["pytest", "pytest-xdist", "hypothesis"]
CHECK = """
import importlib.util
from pathlib import Path
from wedgewise.machine import shipped, signatures
assert importlib.util.find_spec("numba") is None
assert Path(shipped.__file__).is_relative_to(__import__("sys").prefix)
for level in shipped.LEVELS:
    code = shipped.open_library(level, shipped.FOLDER)
    missing = [
        marked.title for marked, kinds in signatures.listed(wide=True) if not shipped.kernel_in(code, marked, kinds)
    ]
    assert not missing, f"{level.name} lacks {missing}"
    print(f"{level.name}: {len(code.results)} kernels")
print(shipped.library_path(shipped.fitting_level(), shipped.FOLDER))
"""


def main() -> None:
    wheel, *lock = (Path(argument).resolve() for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="wedgewise-wheel-") as folder:
        home = Path(folder)
        python = _environment(home / "venv", wheel, *lock)
        shutil.copytree(TESTS, home / "tests" / "surface", ignore=shutil.ignore_patterns("__pycache__"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WEDGEWISE"))}
        alone = {**kept, "WEDGEWISE_CACHE": str(home / "cache"), "PATH": f"{python.parent}:{kept['PATH']}"}
        found = subprocess.run([python, "-P", "-c", CHECK], cwd=home, env=alone, check=True, stdout=subprocess.PIPE)
        print(found.stdout.decode(), flush=True)
        marks = ["-m", "not deep", "-W", "ignore::pytest.PytestUnknownMarkWarning"]
        tests = [str(python), "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *marks]
        subprocess.run([*tests, "tests"], cwd=home, env=alone, check=True)
        Path(found.stdout.decode().splitlines()[-1]).unlink()  # as on a processor of a lower level
        subprocess.run([*tests, "tests/surface/test_algorithms.py"], cwd=home, env=alone, check=True)


def _environment(folder: Path, wheel: Path, lock: Path | None = None) -> Path:
    """A new environment with the wheel and what its tests need; its interpreter."""
    uv, python = shutil.which("uv"), folder / "bin" / "python"
    make = [uv, "venv", "--quiet"] if uv else [sys.executable, "-m", "venv"]
    subprocess.run([*make, str(folder)], check=True)
    install = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    if lock is None:
        subprocess.run([*install, "--quiet", str(wheel), *NEEDED, *TESTING], check=True)
    else:
        packages = folder / "requirements.txt"
        packages.write_text(_pins(lock.read_text(encoding="utf-8")), encoding="utf-8")
        subprocess.run([*install, "--quiet", "--require-hashes", "--no-deps", "-r", str(packages)], check=True)
        subprocess.run([*install, "--quiet", "--no-deps", str(wheel)], check=True)
    return python


def _pins(lock: str) -> str:
    """Of a lock, the packages that the tests need and what those need; Numba is not among them."""
    needed, ahead = set[str](), [*NEEDED, *TESTING]
    while ahead:
        name = canonicalize_name(ahead.pop())
        if name not in needed:
            needed.add(name)
            asked = [Requirement(text) for text in metadata.requires(name) or ()]
            ahead += [one.name for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    pins = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)
    return "".join(pin for pin in pins if pin.partition("==")[0] in needed)


if __name__ == "__main__":
    main()

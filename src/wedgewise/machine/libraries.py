"""Where imports come from: optional libraries, with the remedy when one is missing, and processes of our own."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from wedgewise.errors import MissingDependencyError

REQUIREMENTS = {
    "distributed": '"wedgewise[cluster]"',
    "fsspec": '"wedgewise[cluster]"',
    "graphblas": "python-graphblas",
    "matplotlib": '"wedgewise[report]"',
    "numba": '"wedgewise[compile]"',
    "networkx": '"wedgewise[networkx]"',
    "pyarrow": '"wedgewise[arrow]"',
    "scipy.sparse": '"wedgewise[scipy]"',
}


def library(module: str) -> Any:
    """Import a module, or say what installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise _missing(module) from error


def is_installed(module: str) -> bool:
    """Whether a library is there, without importing it."""
    return find_spec(module) is not None


def check_installed(module: str) -> None:
    """Say what installs a library that is not there."""
    if not is_installed(module):
        raise _missing(module)


def _missing(module: str) -> MissingDependencyError:
    requirement = REQUIREMENTS.get(module, module)
    return MissingDependencyError(
        f"{module.partition('.')[0]} is needed for this; install it with: pip install {requirement}"
    )


def python_command(program: str) -> list[str]:
    """The command that runs a program in another interpreter, which imports from where this one does.

    It never imports from the folder that it stands in.
    """
    paths = [os.fspath(path) for path in sys.path]
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {paths!r}\n{program}"]

"""Optional libraries: imported when a function needs one, with the remedy when it is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from wedgewise.errors import MissingDependencyError

REQUIREMENTS = {
    "distributed": '"wedgewise[cluster]"',
    "fsspec": '"wedgewise[cluster]"',
    "graphblas": "python-graphblas",
    "matplotlib": '"wedgewise[report]"',
    "networkx": '"wedgewise[networkx]"',
    "pyarrow": '"wedgewise[arrow]"',
    "scipy.sparse": '"wedgewise[scipy]"',
}


def library(module: str) -> Any:
    """Import a module, or say what installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        requirement = REQUIREMENTS.get(module, module)
        raise MissingDependencyError(
            f"{module.partition('.')[0]} is needed for this; install it with: pip install {requirement}"
        ) from error

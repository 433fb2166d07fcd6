"""The registry: every module here and in cpu/ and gpu/ that defines ``ALGORITHM``, found by looking, never listed."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from wedgewise.algorithms._contract import Algorithm
from wedgewise.errors import UnknownNameError


@cache
def registry() -> dict[tuple[str, str], Algorithm]:
    """All algorithms by (name, device), in alphabetical order."""
    found: dict[tuple[str, str], Algorithm] = {}
    for module in pkgutil.walk_packages(__path__, prefix=f"{__name__}."):
        if module.ispkg or module.name.rpartition(".")[2].startswith("_"):
            continue
        algorithm: Algorithm = importlib.import_module(module.name).ALGORITHM
        key = (algorithm.name, algorithm.device)
        if key in found:
            raise RuntimeError(f"{module.name} registers {key} a second time")
        found[key] = algorithm
    return dict(sorted(found.items()))


def find(name: str, device: str) -> Algorithm:
    """The algorithm of that name on that device."""
    try:
        return registry()[name, device]
    except KeyError:
        names = ", ".join(known for known, where in registry() if where == device) or "none"
        raise UnknownNameError(f"no algorithm named {name!r} on {device}; there are: {names}") from None

"""The registry: every module here and in cpu/ and gpu/ that defines ``ALGORITHM``, found by looking, never listed."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from wedgewise.errors import PreconditionError, UnknownNameError

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm


ENGINE, TRUSS_ENGINE = "keystone", "peel"  # what `auto` takes for all but small graphs


@cache
def registry() -> dict[tuple[str, str], Algorithm]:
    """All algorithms by (name, device), in alphabetical order; their modules are imported at the first question."""
    import pkgutil

    found: dict[tuple[str, str], Algorithm] = {}
    for module in pkgutil.walk_packages(__path__, prefix=f"{__name__}."):
        if module.ispkg or "._" in module.name:
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


def unable(algorithm: str, what: str, able: Iterable[str]) -> PreconditionError:
    """The refusal of an algorithm that does not do what is needed, with the names of those that do."""
    return PreconditionError(f"{algorithm} does not {what}; {', '.join(able) or 'none'} do")

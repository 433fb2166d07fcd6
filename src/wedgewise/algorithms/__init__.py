"""The registry: every module here and in cpu/ and gpu/ defines an ``ALGORITHM`` of its name; found, never listed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from wedgewise.errors import PreconditionError, UnknownNameError

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Algorithm


ENGINE, TRUSS_ENGINE = "keystone", "peel"  # what `auto` takes for all but small graphs


PACKAGES = {__name__: "cpu", f"{__name__}.cpu": "cpu", f"{__name__}.gpu": "cuda"}  # and the device of what they hold

_found: dict[tuple[str, str], Algorithm] = {}


@cache
def registry() -> dict[tuple[str, str], Algorithm]:
    """All algorithms by (name, device), in alphabetical order."""
    for key in _modules().keys() - _found.keys():
        _load(key)
    ordered = sorted(_found.items())
    _found.clear()
    _found.update(ordered)
    return _found


def find(name: str, device: str) -> Algorithm:
    """The algorithm of that name on that device; no other is imported."""
    key = (name, device)
    if (algorithm := _found.get(key)) is not None:
        return algorithm
    if key in _modules():
        return _load(key)
    names = ", ".join(known for known, where in registry() if where == device) or "none"
    raise UnknownNameError(f"no algorithm named {name!r} on {device}; there are: {names}")


@cache
def _modules() -> dict[tuple[str, str], str]:
    """The modules of all algorithms, each of which is named as its algorithm is."""
    import pkgutil

    found: dict[tuple[str, str], str] = {}
    for package, device in PACKAGES.items():
        folders = [os.path.join(path, *package.split(".")[2:]) for path in __path__]
        for module in pkgutil.iter_modules(folders):
            if module.ispkg or module.name.startswith("_"):
                continue
            key, path = (module.name, device), f"{package}.{module.name}"
            if key in found:
                raise RuntimeError(f"{path} and {found[key]} have one name on one device")
            found[key] = path
    return found


def _load(key: tuple[str, str]) -> Algorithm:
    """The algorithm that a module defines, which is imported for that."""
    algorithm: Algorithm = importlib.import_module(_modules()[key]).ALGORITHM
    if (algorithm.name, algorithm.device) != key:
        raise RuntimeError(f"{_modules()[key]} defines {algorithm.name} on {algorithm.device}: name it so")
    _found[key] = algorithm
    return algorithm


def find_able(name: str, device: str, is_able: Callable[[Algorithm], object], what: str) -> Algorithm:
    """The algorithm of that name on that device; refuse one that does not do what is needed, and name those that do."""
    algorithm = find(name, device)
    if is_able(algorithm):
        return algorithm
    able = (f"{other} on {where}" for (other, where), record in registry().items() if is_able(record))
    raise PreconditionError(f"{name} on {device} does not {what}; {', '.join(able) or 'none'} do")

"""The layers of the package, and the imports that break them.

A module imports from its own layer or from one below. Within a layer, packages do not import each other in a cycle.
Lazy imports and those for type checkers count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"

# Lowest first. A name stands for a module or a package; the longest name that fits a module decides.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("wedgewise.errors", "wedgewise.version", "_wedgewise_start.signals", "_wedgewise_nx"),
    ("wedgewise.machine",),
    ("wedgewise.stages",),
    ("wedgewise.prepare", "wedgewise.read", "wedgewise.generate"),
    ("wedgewise.graph",),
    ("wedgewise.row_edges", "wedgewise.interop", "wedgewise.write"),
    ("wedgewise.algorithms",),
    ("wedgewise.run.task_memory",),
    ("wedgewise.store",),
    ("wedgewise.run", "wedgewise.answer_types"),
    (
        *("wedgewise.answer.questions", "wedgewise.answer.coefficients"),
        *("wedgewise.answer.similarity", "wedgewise.answer.truss_summary"),
    ),
    ("wedgewise.result_tables", "wedgewise.result"),
    ("wedgewise.answer",),
    ("wedgewise.api", "wedgewise.api_listing", "wedgewise.api_similarity", "wedgewise.api_trusses"),
    ("wedgewise",),
    ("wedgewise.interop.networkx_backend", "wedgewise.datasets", "wedgewise.report"),
    ("wedgewise_bench",),
    ("wedgewise.cli", "wedgewise.__main__", "_wedgewise_start"),
)
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}


def module_files(sources: Path = SOURCES) -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for path in sorted(sources.rglob("*.py")):
        parts = path.relative_to(sources).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, modules: Mapping[str, object]) -> set[str]:
    """The modules of ours that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & modules.keys()
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found |= {inner if inner in modules else node.module} & modules.keys()
    return found


def unit_of(module: str) -> str:
    """The name in `LAYERS` that decides about a module."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(name for name in names if name in LAYER)


def broken_imports(sources: Path = SOURCES) -> Iterator[str]:
    """What is wrong, in words: imports from a layer above, and cycles among the packages of a layer."""
    modules = module_files(sources)
    below: dict[str, set[str]] = {unit: set() for unit in LAYER}
    for module, path in modules.items():
        unit = unit_of(module)
        for other in sorted(imports_of(path, modules)):
            imported = unit_of(other)
            if LAYER[imported] > LAYER[unit]:
                yield f"{module} imports {other}, which is above"
            elif imported != unit:
                below[unit].add(imported)
    yield from (f"{' → '.join(cycle)} is a cycle" for cycle in _cycles(below))


def _cycles(below: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """A cycle of imports for every unit that imports itself by way of others."""
    for start in below:
        paths, seen = [[start]], set[str]()
        while paths:
            path = paths.pop()
            for unit in sorted(below[path[-1]]):
                if unit == start:
                    yield [*path, start]
                    paths = []
                    break
                if unit not in seen and LAYER[unit] == LAYER[start]:
                    seen.add(unit)
                    paths.append([*path, unit])

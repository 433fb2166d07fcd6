"""The documentation pages that are made from the code: ``python -m wedgewise.report.pages [folder]``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import Algorithm
from wedgewise.storage import atomic_write

HEAD = """\
# Algorithms

This page is made by `make docs` from what each algorithm declares; edit the algorithm, not the page.
`wedgewise algorithms` prints the same facts, `wedgewise algorithms --json` for programs.

| name | device | unit | answers | compiled | paper |
|---|---|---|---|---|---|
"""


def algorithms_page() -> str:
    """Every registered algorithm, as Markdown."""
    found = list(registry().values())
    return HEAD + "".join(map(_row, found)) + "".join(map(_section, found))


def _row(algorithm: Algorithm) -> str:
    cells = (
        f"[{algorithm.name}](#{algorithm.name}-on-{algorithm.device})",
        algorithm.device,
        algorithm.unit,
        ", ".join(algorithm.answers),
        "yes" if algorithm.compiled else "no",
        algorithm.paper,
    )
    return f"| {' | '.join(cells)} |\n"


def _section(algorithm: Algorithm) -> str:
    lines = [
        f"\n## {algorithm.name} on {algorithm.device}\n",
        f"{algorithm.summary}\n",
        f"- Orders, the default first: {', '.join(algorithm.orders)}.",
        f"- Ids by, the default first: {', '.join(algorithm.relabellings)}.",
        f"- Limits: {algorithm.limits}.",
        *_knobs(algorithm),
    ]
    return "\n".join(lines) + "\n"


def _knobs(algorithm: Algorithm) -> list[str]:
    if not algorithm.knobs:
        return ["- Knobs: none."]
    table = ["", "| knob | default | allowed | meaning |", "|---|---|---|---|"]
    for knob in algorithm.knobs:
        allowed = ", ".join(knob.choices) or f"integers from {knob.least}"
        table.append(f"| `{knob.name}` | {knob.default} | {allowed} | {knob.meaning} |")
    return table


PAGES: dict[str, Callable[[], str]] = {"algorithms.md": algorithms_page}


def write_pages(folder: Path) -> list[Path]:
    """Write every generated page into `folder` and say which ones."""
    written = []
    for name, page in PAGES.items():
        with atomic_write(folder / name) as file:
            file.write(page().encode())
        written.append(folder / name)
    return written


if __name__ == "__main__":
    for path in write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")):
        print(path)

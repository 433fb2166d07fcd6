"""A page of examples as a notebook: its text as it is, its examples as cells with their output."""

from __future__ import annotations

import doctest
import json
import re
from typing import Any

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PARSER = doctest.DocTestParser()


def notebook_of(page: str) -> str:
    """The notebook of a page, as its file has it."""
    cells: list[dict[str, Any]] = []
    for number, piece in enumerate(PYTHON.split(page)):
        if number % 2:
            cells += _code_cells(piece)
        elif piece.strip():
            cells.append({"cell_type": "markdown", "metadata": {}, "source": _lines(piece.strip())})
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _code_cells(block: str) -> list[dict[str, Any]]:
    """A cell for every example with output, with those before it that have none."""
    cells, waiting = [], ""
    for example in PARSER.get_examples(block):
        waiting += example.source
        if example.want:
            cells.append(_code_cell(waiting, example.want))
            waiting = ""
    return [*cells, _code_cell(waiting, "")] if waiting else cells


def _code_cell(source: str, output: str) -> dict[str, Any]:
    data = {"text/plain": _lines(output.rstrip("\n"))}
    shown = {"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [shown] if output else [],
        "source": _lines(source.rstrip("\n")),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)

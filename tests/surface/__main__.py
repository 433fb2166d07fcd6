"""Renews the tables of `recorded/`; the stores there stay, for they are what older versions have made."""

from __future__ import annotations

import tempfile
from pathlib import Path

from . import stage, tables
from .shell import run_all


def main() -> None:
    """Write every table anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = stage.make_files(Path(name))
        cache = {"WEDGEWISE_CACHE": str(folder / "cache")}
        ended = run_all((*stage.MAKING, *stage.OBJECTS), folder)
        ended |= run_all(stage.DATASETS, folder, environment=cache)
        said = run_all((*stage.TEXT, *stage.FAILING), folder)
        said |= run_all(stage.FAILING_DATASETS, folder, environment=cache)
        run_all(stage.writing(), folder)
        tables.record("names", tables.names_table())
        tables.record("generated", tables.generated_table())
        tables.record("algorithms", tables.algorithms_table(ended["algorithms --json"].record))
        tables.record("commands", tables.commands_table(folder))
        tables.record("objects", tables.objects_table(ended))
        tables.record("text", tables.text_table(said))
        tables.record("files", tables.files_table(folder, stage.writing()))


main()

"""Changes to a copy of our sources, each at a text that occurs once; afterwards the copy is as it was."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Edit:
    """A text of one source file, which occurs there once, and what stands in its place."""

    path: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.path}: {found} places instead of one to change:\n{self.old}")
        return text.replace(self.old, self.new)


def edited(package: Path, edits: Sequence[Edit]) -> dict[str, str]:
    """The files that edits change, one edit after the other, as they read then."""
    texts: dict[str, str] = {}
    for edit in edits:
        before = texts[edit.path] if edit.path in texts else (package / edit.path).read_text(encoding="utf-8")
        texts[edit.path] = edit.applied(before)
    return texts


@contextmanager
def seeded(package: Path, edits: Sequence[Edit]) -> Iterator[None]:
    """A copy of the package with the edits in it; afterwards it is as it was."""
    texts = edited(package, edits)
    originals = {path: (package / path).read_text(encoding="utf-8") for path in texts}
    try:
        for path, text in texts.items():
            _write(package / path, text)
        yield
    finally:
        for path, text in originals.items():
            _write(package / path, text)


def _write(path: Path, text: str) -> None:
    """Write a source file; bytecode of its former text might look as young and as long, and goes."""
    path.write_text(text, encoding="utf-8")
    if path.suffix == ".py":
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

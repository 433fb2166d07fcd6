"""The journal of a count of a store, which is part of its format: up to 100 finished tasks a line, with a checksum."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any


def journal_line(**record: Any) -> bytes:
    """A line as it is written."""
    checksum = zlib.crc32(json.dumps(record, sort_keys=True).encode())
    return json.dumps({**record, "check": checksum}).encode() + b"\n"


def lines_of(journal: Path) -> list[bytes]:
    """The whole lines of a journal; the last one may be torn."""
    content = journal.read_bytes() if journal.exists() else b""
    return content[: content.rfind(b"\n") + 1].splitlines(keepends=True)

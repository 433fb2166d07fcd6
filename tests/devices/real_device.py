"""Which device there is, and what runs on it."""

from __future__ import annotations

import gc
import warnings

import pytest

import wedgewise as ww
from wedgewise.machine import gpu

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what CuPy imports
    WHY_NOT = gpu.why_no_device()
needs_device = [pytest.mark.gpu, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]

RECORDS = [record for record in ww.algorithms() if record.device == "cuda" and "count" in record.answers]
for_every_algorithm = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)


def held_bytes() -> int:
    """Device memory that we hold: what the driver takes for itself comes and goes, and is not ours."""
    gc.collect()
    return int(gpu.find_device()._pool.used_bytes())

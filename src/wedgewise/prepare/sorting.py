"""64-bit keys sorted by arrays, in parallel and in parts, so that signals are heard between two of them.

    keys ─sort each part→ sorted parts ─cut all at the same values→ ranges ─join and sort→ keys in order

Beyond the keys it takes as many bytes again. `radix` is faster where kernels are loaded and copies are dropped.
"""

from __future__ import annotations

import numpy as np

from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Keys

PART_KEYS = 1 << 20
SAMPLED = 64  # keys of each part that are looked at to find values to cut at


def sorted_keys(keys: Keys, threads: int) -> Keys:
    """The keys in ascending order; the array that is given is overwritten."""
    parts = [keys[begin : begin + PART_KEYS] for begin in range(0, len(keys), PART_KEYS)]
    run_tasks(lambda number, _: parts[number].sort(), len(parts), threads)
    if len(parts) <= 1:
        return keys
    sample = np.sort(np.concatenate([part[:: max(1, len(part) // SAMPLED)] for part in parts]))
    values = sample[len(sample) // len(parts) :: len(sample) // len(parts)]
    cuts = np.array([[0, *np.searchsorted(part, values).tolist(), len(part)] for part in parts])
    ends = np.append(0, np.cumsum(np.diff(cuts, axis=1).sum(axis=0)))
    in_order = np.empty_like(keys)

    def join(number: int, _worker: int) -> None:
        joined = in_order[ends[number] : ends[number + 1]]
        ranges = [part[cut[number] : cut[number + 1]] for part, cut in zip(parts, cuts, strict=True)]
        np.concatenate(ranges, out=joined)
        joined.sort()

    run_tasks(join, len(ends) - 1, threads)
    return in_order

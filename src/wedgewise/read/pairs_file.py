"""Raw binary pairs (.bel) → EdgeList: little-endian int32 or int64, two per pair, nothing else; mapped, never
copied.

The width comes from ``format="bel32"``/``"bel64"`` or the suffix .bel32/.bel64. A plain .bel file is judged
by content: when every second 32-bit word is zero, the words are the upper halves of 64-bit ids below 2^32.
As 32-bit ids they would be a star into vertex 0, whose pairs are all different; where no lower half
repeats, the file may be either and is refused. Any other file holds 32-bit ids, so that 64-bit ids of 2^32
and more have to be named as such.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.graph import EdgeList, Origin
from wedgewise.read.checks import first_outside, kept_type
from wedgewise.read.content import Content
from wedgewise.read.limits import Limits

SCAN_WORDS = 2**21
NAME_THE_WIDTH = 'pass format="bel32" or format="bel64"'


def read_bel(content: Content, limits: Limits) -> EdgeList:
    """Read raw pairs whose width the content has to tell."""
    raw = content.whole()
    if len(raw) % 8:
        raise _wrong_size(content.name, len(raw), 4)
    if len(raw) == 0 or not could_be_wide(raw):
        return _pairs(content, raw, 4, limits, "32-bit by its content")
    if not repeats(raw.view("<u4")[::2]):
        raise FormatError(
            "reads as 64-bit pairs and as 32-bit pairs with vertex 0",
            path=content.name,
            remedy=NAME_THE_WIDTH,
        )
    return _pairs(content, raw, 8, limits, "64-bit by its content")


def read_bel32(content: Content, limits: Limits) -> EdgeList:
    """Read raw little-endian int32 pairs."""
    return _pairs(content, content.whole(), 4, limits, "32-bit as named")


def read_bel64(content: Content, limits: Limits) -> EdgeList:
    """Read raw little-endian int64 pairs."""
    return _pairs(content, content.whole(), 8, limits, "64-bit as named")


def _pairs(content: Content, raw: NDArray[np.uint8], width: int, limits: Limits, note: str) -> EdgeList:
    if len(raw) % (2 * width):
        raise _wrong_size(content.name, len(raw), width)
    limits.check("pairs", len(raw) // (2 * width), path=content.name)
    pairs: NDArray[Any] = kept_type(raw.view(f"<i{width}").reshape(-1, 2))
    outside = first_outside(pairs)
    if outside is not None:
        raise FormatError(
            f"pair {outside[0] // 2} holds a negative id",
            path=content.name,
            text=str(outside[1]),
            remedy=f"ids are non-negative; if the width is wrong, {NAME_THE_WIDTH}",
        )
    return EdgeList(pairs, Origin(content.name, f"bel{8 * width}", (note,)))


def could_be_wide(raw: NDArray[np.uint8]) -> bool:
    """Whether these can be 64-bit pairs of ids below 2^32; stops at the first block that says no."""
    if len(raw) % 16:
        return False
    words = raw.view("<u4")
    blocks = range(0, len(words), SCAN_WORDS)
    return not any(words[begin + 1 : begin + SCAN_WORDS : 2].any() for begin in blocks)


def repeats(values: NDArray[np.uint32]) -> bool:
    """Whether some value occurs twice, usually known from the first few."""
    return any(len(np.unique(part)) < len(part) for part in (values[:SCAN_WORDS], values))


def _wrong_size(name: str, size: int, width: int) -> FormatError:
    return FormatError(
        f"{size:,} bytes are no whole number of {8 * width}-bit pairs ({2 * width} bytes each)",
        path=name,
        remedy=f"the file is truncated or no raw pairs file; {NAME_THE_WIDTH} if the width is wrong",
    )

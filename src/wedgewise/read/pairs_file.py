"""Raw binary pairs (.bel): little-endian int32 or int64, two per pair, nothing else.

The width comes from ``format="bel32"``/``"bel64"`` or the suffix .bel32/.bel64. A plain .bel file is judged
by content: when every second 32-bit word is zero, the words are the upper halves of 64-bit ids below 2^32.
As 32-bit ids they would be a star into vertex 0, whose pairs are all different; where no lower half
repeats, the file may be either and is refused. Any other file holds 32-bit ids, so that 64-bit ids of 2^32
and more have to be named as such. In pieces, the first of them is judged, and the others have to agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.read import ReadOptions
from wedgewise.read._byte_pieces import Bytes
from wedgewise.read.content import Content
from wedgewise.read.pieces import PairPieces, Piece, first_outside, kept_type
from wedgewise.stages import Origin

SCAN_WORDS = 2**21
BLOCK_BYTES = 2**21
NAME_THE_WIDTH = 'pass format="bel32" or format="bel64"'


def pieces_of_bel(content: Content, options: ReadOptions, named_width: int | None = None) -> PairPieces:
    """Raw little-endian pairs; the content has to tell how wide integers are that nobody has named the width of."""
    blocks = iter([content.whole()]) if options.whole else content.blocks(BLOCK_BYTES)
    width, note = named_width or 4, "as named"
    if named_width is None:
        first, note = next(blocks, np.empty(0, np.uint8)), "by its content"
        blocks = chain([first], blocks)
        if len(first) and could_be_wide(first):
            if not repeats(first.view("<u4")[::2]):
                raise _ambiguous(content.name)
            width = 8
    expected = None if content.size is None else content.size // (2 * width)
    if expected is not None:
        options.limits.check("pairs", expected, path=content.name)
    origin = Origin(content.name, f"bel{8 * width}", (f"{8 * width}-bit {note}",))
    return PairPieces(origin, _checked(blocks, width, named_width is None, content.name), expected)


pieces_of_bel32 = partial(pieces_of_bel, named_width=4)
pieces_of_bel64 = partial(pieces_of_bel, named_width=8)


def _checked(blocks: Iterator[Bytes], width: int, judged: bool, name: str) -> Iterator[Piece]:
    """Blocks of bytes as pairs of that width, each checked."""
    step, size, carried = 2 * width, 0, np.empty(0, np.uint8)
    for block in blocks:
        raw = np.concatenate((carried, block)) if len(carried) else block
        pairs = kept_type(raw[: len(raw) // step * step].view(f"<i{width}").reshape(-1, 2))
        outside = first_outside(pairs)
        if outside is not None:
            raise FormatError(
                f"pair {size // step + outside[0] // 2} holds a negative id",
                path=name,
                text=str(outside[1]),
                remedy=f"ids are non-negative; if the width is wrong, {NAME_THE_WIDTH}",
            )
        if judged and width == 8 and len(pairs) and int(pairs.max()) >= 2**32:
            raise _ambiguous(name)
        carried = raw[len(pairs) * step :]
        size += len(raw) - len(carried)
        yield pairs
    if len(carried):
        width = 4 if judged else width
        raise FormatError(
            f"{size + len(carried):,} bytes are no whole number of {8 * width}-bit pairs ({2 * width} bytes each)",
            path=name,
            remedy=f"the file is truncated or no raw pairs file; {NAME_THE_WIDTH} if the width is wrong",
        )


def _ambiguous(name: str) -> FormatError:
    return FormatError("reads as 64-bit pairs and as 32-bit pairs with vertex 0", path=name, remedy=NAME_THE_WIDTH)


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

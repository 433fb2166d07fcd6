"""Text in pieces of whole lines: blocks of a file, and chunks of a block that threads parse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wedgewise.machine.threads import run_tasks
from wedgewise.read._byte_pieces import Bytes
from wedgewise.read.content import Content
from wedgewise.stages.limits import Limits

CHUNK_BYTES = 4 * 2**20
ARRAY_CHUNK_BYTES = 2**20  # NumPy takes up to 80 bytes for a byte of text
BLOCK_BYTES = 16 * 2**20


def whole_lines(content: Content, skip: int, limits: Limits, block_bytes: int | None = None) -> Iterator[Bytes]:
    """The text behind its first `skip` bytes, in pieces that end with a line, all in the same memory: use one, then
    take the next.

    A line over the limit is handed on as far as it came: it is refused where its number is known.
    """
    fill, size = content.reader(), block_bytes or BLOCK_BYTES
    if content.size is not None:
        size = min(size, content.size + 1)  # so that the end is seen
    limits.check_memory(size, path=content.name)
    block, carried = np.empty(size, np.uint8), 0
    while skip:
        skipped = fill(block[:skip])
        skip -= skipped or skip
    while True:
        end = carried + fill(block[carried:])
        is_last = end < len(block)
        cut = end if is_last else _behind_last_newline(block)
        if end - cut > limits.line_bytes:
            cut = end
        if cut:
            yield block[:cut]
        if is_last:
            return
        carried = end - cut
        if 2 * carried > len(block):
            limits.check_memory(2 * len(block), path=content.name)
            block = np.concatenate((block[cut:end], np.empty(2 * len(block) - carried, np.uint8)))
        else:
            block[:carried] = block[cut:end]


def cut_at_newlines(text: Bytes, chunk_bytes: int, line_bytes: int) -> list[int]:
    """Positions behind newlines about `chunk_bytes` apart, from 0 to the end.

    A line of more than `line_bytes` may be cut inside, so that no chunk is larger than both together; the chunk
    in which it begins holds enough of it to be refused.
    """
    cuts = [0]
    while len(text) - cuts[-1] > chunk_bytes:
        at = cuts[-1] + chunk_bytes
        within = text[: at + line_bytes + 1]
        cuts.append(min(find_newline(within, at) + 1, len(within)))
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return cuts


def lines_of_chunks(text: Bytes, cuts: list[int], threads: int) -> list[int]:
    """Lines per chunk, the last one with its newline or without: what bounds its rows."""

    def count(chunk: int, _worker: int) -> int:
        part = text[cuts[chunk] : cuts[chunk + 1]]
        return count_newlines(part) + int(part[-1] != ord("\n"))

    return run_tasks(count, len(cuts) - 1, threads)


def lines_in(chunk: Bytes) -> Iterator[bytes]:
    """The lines of a chunk, one by one."""
    lines = chunk.tobytes().split(b"\n")
    if not lines[-1]:
        lines.pop()
    return iter(lines)


def find_newline(text: Bytes, at: int) -> int:
    """Position of the first newline from `at` on; the end of the text without one."""
    window = 256
    while at < len(text):
        found = np.flatnonzero(text[at : at + window] == ord("\n"))
        if len(found):
            return at + int(found[0])
        at += window
        window = min(2 * window, CHUNK_BYTES)
    return len(text)


def count_newlines(text: Bytes) -> int:
    """How many newlines there are."""
    slices = range(0, len(text), 2**18)
    return sum(int(np.count_nonzero(text[at : at + 2**18] == ord("\n"))) for at in slices)


def _behind_last_newline(text: Bytes) -> int:
    end, window = len(text), 256
    while end > 0:
        begin = max(0, end - window)
        found = np.flatnonzero(text[begin:end] == ord("\n"))
        if len(found):
            return begin + int(found[-1]) + 1
        end = begin
        window *= 2
    return 0

"""Blocks on a device: how one lies there, and how it comes.

offsets │ heads │ what an algorithm makes of both        one piece of memory, so that a block is one copy

Memory is taken at once, by sizes that are known before a block is read; so what counts it can be planned while a thread
of its own reads and sends it.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wedgewise.algorithms._contract import DeviceBlock
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.machine.streams import Sent, Stamp
from wedgewise.stages.blocks import Block

ARRAY_BYTES = 512  # what pieces of memory on a device begin at multiples of


class DeviceLayout(NamedTuple):
    """The 32-bit words of a block on a device: offsets, heads from `heads` on, what is made of it from `made` on."""

    heads: Any
    made: Any
    end: Any

    @classmethod
    def of(cls, offset_type: np.dtype[Any], rows: Any, arcs: Any, made_words: Any) -> DeviceLayout:
        """Of one block, or of arrays of them; what is made begins at a whole 64-bit word."""
        heads = offset_type.itemsize // 4 * (rows + 1)
        made = (heads + arcs + 1) // 2 * 2
        return cls(heads, made, made + made_words)


@dataclass(slots=True)
class Shipment:
    """Blocks that are copied together, by another thread."""

    sending: Future[Sent]
    is_recorded: bool = False

    @property
    def sent(self) -> Sent:
        """The copies, once all are under way; what kept them from that comes out here."""
        return self.sending.result()


@dataclass(slots=True)
class Arrived:
    """A block on a device, or on its way there, and from when on there is what an algorithm makes of it."""

    there: DeviceBlock
    shipment: Shipment
    made_at: Stamp | None = None


class Expected(NamedTuple):
    """What is known of a block before it is read."""

    rows: int
    columns: int
    arcs: int
    made_words: int


def allocate(blocks: list[Expected], offset_type: np.dtype[Any], device: StreamingDevice) -> list[DeviceBlock]:
    """One piece of memory for each block, which holds what is made of it as well."""
    layouts = [DeviceLayout.of(offset_type, block.rows, block.arcs, block.made_words) for block in blocks]
    there: list[DeviceBlock] = []
    for block, at, memory in zip(blocks, layouts, device.allocate([at.end for at in layouts]), strict=True):
        arrays = memory[: at.heads].view(offset_type), memory[at.heads : at.heads + block.arcs]
        there.append(DeviceBlock(Block(*arrays, block.columns), memory[at.made :] if at.made < at.end else None))
    return there


def send(blocks: list[Block], there: list[DeviceBlock], device: StreamingDevice) -> Sent:
    """Start to copy blocks to the memory that they have there."""
    sources = [
        array
        for block, one in zip(blocks, there, strict=True)
        for array in (block.offsets.astype(one.block.offsets.dtype, copy=False), block.heads)
    ]
    return device.send(sources, [array for one in there for array in (one.block.offsets, one.block.heads)])


def shipments_of(blocks: Iterable[Arrived]) -> list[Shipment]:
    """The shipments that blocks came in, each once."""
    return list({id(arrived.shipment): arrived.shipment for arrived in blocks}.values())

"""Blocks on a device: how one lies there, and how it comes.

offsets │ heads │ what an algorithm makes of both        one piece of memory, so that a block is one copy
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """Blocks that are copied together."""

    sent: Sent
    is_recorded: bool = False


@dataclass(slots=True)
class Arrived:
    """A block on a device, or on its way there, and from when on there is what an algorithm makes of it."""

    there: DeviceBlock
    shipment: Shipment
    made_at: Stamp | None = None


def ship(blocks: list[Block], made_words: list[int], device: StreamingDevice) -> list[Arrived]:
    """Start to copy blocks; each has one piece of memory, which holds what is made of it as well."""
    layouts = [
        DeviceLayout.of(block.offsets.dtype, block.rows, block.m, words)
        for block, words in zip(blocks, made_words, strict=True)
    ]
    there: list[DeviceBlock] = []
    for block, at, memory in zip(blocks, layouts, device.allocate([at.end for at in layouts]), strict=True):
        arrays = memory[: at.heads].view(block.offsets.dtype), memory[at.heads : at.heads + block.m]
        there.append(DeviceBlock(Block(*arrays, block.columns), memory[at.made :] if at.made < at.end else None))
    sources = [array for block in blocks for array in (block.offsets, block.heads)]
    targets = [array for one in there for array in (one.block.offsets, one.block.heads)]
    shipment = Shipment(device.send(sources, targets))
    return [Arrived(one, shipment) for one in there]


def shipments_of(blocks: Iterable[Arrived]) -> list[Shipment]:
    """The shipments that blocks came in, each once."""
    return list({id(arrived.shipment): arrived.shipment for arrived in blocks}.values())


def with_offsets(block: Block, width: np.dtype[Any]) -> Block:
    """The same block; its offsets are of this type."""
    return Block(block.offsets.astype(width, copy=False), block.heads, block.columns)

"""What an algorithm declares. A module that assigns an `Algorithm` to ``ALGORITHM`` is registered by being there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.graph import OrientedGraph
from wedgewise.orient import ORDERS, RELABELLINGS

Knobs = Mapping[str, int | str]
Counts = tuple[SupportsInt, SupportsInt]  # triangles found, membership tests made


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter with the paper's default; an integer has a least value, a name has choices."""

    name: str
    default: int | str
    meaning: str
    least: int = 0
    choices: tuple[str, ...] = ()

    def parse(self, value: int | str) -> int | str:
        """The value as this knob's type, or an error that says what is allowed."""
        if self.choices:
            if value not in self.choices:
                raise InputError(f"knob {self.name} is one of {', '.join(self.choices)}, not {value!r}")
            return value
        try:
            number = int(value)
        except ValueError:
            raise InputError(f"knob {self.name} is an integer of at least {self.least}, not {value!r}") from None
        if number < self.least:
            raise InputError(f"knob {self.name} is at least {self.least}, not {number}")
        return number


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of an oriented graph before memory is taken for it."""

    n: int
    m: int
    wedges: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """A prepared count: task i covers ``[bounds[i], bounds[i + 1])`` and lasts about 50 ms at most.

    ``count(begin, end, workspace)`` returns the triangles found and the membership tests made in that range.
    ``workspace()`` makes what one thread needs for itself.
    """

    bounds: NDArray[np.int64]
    count: Callable[[int, int, Any], Counts]
    workspace: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One published method on one device.

    Attributes
    ----------
    name, device : the key of the registry
    unit : "graph" works on a whole oriented graph, "triple" on three blocks of it
    answers : the questions it answers
    paper : where it was published
    summary : one sentence
    limits : what it refuses, in words
    orders, relabellings : the oriented graphs it accepts; the first of each is its default
    knobs : its parameters with the paper's defaults
    bytes_needed : memory beyond the oriented graph, from its shape, the threads and the knobs
    prepare : turns an oriented graph into `Work`, on so many threads
    compiled : whether it needs Numba (a fresh process pays for loading it)
    """

    name: str
    device: str
    unit: str
    answers: tuple[str, ...]
    paper: str
    summary: str
    prepare: Callable[[OrientedGraph, Knobs, int], Work]
    bytes_needed: Callable[[Shape, int, Knobs], int]
    limits: str = "none beyond those of the graph types"
    orders: tuple[str, ...] = ORDERS
    relabellings: tuple[str, ...] = RELABELLINGS
    knobs: tuple[Knob, ...] = ()
    compiled: bool = True

    def settings(self, given: Mapping[str, int | str] | None) -> dict[str, int | str]:
        """All knobs with their values: the given ones checked, the others at their defaults."""
        known = {knob.name: knob for knob in self.knobs}
        for name in given or {}:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise UnknownNameError(f"{self.name} has no knob {name!r}; it has: {listed}")
        return {name: knob.parse((given or {}).get(name, knob.default)) for name, knob in known.items()}

"""What a generator returns (`EdgeStream`) and how the registry describes it (`Generator`, `Parameter`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.machine.hardware import granted_threads
from wedgewise.machine.threads import run_tasks

Pairs = NDArray[Any]

BLOCK_PAIRS = 2**16
BLOCKS_PER_THREAD = 4
MAX_VERTICES = 2**62
MAX_SEED = 2**64 - 1
KINDS = {int: "int", tuple[int, ...]: "ints", float: "float", str: "text"}
PARSERS: Mapping[str, Callable[[str], object]] = {
    "int": int,
    "ints": lambda text: tuple(map(int, text.split(","))),
    "float": float,
    "text": str,
}


@dataclass(frozen=True, slots=True)
class EdgeStream:
    """The pairs of a generated graph, computed block by block when they are asked for.

    Attributes
    ----------
    name : the graph's name, such as ``"kronecker-18-seed1"``
    parameters : what it was generated from
    n : number of vertices; ids are 0 … n − 1
    pairs_count : number of pairs; random families may repeat a pair or draw a loop, closed forms never do
    pairs_between : the pairs of a range of positions, as two arrays (first ends, second ends)
    expected_triangles : the exact count where a formula gives it, else None

    Examples
    --------
    >>> from wedgewise.generate import book
    >>> stream = book(2)
    >>> stream.name, stream.n, stream.pairs_count, stream.expected_triangles
    ('book-2', 4, 5, 2)
    >>> stream.pairs().tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3]]
    """

    name: str
    parameters: Mapping[str, object]
    n: int
    pairs_count: int
    pairs_between: Callable[[int, int], tuple[NDArray[Any], NDArray[Any]]]
    expected_triangles: int | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the ids: int32 while they fit, else int64."""
        return np.dtype(np.int32 if self.n <= 2**31 else np.int64)

    def block(self, start: int, stop: int) -> Pairs:
        """The pairs at positions start … stop − 1 as an array of shape (stop − start, 2)."""
        pairs = np.empty((stop - start, 2), self.dtype)
        pairs[:, 0], pairs[:, 1] = self.pairs_between(start, stop)
        return pairs

    def blocks(self, *, threads: int = 1) -> Iterator[Pairs]:
        """All pairs in order, in arrays of at most 2^16; a few blocks per thread are in memory at a time."""
        starts = range(0, self.pairs_count, BLOCK_PAIRS)
        threads = granted_threads(threads)
        batch = BLOCKS_PER_THREAD * threads
        for first in range(0, len(starts), batch):
            some = starts[first : first + batch]
            yield from run_tasks(self._make_block_at(some), len(some), threads)

    def pairs(self, *, threads: int = 1) -> Pairs:
        """All pairs as one array of shape (pairs_count, 2)."""
        everything = np.empty((self.pairs_count, 2), self.dtype)
        starts = range(0, self.pairs_count, BLOCK_PAIRS)
        make_block = self._make_block_at(starts)

        def fill(task: int, worker: int) -> None:
            block = make_block(task, worker)
            everything[starts[task] : starts[task] + len(block)] = block

        run_tasks(fill, len(starts), granted_threads(threads))
        return everything

    def _make_block_at(self, starts: range) -> Callable[[int, int], Pairs]:
        """The task that makes the block at one of `starts`."""
        return lambda task, _worker: self.block(starts[task], min(starts[task] + BLOCK_PAIRS, self.pairs_count))


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a generator: its kind is "int", "ints", "float" or "text"."""

    name: str
    kind: str
    help: str
    required: bool
    default: object = None

    def parse(self, text: str) -> object:
        """The value that a command line's text stands for; several integers are separated by commas."""
        try:
            return PARSERS[self.kind](text)
        except ValueError as error:
            raise InputError(f"{self.name}: {text!r} is not of kind {self.kind}; {self.help}") from error


@dataclass(frozen=True, slots=True)
class Generator:
    """A family of graphs in the registry; call it with its parameters to get an `EdgeStream`."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    build: Callable[..., EdgeStream]

    def __call__(self, **values: object) -> EdgeStream:
        known = [parameter.name for parameter in self.parameters]
        for name in values:
            if name not in known:
                raise UnknownNameError(f"{self.name} has no parameter {name!r}; there are: {', '.join(known)}")
        missing = [item.name for item in self.parameters if item.required and item.name not in values]
        if missing:
            raise InputError(f"{self.name} needs {', '.join(missing)}; pass them by name")
        return self.build(**values)


def describe(function: Callable[..., EdgeStream], helps: Mapping[str, str]) -> Generator:
    """The registry's record of one generator function: kinds and defaults come from its signature."""
    hints = get_type_hints(function)
    parameters = tuple(
        Parameter(
            name=name,
            kind=KINDS[hints[name]],
            help=helps[name],
            required=item.default is inspect.Parameter.empty,
            default=None if item.default is inspect.Parameter.empty else item.default,
        )
        for name, item in inspect.signature(function).parameters.items()
    )
    summary = (function.__doc__ or "").partition("\n")[0].rstrip(".")
    return Generator(function.__name__, summary, parameters, function)


def positions(start: int, stop: int) -> NDArray[np.int64]:
    """start … stop − 1 as 64-bit integers, also where NumPy's default integer has 32 bits."""
    return np.arange(start, stop, dtype=np.int64)


def require(holds: bool, family: str, parameter: str, value: object, remedy: str) -> None:
    """Raise InputError that names the parameter, its value and what is allowed."""
    if not holds:
        raise InputError(f"{family}: {parameter}={value!r} cannot be used; {remedy}")


def require_integer(family: str, parameter: str, value: object, least: int, most: int = MAX_VERTICES) -> None:
    """Raise InputError unless the value is an int within the bounds."""
    holds = type(value) is int and least <= value <= most
    require(holds, family, parameter, value, f"give an int from {least:,} to {most:,}")


def require_vertices(family: str, n: int) -> None:
    """Raise InputError when the parameters ask for more vertices than 64-bit ids and positions can number."""
    require(n <= MAX_VERTICES, family, "n", n, f"choose parameters that give at most {MAX_VERTICES:,} vertices")


def probability(family: str, parameter: str, value: float) -> Fraction:
    """The exact fraction that a probability's decimal text stands for: 0.57 is 57/100."""
    try:
        exact = Fraction(str(value))
    except ValueError as error:
        raise InputError(f"{family}: {parameter}={value!r} is not a number; give one from 0 to 1") from error
    require(0 <= exact <= 1, family, parameter, value, "give a number from 0 to 1")
    return exact

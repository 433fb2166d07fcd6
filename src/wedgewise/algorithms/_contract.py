"""What an algorithm declares. A module that assigns an `Algorithm` to ``ALGORITHM`` is registered by being there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsInt, TypeVar

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.machine.gpu import Device
from wedgewise.machine.jit import CpuKernel
from wedgewise.machine.progress import Progress
from wedgewise.prepare.orient import ORDERS, RELABELLINGS
from wedgewise.stages import DeviceGraph, Ids, OrientedGraph

if TYPE_CHECKING:
    from wedgewise.stages.blocks import Block, Triple
    from wedgewise.stages.tasks import TaskBatch, TaskTable, TripleShape

TRUSSES = ("trussness", "k_truss", "max_truss")  # what rounds over the edges find, of all that can be computed
MAX_ARCS = 2 * 10**12  # T ≤ (√2 / 3) m^1.5 < 2^63 whenever m < 7.26e12: totals cannot overflow
DEVICE_TASK_BYTES = 256  # of a task in a batch on a device: its numbers, its blocks, what it finds

Kind = TypeVar("Kind")
Knobs = Mapping[str, int | str]
Counts = tuple[SupportsInt, SupportsInt]  # triangles found, membership tests made


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter with the paper's default; an integer has a least value and perhaps a greatest, a name has choices."""

    name: str
    default: int | str
    meaning: str
    least: int = 0
    choices: tuple[str, ...] = ()
    most: int | None = None

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
        if self.most is not None and number > self.most:
            raise InputError(f"knob {self.name} is at most {self.most}, not {number}")
        return number


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of an oriented graph before memory is taken for it."""

    n: int
    m: int
    wedges: int | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """Tasks that may run at the same time: task i covers ``[bounds[i], bounds[i + 1])``, about 50 ms at most.

    ``run(begin, end, workspace)`` returns the triangles found and the membership tests made in that range.
    ``workspace()`` makes what one thread needs for itself. Bounds do not depend on the number of threads.
    """

    bounds: NDArray[np.int64]
    run: Callable[[int, int, Any], Counts]
    workspace: Callable[[], Any] = lambda: None


@dataclass(frozen=True, slots=True)
class Work:
    """A prepared answer: passes, one after the other; together they find each triangle once.

    ``filled`` is what the passes write, each task its own slice, by id or by arc of the oriented graph:

        count              None
        triangles          uint64[n], the triangles of each vertex
        weighted_triangles uint64[n] or float64[n], their products of three arc strengths summed
        edge_support       uint32[m], the triangles of each arc
        list_triangles     uint32[m], for each arc a → b the triangles a, b, c that it opens: those with c behind b

    For a listing, ``fill(begin, end, triples, workspace)`` writes the triangles that arcs begin … end − 1 open, in
    order, three ids each, into a flat array of exactly their size; the workspace is that of the first pass.
    """

    passes: tuple[Pass, ...]
    filled: NDArray[Any] | None = None
    fill: Callable[[int, int, NDArray[np.uint32], Any], None] | None = None


Launch = Callable[[], None]


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """A prepared answer on a device: batches, one after the other, whose launches add to ``found``.

    Calling a batch makes what its launches read, and returns them; each takes at most about 250 ms. ``found`` is
    uint64[2] of the device, triangles and tests; it is cleared beforehand. ``filled`` is as in `Work`, of the device,
    and all zero before the first launch. For a listing, ``fill(begin, end, triples)`` launches what writes the
    triangles that arcs begin … end − 1 open, in order, three ids each, into a flat array of the device of exactly their
    size. ``kept`` has to stay as long as launches run, which may know no more than where it is.
    """

    batches: tuple[Callable[[], tuple[Launch, ...]], ...]
    found: Any
    filled: Any | None = None
    fill: Callable[[int, int, Any], None] | None = None
    kept: Any = None

    @classmethod
    def at_once(cls, launches: Iterable[Launch], found: Any, filled: Any | None = None, kept: Any = None) -> DeviceWork:
        """Launches for which everything is there."""
        listed = tuple(launches)
        return cls((lambda: listed,), found, filled, kept=kept)


@dataclass(frozen=True, slots=True)
class Answer:
    """How an algorithm answers one question on the CPU.

    ``prepare(graph, knobs, threads)`` turns an oriented graph into `Work`. ``bytes_needed(shape, threads, knobs)`` is
    the memory that it takes beyond the oriented graph. ``kernels`` are some that it calls: compiled copies of them
    exist once this answer was used on this machine.
    """

    prepare: Callable[[OrientedGraph, Knobs, int], Work]
    bytes_needed: Callable[[Shape, int, Knobs], int]
    kernels: tuple[CpuKernel[..., Any], ...] = ()


@dataclass(frozen=True, slots=True)
class BatchWork:
    """Block tasks that are prepared: passes over items, which are ranges of rows of a task.

    Attributes
    ----------
    passes : over all items
    task_of_item : positions among the tasks of the batch, ascending; every task has an item
    found : uint64[items, 3]: triangles, tests, and ticks of a clock
    seconds : of every item on one thread
    kept : what has to stay as long as passes run
    """

    passes: tuple[Pass, ...]
    task_of_item: NDArray[np.int64]
    found: NDArray[np.uint64]
    seconds: NDArray[np.float64]
    kept: Any = None

    def by_task(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]]:
        """The triangles, tests and seconds of every task, when all passes have run."""
        first = np.flatnonzero(np.diff(self.task_of_item, prepend=-1))
        triangles, tests, _ = np.add.reduceat(self.found, first, axis=0).T
        return triangles, tests, np.add.reduceat(self.seconds, first)


PrepareBatch = Callable[["TaskBatch"], BatchWork]


@dataclass(frozen=True, slots=True)
class TripleCost:
    """Seconds of one thread for all tasks of a graph: straight lines in what they visit; the defaults are keystone's.

    Attributes
    ----------
    per_wedge : of the graph, in its order
    per_arc : of blocks ij and ik, as often as tasks have them
    per_task : to prepare
    """

    per_wedge: float = 1.2e-10
    per_arc: float = 8e-9
    per_task: float = 2e-6


@dataclass(frozen=True, slots=True)
class TripleAnswer:
    """How an algorithm answers one question for tasks on three blocks each of an oriented graph.

    ``counter(knobs)`` returns what prepares one batch of tasks after the other; it may keep a block jk that a whole
    batch looked up in, and what it made of that, for the next one. Of a task, the rows of part i that are its share are
    counted.
    ``bytes_needed(shape, knobs)`` is the memory that a task takes beyond its blocks and threads; tasks of a batch that
    look up in the same block jk take no more than the one of them that takes most, while other blocks add up.
    ``thread_bytes(columns_k, knobs)`` is what each thread adds. ``cost`` is what time is estimated by.
    ``expected_bytes``, where it is less than the most that is needed, is what a task takes as a rule; its further
    argument says whether the graph is skewed. All of them take arrays, too, with a number for every task.
    ``lists_rows`` says that it is faster where blocks list the rows that have arcs.
    """

    counter: Callable[[Knobs], PrepareBatch]
    bytes_needed: Callable[[TripleShape, Knobs], Any]
    thread_bytes: Callable[[Any, Knobs], Any] = lambda columns_k, _knobs: 4 * columns_k
    cost: TripleCost = TripleCost()
    expected_bytes: Callable[[TripleShape, Knobs, bool], Any] | None = None
    lists_rows: bool = False

    def prepare(self, triple: Triple, knobs: Knobs, share: int = 0, shares: int = 1) -> BatchWork:
        """A task by itself."""
        from wedgewise.stages.tasks import one_task

        return self.counter(knobs)(one_task(triple, share, shares))


@dataclass(slots=True, eq=False)
class DeviceBlock:
    """A block in arrays of a device, and what an algorithm makes of it there for all tasks that have it."""

    block: Block
    made: Any = None
    is_made: bool = False

    @property
    def is_to_be_made(self) -> bool:
        """Whether nobody has made yet what there is memory for."""
        return self.made is not None and not self.is_made


@dataclass(frozen=True, slots=True)
class DeviceBatch:
    """Tasks whose blocks are on a device."""

    blocks: Mapping[tuple[int, int], DeviceBlock]
    tasks: TaskTable


@dataclass(frozen=True, slots=True)
class DeviceTripleAnswer:
    """How an algorithm counts batches of tasks on a device.

    ``prepare(batch, knobs, device)`` is work of a few launches whose ``found`` is uint64[tasks, 3]: triangles, tests,
    ticks of a clock. Nothing waits for the device, so that streams overlap: kernels decide what depends on degrees.
    ``bytes_needed(shape, knobs)`` is the device memory that a task takes beyond its blocks; those of a batch take no
    more than the one of them that takes most, and `DEVICE_TASK_BYTES` each. It takes arrays, too.
    ``made_words(arcs, columns, knobs)`` are the 32-bit words of what is made of a block, by the launches of
    ``make(blocks, knobs, device)``, once, before the first batch that has it.
    """

    prepare: Callable[[DeviceBatch, Knobs, Device], DeviceWork]
    bytes_needed: Callable[[TripleShape, Knobs], Any]
    made_words: Callable[[Any, Any, Knobs], Any] = lambda _arcs, _columns, _knobs: 0
    make: Callable[[Sequence[DeviceBlock], Knobs, Device], tuple[Launch, ...]] = lambda *_: ()


@dataclass(frozen=True, slots=True)
class SliceMethod:
    """How an algorithm adds the triangles of tasks to a slice: the vertices of a part, or the arcs of a block.

    ``prepare(batch, role, filled, knobs)`` is `Work` whose passes add to ``filled``, which is the same part or block of
    all tasks of the batch; ranges may do that at the same time:

        computed      role 0, 1, 2    filled
        triangles     part i, j, k    uint64 by id of that part: the triangles of each vertex
        edge_support  block ij, ik    uint32 by arc of that block: the triangles of each arc

    Arcs of block jk are those of block ik of the task (j, i, k), of which block ij is ``turned(block)``: its rows and
    columns have changed places.
    ``bytes_needed(shape, knobs)`` is the memory that a task takes beyond the blocks and ``filled``, and
    ``thread_bytes(shape, role, threads, knobs)`` what a batch takes for all threads. Both take arrays, too.
    """

    prepare: Callable[[TaskBatch, int, NDArray[Any], Knobs], Work]
    bytes_needed: Callable[[TripleShape, Knobs], Any]
    thread_bytes: Callable[[TripleShape, int, int, Knobs], Any]
    turned: Callable[[Block], Block] | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on an H200 as straight lines in what a graph has: of the kernels, and of preparing."""

    kernel: float
    per_arc: float
    per_wedge: float
    preparing: float
    preparing_per_arc: float

    def of_kernels(self, shape: Shape) -> float:
        return self.kernel + self.per_arc * shape.m + self.per_wedge * (shape.wedges or 0)

    def of_preparing(self, shape: Shape) -> float:
        return self.preparing + self.preparing_per_arc * shape.m


@dataclass(frozen=True, slots=True)
class DeviceAnswer:
    """How an algorithm answers one question on a device.

    ``prepare(graph, knobs, device)`` builds what its kernels read. ``bytes_needed(shape, knobs)`` is the device memory
    that it takes beyond the oriented graph, at its peak. Only one with a ``cost`` is chosen unless it is asked for.
    """

    prepare: Callable[[DeviceGraph, Knobs, Device], DeviceWork]
    bytes_needed: Callable[[Shape, Knobs], int]
    cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class TrussJob:
    """What is asked of an algorithm that finds trusses.

    ``k`` is None but for a k-truss, and then at least 3 with C(k, 2) ≤ m. ``progress("truss", done, total)`` is called
    once per round, on a device once per launch of many rounds, in the calling thread: of the graph's `total` edges,
    `done` are finished, or are out of the truss that is looked for.
    """

    k: int | None = None
    knobs: Knobs = field(default_factory=dict)
    threads: int = 1
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class FoundTruss:
    """What was found, by arc of the oriented graph, and the rounds that it took.

    computed    k                                           filled
    trussness   the largest truss number, 2 without edges   uint32[m], the truss number of each arc, at least 2
    k_truss     as asked for                                bool[m], whether each arc is in the k-truss
    max_truss   the largest with edges, 2 without any       bool[m], whether each arc is in that one
    """

    k: int
    filled: Any
    rounds: int
    in_level: NDArray[np.int64] | None = None  # the arcs of each truss number, where a device counts them


@dataclass(frozen=True, slots=True)
class TrussAnswer:
    """How an algorithm finds one of `TRUSSES` on the CPU.

    ``bytes_needed(shape, threads, knobs)`` is the memory that ``find`` takes beyond the oriented graph, what it returns
    included; ``kernels`` as of an `Answer`.
    """

    find: Callable[[OrientedGraph, TrussJob], FoundTruss]
    bytes_needed: Callable[[Shape, int, Knobs], int]
    kernels: tuple[CpuKernel[..., Any], ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceTrussAnswer:
    """How an algorithm finds one of `TRUSSES` on a device, where ``filled`` stays; otherwise as `DeviceAnswer`."""

    find: Callable[[DeviceGraph, TrussJob, Device], FoundTruss]
    bytes_needed: Callable[[Shape, Knobs], int]
    cost: Cost | None = None


def _of_kind(kind: type[Kind], answer: Any) -> Kind:
    """The answer itself, which is of that kind: the device of an algorithm says which kinds it has."""
    assert isinstance(answer, kind)
    return answer


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One published method on one device.

    Attributes
    ----------
    name, device : the key of the registry
    unit : "graph" works on a whole oriented graph, "triple" on three blocks of it
    answers : how it answers each question that it can, by name
    triples : how it answers the questions that it can for three blocks at a time
    sliced : how it computes slices of answers about each vertex or arc, three blocks at a time
    paper : where it was published
    summary : one sentence
    limits : what it refuses, in words
    orders, relabellings : the oriented graphs it accepts; the first of each is its default
    prefers : which of its orders suits a graph of these degrees, where that is not always the first
    knobs : its parameters with the paper's defaults
    compiled : whether it needs Numba (a fresh process pays for loading it)
    most_arcs : graphs have fewer arcs than this
    """

    name: str
    device: str
    unit: str
    answers: Mapping[str, Answer | DeviceAnswer | TrussAnswer | DeviceTrussAnswer] = field(repr=False)
    paper: str
    summary: str
    limits: str = "none beyond those of the graph types"
    orders: tuple[str, ...] = ORDERS
    relabellings: tuple[str, ...] = RELABELLINGS
    knobs: tuple[Knob, ...] = ()
    compiled: bool = True
    most_arcs: int = MAX_ARCS
    prefers: Callable[[Ids], str] | None = field(default=None, repr=False)
    triples: Mapping[str, TripleAnswer | DeviceTripleAnswer] = field(default_factory=dict, repr=False)
    sliced: Mapping[str, SliceMethod] = field(default_factory=dict, repr=False)

    def on_cpu(self, computes: str) -> Answer:
        """How this algorithm of the CPU computes something."""
        return _of_kind(Answer, self.answers[computes])

    def on_device(self, computes: str) -> DeviceAnswer:
        """How this algorithm of a device computes something."""
        return _of_kind(DeviceAnswer, self.answers[computes])

    def whole_on_cpu(self, computes: str) -> Answer | TrussAnswer:
        """How this algorithm of the CPU computes something, trusses included."""
        answer = self.answers[computes]
        assert isinstance(answer, Answer | TrussAnswer)
        return answer

    def whole_on_device(self, computes: str) -> DeviceAnswer | DeviceTrussAnswer:
        """How this algorithm of a device computes something, trusses included."""
        answer = self.answers[computes]
        assert isinstance(answer, DeviceAnswer | DeviceTrussAnswer)
        return answer

    def triples_on_cpu(self, computes: str) -> TripleAnswer:
        """How this algorithm of the CPU computes something for three blocks at a time."""
        return _of_kind(TripleAnswer, self.triples[computes])

    def triples_on_device(self, computes: str) -> DeviceTripleAnswer:
        """How this algorithm of a device computes something for three blocks at a time."""
        return _of_kind(DeviceTripleAnswer, self.triples[computes])

    def truss_on_cpu(self, computes: str) -> TrussAnswer:
        """How this algorithm of the CPU finds trusses."""
        return _of_kind(TrussAnswer, self.answers[computes])

    def truss_on_device(self, computes: str) -> DeviceTrussAnswer:
        """How this algorithm of a device finds trusses."""
        return _of_kind(DeviceTrussAnswer, self.answers[computes])

    def settings(self, given: Mapping[str, int | str] | None) -> dict[str, int | str]:
        """All knobs with their values: the given ones checked, the others at their defaults."""
        known = {knob.name: knob for knob in self.knobs}
        for name in given or {}:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise UnknownNameError(f"{self.name} has no knob {name!r}; it has: {listed}")
        return {name: knob.parse((given or {}).get(name, knob.default)) for name, knob in known.items()}

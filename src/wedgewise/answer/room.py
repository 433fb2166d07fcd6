"""Whether memory has room for a question, and what to say where it has not: the answer, or a `Shortage`.

A shortage is foreseen before a file is read, where its beginning tells how many pairs it has: with a limit, by what the
process takes at most, so that it keeps to it; without one, by what cleaning would be refused for. Otherwise it is met
where a stage is refused or memory runs out. What was taken is given back before `answering_disk` goes on.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, TypeVar

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Shape
from wedgewise.answer.questions import Question
from wedgewise.errors import DeviceMemoryError, InputError, MemoryLimitError, WedgewiseError
from wedgewise.graph import Graph, clean_bytes
from wedgewise.machine import hardware
from wedgewise.machine.budget import LEAST_LIMIT, RESERVE_BYTES
from wedgewise.machine.release_memory import give_back
from wedgewise.read.columns import ANY_COLUMNS, ColumnChoice
from wedgewise.run.plan import Options, allowed_memory, choose_place_to_clean, engine_for, host_bytes, orient_bytes
from wedgewise.stages.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from wedgewise.store.sources import How

Found = TypeVar("Found")

SMALL_BYTES = 1 << 20  # files that fit into every limit that stores have
READING_BLOCKS = 2
LEAST_LINE_BYTES = 4  # of a pair in a file: two digits, what is between them, and a newline
PAIR_BYTES, SIMPLE_BYTES, SIMPLE_VERTEX_BYTES = 8, 8, 12  # vertices have degrees and labels
ORIENTED_BYTES, ORIENTED_VERTEX_BYTES = 4, 8
MORE = "raise memory_limit or use a machine with more memory"
RAN_OUT = "memory ran out"


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A file, and how a graph is made of it; the fields are parameters of `Graph`."""

    path: str | os.PathLike[str]
    labels: str = "auto"
    format: str | None = None
    limits: Limits = DEFAULT_LIMITS
    drop_leaves: bool = False
    threads: int | None = None
    directed: bool = False
    columns: ColumnChoice = ANY_COLUMNS
    combine: str = "last"

    def graph(self, device: str) -> Graph:
        """The graph, cleaned there."""
        return Graph(
            self.path,
            labels=self.labels,
            format=self.format,
            limits=self.limits,
            drop_leaves=self.drop_leaves,
            threads=self.threads,
            directed=self.directed,
            device=device,
            combine=self.combine,
            **asdict(self.columns),
        )

    @property
    def can_be_read_again(self) -> bool:
        """Whether blocks can be cut of it as the graph is made of it."""
        keeps_more = self.drop_leaves or self.directed or self.columns.weight is not None
        return os.path.isfile(self.path) and not keeps_more

    def how(self, threads: int) -> How:
        """How its pairs are read in pieces."""
        from wedgewise.store.sources import How

        return How(self.labels, self.format, self.limits, threads, self.columns)


Source = GraphFile | Graph


def source_of(given: Any, options: Options) -> Source:
    """A file that can be read again; else the graph itself, or one made of whatever `Graph` accepts."""
    if isinstance(given, (str, os.PathLike)):
        given = GraphFile(given)
    if isinstance(given, GraphFile) and given.can_be_read_again:
        return _within_limit(given, options)
    return graph_of(given, options)


def graph_of(given: Any, options: Options) -> Graph:
    """The graph itself, or one made of what was given within the limit, cleaned where the question is answered."""
    if isinstance(given, Graph):
        return given
    place = choose_place_to_clean(options)
    if isinstance(given, GraphFile):
        return _within_limit(given, options).graph(place)
    return Graph(given, device=place, limits=_limits_within(DEFAULT_LIMITS, given, options))


def _within_limit(file: GraphFile, options: Options) -> GraphFile:
    """The file, to be read within the limit for the process."""
    return replace(file, limits=_limits_within(file.limits, file, options))


def _limits_within(limits: Limits, source: Any, options: Options) -> Limits:
    """The limits, with one on memory where there is none yet.

    A limit that the interpreter alone may exceed is none for the process, but for what the stages take.
    """
    if options.memory_limit is None or options.memory_limit < LEAST_LIMIT or limits.memory_bytes is not None:
        return limits
    return limits.with_values({"memory_bytes": _process_limit(source, options)})


@dataclass(frozen=True, slots=True)
class Shortage:
    """A question that memory has no room for, and that goes on from disk.

    Attributes
    ----------
    question, source, options : what was asked
    limit : for the whole process, while it goes on
    refusal : what to say where there is no room on disk either
    reasons : what was needed and what was there, first to last
    """

    question: Question
    source: Source
    options: Options
    limit: int | None
    refusal: str
    reasons: tuple[str, ...]


def name_of(source: Source) -> str:
    """What messages call a source."""
    return source.origin.name if isinstance(source, Graph) else os.fspath(source.path)


def in_memory(question: Question, source: Source, options: Options, work: Callable[[], Found]) -> Found | Shortage:
    """What `work` finds in memory, or what there is too little of for a question that goes on from disk.

    Raises
    ------
    MemoryLimitError
        When there is too little memory, and the question does not go on from disk.
    """
    limit = _process_limit(source, options)
    foreseen = _foreseen(question, source, options, limit) if isinstance(source, GraphFile) else None
    if foreseen is not None:
        return Shortage(question, source, options, limit, f"{foreseen}; {MORE}", (foreseen,))
    try:
        return work()
    except DeviceMemoryError:  # which a disk does not help
        raise
    except MemoryError as error:
        _let_go(error)
        why_not = _why_not(question, source, options)
        if why_not and isinstance(error, MemoryLimitError):
            raise MemoryLimitError(f"{error}; {why_not}") from error
        if why_not is not None:
            raise
        return Shortage(question, source, options, limit, str(error) or RAN_OUT, _told(error))


def _process_limit(source: Any, options: Options) -> int | None:
    """The limit as one for the whole process; on top of what that holds, where it holds a graph or other things."""
    limit = options.memory_limit
    if limit is None:
        return None
    if isinstance(source, GraphFile) and source.limits.memory_bytes is not None:
        return source.limits.memory_bytes
    from wedgewise.store.orient import COUNTING_BYTES

    held = hardware.resident_bytes()
    return limit if isinstance(source, GraphFile) and held <= COUNTING_BYTES else held + limit


def _let_go(error: MemoryError) -> None:
    """Let go of what was held where memory ran out."""
    earlier: BaseException | None = error
    while earlier is not None:
        clear_frames(earlier.__traceback__)
        earlier = earlier.__context__
    gc.collect()
    give_back()


def _why_not(question: Question, source: Source, options: Options) -> str | None:
    """Why a question does not go on from disk, empty where that says nothing new; None where it does."""
    from wedgewise.answer.stores import ANSWERED, check_asked

    if question.name not in ANSWERED:
        return f"{', '.join(ANSWERED[:-1])} and {ANSWERED[-1]} would go on from disk"
    try:
        check_asked(question.name, name_of(source), options)
    except InputError:
        return ""
    return "" if allowed_memory(options) < LEAST_LIMIT else None


def _told(error: MemoryError) -> tuple[str, ...]:
    """What ran out of memory on the way, first to last, without the remedies."""
    earlier, on_gpu = error.__context__, list[str]()
    while earlier is not None:
        if isinstance(earlier, DeviceMemoryError):
            on_gpu.insert(0, f"not on the GPU, which has no room: {earlier.shortage}")
        earlier = earlier.__context__
    return *on_gpu, str(error).rpartition("; ")[0] or str(error) or RAN_OUT


def _foreseen(question: Question, source: GraphFile, options: Options, limit: int | None) -> str | None:
    """What a file will take that is not there, as far as its size and its beginning tell."""
    size = os.path.getsize(source.path)
    if size <= SMALL_BYTES or (
        options.memory_limit is None
        and _cleaning_bytes(size // LEAST_LINE_BYTES, options) <= hardware.available_memory()
    ):
        return None
    if _why_not(question, source, options) is not None:
        return None
    pairs, beside = _told_by_beginning(source, size, options)
    need = None if pairs is None else _bytes_of(question, pairs, beside, options)
    allowed = _allowed(limit)
    if need is None or need <= allowed:
        return None
    return (
        f"{source.path}: about {pairs:,} pairs, by its size, may take {need:,} bytes in memory and {allowed:,} are "
        "allowed"
    )


def _told_by_beginning(source: GraphFile, size: int, options: Options) -> tuple[int | None, int]:
    """About how many pairs a file has, None where nothing is known, and what reading takes beside them.

    That is a block that is parsed, and one that waits. A compressed file has at most a pair per byte, which is said
    within a limit.
    """
    from wedgewise.read._text_chunks import BLOCK_BYTES
    from wedgewise.store.sources import expected_pairs

    try:
        pairs = expected_pairs(source.path, source.how(1))
    except WedgewiseError:  # whoever reads it says what is wrong with it
        return None, 0
    if pairs is None and options.memory_limit is not None:
        return size, READING_BLOCKS * BLOCK_BYTES
    return pairs, READING_BLOCKS * BLOCK_BYTES


def _bytes_of(question: Question, pairs: int, beside: int, options: Options) -> int | None:
    """What reading and cleaning take, for as many vertices as pairs; within a limit, what all stages take.

    None where an algorithm was asked for that has no answer in memory.
    """
    cleaning = _cleaning_bytes(pairs, options)
    if options.memory_limit is None:
        return cleaning
    by_engine = options.algorithm == "auto" or options.device == "hybrid"
    algorithm = find(engine_for(question.name) if by_engine else options.algorithm, "cpu")
    if question.name not in algorithm.answers:
        return None
    threads = hardware.granted_threads(options.threads)
    n = m = pairs
    simple = SIMPLE_BYTES * m + SIMPLE_VERTEX_BYTES * n
    oriented = ORIENTED_BYTES * m + ORIENTED_VERTEX_BYTES * n
    knobs = algorithm.settings(None if options.device == "hybrid" else options.knobs)
    work = host_bytes(algorithm, question.name, Shape(n, m), threads, knobs)
    answer = question.answer_bytes(question.name, n, m)
    return max(beside + cleaning, simple + orient_bytes(n, m, threads), simple + oriented + work + answer)


def _cleaning_bytes(pairs: int, options: Options) -> int:
    """What reading and cleaning take, for as many vertices as pairs."""
    return PAIR_BYTES * pairs + clean_bytes(pairs, pairs, hardware.granted_threads(options.threads))


def _allowed(limit: int | None) -> int:
    """What a file may take: of a limit for the process, all but what this holds and its kernels will."""
    if limit is None:
        return hardware.available_memory()
    from wedgewise.store.orient import COUNTING_BYTES

    beside = max(COUNTING_BYTES, hardware.resident_bytes() + RESERVE_BYTES)
    return max(0, min(hardware.available_memory(), limit - beside))

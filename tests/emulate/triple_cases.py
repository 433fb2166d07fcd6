"""What a device counts in three blocks: every registered algorithm for CUDA, compared with products of matrices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, product
from unittest.mock import patch

import numpy as np
from helpers.block_matrices import Matrix, ascending, block_of, count_blocks_by_product, random_matrix, unordered

import wedgewise as ww
from emulate.emulated_cases import BLOCKS, SMALL_LAUNCH, all_launches, block_knob, known, settings
from emulate.emulator import Defines, EmulatedDevice
from wedgewise.algorithms._contract import (
    Algorithm,
    DeviceBatch,
    DeviceBlock,
    DeviceTripleAnswer,
    DeviceWork,
    Knobs,
)
from wedgewise.algorithms.gpu import _batches, _keystone_triples
from wedgewise.errors import InputError
from wedgewise.machine.gpu import Device
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.prepare.rectilinear import rectilinear
from wedgewise.stages.blocks import Block, Blocks, Hashed, Triple
from wedgewise.stages.tasks import TaskBatch, one_task, table_of

RECORDS: dict[str, Algorithm] = {
    record.name: record for record in ww.algorithms() if record.device == "cuda" and "count" in record.triples
}
Matrices = tuple[Matrix, Matrix, Matrix]
ROWS, MIDDLES, COLUMNS = 40, 47, 300
PLAIN, LONG, MANY = "apart", "long rows", "many rows"

# Knobs at which small blocks have all that an algorithm otherwise meets in large ones alone.
LIKE_LARGE: dict[str, tuple[dict[str, int | str], ...]] = {
    "trust": (
        {"large": 3},
        {"large": 20, "block": 96},
        {"capacity": 1, "cached": 0, "large": 8},
        {"capacity": 2, "cached": 1, "buckets": 4, "combination": "physical", "block": 64},
        {"capacity": 3, "cached": 3, "construction": "edge", "combination": "subwarp8", "chunk": 5},
    ),
    "bbtc": tuple({"method": method, "block": block} for method, block in product(("list", "hashmap"), (32, 96))),
}

# What an algorithm may do with all rows of a task, or with some.
KINDS: dict[str, tuple[dict[str, int | str], ...]] = {
    "trust": ({}, {"large": 3}, {"large": 60}),
    "bbtc": ({"method": "list"}, {"method": "hashmap"}),
}


def _apart(density: float) -> Matrices:
    return (
        random_matrix(1, ROWS, MIDDLES, density),
        random_matrix(2, ROWS, COLUMNS, density),
        random_matrix(3, MIDDLES, COLUMNS, density),
    )


def _three_times(matrix: Matrix) -> Matrices:
    return matrix, matrix, matrix


def _last_two_alike(jk: Matrix) -> Matrices:
    near = random_matrix(5, ROWS, len(jk), 0.2)
    return near, near, jk


def _first_two_apart(ij: Matrix) -> Matrices:
    far = random_matrix(6, len(ij), COLUMNS, 0.1)
    return ij, far, far


def _hubs() -> Matrices:
    """Full rows and columns beside rows with few arcs."""
    ij, ik, jk = _apart(0.02)
    ij[[3, 17]] = ik[[3, 30]] = jk[[0, 46]] = ij[:, [0, 46]] = ik[:, -1] = jk[:, -1] = True
    return ij, ik, jk


def _gaps() -> Matrices:
    """The first and the last columns alone, rows without arcs in one block or in both."""
    ij, ik, jk = (np.zeros(matrix.shape, np.bool_) for matrix in _apart(0.0))
    ij[::3, ::2] = ik[::2, -1] = ik[::5, 0] = jk[4::4, -1] = jk[::7, 0] = ik[3, 20:60] = True
    return ij, ik, jk


def _long_rows() -> Matrices:
    """Rows of 5,000, where the buckets of a warp have room for 4,096; equal remainders in one of them."""
    ik, jk = np.zeros((3, 9000), np.bool_), np.zeros((4, 9000), np.bool_)
    ik[0, 100:5100] = ik[1, ::64] = ik[2, 8999] = True
    jk[0, ::7] = jk[1, ::64] = jk[2, 5000:5200] = jk[3, 8990:] = True
    return np.ones((3, 4), np.bool_), ik, jk


def _many() -> Matrices:
    """More rows for blocks, and more for warps, than there are of either."""
    ij = random_matrix(11, 210, 100, 0.2)
    ij[::3] = True
    return ij, random_matrix(12, 210, 60, 0.2), random_matrix(13, 100, 60, 0.1)


def _wide() -> Matrices:
    """More columns than bits have room for on chip."""
    ik, jk = np.zeros((40, 50_000), np.bool_), np.zeros((3, 50_000), np.bool_)
    ik[::3, ::97] = ik[:, -1] = jk[:2, ::65] = jk[2, 31_000:31_100] = jk[:, -1] = True
    return random_matrix(10, 40, 3, 0.4), ik, jk


def _without_arcs(empty: int) -> Matrices:
    ij, ik, jk = _apart(0.2)
    (ij, ik, jk)[empty][:] = False
    return ij, ik, jk


def _full(i: int, j: int, k: int) -> Matrices:
    return np.ones((i, j), np.bool_), np.ones((i, k), np.bool_), np.ones((j, k), np.bool_)


def _tall() -> Matrices:
    """More rows than are listed at once."""
    return random_matrix(7, 5000, 3, 0.2), random_matrix(8, 5000, 5, 0.2), random_matrix(9, 3, 5, 0.7)


TRIPLES: dict[str, Callable[[], Matrices]] = {
    PLAIN: lambda: _apart(0.1),
    "sparse": lambda: _apart(0.01),
    "dense": lambda: _apart(0.5),
    "one part": lambda: _three_times(ascending(4, 80, 0.3)),
    "one part, unordered": lambda: _three_times(unordered(4, 80, 0.3)),
    "i = j": lambda: _first_two_apart(ascending(5, ROWS, 0.3)),
    "j = k": lambda: _last_two_alike(ascending(6, 90, 0.2)),
    "j = k, unordered": lambda: _last_two_alike(unordered(6, 90, 0.2)),
    "hubs": _hubs,
    "gaps": _gaps,
    LONG: _long_rows,
    "tall": _tall,
    MANY: _many,
    "wide": _wide,
    "ij without arcs": lambda: _without_arcs(0),
    "ik without arcs": lambda: _without_arcs(1),
    "jk without arcs": lambda: _without_arcs(2),
    "no ids": lambda: _full(0, 0, 0),
    "no ids in i": lambda: _full(0, 5, 5),
    "no ids in j": lambda: _full(5, 0, 5),
    "no ids in k": lambda: _full(5, 5, 0),
    "one triangle": lambda: _full(1, 1, 1),
    "one row": lambda: _full(1, 33, 32),
    "one middle": lambda: _full(33, 1, 31),
}


@cache
def matrices_of(name: str) -> Matrices:
    """The three matrices of a name; the same one where blocks are the same."""
    return TRIPLES[name]()


@dataclass(frozen=True, slots=True)
class TripleCase:
    """A share of a task; offsets of 64 bits in some of its blocks, launches of little work."""

    algorithm: str
    triple: str
    knobs: dict[str, int | str] = field(default_factory=dict)
    share: int = 0
    shares: int = 1
    wide: tuple[bool, ...] = (False, False, False)
    small_launches: bool = False

    @property
    def record(self) -> Algorithm:
        return RECORDS[self.algorithm]

    def prepare(self, device: Device) -> DeviceWork:
        keys = list(zip(map(id, matrices_of(self.triple)), self.wide, strict=True))
        blocks = {
            (key, is_wide): block_of(matrix, np.uint64 if is_wide else np.uint32)
            for matrix, (key, is_wide) in zip(matrices_of(self.triple), keys, strict=True)
        }
        triple = Triple(*(blocks[key] for key in keys))
        return prepared(self.record, triple, self.knobs, self.share, self.shares, device)


def prepared(
    record: Algorithm, triple: Triple, knobs: dict[str, int | str], share: int, shares: int, device: Device
) -> DeviceWork:
    """A batch of one task; a block that stands twice in the triple does so on the device."""
    return prepared_batch(record, one_task(triple, share, shares), knobs, device)


def prepared_batch(record: Algorithm, batch: TaskBatch, knobs: dict[str, int | str], device: Device) -> DeviceWork:
    """Work on blocks in arrays of the device, of which everything is made."""
    answer, settings = record.triples_on_device("count"), record.settings(knobs)
    blocks = {pair: on_device(block, answer, settings, device) for pair, block in batch.blocks.items()}
    for launch in answer.make(list(blocks.values()), settings, device):
        launch()
    return answer.prepare(DeviceBatch(blocks, batch.tasks), settings, device)


def on_device(block: Block, answer: DeviceTripleAnswer, knobs: Knobs, device: Device) -> DeviceBlock:
    """A block in arrays of a device that end where the block ends, and room for what is made of it."""
    offsets, heads = (device.upload(array) for array in (block.offsets, block.heads))
    words = answer.made_words(block.m, block.columns, knobs)
    made = device.xp.empty(words, device.xp.uint32) if words else None
    return DeviceBlock(Block(offsets, heads, block.columns), made)


def found_by(work: DeviceWork) -> tuple[int, int]:
    """Triangles and tests of all tasks of a batch."""
    work.found.fill(0)
    for launch in all_launches(work):
        launch()
    triangles, tests, _ = np.array(work.found.tolist(), np.uint64).reshape(-1, 3).sum(axis=0).tolist()
    return triangles, tests


def check(case: TripleCase, device: Device) -> tuple[int, int]:
    """Count twice, and compare; the launches and the tests."""
    with little_work(case.record) if case.small_launches else nullcontext():
        work = case.prepare(device)
        assert work.found.tolist() == [[0, 0, 0]], case
        triangles, tests = found_by(work)
        assert triangles == count_blocks_by_product(*matrices_of(case.triple), case.share, case.shares), (
            f"{triangles}: {case}"
        )
        assert triangles == 0 or tests > 0, case
        assert found_by(work) == (triangles, tests), case
    return sum(len(batch()) for batch in work.batches), tests


@contextmanager
def little_work(record: Algorithm) -> Iterator[None]:
    """Let little work fill a launch, by the constants ``LAUNCH_…`` of the module that counts triples."""
    module = sys.modules[record.triples_on_device("count").prepare.__module__]
    with ExitStack() as patches:
        for name in [name for name in vars(module) if name.startswith("LAUNCH_")]:
            patches.enter_context(patch.object(module, name, SMALL_LAUNCH))
        patches.enter_context(patch.object(_batches, "UNIT_WORK", SMALL_LAUNCH / 4))
        patches.enter_context(patch.object(_keystone_triples, "TABLE_USES", 0))
        yield


def kinds_of(algorithm: str, block: int) -> Iterator[dict[str, int | str]]:
    """What it may do with the rows of a task, in blocks of so many threads."""
    return (block_knob(RECORDS[algorithm], block) | kind for kind in KINDS.get(algorithm, ({},)))


def ways_of(algorithm: str) -> Iterator[dict[str, int | str]]:
    """One knob at a time, two of those with choices, and `LIKE_LARGE`; in small blocks unless they say otherwise."""
    small = block_knob(RECORDS[algorithm], BLOCKS[0])
    for way in (*settings(RECORDS[algorithm]), *LIKE_LARGE.get(algorithm, ())):
        yield small | way


def cases_of(algorithm: str) -> Iterator[TripleCase]:
    """Every triple; of a plain one all shares and widths, two sizes of blocks, and many launches; no large blocks."""
    record = RECORDS[algorithm]
    small, larger = (block_knob(record, block) for block in BLOCKS[:2])
    plain = TripleCase(algorithm, PLAIN, small)
    for kind in kinds_of(algorithm, BLOCKS[0]):
        yield from (replace(plain, triple=triple, knobs=kind) for triple in TRIPLES)
    yield from (replace(plain, triple=triple, knobs=larger) for triple in (PLAIN, "hubs", "one part", "wide", MANY))
    for shares in (2, 3, ROWS + 2):
        yield from (replace(plain, share=share, shares=shares) for share in (0, 1, shares - 1))
    yield from (replace(plain, wide=wide) for wide in list(product((False, True), repeat=3))[1:])
    yield from (replace(plain, triple=triple, small_launches=True) for triple in (PLAIN, "hubs", "gaps"))
    for way in ways_of(algorithm):
        if int(way.get("block", BLOCKS[0])) <= BLOCKS[-1]:
            yield from (replace(plain, triple=triple, knobs=way) for triple in (PLAIN, "hubs"))
    yield from (replace(plain, triple=LONG, knobs=small | way) for way in LIKE_LARGE.get(algorithm, ()))


def check_all(device: Device, step: int = 1) -> None:
    """All of them on one device, or one of so many; some knobs are refused together."""
    for algorithm in RECORDS:
        for case in islice(cases_of(algorithm), 0, None, step):
            with suppress(InputError):
                check(case, device)


def check_some(device: Device) -> None:
    """As many as a sanitizer checks in minutes."""
    check_all(device, step=3)


@cache
def define_sets(algorithm: str) -> frozenset[tuple[str, Defines]]:
    """The stems and defines that an algorithm launches."""
    device = EmulatedDevice()
    for case in cases_of(algorithm):
        with suppress(InputError):
            check(case, device)
    return frozenset(device.launched)


def cut(scheme: str, graph: str, parts: int) -> Blocks:
    """The blocks of a graph whose ids are cut or dealt into parts."""
    oriented = known(graph).graph.oriented("degree", "rank", threads=1)
    dealt = scheme == "hashed"
    return blocks_of(oriented, Hashed(oriented.n, parts) if dealt else rectilinear(oriented, parts, threads=1))


def count_in_parts(
    algorithm: str, blocks: Blocks, shares: int, device: Device, knobs: dict[str, int | str] | None = None
) -> int:
    """The triangles of all tasks of a graph; in small blocks unless knobs say otherwise."""
    record = RECORDS[algorithm]
    chosen = block_knob(record, BLOCKS[0]) | (knobs or {})
    tasks = table_of(blocks.partition, shares)
    return found_by(prepared_batch(record, TaskBatch(blocks.blocks, tasks), chosen, device))[0]

"""The k-truss of a store, or the truss number of every arc: rounds of supports among the remaining arcs.

    store/truss-round-R/       the remaining arcs of every block after round R, a bit per arc; slices, whole or absent
    store/trussness-round-R/   the same with 4 bytes per arc: its support while it remains, then its truss number

A round removes the arcs of fewer than k − 2 triangles. For a k-truss k is given, and the last round removes nothing.
For truss numbers k is 3 at first. Once a round removes nothing, k becomes the least one that removes something, by the
supports of all remaining arcs, which are known then; an arc that a round of k removes has truss number k − 1. The last
round leaves no arc.

A round reads the remaining arcs after the round before and writes those after itself, block by block; when it has all
blocks, the round before is removed. Killed at any moment, the same work finds the last whole round and the blocks of
the next one that are done. Two rounds are on disk at most: two bits per arc, or 8 bytes.

A block is looked at again only where that can remove arcs. A triangle over parts a, b and c that a round broke had a
lost arc in one of its blocks and arcs in the other two, so that with S the blocks that lost arcs and L those that had
some, both symmetric, only the blocks of S·L + L·S have arcs of fewer triangles than before.

Removed arcs are left out when a block is read (`_truss_blocks.py`): kernels see blocks like any other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss import MIN_K
from wedgewise.machine.files import storage_errors
from wedgewise.machine.progress import Progress
from wedgewise.run._truss_blocks import PIECE_ARCS, ArcBitmap, ArcLevels, RemainingBlocks
from wedgewise.run.checkpoint import FinishedSlices, key_of
from wedgewise.run.in_memory import needs_rounds
from wedgewise.run.outofcore import work_key
from wedgewise.run.sliced_answer import AnswerSlice, SlicedAnswer
from wedgewise.stages.tasks import BlockCounts, Pair
from wedgewise.store.open import Store

if TYPE_CHECKING:
    from wedgewise.run.cluster_slices import SliceWorkers

ROUND = r"-round-([1-9]\d{0,8})"
PIECE_BYTES = 16 * PIECE_ARCS  # of marks, of running sums, and of the remaining heads


@dataclass(frozen=True, slots=True)
class StoreTruss:
    """The k-truss of a store: its arcs by block, and the rounds that it took.

    ``support`` is the sum of the supports of its arcs within the truss; None where no round was needed.
    """

    k: int
    blocks: RemainingBlocks
    rounds: int
    support: int | None

    @property
    def edges(self) -> int:
        return int(self.blocks.remaining.sum())


class Round:
    """The remaining arcs after a round; round 0 is the store as it is.

    ``remaining``, ``removed`` and ``support`` are those of `ArcBitmap` or `ArcLevels`, by row and column part, of
    finished blocks.
    """

    def __init__(
        self,
        store: Store,
        slice_of: Mapping[Pair, AnswerSlice],
        number: int,
        finished: FinishedSlices | None,
        kind: type[ArcBitmap | ArcLevels],
    ) -> None:
        self.store, self.number, self.k, self._kind = store, number, 0, kind
        self.arcs = store.counts.arcs
        self.remaining, self.removed, self.support = (np.zeros_like(self.arcs) for _ in range(3))
        self._slice_of, self.finished = slice_of, finished
        self._done = {pair for pair, each in slice_of.items() if finished is None or each.number in finished.done}
        for pair in self._done:
            self._note(pair, self.kept(pair))

    @property
    def blocks(self) -> RemainingBlocks:
        return RemainingBlocks(self.store, self.remaining, self.kept)

    @property
    def is_whole(self) -> bool:
        """Whether it has all blocks."""
        return len(self._done) == len(self._slice_of)

    def has(self, pair: Pair) -> bool:
        return pair in self._done

    def kept(self, pair: Pair) -> ArcBitmap | ArcLevels:
        """What is known of the arcs of a block."""
        arcs = int(self.arcs[pair])
        if self.finished is None:
            return self._kind.all(arcs)
        return self._kind.of(self.finished.get(self._slice_of[pair].number), arcs)

    def put(self, pair: Pair, kept: ArcBitmap | ArcLevels) -> None:
        """A block is done."""
        assert self.finished is not None
        self.finished.put(self._slice_of[pair].number, kept.to_array())
        self._done.add(pair)
        self._note(pair, kept)

    def take(self, pair: Pair) -> None:
        """A block was written by somebody else."""
        self._done.add(pair)
        self._note(pair, self.kept(pair))

    def flush(self) -> None:
        """Bring it to the disk, for the round before is removed."""
        assert self.finished is not None
        self.finished.flush()

    def remove(self) -> None:
        """Remove what is on disk of it."""
        if self.finished is not None:
            self.finished.remove()

    def can_take_from(self) -> NDArray[np.bool_]:
        """The blocks, by row part and column part, that the next round may remove arcs from."""
        alive = self.remaining > 0
        if self.number == 0:
            return alive
        lost, had = ((which | which.T).astype(np.int64) for which in (self.removed > 0, alive | (self.removed > 0)))
        return alive & ((lost @ had + had @ lost) > 0)

    def _note(self, pair: Pair, kept: ArcBitmap | ArcLevels) -> None:
        self.k = kept.k
        self.remaining[pair], self.removed[pair], self.support[pair] = kept.remaining, kept.removed, kept.support


class StorePeeling:
    """The rounds of one k-truss, or of all.

    Parameters
    ----------
    store : the graph
    k : which truss, at least 3; None for the truss number of every arc
    supports : those of the store; their memory leaves `loading_bytes` out
    workers : who computes blocks instead of this process
    """

    def __init__(
        self, store: Store, k: int | None, supports: SlicedAnswer, workers: SliceWorkers | None = None
    ) -> None:
        self._store, self._k, self._supports, self._workers = store, k, supports, workers
        self._kind: type[ArcBitmap | ArcLevels] = ArcLevels if k is None else ArcBitmap
        self._slice_of = {each.of: each for each in supports.slices}
        arcs = store.counts.arcs
        self._stored_forms = {
            each.number: self._kind.stored_form(int(arcs[pair])) for pair, each in self._slice_of.items()
        }

    def run(self, progress: Progress | None = None) -> Round:
        """Continue after the last whole round, to the last one."""
        last = self._last_whole()
        while (k := self._next_k(last)) is not None:
            last = self._next_round(last, k, progress)
        return last

    def remove(self) -> None:
        """Remove all rounds, those of other work included."""
        for number in self._numbers():
            self._finished(number, resume=False)

    def _next_k(self, last: Round) -> int | None:
        """Which truss the next round is to leave; None where there is none."""
        if not last.remaining.any():
            return self._k if self._k is not None and last.number == 0 else None
        if last.number == 0 or last.removed.any():
            return self._k or max(last.k, MIN_K + 1)
        return None if self._k is not None else int(last.support[last.remaining > 0].min()) + MIN_K + 1

    def _next_round(self, before: Round, k: int, progress: Progress | None) -> Round:
        """The next round, without the blocks that are done."""
        found = self.round(before.number + 1)
        may_change, wanted = before.can_take_from(), []
        for pair, each in self._slice_of.items():
            if found.has(pair):
                continue
            if may_change[pair]:
                wanted.append(each)
            else:
                found.put(pair, before.kept(pair).after_round(None, k, int(before.arcs[pair])))
        for done, _ in enumerate(self._fill(found, before, k, wanted), len(self._slice_of) - len(wanted) + 1):
            if progress is not None:
                progress(f"round {found.number}", done, len(self._slice_of))
        found.flush()
        before.remove()
        return found

    def _fill(self, found: Round, before: Round, k: int, wanted: list[AnswerSlice]) -> Iterator[AnswerSlice]:
        """Put the remaining arcs of some blocks, one block after the other."""
        if self._workers is None:
            for each, kept in self.after_round(before, k, wanted):
                found.put(each.of, kept)
                yield each
        elif wanted:
            assert found.finished is not None
            for each in self._workers.compute(found.finished, wanted, k=k, round_number=found.number):
                found.take(each.of)
                yield each

    def after_round(
        self, before: Round, k: int, wanted: Sequence[AnswerSlice]
    ) -> Iterator[tuple[AnswerSlice, ArcBitmap | ArcLevels]]:
        """What the next round, of this k, leaves of some blocks."""
        for each, supports in self._supports.among(before.blocks).compute(wanted):
            kept, arcs = before.kept(each.of), int(before.arcs[each.of])
            yield each, kept.after_round(supports, k, arcs)

    def _last_whole(self) -> Round:
        """The last round that is whole; rounds but that and the next one are removed."""
        whole = self.round(0)
        for number in self._numbers():
            found = self.round(number)
            if found.is_whole:
                whole.remove()
                whole = found
            elif number != whole.number + 1:
                found.remove()
        return whole

    def round(self, number: int) -> Round:
        return Round(self._store, self._slice_of, number, self._finished(number) if number else None, self._kind)

    def _finished(self, number: int, *, resume: bool = True) -> FinishedSlices:
        work = work_key(self._store, self._supports.algorithm, self._supports.knobs)
        folder = self._store.beside(f"{self._kind.name}-round-{number}")
        return FinishedSlices(
            folder, key_of(work=work, k=self._k, round=number), resume=resume, stored_forms=self._stored_forms
        )

    def _numbers(self) -> list[int]:
        """The rounds that are there, ascending."""
        folder = self._store.beside(self._kind.name).parent
        with storage_errors(folder, "looked through", "check the folder and its permissions"):
            names = os.listdir(folder)
        of_round = re.compile(self._kind.name + ROUND, re.ASCII)
        return sorted(int(match[1]) for match in map(of_round.fullmatch, names) if match)


def truss_of(store: Store, k: int, peeling: StorePeeling, progress: Progress | None = None) -> StoreTruss:
    """The k-truss; without rounds where it is all of the graph, or nothing since its edges are less than C(k, 2)."""
    arcs = store.counts.arcs
    if needs_rounds(k, store.manifest.m):
        last = peeling.run(progress)
        return StoreTruss(k, last.blocks, last.number, int(last.support.sum()))
    remaining = arcs if k == MIN_K else np.zeros_like(arcs)
    return StoreTruss(k, RemainingBlocks(store, remaining, lambda pair: ArcBitmap.all(int(remaining[pair]))), 0, None)


def loading_bytes(counts: BlockCounts, *, is_trussness: bool = False) -> int:
    """What reading a block takes beyond its remaining part: its arcs and rows, what is known of it, and a piece."""
    kept = 8 * counts.arcs if is_trussness else counts.arcs // 8
    whole = 4 * counts.arcs + kept + 12 * (counts.sizes[:, None] + 1)
    return int(whole.max(initial=0)) + PIECE_BYTES


def disk_bytes(counts: BlockCounts, *, is_trussness: bool = False) -> int:
    """What two rounds take on disk."""
    kind: type[ArcBitmap | ArcLevels] = ArcLevels if is_trussness else ArcBitmap
    stored_forms = (kind.stored_form(arcs) for arcs in counts.arcs.ravel().tolist())
    return 2 * sum(np.dtype(dtype).itemsize * length for dtype, length in stored_forms)

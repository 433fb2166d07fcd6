"""Bugs of blocks, stores, journals and clusters."""

from __future__ import annotations

from mutants.edits import Edit
from mutants.mutant import Mutant, caught_by

TASKS, JOURNAL, OUT_OF_CORE = "stages/tasks.py", "run/checkpoint.py", "run/outofcore.py"
OTHER_WORK = "run/test_outofcore.py::test_results_of_other_work_are_refused"
OTHER_OPTIONS = "answer/test_store_answers.py::test_other_options_are_refused_until_restart"
OTHER_GRAPH = "run/test_outofcore.py::test_results_of_another_graph_in_the_same_parts_are_refused"
ONE_TASK = "prepare/test_partition.py::test_every_triangle_is_in_one_task"

IN_STORES = (
    Mutant(
        "diagonal-dropped",
        "no task has two of its vertices in one part",
        (
            Edit(
                TASKS,
                "    first = every if partition.is_ordered else",
                "    first = every + 1 if partition.is_ordered else",
            ),
        ),
        caught_by(ONE_TASK, interpreted=True),
    ),
    Mutant(
        "share-counted-twice",
        "every share of a task counts the rows of the first one",
        (
            Edit(
                TASKS,
                "(number % shares).astype(np.int32)",
                "(number * 0).astype(np.int32)",
            ),
        ),
        caught_by("algorithms/test_triples.py::test_tasks_add_up_to_all_triangles", interpreted=True),
    ),
    Mutant(
        "shares-not-in-key",
        "a count goes on with what another number of shares has left",
        (
            Edit(
                OUT_OF_CORE, "        shares=shares,\n        version=__version__,\n", "        version=__version__,\n"
            ),
        ),
        caught_by("run/test_shares.py::test_a_count_goes_on_with_the_same_shares_alone"),
    ),
    Mutant(
        "speedup-over-tasks",
        "simulated speed-ups are over the sum of all tasks, which grows with every cut",
        (
            Edit(
                "report/balance.py",
                "        return _ratio(self.unpartitioned, seconds)\n",
                "        return _ratio(self.total, seconds)\n",
            ),
        ),
        caught_by("run/test_balance.py::test_speedups_are_over_the_graph_in_one_part", interpreted=True),
    ),
    Mutant(
        "trust-rule-equal",
        "the blocks of a task may be as large as the memory of a worker",
        (
            Edit(
                "stages/trust_cut.py",
                "isqrt(3 * graph_bytes // worker_bytes) + 1",
                "isqrt(3 * graph_bytes // worker_bytes)",
            ),
        ),
        caught_by("stages/test_trust_cut.py::test_the_graphs_of_table_6_are_cut_as_published", interpreted=True),
    ),
    Mutant(
        "block-task-counted-twice",
        "some tasks of hashed parts have two numbers, and others none",
        (
            Edit(
                TASKS,
                "_count_on(first[j], parts)\n",
                "np.maximum(_count_on(first[j], parts), int(not partition.is_ordered and parts > 1))\n",
            ),
        ),
        caught_by(ONE_TASK, interpreted=True),
    ),
    Mutant(
        "hashed-inverse",
        "ids of a hashed part are taken for a range",
        (
            Edit(
                "stages/blocks.py",
                "        return np.arange(part, self.n, self.parts, dtype=np.uint32)\n",
                "        return np.arange(self.sizes[part], dtype=np.uint32) + np.uint32(sum(self.sizes[:part]))\n",
            ),
        ),
        caught_by("prepare/test_partition.py::test_parts_divide_the_ids"),
    ),
    Mutant(
        "narrow-block-offsets",
        "offsets of a block stay 32 bits wide, however many arcs it has",
        (
            Edit(
                "prepare/cut_blocks.py",
                "    wide = int(arcs.max()) >= WIDE_ARCS\n",
                "    wide = int(arcs.max()) < 0\n",
            ),
        ),
        caught_by("prepare/test_partition.py::test_offsets_are_wide_where_a_block_of_the_part_has_many_arcs"),
    ),
    Mutant(
        "cut-belongs-to-both",
        "the first id of a part is the last one of the part before as well",
        (
            Edit(
                "stages/blocks.py",
                "np.arange(self.cuts[part], self.cuts[part + 1], dtype=np.uint32)",
                "np.arange(self.cuts[part], min(self.cuts[part + 1] + 1, self.n), dtype=np.uint32)",
            ),
        ),
        caught_by("prepare/test_partition.py::test_parts_divide_the_ids"),
    ),
    Mutant(
        "journal-of-another-graph",
        "a journal is gone on with, whatever graph it is of",
        (
            Edit(
                JOURNAL,
                '            if str(record.get("key")) != self._key:\n',
                '            if len(str(record.get("key"))) != len(self._key):\n',
            ),
        ),
        caught_by(OTHER_WORK, interpreted=True),
    ),
    Mutant(
        "key-without-knobs",
        "results are kept by a key that leaves out the knobs",
        (Edit(OUT_OF_CORE, "        knobs=dict(knobs),\n        shares=", "        shares="),),
        caught_by(OTHER_OPTIONS, interpreted=True),
    ),
    Mutant(
        "key-without-fingerprint",
        "results are kept by a key that leaves out the graph",
        (Edit(OUT_OF_CORE, "        fingerprint=store.manifest.fingerprint,\n", ""),),
        caught_by(OTHER_GRAPH, interpreted=True),
    ),
    Mutant(
        "torn-line-believed",
        "the checksum of a line of a journal is not looked at",
        (
            Edit(
                JOURNAL,
                '    if not isinstance(record, dict) or record.pop("check", None) != _check(record):\n',
                '    if not isinstance(record, dict) or record.pop("check", None) is None:\n',
            ),
        ),
        caught_by("run/test_outofcore.py::test_a_torn_or_damaged_line_is_done_again", interpreted=True),
    ),
    Mutant(
        "resumed-task-counted-twice",
        "tasks that a journal has are done again under other numbers",
        (
            Edit(
                OUT_OF_CORE,
                "        left = self.tasks.take(np.flatnonzero(~results.is_done[self.tasks.number]))\n",
                "        left = self.tasks\n",
            ),
        ),
        caught_by("run/test_outofcore.py::test_a_count_goes_on_where_it_was", interpreted=True),
    ),
    Mutant(
        "damaged-block-believed",
        "the checksum of a block is not looked at",
        (Edit("store/open.py", "        if found != record.sha256:\n", "        if not found:\n"),),
        caught_by("store/test_store.py::test_a_damaged_block_is_refused", interpreted=True),
    ),
    Mutant(
        "second-result-unequal",
        "what a worker delivers again may differ from what it delivered first",
        (
            Edit(
                "run/cluster.py",
                "            if (known := self._results.triangles[task]) != triangles:\n",
                "            if (known := self._results.triangles[task]) != known:\n",
            ),
        ),
        caught_by("run/test_cluster_driver.py::test_a_second_result_has_to_be_equal", interpreted=True),
    ),
    Mutant(
        "two-states-of-a-worker",
        "a worker keeps the blocks of a question while it begins another one",
        (Edit("run/_worker_requests.py", "        _close_state()\n        if", "        if"),),
        caught_by("run/test_worker_state.py", interpreted=True),
    ),
    Mutant(
        "slice-of-another-owner",
        "a slice is believed by its length alone",
        (
            Edit(
                JOURNAL,
                "digest_of(file, len(header), due, raw) == record.sha256\n",
                "digest_of(file, len(header), due, raw) is not None\n",
            ),
        ),
        caught_by("run/test_checkpoint_slices.py"),
    ),
)

"""Bugs of cleaning, orienting, counting, listing and peeling on the CPU."""

from __future__ import annotations

from mutants.compared import CLEANED, COUNTS, LOCAL
from mutants.edits import Edit
from mutants.mutant import Mutant, caught_by

HASHMAP = "algorithms/cpu/hashmap.py"
SUPPORTS = "algorithms/cpu/_keystone_supports.py"
KEYSTONE_ROWS = "algorithms/cpu/_keystone_rows.py"
CLOSE = "algorithms/cpu/_truss_close.py"
ANY_ORDER = "conformance/test_algorithms.py::test_answers_do_not_depend_on_order_and_ids"
ANY_THREADS = "conformance/test_algorithms.py::test_answers_do_not_depend_on_threads"
PREPARED = "prepare/test_preparation.py::test_kernels_and_arrays_prepare_the_same_bytes"

ON_CPU = (
    Mutant(
        "row-end",
        "the last id of a row is never looked up",
        (
            Edit(
                HASHMAP,
                "        for second in range(other.begin, other.end):\n",
                "        for second in range(other.begin, other.end - np.uint64(other.end > other.begin)):\n",
            ),
        ),
        caught_by(COUNTS, keyword="hashmap", interpreted=True),
    ),
    Mutant(
        "block-at-the-end",
        "a block of ids that is read earlier, for the array to have all of it, is taken for the one that was wanted",
        (Edit(KEYSTONE_ROWS, " >> (block - at)\n", "\n"),),
        caught_by("algorithms/test_compared_rows.py::test_cliques_of_every_length_of_rows", interpreted=True),
    ),
    Mutant(
        "32-bit-sum",
        "totals are added up in 32 bits",
        (
            Edit(
                "run/reduce.py",
                "Computed(exact_sum(results.triangles), ",
                "Computed(int(results.triangles.astype(np.int32).sum()), ",
            ),
        ),
        caught_by("limits/test_widths.py::test_totals_are_python_integers_beyond_64_bits"),
    ),
    Mutant(
        "last-range-lost",
        "the last range of the work belongs to nobody",
        (
            Edit(
                "algorithms/_ranges.py",
                "    bounds = np.concatenate([[0], cuts, [end]]).astype(np.int64)\n",
                "    bounds = np.concatenate([[0], cuts, cuts[-1:] if len(cuts) else [end]]).astype(np.int64)\n",
            ),
        ),
        caught_by(COUNTS, keyword="reference", interpreted=True),
    ),
    Mutant(
        "bisection-off-by-one",
        "<= for < in the bisection that finds an edge among the arcs",
        (
            Edit(
                "prepare/orient.py",
                "        below = np.uint64(rows[low + half] < wanted)\n",
                "        below = np.uint64(rows[low + half] <= wanted)\n",
            ),
        ),
        caught_by("prepare/test_preparation.py::test_every_edge_is_found_among_the_arcs", interpreted=True),
    ),
    Mutant(
        "credits-of-one-thread",
        "what the other threads have credited is never added up",
        (Edit(SUPPORTS, "        for own in by_thread:\n", "        for own in by_thread[:1]:\n"),),
        caught_by(
            "conformance/test_algorithms.py::test_answers_do_not_depend_on_threads",
            keyword="keystone",
            interpreted=True,
        ),
    ),
    Mutant(
        "supports-of-one-thread",
        "supports that other threads counted for themselves are never merged",
        (Edit(SUPPORTS, "            sum_pass(others, filled),\n", "            sum_pass([], filled),\n"),),
        caught_by(
            "conformance/test_algorithms.py::test_answers_do_not_depend_on_threads",
            keyword="keystone",
            interpreted=True,
        ),
    ),
    Mutant(
        "support-of-one-edge",
        "a triangle counts for one of its three edges",
        (Edit("algorithms/reference.py", "        for arcs in closed:\n", "        for arcs in closed[:1]:\n"),),
        caught_by(LOCAL, keyword="reference"),
    ),
    Mutant(
        "loops-kept",
        "a loop stays an edge",
        (Edit("prepare/radix.py", "        if u == v and drop_loops:\n", "        if u == v and not drop_loops:\n"),),
        caught_by(CLEANED, interpreted=True),
    ),
    Mutant(
        "loops-kept-by-arrays",
        "a loop stays an edge where arrays clean, as on a GPU",
        (Edit("prepare/clean_arrays.py", "    keys[...] = u == v\n", "    keys[...] = 0\n"),),
        caught_by(CLEANED, interpreted=True),
    ),
    Mutant(
        "reversed-copies-kept-by-arrays",
        "an edge that is given in both directions is two edges where arrays clean",
        (
            Edit(
                "prepare/clean_arrays.py",
                "        firsts = here[change > marks]\n",
                "        firsts = here[change > 0]\n",
            ),
        ),
        caught_by(CLEANED, interpreted=True),
    ),
    Mutant(
        "changed-pairs-believed",
        "ids are not looked at again where arrays clean pairs that somebody else may have changed",
        (
            Edit(
                "prepare/clean_arrays.py", "        if int(taken.max()) >= ids:\n", "        if int(taken.max()) < 0:\n"
            ),
        ),
        caught_by("attack/test_changing.py::test_ids_are_checked_by_the_pass_that_uses_them", keyword="arrays"),
    ),
    Mutant(
        "rows-in-the-type-of-indices",
        "the rows of a sparse matrix are numbered in the narrow type of its indices",
        (
            Edit(
                "read/objects/sparse_matrices.py",
                "dtype=_wide_enough(lines)), lengths)",
                "dtype=np.int64).astype(indices.dtype), lengths)",
            ),
        ),
        caught_by("attack/test_forms.py::test_a_matrix_has_more_rows_than_its_indices_count"),
    ),
    Mutant(
        "ties-share-a-rank",
        "vertices of equal degree have the same rank, so that arcs among them go both ways or nowhere",
        (
            Edit(
                "prepare/orient_arrays.py",
                "    rank_of_slot = _by_slot(graph, inverse(vertex_of, xp), xp)\n    arcs = ",
                "    ranks = xp.searchsorted(xp.sort(graph.degrees), graph.degrees).astype(xp.uint32)\n"
                "    rank_of_slot = _by_slot(graph, ranks, xp)\n    arcs = ",
            ),
        ),
        caught_by(PREPARED, interpreted=True),
    ),
    Mutant(
        "offsets-overflow",
        "offsets of rows wrap at 16 bits, as those of 32 bits do at 2^32 arcs",
        (
            Edit(
                "prepare/orient.py",
                "    np.cumsum(found.first_counts, out=offsets[1:])\n    out_neighbours = ",
                "    offsets[1:] = np.cumsum(found.first_counts).astype(np.uint16)\n    out_neighbours = ",
            ),
        ),
        caught_by("limits/test_widths.py::test_listings_beyond_32_bits"),
    ),
    Mutant(
        "offsets-overflow-by-arrays",
        "the same where arrays orient",
        (
            Edit(
                "prepare/clean_arrays.py",
                "    starts = xp.empty(rows + 1, xp.uint32 if len(ascending) < 2**31 else xp.uint64)\n",
                "    starts = xp.empty(rows + 1, xp.uint16)\n",
            ),
        ),
        caught_by("limits/test_widths.py::test_positions_of_arcs_beyond_16_bits", keyword="forward"),
    ),
    Mutant(
        "answers-out-of-order",
        "counts by id are handed out as if they were by vertex, through the wrong one of two inverse permutations",
        (
            Edit(
                "run/row_order.py",
                "    answer[oriented.vertex_of] = filled\n",
                "    answer[:] = filled[oriented.vertex_of]\n",
            ),
        ),
        caught_by(ANY_ORDER, keyword="reference"),
    ),
    Mutant(
        "arcs-of-another-order",
        "where edges lie among arcs is kept without saying for which order of the vertices",
        (
            Edit(
                "graph.py",
                "        key = (oriented.order, oriented.named_by)\n",
                "        key = (oriented.named_by, oriented.named_by)\n",
            ),
        ),
        caught_by(ANY_ORDER, keyword="reference and edge_support"),
    ),
    Mutant(
        "listing-border",
        "a triangle at the border of two stretches is looked for at the arc before its own",
        (
            Edit(
                "run/listing.py",
                '        within = int(np.searchsorted(ends, number, side="right"))\n',
                '        within = int(np.searchsorted(ends, number, side="left"))\n',
            ),
        ),
        caught_by("run/test_listing.py", keyword="reference"),
    ),
    Mutant(
        "trussness-off-by-one",
        "the least support is taken for the truss number less three",
        (
            Edit(
                "algorithms/_truss/rounds.py",
                "    return rows.least_support() + MIN_K\n",
                "    return rows.least_support() + MIN_K + 1\n",
            ),
        ),
        caught_by("conformance/test_trusses.py::test_fixtures_have_their_published_kmax", keyword="reference"),
    ),
    Mutant(
        "triangle-taken-twice",
        "two edges of a triangle die in one round and both take it from the third",
        (
            Edit(
                CLOSE,
                "(a & np.uint64(first < edge)) | (b & np.uint64(second < edge)) | (a >> one)",
                "(a & np.uint64(first < first)) | (b & np.uint64(second < second)) | (a >> one)",
            ),
        ),
        caught_by("algorithms/test_truss.py::test_peeling_random_graphs", interpreted=True),
    ),
    Mutant(
        "verification-that-agrees",
        "verify=True recounts and compares with nothing",
        (Edit("answer/verify.py", "    if recounted != triangles:\n", "    if recounted != recounted:\n"),),
        caught_by("run/test_choose_reduce.py::test_a_wrong_count_does_not_pass_verification", interpreted=True),
    ),
    Mutant(
        "missing-task-unnoticed",
        "partials are added up without looking whether every task has one",
        (
            Edit(
                "run/reduce.py",
                "    if missing:\n",
                "    if missing < 0:\n",
            ),
        ),
        caught_by("run/test_choose_reduce.py::test_an_incomplete_or_impossible_set_of_partials_is_refused"),
    ),
    Mutant(
        "stale-cpu-kernel",
        "machine code is kept under a name that does not depend on helpers in other files",
        (
            Edit(
                "machine/kernel_sources.py",
                '        facts.add(f"{at.function.__module__} {_digest(at.source)}")\n',
                '        facts.add(f"{marked.function.__module__} {_digest(marked.source)}")\n',
            ),
        ),
        caught_by("machine/test_kernels.py::test_an_edited_helper_in_another_file_is_compiled_again"),
    ),
    Mutant(
        "last-line-lost",
        "a last line without a newline is not read",
        (
            Edit(
                "read/_text_kernel.py",
                "        if at > end or at - line > line_limit:\n"
                "            return REFUSED, line, pairs, columns, comments\n"
                "        at += _ONE\n        if outcome == _PAIR:\n",
                "        if at > end or at - line > line_limit:\n"
                "            return REFUSED, line, pairs, columns, comments\n"
                "        at += _ONE\n        if outcome == _PAIR and at <= end:\n",
            ),
        ),
        caught_by("read/test_text.py::test_integer_files", "read/test_text.py::test_both_parsers_agree"),
    ),
    Mutant(
        "third-arc-lost",
        "of a weighed triangle, the arc between its ends of lowest and highest rank gets nothing",
        (
            Edit(
                "algorithms/of_graph/weighted_supports.py",
                " += from_b\n",
                " += from_b & np.uint64(0)\n",
            ),
        ),
        caught_by("answer/test_similarity.py::test_every_measure_of_edges_and_of_pairs"),
    ),
    Mutant(
        "ties-by-arrival",
        "of partners that are equally similar, the one that was counted first comes first",
        (
            Edit(
                "algorithms/of_graph/top_similar.py",
                "(value == other and vertex > than)",
                "(value == other and vertex < than)",
            ),
        ),
        caught_by("answer/test_similarity.py::test_the_best_partners"),
    ),
    Mutant(
        "passed-over-too-early",
        "a partner that reaches the worst of those kept is passed over before it is divided",
        (
            Edit(
                "algorithms/of_graph/top_similar.py",
                "MARGIN = 1 - 2**-40",
                "MARGIN = 1 + 2**-10",
            ),
        ),
        caught_by("answer/test_similarity.py::test_the_best_partners"),
    ),
)

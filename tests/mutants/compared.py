"""The bugs that the comparison has to mark as well, with the tests that notice each of them before."""

from __future__ import annotations

from bench.mutants import MUTANTS as SEEDED

from mutants.mutant import Mutant, Selection, caught_by

COUNTS = "conformance/test_algorithms.py::test_closed_forms_have_the_counts_of_their_formulas"
LOCAL = "conformance/test_algorithms.py::test_closed_forms_have_the_triangles_of_their_formulas"
CLEANED = "prepare/test_preparation.py::test_clean_is_what_the_definition_says"

NOTICED: dict[str, tuple[str, Selection]] = {
    "twice the count: every edge is met from both of its ends": (
        "twice-the-count",
        caught_by(COUNTS, keyword="forward", interpreted=True),
    ),
    "two of three corners are credited; our own check of the sum refuses it": (
        "two-corners",
        caught_by(LOCAL, keyword="keystone", interpreted=True),
    ),
    "two of three corners are credited, and nothing of our own checks the sum": (
        "two-corners-unchecked",
        caught_by(LOCAL, keyword="keystone", interpreted=True),
    ),
    "the first corner of a row gets the credit of all: sums are right": (
        "wrong-corner",
        caught_by(LOCAL, keyword="keystone", interpreted=True),
    ),
    "(d*d - 1) / 2 wedges at a vertex of degree d": (
        "wedges-of-a-vertex",
        caught_by("answer/test_clustering.py::test_coefficients_are_those_of_networkx", interpreted=True),
    ),
    "a divisor of transitivity is forgotten": (
        "wrong-divisor",
        caught_by("answer/test_clustering.py::test_transitivity_is_that_of_networkx", interpreted=True),
    ),
    "k in place of k - 2 triangles": (
        "k-for-k-minus-two",
        caught_by("conformance/test_trusses.py::test_every_small_graph_at_once", keyword="eager"),
    ),
    "positions of arcs have 16 bits": (
        "16-bit-cursors",
        caught_by("limits/test_widths.py::test_positions_of_arcs_beyond_16_bits", keyword="forward"),
    ),
    "a negative census: totals of 16 bits": (
        "negative-census",
        caught_by(COUNTS, keyword="reference", interpreted=True),
    ),
    "a task that is delivered twice is added twice": (
        "task-delivered-twice",
        caught_by("run/test_outofcore.py::test_counts_are_exact", keyword="karate", interpreted=True),
    ),
    "what does not fit into a bucket is dropped": (
        "full-buffer-dropped",
        caught_by("algorithms/test_truss.py::test_peeling_random_graphs", interpreted=True),
    ),
    "a bitmap without its last, partial word": (
        "bitmap-without-last-word",
        caught_by(LOCAL, keyword="keystone", interpreted=True),
    ),
    "copies of an edge are edges of their own": (
        "duplicates-kept",
        caught_by(CLEANED, interpreted=True),
    ),
    "copies in the other direction are edges, which orienting hides: counts are right, degrees are not": (
        "reversed-copies-kept",
        caught_by(CLEANED, interpreted=True),
    ),
    "totals that differ between runs: the sum of a run goes on where the last one ended": (
        "totals-differ-between-runs",
        caught_by(
            "conformance/test_algorithms.py::test_answers_do_not_depend_on_the_run",
            keyword="forward",
            interpreted=True,
        ),
    ),
}

COMPARED = tuple(
    Mutant(name, seeded.name, seeded.edits, noticing) for seeded in SEEDED for name, noticing in [NOTICED[seeded.name]]
)

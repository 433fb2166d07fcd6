"""Bugs of this field, each as a change to our own sources: what the comparison has to notice, and where.

``tests/mutants`` seeds these and others into a copy of the tree, where tests have to notice: those of kernels that need
a GPU, of machine code of older sources, of stores and of journals are there alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from mutants.edits import Edit

from wedgewise_bench.record import Cell
from wedgewise_bench.spec import Spec


def cell(way: str, question: str = "count", graph: str = "random", system: str = "wedgewise") -> Cell:
    """An algorithm with its knobs, what it is asked, and of which graph; on one thread."""
    spec = Spec.parse(way)
    return Cell(system, spec.name, graph, "count", 1, spec.settings, question)


def by_definition(question: str, graph: str = "random") -> Cell:
    """The same of the peer that answers by the definition."""
    return cell("matrix", question, graph, "definition")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug, and how cells end with it.

    Attributes
    ----------
    name : what is wrong
    edits : what is changed of the package
    says : what the first marked cell is marked with
    wrong : cells that answer, and not what is known or what most others say
    crashed : cells that end without an answer, since a check or the interpreter noticed
    right : cells that the bug is no part of
    compiled : whether it takes compiled kernels to show; all others run as plain Python
    """

    name: str
    edits: tuple[Edit, ...]
    says: str
    wrong: tuple[Cell, ...] = ()
    crashed: tuple[Cell, ...] = ()
    right: tuple[Cell, ...] = ()
    compiled: bool = False

    @property
    def marked(self) -> list[Cell]:
        return [*self.wrong, *self.crashed]

    @property
    def cells(self) -> list[Cell]:
        return [*self.marked, *self.right]

    @property
    def statuses(self) -> list[str]:
        counts = {"wrong": len(self.wrong), "crashed": len(self.crashed), "ok": len(self.right)}
        return [status for status, count in counts.items() for _ in range(count)]


FORWARD = "algorithms/cpu/forward.py"
ROWS = "algorithms/cpu/_keystone_close.py"
CLOSE = "algorithms/cpu/_truss_close.py"

LOWEST_UNPAID = Edit(
    ROWS,
    "                add_to(sinks.by_row, a, found)\n",
    "                add_to(sinks.by_row, a, np.uint64(0))\n",
)

TWICE = Mutant(
    "twice the count: every edge is met from both of its ends",
    (
        Edit(
            FORWARD,
            "    return Work((Pass(even_bounds(two_hop_work(graph)), count),))\n",
            "    return Work((Pass(even_bounds(two_hop_work(graph)), count),) * 2)\n",
        ),
    ),
    wrong=(cell("forward"),),
    right=(cell("hashmap"),),
    says="852 instead of 426",
)

TWO_CORNERS = Mutant(
    "two of three corners are credited; our own check of the sum refuses it",
    (LOWEST_UNPAID,),
    crashed=(cell("keystone", "triangles"), cell("keystone", "clustering")),
    right=(cell("keystone", "edge_support"),),
    says="VerificationError: keystone: the sum of triangles is 852 where 426 triangles make 1,278",
)

WRONG_CORNER = Mutant(
    "the first corner of a row gets the credit of all: sums are right",
    (
        Edit(
            ROWS,
            "            found, tested = close_marked(jk, b, hubs.pad, own, sinks.by_last_arc)\n"
            "        add_to(sinks.by_head, b, found)\n",
            "            found, tested = close_marked(jk, b, hubs.pad, own, sinks.by_last_arc)\n"
            "        add_to(sinks.by_head, arcs.heads[arcs.begin], found)\n",
        ),
    ),
    wrong=(cell("keystone", "triangles"),),
    right=(cell("reference", "triangles"), by_definition("triangles")),
    says="otherwise: definition, wedgewise",
)

K_FOR_K_MINUS_TWO = Mutant(
    "k in place of k - 2 triangles",
    (Edit("algorithms/_truss/rounds.py", "rows.run_round(k - MIN_K)", "rows.run_round(k)"),),
    wrong=(cell("eager", "k_truss[k=3]"), cell("reference", "trussness")),
    right=(cell("peel", "k_truss[k=3]"), cell("peel", "trussness"), by_definition("trussness")),
    says="53 instead of 322",
)

BY_KERNELS = Edit("machine/jit.py", "    if not JIT_DISABLED and (cost == 0 or array_seconds > cost):", "    if True:")
"""Kernels clean, although they run as plain Python, where arrays otherwise do."""

HIDDEN_COPIES = Mutant(
    "copies in the other direction are edges, which orienting hides: counts are right, degrees are not",
    (Edit("prepare/radix.py", "        pair = key >> one\n", "        pair = key\n"), BY_KERNELS),
    wrong=(cell("keystone", "triangles"), cell("keystone", "clustering")),
    crashed=(cell("keystone", "edge_support"), cell("peel", "trussness")),
    right=(cell("keystone", "triangles", "clique"), by_definition("triangles")),
    says="edges instead of 327",
)

MUTANTS = (
    TWICE,
    TWO_CORNERS,
    Mutant(
        "two of three corners are credited, and nothing of our own checks the sum",
        (LOWEST_UNPAID, Edit("run/reduce.py", "    if total != due:\n", "    if False:\n")),
        wrong=(cell("keystone", "triangles"), cell("keystone", "clustering")),
        right=(cell("reference", "triangles"),),
        says="284 instead of 426",
    ),
    WRONG_CORNER,
    Mutant(
        "(d*d - 1) / 2 wedges at a vertex of degree d",
        (Edit("answer/coefficients.py", "(d * d - d) >> np.uint64(1)", "(d * d - np.uint64(1)) >> np.uint64(1)"),),
        crashed=(cell("keystone", "clustering"), cell("reference", "clustering")),
        right=(cell("keystone", "triangles"), cell("keystone", "transitivity")),
        says="coefficients that do not determine integers",
    ),
    Mutant(
        "a divisor of transitivity is forgotten",
        (Edit("answer/coefficients.py", "return 3 * triangles / paths if", "return triangles / paths if"),),
        wrong=(cell("reference", "transitivity"),),
        right=(cell("reference"), cell("reference", "clustering")),
        says="142 instead of 426",
    ),
    K_FOR_K_MINUS_TWO,
    Mutant(
        "positions of arcs have 16 bits",
        (
            Edit(
                FORWARD,
                "    a, b = first.begin, second.begin\n",
                "    a, b, b_end = first.begin, second.begin & np.uint64(0xFFFF), second.end & np.uint64(0xFFFF)\n",
            ),
            Edit(FORWARD, "b < second.end:\n", "b < b_end:\n"),
        ),
        wrong=(cell("forward", graph="wide"),),
        right=(cell("forward"), cell("reference", graph="wide")),
        says="9051338 instead of 10586800",
        compiled=True,
    ),
    Mutant(
        "a negative census: totals of 16 bits",
        (
            Edit(
                "run/reduce.py",
                "Computed(exact_sum(results.triangles), ",
                "Computed(int(np.array(exact_sum(results.triangles)).astype(np.int16)), ",
            ),
        ),
        wrong=(cell("reference", graph="clique"),),
        right=(cell("reference"),),
        says="-31316 instead of 34220",
    ),
    Mutant(
        "a task that is delivered twice is added twice",
        (
            Edit(
                "run/outofcore.py",
                "        return Finished(tasks.number, *work.by_task())\n",
                "        found = work.by_task()\n"
                "        found[0][1:2] *= np.uint64(2)\n"
                "        return Finished(tasks.number, *found)\n",
            ),
        ),
        wrong=(cell("bbtc[parts=2]", system="blocks"),),
        right=(cell("bbtc[parts=2]"),),
        says="575 instead of 426",
    ),
    Mutant(
        "what does not fit into a bucket is dropped",
        (
            Edit(CLOSE, "FOUND = 1024 ", "FOUND = 4 "),
            Edit(
                CLOSE,
                "queue, stop)\n            position = piece\n",
                "queue, stop)\n            position = stops[other]\n",
            ),
        ),
        crashed=(cell("peel", "trussness"),),
        right=(cell("eager", "trussness"),),
        says="8-truss of 6 edges cannot occur among 327 edges",
    ),
    Mutant(
        "a bitmap without its last, partial word",
        (
            Edit(
                "algorithms/cpu/_keystone_hubs.py",
                "    return aligned_zeros((n + 2 * BLOCK_BITS) // 64)\n",
                "    return aligned_zeros((n + BLOCK_BITS - n % BLOCK_BITS - 1) // 64)\n",
            ),
        ),
        crashed=(cell("keystone", "triangles"), cell("peel", "trussness")),
        right=(cell("keystone"), cell("latapy")),
        says="IndexError",
    ),
    Mutant(
        "copies of an edge are edges of their own",
        (Edit("prepare/radix.py", "        if pair == previous:\n", "        if False:\n"), BY_KERNELS),
        wrong=(cell("hashmap"), cell("latapy")),
        right=(cell("hashmap", graph="clique"), by_definition("count")),
        says="655 instead of 426",
    ),
    HIDDEN_COPIES,
    Mutant(
        "totals that differ between runs: the sum of a run goes on where the last one ended",
        (
            Edit(
                FORWARD,
                "        return merge_rows(blocks, Span(begin, end))\n",
                "        found, steps = merge_rows(blocks, Span(begin, end))\n"
                "        LEFT_OVER[0] += int(found) if begin == 0 else 0\n"
                "        return LEFT_OVER[0] if begin == 0 else found, steps\n",
            ),
            Edit(FORWARD, "\n\n@kernel\ndef merge_rows(", "\n\nLEFT_OVER = [0]\n\n\n@kernel\ndef merge_rows("),
        ),
        wrong=(cell("forward", graph="unknown"),),
        right=(cell("bbtc", graph="unknown"),),
        says="repeats disagree",
    ),
)

UNSEEN = (
    (WRONG_CORNER, cell("keystone", "triangles")),
    (K_FOR_K_MINUS_TWO, cell("reference", "trussness")),
    (HIDDEN_COPIES, cell("keystone", "clustering", "unknown")),
    (TWICE, cell("forward", graph="unknown")),
)
"""Wrong answers that pass, each asked for alone.

The first two have the right number and another digest, which takes a second way to be noticed; so does a count of a
graph of which nothing is known, and the edges of such a one: a coefficient is made of a degree and is turned back into
triangles by the same one.
"""

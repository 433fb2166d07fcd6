"""The words of the comparison: what is timed, asked and told, and how a cell can end."""

from __future__ import annotations

from wedgewise.errors import InputError, UnknownNameError
from wedgewise_bench.spec import Spec

ROWS = ("count", "edges", "file")
"""What is timed; each row includes the work of the one before it."""

QUESTIONS = (
    *("count", "triangles", "edge_support", "clustering", "transitivity", "list_triangles"),
    *("trussness", "max_truss", "k_truss"),
)
"""What is asked, by the names of our own functions."""

KMAX = "kmax"
"""In place of a number: the largest k whose k-truss has edges."""

STATUSES = ("ok", "wrong", "crashed", "timeout", "out_of_memory", "unavailable")

DEVICES = ("cpu", "cuda", "hybrid")
"""Where our own algorithms run; everybody else is on the CPU."""

STAGES = ("prepare", "copy", "kernel", "answer", "whole")
"""What the seconds of an outcome are told apart into, as far as they are known.

``prepare`` makes of raw pairs what an algorithm reads, ``copy`` moves arrays to a GPU or from it, ``kernel`` is the
algorithm itself (on a GPU between two events of its stream), ``answer`` makes of its numbers what a caller gets, and
``whole`` is everything from raw pairs in memory to the answer.
"""

FACTS = (
    *("chosen", "vertices", "triangles", "wedges_tested", "limit_seconds"),
    *("out_degree_mean", "out_degree_median", "out_degree_most"),
    *("bytes_moved", "device_peak_bytes", "timeline", "counters"),
)
"""What a system may say of its work, where it is known; the blocks say more.

The algorithm that ``auto`` took; sizes of the graph; closed and open wedges that were looked up; the least time by a
stated limit; out-degrees of the oriented graph; bytes copied between host and device; the most memory of the device; a
`Timeline` of the hybrid as its ``to_dict``; a profiler's counters by its own names.
"""


def parse_question(text: str) -> Spec:
    """A question with its parameters, checked.

    Raises
    ------
    UnknownNameError : no such question
    InputError : parameters that it does not have, or lacks
    """
    asked = Spec.parse(text)
    if asked.name not in QUESTIONS:
        raise UnknownNameError(f"no question named {asked.name!r}; there are: {', '.join(QUESTIONS)}")
    if asked.name != "k_truss":
        if asked.settings:
            raise InputError(f"{text}: {asked.name} has no parameters")
        return asked
    k = asked.settings.get("k")
    if set(asked.settings) != {"k"} or (k != KMAX and not (isinstance(k, int) and k >= 2)):
        raise InputError(f"{text}: a k-truss is asked for by k_truss[k=3], with any k from 2 on, or k_truss[k={KMAX}]")
    return asked

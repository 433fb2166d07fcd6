"""What a mutant is: a bug that somebody in this field has shipped, and the tests that have to notice it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mutants.edits import Edit

ORDINARY = "not deep and not data and not gpu"


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of the suite, as pytest takes it.

    Attributes
    ----------
    tests : files or functions below ``tests``
    keyword : what their names have to hold, in pytest's terms
    deep : whether those that are marked so run too
    interpreted : kernels run as plain Python, where bugs would otherwise write behind the end of an array
    """

    tests: tuple[str, ...]
    keyword: str = ""
    deep: bool = False
    interpreted: bool = False

    def __str__(self) -> str:
        return " ".join(filter(None, (*self.tests, self.keyword and f"-k {self.keyword}")))

    @property
    def condition(self) -> str:
        """What the names of these tests hold, among tests of other selections too."""
        names = " or ".join(test.rpartition("::" if "::" in test else "/")[2] for test in self.tests)
        return f"({names}) and ({self.keyword})" if self.keyword else names

    @property
    def arguments(self) -> tuple[str, ...]:
        markers = () if self.deep else ("-m", ORDINARY)
        keyword = ("-k", self.keyword) if self.keyword else ()
        return *markers, *keyword, *(f"tests/{test}" for test in self.tests)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug and who has to find it.

    Attributes
    ----------
    name : in the table, and on the command line
    bug : what is wrong, in a sentence
    edits : what is changed of the package
    caught_by : the smallest part of the suite that is about this
    """

    name: str
    bug: str
    edits: tuple[Edit, ...]
    caught_by: Selection


def merged(selections: Sequence[Selection], parts: int) -> list[Selection]:
    """The same tests in few runs of pytest: so many of each kind as there are parts, where there is work for them."""
    runs = []
    for kind in dict.fromkeys((selection.deep, selection.interpreted) for selection in selections):
        alike = [selection for selection in selections if (selection.deep, selection.interpreted) == kind]
        for part in range(min(parts, len(alike))):
            first, *others = alike[part::parts]
            tests = dict.fromkeys(test for selection in (first, *others) for test in selection.tests)
            condition = " or ".join(f"({selection.condition})" for selection in (first, *others))
            runs.append(Selection(tuple(tests), condition, *kind) if others else first)
    return runs


def caught_by(*tests: str, keyword: str = "", deep: bool = False, interpreted: bool = False) -> Selection:
    """The tests that have to notice."""
    return Selection(tests, keyword, deep, interpreted)

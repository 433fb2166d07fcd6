"""A name with settings in one word: ``k_truss[k=3]``, ``eager[granularity=coarse]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from wedgewise.errors import InputError

SPEC = re.compile(r"(\w+)(?:\[([^\[\]]*)\])?")
SETTING = re.compile(r"(\w+)=([\w.-]+)")
INTEGER = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Spec:
    """A question with its parameters, or an algorithm with its knobs; settings in the order in which they were written.

    Examples
    --------
    >>> Spec.parse("k_truss[k=3]")
    Spec(name='k_truss', settings={'k': 3})
    >>> str(Spec("eager", {"granularity": "fine"}))
    'eager[granularity=fine]'
    """

    name: str
    settings: Mapping[str, int | str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """The name and the settings of a text; whole numbers are integers."""
        found = SPEC.fullmatch(text)
        parts = [] if found is None or found[2] is None else found[2].split(",")
        pairs = [SETTING.fullmatch(part) for part in parts]
        if found is None or None in pairs:
            raise InputError(f"{text!r} is neither a name nor NAME[KEY=VALUE,…], such as k_truss[k=3]")
        return cls(found[1], {pair[1]: _number_or_name(pair[2]) for pair in pairs if pair is not None})

    def __str__(self) -> str:
        settings = ",".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.name}[{settings}]" if settings else self.name


def _number_or_name(text: str) -> int | str:
    return int(text) if INTEGER.fullmatch(text) else text

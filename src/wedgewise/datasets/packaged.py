"""The graphs that come with the package, with their published facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from wedgewise.errors import MissingFileError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Dataset:
    """A real graph and what is published about it; `source` says where it came from."""

    name: str
    filename: str
    n: int
    m: int
    triangles: int
    summary: str
    source: str


BUNDLED: Mapping[str, Dataset] = MappingProxyType(
    {
        "email-Enron": Dataset(
            name="email-Enron",
            filename="email-Enron.txt.xz",
            n=36_692,
            m=183_831,
            triangles=727_044,
            summary="who wrote to whom in the Enron e-mail corpus",
            source="SNAP, https://snap.stanford.edu/data/email-Enron.html",
        )
    }
)


def bundled(name: str) -> Path:
    """The file of a bundled graph.

    Parameters
    ----------
    name : a key of `BUNDLED`

    Raises
    ------
    UnknownNameError : no graph of that name is bundled
    MissingFileError : the installation lacks its data files

    Examples
    --------
    >>> from wedgewise.datasets import bundled
    >>> bundled("email-Enron").name
    'email-Enron.txt.xz'
    """
    if name not in BUNDLED:
        raise UnknownNameError(f"no bundled graph named {name!r}; there are: {', '.join(BUNDLED)}")
    path = Path(str(files("wedgewise") / "data" / BUNDLED[name].filename))
    if not path.is_file():
        raise MissingFileError(f"{path}: the bundled graph is missing; reinstall wedgewise from a wheel")
    return path

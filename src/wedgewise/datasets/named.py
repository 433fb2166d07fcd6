"""A name of the catalogue where a path is expected: the file of a graph that is here, without any network."""

from __future__ import annotations

import os

from wedgewise.datasets import get
from wedgewise.datasets.archive import is_archive
from wedgewise.datasets.cache import folder_of
from wedgewise.datasets.catalogue import find
from wedgewise.datasets.packaged import BUNDLED
from wedgewise.errors import InputError, MissingFileError, UnknownNameError


def named_path(name: str) -> str | None:
    """The path of a graph's file, which is generated where it can be; None where no graph has that name.

    Raises
    ------
    MissingFileError
        the graph is neither here nor generated; nothing is fetched
    InputError
        its file is an archive
    """
    try:
        graph = find(name)
    except UnknownNameError:
        return None
    is_here = graph.name in BUNDLED or graph.recipe is not None or folder_of(graph.name).file() is not None
    if not is_here:
        raise MissingFileError(
            f"{name}: is a published graph that is not here; `wedgewise datasets get {name}` fetches it"
        )
    path = get(graph.name)
    if is_archive(path):
        raise InputError(f"{name}: its file {path} is an archive; read it with wedgewise.datasets.load({name!r})")
    return os.fspath(path)

"""Bytes → EdgeList: one module per format, and the one table of their names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.graph import EdgeList
from wedgewise.machine.hardware import usable_threads
from wedgewise.read.arrow import read_arrow, read_parquet
from wedgewise.read.content import Content, open_content
from wedgewise.read.limits import DEFAULT_LIMITS, Limits
from wedgewise.read.matrix_market import read_matrix_market
from wedgewise.read.metis import read_metis
from wedgewise.read.numpy_files import read_npy, read_npz
from wedgewise.read.pairs_file import read_bel, read_bel32, read_bel64
from wedgewise.read.sniff import sniff
from wedgewise.read.text import read_text

__all__ = ["FORMATS", "LABELS", "read_edges"]

LABELS = ("auto", "int", "text")


@dataclass(frozen=True, slots=True)
class _Request:
    """How to read, whatever the format."""

    labels: str
    limits: Limits
    threads: int


def _text(content: Content, request: _Request) -> EdgeList:
    return read_text(content, labels=request.labels, limits=request.limits, threads=request.threads)


def _table(reader: Callable[[Content, Limits, str], EdgeList]) -> Callable[[Content, _Request], EdgeList]:
    """A reader of tables, whose columns may hold integers or text."""
    return lambda content, request: reader(content, request.limits, request.labels)


def _integers(reader: Callable[[Content, Limits], EdgeList]) -> Callable[[Content, _Request], EdgeList]:
    """A reader of a format that holds integers and nothing else."""

    def read(content: Content, request: _Request) -> EdgeList:
        if request.labels == "text":
            raise InputError(f'{content.name}: labels="text" where the format holds integers; leave labels out')
        return reader(content, request.limits)

    return read


FORMATS: dict[str, Callable[[Content, _Request], EdgeList]] = {
    "text": _text,
    "mtx": _integers(read_matrix_market),
    "metis": _integers(read_metis),
    "npy": _integers(read_npy),
    "npz": _integers(read_npz),
    "bel": _integers(read_bel),
    "bel32": _integers(read_bel32),
    "bel64": _integers(read_bel64),
    "parquet": _table(read_parquet),
    "arrow": _table(read_arrow),
}


def read_edges(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    labels: str = "auto",
    limits: Limits | None = None,
    threads: int | None = None,
) -> EdgeList:
    """Read the pairs of a file of any known format, plain or compressed.

    Parameters
    ----------
    source : a path, ``"-"`` for standard input, or an open binary file
    format : a name of `FORMATS`; by default the content decides, and the suffix where the content cannot
        (see `wedgewise.read.sniff`)
    labels : ``"int"`` or ``"text"`` to say what the labels of a text file or table are, ``"auto"`` to look
    limits : caps on what is read; `wedgewise.read.limits.Limits` has the defaults
    threads : threads that parse text; by default all that this process may use

    Raises
    ------
    FormatError
        When the content is malformed; the message names file, line, text and remedy.
    LimitError
        When the file exceeds a cap.
    MissingFileError
        When there is no such file.
    UnknownNameError
        When there is no such format.

    Examples
    --------
    >>> import io
    >>> read_edges(io.BytesIO(b"0 1\\n1 2\\n")).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    if format is not None and format not in FORMATS:
        raise UnknownNameError(f"no format named {format!r}; there are: {', '.join(FORMATS)}")
    if labels not in LABELS:
        raise UnknownNameError(f"no kind of labels named {labels!r}; there are: {', '.join(LABELS)}")
    limits = limits or DEFAULT_LIMITS
    with open_content(source, limits) as content:
        return FORMATS[format or sniff(content)](content, _Request(labels, limits, threads or usable_threads()))

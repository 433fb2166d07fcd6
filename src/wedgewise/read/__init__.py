"""Bytes → EdgeList: one module per format, and the one table of their names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.graph import EdgeList
from wedgewise.machine.hardware import usable_threads
from wedgewise.machine.shortage import memory_for
from wedgewise.read.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from wedgewise.read.content import Content
    from wedgewise.read.receiver import Receiver

__all__ = ["FORMATS", "LABELS", "read_edges"]

LABELS = ("auto", "int", "text")


@dataclass(frozen=True, slots=True)
class Request:
    """How to read, whatever the format."""

    labels: str
    limits: Limits
    threads: int
    receiver: Receiver | None


def _text(content: Content, request: Request) -> EdgeList:
    from wedgewise.read.text import read_text

    return read_text(
        content,
        labels=request.labels,
        limits=request.limits,
        threads=request.threads,
        receiver=request.receiver,
    )


def _table(module: str, reader: str) -> Callable[[Content, Request], EdgeList]:
    """A reader of tables, whose columns may hold integers or text."""
    return lambda content, request: _load(module, reader)(content, request.limits, request.labels)


def _integers(module: str, reader: str) -> Callable[[Content, Request], EdgeList]:
    """A reader of a format that holds integers and nothing else."""

    def read(content: Content, request: Request) -> EdgeList:
        if request.labels == "text":
            raise InputError(f'{content.name}: labels="text" where the format holds integers; leave labels out')
        return _load(module, reader)(content, request.limits)

    return read


def _load(module: str, reader: str) -> Callable[..., EdgeList]:
    """A reader of this package: its module is imported when the first file of its format is read."""
    found: Callable[..., EdgeList] = getattr(import_module(f"{__name__}.{module}"), reader)
    return found


FORMATS: dict[str, Callable[[Content, Request], EdgeList]] = {
    "text": _text,
    "mtx": _integers("matrix_market", "read_matrix_market"),
    "metis": _integers("metis", "read_metis"),
    "npy": _integers("numpy_files", "read_npy"),
    "npz": _integers("numpy_files", "read_npz"),
    "bel": _integers("pairs_file", "read_bel"),
    "bel32": _integers("pairs_file", "read_bel32"),
    "bel64": _integers("pairs_file", "read_bel64"),
    "parquet": _table("arrow", "read_parquet"),
    "arrow": _table("arrow", "read_arrow"),
}


@memory_for("read")
def read_edges(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    labels: str = "auto",
    limits: Limits | None = None,
    threads: int | None = None,
    receiver: Receiver | None = None,
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
    receiver : gets the same pairs, parts of them while later ones are still being parsed where the format allows
        (see `wedgewise.read.receiver`)

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
    from wedgewise.read.content import open_content
    from wedgewise.read.sniff import sniff

    if format is not None and format not in FORMATS:
        raise UnknownNameError(f"no format named {format!r}; there are: {', '.join(FORMATS)}")
    if labels not in LABELS:
        raise UnknownNameError(f"no kind of labels named {labels!r}; there are: {', '.join(LABELS)}")
    limits = limits or DEFAULT_LIMITS
    request = Request(labels, limits, threads or usable_threads(), receiver)
    with open_content(source, limits) as content:
        edge_list = FORMATS[format or sniff(content)](content, request)
        if receiver is not None and not receiver.begun:
            receiver.take(edge_list.pairs)
        return edge_list

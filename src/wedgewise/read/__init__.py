"""Bytes → pairs in pieces → EdgeList: one module per format, and the one table of their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.machine.hardware import granted_threads
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.parameters import check_type
from wedgewise.read.columns import ANY_COLUMNS, ColumnChoice
from wedgewise.stages import EdgeList
from wedgewise.stages.limits import Limits, checked_limits

if TYPE_CHECKING:
    from wedgewise.machine.ring import Arriving
    from wedgewise.read.content import Content
    from wedgewise.read.pieces import PairPieces

__all__ = ["FORMATS", "LABELS", "read_edges"]

LABELS = ("auto", "int", "text")
LINES, TABLE, INTEGERS = range(3)  # what a format holds: text with a header or without, named columns, integers alone
FORMATS = {  # the module in this package, its function (Content, ReadOptions) -> PairPieces, and what the format holds
    "text": ("text", "pieces_of_text", LINES),
    "mtx": ("matrix_market", "pieces_of_matrix_market", INTEGERS),
    "metis": ("metis", "pieces_of_metis", INTEGERS),
    "npy": ("numpy_files", "pieces_of_npy", INTEGERS),
    "npz": ("numpy_files", "pieces_of_npz", INTEGERS),
    "bel": ("pairs_file", "pieces_of_bel", INTEGERS),
    "bel32": ("pairs_file", "pieces_of_bel32", INTEGERS),
    "bel64": ("pairs_file", "pieces_of_bel64", INTEGERS),
    "parquet": ("arrow", "pieces_of_parquet", TABLE),
    "arrow": ("arrow", "pieces_of_arrow", TABLE),
}


@dataclass(frozen=True, slots=True)
class TableReading:
    """What is known of a table: its columns, and the kind of its labels."""

    columns: ColumnChoice
    labels: str


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read, whatever the format; `whole` where all pairs will be in memory anyway.

    ``in_table`` takes the place of `labels` and `columns` where the format is text or a table.
    """

    labels: str
    columns: ColumnChoice
    limits: Limits
    threads: int
    receiver: Arriving | None = None
    whole: bool = False
    in_table: TableReading | None = None


def read_edges(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    labels: str = "auto",
    columns: ColumnChoice = ANY_COLUMNS,
    limits: Limits | None = None,
    threads: int | None = None,
    receiver: Arriving | None = None,
) -> EdgeList:
    """Read the pairs of a file of any known format, plain or compressed.

    Parameters
    ----------
    source : a path, ``"-"`` for standard input, or an open binary file
    format : a name of `FORMATS`; by default the content decides, and the suffix where the content cannot
        (see `wedgewise.read.sniff`)
    labels : ``"int"`` or ``"text"`` to say what the labels of a text file or table are, ``"auto"`` to look
    columns : which columns of a text file or table are the ends and the weight, as far as the user says so
    limits : caps on what is read; `wedgewise.stages.limits.Limits` has the defaults
    threads : threads that parse text; by default all that this process may use
    receiver : gets the same pairs, parts of them while later ones are still being parsed where the format allows
        (see `wedgewise.machine.arriving`)

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
    check_names(format, labels)
    options = ReadOptions(labels, columns, checked_limits(limits), granted_threads(threads), receiver, whole=True)
    return edges_of_file(source, format, options)


@memory_for("read")
def edges_of_file(source: str | os.PathLike[str] | BinaryIO, format: str | None, options: ReadOptions) -> EdgeList:
    """All pairs of a file; a receiver to which no part was announced takes them at the end."""
    from wedgewise.read.content import open_content
    from wedgewise.read.pieces import edges_of_pieces

    with open_content(source, options.limits, format=format, threads=options.threads) as content:
        edge_list = edges_of_pieces(_pieces_of(content, format, options), options.limits)
    if options.receiver is not None and not options.receiver.begun:
        options.receiver.take(edge_list.pairs)
    return edge_list


@contextmanager
def open_pairs(
    source: str | os.PathLike[str] | BinaryIO, format: str | None, options: ReadOptions
) -> Iterator[PairPieces]:
    """The pairs of a file in pieces; the file is closed behind the block."""
    from wedgewise.read.content import open_content

    with open_content(source, options.limits, format=format, threads=options.threads) as content:
        yield _pieces_of(content, format, options)


def _pieces_of(content: Content, format: str | None, options: ReadOptions) -> PairPieces:
    """Refuse what the format cannot answer, and load its reader: the first file of a format imports its module."""
    from wedgewise.read.sniff import sniff

    module, reader, holds = FORMATS[format or sniff(content)]
    if holds == INTEGERS:
        if options.labels == "text":
            raise InputError(f'{content.name}: labels="text" where the format holds integers; leave labels out')
        options.columns.check_unused(content.name, "the format has no columns to choose from")
    elif options.in_table is not None:
        options = replace(options, labels=options.in_table.labels, columns=options.in_table.columns)
    if holds == TABLE:
        options.columns.check_header_unused(content.name)
    found: PairPieces = getattr(import_module(f"{__name__}.{module}"), reader)(content, options)
    return found


def check_names(format: str | None, labels: str) -> None:
    """Refuse names that nothing has."""
    if format is not None:
        check_type("format", format, str, "the name of a format")
        if format not in FORMATS:
            raise UnknownNameError(f"no format named {format!r}; there are: {', '.join(FORMATS)}")
    if not isinstance(labels, str) or labels not in LABELS:
        check_type("labels", labels, str, f"one of {', '.join(LABELS)}")
        raise UnknownNameError(f"no kind of labels named {labels!r}; there are: {', '.join(LABELS)}")

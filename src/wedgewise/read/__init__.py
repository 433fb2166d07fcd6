"""Bytes → pairs in pieces → EdgeList: one module per format, and the one table of their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
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
    from wedgewise.read.content import Content
    from wedgewise.read.pieces import PairPieces, Receiver

__all__ = ["FORMATS", "LABELS", "read_edges"]

LABELS = ("auto", "int", "text")


@dataclass(frozen=True, slots=True)
class TableReading:
    """What is known of a table: its columns, and the kind of its labels."""

    columns: ColumnChoice
    labels: str


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read, whatever the format; `whole` where all pairs will be in memory anyway.

    ``in_table`` takes the place of `labels` and `columns` where the format is a table.
    """

    labels: str
    columns: ColumnChoice
    limits: Limits
    threads: int
    receiver: Receiver | None = None
    whole: bool = False
    in_table: TableReading | None = None

    def of_table(self) -> ReadOptions:
        """The same for a table."""
        if self.in_table is None:
            return self
        return replace(self, labels=self.in_table.labels, columns=self.in_table.columns)


Reader = Callable[["Content", ReadOptions], "PairPieces"]


def _text(content: Content, options: ReadOptions) -> PairPieces:
    return _load("text", "pieces_of_text")(content, options.of_table())


def _table(module: str, reader: str) -> Reader:
    """A reader of tables, whose columns may hold integers or text."""

    def read(content: Content, options: ReadOptions) -> PairPieces:
        options = options.of_table()
        options.columns.check_header_unused(content.name)
        return _load(module, reader)(content, options.limits, options.labels, options.columns)

    return read


def _integers(module: str, reader: str, *, can_be_whole: bool = False) -> Reader:
    """A reader of a format that holds integers and nothing else; some read all of it at once where that is wanted."""

    def read(content: Content, options: ReadOptions) -> PairPieces:
        if options.labels == "text":
            raise InputError(f'{content.name}: labels="text" where the format holds integers; leave labels out')
        options.columns.check_unused(content.name, "the format has no columns to choose from")
        whole = (options.whole,) if can_be_whole else ()
        return _load(module, reader)(content, options.limits, *whole)

    return read


def _load(module: str, reader: str) -> Callable[..., PairPieces]:
    """A reader of this package: its module is imported when the first file of its format is read."""
    found: Callable[..., PairPieces] = getattr(import_module(f"{__name__}.{module}"), reader)
    return found


FORMATS: dict[str, Reader] = {
    "text": _text,
    "mtx": _integers("matrix_market", "pieces_of_matrix_market"),
    "metis": _integers("metis", "pieces_of_metis"),
    "npy": _integers("numpy_files", "pieces_of_npy", can_be_whole=True),
    "npz": _integers("numpy_files", "pieces_of_npz"),
    "bel": _integers("pairs_file", "pieces_of_bel", can_be_whole=True),
    "bel32": _integers("pairs_file", "pieces_of_bel32", can_be_whole=True),
    "bel64": _integers("pairs_file", "pieces_of_bel64", can_be_whole=True),
    "parquet": _table("arrow", "pieces_of_parquet"),
    "arrow": _table("arrow", "pieces_of_arrow"),
}


@memory_for("read")
def read_edges(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    labels: str = "auto",
    columns: ColumnChoice = ANY_COLUMNS,
    limits: Limits | None = None,
    threads: int | None = None,
    receiver: Receiver | None = None,
    in_table: TableReading | None = None,
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
        (see `wedgewise.read.pieces`)
    in_table : what takes the place of `labels` and `columns` where the file turns out to be text or a table

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
    from wedgewise.read.pieces import edges_of_pieces

    check_names(format, labels)
    limits = checked_limits(limits)
    options = ReadOptions(labels, columns, limits, granted_threads(threads), receiver, whole=True, in_table=in_table)
    with open_pairs(source, format, options) as pieces:
        edge_list = edges_of_pieces(pieces, limits)
        if receiver is not None and not receiver.begun:
            receiver.take(edge_list.pairs)
        return edge_list


@contextmanager
def open_pairs(
    source: str | os.PathLike[str] | BinaryIO, format: str | None, options: ReadOptions
) -> Iterator[PairPieces]:
    """The pairs of a file in pieces; the file is closed behind the block."""
    from wedgewise.read.content import open_content
    from wedgewise.read.sniff import sniff

    with open_content(source, options.limits, format=format, threads=options.threads) as content:
        yield FORMATS[format or sniff(content)](content, options)


def check_names(format: str | None, labels: str) -> None:
    """Refuse names that nothing has."""
    if format is not None:
        check_type("format", format, str, "the name of a format")
        if format not in FORMATS:
            raise UnknownNameError(f"no format named {format!r}; there are: {', '.join(FORMATS)}")
    if not isinstance(labels, str) or labels not in LABELS:
        check_type("labels", labels, str, f"one of {', '.join(LABELS)}")
        raise UnknownNameError(f"no kind of labels named {labels!r}; there are: {', '.join(LABELS)}")

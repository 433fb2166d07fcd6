"""Where a graph's file is looked for: the addresses of the catalogue, a mirror of them, a folder, or one file."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from wedgewise.datasets.catalogue import PublishedGraph
from wedgewise.errors import DownloadError, MissingFileError
from wedgewise.read.sniff import COMPRESSION_SUFFIXES, SUFFIXES

DATA_SUFFIXES = (
    ".txt",
    ".tsv",
    ".csv",
    ".el",
    ".edges",
    ".mtx",
    ".npy",
    ".npz",
    ".parquet",
    ".arrow",
    ".tar",
    *SUFFIXES,
)


def addresses_at(graph: PublishedGraph, mirror: str | None) -> tuple[str, ...]:
    """The addresses to try, in order; a mirror that ends in a slash holds files of the catalogue's names.

    Raises
    ------
    DownloadError
        when no address is known
    """
    if mirror is not None and not mirror.endswith("/"):
        return (mirror,)
    if not graph.addresses:
        note = f" ({graph.note})" if graph.note else ""
        raise DownloadError(f"{graph.name}: no address of a file is known{note}; name one with source= or --from")
    if mirror is None:
        return graph.addresses
    return tuple(f"{mirror}{quote(file_name(address))}" for address in graph.addresses)


def file_name(address: str) -> str:
    """The name of the file at an address, without anything that could lead out of a folder.

    Raises
    ------
    DownloadError
        when it is not an address
    """
    try:
        path = urlsplit(address).path
    except ValueError as error:
        raise DownloadError(f"{address}: is not an address ({error}); name another one") from error
    name = PurePosixPath(unquote(path)).name.replace("\\", "_").replace("\0", "_")
    return "graph" if name in ("", ".", "..") else name


def file_at(graph: PublishedGraph, source: str | os.PathLike[str]) -> Path:
    """The graph's file in a folder, or the file that is named itself.

    In a folder the name is that of the catalogue or of a source, whatever its case and suffixes, or that of the
    published file.

    Raises
    ------
    MissingFileError
        when there is none
    """
    path = Path(source)
    if path.is_file():
        return path
    if not path.is_dir():
        raise MissingFileError(f"{path}: no such folder or file; name a folder, a file or an address")
    published = [file_name(address) for address in graph.addresses]
    wanted = {stem(name) for name in (*graph.names, *published)}
    try:
        found = sorted(file for file in path.iterdir() if stem(file.name) in wanted and file.is_file())
    except OSError as error:
        raise MissingFileError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    if not found:
        examples = " or ".join([*published, f"{graph.name}.txt"])
        raise MissingFileError(f"{path}: no file of {graph.name} in it; name the file itself, or call it {examples}")
    return found[0]


def stem(name: str) -> str:
    """A file's name in lower case without the suffixes of formats and compressions."""
    stripped = name.lower()
    for suffixes in (COMPRESSION_SUFFIXES, DATA_SUFFIXES):
        suffix = next((suffix for suffix in suffixes if stripped.endswith(suffix)), "")
        stripped = stripped.removesuffix(suffix)
    return stripped

"""A graph by name: its file, fetched, copied or generated where it is missing, counted once, and opened."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from wedgewise.datasets import packaged
from wedgewise.datasets.archive import edges_in, is_archive
from wedgewise.datasets.cache import CachedFile, GraphFolder, content_of, folder_of
from wedgewise.datasets.catalogue import PublishedGraph
from wedgewise.datasets.check import Verification, compare
from wedgewise.datasets.fetch import fetch, has_begun, is_address
from wedgewise.datasets.urls import addresses_at, file_at, file_name
from wedgewise.errors import DownloadError, InputError, LimitError, MemoryLimitError
from wedgewise.graph import Graph
from wedgewise.machine import hardware
from wedgewise.machine.progress import Progress
from wedgewise.stages.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from wedgewise.generate import EdgeStream

Location = str | os.PathLike[str]

EDGE_BYTES = 256  # far more than a line of text has for an edge, written in both directions
SMALL_BYTES = 1 << 26


def file_of(graph: PublishedGraph, source: Location | None, progress: Progress | None) -> Path:
    """The graph's file, complete, counted once, and found to be what is published."""
    if source is None and graph.name in packaged.BUNDLED:
        return packaged.bundled(graph.name)
    folder = folder_of(graph.name)
    path = folder.file() or _bring(graph, folder, source, progress)
    record = folder.record()
    if record is None or not record.is_verified:
        check(graph, folder, path, progress)
    return path


def check(graph: PublishedGraph, folder: GraphFolder, path: Path, progress: Progress | None) -> None:
    """Count a file that has arrived, and put it aside when it is another graph.

    Raises
    ------
    InputError
        when it is not a graph, or another one
    MemoryLimitError
        when it cannot be counted here; the file stays
    """
    try:
        verification = verify_file(graph, folder, path, progress=progress)
    except MemoryLimitError as error:
        raise MemoryLimitError(f"{path}: is complete, but cannot be counted here: {error}") from error
    except LimitError:
        raise
    except InputError as error:
        raise InputError(f"{folder.refuse(path)}: is not {graph.name}: {error}") from error
    if not verification.agrees:
        raise InputError(
            f"{folder.refuse(path)}: is not {graph.name}: {verification.differences}; name another source with source= "
            "or --from"
        )


def verify_file(
    graph: PublishedGraph,
    folder: GraphFolder,
    path: Path,
    *,
    trusses: bool = False,
    progress: Progress | None = None,
) -> Verification:
    """Count a file in its folder and compare; content that agrees is remembered by its checksum."""
    verification = compare(graph, read_graph(path), trusses=trusses, progress=progress)
    found = content_of(path)
    sha256 = found["sha256"]
    record = folder.record() or CachedFile(path.name, origin=str(path), **found)
    others = tuple(known for known in record.verified if known != sha256)
    verified = (*others, sha256) if verification.agrees else others
    folder.remember(replace(record, counted=dict(verification.counted), verified=verified, **found))
    return verification


def generated_graph(stream: EdgeStream, *, drop_leaves: bool = False, threads: int | None = None) -> Graph:
    """A generated graph in memory.

    Raises
    ------
    MemoryLimitError
        before anything large is allocated
    """
    need, available = stream.pairs_count * 2 * stream.dtype.itemsize, hardware.available_memory()
    if need > available:
        raise MemoryLimitError(
            f"{stream.name}: its {stream.pairs_count:,} pairs take {need:,} bytes and {available:,} are available; "
            "write it to a file with `wedgewise datasets get`, and cut that into blocks with `wedgewise partition`"
        )
    threads = hardware.granted_threads(threads)
    return Graph(stream.pairs(threads=threads), n=stream.n, drop_leaves=drop_leaves, threads=threads)


def read_graph(path: Path, **how: Any) -> Graph:
    """The graph of a file, archives included; the keywords are those of `wedgewise.Graph`."""
    with opened(path, how.get("limits", DEFAULT_LIMITS)) as source:
        return Graph(source, **how)


def opened(path: Path, limits: Limits = DEFAULT_LIMITS) -> AbstractContextManager[Path | IO[bytes]]:
    """What `wedgewise.Graph` reads: the file itself, or the edges in an archive, which is not unpacked."""
    return edges_in(path, limits) if is_archive(path) else nullcontext(path)


def _bring(graph: PublishedGraph, folder: GraphFolder, source: Location | None, progress: Progress | None) -> Path:
    """Fetch, copy or generate the file, and remember what came from where; what is generated is known to be right."""
    folder.make()
    recipe, known = graph.recipe if source is None else None, folder.record()
    if recipe is not None:
        from wedgewise.write.edges import write_stream

        path, origin = folder.path / f"{graph.name}.bel", f"generated: {recipe.family}"
        write_stream(recipe.stream(), path, f"generate {graph.name}", progress, threads=1)
    elif source is None or is_address(os.fspath(source)):
        path, origin = _fetch(graph, folder, None if source is None else os.fspath(source), progress)
    else:
        found = file_at(graph, source)
        path, origin = folder.copy_in(found, f"copy {graph.name}", progress), str(found.absolute())
    path.chmod(0o600)  # files that others can write to are not believed
    content = content_of(path)
    verified = (content["sha256"],) if recipe is not None else () if known is None else known.verified
    folder.remember(CachedFile(path.name, origin=origin, verified=verified, **content))
    return path


def _fetch(
    graph: PublishedGraph, folder: GraphFolder, mirror: str | None, progress: Progress | None
) -> tuple[Path, str]:
    """The file from the first address that has it; one that has begun to come is not begun elsewhere."""
    failures = []
    for address in addresses_at(graph, mirror):
        path = folder.path / file_name(address)
        try:
            fetch(address, path, f"download {graph.name}", progress, most_bytes=most_bytes(graph))
        except DownloadError as error:
            if has_begun(path):
                raise
            failures.append(error)
        else:
            return path, address
    if len(failures) == 1:
        raise failures[0]
    raise DownloadError(f"{graph.name}: none of its addresses served: {'; '.join(map(str, failures))}")


def most_bytes(graph: PublishedGraph) -> int:
    """How long the file of a graph can be, by its published edges; as long as any, where nobody published them."""
    edges = graph.best("m")
    return DEFAULT_LIMITS.decompressed_bytes if edges is None else SMALL_BYTES + EDGE_BYTES * edges.value

"""Stores: the blocks that memory would hold, from every kind of source; nothing read_trusted, nothing left behind."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import shutil
import signal
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers.commands import answer_of, interrupt, invoke
from helpers.graphs import CLOSED_FORMS, fixture_pairs, fixture_path, random_pairs
from helpers.stores import at_most, change_manifest, in_tiny_pieces, names_in, read_everything, reseal
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.errors import (
    FormatError,
    InputError,
    LimitError,
    MemoryLimitError,
    MissingFileError,
    StorageError,
    UnknownNameError,
    VerificationError,
)
from wedgewise.graph import Graph
from wedgewise.machine import files as storage
from wedgewise.machine import hardware, own_files
from wedgewise.machine.budget import MIN_LIMIT, release_memory
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.stages.limits import Limits
from wedgewise.store import build as store_build
from wedgewise.store import open as store_module
from wedgewise.store import orient as turn
from wedgewise.store import read_pairs as gather
from wedgewise.store import sorted_runs as runs
from wedgewise.store import urls as places
from wedgewise.store import write_blocks
from wedgewise.store import writer as store_writer
from wedgewise.store.build import write_store
from wedgewise.store.manifest import MANIFEST, MAX_MANIFEST_BYTES, MAX_PARTS, MAX_VALUES
from wedgewise.store.open import Store, open_store, private_memory
from wedgewise.store.writer import npy_header
from wedgewise.write.edges import write_edges

examples = settings(deadline=None, derandomize=True, max_examples=25)
MESSY = np.concatenate([random_pairs(60, 400, seed=5), random_pairs(60, 30, seed=6) * 0 + 7])


def assert_holds(store: Store, graph: Graph) -> None:
    """The store has what the graph has: the blocks of its oriented form, its labels, and what cleaning dropped."""
    manifest, oriented = store.manifest, graph.oriented()
    assert (manifest.n, manifest.m, manifest.cleaned) == (graph.n, graph.m, graph.cleaned)
    assert (manifest.wedges, manifest.largest_degree) == (oriented.wedges, int(graph.degrees.max(initial=0)))
    assert store.vertex_of().tolist() == oriented.vertex_of.tolist()
    assert list(store.labels()) == list(graph.labels)
    blocks = blocks_of(oriented, store.partition)
    assert set(manifest.blocks) == set(blocks.blocks)
    for pair, block in blocks.blocks.items():
        found = store.block(*pair)
        assert found.columns == block.columns
        assert found.offsets.tolist() == block.offsets.tolist()
        assert found.heads.tolist() == block.heads.tolist()


@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
@pytest.mark.parametrize("parts", [None, 1, 2, 3, 7])
@pytest.mark.parametrize("name", ["karate", "messy", "jazz"])
def test_a_store_has_the_blocks_of_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, parts: int | None, scheme: str
) -> None:
    if name != "jazz":
        in_tiny_pieces(monkeypatch)
    pairs = MESSY if name == "messy" else fixture_pairs(name)
    store = write_store(pairs, tmp_path / "store", parts=parts, scheme=scheme, threads=2)
    assert store.partition.parts == (parts or 1)
    assert_holds(store, Graph(pairs))
    assert "store.building" not in names_in(tmp_path / "store")


def test_a_store_is_shown_in_a_line(tmp_path: Path) -> None:
    store = ww.partition(fixture_pairs("jazz"), tmp_path / "store", parts=50)
    assert repr(store) == str(store) == f"Store('{tmp_path / 'store'}', n=198, m=2742, parts=50)"


@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_streams_are_stored(tmp_path: Path, stream: generate.EdgeStream) -> None:
    graph = Graph(stream.pairs())
    assert_holds(write_store(stream, tmp_path / "store", parts=at_most(3, graph)), graph)


@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
@pytest.mark.parametrize(
    ("n", "message"),
    [
        (4, "4 vertices can be cut into at most 4 parts, not 100; ask for fewer"),
        (1, "1 vertex can be cut into at most 1 part, not 100; ask for fewer"),
        (0, "0 vertices can be cut into at most 1 part, not 100; ask for fewer"),
    ],
)
def test_more_parts_than_vertices_are_refused(tmp_path: Path, scheme: str, n: int, message: str) -> None:
    """And nothing is left of the store."""
    pairs = np.array([(vertex, vertex) for vertex in range(n)], np.int64).reshape(-1, 2)
    with pytest.raises(InputError, match=f"^{message}$"):
        ww.partition(pairs, tmp_path / "store", parts=100, scheme=scheme)
    assert names_in(tmp_path) == []
    assert_holds(ww.partition(pairs, tmp_path / "store", parts=max(1, n), scheme=scheme), Graph(pairs))


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=60),
    st.sampled_from([1, 1000, 2**28, 2**31 // 12, 2**55]),
    st.integers(1, 5),
    st.sampled_from(["rectilinear", "hashed"]),
)
@examples
def test_any_pairs_and_labels(pairs: list[tuple[int, int]], factor: int, parts: int, scheme: str) -> None:
    import tempfile

    array = np.array(pairs, np.int64).reshape(-1, 2) * factor
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        in_tiny_pieces(patch)
        graph = Graph(array)
        parts = at_most(parts, graph)
        assert_holds(write_store(array, Path(folder) / "store", parts=parts, scheme=scheme, threads=1), graph)


class Source(NamedTuple):
    name: str
    write: Callable[[Path], Any]


def _text(path: Path) -> None:
    path.write_text("# a comment\n" + "".join(f"{u}\t{v} 1.5\n" for u, v in MESSY.tolist()))


def _npy(dtype: str, order: str = "C") -> Callable[[Path], None]:
    return lambda path: np.save(path, np.array(MESSY, dtype, order=order))  # type: ignore[call-overload]


SOURCES = (
    Source("pairs.txt", _text),
    Source(
        "pairs.txt.gz", lambda path: path.write_bytes(gzip.compress("".join(f"{u} {v}\n" for u, v in MESSY).encode()))
    ),
    Source("names.txt", lambda path: path.write_text("".join(f"v{u} v{v}\n" for u, v in MESSY.tolist()))),
    Source("pairs.bel", lambda path: path.write_bytes(MESSY.astype("<i4").tobytes())),
    Source("wide.bel", lambda path: path.write_bytes(MESSY.astype("<i8").tobytes())),
    Source("pairs.bel64", lambda path: path.write_bytes(MESSY.astype("<i8").tobytes())),
    Source("pairs.bel32.gz", lambda path: path.write_bytes(gzip.compress(MESSY.astype("<i4").tobytes()))),
    Source("pairs.npy", _npy("<i8")),
    Source("bytes.npy", _npy("u1")),
    Source("big-endian.npy", _npy(">i4")),
    Source("fortran.npy", _npy("<i4", "F")),
    Source("pairs.mtx", lambda path: write_edges(MESSY, path, vertices=64)),
    Source("pairs.npz", lambda path: write_edges(MESSY, path, vertices=64)),
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_files_are_stored_as_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    in_tiny_pieces(monkeypatch)
    path = tmp_path / source.name
    source.write(path)
    said: list[str] = []
    store = write_store(path, tmp_path / "store", parts=2, say=said.append)
    assert_holds(store, Graph(str(path)))
    assert len(said) == 2
    assert "pairs take up to" in said[0]
    assert said[1].startswith("3 blocks take ")


def test_streams_of_bytes_and_objects_are_stored(tmp_path: Path) -> None:
    text = "".join(f"{u} {v}\n" for u, v in MESSY.tolist()).encode()
    names = "".join(f"v{u} v{v}\n" for u, v in MESSY.tolist()).encode()
    assert_holds(write_store(io.BytesIO(text), tmp_path / "ints"), Graph(io.BytesIO(text)))
    assert_holds(write_store(io.BytesIO(names), tmp_path / "names"), Graph(io.BytesIO(names)))
    people = [("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("ä\u2028ö", "ada")]
    assert_holds(write_store(people, tmp_path / "people"), Graph(people))


def test_labels_of_objects_are_stored_or_refused(tmp_path: Path) -> None:
    import networkx as nx

    graph = nx.Graph([(-5, 7), (7, 2**40), (2**40, -5)])
    assert_holds(write_store(graph, tmp_path / "integers"), Graph(graph))
    assert list(open_store(tmp_path / "integers").labels()) == [-5, 7, 2**40]
    with pytest.raises(InputError, match=r"the label '\\ud800' is no text that can be written; name the vertex"):
        write_store(nx.Graph([("\ud800", "a")]), tmp_path / "halves")
    for odd in (1.5, ("a", 1), True, 2**63):
        with pytest.raises(InputError, match="cannot be stored"):
            write_store(nx.Graph([(odd, 7)]), tmp_path / "objects")
    assert names_in(tmp_path) == ["integers"]


def test_raw_pairs_of_either_width_have_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiny_pieces(monkeypatch)
    star = np.zeros((64, 2), "<i4")
    star[:, 0] = np.arange(64)
    repeating = star.copy()
    repeating[1] = repeating[0]
    repeating[40] = (3, 4)  # beyond the first block, from which 64-bit ids were told
    for pairs in (star, repeating):
        (tmp_path / "pairs.bel").write_bytes(pairs.tobytes())
        with pytest.raises(FormatError, match=r'as 64-bit pairs and as 32-bit pairs .*format="bel32"'):
            write_store(tmp_path / "pairs.bel", tmp_path / "store")
        assert_holds(write_store(tmp_path / "pairs.bel", tmp_path / "store", format="bel32"), Graph(pairs))
        shutil.rmtree(tmp_path / "store")


@pytest.mark.parametrize("size", [-1, 1])
@pytest.mark.parametrize("suffix", ["bel32", "npy", "npy.gz"])
def test_files_of_another_size_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, size: int
) -> None:
    in_tiny_pieces(monkeypatch)
    path = tmp_path / f"pairs.{suffix}"
    write_edges(MESSY, tmp_path / path.name.removesuffix(".gz"))
    raw = (tmp_path / path.name.removesuffix(".gz")).read_bytes()
    raw = raw[:size] if size < 0 else raw + b"\0"
    path.write_bytes(gzip.compress(raw) if suffix.endswith("gz") else raw)
    with pytest.raises(FormatError, match=r"are no whole number of 32-bit pairs|declares [\d,]+ bytes where"):
        write_store(path, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_the_fingerprint_is_of_the_graph_alone(tmp_path: Path) -> None:
    pairs = fixture_pairs("karate")
    stores = [
        write_store(pairs, tmp_path / "a"),
        write_store(pairs[::-1, ::-1], tmp_path / "b", parts=3),
        write_store(np.concatenate([pairs, pairs]), tmp_path / "c", scheme="hashed", parts=2),
    ]
    assert len({store.manifest.fingerprint for store in stores}) == 1
    other = write_store(np.concatenate([pairs, [[0, 99]]]), tmp_path / "d")
    assert other.manifest.fingerprint != stores[0].manifest.fingerprint


@pytest.mark.parametrize("length", [0, 1, 9, 10, 99_999, 10**12])
@pytest.mark.parametrize("dtype", ["<u4", "<u8"])
def test_headers_are_those_of_numpy(dtype: str, length: int) -> None:
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(written, {"descr": dtype, "fortran_order": False, "shape": (length,)})
    assert npy_header(np.dtype(dtype), length) == written.getvalue()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write_store(fixture_pairs("karate") * 3, tmp_path / "store", parts=3)
    return tmp_path / "store"


def _set(*keys: Any) -> Callable[[dict[str, Any]], None]:
    """A change of the field that the first keys lead to."""
    *path, value = keys

    def change(whole: dict[str, Any]) -> None:
        inner: Any = whole
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "path outside": _set("blocks", 0, "heads", "file", "../other.npy"),
    "absolute path": _set("blocks", 0, "heads", "file", "/etc/passwd"),
    "hidden file": _set("blocks", 0, "heads", "file", ".hidden.npy"),
    "file named twice": _set("blocks", 0, "heads", "file", "block-0-1.heads.npy"),
    "file of no text": _set("blocks", 0, "heads", "file", ["a"]),
    "longer than it is": _set("blocks", 0, "arcs", 2**31),
    "negative arcs": _set("blocks", 0, "arcs", -1),
    "arcs of true": _set("blocks", 0, "arcs", True),
    "arcs of 2^32": _set("blocks", 0, "arcs", 2**32),
    "fewer rows": _set("blocks", 0, "rows", 1),
    "more columns": _set("blocks", 0, "columns", 10**6),
    "other place": _set("blocks", 0, "column", 1),
    "other type": _set("blocks", 0, "heads", "dtype", "<u8"),
    "object type": _set("blocks", 0, "heads", "dtype", "|O"),
    "no checksum": _set("blocks", 0, "heads", "sha256", ""),
    "fewer blocks": lambda whole: whole["blocks"].pop(),
    "blocks of no list": _set("blocks", {}),
    "block of no object": _set("blocks", 0, 5),
    "version of the future": _set("format_version", 2),
    "no version": lambda whole: whole.pop("format_version"),
    "unknown field": _set("more", 1),
    "missing field": lambda whole: whole.pop("wedges"),
    "n of text": _set("n", "34"),
    "n too large": _set("n", 2**31),
    "m wrong": _set("m", 77),
    "cuts descend": _set("partition", "cuts", [0, 20, 10, 34]),
    "cuts of text": _set("partition", "cuts", ["0", "34"]),
    "cuts of lists": _set("partition", "cuts", [[0], [34]]),
    "too many parts": _set("partition", {"kind": "hashed", "n": 34, "parts": 257}),
    "no parts": _set("partition", {"kind": "hashed", "n": 34, "parts": 0}),
    "parts of text": _set("partition", {"kind": "hashed", "n": 34, "parts": "3"}),
    "no such partition": _set("partition", {"kind": "other"}),
    "other n of ids": _set("partition", "cuts", [0, 10, 20, 35]),
    "other order": _set("order", "core"),
    "labels without a file": _set("labels", None),
    "labels of another kind": _set("label_kind", "dreams"),
    "cleaned of text": _set("cleaned", "loops", "none"),
    "cleaned with more": _set("cleaned", "more", 1),
    "notes of text": _set("cleaned", "notes", "a note"),
    "a note that is long": _set("cleaned", "notes", ["a" * 10_000]),
    "a note of half a character": _set("cleaned", "notes", ["\ud800"]),
    "many columns": _set("cleaned", "columns", ["a"] * 10_001),
    "a column below 0": _set("cleaned", "ignored_columns", [-1]),
    "a column of true": _set("cleaned", "ignored_columns", [True]),
    "fingerprint of another form": _set("fingerprint", "abc"),
    "parent as a file": _set("vertices", "file", ".."),
    "file of a folder": _set("vertices", "file", "inner/vertices.npy"),
    "file with a drive": _set("vertices", "file", "c:vertices.npy"),
    "file with an end": _set("vertices", "file", "vertices.npy\n"),
    "file with a zero": _set("vertices", "file", "vertices.npy\0"),
    "labels in a block": _set("labels", "file", "block-0-0.heads.npy"),
    "vertices in the labels": _set("vertices", "file", "labels.npy"),
    "vertices in the manifest": _set("vertices", "file", "manifest.json"),
    "labels of another type": _set("labels", "dtype", "<f8"),
    "labels of no length": _set("labels", "length", 0),
    "more labels": _set("labels", "length", 35),
    "more vertices": _set("vertices", "length", 2**40),
    "more arcs than pairs": _set("blocks", 0, "arcs", 34 * 33 // 2 + 1),
    "a degree beyond n": _set("largest_degree", 34),
    "too small a degree": _set("largest_degree", 4),
    "more wedges than any graph": _set("wedges", 78 * 6),
    "wedges beyond 64 bits": _set("wedges", 2**70),
    "more pairs than were dropped": _set("cleaned", "pairs", 79),
    "other edges than there are": _set("cleaned", "edges", 77),
    "version with an escape": _set("version", "0.1\x1b[2J"),
    "version of half a character": _set("version", "\ud800"),
    "a digit too many": _set("n", 10**30),
    "n of a float": _set("n", 34.0),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_manifest_that_lies_is_refused(store: Path, lie: str) -> None:
    change_manifest(store, LIES[lie])
    with pytest.raises(FormatError, match=r"manifest\.json: .*partition the graph again"):
        open_store(store)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"format_version": 1}', b"null"])
def test_a_manifest_of_another_form_is_refused(store: Path, text: bytes) -> None:
    (store / MANIFEST).write_bytes(text)
    with pytest.raises(FormatError, match="partition the graph again"):
        open_store(store)


def test_a_manifest_of_many_values_is_refused_before_it_is_parsed(store: Path) -> None:
    """Two million empty lists take six megabytes as text, and twenty times that in memory."""
    (store / MANIFEST).write_bytes(b"[" + b"[]," * 2_000_000 + b"[]]")
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=r"manifest\.json: holds [\d,]+ values or more"):
            open_store(store)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_the_most_parts_have_a_manifest(store: Path) -> None:
    """Blocks of a store have as many values as those of any other."""
    text = (store / MANIFEST).read_bytes()
    values = sum(map(text.count, (b",", b"[", b"{")))
    assert MAX_PARTS**2 * values // len(open_store(store).manifest.blocks) < MAX_VALUES
    assert MAX_PARTS**2 * len(text) // len(open_store(store).manifest.blocks) < MAX_MANIFEST_BYTES


def test_a_huge_manifest_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wedgewise.store import manifest

    monkeypatch.setattr(manifest, "MAX_MANIFEST_BYTES", 100)
    with pytest.raises(FormatError, match="over 100 bytes"):
        open_store(store)


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-2] ^= 4
    path.write_bytes(raw)


def _of_another_graph(path: Path) -> None:
    other = np.load(path)
    other[0] ^= 1
    np.save(path, other)


def _behind_a_link(path: Path) -> None:
    outside = path.parent.parent / "outside.npy"
    shutil.move(path, outside)
    path.symlink_to(outside)


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "truncated": (lambda path: os.truncate(path, path.stat().st_size - 1), "bytes where the manifest says"),
    "extended": (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "bytes where the manifest says"),
    "cut in its header": (lambda path: os.truncate(path, 20), "too long or cut off"),
    "empty": (lambda path: os.truncate(path, 0), "no .npy header"),
    "flipped": (_flip, "SHA-256"),
    "of another graph": (_of_another_graph, "SHA-256"),
    "of another type": (lambda path: np.save(path, np.load(path).astype("<i4")), "declares <i4"),
    "of another shape": (lambda path: np.save(path, np.load(path).reshape(1, -1)), "declares <u4"),
    "a pickle": (lambda path: np.save(path, np.array([{}]), allow_pickle=True), "pickled"),
    "swapped": (lambda path: shutil.copy(path.with_name("block-0-1.offsets.npy"), path), "SHA-256|declares"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_block_is_refused(store: Path, damage: str) -> None:
    change, message = DAMAGES[damage]
    path = store / ("block-0-0.offsets.npy" if damage == "swapped" else "block-0-2.heads.npy")
    change(path)
    with pytest.raises(FormatError, match=message) as caught:
        read_everything(open_store(store))
    assert str(path) in str(caught.value)
    assert "partition the graph again" in str(caught.value)


@pytest.mark.parametrize("change", [Path.unlink, _behind_a_link], ids=["missing", "link"])
def test_a_block_that_is_not_there_is_named(store: Path, change: Callable[[Path], None]) -> None:
    change(store / "block-0-2.heads.npy")
    with pytest.raises(MissingFileError, match=r"block-0-2\.heads\.npy: cannot be opened .*; partition"):
        open_store(store)


def test_a_pipe_is_no_block(store: Path) -> None:
    (store / "block-0-2.heads.npy").unlink()
    os.mkfifo(store / "block-0-2.heads.npy")
    with pytest.raises(FormatError, match="not a regular file"):
        open_store(store)


def test_a_block_that_ends_while_it_is_read_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_store(store)
    record = opened.manifest.blocks[0, 0].heads
    really = store_module._read_into

    def ended(file: Any, part: memoryview) -> int:
        file.seek(0, os.SEEK_END)
        return really(file, part)

    monkeypatch.setattr(store_module, "_read_into", ended)
    with pytest.raises(FormatError, match=rf"{record.file}: became shorter while it was read"):
        opened.array(record)


def test_a_file_that_cannot_be_looked_at_is_closed(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = (store / MANIFEST).open("rb")
    lost = SimpleNamespace(fileno=lambda: 1 << 20, close=file.close)
    monkeypatch.setattr(own_files, "_opened", lambda _path: lost)
    with pytest.raises(OSError, match="Bad file descriptor"):
        own_files.open_regular(store / MANIFEST)
    assert file.closed


def test_errors_of_ours_keep_their_names() -> None:
    def fail(error: Exception) -> None:
        with places._named("block", "bring it back"):
            raise error

    with pytest.raises(StorageError, match=r"^elsewhere: is full$"):
        fail(StorageError("elsewhere: is full"))
    with pytest.raises(MissingFileError, match=r"^block: cannot be read \(OSError\); bring it back$"):
        fail(OSError())


def _first_row_with(offsets: NDArray[Any], arcs: int) -> int:
    return int(offsets[np.flatnonzero(np.diff(offsets) >= arcs)[0]])


def _beyond(offsets: NDArray[Any], heads: NDArray[Any]) -> None:
    heads[-1] = 2**32 - 1


def _descending(offsets: NDArray[Any], heads: NDArray[Any]) -> None:
    at = _first_row_with(offsets, 2)
    heads[at], heads[at + 1] = heads[at + 1], heads[at]


def _repeated(offsets: NDArray[Any], heads: NDArray[Any]) -> None:
    at = _first_row_with(offsets, 2)
    heads[at + 1] = heads[at]


def _beginning_late(offsets: NDArray[Any], heads: NDArray[Any]) -> None:
    offsets[0] = 1


def _ending_early(offsets: NDArray[Any], heads: NDArray[Any]) -> None:
    offsets[-1] -= 1


def _going_back(offsets: NDArray[Any], heads: NDArray[Any]) -> None:
    offsets[1] = 2**32 - 1


@pytest.mark.parametrize("lie", [_beyond, _descending, _repeated, _beginning_late, _ending_early, _going_back])
def test_a_block_that_lies_consistently_is_refused(store: Path, lie: Callable[..., None]) -> None:
    number = 1
    offsets, heads = (np.load(store / f"block-0-1.{which}.npy") for which in ("offsets", "heads"))
    lie(offsets, heads)
    reseal(store, number, "offsets", offsets)
    reseal(store, number, "heads", heads)
    with pytest.raises(FormatError, match=r"block-0-1\.heads\.npy: has"):
        read_everything(open_store(store))


def test_labels_that_lie_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    write_store([("a", "b"), ("b", "c")], folder)
    original = (folder / "labels.jsonl").read_bytes()
    for text, message in (
        (b"'a'........", "not a JSON string"),
        (b"1         ", "does not hold"),
        (b'"a"\n"b"      ', "does not hold"),
        (b'"a"\n"b"\n"\\ud800"', "is not text"),
    ):
        import hashlib

        (folder / "labels.jsonl").write_bytes(text)
        with pytest.raises(FormatError, match="bytes where the manifest says"):
            open_store(folder)
        seal = {"length": len(text), "sha256": hashlib.sha256(text).hexdigest()}
        change_manifest(folder, lambda whole, seal=seal: whole["labels"].update(seal))  # type: ignore[misc]
        with pytest.raises(FormatError, match=message):
            open_store(folder).labels()
    assert original == b'"a"\n"b"\n"c"\n'
    (folder / "labels.jsonl").write_bytes(original[:8])
    change_manifest(folder, lambda whole: whole["labels"].update(length=8))
    with pytest.raises(FormatError, match="has 8 bytes of labels for 3 vertices"):
        open_store(folder)


def test_vertices_that_lie_are_refused(store: Path) -> None:
    import hashlib

    vertices = np.load(store / "vertices.npy")
    vertices[3] = 34
    np.save(store / "vertices.npy", vertices)
    seal = hashlib.sha256((store / "vertices.npy").read_bytes()).hexdigest()
    change_manifest(store, _set("vertices", "sha256", seal))
    with pytest.raises(FormatError, match="names a vertex beyond"):
        open_store(store).vertex_of()


def test_vertices_are_named_once_each(store: Path) -> None:
    """Where they are used: an answer would have numbers in it that nobody found."""
    import hashlib

    vertices = np.load(store / "vertices.npy")
    lost, vertices[3] = vertices[3], vertices[4]
    np.save(store / "vertices.npy", vertices)
    seal = hashlib.sha256((store / "vertices.npy").read_bytes()).hexdigest()
    change_manifest(store, _set("vertices", "sha256", seal))
    for question in ("triangles", "edge_support"):
        with pytest.raises(FormatError, match=rf"vertices\.npy: does not name vertex {lost:,}; partition"):
            ww.run(question, store, resume=False)
    assert ww.count(store) == 45


def test_a_linked_manifest_is_no_manifest(store: Path, tmp_path: Path) -> None:
    shutil.move(store / MANIFEST, tmp_path / "elsewhere.json")
    (store / MANIFEST).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(MissingFileError, match=r"manifest\.json: cannot be opened"):
        open_store(store)


def test_sizes_that_only_exist_as_holes_are_refused_before_memory_is_taken(store: Path) -> None:
    """A manifest and a sparse file that agree on 8 GiB: the limit is what says no."""
    large = 2**31 - 1

    def change(whole: dict[str, Any]) -> None:
        whole["n"], whole["label_kind"], whole["labels"] = large, "numbers", None
        whole["partition"]["cuts"][-1] = large
        whole["vertices"]["length"] = large
        for record in whole["blocks"]:
            for side, name in (("row", "rows"), ("column", "columns")):
                if record[side] == 2:
                    record[name] = large - whole["partition"]["cuts"][2]
            record["offsets"]["length"] = record["rows"] + 1

    change_manifest(store, change)
    for record in json.loads((store / MANIFEST).read_text())["blocks"]:
        _grow(store / record["offsets"]["file"], record["rows"] + 1)
    _grow(store / "vertices.npy", large)
    found = open_store(store)
    assert found.manifest.n == large
    release_memory()  # what the tests before have left counts as free
    little = max(MIN_LIMIT, hardware.resident_bytes() + (1 << 27))  # a task would take twice that
    for question in ("count", "triangles", "edge_support"):
        with pytest.raises(MemoryLimitError, match="are left"):
            ww.run(question, store, memory_limit=little)


def _grow(path: Path, length: int) -> None:
    """A file of so many numbers, of which the disk has none."""
    path.write_bytes(npy_header(np.dtype("<u4"), length))
    os.truncate(path, len(npy_header(np.dtype("<u4"), length)) + 4 * length)


def test_a_folder_without_a_manifest_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"is not a store: it has no manifest\.json"):
        open_store(tmp_path)


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    pairs = fixture_pairs("karate")
    with pytest.raises(UnknownNameError, match="no scheme named 'diagonal'"):
        write_store(pairs, tmp_path / "store", scheme="diagonal")
    for parts in (0, 257):
        with pytest.raises(InputError, match="1 … 256 parts"):
            write_store(pairs, tmp_path / "store", parts=parts)
    with pytest.raises(InputError, match="too few for the interpreter"):
        write_store(pairs, tmp_path / "store", memory_limit=255_999_999)
    negative = tmp_path / "negative.bel32"
    negative.write_bytes(np.array([[0, 1], [1, -3]], "<i4").tobytes())
    with pytest.raises(InputError, match=r"negative\.bel32: pair 1 holds a negative id: '-3'; ids are non-negative"):
        write_store(negative, tmp_path / "store")
    with pytest.raises(LimitError, match="pairs"):
        write_store(pairs, tmp_path / "store", limits=Limits(pairs=50))
    with pytest.raises(StorageError, match="could not be made"):
        write_store(pairs, tmp_path / "no" / "store")
    assert names_in(tmp_path) == ["negative.bel32"]


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    pairs, folder = fixture_pairs("karate"), tmp_path / "mine"
    folder.mkdir()
    (folder / "labels.npy").write_bytes(b"precious")
    with pytest.raises(InputError, match=r"is not empty \('labels.npy' is there\)"):
        write_store(pairs, folder)
    assert (folder / "labels.npy").read_bytes() == b"precious"
    (folder / "labels.npy").unlink()
    write_store(pairs, folder)
    before = names_in(folder)
    with pytest.raises(InputError, match="holds a store already"):
        write_store(pairs, folder)
    assert names_in(folder) == before


def test_what_a_kill_left_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    for name in ("store.building", "block-0-7.heads.npy", ".block-0-0.heads.npy.0123456789ab.tmp", "vertices.npy"):
        (folder / name).write_bytes(b"half")
    store = write_store(fixture_pairs("karate"), folder, parts=1)
    assert_holds(store, Graph(fixture_pairs("karate")))
    assert names_in(folder) == sorted([MANIFEST, *(record.file for record in store.files())])


@pytest.mark.parametrize("left", [["store.lock"], [".store.building.0123456789ab.tmp"], []])
def test_what_a_kill_leaves_first_is_replaced(tmp_path: Path, left: list[str]) -> None:
    """Before there is anything that says that a store was being made."""
    folder = tmp_path / "store"
    folder.mkdir()
    for name in left:
        (folder / name).write_bytes(b"")
    store = write_store(fixture_pairs("karate"), folder)
    assert names_in(folder) == sorted([MANIFEST, *(record.file for record in store.files())])


def test_too_little_disk_is_said_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int

    pairs = fixture_pairs("karate")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(20 * len(pairs) - 1))
    with pytest.raises(StorageError, match=r"78 pairs may take 1,560 bytes of disk and 1,559 are free"):
        write_store(pairs, tmp_path / "store")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10))
    with pytest.raises(StorageError, match=r"78 pairs may take 1,560 bytes of disk and 634 are free"):
        write_store(fixture_path("karate"), tmp_path / "store")
    assert names_in(tmp_path) == []


def test_too_many_vertices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_build, "available_after_loading", lambda *_: 100 << 20)
    with pytest.raises(MemoryLimitError, match=r"4,000,001 vertices take [\d,]+ bytes and 104,857,600 are left"):
        write_store(generate.star(4_000_000), tmp_path / "store")
    assert names_in(tmp_path) == []


def test_numbers_that_no_id_can_be_are_refused_where_others_write_them_meanwhile(tmp_path: Path) -> None:
    pairs = np.zeros((gather.PIECE_PAIRS + 10, 2), np.int64)

    def overwrite(stage: str, _done: int, _total: int) -> None:
        if stage == "read":  # of the first piece: the others are looked at when it is their turn
            pairs[gather.PIECE_PAIRS + 3, 1] = -5

    said = r"<array>: pair 131075 holds -5; ids go from 0 to 2\^63 − 1"
    with pytest.raises(InputError, match=said):
        write_store(pairs, tmp_path / "store", progress=overwrite)
    assert names_in(tmp_path) == []


def test_more_labels_than_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "INDEXED_KEYS", 4)
    monkeypatch.setattr(
        gather.PairCollector, "_available_bytes", property(lambda _: 8192, lambda *_: None), raising=False
    )
    with pytest.raises(MemoryLimitError, match=r"over \d+ distinct labels take [\d,]+ bytes; raise the memory limit"):
        write_store(np.arange(400).reshape(-1, 2) << 40, tmp_path / "store")


@pytest.mark.parametrize("kind", ["alike", "behind each other", "of few values", "one within all"])
def test_every_round_of_a_merge_has_about_as_many_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """However unlike the runs are: a graph's file may be sorted, or not."""
    monkeypatch.setattr(runs, "INDEXED_KEYS", 8)
    monkeypatch.setattr(runs, "ROUND_KEYS", 4096)
    random, count, length = np.random.default_rng(3), 32, 1024
    keys = {
        "alike": random.integers(0, 2**63, (count, length), np.uint64),
        "behind each other": np.arange(count * length, dtype=np.uint64).reshape(count, length),
        "of few values": np.tile(np.arange(length, dtype=np.uint64), (count, 1)),
        "one within all": np.vstack((random.integers(0, 2**63, (count - 1, length), np.uint64), np.arange(length))),
    }[kind].astype(np.uint64)
    taken, told = list[Any](), list[int]()
    with storage.scratch_file(tmp_path) as file:
        merged = runs.Runs(file)
        for some in keys:
            merged.add(np.sort(some))
        merged.merge(lambda some: taken.append(some.copy()), told.append, 1 << 20, 2)
    assert np.array_equal(np.concatenate(taken), np.sort(keys.ravel()))
    assert sum(told) == keys.size
    assert max(told) <= 4096
    assert len(told) <= 2 * keys.size // (4096 - 2 * 8 * count) + 2


def test_runs_that_cannot_be_merged_or_read_are_refused(tmp_path: Path) -> None:
    with storage.scratch_file(tmp_path) as file:
        sorted_keys = runs.Runs(file)
        sorted_keys.add(np.arange(5, dtype=np.uint64))
        with pytest.raises(MemoryLimitError, match=r"merging 1 runs takes [\d,]+ bytes; raise the memory limit"):
            sorted_keys.merge(print, print, 1, 1)
        file.truncate(30)
        with pytest.raises(StorageError, match="a temporary file became shorter while it was read; check the disk"):
            sorted_keys.stretch(0, 5)


def test_parts_that_never_fit_and_blocks_that_are_too_large_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn.Wanted, "keeps_to_it", lambda *_: False)
    for scheme in ("rectilinear", "hashed"):
        with pytest.raises(MemoryLimitError, match=rf"not even {MAX_PARTS} parts let the tasks of a count keep to"):
            write_store(MESSY, tmp_path / "store", scheme=scheme)
    monkeypatch.setattr(write_blocks, "WIDE_ARCS", 5)
    with pytest.raises(InputError, match=r"a block has \d+ arcs, and a store's have below 5; ask for more parts"):
        write_store(MESSY, tmp_path / "store", parts=1)
    assert names_in(tmp_path) == []


def test_an_array_of_another_length_is_never_recorded(tmp_path: Path) -> None:
    with store_writer.array_writer(tmp_path, "x.npy", "<u4", 3) as writer:
        writer.add(np.arange(2))
        with pytest.raises(VerificationError, match=r"x\.npy: 2 of 3 numbers: please report this"):
            writer.record()


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    store = write_store(MESSY, tmp_path / "store", progress=lambda *news: told.append(news))
    assert ("read", len(MESSY), len(MESSY)) in told
    assert told[-1][1:] == (store.manifest.m, store.manifest.m)


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_whatever_fails_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    """Every call of that kind fails in turn, until none is left."""
    from wedgewise.store.sorted_runs import Runs

    in_tiny_pieces(monkeypatch)
    raised = StorageError if isinstance(error, OSError) else KeyboardInterrupt
    owner, name = (Runs, "add") if call == "write" else (os, call)
    really: Any = getattr(owner, name)
    left = 0

    def fail(*arguments: Any, **others: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise error
        return really(*arguments, **others)

    monkeypatch.setattr(owner, name, fail)
    for number in range(0, 1000, 1 if call != "write" else 9):
        left = number
        try:
            write_store(MESSY, tmp_path / "store", parts=2, threads=1)
        except raised:
            assert names_in(tmp_path) == []
        else:
            assert number > 2
            break


@pytest.mark.compiled
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_partition_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    write_edges(generate.kronecker(17, seed=2).pairs(), tmp_path / "graph.bel32")
    first = f"{2**21:,} pairs take up to {20 * 2**21:,} bytes of disk while the store is made\n"
    code, rest, seconds = interrupt(tmp_path, first, number, "partition", "graph.bel32", "store")
    assert code == (130 if number == signal.SIGINT else 143), rest
    assert names_in(tmp_path) == ["graph.bel32"]
    assert seconds < 10


def test_partition_on_the_command_line(tmp_path: Path) -> None:
    karate = str(fixture_path("karate"))
    roomy = str(hardware.resident_bytes() + 2**28)
    record = answer_of("partition", karate, str(tmp_path / "store"), "--parts", "3", "--memory", roomy)
    assert (record["n"], record["m"], record["parts"], record["blocks"]) == (34, 78, 3, 6)
    assert record["scheme"] == "rectilinear"
    again = invoke("partition", karate, str(tmp_path / "store"))
    assert again.exit_code == 1
    hashed = invoke("partition", karate, str(tmp_path / "hashed"), "--scheme", "hashed", "--parts", "2")
    assert hashed.exit_code == 0
    assert "2, hashed" in hashed.stdout
    assert invoke("partition", karate, str(tmp_path / "no"), "--memory", "much").exit_code == 2


def test_memory_that_the_system_does_not_have_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError

    monkeypatch.setattr("mmap.mmap", fail)
    with pytest.raises(MemoryError, match="the system has no 8,000 bytes"):
        private_memory(1000, np.dtype(np.uint64))

"""What a store says of itself: `Manifest`, its JSON, and the checks before anything of it is believed.

    store/
      manifest.json                     written last: a folder without it is not a store
      block-I-J.offsets.npy             uint32[rows + 1]   ┐ the block of row part I and column part J,
      block-I-J.heads.npy               uint32[arcs]       ┘ one pair of files each
      vertices.npy                      uint32[n], the vertex of every id
      labels.npy or labels.jsonl        integers, or a JSON string a line; none where vertices are 0 … n − 1

Every file is named with its length and its SHA-256: a checksum of 32 bits finds damage, but not a block of another
graph or another block that somebody put there, which has to be found as well. Of the standard library's strong hashes
it is the fastest on processors with instructions for it, and about as fast as a disk on the others.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isqrt
from typing import Any, BinaryIO

from wedgewise.algorithms._contract import MAX_ARCS
from wedgewise.errors import FormatError, InputError
from wedgewise.prepare.radix import MAX_ID
from wedgewise.stages import CleanReport
from wedgewise.stages.blocks import WIDE_ARCS, Partition, partition_from
from wedgewise.stages.labels import utf8
from wedgewise.stages.tasks import Pair

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
MAX_PARTS = 256  # a row of blocks is written at once, two files each
MAX_MANIFEST_BYTES = 1 << 26
MAX_VALUES = 30 * MAX_PARTS**2  # of its JSON: a block has 21
URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE | re.ASCII)
PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}", re.ASCII)
SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
VERSION = re.compile(r"[0-9a-zA-Z.+-]{1,99}", re.ASCII)
LABEL_KINDS = {"numbers": (), "integers": ("<u4", "<u8", "<i4", "<i8"), "text": ("text",)}
MIN_LABEL_BYTES = len('""\n')
READING_FIELDS = ("columns", "ignored_columns", "notes")  # of the report; stores of earlier versions have none
MAX_LETTERS, MAX_LISTED = 1000, 10_000
AGAIN = "partition the graph again"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file of the store: how many numbers of which type (or bytes of "text"), and their SHA-256."""

    file: str
    dtype: str
    length: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A block of the store."""

    row: int
    column: int
    rows: int
    columns: int
    arcs: int
    offsets: FileRecord
    heads: FileRecord


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about a store but its arcs.

    Attributes
    ----------
    fingerprint : SHA-256 of the simple graph; see `wedgewise.store.writer.Fingerprint`
    n, m : vertices and edges
    partition : how ids are divided
    blocks : by row part and column part
    order : which way arcs go, and what ids are ranks of
    wedges, largest_degree : of that order, and of the graph
    cleaned : what cleaning dropped
    label_kind, labels : "numbers" without a file, "integers" or "text"
    vertices : the vertex of every id
    version : of the program that wrote it
    """

    fingerprint: str
    n: int
    m: int
    partition: Partition
    blocks: Mapping[Pair, BlockRecord]
    order: str
    wedges: int
    largest_degree: int
    cleaned: CleanReport
    label_kind: str
    labels: FileRecord | None
    vertices: FileRecord
    version: str

    @property
    def files(self) -> list[FileRecord]:
        """Every file but the manifest itself."""
        of_blocks = [record for block in self.blocks.values() for record in (block.offsets, block.heads)]
        return [self.vertices, *([] if self.labels is None else [self.labels]), *of_blocks]

    def to_json(self) -> str:
        """The manifest as text."""
        whole = {
            "format_version": FORMAT_VERSION,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "n": self.n,
            "m": self.m,
            "order": self.order,
            "wedges": self.wedges,
            "largest_degree": self.largest_degree,
            "cleaned": _cleaned_object(self.cleaned),
            "label_kind": self.label_kind,
            "labels": None if self.labels is None else _fields_of(self.labels),
            "vertices": _fields_of(self.vertices),
            "partition": self.partition.to_dict(),
            "blocks": [_fields_of(record) for record in self.blocks.values()],
        }
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _fields_of(record: FileRecord | BlockRecord) -> dict[str, Any]:
    """The fields of a record and of those in it; a store has tens of thousands, which `asdict` would copy deeply."""
    values = ((name, getattr(record, name)) for name in record.__slots__)
    return {name: _fields_of(value) if isinstance(value, FileRecord) else value for name, value in values}


def _cleaned_object(cleaned: CleanReport) -> dict[str, Any]:
    """The report with its lists of columns and notes, whose texts are shortened; those without any are left out."""
    whole = asdict(cleaned)
    for name in READING_FIELDS:
        listed = whole.pop(name)
        if listed:
            whole[name] = [item[:MAX_LETTERS] if isinstance(item, str) else item for item in listed[:MAX_LISTED]]
    return whole


def is_url(source: Any) -> bool:
    """Whether this is a URL, not a path."""
    return isinstance(source, str) and URL.match(source) is not None


def is_store(source: Any) -> bool:
    """Whether this is an open store, the path of a folder with a manifest, or a URL, where only stores are read."""
    if isinstance(source, (str, os.PathLike)):
        return is_url(source) or os.path.isfile(os.path.join(source, MANIFEST))
    return isinstance(getattr(source, "manifest", None), Manifest)


def pairs_of(partition: Partition) -> list[Pair]:
    """The blocks that a partition has, row by row."""
    parts = range(partition.parts)
    return [(i, j) for i in parts for j in parts if j >= i or not partition.is_ordered]


def read_manifest(file: BinaryIO, size: int, path: str) -> Manifest:
    """The manifest that a file of so many bytes holds, every field checked; the path is for messages."""
    if size > MAX_MANIFEST_BYTES:
        raise FormatError(f"over {MAX_MANIFEST_BYTES:,} bytes", path=path, remedy=AGAIN)
    text = file.read(size)
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > MAX_VALUES:  # each of them takes more as an object than as text
        raise FormatError(f"holds {values:,} values or more, and a store's has fewer", path=path, remedy=AGAIN)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON ({error})", path=path, remedy=AGAIN) from error
    return _Checked(path, whole, "the manifest").manifest()


def _is_short(item: Any) -> bool:
    if isinstance(item, str):
        return len(item) <= MAX_LETTERS and utf8(item) is not None
    return type(item) is int and 0 <= item <= MAX_ARCS


class _Checked:
    """An object of the manifest whose fields are checked as they are taken."""

    def __init__(self, path: str, value: Any, what: str) -> None:
        self.path = path
        self.what = what
        if not isinstance(value, dict):
            raise self.wrong("is not an object")
        self.value: dict[str, Any] = value

    def wrong(self, reason: str) -> FormatError:
        return FormatError(f"{self.what} {reason}", path=self.path, remedy=AGAIN)

    def names(self, *names: str) -> None:
        """Exactly these fields are there."""
        if set(self.value) != set(names):
            odd = sorted(set(self.value) ^ set(names))
            raise self.wrong(f"lacks or should not have {', '.join(map(repr, odd[:5]))}")

    def integer(self, name: str, most: int) -> int:
        """A field from 0 to `most`."""
        value = self.value[name]
        if type(value) is not int or not 0 <= value <= most:
            raise self.wrong(f"has {name} {value!r}, which is not an integer from 0 to {most:,}")
        return value

    def text(self, name: str, allowed: re.Pattern[str] | None = None) -> str:
        """A field of a short text."""
        value = self.value[name]
        if not isinstance(value, str) or len(value) > 200 or (allowed is not None and not allowed.fullmatch(value)):
            raise self.wrong(f"has {name} {str(value)[:80]!r}, which is not of the form that is written")
        return value

    def listed(self, name: str) -> tuple[Any, ...]:
        """A field of short texts and numbers."""
        value = self.value[name]
        is_plain = isinstance(value, list) and len(value) <= MAX_LISTED
        if not is_plain or not all(_is_short(item) for item in value):
            raise self.wrong(f"has {name} that are not a list of short texts and numbers")
        return tuple(value)

    def exactly(self, name: str, due: int) -> int:
        """A field that follows from others."""
        if self.integer(name, MAX_ARCS) != due:
            raise self.wrong(f"has {name} {self.value[name]:,} where the rest says {due:,}")
        return due

    def inner(self, name: str, what: str) -> _Checked:
        return _Checked(self.path, self.value[name], what)

    def file(self, name: str, dtypes: tuple[str, ...], length: int | None) -> FileRecord:
        """A field that names a file of the folder itself, of a known length (None for text)."""
        inner = self.inner(name, f"{self.what}: {name}")
        inner.names(*(item.name for item in fields(FileRecord)))
        dtype = inner.text("dtype")
        if dtype not in dtypes:
            raise inner.wrong(f"has type {dtype!r} where {' or '.join(dtypes)} is due")
        size = inner.integer("length", MAX_ARCS) if length is None else inner.exactly("length", length)
        return FileRecord(inner.text("file", PLAIN_NAME), dtype, size, inner.text("sha256", SHA256))

    def manifest(self) -> Manifest:
        if self.value.get("format_version") != FORMAT_VERSION:
            raise self.wrong(f"has format_version {self.value.get('format_version')!r}, not {FORMAT_VERSION}")
        self.names("format_version", *(item.name for item in fields(Manifest)))
        n, m = self.integer("n", MAX_ID), self.integer("m", MAX_ARCS)
        partition = self._partition(n)
        kind = self.text("label_kind")
        if kind not in LABEL_KINDS or (kind == "numbers") != (self.value["labels"] is None):
            raise self.wrong(f"has labels of kind {kind!r} with the file {str(self.value['labels'])[:80]}")
        labels = None
        if kind != "numbers":
            labels = self.file("labels", LABEL_KINDS[kind], n if kind == "integers" else None)
        found = Manifest(
            fingerprint=self.text("fingerprint", SHA256),
            n=n,
            m=m,
            partition=partition,
            blocks=self._blocks(partition, m),
            order=self.text("order", re.compile("degree")),
            wedges=self.integer("wedges", MAX_ARCS * MAX_ID),
            largest_degree=self.integer("largest_degree", MAX_ID),
            cleaned=self._cleaned(m),
            label_kind=kind,
            labels=labels,
            vertices=self.file("vertices", ("<u4",), n),
            version=self.text("version", VERSION),
        )
        self._check_together(found)
        return found

    def _check_together(self, found: Manifest) -> None:
        """Every file has a name of its own, and the numbers are those that some graph has."""
        if len({MANIFEST, *(record.file for record in found.files)}) != len(found.files) + 1:
            raise self.wrong("gives two files one name")
        n, m, largest, wedges = found.n, found.m, found.largest_degree, found.wedges
        longest_row = isqrt(2 * m)  # in degree order: whoever has d arcs has d neighbours of degree d or more
        if largest > min(m, max(0, n - 1)) or 2 * m > n * largest or 2 * wedges > m * max(0, longest_row - 1):
            raise self.wrong(
                f"has {n:,} vertices, {m:,} edges, a largest degree of {largest:,} and {wedges:,} wedges, which no "
                "graph has"
            )
        if found.labels is not None and found.label_kind == "text" and found.labels.length < MIN_LABEL_BYTES * n:
            raise self.wrong(f"has {found.labels.length:,} bytes of labels for {n:,} vertices")

    def _partition(self, n: int) -> Partition:
        inner = self.inner("partition", "the partition")
        numbers = inner.value.get("cuts", [])
        plain = isinstance(numbers, list) and all(type(cut) is int and 0 <= cut <= MAX_ID for cut in numbers)
        if not plain or any(type(inner.value.get(name, 0)) is not int for name in ("n", "parts")):
            raise inner.wrong("does not consist of integers")
        try:
            partition = partition_from(inner.value)
        except InputError as error:
            raise inner.wrong(f"cannot be used ({error})") from error
        if partition.n != n or partition.parts > MAX_PARTS:
            raise inner.wrong(f"divides {partition.n:,} ids of {n:,} into {partition.parts:,} parts")
        return partition

    def _cleaned(self, m: int) -> CleanReport:
        inner = self.inner("cleaned", "the report on cleaning")
        lists = {name: inner.listed(name) for name in READING_FIELDS if name in inner.value}
        numbers = [item.name for item in fields(CleanReport) if item.name not in READING_FIELDS]
        inner.names(*numbers, *lists)
        given: dict[str, Any] = {**{name: inner.integer(name, MAX_ARCS) for name in numbers}, **lists}
        found = CleanReport(**given)
        if found.edges != m or found.pairs != m + found.loops + found.duplicates + found.reversed_copies:
            raise inner.wrong(f"does not lead from {found.pairs:,} pairs to {m:,} edges")
        return found

    def _blocks(self, partition: Partition, m: int) -> dict[Pair, BlockRecord]:
        listed = self.value["blocks"]
        due = pairs_of(partition)
        if not isinstance(listed, list) or len(listed) != len(due):
            raise self.wrong(f"does not list {len(due):,} blocks")
        records = [self._block(partition, value, pair) for value, pair in zip(listed, due, strict=True)]
        if sum(record.arcs for record in records) != m:
            raise self.wrong(f"lists blocks whose arcs do not sum up to {m:,}")
        return dict(zip(due, records, strict=True))

    def _block(self, partition: Partition, value: Any, pair: Pair) -> BlockRecord:
        row, column = pair
        inner = _Checked(self.path, value, f"block {row}, {column}")
        inner.names(*(item.name for item in fields(BlockRecord)))
        rows, columns = partition.sizes[row], partition.sizes[column]
        most = rows * (rows - 1) // 2 if row == column else rows * columns
        arcs = inner.integer("arcs", min(most, WIDE_ARCS - 1))
        return BlockRecord(
            row=inner.exactly("row", row),
            column=inner.exactly("column", column),
            rows=inner.exactly("rows", rows),
            columns=inner.exactly("columns", columns),
            arcs=arcs,
            offsets=inner.file("offsets", ("<u4",), rows + 1),
            heads=inner.file("heads", ("<u4",), arcs),
        )

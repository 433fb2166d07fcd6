"""Arrow files and streams → record batches, each asked for before it is decoded.

A message is a length, a header, and a body that holds buffers one behind the other. The header, a table of FlatBuffers,
says where each buffer lies; a compressed buffer begins with the number of bytes that it expands to. A stream is a
sequence of messages; a file is one between two signatures, with a footer that lists where its messages are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from wedgewise.errors import FormatError
from wedgewise.read._arrow_values import with_what_is_beside
from wedgewise.stages.limits import Limits

STREAM_SIGNATURE = b"\xff\xff\xff\xff"
DICTIONARY, BATCH = 2, 3  # kinds of messages
LENGTH_BYTES = 8  # of a compressed buffer, at its beginning
BUFFER_BYTES, BLOCK_BYTES = 16, 24
END_BYTES = 10  # of a file: the length of the footer, and a signature
SMALL_BYTES = 2 << 20  # that are not asked for: they are given back before the next message
DAMAGED = "the file is damaged: write it again"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its kind, where its body lies, the buffers in it as (begin, length), and how they are stored."""

    kind: int
    body: int
    body_bytes: int
    buffers: tuple[tuple[int, int], ...] = ()
    variadic: tuple[int, ...] = ()
    is_compressed: bool = False


class ArrowSource:
    """An open Arrow file or stream.

    Attributes
    ----------
    schema : of the table
    rows : of the table; a file does not say
    """

    rows = None

    def __init__(self, file: BinaryIO, name: str, limits: Limits) -> None:
        self._file, self._name, self._limits = file, name, limits
        self._size = file.seek(0, 2)
        file.seek(0)
        self._is_stream = file.read(len(STREAM_SIGNATURE)) == STREAM_SIGNATURE
        self.schema = self._open([]).schema

    def _open(self, positions: list[int]) -> Any:
        """Arrow's reader, of some columns or of all."""
        from pyarrow import ipc

        self._file.seek(0)
        options = ipc.IpcReadOptions(use_threads=False, included_fields=positions)
        return (ipc.open_stream if self._is_stream else ipc.open_file)(self._file, options=options)

    def batches(self, names: list[str]) -> Iterator[Any]:
        """Record batches of some columns."""
        reader = self._open([self.schema.get_field_index(name) for name in names])
        if self._is_stream:
            yield from self._streamed(reader, names)
            return
        dictionaries, batches = self._blocks()
        if len(batches) != reader.num_record_batches:
            raise self._damaged("a footer that lists other batches than before")
        waiting = [self._message(block) for block in dictionaries]  # which are decoded with the first batch
        for number, block in enumerate(batches):
            self._ask_for([*waiting, self._message(block)], names)
            waiting = []
            yield reader.get_batch(number)

    def _streamed(self, reader: Any, names: list[str]) -> Iterator[Any]:
        """The batches of a stream: Arrow reads every message up to the next batch, so these are looked at first."""
        at = 0
        while True:
            here = self._file.tell()
            waiting: list[Message | None] = []
            while (message := self._message(at)) is not None:
                waiting.append(message)
                at = message.body + message.body_bytes
                if message.kind == BATCH:
                    break
            self._ask_for(waiting, names)
            self._file.seek(here)
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            yield batch

    def _ask_for(self, messages: list[Message | None], names: list[str]) -> None:
        """Ask for what messages take that are decoded together."""
        more = sum(self._bytes_of(message, names) for message in messages if message is not None)
        if more > SMALL_BYTES:
            self._limits.check_memory(with_what_is_beside(more), path=self._name)

    def _bytes_of(self, message: Message, names: list[str]) -> int:
        """What a message takes: its body, or what is read of it, and what that expands to."""
        if message.kind not in (DICTIONARY, BATCH):
            return 0
        buffers = self._chosen_buffers(message, names) if message.kind == BATCH else message.buffers
        held = message.body_bytes if self._is_stream else sum(length for _, length in buffers)
        if not message.is_compressed:
            return held
        return held + sum(self._expanded(message.body + begin, length) for begin, length in buffers)

    def _chosen_buffers(self, message: Message, names: list[str]) -> tuple[tuple[int, int], ...]:
        """The buffers of the chosen columns; all of them where the batch does not have those of its schema."""
        variadic = iter(message.variadic)
        chosen: list[tuple[int, int]] = []
        at = 0
        for field in self.schema:
            count = _buffer_count(field.type, variadic)
            if field.name in names:
                chosen += message.buffers[at : at + count]
            at += count
        return tuple(chosen) if at == len(message.buffers) else message.buffers

    def _expanded(self, begin: int, length: int) -> int:
        """The bytes that a compressed buffer expands to; −1 says that it was left as it is."""
        if length < LENGTH_BYTES:
            return 0
        return max(0, int.from_bytes(self._read(begin, LENGTH_BYTES), "little", signed=True))

    def _message(self, at: int) -> Message | None:
        """The message at a position; None at the end of a stream."""
        self._file.seek(at)
        start = self._file.read(8)
        prefix = 8 if start[:4] == STREAM_SIGNATURE else 4  # old files have the length alone
        size = int.from_bytes(start[prefix - 4 : prefix], "little", signed=True)
        if size == 0 or at + prefix >= self._size:
            return None
        if size < 0 or at + prefix + size > self._size:
            raise self._damaged(f"a message of {size:,} bytes at byte {at:,}")
        try:
            message = _parsed(self._read(at + prefix, size), at + prefix + size)
        except (struct.error, IndexError):
            raise self._damaged(f"a message that cannot be read at byte {at:,}") from None
        if not 0 <= message.body_bytes <= self._size - message.body:
            raise self._damaged(f"a message of {message.body_bytes:,} bytes at byte {at:,}")
        return message

    def _blocks(self) -> tuple[list[int], list[int]]:
        """Where the dictionaries and the batches of a file begin."""
        size = int.from_bytes(self._read(max(0, self._size - END_BYTES), 4), "little", signed=True)
        if not 0 < size <= self._size - END_BYTES:
            raise self._damaged("no footer")
        self._limits.check_memory(4 * size, path=self._name)
        try:
            footer = _FlatTable.root(self._read(self._size - END_BYTES - size, size))
            lists = [footer.structs(field, "<q", BLOCK_BYTES) for field in (2, 3)]
            dictionaries, batches = ([offset for (offset,) in blocks] for blocks in lists)
            return dictionaries, batches
        except (struct.error, IndexError):
            raise self._damaged("a footer that cannot be read") from None

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        text = self._file.read(size)
        if len(text) < size:
            raise self._damaged("ends too early")
        return text

    def _damaged(self, reason: str) -> FormatError:
        return FormatError("is not readable by Arrow", path=self._name, text=reason, remedy=DAMAGED)


def _buffer_count(kind: Any, variadic: Iterator[int]) -> int:
    """How many buffers a message has for a column of that type."""
    from pyarrow import BaseExtensionType, types

    if isinstance(kind, BaseExtensionType):
        return _buffer_count(kind.storage_type, variadic)
    count: int = kind.num_buffers
    if types.is_null(kind) or types.is_union(kind) or types.is_run_end_encoded(kind):
        count -= 1  # one that never exists
    if kind.has_variadic_buffers:
        count += next(variadic, 0)
    return count + sum(_buffer_count(kind.field(child).type, variadic) for child in range(kind.num_fields))


def _parsed(header: bytes, body: int) -> Message:
    message = _FlatTable.root(header)
    kind, size = message.number(1, "<B"), message.number(3, "<q")
    if kind not in (DICTIONARY, BATCH):
        return Message(kind, body, size)
    batch = message.table(2)
    if kind == DICTIONARY:
        batch = batch.table(1)
    buffers = tuple((begin, length) for begin, length in batch.structs(2, "<qq", BUFFER_BYTES))
    variadic = tuple(count for (count,) in batch.structs(4, "<q", 8))
    return Message(kind, body, size, buffers, variadic, batch.position(3) is not None)


@dataclass(frozen=True, slots=True)
class _FlatTable:
    """A table of FlatBuffers: its fields are found by the offsets in a table of them that lies elsewhere."""

    text: bytes
    at: int

    @classmethod
    def root(cls, text: bytes) -> _FlatTable:
        return cls(text, _unpacked("<I", text, 0))

    def position(self, field: int) -> int | None:
        """Where a field lies; None where the table does not have it."""
        offsets = self.at - _unpacked("<i", self.text, self.at)
        slot = 4 + 2 * field
        if slot + 2 > _unpacked("<H", self.text, offsets):
            return None
        offset = _unpacked("<H", self.text, offsets + slot)
        return self.at + offset if offset else None

    def number(self, field: int, form: str) -> int:
        """A number, 0 where it is left out."""
        position = self.position(field)
        return 0 if position is None else _unpacked(form, self.text, position)

    def table(self, field: int) -> _FlatTable:
        position = self.position(field)
        if position is None:
            raise IndexError
        return _FlatTable(self.text, position + _unpacked("<I", self.text, position))

    def structs(self, field: int, form: str, size: int) -> Iterator[tuple[int, ...]]:
        """The structs of a vector."""
        position = self.position(field)
        if position is None:
            return
        vector = position + _unpacked("<I", self.text, position)
        for number in range(_unpacked("<I", self.text, vector)):
            yield struct.unpack_from(form, self.text, vector + 4 + number * size)


def _unpacked(form: str, text: bytes, at: int) -> int:
    if at < 0:
        raise IndexError
    value: int = struct.unpack_from(form, text, at)[0]
    return value

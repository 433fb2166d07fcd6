"""Machine instructions that NumPy scalars lack: prefetch, AND + POPCNT over 512-bit blocks, and sums of their columns.

Plain Python functions, so that kernels also run with the JIT off; Numba sees the instructions through `@overload`.
Vectors are written as LLVM vectors of eight 64-bit words, which every target has in its own width.
"""

from __future__ import annotations

import ctypes
import time
from functools import cache
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

BLOCK_WORDS = 8
PLANES = 12
MAX_ROWS = (1 << PLANES) - 1
ROWS_AT_ONCE = 8
IDS_AT_ONCE = 16


def popcount(word: SupportsIndex) -> int:
    """How many bits of a 64-bit word are set."""
    return int(word).bit_count()


def prefetch(array: NDArray[Any], index: SupportsIndex) -> None:
    """Ask for the cache line of ``array[index]``; out-of-range indices are harmless."""


def array_at(address: SupportsIndex, length: SupportsIndex, like: NDArray[Any]) -> tuple[NDArray[Any]]:
    """The array of so many items, of the type of another one, that lies at an address; somebody else keeps it.

    It comes in a tuple: without its runtime, Numba lets no function return an array.
    """
    memory: Any = (ctypes.c_ubyte * (int(length) * like.itemsize)).from_address(int(address))
    return (np.frombuffer(memory, like.dtype, int(length)),)


def ticks() -> int:
    """A clock that goes on steadily, in units of its own."""
    return time.perf_counter_ns()


def count_common_bits(
    a: NDArray[np.uint64], a_begin: SupportsIndex, b: NDArray[np.uint64], b_begin: SupportsIndex, blocks: SupportsIndex
) -> int:
    """Bits set in both of two stretches of `blocks` × 512 bits that start at the given words."""
    words = int(blocks) * BLOCK_WORDS
    first = a[int(a_begin) : int(a_begin) + words]
    second = b[int(b_begin) : int(b_begin) + words]
    return sum(int(word).bit_count() for word in first & second)


def match_ids(ids: NDArray[np.uint32], begin: SupportsIndex, count: SupportsIndex, block: SupportsIndex) -> int:
    """Which of `IDS_AT_ONCE` ids from `block` on are among `count` ids from `begin` on, the first in the lowest bit.

    Every id of one is compared with every id of the other, so that no branch depends on them.
    """
    compared = ids[int(block) : int(block) + IDS_AT_ONCE]
    wanted = ids[int(begin) : int(begin) + int(count)]
    return sum(1 << lane for lane, value in enumerate(compared) if value in wanted)


def sum_columns(
    mask: NDArray[np.uint64],
    mask_begin: SupportsIndex,
    rows: NDArray[np.uint64],
    scratch: NDArray[np.uint64],
    count: SupportsIndex,
    word: SupportsIndex,
    planes_begin: SupportsIndex,
) -> None:
    """In how many of `count` rows each bit of one masked 512-bit block is set, as bits of equal weight.

    Row i has the block at ``rows[scratch[i] + word]``. Bit j of plane p, the 512 bits at
    ``scratch[planes_begin + 8 * p]``, is bit p of the sum of column j. There are `PLANES` of them, for up to
    `MAX_ROWS` rows.
    """
    first = int(mask_begin)
    masked = np.array(
        [
            rows[int(origin) + int(word) : int(origin) + int(word) + BLOCK_WORDS] & mask[first : first + BLOCK_WORDS]
            for origin in scratch[: int(count)]
        ],
        "<u8",
    ).reshape(-1, BLOCK_WORDS)
    sums = np.unpackbits(masked.view(np.uint8), axis=1, bitorder="little").sum(axis=0, dtype=np.uint64)
    for plane in range(PLANES):
        bits = (sums >> np.uint64(plane) & np.uint64(1)).astype(np.uint8)
        begin = int(planes_begin) + BLOCK_WORDS * plane
        scratch[begin : begin + BLOCK_WORDS] = np.packbits(bits, bitorder="little").view("<u8")


@cache
def register_with_numba() -> None:
    """Teach Numba these instructions, once; called by machine/native.py when Numba is needed."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.extending import intrinsic, overload

    word_type = ir.IntType(64)
    block_type = ir.VectorType(word_type, BLOCK_WORDS)

    def data_of(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
        return context.make_array(array_type)(context, builder, array).data

    @intrinsic
    def count_bits(context, word):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ctpop(args[0])

        return types.uint64(types.uint64), generate

    @intrinsic
    def prefetch_line(context, array, index):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = data_of(context, builder, signature.args[0], args[0])
            pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
            number = ir.IntType(32)
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number]),
                "llvm.prefetch.p0",
            )
            read, keep_in_all_caches, data_cache = number(0), number(3), number(1)
            builder.call(function, [pointer, read, keep_in_all_caches, data_cache])
            return context.get_dummy_value()

        return types.void(array, types.uint64), generate

    @intrinsic
    def view(context, address, length, like):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.return_type)(context, builder)
            item = context.get_data_type(signature.return_type.dtype)
            size = context.get_constant(types.intp, context.get_abi_sizeof(item))
            context.populate_array(
                array,
                data=builder.inttoptr(args[0], item.as_pointer()),
                shape=cgutils.pack_array(builder, [args[1]]),
                strides=cgutils.pack_array(builder, [size]),
                itemsize=size,
                meminfo=None,
            )
            return array._getvalue()

        return like(types.uint64, types.uint64, like), generate

    @intrinsic
    def read_cycle_counter(context):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(word_type, []), "llvm.readcyclecounter"
            )
            return builder.call(function, [])

        return types.uint64(), generate

    @intrinsic
    def and_popcount(context, a, a_begin, b, b_begin, blocks):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def pointer(array_type: Any, array: Any, begin: Any) -> Any:
                first = builder.gep(data_of(context, builder, array_type, array), [begin])
                return builder.bitcast(first, block_type.as_pointer())

            pointers = [
                pointer(signature.args[0], args[0], args[1]),
                pointer(signature.args[2], args[2], args[3]),
            ]
            total = cgutils.alloca_once_value(builder, ir.Constant(block_type, [0] * BLOCK_WORDS))
            with cgutils.for_range(builder, args[4], intp=word_type) as loop:
                pair = []
                for base in pointers:
                    block = builder.load(builder.gep(base, [loop.index]))
                    block.align = 8
                    pair.append(block)
                both = builder.and_(*pair)
                popcounts = cgutils.get_or_insert_function(
                    builder.module, ir.FunctionType(block_type, [block_type]), "llvm.ctpop.v8i64"
                )
                builder.store(builder.add(builder.load(total), builder.call(popcounts, [both])), total)
            reduce = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(word_type, [block_type]), "llvm.vector.reduce.add.v8i64"
            )
            return builder.call(reduce, [builder.load(total)])

        word = types.uint64
        return word(a, word, b, word, word), generate

    @intrinsic
    def match_lanes(context, ids, begin, count, block):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = data_of(context, builder, signature.args[0], args[0])
            lanes = ir.VectorType(ir.IntType(32), IDS_AT_ONCE)
            nothing = ir.Constant(lanes, [0] * IDS_AT_ONCE)
            compared = builder.load(builder.bitcast(builder.gep(data, [args[3]]), lanes.as_pointer()))
            compared.align = 4
            matched = cgutils.alloca_once_value(builder, nothing)
            with cgutils.for_range(builder, args[2], intp=word_type) as loop:
                value = builder.load(builder.gep(data, [builder.add(args[1], loop.index)]))
                wanted = builder.insert_element(nothing, value, ir.IntType(32)(0))
                equal = builder.icmp_unsigned("==", compared, builder.shuffle_vector(wanted, nothing, nothing))
                builder.store(builder.or_(builder.load(matched), builder.sext(equal, lanes)), matched)
            bits = builder.icmp_unsigned("!=", builder.load(matched), nothing)
            return builder.zext(builder.bitcast(bits, ir.IntType(IDS_AT_ONCE)), word_type)

        word = types.uint64
        return word(ids, word, word, word), generate

    def add_to_planes(builder: Any, planes: list[Any], vectors: list[Any]) -> None:
        """Carry-save addition of 2^k vectors: pairs are added to a plane, their carries to the next one."""
        plane = 0
        while len(vectors) > 1:
            carries = []
            for first, second in zip(vectors[::2], vectors[1::2], strict=True):
                either = builder.xor(first, second)
                kept = builder.load(planes[plane])
                builder.store(builder.xor(kept, either), planes[plane])
                carries.append(builder.or_(builder.and_(first, second), builder.and_(kept, either)))
            vectors = carries
            plane += 1
        (carry,) = vectors
        for position in planes[plane:]:
            kept = builder.load(position)
            builder.store(builder.xor(kept, carry), position)
            carry = builder.and_(kept, carry)

    @intrinsic
    def add_rows(context, mask, mask_begin, rows, scratch, count, word, planes_begin):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            masks, words, positions = (data_of(context, builder, signature.args[i], args[i]) for i in (0, 2, 3))

            def block(pointer: Any) -> Any:
                return builder.bitcast(pointer, block_type.as_pointer())

            def masked_row(number: Any) -> Any:
                begin = builder.add(builder.load(builder.gep(positions, [number])), args[5])
                loaded = builder.load(block(builder.gep(words, [begin])))
                loaded.align = 8
                return builder.and_(loaded, masking)

            masking = builder.load(block(builder.gep(masks, [args[1]])))
            masking.align = 8
            zero = ir.Constant(block_type, [0] * BLOCK_WORDS)
            planes = [cgutils.alloca_once_value(builder, zero) for _ in range(PLANES)]
            at_once = word_type(ROWS_AT_ONCE)
            groups = builder.udiv(args[4], at_once)
            with cgutils.for_range(builder, groups, intp=word_type) as loop:
                first = builder.mul(loop.index, at_once)
                numbers = [builder.add(first, word_type(i)) for i in range(ROWS_AT_ONCE)]
                add_to_planes(builder, planes, [masked_row(number) for number in numbers])
            grouped = builder.mul(groups, at_once)
            with cgutils.for_range(builder, builder.sub(args[4], grouped), intp=word_type) as loop:
                add_to_planes(builder, planes, [masked_row(builder.add(grouped, loop.index))])
            for number, plane in enumerate(planes):
                begin = builder.add(args[6], word_type(BLOCK_WORDS * number))
                builder.store(builder.load(plane), block(builder.gep(positions, [begin]))).align = 8
            return context.get_dummy_value()

        number = types.uint64
        return types.void(mask, number, rows, scratch, number, number, number), generate

    @overload(popcount)
    def typed_popcount(word):  # type: ignore[no-untyped-def]
        return lambda word: count_bits(np.uint64(word))  # type: ignore[call-arg]

    @overload(prefetch)
    def typed_prefetch(array, index):  # type: ignore[no-untyped-def]
        return lambda array, index: prefetch_line(array, np.uint64(index))  # type: ignore[call-arg]

    @overload(array_at)
    def typed_array_at(address, length, like):  # type: ignore[no-untyped-def]
        return lambda address, length, like: (
            view(np.uint64(address), np.uint64(length), like),  # type: ignore[call-arg]
        )

    @overload(ticks)
    def typed_ticks():  # type: ignore[no-untyped-def]
        return lambda: read_cycle_counter()  # type: ignore[call-arg]

    @overload(count_common_bits)
    def typed_count_common_bits(a, a_begin, b, b_begin, blocks):  # type: ignore[no-untyped-def]
        return lambda a, a_begin, b, b_begin, blocks: and_popcount(  # type: ignore[call-arg]
            a, np.uint64(a_begin), b, np.uint64(b_begin), np.uint64(blocks)
        )

    @overload(match_ids)
    def typed_match_ids(ids, begin, count, block):  # type: ignore[no-untyped-def]
        return lambda ids, begin, count, block: match_lanes(  # type: ignore[call-arg]
            ids, np.uint64(begin), np.uint64(count), np.uint64(block)
        )

    @overload(sum_columns)
    def typed_sum_columns(mask, mask_begin, rows, scratch, count, word, planes_begin):  # type: ignore[no-untyped-def]
        return lambda mask, mask_begin, rows, scratch, count, word, planes_begin: add_rows(  # type: ignore[call-arg]
            mask, np.uint64(mask_begin), rows, scratch, np.uint64(count), np.uint64(word), np.uint64(planes_begin)
        )

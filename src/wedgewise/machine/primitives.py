"""Machine instructions that NumPy scalars lack: prefetch, and AND + POPCNT over 512-bit blocks.

Plain Python functions, so that kernels also run with the JIT off; Numba sees the instructions through `@overload`.
Vectors are written as LLVM vectors of eight 64-bit words, which every target has in its own width.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

BLOCK_WORDS = 8

_registered = False


def popcount(word: SupportsIndex) -> int:
    """How many bits of a 64-bit word are set."""
    return int(word).bit_count()


def prefetch(array: NDArray[Any], index: SupportsIndex) -> None:
    """Ask for the cache line of ``array[index]``; out-of-range indices are harmless."""


def count_common_bits(
    a: NDArray[np.uint64], a_begin: SupportsIndex, b: NDArray[np.uint64], b_begin: SupportsIndex, blocks: SupportsIndex
) -> int:
    """Bits set in both of two stretches of `blocks` × 512 bits that start at the given words."""
    words = int(blocks) * BLOCK_WORDS
    first = a[int(a_begin) : int(a_begin) + words]
    second = b[int(b_begin) : int(b_begin) + words]
    return sum(int(word).bit_count() for word in first & second)


def register_with_numba() -> None:
    """Teach Numba these instructions; called once by machine/jit.py when Numba is first needed."""
    global _registered
    if _registered:
        return
    _registered = True
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

    def typed_popcount(word):  # type: ignore[no-untyped-def]
        return lambda word: count_bits(np.uint64(word))  # type: ignore[call-arg]

    def typed_prefetch(array, index):  # type: ignore[no-untyped-def]
        return lambda array, index: prefetch_line(array, np.uint64(index))  # type: ignore[call-arg]

    def typed_count_common_bits(a, a_begin, b, b_begin, blocks):  # type: ignore[no-untyped-def]
        return lambda a, a_begin, b, b_begin, blocks: and_popcount(  # type: ignore[call-arg]
            a, np.uint64(a_begin), b, np.uint64(b_begin), np.uint64(blocks)
        )

    overload(popcount)(typed_popcount)
    overload(prefetch)(typed_prefetch)
    overload(count_common_bits)(typed_count_common_bits)

"""Machine instructions that NumPy scalars lack: popcount and prefetch.

Plain Python functions, so that kernels also run with the JIT off; Numba sees the instruction through `@overload`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_registered = False


def popcount(word: int) -> int:
    """How many bits of a 64-bit word are set."""
    return int(word).bit_count()


def prefetch(array: NDArray[Any], index: int) -> None:
    """Ask for the cache line of ``array[index]``; out-of-range indices are harmless."""


def register_with_numba() -> None:
    """Teach Numba both instructions; called once by machine/jit.py when Numba is first needed."""
    global _registered
    if _registered:
        return
    _registered = True
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.extending import intrinsic, overload

    @intrinsic
    def count_bits(context: Any, word: Any) -> Any:  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ctpop(args[0])

        return types.uint64(types.uint64), generate

    @intrinsic
    def prefetch_line(context: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array_type, _ = signature.args
            data = context.make_array(array_type)(context, builder, args[0]).data
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

    def typed_popcount(word):  # type: ignore[no-untyped-def]
        return lambda word: count_bits(np.uint64(word))

    def typed_prefetch(array, index):  # type: ignore[no-untyped-def]
        return lambda array, index: prefetch_line(array, np.uint64(index))

    overload(popcount)(typed_popcount)
    overload(prefetch)(typed_prefetch)

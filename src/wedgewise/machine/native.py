"""Machine code of kernels: made by Numba, kept as one object file each, called through ctypes.

A kernel ``f(array, number, …) -> (number, …)`` becomes the native function

    int f(void **result, void **error, item *array, uint64 length, number, …, uint64 *results)

(Numba's own calling convention with arrays and records spelled out), which needs neither Numba nor Python to run and is
called without the GIL. Kernels allocate and raise nothing, so the runtime functions that Numba mentions for those cases
are never reached; in what is kept they end the process.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from wedgewise.machine import primitives
from wedgewise.machine.jit import NONE
from wedgewise.machine.kernel_sources import identity_of

MAGIC = b"wedgewise kernel 3\n"
CHECKSUM_BYTES = 65  # a line
POINTER = ctypes.c_void_p
_engine_lock = threading.Lock()
_dispatchers: dict[Any, Any] = {}  # by what they are made of, values included
NO_RESULT = -1  # `results` of a kernel that returns None; 0 stands for a single number
OPTIONS = {"error_model": "numpy", "boundscheck": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
LLVM_BYTES, OBJECT_BYTES = 1 << 26, 1 << 23  # generous: what the linker and one kernel were seen to take


class DamagedObjectError(Exception):
    """A stored object is not what was written."""


@dataclass(frozen=True, slots=True)
class NativeObject:
    """One compiled kernel."""

    symbol: str
    kinds: tuple[str, ...]
    results: int
    code: bytes

    def to_bytes(self, title: str) -> bytes:
        """The file: a line of magic, a line with the checksum of all that follows, a line of JSON, the code."""
        header = {
            "title": title,
            "symbol": self.symbol,
            "kinds": self.kinds,
            "results": self.results,
        }
        believed = json.dumps(header).encode() + b"\n" + self.code
        return MAGIC + _checksum(believed) + believed

    @classmethod
    def from_bytes(cls, data: bytes, title: str) -> NativeObject:
        """Read a stored object back; anything but what was written under this title is refused before it can run."""
        believed = data[len(MAGIC) + CHECKSUM_BYTES :]
        if data[: len(MAGIC) + CHECKSUM_BYTES] != MAGIC + _checksum(believed):
            raise DamagedObjectError(f"{title} is damaged, or of another version")
        line, code = believed.split(b"\n", 1)
        header = json.loads(line)
        if header["title"] != title:
            raise DamagedObjectError(f"{title} is {header['title']} under another name")
        return cls(header["symbol"], tuple(header["kinds"]), header["results"], code)


def _checksum(believed: bytes) -> bytes:
    return hashlib.sha256(believed).hexdigest().encode() + b"\n"


@cache
def processor() -> str:
    """The processor and compiler back end that machine code is made for."""
    import llvmlite
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    return f"{llvmlite.__version__} {binding.get_process_triple()} {binding.get_host_cpu_name()} {features}"


@cache
def _engine() -> Any:
    """The linker and loader of this process."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


def linking_bytes() -> int:
    """What loading one more kernel may take: the linker itself is paid once."""
    return OBJECT_BYTES if _engine.cache_info().currsize else LLVM_BYTES


def callable_of(native: NativeObject, title: str) -> Callable[..., Any]:
    """Load machine code and return a Python function that calls it."""
    with _engine_lock:
        address = _loaded(native)
    return callable_at(address, native.kinds, native.results, title)


def callable_at(address: int, kinds: tuple[str, ...], results: int, title: str) -> Callable[..., Any]:
    """A Python function that calls machine code which lies at an address."""
    parameters = [kind for spelled in kinds for kind in _c_types(spelled)]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER, *parameters, POINTER)
    return _caller(prototype(address), results, title)


def _loaded(native: NativeObject) -> int:
    """Where the machine code begins; the linker takes one thread at a time."""
    from llvmlite import binding

    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(native.code))
    engine.finalize_object()
    return int(engine.get_function_address(native.symbol))


def _caller(function: Callable[..., int], results: int, title: str) -> Callable[..., Any]:
    buffer_type = ctypes.c_uint64 * max(1, results)

    def call(*args: Any) -> Any:
        spelled: list[Any] = []
        for arg in args:
            if type(arg) is np.ndarray:
                if not arg.flags.c_contiguous:
                    raise TypeError(f"{title} needs C-contiguous arrays")
                spelled.append(arg.__array_interface__["data"][0])
                spelled.append(arg.size)
            else:
                spelled.append(int(arg))
        returned, error, buffer = ctypes.c_void_p(), ctypes.c_void_p(), buffer_type()
        status = function(ctypes.addressof(returned), ctypes.addressof(error), *spelled, ctypes.addressof(buffer))
        if status != 0:
            raise RuntimeError(f"{title} failed with status {status}: please report this")
        if results > 0:
            return tuple(buffer)
        return None if results == NO_RESULT else buffer[0]

    return call


def _c_types(kind: str) -> list[Any]:
    if kind.startswith("*"):
        return [POINTER, ctypes.c_uint64]
    return [np.ctypeslib.as_ctypes_type(np.dtype(kind))]


def flat_kinds(kinds: tuple[str | type, ...]) -> tuple[str, ...]:
    """What machine code is handed of arguments: records are their fields, and None is not there."""
    return tuple(kind for kind in kinds if isinstance(kind, str) and kind != NONE)


def compile_object(marked: Any, kinds: tuple[str | type, ...]) -> NativeObject:
    """Compile a kernel for arguments of these kinds, with Numba, for this processor."""
    result, results = _compiled(marked, kinds)
    code = result.library.codegen._tm.emit_object(_whole_module(result))
    return NativeObject(result.fndesc.mangled_name, flat_kinds(kinds), results, code)


def compile_for_library(marked: Any, kinds: tuple[str | type, ...], symbol: str) -> tuple[bytes, int]:
    """An object that a linker takes into a library, which shows this symbol alone; and the number of its results.

    It is for the processor that the environment variables of Numba name.
    """
    from llvmlite import binding

    result, results = _compiled(marked, kinds)
    module = _whole_module(result)
    for value in (*module.functions, *module.global_variables):
        if value.name == result.fndesc.mangled_name:
            value.name = symbol
        elif not value.is_declaration:
            value.linkage = "internal"  # helpers and constants of other kernels have the same names
    codegen = result.library.codegen
    machine = binding.Target.from_triple(module.triple).create_target_machine(
        cpu=codegen._get_host_cpu_name(), features=codegen._tm_features, opt=3, reloc="pic", codemodel="small"
    )
    return machine.emit_object(module), results


def only_emit() -> None:
    """Have Numba load nothing of what it compiles: for a process that hands its machine code to others."""
    from numba.core.registry import cpu_target

    codegen = cpu_target.target_context.codegen()
    codegen._add_module = lambda module: None
    codegen.set_env = lambda name, env: None


def _compiled(marked: Any, kinds: tuple[str | type, ...]) -> tuple[Any, int]:
    """What Numba makes of a kernel, spelled out, and the number of its results."""
    import numba
    from numba import types as numba_types

    primitives.register_with_numba()
    dispatcher = _dispatcher(marked)
    arguments = tuple(_numba_types(iter(kinds)))
    dispatcher.compile(arguments)
    returned = dispatcher.overloads[arguments].signature.return_type
    results = _result_count(returned)
    wrapper = _wrapper(dispatcher, kinds, results)
    spelled: list[Any] = []
    for item in _numba_types(iter(flat_kinds(kinds))):
        is_array = isinstance(item, numba_types.Array)
        spelled += [numba_types.CPointer(item.dtype), numba_types.uint64] if is_array else [item]
    signature = numba_types.void(*spelled, numba_types.CPointer(numba_types.uint64))
    compiled = numba.njit(signature, **OPTIONS)(wrapper)
    (result,) = compiled.overloads.values()
    return result, results


def _whole_module(result: Any) -> Any:
    """A copy of what Numba compiled, in which functions of its runtime, which kernels never reach, end the process."""
    from llvmlite import binding

    module = binding.parse_bitcode(result.library._final_module.as_bitcode())
    missing = [f.name for f in module.functions if f.is_declaration and f.name.startswith("NRT_")]
    traps = [f'define void @"{name}"() {{ call void @llvm.trap() unreachable }}' for name in missing]
    module.link_in(binding.parse_assembly("\n".join(["declare void @llvm.trap()", *traps])))
    return module


def _dispatcher(marked: Any) -> Any:
    """Numba's form of a kernel or helper, with the helpers it calls compiled into it: one for all who call it."""
    identity = identity_of(marked, ())
    if identity is None:
        return _new_dispatcher(marked)
    key = (marked, identity)
    if key not in _dispatchers:
        _dispatchers[key] = _new_dispatcher(marked)
    return _dispatchers[key]


def _new_dispatcher(marked: Any) -> Any:
    import numba

    function = marked.function
    names = set(function.__code__.co_names)
    visible = {
        name: _dispatcher(value) if name in names and isinstance(value, type(marked)) else value
        for name, value in function.__globals__.items()
    }
    copy = types.FunctionType(function.__code__, visible, function.__name__, function.__defaults__)
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__
    # Kernels own nothing: with its runtime, Numba leaves calls that count references in their inner loops.
    return numba.njit(nogil=True, _nrt=False, forceinline=marked.inline, **OPTIONS)(copy)


def _numba_types(kinds: Iterator[str | type]) -> Iterator[Any]:
    """What Numba calls arguments of these kinds."""
    import numba
    from numba import types as numba_types

    for kind in kinds:
        if isinstance(kind, type):
            fields = tuple(islice(_numba_types(kinds), len(kind._fields)))  # type: ignore[attr-defined]
            yield numba_types.NamedTuple(fields, kind)
        elif kind == NONE:
            yield numba_types.none
        else:
            item = numba.from_dtype(np.dtype(kind.removeprefix("*")))
            yield numba_types.Array(item, 1, "C") if kind.startswith("*") else item


def _result_count(returned: Any) -> int:
    from numba import types as numba_types

    if isinstance(returned, numba_types.NoneType):
        return NO_RESULT
    return len(returned) if isinstance(returned, numba_types.BaseTuple) else 0


def _wrapper(dispatcher: Any, kinds: tuple[str | type, ...], results: int) -> Callable[..., None]:
    """The function with arrays and records spelled out, and results stored through a pointer."""
    from numba import carray

    names: dict[str, Any] = {"carray": carray, "kernel": dispatcher}
    parameters: list[str] = []
    handed = list(_handed(iter(kinds), parameters, names))
    lines = [
        f"def wrapper({', '.join([*parameters, 'results'])}):",
        f"    found = kernel({', '.join(handed)})",
        *(f"    results[{i}] = found[{i}]" for i in range(results)),
        *(["    results[0] = found"] if results == 0 else []),
    ]
    exec("\n".join(lines), names)
    wrapper: Callable[..., None] = names["wrapper"]
    return wrapper


def _handed(kinds: Iterator[str | type], parameters: list[str], names: dict[str, Any]) -> Iterator[str]:
    """How the wrapper spells arguments: arrays of a pointer and a length, records of their fields."""
    for kind in kinds:
        number = len(parameters)
        if isinstance(kind, type):
            record = f"{kind.__name__}{len(names)}"
            names[record] = kind
            fields = islice(_handed(kinds, parameters, names), len(kind._fields))  # type: ignore[attr-defined]
            yield f"{record}({', '.join(fields)})"
        elif kind == NONE:
            yield "None"
        elif kind.startswith("*"):
            parameters += [f"p{number}", f"n{number}"]
            yield f"carray(p{number}, (n{number},))"
        else:
            parameters.append(f"x{number}")
            yield f"x{number}"

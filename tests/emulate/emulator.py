"""A device without a GPU: kernels compiled by g++ through cuda_emulation.h, arrays of NumPy.

Host code and kernel text are those of the GPU. What CUDA leaves undefined is an error here where it can be seen:
threads that do not meet at a barrier, loops without an end, arguments of another width, launches that no device
accepts. Memory that nobody has written holds 0xA5 in every byte.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine import gpu
from wedgewise.machine.own_files import make_own_folder, why_not_own

HERE = Path(__file__).parent
HEADER, MACHINE = HERE / "cuda_emulation.h", HERE / "cuda_emulation.cpp"
COMPILER = shutil.which("g++")
FLAGS = ("-std=c++17", "-fPIC", "-fno-strict-aliasing", "-Wall", "-Wno-unknown-pragmas", "-Wno-unused-function")
MAX_THREADS, LANES = 1024, 32
MAX_BLOCKS = 2**31 - 1
RESIDENT_BLOCKS = 3
POISON = 0xA5

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)'
)
SHARED = re.compile(r"^(\s*)__shared__\s+(?:__align__\((\d+)\)\s+)?(.*?)\s*\b(\w+)((?:\[[^;]*\])?);(.*)$")
INCLUDED = re.compile(gpu.INCLUDE.pattern)

Defines = tuple[tuple[str, int], ...]
ELEMENTS: dict[str, type[np.generic]] = {
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "uint32_t": np.uint32,
    "uint64_t": np.uint64,
    "int": np.int32,
    "unsigned int": np.uint32,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
WIDTHS = {"offset_t": "OFFSET_BITS", "end_t": "ID_BITS"}  # types that a define makes 64 bits wide, not 32
PACKED = {"uint2": 8, "uint4": 16, "ushort4": 8, "ulonglong2": 16}  # bytes; arrays hold their parts, of any width


class EmulationError(RuntimeError):
    """A kernel, its arguments or its launch would be wrong on a device."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel: its type without qualifiers, and whether it points to memory that may be written."""

    text: str
    element: str
    is_pointer: bool
    is_const: bool

    @classmethod
    def parse(cls, declared: str) -> Parameter:
        words = re.sub(r"\b__restrict__\b|\bconst\b", " ", declared)
        kind, _, _name = " ".join(words.split()).rpartition("*" if "*" in words else " ")
        text = " ".join(re.sub(r"\b__restrict__\b|\w+\s*$", " ", declared).split())
        return cls(text, kind.strip(), "*" in declared, "const" in declared)


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    parameters: tuple[Parameter, ...]

    def entry(self) -> str:
        """The function that Python calls: it unpacks the arguments for every thread."""
        unpacked = ", ".join(
            f"*static_cast<std::remove_const_t<{parameter.text}>*>(arguments[{place}])"
            for place, parameter in enumerate(self.parameters)
        )
        return (
            f'extern "C" __attribute__((visibility("default"))) const char* launch_{self.name}'
            "(u32 grid, u32 block, u64 dynamic_bytes, u32 cooperative, void** arguments) {\n"
            f'    return emulation::run("{self.name}", grid, block, dynamic_bytes, cooperative,\n'
            f"        [](void** arguments) {{ {self.name}({unpacked}); }}, arguments);\n}}\n"
        )


def kernels_of(text: str) -> dict[str, Kernel]:
    """The kernels that a text defines."""
    found = KERNEL.finditer(COMMENT.sub(" ", text))
    return {
        match["name"]: Kernel(match["name"], tuple(map(Parameter.parse, match["parameters"].split(","))))
        for match in found
    }


def pasted_lines(path: Path, seen: set[str]) -> Iterator[str]:
    """The lines that `gpu.kernel_text` pastes together, with directives that say where each comes from."""
    yield f'#line 1 "{path.name}"'
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if include := INCLUDED.match(line):
            name = include.group(1)
            if name not in seen:
                seen.add(name)
                yield from pasted_lines(gpu.KERNEL_FOLDER / name, seen)
            yield f'#line {number + 1} "{path.name}"'
        else:
            yield line


def host_text(stem: str, defines: Defines, folder: Path = gpu.KERNEL_FOLDER) -> str:
    """A stem's kernels as C++ for the host, with an entry point each."""
    pasted = list(pasted_lines(folder / f"{stem}.cu", set()))
    prelude = [f"#define {name} {value}" for name, value in defines]
    body = [_with_shared_in_place(line, number) for number, line in enumerate(pasted)]
    entries = [kernel.entry() for kernel in kernels_of("\n".join(pasted)).values()]
    return "\n".join([f'#include "{HEADER.name}"', *prelude, *body, '#line 1 "entry points"', *entries])


def _with_shared_in_place(line: str, number: int) -> str:
    """A declaration of shared memory as a reference to memory that every block gets anew."""

    def refer(match: re.Match[str]) -> str:
        space, alignment, kind, name, dimensions, rest = match.groups()
        aligned = f"__align__({alignment}) " if alignment else ""
        alias = f"shared_{number}"
        return (
            f"{space}typedef {aligned}{kind} {alias}{dimensions}; "
            f"{alias}& {name} = emulation::shared<{alias}>({number}u);{rest}"
        )

    return SHARED.sub(refer, line)


@dataclass(frozen=True, slots=True)
class Build:
    """How kernels are compiled, and where the results are kept."""

    folder: Path
    sanitizer: str | None = None
    coverage: bool = False

    @property
    def kernel_flags(self) -> tuple[str, ...]:
        if self.sanitizer:
            return "-O1", "-g1", "-fno-omit-frame-pointer", f"-fsanitize={self.sanitizer}", "-fno-sanitize-recover=all"
        return ("-O0", "--coverage") if self.coverage else ("-O1",)

    @property
    def machine_flags(self) -> tuple[str, ...]:
        """The machine itself is never instrumented: it stands for the hardware."""
        return ("-O2", "-DWITH_THREAD_SANITIZER") if self.sanitizer == "thread" else ("-O2",)

    def library(self, text: str, stem: str) -> Path:
        """The shared object for a text, compiled unless it is there."""
        machine = self._made("machine", MACHINE.read_text(encoding="utf-8"), ("-c", *self.machine_flags), ".o")
        options = ("-fvisibility=hidden", "-fsanitize-coverage=trace-pc", *self.kernel_flags)
        header = self._made(HEADER.name, HEADER.read_text(encoding="utf-8"), ("-x", "c++-header", *options), ".gch")
        # g++ takes a compiled header that it finds before the header itself
        return self._made(
            stem, text, ("-shared", "-Wl,-Bsymbolic", *options, f"-I{header.parent}"), ".so", str(machine)
        )

    def _made(self, name: str, text: str, options: tuple[str, ...], suffix: str, *objects: str) -> Path:
        recipe = "\0".join((text, HEADER.read_text(encoding="utf-8"), *FLAGS, *options, *objects, compiler_version()))
        folder = self.folder / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
        made = folder / f"{name}{suffix}"
        if made.exists():
            return made
        folder.mkdir(parents=True, exist_ok=True)
        source, written = folder / f"{name}.cpp", folder / f"{name}.{os.getpid()}.cpp"
        written.write_text(text, encoding="utf-8")
        written.replace(source)  # another process may compile it just now
        unfinished = folder / f"{name}.{os.getpid()}{suffix}"
        output = ("-o", str(unfinished), "-dumpbase", name, "-dumpdir", f"{folder}/")
        command = (compiler(), *FLAGS, *options, f"-I{HERE}", str(source), *objects, *output)
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode or finished.stderr:
            raise EmulationError(f"{name} does not compile without warnings:\n{finished.stderr}")
        unfinished.replace(made)
        return made


def compiler() -> str:
    if COMPILER is None:
        raise EmulationError("g++ is not installed")
    return COMPILER


@cache
def compiler_version() -> str:
    return subprocess.run((compiler(), "--version"), capture_output=True, text=True, check=True).stdout


@cache
def default_folder() -> Path:
    """Where compiled kernels stay between runs of the tests; where others can have put some, a fresh folder."""
    folder = Path(tempfile.gettempdir()) / f"wedgewise-emulated-kernels-{os.getuid()}"
    make_own_folder(folder)
    return folder if why_not_own(folder) is None else Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))


class PoisonedNumpy:
    """NumPy as CuPy has it: fresh memory holds nothing that could be right by luck."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def empty(shape: Any, dtype: Any = np.float64) -> NDArray[Any]:
        array = np.empty(shape, dtype)
        array.reshape(-1).view(np.uint8).fill(POISON)
        return array

    @classmethod
    def empty_like(cls, other: NDArray[Any]) -> NDArray[Any]:
        return cls.empty(other.shape, other.dtype)

    @staticmethod
    def repeat(array: Any, repeats: int) -> NDArray[Any]:
        if not isinstance(repeats, int):
            raise EmulationError("CuPy repeats by one number alone")
        return np.repeat(array, repeats)


class EmulatedDevice:
    """A `wedgewise.machine.gpu.Device` whose kernels run on the CPU.

    ``launched`` collects the stems that were launched, with their defines.
    """

    def __init__(
        self,
        sanitizer: str | None = None,
        sms: int = 2,
        shared_bytes: int = 233_472,
        coverage: bool = False,
        folder: Path | None = None,
        kernels: Path = gpu.KERNEL_FOLDER,
    ) -> None:
        self.xp: Any = PoisonedNumpy()
        self.sms = sms
        self.shared_bytes = shared_bytes
        self.launched: set[tuple[str, Defines]] = set()
        self._build = Build(folder or default_folder(), sanitizer, coverage)
        self._kernels = kernels

    def launch(
        self,
        stem: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: tuple[Any, ...],
        *,
        shared_bytes: int = 0,
        defines: Defines = (),
        cooperative: bool = False,
    ) -> None:
        """Run a kernel to its end; the blocks of a cooperative launch run at the same time."""
        self.launched.add((stem, defines))
        self._check_shape(kernel, grid, block, shared_bytes)
        if cooperative and grid > RESIDENT_BLOCKS:
            raise EmulationError(f"{kernel}: {grid} blocks that wait for each other; {RESIDENT_BLOCKS} fit at once")
        loaded = _load(self._build, stem, defines, self._kernels)
        values = _checked(loaded.kernels[kernel], arguments, dict(defines))
        addresses = _pointers(len(values))(*(value.ctypes.data for value in values))
        function = getattr(loaded.library, f"launch_{kernel}")  # which the library keeps
        function.restype = ctypes.c_char_p
        shape = (ctypes.c_uint32(grid), ctypes.c_uint32(block), ctypes.c_uint64(shared_bytes))
        if failure := function(*shape, ctypes.c_uint32(cooperative), ctypes.byref(addresses)):
            raise EmulationError(failure.decode())

    def resident_blocks(self, stem: str, kernel: str, block: int, *, defines: Defines = ()) -> int:
        """How many blocks of a cooperative launch are there at once: a few, of any kernel."""
        if kernel not in _load(self._build, stem, defines, self._kernels).kernels:
            raise EmulationError(f"{stem} has no kernel {kernel}")
        self._check_shape(kernel, RESIDENT_BLOCKS, block, 0)
        return RESIDENT_BLOCKS

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def address(self, array: NDArray[Any]) -> int:
        """Where an array begins."""
        return int(array.view(np.ndarray).ctypes.data)

    def upload(self, array: NDArray[Any], arrived: Any = None) -> Any:
        """A copy of an array of the host; nobody hears of its parts."""
        return self.xp.asarray(array.copy())

    def _check_shape(self, kernel: str, grid: int, block: int, shared_bytes: int) -> None:
        if not 1 <= grid <= MAX_BLOCKS:
            raise EmulationError(f"{kernel}: {grid} blocks; a device takes 1 … {MAX_BLOCKS}")
        if not LANES <= block <= MAX_THREADS or block % LANES:
            raise EmulationError(f"{kernel}: blocks of {block} threads; ours are multiples of 32 up to 1024")
        if shared_bytes > self.shared_bytes:
            raise EmulationError(f"{kernel}: {shared_bytes} bytes of shared memory; there are {self.shared_bytes}")


@dataclass(frozen=True, slots=True)
class Loaded:
    library: ctypes.CDLL
    kernels: dict[str, Kernel]


@cache
def _pointers(count: int) -> Any:
    """The type of so many of them, of which ctypes makes a new one each time: a class, for the collector to find."""
    return ctypes.c_void_p * count


LIBRARIES: list[ctypes.CDLL] = []


def release_threads() -> None:
    """Give back the stacks that kernels keep for the most threads they have had; nothing may be running."""
    for library in LIBRARIES:
        library.release_threads()


@cache
def _load(build: Build, stem: str, defines: Defines, kernels: Path) -> Loaded:
    text = host_text(stem, defines, kernels)
    LIBRARIES.append(ctypes.CDLL(str(build.library(text, stem))))
    return Loaded(LIBRARIES[-1], kernels_of(text))


def _checked(kernel: Kernel, arguments: tuple[Any, ...], defines: dict[str, int]) -> list[NDArray[Any]]:
    """What each argument's bytes are: a scalar's own, an array's address."""
    if len(arguments) != len(kernel.parameters):
        raise EmulationError(f"{kernel.name} takes {len(kernel.parameters)} arguments, not {len(arguments)}")
    values = []
    for place, (parameter, argument) in enumerate(zip(kernel.parameters, arguments, strict=True)):
        if wrong := _why_wrong(parameter, argument, defines):
            raise EmulationError(f"{kernel.name}, argument {place} ({parameter.text}): {wrong}")
        value = argument.ctypes.data if parameter.is_pointer else argument
        values.append(np.array([value], np.uint64 if parameter.is_pointer else argument.dtype))
    return values


def _why_wrong(parameter: Parameter, argument: Any, defines: dict[str, int]) -> str | None:
    if not parameter.is_pointer:
        dtype = _dtype_of(parameter, defines)
        fits = isinstance(argument, np.generic) and argument.dtype == dtype
        return None if fits else f"{type(argument).__name__} instead of {dtype}"
    if not isinstance(argument, np.ndarray):
        return f"{type(argument).__name__} instead of an array"
    if not argument.flags.c_contiguous:
        return "not contiguous"
    if not parameter.is_const and not argument.flags.writeable:
        return "must not be written"
    if parameter.element in PACKED:
        bytes_each = PACKED[parameter.element]
        fits = argument.ctypes.data % bytes_each == argument.nbytes % bytes_each == 0
        return None if fits else f"not a whole number of {bytes_each} bytes at a multiple of {bytes_each}"
    dtype = _dtype_of(parameter, defines)
    return None if argument.dtype == dtype else f"{argument.dtype} instead of an array of {dtype}"


def _dtype_of(parameter: Parameter, defines: dict[str, int]) -> np.dtype[Any]:
    element = parameter.element
    if element in WIDTHS:
        element = "u64" if defines.get(WIDTHS[element]) == 64 else "u32"
    if element not in ELEMENTS:
        raise EmulationError(f"no dtype is known for {element!r}")
    return np.dtype(ELEMENTS[element])

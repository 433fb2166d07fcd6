"""Every kernel file compiles for every generation of GPUs, with every set of defines that an algorithm launches."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from emulate import triple_cases, truss_cases
from emulate.emulated_cases import RECORDS, define_sets, needs_compiler
from emulate.emulator import HERE, Defines, pasted_lines
from wedgewise.algorithms._contract import Algorithm
from wedgewise.machine import gpu

PACKAGE = "nvidia-cuda-nvrtc"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
STEMS = tuple(sorted(path.stem for path in gpu.KERNEL_FOLDER.glob("*.cu")))
OFFSETS: tuple[Defines, ...] = ((("OFFSET_BITS", 32),), (("OFFSET_BITS", 64),))
BROKEN = 'extern "C" __global__ void broken(unsigned* values) { values[0] = missing; }'
CARELESS = 'extern "C" __global__ void careless(unsigned* values) { int unused; values[0] = 1; }'


def library_path() -> Path | None:
    """Where the package keeps the compiler."""
    try:
        kept = files(PACKAGE) or []
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in kept if file.name.startswith("libnvrtc.so")), None)


pytestmark = pytest.mark.skipif(
    library_path() is None and "CI" not in os.environ, reason=f"{PACKAGE} is not installed: kernels are not compiled"
)


@cache
def nvrtc() -> ctypes.CDLL:
    path = library_path()
    assert path is not None, f"{PACKAGE} must be installed here"
    return ctypes.CDLL(str(path))


def compile_for(architecture: str, text: str) -> tuple[bool, str]:
    """Whether a text compiles, and all that the compiler says about it."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    created = library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None)
    assert created == 0
    try:
        options = (b"-std=c++17", b"--gpu-architecture=" + architecture.encode())
        failed = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        return failed == 0, log.value.decode()
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@pytest.mark.parametrize(("text", "compiles", "says"), [(BROKEN, False, "undefined"), (CARELESS, True, "never")])
def test_errors_and_warnings_are_seen(text: str, compiles: bool, says: str) -> None:
    succeeded, log = compile_for(ARCHITECTURES[0], text)
    assert succeeded == compiles
    assert says in log


def builds() -> list[Any]:
    """Every file for every generation, the oldest and the newest with unlike widths of offsets; the others are deep."""
    ends = (ARCHITECTURES[0], ARCHITECTURES[-1])
    widths = dict(zip((*ends, *ARCHITECTURES[1:-1]), cycle(OFFSETS), strict=False))
    return [
        pytest.param(stem, architecture, widths[architecture], marks=() if architecture in ends else pytest.mark.deep)
        for stem, architecture in product(STEMS, ARCHITECTURES)
    ]


@pytest.mark.compiled  # no line of the host
@pytest.mark.parametrize(("stem", "architecture", "defines"), builds())
def test_files_compile_without_a_warning(stem: str, architecture: str, defines: Defines) -> None:
    assert compile_for(architecture, gpu.kernel_text(stem, defines)) == (True, "")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_the_emulator_is_held_to_compiles_without_a_warning(architecture: str) -> None:
    assert compile_for(architecture, "\n".join(pasted_lines(HERE / "primitives.cu", set()))) == (True, "")


LAUNCHED: dict[str, tuple[Callable[[str], frozenset[tuple[str, Defines]]], dict[str, Algorithm]]] = {
    "graphs": (define_sets, RECORDS),
    "trusses": (truss_cases.define_sets, truss_cases.RECORDS),
    "triples": (triple_cases.define_sets, triple_cases.RECORDS),
}


@pytest.mark.deep
@needs_compiler
@pytest.mark.parametrize(
    ("kind", "algorithm"), [(kind, name) for kind, (_, records) in LAUNCHED.items() for name in records]
)
def test_every_launched_set_of_defines_compiles_without_a_warning(kind: str, algorithm: str) -> None:
    """For the oldest and the newest generation in turn: what they take differs by file, which all of them compile."""
    launched_by, _ = LAUNCHED[kind]
    generations = cycle((ARCHITECTURES[0], ARCHITECTURES[-1]))
    for (stem, defines), architecture in zip(sorted(launched_by(algorithm)), generations, strict=False):
        assert compile_for(architecture, gpu.kernel_text(stem, defines)) == (True, ""), (stem, defines)

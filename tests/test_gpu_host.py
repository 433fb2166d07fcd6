"""What is said where there is no GPU, and the kernel text that is compiled: no device is needed for either."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType
from typing import Any

import pytest

import wedgewise as ww
from wedgewise.errors import DeviceError, MissingDependencyError
from wedgewise.machine import gpu

TRIANGLE = [(0, 1), (1, 2), (2, 0)]


@pytest.fixture(autouse=True)
def forget_devices() -> Any:
    """Look for a device anew, before and after."""
    gpu.find_device.cache_clear()
    yield
    gpu.find_device.cache_clear()


def hide_cupy(monkeypatch: pytest.MonkeyPatch, error: ImportError) -> None:
    """Make importing CuPy fail."""
    real = builtins.__import__

    def importer(name: str, *args: Any, **more: Any) -> Any:
        if name == "cupy":
            raise error
        return real(name, *args, **more)

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(builtins, "__import__", importer)


def test_without_cupy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_cupy(monkeypatch, ModuleNotFoundError("No module named 'cupy'", name="cupy"))
    with pytest.raises(MissingDependencyError, match=r"wedgewise\[cuda13\]"):
        ww.count(TRIANGLE, device="cuda")
    assert "needs CuPy" in str(gpu.why_no_device())


def test_a_broken_cupy_is_told_from_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_cupy(monkeypatch, ImportError("libcublas is missing"))
    with pytest.raises(DeviceError, match="cannot be imported: libcublas is missing"):
        gpu.find_device()


@pytest.mark.parametrize("devices", [0, None])
def test_cupy_without_a_device(devices: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusal(RuntimeError):
        pass

    def count_devices() -> int:
        if devices is None:
            raise Refusal("the driver is too old")
        return devices

    fake: Any = ModuleType("cupy")
    fake.cuda = ModuleType("cuda")
    fake.cuda.runtime = ModuleType("runtime")
    fake.cuda.runtime.CUDARuntimeError = Refusal
    fake.cuda.runtime.getDeviceCount = count_devices
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(DeviceError, match=r"device='cpu' needs none"):
        gpu.find_device()


def test_a_question_that_no_gpu_algorithm_answers_names_those_that_do() -> None:
    with pytest.raises(
        ww.errors.PreconditionError, match=r"keystone on cuda does not compute triangles.*keystone on cpu"
    ):
        ww.explain("triangles", TRIANGLE, device="cuda")


@pytest.mark.parametrize("stem", sorted(path.stem for path in gpu.KERNEL_FOLDER.glob("*.cu")))
def test_kernel_text_is_one_piece_with_its_defines(stem: str) -> None:
    text = gpu.kernel_text(stem, (("OFFSET_BITS", 64),))
    assert text.startswith("#define OFFSET_BITS 64\n")
    assert '#include "common/' not in text
    assert text.count("#define WARP ") == 1

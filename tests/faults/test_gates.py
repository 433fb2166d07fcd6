"""Whatever fails at its n-th call, n = 0, 1, 2, …: the right answer or an error of ours, and nothing is left behind."""

from __future__ import annotations

import gc
import itertools
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulate.copying import EmulatedGpu, install
from emulate.emulator import COMPILER
from gates import GATES, Fault, installed
from journeys import JOURNEYS, Journey, make_inputs

from wedgewise.errors import DeviceError, MemoryLimitError, MissingFileError, StorageError, WedgewiseError

ARRAY_BYTES = 64  # smaller arrays are numbers
STAGES = (
    "read",
    "clean",
    "orient",
    "plan",
    "count",
    "truss",
    "reduce",
    "answer",
    "verify",
    "list",
    "write",
    "partition",
)
NAMES_STAGE = re.compile(rf"({'|'.join(STAGES)}): memory ran out \(.*\); .*`wedgewise partition`", re.DOTALL)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU for everybody who looks for one, where it can be emulated."""
    if COMPILER is not None:
        install(EmulatedGpu(), monkeypatch)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journeys") / "inputs"
    make_inputs(folder)
    return folder


class Traveller:
    """Goes on one journey again and again, each time in a fresh copy of the inputs, and looks at what it leaves."""

    def __init__(self, journey: Journey, inputs: Path, folder: Path) -> None:
        self.journey = journey
        self.inputs = inputs
        self.folder = folder
        self.expected: Any = None
        self.made: dict[str, bytes] = {}
        for _ in range(2):  # the first time modules and kernels are loaded
            self.pack()
            self.expected = journey.go(folder)
        self.made = self.outputs()

    def pack(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.inputs, self.folder)

    def outputs(self) -> dict[str, bytes]:
        """What is there that was not there before, and is no state of a store."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
            and not (self.inputs / path.relative_to(self.folder)).exists()
            and "store" not in path.parts
        }

    def fail(self, fault: Fault) -> tuple[int, str | None]:
        """One journey with a fault: how often it failed on the way, and what was said."""
        self.pack()
        said = None
        threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
        with installed(fault, array_bytes=ARRAY_BYTES) as passed:
            try:
                found = self.journey.go(self.folder)
                assert found == self.expected, "a wrong answer"
            except WedgewiseError as error:
                said = str(error)
                check_error(error, fault)
        if len(os.listdir("/proc/self/fd")) != files:
            gc.collect()
        assert threading.active_count() == threads, "a thread is left"
        assert len(os.listdir("/proc/self/fd")) == files, "a file is left open"
        self.check_leftovers(whole=said is None)
        return passed.failed, said

    def check_leftovers(self, *, whole: bool) -> None:
        outputs = self.outputs()
        assert not [name for name in outputs if name.endswith(".tmp") or "/." in f"/{name}"], "a temporary file is left"
        if whole or not (self.folder / "made").is_dir():
            lines = b"" if self.journey.name == "append" else None
            wrong = [name for name in outputs if outputs[name] not in (self.made[name], lines)]
            assert not wrong, f"not whole: {wrong}"
        if self.journey.stores or not whole:
            with installed():
                assert self.journey.go(self.folder) == self.expected, "the same journey does not go on"


def check_error(error: WedgewiseError, fault: Fault) -> None:
    """That the error fits what failed, and says where."""
    if fault.gate.startswith(("memory", "executor")):
        assert isinstance(error, MemoryLimitError)
        assert NAMES_STAGE.match(str(error)) or "Arrow could not allocate" in str(error), f"{error} names no stage"
    elif fault.gate.startswith("launch"):
        assert isinstance(error, DeviceError)
        assert "Emulated GPU" in str(error)
    else:
        assert isinstance(error, (StorageError, MissingFileError))
        assert re.search(r"graph\.|store|made", str(error)), f"{error} names no file"


def faults(gate: str, *, always: bool, numbers: Iterator[int]) -> Iterator[Fault]:
    return (Fault(gate, number, always) for number in numbers)


@pytest.mark.deep
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda journey: journey.name)
def test_every_call_fails_once_and_always(journey: Journey, inputs: Path, tmp_path: Path) -> None:
    if journey.device and COMPILER is None:
        pytest.skip("g++ is not installed")
    traveller = Traveller(journey, inputs, tmp_path / "here")
    for gate, always in itertools.product(GATES, (False, True)):
        for fault in faults(gate, always=always, numbers=itertools.count()):
            failed, _said = traveller.fail(fault)
            if failed == 0:
                break

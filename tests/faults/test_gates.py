"""Whatever fails at its n-th call, n = 0, 1, 2, …: the right answer or a `WedgewiseError`; nothing is left."""

from __future__ import annotations

import gc
import itertools
import os
import re
import shutil
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulate.copying import EmulatedGpu, install
from emulate.emulator import COMPILER
from helpers.failing_calls import GATES, Fault, installed

import wedgewise as ww
from faults.journeys import JOURNEYS, Journey, make_inputs
from wedgewise.errors import (
    ClusterError,
    DeviceError,
    DeviceMemoryError,
    MemoryLimitError,
    MissingFileError,
    StorageError,
    WedgewiseError,
)

ARRAY_BYTES = 256  # smaller arrays are numbers, and what there is by vertex
LEAK_BYTES = 1 << 16
STORES = ("store", "begun")
IN_NOBODYS_WAY = ("store.lock", "store.building")  # where they cannot be removed
OPEN_FILES = "/proc/self/fd"
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


@pytest.fixture(scope="module", autouse=True)
def only_what_is_new_is_collected() -> None:
    """Where memory runs out, garbage is collected: each time, not all that tests have made before."""
    gc.collect()
    gc.freeze()


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
        self.leaves_no_trace = False
        for _ in range(2):  # the first time modules and kernels are loaded
            self.pack()
            self.expected = journey.go(folder)
        self.made = self.outputs()
        self.leaves_no_trace = not self.made and not journey.stores
        self.pack()
        with installed(array_bytes=ARRAY_BYTES) as passed:
            journey.go(folder)
        self.gates = [gate for gate in GATES if passed.times[gate]]

    def pack(self) -> None:
        """Begin anew, where a journey leaves anything behind."""
        if self.leaves_no_trace:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.inputs, self.folder)

    def outputs(self) -> dict[str, bytes]:
        """What is there that was not there before, and is no state of a store."""
        names = [path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file()]
        return {
            str(name): (self.folder / name).read_bytes()
            for name in names
            if not (self.inputs / name).exists() and name.parts[0] not in STORES
        }

    def fail(self, fault: Fault) -> int:
        """One journey with a fault; how often that was met on the way."""
        self.pack()
        arrived = False
        files = open_files()
        with installed(fault, array_bytes=ARRAY_BYTES) as passed:
            try:
                found = self.journey.go(self.folder)
                assert found == self.expected, "a wrong answer"
                arrived = True
            except WedgewiseError as error:
                check_error(error, fault)
        if open_files() > files:
            gc.collect()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("wedgewise")], (
            "a thread is left"
        )
        assert open_files() <= files, "a file is left open"
        self.check_leftovers(arrived, fault)
        return passed.failed

    def check_leftovers(self, arrived: bool, fault: Fault) -> None:
        outputs = self.outputs()
        if fault.gate == "storage.unlink":
            outputs = {name: data for name, data in outputs.items() if Path(name).name not in IN_NOBODYS_WAY}
        assert not [name for name in outputs if name.endswith(".tmp") or "/." in f"/{name}"], "a temporary file is left"
        if arrived or not (self.folder / "made").is_dir():
            lines = b"" if self.journey.name == "append" else None
            wrong = [name for name in outputs if outputs[name] not in (self.made[name], lines)]
            assert not wrong, f"not whole: {wrong}"
        if self.journey.stores or not arrived:
            with installed():
                assert self.journey.go(self.folder) == self.expected, "the same journey does not go on"


def open_files() -> int:
    """How many files this process has open, where the system tells."""
    return len(os.listdir(OPEN_FILES)) if os.path.isdir(OPEN_FILES) else 0


def journey_of(name: str) -> Journey:
    return next(journey for journey in JOURNEYS if journey.name == name)


def check_error(error: WedgewiseError, fault: Fault) -> None:
    """That the error fits what failed, and says where."""
    if fault.gate == "memory.device":
        assert isinstance(error, DeviceMemoryError)
        assert "Emulated GPU" in str(error)
    elif fault.gate.startswith(("memory", "executor")):
        assert isinstance(error, MemoryLimitError)
        assert NAMES_STAGE.search(str(error)) or "Arrow could not allocate" in str(error), f"{error} names no stage"
    elif fault.gate.startswith("launch"):
        assert isinstance(error, DeviceError)
        assert "Emulated GPU" in str(error)
    else:
        is_unseen = isinstance(error, ClusterError) and "cannot see the store" in str(error)
        assert is_unseen or isinstance(error, (StorageError, MissingFileError))
        assert re.search(r"graph\.|store|begun|made", str(error)), f"{error} names no file"


def doubling() -> Iterator[int]:
    """0, 1, 2, 4, 8, …"""
    return itertools.chain((0,), (1 << power for power in itertools.count()))


def fail_until_success(traveller: Traveller, gate: str, numbers: Iterator[int], *, always: bool) -> int:
    """Let a gate fail at every number until a journey does not come so far; how many journeys failed on the way."""
    for attempts, number in enumerate(numbers):
        if traveller.fail(Fault(gate, number, always)) == 0:
            return attempts
    raise AssertionError("numbers have no end")


@pytest.mark.parametrize("name", ["read txt.gz", "partition", "count by workers"])
def test_calls_fail_on_the_way(name: str, inputs: Path, tmp_path: Path) -> None:
    traveller = Traveller(journey_of(name), inputs, tmp_path / "here")
    failed = {gate: fail_until_success(traveller, gate, doubling(), always=False) for gate in traveller.gates}
    assert failed["storage.open"] > 0
    assert failed["memory.array"] > 1


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
@pytest.mark.usefixtures("device")
def test_a_listing_goes_on_in_smaller_pieces_then_on_the_host(inputs: Path) -> None:
    graph = ww.Graph(inputs / "graph.txt", device="cuda")
    graph.on_device()
    with installed() as passed:
        expected = ww.run("list_triangles", graph, device="cuda")
    last = passed.times["memory.device"] - 1
    for always, device in ((False, "cuda"), (True, "cpu")):
        with installed(Fault("memory.device", last, always)) as passed:
            found = ww.run("list_triangles", graph, device="cuda")
        assert passed.failed
        assert (found.device, found.answer.tolist()) == (device, expected.answer.tolist())


@pytest.mark.deep
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda journey: journey.name)
def test_every_call_fails_once_and_always(journey: Journey, inputs: Path, tmp_path: Path) -> None:
    if journey.device and COMPILER is None:
        pytest.skip("g++ is not installed")
    traveller = Traveller(journey, inputs, tmp_path / "here")
    for gate in traveller.gates:
        fail_until_success(traveller, gate, itertools.count(step=journey.step), always=False)
        fail_until_success(traveller, gate, doubling(), always=True)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["report", "count a store"])
def test_failures_leave_no_memory_behind(name: str, inputs: Path, tmp_path: Path) -> None:
    traveller = Traveller(journey_of(name), inputs, tmp_path / "here")

    def held() -> int:
        for gate in traveller.gates:
            fail_until_success(traveller, gate, doubling(), always=False)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        held()
        before = held()
        grown = held() - before
    finally:
        tracemalloc.stop()
    assert grown < LEAK_BYTES, f"{grown:,} bytes are left"


def test_a_gate_lets_the_named_passing_fail(tmp_path: Path) -> None:
    def fsyncs(fault: Fault) -> list[int]:
        failed = []
        with installed(fault), open(tmp_path / "file", "wb") as file:
            for number in range(4):
                try:
                    os.fsync(file.fileno())
                except OSError:
                    failed.append(number)
        return failed

    assert fsyncs(Fault("storage.fsync", 2)) == [2]
    assert fsyncs(Fault("storage.fsync", 2, always=True)) == [2, 3]
    assert fsyncs(Fault("storage.read", 0)) == []


def test_arrays_are_refused_whoever_makes_them() -> None:
    def sums() -> None:
        ones = np.ones(100)
        (ones + ones).astype(np.int64)

    with installed(array_bytes=ARRAY_BYTES) as passed:
        sums()
    assert passed.times["memory.array"] == 3
    for number in range(3):
        with installed(Fault("memory.array", number), array_bytes=ARRAY_BYTES), pytest.raises(MemoryError):
            sums()

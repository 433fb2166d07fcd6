"""The emulated device itself: it computes what CUDA does, and each kind of fault is seen."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from emulate.emulated_cases import RECORDS, needs_compiler
from emulate.emulator import (
    HERE,
    MAX_BLOCKS,
    RESIDENT_BLOCKS,
    EmulatedDevice,
    EmulationError,
    PoisonedNumpy,
    default_folder,
    kernels_of,
    pasted_lines,
)
from emulate.sanitized import FAULT_BLOCKS, FAULT_THREADS, Job, launch_fault, run_apart
from wedgewise.machine import gpu

pytestmark = needs_compiler
POISON_WORD = 0xA5A5A5A5
ADDRESS, THREAD = "address,undefined", "thread"


@pytest.fixture
def device() -> EmulatedDevice:
    return EmulatedDevice(kernels=HERE)


def test_kernels_are_loaded_from_a_folder_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    default_folder.cache_clear()
    folder = default_folder()
    assert (folder.parent, folder.stat().st_mode & 0o777) == (tmp_path, 0o700)
    default_folder.cache_clear()
    assert default_folder() == folder
    folder.chmod(0o777)
    default_folder.cache_clear()
    fresh = default_folder()
    assert fresh != folder
    assert fresh.stat().st_mode & 0o777 == 0o700
    default_folder.cache_clear()


def test_the_primitives(device: EmulatedDevice) -> None:
    lanes, words = np.arange(32, dtype=np.uint32), np.zeros((9, 32), np.uint32)
    device.launch("primitives", "show_warp", 1, 32, (words,))
    shuffled, down, up, xor, segment, odd, bits, first, half = words
    assert shuffled.tolist() == [7] * 32
    assert down.tolist() == [*range(3, 32), 29, 30, 31]
    assert up.tolist() == [0, 1, 2, *range(29)]
    assert xor.tolist() == (lanes ^ 5).tolist()
    assert segment.tolist() == (lanes // 8 * 8 + 2).tolist()
    assert set(odd.tolist()) == {0xAAAAAAAA}
    assert bits.tolist() == [bin(lane).count("1") + 32 for lane in lanes.tolist()]
    assert first.tolist() == [int(lane & -lane).bit_length() for lane in lanes.astype(int)]
    assert half.tolist() == [sum(range(16))] * 16 + [sum(range(16, 32))] * 16


def test_atomics_and_wide_loads(device: EmulatedDevice) -> None:
    quads = np.arange(64, dtype=np.uint32).reshape(-1, 4)
    small, large = np.array([0, 0, 0, 0, 300, 300], np.uint32), np.array([0, 0, 2**50], np.uint64)
    device.launch("primitives", "show_atomics", 2, 64, (quads, np.uint32(len(quads)), small, large))
    assert small.tolist() == [128, 2**32 - 1, 63, 1, 300 - 2 * 128, 3]
    assert large.tolist() == [sum(range(64)) * 2**32, 63 + 2**40, 2**40]


@pytest.mark.parametrize("block", [32, 96])
def test_blocks_of_a_cooperative_launch_read_what_others_wrote(device: EmulatedDevice, block: int) -> None:
    blocks = device.resident_blocks("primitives", "sum_in_rounds", block)
    sums, arrivals = np.arange(blocks * block, dtype=np.uint32), np.zeros(1, np.uint32)
    expected = np.cumsum(sums).tolist()
    device.launch("primitives", "sum_in_rounds", blocks, block, (sums, arrivals), cooperative=True)
    assert sums.tolist() == expected


def test_blocks_of_a_cooperative_launch_have_their_own_memory_and_barriers(device: EmulatedDevice) -> None:
    counts, arrivals = np.zeros(RESIDENT_BLOCKS, np.uint32), np.zeros(1, np.uint32)
    arguments = (counts, arrivals)
    device.launch(
        "primitives", "count_blocks_apart", RESIDENT_BLOCKS, 64, arguments, shared_bytes=2 * 4, cooperative=True
    )
    assert counts.tolist() == [64, 63, 62]


def test_a_sound_kernel_finds_the_sum(device: EmulatedDevice) -> None:
    values, found = launch_fault(device, "sound")
    assert values == list(range(len(values)))
    assert found == [FAULT_BLOCKS * (2 * sum(range(FAULT_THREADS)) + FAULT_THREADS), 0]


def test_a_missing_barrier_shows_in_what_is_read(device: EmulatedDevice) -> None:
    _, found = launch_fault(device, "miss_barrier")
    assert found[0] != FAULT_BLOCKS * sum(range(FAULT_THREADS))


def test_shared_memory_is_poisoned_in_every_block(device: EmulatedDevice) -> None:
    values, _ = launch_fault(device, "read_before_write")
    assert values[:FAULT_BLOCKS] == [POISON_WORD] * FAULT_BLOCKS


def test_fresh_arrays_are_poisoned() -> None:
    assert PoisonedNumpy.empty((2, 2), np.uint32).tolist() == [[POISON_WORD] * 2] * 2
    assert PoisonedNumpy.empty_like(np.zeros(1, np.uint64)).tolist() == [POISON_WORD << 32 | POISON_WORD]
    with pytest.raises(EmulationError, match="one number"):
        PoisonedNumpy.repeat([1, 2], [1, 2])  # type: ignore[arg-type]


@pytest.mark.compiled  # no line of the host
@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            "leave_before_barrier",
            "threads [0-9]+ wait at __syncthreads, 0 at meet_grid, 0 at warp operations, [13] have",
        ),
        ("shuffle_in_branch", "(32|96) at warp operations, (32|96) have returned"),
        ("never_end", "block 0: a thread does not come to an end"),
        ("disagree_on_mask", "at __syncwarp with mask ffffffff, thread 0 at __syncwarp with mask 0001ffff"),
    ],
)
def test_threads_that_do_not_meet_end_the_launch(
    device: EmulatedDevice, kernel: str, message: str, cooperative: bool
) -> None:
    with pytest.raises(EmulationError, match=message):
        launch_fault(device, kernel, cooperative)
    assert launch_fault(device, "sound", cooperative)[1][0] > 0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("leave_block_before_grid", "all blocks: of 192 threads 0 wait at __syncthreads, 128 at meet_grid, 0 at warp"),
        ("leave_thread_before_grid", "191 at meet_grid, 0 at warp operations, 1 have returned"),
        ("meet_at_two_places", "1 wait at __syncthreads, 191 at meet_grid"),
        ("count_from_one", "meet_grid counts arrivals from 1 on"),
        ("never_end_meeting", "a thread does not come to an end"),
    ],
)
def test_blocks_that_do_not_meet_end_the_launch(device: EmulatedDevice, kernel: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        launch_fault(device, kernel, cooperative=True)
    assert launch_fault(device, "sound_grid", cooperative=True)[1] == [sum(range(FAULT_BLOCKS)) * 2 + FAULT_BLOCKS, 0]


def test_a_missing_meeting_shows_in_what_is_read(device: EmulatedDevice) -> None:
    _, found = launch_fault(device, "miss_grid", cooperative=True)
    assert found[0] != sum(range(FAULT_BLOCKS))


def test_blocks_that_run_one_after_the_other_cannot_meet(device: EmulatedDevice) -> None:
    with pytest.raises(EmulationError, match=r"sound_grid, block 0: .* not cooperative"):
        launch_fault(device, "sound_grid")


def test_blocks_that_are_not_all_there_at_once_cannot_meet(device: EmulatedDevice) -> None:
    arguments = (np.zeros(4 * 32, np.uint32), np.zeros(1, np.uint32))
    with pytest.raises(EmulationError, match="4 blocks that wait for each other; 3 fit at once"):
        device.launch("primitives", "sum_in_rounds", RESIDENT_BLOCKS + 1, 32, arguments, cooperative=True)
    with pytest.raises(EmulationError, match="primitives has no kernel sum_at_once"):
        device.resident_blocks("primitives", "sum_at_once", 32)
    with pytest.raises(EmulationError, match="blocks of 33 threads"):
        device.resident_blocks("primitives", "sum_in_rounds", 33)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(4, np.uint64), np.uint32(4), np.zeros(2, np.uint64)), "uint64 instead of an array of uint32"),
        (([0] * 4, np.uint32(4), np.zeros(2, np.uint64)), "list instead of an array"),
        ((np.zeros(4, np.uint32), 4, np.zeros(2, np.uint64)), "int instead of uint32"),
        ((np.zeros(4, np.uint32), np.uint64(4), np.zeros(2, np.uint64)), "uint64 instead of uint32"),
        ((np.zeros(8, np.uint32)[::2], np.uint32(4), np.zeros(2, np.uint64)), "not contiguous"),
        ((np.frombuffer(bytes(16), np.uint32), np.uint32(4), np.zeros(2, np.uint64)), "must not be written"),
        ((np.zeros(4, np.uint32), np.uint32(4)), "takes 3 arguments, not 2"),
    ],
)
def test_arguments_of_another_kind_are_refused(
    device: EmulatedDevice, arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(EmulationError, match=message):
        device.launch("faulty", "overrun_array", 1, 32, arguments)


@pytest.mark.parametrize(
    ("grid", "block", "shared_bytes"), [(0, 32, 0), (MAX_BLOCKS + 1, 32, 0), (1, 33, 0), (1, 2048, 0), (1, 32, 1025)]
)
def test_launches_that_no_device_takes_are_refused(grid: int, block: int, shared_bytes: int) -> None:
    device = EmulatedDevice(kernels=HERE, shared_bytes=1024)
    arguments = (np.zeros(4, np.uint32), np.uint32(4), np.zeros(2, np.uint64))
    with pytest.raises(EmulationError):
        device.launch("faulty", "sound", grid, block, arguments, shared_bytes=shared_bytes)


@pytest.mark.parametrize("stem", sorted({path.stem for path in gpu.KERNEL_FOLDER.glob("*.cu")}))
def test_what_runs_is_what_a_gpu_compiles(stem: str) -> None:
    emulated = [line for line in pasted_lines(gpu.KERNEL_FOLDER / f"{stem}.cu", set()) if line[:6] != "#line "]
    compiled = gpu.kernel_text(stem).splitlines()
    assert list(filter(None, emulated)) == list(filter(None, compiled))
    assert len(kernels_of(gpu.kernel_text(stem))) == len(re.findall(r"__global__", gpu.kernel_text(stem)))


def test_every_algorithm_has_kernels_of_its_stem() -> None:
    assert set(RECORDS) <= {path.stem for path in gpu.KERNEL_FOLDER.glob("*.cu")}


@pytest.mark.deep
@pytest.mark.parametrize("sanitizer", [ADDRESS, THREAD])
@pytest.mark.parametrize(("kernel", "cooperative"), [("sound", False), ("sound", True), ("sound_grid", True)])
def test_a_sound_kernel_is_not_reported(sanitizer: str, kernel: str, cooperative: bool) -> None:
    assert run_apart(Job(sanitizer, fault=kernel, cooperative=cooperative)) == ""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("sanitizer", "fault", "report"),
    [
        (ADDRESS, "overrun_array", "heap-buffer-overflow"),
        (ADDRESS, "overrun_dynamic", "heap-buffer-overflow"),
        (ADDRESS, "overrun_table", "heap-buffer-overflow"),
        (ADDRESS, "shift_too_far", "shift exponent"),
        (ADDRESS, "load_between", "misaligned address"),
        (THREAD, "miss_barrier", "data race"),
        (THREAD, "miss_second_barrier", "data race"),
        (THREAD, "trust_shuffle", "data race"),
        (THREAD, "add_without_atomics", "data race"),
    ],
)
def test_faults_are_reported_where_they_are(sanitizer: str, fault: str, report: str) -> None:
    reported = run_apart(Job(sanitizer, fault=fault))
    assert report in reported
    assert "faulty.cu:" in reported


@pytest.mark.deep
@pytest.mark.parametrize(
    "fault", ["miss_grid", "miss_second_grid", "trust_atomics_between_blocks", "trust_barrier_of_block", "miss_barrier"]
)
def test_races_between_and_in_blocks_that_run_at_once_are_reported(fault: str) -> None:
    reported = run_apart(Job(THREAD, fault=fault, cooperative=True))
    assert "data race" in reported
    assert "faulty.cu:" in reported

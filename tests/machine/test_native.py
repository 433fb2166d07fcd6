"""Stored machine code: what is written comes back, anything else is refused, and arrays must be what kernels expect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from wedgewise.machine.jit import JIT_DISABLED, helper, kernel, taken_apart
from wedgewise.machine.native import DamagedObjectError, NativeObject, compile_object
from wedgewise.machine.primitives import IDS_AT_ONCE, count_common_bits, match_ids, popcount, prefetch

TITLE = "kernels-0/f.kernel"
STORED = NativeObject("f", ("*u4", "i8"), 2, b"\x7fELF code")


def test_a_stored_object_comes_back() -> None:
    assert NativeObject.from_bytes(STORED.to_bytes(TITLE), TITLE) == STORED


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[1:],
        lambda data: data[:-1],
        lambda data: data[:30],
        lambda data: data.replace(b"code", b"c0de"),
        lambda data: data.replace(b'"results"', b'"resulte"'),
        lambda data: data.replace(b"{", b"["),
    ],
)
def test_a_damaged_object_is_refused(damage: Any) -> None:
    with pytest.raises(DamagedObjectError):
        NativeObject.from_bytes(damage(STORED.to_bytes(TITLE)), TITLE)


def test_every_single_bit_counts() -> None:
    whole = STORED.to_bytes(TITLE)
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedObjectError):
            NativeObject.from_bytes(bytes(flipped), TITLE)


def test_an_object_is_that_of_its_own_file_alone() -> None:
    with pytest.raises(DamagedObjectError, match=r"kernels-0/g\.kernel is kernels-0/f\.kernel under another name"):
        NativeObject.from_bytes(STORED.to_bytes(TITLE), "kernels-0/g.kernel")


@kernel
def add_up(values: Any, first: int, scale: Any) -> Any:
    """A kernel of its own for these tests."""
    total = np.uint64(0)
    for i in range(np.uint64(first), np.uint64(len(values))):
        prefetch(values, i)
        total += np.uint64(values[i]) * np.uint64(scale)
    return total, np.uint64(popcount(total))


@kernel
def common(a: Any, b: Any, blocks: int) -> Any:
    """AND + POPCNT of two arrays from their second block on."""
    return np.uint64(count_common_bits(a, np.uint64(8), b, np.uint64(0), np.uint64(blocks)))


@kernel
def matched(ids: Any, begin: int, count: int, block: int) -> Any:
    """Which ids of a block are among others of the same array."""
    return np.uint64(match_ids(ids, np.uint64(begin), np.uint64(count), np.uint64(block)))


@kernel
def clear(values: Any) -> None:
    """A kernel without a result."""
    for i in range(len(values)):
        values[i] = 0


@pytest.mark.compiled
def test_a_kernel_of_no_file_is_compiled() -> None:
    typed: dict[str, Any] = {"__name__": "typed.in"}
    exec("def doubled(number):\n    return number + number\n", typed)
    assert kernel(typed["doubled"])(21) == 42


class Summed(NamedTuple):
    """Values with what each counts; with None, each counts one."""

    values: Any
    weights: Any


class Sums(NamedTuple):
    """Records within a record."""

    factor: int
    first: Summed
    second: Summed


@helper
def weight_at(weights, at):  # type: ignore[no-untyped-def]
    """What a value counts."""
    if weights is None:
        return np.uint64(1)
    return np.uint64(weights[at])


@helper
def sum_of(summed):  # type: ignore[no-untyped-def]
    """The sum of one record."""
    total = np.uint64(0)
    for i in range(np.uint64(len(summed.values))):
        total += np.uint64(summed.values[i]) * weight_at(summed.weights, i)
    return total


@kernel
def sum_both(sums: Sums, extra: Any, also: int) -> Any:
    """Both sums, the second as often as the factor says, and what else is there."""
    swapped = Sums(sums.factor, sums.second, sums.first)
    total = np.uint64(also)
    if extra is not None:
        total += np.uint64(extra[0])
    return sum_of(swapped.second) + total, sum_of(swapped.first) * np.uint64(sums.factor)


def test_records_are_taken_apart_and_none_selects_what_is_compiled() -> None:
    values, weights = np.arange(4, dtype=np.uint32), np.arange(4, dtype=np.uint8)
    plain, weighted = Summed(values, None), Summed(values, weights)
    assert [int(x) for x in sum_both(Sums(3, plain, weighted), None, 1)] == [7, 42]
    assert [int(x) for x in sum_both(Sums(3, weighted, plain), np.array([5], np.uint64), 1)] == [20, 18]
    assert [int(x) for x in sum_both(Sums(2, plain, plain), None, 0)] == [6, 12]
    if not JIT_DISABLED:
        assert len(sum_both.signatures) == 3


def test_kernels_take_arrays_and_numbers_and_return_numbers() -> None:
    values = np.arange(10, dtype=np.uint32)
    assert tuple(int(x) for x in add_up(values, 2, np.uint8(3))) == (132, 2)
    assert clear(values) is None
    assert values.tolist() == [0] * 10


@pytest.mark.parametrize("blocks", [0, 1, 2, 7, 9])
def test_common_bits_are_counted_in_any_number_of_blocks(blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    a, b = rng.integers(0, 2**63, (2, 80), dtype=np.uint64)
    expected = sum(int(x & y).bit_count() for x, y in zip(a[8:].tolist(), b.tolist(), strict=False))
    whole = sum(int(x & y).bit_count() for x, y in zip(a[8 : 8 + 8 * blocks].tolist(), b.tolist(), strict=False))
    assert int(common(a, b, blocks)) == whole <= expected


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (0, 1), (3, 8), (0, 30), (17, 40), (39, 40)])
def test_ids_are_matched_with_a_block_wherever_they_are(begin: int, end: int) -> None:
    ids = np.random.default_rng(end).integers(0, 40, 40, dtype=np.uint32)
    ids[5], ids[38] = 2**32 - 1, 2**32 - 1
    for block in range(len(ids) - IDS_AT_ONCE + 1):
        expected = np.isin(ids[block : block + IDS_AT_ONCE], ids[begin:end])
        assert int(matched(ids, begin, end - begin, block)) == sum(1 << int(lane) for lane in np.flatnonzero(expected))


def test_an_argument_taken_apart_once_is_that_of_every_call() -> None:
    sums = taken_apart(Sums(3, Summed(np.arange(4, dtype=np.uint32), None), Summed(np.ones(2, np.uint32), None)))
    for also in (0, 1):
        assert [int(x) for x in sum_both(sums, None, also)] == [6 + also, 6]


@pytest.mark.skipif(JIT_DISABLED, reason="plain Python accepts strided arrays")
def test_strided_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="C-contiguous"):
        clear(np.zeros(20, np.uint32)[::2])
    with pytest.raises(TypeError, match="C-contiguous"):
        taken_apart(Summed(np.zeros(20, np.uint32)[::2], None))


FIRST_LOADS = """
import sys, threading
from pathlib import Path
import numpy as np
from wedgewise.machine.native import NativeObject, callable_of
from wedgewise.machine.threads import run_tasks
code = NativeObject.from_bytes(Path(sys.argv[1]).read_bytes(), "f")
values, together = np.arange(10, dtype=np.uint32), threading.Barrier(16)
def load_and_call(_task, _worker):
    together.wait()
    return tuple(int(x) for x in callable_of(code, "f")(values, 2, np.uint8(3)))
print(set(run_tasks(load_and_call, 16, 16)))
"""


@pytest.mark.compiled
def test_many_threads_load_the_first_machine_code_at_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(compile_object(add_up, ("*u4", "i8", "u1")).to_bytes("f"))
    ran = subprocess.run([sys.executable, "-c", FIRST_LOADS, str(tmp_path / "f")], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "{(132, 2)}\n"), ran.stderr

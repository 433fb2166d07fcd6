"""Arrays that somebody writes to while they are read: an answer or a `WedgewiseError`, and never an end by a signal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulate.copying import EmulatedGpu, LyingThere, install
from emulate.emulator import EmulatedDevice

import wedgewise as ww
from attack.changing import KINDS
from wedgewise.errors import InputError
from wedgewise.prepare import attributes, clean
from wedgewise.read import graph_data
from wedgewise.read.objects import arrays
from wedgewise.stages import EdgeList, Origin

TESTS = Path(__file__).resolve().parent.parent
ORIGIN = Origin("<array>", "array")
BAD = (2**31 - 1, 5_000)  # far behind all ids, and just behind them


def run_attack(*arguments: str) -> list[str]:
    found = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", "-m", "attack.changing", *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env={**os.environ, "PYTHONPATH": found}
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    return ended.stdout.splitlines()


@pytest.mark.compiled
def test_nothing_but_answers_and_errors_while_arrays_change() -> None:
    assert len(run_attack("0.05")) == len(KINDS)


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.parametrize("half", [0, 1])
def test_nothing_but_answers_and_errors_for_longer(half: int) -> None:
    kinds = [*KINDS][half::2]
    assert len(run_attack("1", *kinds)) == len(kinds)


def spoiling(really: Callable[..., Any], pairs: Any, bad: int) -> Callable[..., Any]:
    """The same function, behind which the pairs are others."""

    def call(*arguments: Any, **options: Any) -> Any:
        found = really(*arguments, **options)
        pairs[len(pairs) // 2 :] = bad
        return found

    return call


def cleaned(pairs: Any, way: str) -> Any:
    """The simple graph by kernels, by arrays, or by the code of a device."""
    if way == "device":
        return clean.clean_on_device(EdgeList(pairs[:0], ORIGIN), pairs, EmulatedDevice())
    return clean.clean(EdgeList(pairs, ORIGIN), 2, compiled=way == "kernels")


def drawn(spread: int = 1) -> Any:
    return np.random.default_rng(3).integers(0, 4_000, (20_000, 2)) * spread


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("way", ["kernels", "arrays", "device"])
def test_ids_are_checked_by_the_pass_that_uses_them(
    way: str, dtype: str, bad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = drawn().astype(dtype)
    monkeypatch.setattr(clean, "_slots", spoiling(clean._slots, pairs, bad))
    with pytest.raises(InputError, match=r"<array>: the pairs changed while they were read; pass a copy"):
        cleaned(pairs, way)


@pytest.mark.parametrize("bad", [0, 3, 2**62, 2**63 - 1])
@pytest.mark.parametrize("way", ["kernels", "arrays", "device"])
def test_labels_that_are_gone_lead_nowhere(way: str, bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = drawn(10**12) + 7
    monkeypatch.setattr(clean, "_checked_labels", spoiling(clean._checked_labels, pairs, bad))
    try:
        graph = cleaned(pairs, way)
    except InputError:
        return
    assert int(graph.slot_keys.max() >> np.uint64(32)) < graph.n == len(graph.labels)
    assert int(graph.slot_keys.astype(np.uint32).max()) < graph.n


def test_a_wrong_pair_that_was_mended_meanwhile_is_no_other_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = drawn()
    monkeypatch.setattr(clean, "_largest", lambda *_: 2**64 - 1)
    with pytest.raises(InputError, match="the pairs changed"):
        clean.clean(EdgeList(pairs, ORIGIN), 1)
    monkeypatch.setattr(clean, "_largest", lambda *_: 7_000)
    with pytest.raises(InputError, match="the pairs changed"):
        clean.clean(EdgeList(pairs, ORIGIN, vertices=5_000), 1)
    monkeypatch.setattr(arrays, "first_outside", lambda _: (4, 2))
    with pytest.raises(InputError, match="the pairs changed"):
        ww.Graph(pairs)


@pytest.mark.parametrize("directed", [False, True])
def test_edges_without_a_pair_and_weights_without_a_value_are_told(
    directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, weights = drawn(), np.ones(20_000)
    with monkeypatch.context() as patch:
        patch.setattr(graph_data, "clean", spoiling(clean.clean, pairs, 1))
        with pytest.raises(InputError, match="the pairs changed"):
            ww.Graph(pairs, weights=weights, directed=directed)
    monkeypatch.setattr(attributes, "_locate_sides", spoiling(attributes._locate_sides, weights, np.nan))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the weights changed"):
        ww.Graph(drawn(), weights=weights, directed=directed)


@pytest.mark.parametrize("by_dlpack", [False, True])
@pytest.mark.parametrize("bad", BAD)
def test_arrays_of_a_device_that_change_are_refused(bad: int, by_dlpack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    device = EmulatedGpu()
    install(device, monkeypatch)
    given = LyingThere(drawn().astype(np.uint32), by_dlpack=by_dlpack)
    monkeypatch.setattr(clean, "_slots", spoiling(clean._slots, given.on_device, bad))
    with pytest.raises(InputError, match="<device array>: the pairs changed"):
        ww.Graph(given, device="cuda")
    monkeypatch.undo()
    install(device, monkeypatch)
    assert ww.Graph(LyingThere(drawn(), by_dlpack=by_dlpack), device="cuda").m == ww.Graph(drawn(), device="cpu").m

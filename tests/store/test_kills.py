"""A hundred kills at random moments, from pairs to the answers of stores cut either way: each run goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.graphs import fixture_pairs

from wedgewise.store.open import open_store
from wedgewise.write.edges import write_edges

KILLS, SEED = 100, 11
STEPS = """
import os, random, shutil, signal, sys, time
from contextlib import redirect_stdout, suppress
from pathlib import Path
from wedgewise.cli import main

kills, moments = int(sys.argv[1]), random.Random(int(sys.argv[2]))
SCHEMES = ("rectilinear", "hashed")
COMMANDS = {
    "store/manifest.json": ["partition", "graph.bel32", "store", "--parts", "4", "--scheme"],
    "count.txt": ["count", "store"],
    "triangles.csv": ["triangles", "store", "--output", "triangles.csv"],
    "supports.csv": ["support", "store", "--output", "supports.csv"],
    "truss.csv": ["truss", "store", "--k", "8", "--output", "truss.csv"],
}

def take_steps(scheme):
    # what is not there yet, one command after the other
    for product, words in COMMANDS.items():
        if Path(product).exists():
            continue
        sys.argv = ["wedgewise", *words, *([scheme] if "partition" in words else [])]
        with open("out", "w") as out, redirect_stdout(out), suppress(SystemExit):
            main()
        if product == "count.txt":
            os.rename("out", product)

def ends_in_a_child(scheme, seconds):
    # the steps in a process of their own, killed after some time; whether they came to their end
    child = os.fork()
    if child == 0:
        code = 1
        try:
            take_steps(scheme)
            code = 0 if len(products()) == len(COMMANDS) else 2
        finally:
            os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in ((0,) if seconds is None else (0, -signal.SIGKILL)), code
    return code == 0

def products():
    return {product: Path(product).read_bytes() for product in COMMANDS if Path(product).exists()}

def clear():
    shutil.rmtree("store", ignore_errors=True)
    for product in COMMANDS:
        Path(product).unlink(missing_ok=True)

expected, whole = {}, {}
for scheme in SCHEMES:
    take_steps(scheme)  # loads all kernels
    expected[scheme] = products()
    assert len(expected[scheme]) == len(COMMANDS)
    clear()
    begin = time.perf_counter()
    assert ends_in_a_child(scheme, None)
    whole[scheme] = time.perf_counter() - begin
    assert products() == expected[scheme]
    clear()
stages, scheme, other = set(), *SCHEMES
for _ in range(kills):
    ends_in_a_child(scheme, moments.uniform(0, whole[scheme] / 2))
    found = products()
    stages.add(len(found))
    assert found.items() <= expected[scheme].items(), sorted(found)
    if len(found) == len(COMMANDS):
        clear()
        scheme, other = other, scheme
for _ in range(2):  # what a kill has left behind a whole file goes with the same command, given again
    assert ends_in_a_child(scheme, None)
    assert products() == expected[scheme]
    for product in list(COMMANDS)[1:]:
        os.unlink(product)
assert len(stages) == len(COMMANDS) + 1, stages  # killed before and after every one of them
"""


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that has loaded everything forks")
def test_a_hundred_kills_from_pairs_to_trusses(tmp_path: Path) -> None:
    write_edges(fixture_pairs("jazz"), tmp_path / "graph.bel32")
    command = [sys.executable, "-c", STEPS, str(KILLS), str(SEED)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    store = open_store(tmp_path / "store")
    locks = {f"{question}.lock" for question in ("count", "triangles", "edge_support", "k_truss")}
    left = {path.name for path in store.folder.iterdir()}
    assert left - locks <= {"manifest.json", "store.building", "store.lock", *(item.file for item in store.files())}

"""Compiled kernels: their cache, their signatures, and the processes and threads that share them.

Everything runs in child processes on a copy of the package with a cache of its own, compiled once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import wedgewise

SOURCES = Path(wedgewise.__file__).parent
PATIENCE = 600


@dataclass(frozen=True)
class Installation:
    """A copy of the package and the cache of its kernels."""

    sources: Path
    cache: str

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python on this copy; the child must succeed."""
        set_here = {"PYTHONPATH": str(self.sources), "WEDGEWISE_CACHE": self.cache, **environment}
        result = subprocess.run(
            [sys.executable, "-W", "error", *arguments],
            env={**os.environ, **set_here},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result


def copy_package(folder: Path) -> Installation:
    sources = folder / "src"
    shutil.copytree(SOURCES, sources / "wedgewise", ignore=shutil.ignore_patterns("__pycache__"))
    return Installation(sources, str(folder / "cache"))


@pytest.fixture(scope="session")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A copy whose kernels were never compiled."""
    return copy_package(tmp_path_factory.mktemp("installation"))


@pytest.fixture(scope="session")
def first_warming(cold: Installation) -> subprocess.CompletedProcess[str]:
    """What ``doctor --warm`` does on a fresh machine."""
    return cold.python("-m", "wedgewise", "doctor", "--warm", "--json")


@pytest.fixture
def warm(cold: Installation, first_warming: subprocess.CompletedProcess[str]) -> Installation:
    """The copy with all kernels in its cache."""
    assert first_warming.returncode == 0
    return cold


@pytest.mark.deep
@pytest.mark.compiled
def test_first_use_says_what_it_compiles(first_warming: subprocess.CompletedProcess[str]) -> None:
    assert "compiling _text_kernel.parse_range for this machine (once)\n" in first_warming.stderr
    record = json.loads(first_warming.stdout)
    assert record["warmed"]["compiled"] == record["kernels_cached"] == first_warming.stderr.count("compiling")


@pytest.mark.deep
@pytest.mark.compiled
def test_second_use_compiles_nothing(warm: Installation) -> None:
    again = warm.python("-m", "wedgewise", "doctor", "--warm", "--json")
    assert again.stderr == ""
    assert json.loads(again.stdout)["warmed"]["compiled"] == 0


WARM_PROCESS = """
import sys
import wedgewise as ww
from wedgewise.generate import kronecker
from wedgewise.machine.jit import on_compile
compiled = []
on_compile(compiled.append)
count = ww.count(kronecker(11).pairs(), algorithm="keystone")
print(count, bool(compiled), "numba" in sys.modules, "llvmlite" in sys.modules)
"""


@pytest.mark.deep
@pytest.mark.compiled
def test_a_warm_process_runs_kernels_without_numba(warm: Installation) -> None:
    count, *found = warm.python("-c", WARM_PROCESS).stdout.split()
    assert int(count) > 0
    assert found == ["False", "False", "True"]


@pytest.mark.deep
@pytest.mark.compiled
def test_a_damaged_kernel_is_compiled_again_and_never_run(warm: Installation) -> None:
    stored = list(Path(warm.cache).glob("*/wedgewise.algorithms.cpu._keystone*.kernel"))
    right = warm.python("-c", WARM_PROCESS).stdout.split()[0]
    assert stored
    for damage in (lambda data: data[:-9] + b"x" + data[-8:], lambda data: b""):
        for path in stored:
            path.write_bytes(damage(path.read_bytes()))
        assert warm.python("-c", WARM_PROCESS).stdout.split()[:2] == [right, "True"]
        assert warm.python("-c", WARM_PROCESS).stdout.split()[:2] == [right, "False"]


@pytest.mark.compiled
def test_an_edited_helper_in_another_file_is_compiled_again(tmp_path: Path) -> None:
    copy = copy_package(tmp_path)
    machine = copy.sources / "wedgewise" / "machine"
    (machine / "stale_kernel.py").write_text(
        "from wedgewise.machine.jit import kernel, on_compile\n"
        "from wedgewise.machine.stale_helper import step\n"
        "@kernel\n"
        "def advance(x):\n"
        "    return step(x)\n"
        "compiled = []\n"
        "on_compile(compiled.append)\n"
        "print(advance(40), len(compiled))\n"
    )
    helper = "from wedgewise.machine.jit import helper\n@helper\ndef step(x):\n    return x + {}\n"
    seen = []
    for day, amount in enumerate((1, 1, 1, 2), start=1):
        (machine / "stale_neighbour.py").write_text(f'"""Of day {day // 3}."""\n')
        (machine / "stale_helper.py").write_text(helper.format(amount))
        os.utime(machine / "stale_helper.py", (86_400 * day,) * 2)  # Python sees no edit within a second
        seen.append(copy.python("-m", "wedgewise.machine.stale_kernel").stdout.split())
    assert seen == [["41", "1"], ["41", "0"], ["41", "0"], ["42", "1"]]  # an edit beside it, on day 3, changes nothing


COUNT_COMPILED = """
import wedgewise as ww
from wedgewise.generate import complete
print(ww.count(complete(40).pairs(), algorithm="forward"))
"""


@pytest.mark.compiled
@pytest.mark.parametrize(
    "environment",
    [
        {"WEDGEWISE_CACHE": "/dev/null/cache"},
        {"WEDGEWISE_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/dev/null"},
    ],
    ids=["cache", "home"],
)
def test_counts_where_nothing_is_writable(cold: Installation, environment: dict[str, str]) -> None:
    assert cold.python("-c", COUNT_COMPILED, **environment).stdout == "9880\n"


MIXED_WORKLOAD = """
import io, json, sys
from collections import Counter
import numpy as np
import wedgewise as ww
from wedgewise.answer.questions import QUESTIONS
from wedgewise.generate import kronecker
from wedgewise.machine.jit import NONE, CpuKernel
from wedgewise.read.text import KERNEL_BYTES

pairs = kronecker(11).pairs()
read_only = pairs.copy()
read_only.flags.writeable = False
text = b"".join(b"%d %d\\n" % (u, v) for u, v in pairs.tolist())
text *= -(-KERNEL_BYTES // len(text))
sources = [io.BytesIO(text), pairs, read_only, pairs.astype(np.int64), pairs.astype(np.uint32), pairs[::2],
           pairs.astype(np.uint64) * 10**12]
counts = set()
for source in sources:
    graph = ww.Graph(source)
    for order in ("degree", "core", "id"):
        for threads in (1, 2, 5):
            for record in ww.algorithms():
                if record.compiled and record.device == "cpu" and "count" in record.answers:
                    result = ww.run("count", graph, algorithm=record.name, order=order, threads=threads)
                    counts.add((graph.m, result.answer))
    for question in QUESTIONS.values():
        ww.run(question.name, graph, **{name: 5 for name in question.defaults if name == "k"})
    for order in ("degree", "id"):
        for algorithm in ("peel", "eager"):
            ww.truss_summary(graph, algorithm=algorithm, threads=2)
            ww.run("max_truss", graph, algorithm=algorithm, order=order, threads=2)
weighted = ww.Graph(pairs, directed=True, weights=np.ones(len(pairs)))
for wanted in (False, True):
    ww.clustering(weighted, weighted=wanted, algorithm="keystone")
def most_alike(signatures):  # of those that are None in the same places, which select what is compiled
    return max(Counter(tuple(kind == NONE for kind in kinds) for kinds in signatures).values(), default=0)
signatures = {
    f"{module.__name__}.{name}": most_alike(value.signatures)
    for module in list(sys.modules.values())
    if getattr(module, "__name__", "").startswith("wedgewise")
    for name, value in vars(module).items()
    if isinstance(value, CpuKernel) and not value.inline
}
print(json.dumps([signatures, len(counts)]))
"""


@pytest.mark.deep
@pytest.mark.compiled
def test_kernels_have_at_most_two_signatures(warm: Installation) -> None:
    signatures, distinct_counts = json.loads(warm.python("-c", MIXED_WORKLOAD).stdout)
    assert distinct_counts == 2  # the whole graph, and every second pair of it
    assert sum(1 for number in signatures.values() if number) >= 5
    assert {name: number for name, number in signatures.items() if number > 2} == {}


SMALL_GRAPH = """
import sys
import wedgewise as ww
from wedgewise.datasets import bundled
assert ww.count([(0, 1), (1, 2), (2, 0)]) == 1
assert ww.count(bundled("email-Enron")) == 727_044
print(sorted({"numba", "scipy", "pyarrow", "rich", "typer"} & set(sys.modules)))
"""


@pytest.mark.compiled
def test_a_small_graph_never_waits_for_numba(cold: Installation) -> None:
    assert cold.python("-c", SMALL_GRAPH).stdout == "[]\n"


FORK_AFTER_USE = """
import os
import wedgewise as ww
from wedgewise.generate import complete
pairs = complete(60).pairs()
def count():
    return ww.count(ww.Graph(pairs), algorithm="forward", threads=2)
assert count() == 34220
child = os.fork()
if child == 0:
    os._exit(0 if count() == 34220 else 1)
assert os.waitpid(child, 0)[1] == 0
assert count() == 34220
print("done")
"""


@pytest.mark.deep
@pytest.mark.compiled
def test_a_forked_child_counts(warm: Installation) -> None:
    assert warm.python("-c", FORK_AFTER_USE).stdout == "done\n"


TWO_THREADS = """
from concurrent.futures import ThreadPoolExecutor
import wedgewise as ww
from wedgewise.generate import kronecker
pairs = kronecker(12).pairs()
shared = ww.Graph(pairs)
def count(source, algorithm):
    return ww.count(source, algorithm=algorithm, threads=2)
with ThreadPoolExecutor(4) as pool:
    jobs = [pool.submit(count, source, name) for source in (shared, pairs) for name in ("forward", "keystone") * 3]
    print(len({job.result() for job in jobs}), jobs[0].result() == ww.count(pairs, algorithm="reference"))
"""


@pytest.mark.deep
@pytest.mark.compiled
def test_callers_in_several_threads_agree(warm: Installation) -> None:
    assert warm.python("-c", TWO_THREADS).stdout == "1 True\n"


def test_the_package_runs_uninstalled(cold: Installation) -> None:
    record = json.loads(cold.python("-m", "wedgewise", "doctor", "--json").stdout)
    assert record["package"] == str(cold.sources / "wedgewise")

"""``wedgewise doctor``: what this installation has, and the kernels compiled ahead of their first use."""

from __future__ import annotations

import io
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import wedgewise
from wedgewise.cli.console import say
from wedgewise.datasets import BUNDLED, bundled
from wedgewise.errors import MissingFileError
from wedgewise.generate import kronecker
from wedgewise.generate.stream import EdgeStream
from wedgewise.graph import Graph
from wedgewise.machine import gpu, hardware, jit
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.clean import clean
from wedgewise.prepare.orient import ORDERS, arcs_of_edges, orient
from wedgewise.read import read_edges
from wedgewise.read.text import KERNEL_BYTES
from wedgewise.report.objects import Object
from wedgewise.report.text import bytes_text, facts_text
from wedgewise.run import outofcore, sliced_answer
from wedgewise.stages.label_table import LabelTable
from wedgewise.stages.labels import TextLabels
from wedgewise.store import build

REQUIRED = ("numpy", "numba", "typer", "rich")
EXTRAS = {
    "arrow": "pyarrow",
    "cluster": "distributed",
    "cuda13": "cupy-cuda13x",
    "cuda12": "cupy-cuda12x",
    "networkx": "networkx",
    "report": "matplotlib",
    "scipy": "scipy",
    "zstd": "zstandard",
}
WARM_SCALE = 12
WARM_QUESTIONS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {  # those that take all kernels of an answer
    "count": (("count", {}),),
    "triangles": (("triangles", {}),),
    "edge_support": (("edge_support", {}),),
    "list_triangles": (("list_triangles", {}),),
    "weighted_triangles": (("clustering", {"weighted": False}), ("clustering", {"weighted": True})),
    "trussness": (("truss_summary", {}),),
    "k_truss": (("truss_components", {"k": 5}),),
    "max_truss": (("max_truss", {}),),
}


def examine(warmed: Object | None) -> Object:
    """Everything that a report of trouble should say."""
    folder = None if jit.JIT_DISABLED else jit.cache_folder()
    return {
        "version": wedgewise.__version__,
        "package": str(Path(wedgewise.__file__).parent),
        "python": f"{platform.python_version()} ({sys.executable})",
        "packages": {name: version_of(name) for name in REQUIRED},
        "extras": {extra: version_of(name) for extra, name in EXTRAS.items()},
        "machine": hardware.look().description,
        "threads": hardware.usable_threads(),
        "memory_bytes": hardware.available_memory(),
        "gpu": gpu.why_no_device() or gpu.find_device().name,
        "jit": not jit.JIT_DISABLED,
        "cache": None if folder is None else str(folder),
        "kernels_cached": 0 if folder is None else len(list(folder.glob(f"*{jit.OBJECT_SUFFIX}"))),
        "bundled": {name: _is_there(name) for name in BUNDLED},
        "warmed": warmed,
    }


def version_of(package: str) -> str | None:
    """The installed version, found without importing the package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _is_there(name: str) -> bool:
    try:
        return bundled(name).is_file()
    except MissingFileError:
        return False


def warm_kernels() -> Object:
    """Take a small graph through every compiled stage and algorithm, all at once, saying what is compiled."""
    compiled: list[str] = []

    def listen(line: str) -> None:
        compiled.append(line)
        say(line)

    begin = time.perf_counter()
    jit.on_compile(listen)
    try:
        work = list(_work_of_all_kernels())
        run_tasks(lambda task, _worker: work[task](), len(work), len(work))  # who waits for a kernel keeps no core busy
    finally:
        jit.on_compile(None)
    return {"compiled": len(compiled), "seconds": time.perf_counter() - begin}


def _work_of_all_kernels() -> Iterator[Callable[[], object]]:
    """Calls that take all kernels together, those that take longest to compile first."""
    edge_list = kronecker(WARM_SCALE)
    graph = Graph(edge_list.pairs())
    carrying = Graph(graph.edges, directed=True, weights=np.ones(graph.m))  # that carries directions and weights
    for order in ORDERS:
        graph.oriented(order)  # by arrays: nothing is to wait for the kernels of preparation
    for record in wedgewise.algorithms():
        if record.compiled and record.device == "cpu":
            for computed in record.answers:
                asked = carrying if computed == "weighted_triangles" else graph
                for question, details in WARM_QUESTIONS[computed]:
                    yield partial(wedgewise.run, question, asked, algorithm=record.name, device="cpu", **details)
            for knob in record.knobs:
                for choice in knob.choices:
                    question = WARM_QUESTIONS[next(iter(record.answers))][0][0]
                    yield partial(
                        wedgewise.run, question, graph, algorithm=record.name, device="cpu", knobs={knob.name: choice}
                    )
            if record.triples:
                yield partial(outofcore.load_count_kernels, record.name)
            for computed in record.sliced:
                yield partial(sliced_answer.load_slice_kernels, record.name, computed)
    yield partial(_prepare, edge_list)
    yield build.load_build_kernels
    yield partial(_count_store, graph)
    jit.work_by_arrays(jit.COMPILE_SECONDS)  # small as the graph is, all that follows is worth its kernels


def _prepare(edges: EdgeStream) -> None:
    """Read, clean and orient by kernels."""
    lines = b"".join(b"%d %d\n" % (u, v * 10**12) for u, v in edges.pairs().tolist())
    edge_list = read_edges(io.BytesIO(lines * -(-KERNEL_BYTES // len(lines))))
    simple = clean(edge_list, 1, compiled=True)
    for order in ORDERS:
        oriented = orient(simple, order, compiled=True)
        arcs_of_edges(simple, oriented, compiled=True)
    labels = TextLabels.of(["label"])
    LabelTable(labels, compiled=True).find(*labels.spans())


def _count_store(graph: Graph) -> None:
    """Cut a graph into blocks on disk, and count them."""
    with tempfile.TemporaryDirectory(prefix="wedgewise-") as folder:
        wedgewise.count(build.write_store(graph, Path(folder, "store"), parts=2))


def doctor_text(record: Object) -> str:
    """The examination as a person reads it."""
    facts = [
        ("python", record["python"]),
        *((name, version or "MISSING") for name, version in record["packages"].items()),
        *(
            (f"[{extra}]", version or f'not installed: pip install "wedgewise[{extra}]"')
            for extra, version in record["extras"].items()
        ),
        ("machine", record["machine"]),
        ("memory", f"{bytes_text(record['memory_bytes'])} available"),
        ("gpu", record["gpu"]),
        ("kernels", _kernels_text(record)),
        *(
            (name, "bundled" if there else "MISSING: reinstall from a wheel")
            for name, there in record["bundled"].items()
        ),
    ]
    return f"wedgewise {record['version']} in {record['package']}\n\n{facts_text(facts)}"


def _kernels_text(record: dict[str, Any]) -> str:
    if not record["jit"]:
        return "run as plain Python: NUMBA_DISABLE_JIT is set"
    if record["cache"] is None:
        return f"no folder is writable by you alone: compiled in every process; name one with {jit.CACHE_VARIABLE}"
    state = f"{record['kernels_cached']} compiled in {record['cache']}"
    if record["warmed"] is not None:
        return f"{state} ({record['warmed']['compiled']} of them now, in {record['warmed']['seconds']:.1f} s)"
    return state if record["kernels_cached"] else f"{state}; `wedgewise doctor --warm` compiles them ahead"

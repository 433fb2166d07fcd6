"""What memory has no room for is cut into blocks and answered from disk, as in memory; nothing is left of them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import answer_of, interrupt, invoke
from helpers.failing_calls import Fault, installed
from helpers.graphs import TRUTHS, fixture_pairs
from helpers.stores import names_in, peak_of

import wedgewise as ww
from wedgewise import generate
from wedgewise.answer import cut, fit
from wedgewise.answer.source import GraphFile
from wedgewise.errors import DeviceMemoryError, FormatError, InputError, MemoryLimitError, StorageError
from wedgewise.machine import hardware
from wedgewise.machine.budget import MIN_LIMIT
from wedgewise.machine.files import process_lock
from wedgewise.run import choose
from wedgewise.run.outofcore import Counting
from wedgewise.run.request import Request
from wedgewise.stages import limits
from wedgewise.store.open import open_store
from wedgewise.write.edges import write_edges

PAIRS = fixture_pairs("karate") * 7 + 5  # labels that are no numbers of vertices
KARATE = TRUTHS["karate"]["triangles"]
QUESTIONS: dict[str, dict[str, Any]] = {"count": {}, "triangles": {}, "edge_support": {}, "k_truss": {"k": 4}}
ASK = Request()
LITTLE = 1000
FROM_DISK = "from disk, because memory is too small: "


@pytest.fixture(autouse=True)
def passing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the system for each test."""
    folder = tmp_path / "passing"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file fits into memory, as far as its beginning tells."""
    monkeypatch.setattr(fit, "SMALL_BYTES", 0)
    monkeypatch.setattr(fit, "cleaning_bytes", lambda n, pairs, threads: 1 << 62)
    monkeypatch.setattr(fit, "_allowed", lambda limit: LITTLE)


@pytest.fixture
def not_oriented(monkeypatch: pytest.MonkeyPatch) -> None:
    """No graph can be oriented in memory."""
    monkeypatch.setattr(choose, "orient_bytes", lambda n, m, threads: 10**15)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_edges(PAIRS, tmp_path / "graph.txt")
    return tmp_path / "graph.txt"


def asked(question: str, source: Any, **how: Any) -> ww.Result:
    return ww.run(question, source, threads=2, **QUESTIONS[question], **how)


def hold_alike(found: ww.Result, expected: ww.Result) -> None:
    """Two results say the same of the same graph, bit by bit."""
    if isinstance(expected.answer, ww.Truss):
        assert found.answer.k == expected.answer.k
        assert found.answer.edges.tobytes() == expected.answer.edges.tobytes()
    elif isinstance(expected.answer, np.ndarray):
        assert found.answer.dtype == expected.answer.dtype
        assert found.answer.tobytes() == expected.answer.tobytes()
    else:
        assert found.answer == expected.answer
    assert (found.n, found.m, found.cleaned) == (expected.n, expected.m, expected.cleaned)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("labels", ["{}", "v{}"], ids=["integers", "text"])
def test_chosen_columns_go_on_from_disk(tmp_path: Path, labels: str) -> None:
    path = tmp_path / "table.csv"
    rows = [f"9,{labels.format(u)},{labels.format(v)}\n" for u, v in PAIRS.tolist()]
    path.write_text("when,user,item\n" + "".join(rows))
    found = answer_of("count", str(path), "--source", "user", "--target", "item")
    assert found["answer"] == KARATE
    assert found["cleaned"]["columns"] == ["user", "item"]
    assert found["cleaned"]["ignored_columns"] == ["when"]
    assert found["plan"]["reasons"][0].startswith(FROM_DISK)


@pytest.mark.parametrize(
    ("suffix", "question"), [("npy", "count"), ("bel32", "triangles"), *(("txt", name) for name in QUESTIONS)]
)
def test_a_file_that_is_foreseen_not_to_fit(
    tmp_path: Path, passing: Path, request: pytest.FixtureRequest, suffix: str, question: str
) -> None:
    path = tmp_path / f"graph.{suffix}"
    write_edges(PAIRS, path)
    expected = asked(question, path)
    request.getfixturevalue("short")
    found = asked(question, path)
    hold_alike(found, expected)
    first, second, *_ = found.plan.reasons
    assert first.startswith(f"{FROM_DISK}{path}: about 7")
    assert first.endswith(f"bytes in memory and {LITTLE:,} are allowed")
    assert second.startswith("1 blocks, ")
    assert f"bytes of disk, in {passing}/wedgewise-" in second
    assert next(iter(found.seconds)) == "cut"
    assert names_in(passing) == []


def test_nothing_is_known_of_compressed_files_but_within_a_limit(
    tmp_path: Path, file: Path, request: pytest.FixtureRequest
) -> None:
    packed = tmp_path / "graph.txt.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    request.getfixturevalue("short")
    assert "from disk" not in str(asked("count", packed).plan)
    within = asked("count", packed, memory_limit=1 << 40)
    assert f"{packed}: about {os.path.getsize(packed):,} pairs, by its size" in within.plan.reasons[0]
    assert within.answer == KARATE


GRAPHS: dict[str, Callable[[], ww.Graph]] = {
    "integers": lambda: ww.Graph(PAIRS),
    "numbers, some without an edge": lambda: ww.Graph(fixture_pairs("karate"), n=50),
    "text": lambda: ww.Graph([(f"v{u}", f"v{v}") for u, v in PAIRS.tolist()]),
    "without leaves": lambda: ww.Graph(np.concatenate([PAIRS, [[5, 5], [12, 10**9]]]), drop_leaves=True),
}


@pytest.mark.parametrize(
    ("kind", "question"),
    [
        *((kind, "triangles") for kind in GRAPHS),
        *(("text", question) for question in QUESTIONS if question != "triangles"),
    ],
)
def test_a_graph_that_cannot_be_oriented(
    passing: Path, request: pytest.FixtureRequest, kind: str, question: str
) -> None:
    expected = asked(question, GRAPHS[kind]())
    request.getfixturevalue("not_oriented")
    graph = GRAPHS[kind]()
    found = asked(question, graph, memory_limit=1 << 34 if question == "count" else None)
    hold_alike(found, expected)
    reason = found.plan.reasons[0]
    assert reason.startswith(f"{FROM_DISK}orienting {graph.m:,} edges takes 1,000,000,000,000,000 bytes and ")
    assert reason.endswith(" are allowed")
    assert names_in(passing) == []


@pytest.mark.usefixtures("not_oriented")
def test_a_file_that_cannot_be_oriented_is_read_again(file: Path, passing: Path) -> None:
    found = asked("count", file, verify=True)
    assert (found.answer, found.verified) == (KARATE, "recounted by bbtc")
    assert found.plan.reasons[0].startswith(f"{FROM_DISK}orienting 78 edges takes")
    assert names_in(passing) == []


def test_memory_that_runs_out_on_the_way(file: Path, passing: Path) -> None:
    plain = file.with_suffix(".bel32")  # of which little is made while it is read
    write_edges(PAIRS, plain)
    stages = set()
    for path, behind in ((file, 0), *((plain, number) for number in (0, 1, 2, 4, 8, 16))):
        with installed(Fault("memory.array", behind), array_bytes=256) as passed:
            found = asked("count", path, algorithm="keystone")
        assert (found.answer, passed.failed) == (KARATE, 1)
        stages.add(found.plan.reasons[0].removeprefix(FROM_DISK).partition(":")[0])
        assert "memory ran out" in found.plan.reasons[0]
    assert {"read", "clean"} <= stages
    assert names_in(passing) == []


def test_the_way_down_is_told() -> None:
    full_gpu = DeviceMemoryError("A GPU", wanted=70, free=7)
    no_memory = MemoryLimitError("orienting takes 9 bytes; and 8 are allowed", "raise memory_limit")
    found = fit.too_little_memory(ASK, ww.Graph(PAIRS), no_memory, full_gpu)
    assert found.reasons == (
        "not on the GPU, which has too little memory: 70 bytes were asked for and 7 are free",
        "orienting takes 9 bytes; and 8 are allowed",
    )


def test_what_failed_is_given_back_first() -> None:
    """Whoever looks for room on disk finds the memory that the attempt had taken."""
    held: list[Any] = []

    class Large:
        def __init__(self) -> None:
            held.append(self)

        def __del__(self) -> None:
            held.append("given back")

    def work() -> int:
        large = Large()
        held.clear()
        raise MemoryError(f"no more behind {large}")

    with pytest.raises(MemoryError) as raised:
        work()
    fit.release_failed(raised.value)
    assert held == ["given back"]


@pytest.mark.usefixtures("not_oriented")
def test_refusals(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = r"^orienting 78 edges takes 1,000,000,000,000,000 bytes and [\d,]+ are allowed; raise memory_limit or "
    more = "use a machine with more memory"
    as_before: tuple[dict[str, Any], ...] = (
        {"memory_limit": MIN_LIMIT - 1},
        {"algorithm": "forward"},
        {"order": "core"},
    )
    for how in as_before:
        with pytest.raises(MemoryLimitError, match=f"{refused}{more}$"):
            ww.run("count", file, **how)
    for question in ("max_truss", "list_triangles"):
        others = (
            "count, transitivity, triangles, edge_support, k_truss, clustering, average_clustering and trussness "
            "can be answered from disk"
        )
        with pytest.raises(MemoryLimitError, match=f"{refused}{more}; {others}$"):
            ww.run(question, file)
    monkeypatch.setattr("wedgewise.store.build.SLOT_BYTES", 10**15)
    with pytest.raises(
        MemoryLimitError,
        match=rf"{refused}{more}; and answering from disk needs too much as well: [\d,]+ vertices take ",
    ):
        ww.count(file, memory_limit=MIN_LIMIT)


def test_a_limit_is_one_for_the_process_unless_that_holds_much_already(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limit_of(source: Any, held: int) -> int | None:
        monkeypatch.setattr("wedgewise.machine.hardware.resident_bytes", lambda: held)
        return fit.too_little_memory(Request(memory_limit=10**9), source, MemoryError(), None).limit

    path, graph = GraphFile(file), ww.Graph(PAIRS)
    assert limit_of(path, 10**8) == 10**9
    assert limit_of(path, 3 * 10**9) == 4 * 10**9
    assert limit_of(graph, 10**8) == 11 * 10**8


@pytest.mark.usefixtures("not_oriented")
@pytest.mark.parametrize("suffix", ["mtx", "metis", "npz", "bel", "npy", "parquet", "arrow"])
def test_every_format_goes_on_from_disk(tmp_path: Path, passing: Path, suffix: str) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / f"graph.{suffix}"
    write_edges(fixture_pairs("karate"), path)
    found = asked("count", path)
    assert found.answer == KARATE
    assert found.plan.reasons[0].startswith(FROM_DISK)
    assert names_in(passing) == []


@pytest.mark.usefixtures("short")
def test_a_disk_without_room_is_named(file: Path, passing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.store.build.DISK_BYTES", 10**15)
    with pytest.raises(StorageError, match=r"pairs may take [\d,]+ bytes of disk and [\d,]+ are free"):
        ww.count(file)
    assert names_in(passing) == []


@pytest.mark.usefixtures("short")
def test_the_plan_is_told_without_cutting(file: Path, passing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "write_store", None)
    for question, details in QUESTIONS.items():
        told = ww.explain(question, file, **details)
        assert (told.question, told.algorithm, told.n, told.m) == (question, "keystone", 0, 0)
        assert told.known is not None
        assert told.known.endswith(f" pairs, about, of {file}, which was not read")
        assert told.reasons[0].startswith(f"{FROM_DISK}{file}: ")
        assert f"cut into blocks in {passing}, which takes up to " in told.reasons[1]
        assert f"  graph     {told.known}\n" in str(told)
    shown = answer_of("explain", str(file))
    assert shown["known"] == told.known


@pytest.mark.usefixtures("not_oriented")
def test_the_plan_of_a_graph_knows_its_size() -> None:
    graph = ww.Graph(PAIRS)
    told = ww.explain("count", graph)
    assert (told.n, told.m, told.known) == (graph.n, graph.m, None)
    assert told.wedges > 0
    assert told.reasons[0].startswith(f"{FROM_DISK}orienting")


def ended_at(stage: str, error: BaseException) -> Callable[[str, int, int], None]:
    """Progress that ends the work when a stage is told of."""

    def progress(told: str, _done: int, _total: int) -> None:
        if told == stage:
            raise error

    return progress


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("stage", "error"),
    [("read", KeyboardInterrupt()), ("write", StorageError("a disk; mend it")), ("count", SystemExit(143))],
)
def test_nothing_is_left_of_ended_work(file: Path, passing: Path, stage: str, error: BaseException) -> None:
    with pytest.raises(type(error)):
        ww.count(file, progress=ended_at(stage, error))
    assert names_in(passing) == []


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("question", ["count", "k_truss"])
def test_ended_work_goes_on_from_its_folder(
    file: Path, tmp_path: Path, passing: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    work = tmp_path / "deep" / "work"
    with pytest.raises(KeyboardInterrupt):
        asked(question, file, work_folder=work, progress=ended_at("read", KeyboardInterrupt()))
    assert names_in(work) == []
    stage = "round 1" if question == "k_truss" else question
    with pytest.raises(KeyboardInterrupt):
        asked(question, file, work_folder=work, progress=ended_at(stage, KeyboardInterrupt()))
    (name,) = names_in(work)
    expected = asked(question, ww.read(file))
    with monkeypatch.context() as patch:
        patch.setattr(cut, "write_store", None)
        found = asked(question, file, work_folder=work)
    hold_alike(found, expected)
    assert found.plan.reasons[1].endswith(f"in {work}/{name}/store, which an earlier run has left")
    assert (names_in(work), names_in(passing)) == ([], [])


def put_another_file_of_equal_size_and_time(file: Path) -> None:
    """The graph without its first edge: another line stands there twice."""
    before, lines = file.stat(), file.read_bytes().splitlines(keepends=True)
    lines[0] = next(line for line in lines[1:] if len(line) == len(lines[0]))
    file.write_bytes(b"".join(lines))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.usefixtures("short")
def test_blocks_of_another_source_are_replaced(file: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"

    def leave(**how: Any) -> None:
        with pytest.raises(KeyboardInterrupt):
            ww.count(file, work_folder=work, progress=ended_at("count", KeyboardInterrupt()), **how)

    def was_there(**how: Any) -> bool:
        result = ww.run("count", file, work_folder=work, **how)
        assert result.answer == ww.count(ww.Graph(np.loadtxt(file, np.int64)))
        assert names_in(work) == []
        return "an earlier run" in result.plan.reasons[1]

    leave()
    assert was_there()
    leave()
    assert not was_there(resume=False)
    leave()
    assert not was_there(memory_limit=1 << 40)
    leave()
    write_edges(PAIRS[:60], file)
    assert not was_there()
    leave()
    put_another_file_of_equal_size_and_time(file)
    assert not was_there()
    leave()
    (folder,) = work.iterdir()
    (folder / cut.STORE / "block-0-0.heads.npy").unlink()
    assert not was_there()


@pytest.mark.usefixtures("not_oriented")
def test_a_graph_finds_its_blocks_by_its_edges(tmp_path: Path) -> None:
    work = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        ww.count(ww.Graph(PAIRS), work_folder=work, progress=ended_at("count", KeyboardInterrupt()))
    (folder,) = work.iterdir()
    kept = json.loads((folder / cut.NOTE).read_text())["name"]
    assert kept == open_store(folder / cut.STORE).manifest.fingerprint
    other = ww.run("count", ww.Graph(PAIRS[:60]), work_folder=work)
    assert "an earlier run" not in other.plan.reasons[1]
    again = ww.run("count", ww.Graph(PAIRS), work_folder=work)
    assert again.answer == KARATE
    assert "an earlier run" in again.plan.reasons[1]
    assert names_in(work) == []


@pytest.mark.usefixtures("short")
def test_one_process_at_a_time_has_a_work_folder(file: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        ww.count(file, work_folder=work, progress=ended_at("count", KeyboardInterrupt()))
    (folder,) = work.iterdir()
    with (
        process_lock(f"{folder}.lock", "wait"),
        pytest.raises(StorageError, match=r"process \d+ .*; wait until it has ended, or name another folder"),
    ):
        ww.count(file, work_folder=work)
    assert ww.count(file, work_folder=work) == KARATE


KILLED = """
import os, signal, sys
import wedgewise as ww
from wedgewise.answer import fit
from wedgewise.run import outofcore
fit.SMALL_BYTES = 0
fit._allowed = lambda limit: 1000
fit.cleaning_bytes = lambda n, pairs, threads: 1 << 62
outofcore.Counting.count = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
ww.count(sys.argv[1], work_folder=(sys.argv[2:] or [None])[0])
"""


@pytest.mark.usefixtures("short")
def test_a_killed_process_goes_on(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    died = subprocess.run([sys.executable, "-c", KILLED, str(file), str(work)], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert len(names_in(work)) == 2, "the blocks, and a lock that keeps nobody out"
    monkeypatch.setattr(cut, "write_store", None)
    assert ww.count(file, work_folder=work) == KARATE
    assert names_in(work) == []


@pytest.mark.usefixtures("short")
def test_what_a_kill_left_goes_with_the_next_question(file: Path, passing: Path) -> None:
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(file)],
        env={**os.environ, "TMPDIR": str(passing)},
        capture_output=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    (left,) = names_in(passing)
    assert (passing / left / "store").is_dir()
    assert stat.S_IMODE((passing / left).stat().st_mode) == 0o700
    (passing / "wedgewise-of-something-else").mkdir()
    (passing / "wedgewise-just-begun").mkdir()
    (passing / "wedgewise-just-begun" / cut.IN_USE).touch()
    (passing / "wedgewise-link").symlink_to(passing / left)
    used = passing / "wedgewise-in-use"
    used.mkdir()
    with process_lock(used / cut.IN_USE, "wait"):
        assert ww.count(file) == KARATE
        expected = ["wedgewise-in-use", "wedgewise-just-begun", "wedgewise-link", "wedgewise-of-something-else"]
        assert names_in(passing) == expected


@pytest.mark.usefixtures("short")
def test_nothing_is_removed_where_there_are_no_locks(
    file: Path, passing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wedgewise.machine.files._lock", lambda descriptor: False)
    (passing / "wedgewise-used").mkdir()
    (passing / "wedgewise-used" / cut.IN_USE).write_text("process 1")
    assert ww.count(file) == KARATE
    assert names_in(passing) == ["wedgewise-used"]


def rows_of(text: str) -> list[str]:
    return sorted("\t".join(sorted(line.split("\t")[:2]) + line.split("\t")[2:]) for line in text.splitlines())


@pytest.mark.parametrize("words", [("count",), ("triangles",), ("support",), ("truss", "--k", "4")])
def test_commands_go_on_from_disk(
    file: Path, tmp_path: Path, passing: Path, request: pytest.FixtureRequest, words: tuple[str, ...]
) -> None:
    command, *more = words
    expected = invoke(command, str(file), *more).stdout
    request.getfixturevalue("short")
    found = invoke(command, str(file), *more)
    assert found.exit_code == 0, found.output
    assert rows_of(found.stdout) == rows_of(expected)
    if command == "count":
        shown = answer_of("count", str(file))
        assert shown["answer"] == KARATE
        assert shown["plan"]["reasons"][0].startswith(FROM_DISK)
    else:
        output = str(tmp_path / "rows.tsv")
        written = answer_of(command, str(file), *more, "--output", output)
        assert written["plan"]["reasons"][0].startswith(FROM_DISK)
        assert rows_of(Path(output).read_text().partition("\n")[2]) == rows_of(expected)
        refused = invoke(command, str(file), *more, "--json")
        assert refused.exit_code == 1
        assert refused.stderr.endswith("; with --output, rows are written from disk\n")
    assert names_in(passing) == []


@pytest.mark.usefixtures("short")
def test_a_command_goes_on_from_its_work_folder(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    with monkeypatch.context() as patch:
        patch.setattr(Counting, "count", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert invoke("count", str(file), "--work", str(work)).exit_code == 130
    assert len(names_in(work)) == 1
    again = answer_of("count", str(file), "--work", str(work))
    assert "an earlier run" in again["plan"]["reasons"][1]
    assert names_in(work) == []


@pytest.mark.usefixtures("not_oriented")
def test_rows_of_what_was_read_once_have_its_labels(file: Path) -> None:
    found = invoke("triangles", "-", stdin=file.read_text())
    assert found.exit_code == 0, found.output
    assert {int(line.split("\t")[0]) for line in found.stdout.splitlines()} == set(PAIRS.ravel().tolist())


CAPPED = """
import resource, sys
import wedgewise as ww
ww.count([(0, 1), (1, 2), (2, 0)], algorithm="keystone")  # so that libraries are there
pages = int(open("/proc/self/statm").read().split()[0])
cap = pages * resource.getpagesize() + 300_000_000
resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
result = ww.run("count", sys.argv[1])
print(result.answer, result.plan.reasons[0])
"""


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its own size from /proc")
def test_a_process_keeps_to_its_limit_whatever_its_file_takes(
    tmp_path: Path, passing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(passing))
    scales = {"graph.txt": 19, "graph.npy": 18, "graph.txt.gz": 16}
    graphs = {scale: generate.kronecker(scale, seed=4).pairs() for scale in scales.values()}
    for name, scale in scales.items():
        write_edges(graphs[scale], tmp_path / name)
    expected = {scale: ww.count(pairs) for scale, pairs in graphs.items()}
    peak, told = peak_of("count", "graph.txt", cwd=tmp_path)
    assert (int(told), peak > MIN_LIMIT) == (expected[19], True), "in memory it takes more"
    within = ("--memory", str(MIN_LIMIT))
    for name, scale in scales.items():
        peak, told = peak_of("count", name, *within, "--json", cwd=tmp_path)
        found = json.loads(told)
        assert found["answer"] == expected[scale]
        assert found["plan"]["reasons"][0].startswith(FROM_DISK)
        assert peak <= MIN_LIMIT
    capped = subprocess.run(
        [sys.executable, "-c", CAPPED, "graph.txt"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert capped.stdout.startswith(f"{expected[19]} {FROM_DISK}graph.txt: ")
    code, rest, _seconds = interrupt(tmp_path, "read and clean …\n", signal.SIGINT, "count", "graph.txt", *within)
    assert code == 130, rest
    assert names_in(passing) == []


def test_a_file_that_fits_its_limit_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "SMALL_BYTES", 0)
    found = asked("count", file, memory_limit=MIN_LIMIT)
    assert found.answer == KARATE
    assert not any(reason.startswith(FROM_DISK) for reason in found.plan.reasons)


def test_what_is_free_counts_without_a_limit(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "SMALL_BYTES", 0)
    monkeypatch.setattr(limits, "UNCOUNTED_BYTES", 0)
    monkeypatch.setattr(hardware, "available_memory", lambda: LITTLE)
    assert fit._allowed(None) == LITTLE
    with pytest.raises(MemoryLimitError, match=rf"and {LITTLE:,} are "):  # less than blocks take
        asked("count", file)


def test_what_cannot_be_foreseen_is_left_to_those_who_read_or_answer(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "SMALL_BYTES", 0)
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY" + b"?" * 99)
    with pytest.raises(FormatError, match=r"damaged\.npy"):
        asked("count", tmp_path / "damaged.npy", memory_limit=1 << 40)
    with pytest.raises(InputError, match="keystone"):  # which has single trusses of stores alone
        asked("k_truss", file, memory_limit=1 << 40, algorithm="keystone")


def test_nobody_goes_on_where_a_reader_had_enough(tmp_path: Path) -> None:
    def go() -> None:
        with cut._own_folder(tmp_path / "work", "mine") as folder:
            (folder / "block").write_bytes(b"1")
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        go()
    assert "mine" not in names_in(tmp_path / "work")

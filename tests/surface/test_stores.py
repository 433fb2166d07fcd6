"""Stores that the present revision made: they open, answer as they did, and refuse what they refused."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wedgewise as ww
from wedgewise import errors

from .journals import journal_line
from .shell import run_all
from .stage import make_files
from .tables import RECORDED
from .truths import check, known

STORES = RECORDED / "stores"  # made by `partition karate.txt karate --parts 3` and `partition names.csv named --parts 2
# --scheme hashed`; never made anew: a store of an older version has to stay readable
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("count", {}),
    ("triangles", {}),
    ("edge_support", {}),
    ("clustering", {}),
    ("average_clustering", {}),
    ("transitivity", {}),
    ("trussness", {}),
    ("k_truss", {"k": 3}),
    ("k_truss", {"k": 4}),
    ("k_truss", {"k": 9}),
)


@pytest.fixture
def karate(tmp_path: Path) -> Path:
    """A copy of a store: work on it is written into its folder."""
    return Path(shutil.copytree(STORES / "karate", tmp_path / "karate"))


@pytest.fixture
def named(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORES / "named", tmp_path / "named"))


@pytest.mark.compiled
def test_a_store_is_answered_as_the_graph_is(karate: Path) -> None:
    files = {path.name for path in karate.iterdir()}
    for question, details in QUESTIONS:
        result = ww.run(question, karate, **details)
        check(question, details, result.answer, known("karate"))
        assert (result.n, result.m, result.algorithm, result.device) == (34, 78, "keystone", "cpu")
    assert {path.name for path in karate.iterdir() if path.suffix != ".lock"} == files
    assert ww.count(str(karate), algorithm="bbtc", verify=True, threads=1) == 45
    assert ww.count(karate, workers=2) == 45
    assert ww.count(karate, memory_limit=1 << 34, work_folder=karate.parent / "work") == 45
    assert ww.run("edge_support", karate).to_pandas().columns.tolist() == ["source", "target", "support"]
    assert ww.run("triangles", karate).to_dict()["answer"][0] == 18


def test_stores_are_made_and_opened(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("when,from,to\n1,ada,bob\n2,bob,cy\n3,cy,ada\n4,cy,dee\n")
    stages: list[str] = []
    store = ww.partition(
        table,
        tmp_path / "store",
        parts=2,
        scheme="hashed",
        source="from",
        target="to",
        progress=lambda stage, _done, _total: stages.append(stage),
    )
    assert (type(store), store.n, store.m, store.parts, store.folder) == (ww.Store, 4, 4, 2, tmp_path / "store")
    assert stages
    assert list(ww.open_store(store.folder).labels()) == ["ada", "bob", "cy", "dee"]
    assert ww.count(store.folder) == ww.count(store) == 1
    assert ww.triangles(store).tolist() == [1, 1, 1, 0]
    assert ww.explain("count", store).n == 4
    assert ww.edge_support(store, work_folder=tmp_path / "work").sum() == 3
    assert (tmp_path / "work").is_dir()
    with pytest.raises(errors.PreconditionError, match="a store answers"):
        ww.max_truss(store)
    with pytest.raises(errors.UnknownNameError, match="no scheme"):
        ww.partition(table, tmp_path / "other", scheme="none")
    with pytest.raises(errors.MissingFileError, match="is not a store"):
        ww.open_store(tmp_path)


@pytest.mark.compiled
def test_a_store_keeps_its_labels(named: Path) -> None:
    result = ww.run("edge_support", named)
    rows = [tuple(row.values()) for row in result.to_arrow().to_pylist()]
    assert rows == [
        *(("ada", "bob", 1), ("ada", "cy", 2), ("ada", "di", 1)),
        *(("bob", "cy", 1), ("cy", "di", 1), ("di", "eve", 0)),
    ]
    assert ww.triangles(named).tolist() == [2, 1, 2, 1, 0]


@pytest.mark.compiled
def test_commands_answer_for_stores(karate: Path, named: Path) -> None:
    lines = ("count karate", "triangles named", "support karate", "truss karate --k 4", "explain karate --json")
    ended = {line.split()[0]: found for line, found in run_all(lines, karate.parent).items()}
    assert ended["count"].stdout == "45\n"
    assert ended["triangles"].stdout == "ada\t2\nbob\t1\ncy\t2\ndi\t1\neve\t0\n"
    truth = known("karate")
    support = dict(zip(truth.edges, truth.support, strict=True))
    rows = [tuple(map(int, line.split("\t"))) for line in ended["support"].stdout.splitlines()]
    assert {(min(u, v), max(u, v)): s for u, v, s in rows} == support
    edges = [tuple(map(int, line.split("\t"))) for line in ended["truss"].stdout.splitlines()]
    assert sorted((min(pair), max(pair)) for pair in edges) == [truth.edges[edge] for edge in truth.truss_edges(4)]
    assert ended["explain"].record["m"] == 78


def test_the_manifest_is_the_format_that_is_documented() -> None:
    manifest = json.loads((STORES / "karate" / "manifest.json").read_text())
    assert manifest["format_version"] == 1
    parts = [manifest["vertices"], *(block[part] for block in manifest["blocks"] for part in ("offsets", "heads"))]
    for part in parts:
        path = STORES / "karate" / part["file"]
        array = np.load(path)
        assert (array.dtype.str, len(array)) == (part["dtype"], part["length"])
        assert len(part["sha256"]) == len(hashlib.sha256().hexdigest())


@pytest.mark.compiled
def test_a_new_store_is_the_same_bytes(tmp_path: Path) -> None:
    """What the present revision made, it makes again."""
    make_files(tmp_path)
    run_all(("partition karate.txt karate --parts 3", "partition names.csv named --parts 2 --scheme hashed"), tmp_path)
    for store in ("karate", "named"):
        made = {path.name: path.read_bytes() for path in (tmp_path / store).iterdir()}
        assert made == {path.name: path.read_bytes() for path in (STORES / store).iterdir()}


def test_a_foreign_journal_is_refused(karate: Path) -> None:
    journal = karate / "count.journal"
    journal.write_bytes(journal_line(key="0" * 32, task=0, triangles=1, tests=1))
    with pytest.raises(errors.InputError, match=r"another graph, .* or another version; .*--restart") as raised:
        ww.count(karate)
    assert str(journal) in str(raised.value)
    ended = run_all([f"count {karate}"], karate.parent)[f"count {karate}"]
    assert (ended.code, ended.stdout, ended.stderr) == (1, "", f"error: {raised.value}\n")
    assert journal.exists()
    assert ww.count(karate, resume=False) == 45
    assert not journal.exists()


@pytest.mark.compiled
def test_a_transitivity_is_asked_for_as_a_count_is(karate: Path) -> None:
    (karate / "count.journal").write_bytes(journal_line(key="0" * 32, task=0, triangles=1, tests=1))
    elsewhere, again, workers = "--work kept --workers 2", "--restart", "--cluster tcp://127.0.0.1:9 --workers 2"
    ended = run_all([f"transitivity karate {options}" for options in ("", elsewhere, again, workers)], karate.parent)
    refused, *counted, both = ended.values()
    assert (refused.code, refused.stdout, "--restart" in refused.stderr) == (1, "", True)
    assert [(found.code, found.stdout) for found in counted] == [(0, f"{135 / 528}\n")] * 2
    assert (karate.parent / "kept").is_dir()
    assert (both.code, both.stderr) == (1, "error: pass cluster or workers, not both\n")


def test_torn_lines_of_a_journal_are_as_if_not_there(karate: Path) -> None:
    (karate / "count.journal").write_bytes(b'{"key": "00", "task": 0, "tri')
    assert ww.count(karate) == 45


@pytest.mark.parametrize("question", ["list_triangles", "generalized_degree", "max_truss", "truss_summary"])
def test_what_stores_do_not_answer_is_refused(karate: Path, question: str) -> None:
    with pytest.raises(errors.PreconditionError, match="a store answers count, transitivity, triangles, edge_support"):
        ww.run(question, karate)


@pytest.mark.parametrize("how", [{"device": "cuda"}, {"order": "core"}, {"relabel": "indegree"}])
def test_what_stores_have_already_is_not_chosen(karate: Path, how: dict[str, Any]) -> None:
    with pytest.raises(errors.PreconditionError):
        ww.run("count", karate, **how)


def test_damage_is_found(karate: Path) -> None:
    block = karate / "block-0-1.heads.npy"
    content = bytearray(block.read_bytes())
    content[-1] ^= 1
    block.write_bytes(content)
    with pytest.raises(errors.FormatError, match=r"block-0-1\.heads\.npy"):
        ww.count(karate)
    manifest = karate / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(errors.FormatError, match="format_version 2"):
        ww.count(karate)
    manifest.unlink()
    with pytest.raises(errors.WedgewiseError):
        ww.count(karate)


def test_a_cluster_that_is_not_there(karate: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.MissingFileError):
        ww.count(karate, cluster=str(tmp_path / "scheduler.json"))


@pytest.mark.deep  # ten seconds of waiting for a connection
def test_a_cluster_that_does_not_answer(karate: Path, tmp_path: Path) -> None:
    (tmp_path / "scheduler.json").write_text('{"address": "tcp://127.0.0.1:9"}')
    with pytest.raises(errors.ClusterError):
        ww.count(karate, cluster=str(tmp_path / "scheduler.json"))


@pytest.mark.deep
@pytest.mark.compiled
def test_what_memory_has_no_room_for_goes_on_from_disk(tmp_path: Path) -> None:
    """The plan says so, answers are the same, and nothing is left in the temporary folder."""
    pairs = ww.generate.kronecker(18, seed=4).pairs()
    np.save(tmp_path / "graph.npy", pairs)
    (tmp_path / "temporary").mkdir()
    lines = ("count graph.npy --json", "triangles graph.npy", "support graph.npy --output out.npy")
    within = {line: f"{line} --memory 256MB" for line in lines}
    ended = run_all(within.values(), tmp_path, environment={"TMPDIR": str(tmp_path / "temporary")})
    counted = ended[within[lines[0]]].record
    assert counted["answer"] == ww.count(pairs)
    assert "disk" in counted["plan"]["reasons"][0]
    labels_and_values = np.loadtxt(ended[within[lines[1]]].stdout.splitlines(), dtype=np.int64)
    np.testing.assert_array_equal(labels_and_values[:, 1], ww.triangles(pairs))
    assert ended[within[lines[2]]].code == 0
    graph = ww.Graph(pairs)
    labels = np.asarray(graph.labels)
    rows = np.load(tmp_path / "out.npy")
    rows[:, :2].sort(axis=1)
    expected = np.column_stack((labels[graph.edges].astype(np.int64), ww.edge_support(graph)))
    np.testing.assert_array_equal(rows[np.lexsort(rows[:, 1::-1].T)], expected[np.lexsort(expected[:, 1::-1].T)])
    assert list((tmp_path / "temporary").iterdir()) == []

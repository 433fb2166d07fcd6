"""Graphs by name: the catalogue, what is generated, and the way of a file from a place to a checked graph."""

from __future__ import annotations

import doctest
import gzip
import io
import lzma
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from helpers.graphs import FIXTURES, TRUTHS, fixture_path
from helpers.http_server import Loopback, Served, loopback

import wedgewise as ww
from wedgewise import datasets
from wedgewise.datasets import Figure, PublishedGraph, catalogue, find, obtain, packaged, sources
from wedgewise.datasets.cache import folder_of
from wedgewise.datasets.catalogue import VERTICES, parse_figure
from wedgewise.datasets.check import Verification, compare
from wedgewise.datasets.urls import file_at, file_name, stem
from wedgewise.errors import (
    DownloadError,
    InputError,
    LimitError,
    MemoryLimitError,
    MissingFileError,
    StorageError,
    UnknownNameError,
)
from wedgewise.machine import hardware, jit

PAPERS = {"itc": 19, "wetric": 14, "trust": 13, "bbtc": 24, "eager": 50}
NAME = "as20000102"
LINES = lzma.decompress(fixture_path(NAME).read_bytes())
GENERATED = [name for name, graph in catalogue().items() if graph.recipe is not None]


def value_of(graph: PublishedGraph, name: str) -> int:
    """A figure that is known to be published."""
    figure = graph.best(name)
    assert figure is not None
    return figure.value


def countable() -> list[object]:
    """Generated graphs of up to 350,000 edges; all but the smallest are for compiled kernels."""
    sized = sorted((value_of(catalogue()[name], "m"), name) for name in GENERATED)
    return [
        pytest.param(name, marks=pytest.mark.compiled if m > 1000 else (), id=name) for m, name in sized if m < 350_000
    ]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder; compiled kernels stay where they are."""
    folder = tmp_path / "cache"
    monkeypatch.setattr("wedgewise.datasets.cache.cache_root", lambda: folder)
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr("wedgewise.datasets.fetch.PAUSE_SECONDS", 0.0)
    with loopback() as served:
        yield served


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_every_paper_has_all_its_graphs() -> None:
    held = {key: sum(key in graph.figures for graph in catalogue().values()) for key in sources()}
    assert {key: held[key] for key in PAPERS} == PAPERS
    assert held["graphchallenge"] == 145


def test_every_figure_is_a_number_that_can_be() -> None:
    for graph in catalogue().values():
        assert graph.figures
        for figures in graph.figures.values():
            published = dict(figures.published())
            assert published
            for name, figure in published.items():
                assert type(figure.value) is int
                assert figure.value >= (0 if name == "triangles" else 2 if name == "kmax" else 1)
                assert figure.step == 10 ** (len(str(figure.step)) - 1)
                assert figure.value % figure.step == 0


def test_exact_figures_of_one_graph_agree() -> None:
    """Papers differ in which vertices they count, and in nothing else that they publish exactly."""
    for graph in catalogue().values():
        for name in ("m", "triangles", "kmax"):
            whole = [getattr(item, name) for item in graph.figures.values() if not item.source.leaves_dropped]
            exact = {figure.value for figure in whole if figure is not None and figure.is_exact}
            assert len(exact) <= 1, (graph.name, name)
            assert all(figure.agrees(value) for figure in whole if figure is not None for value in exact), graph.name


def test_every_spelling_names_one_graph() -> None:
    spelled: dict[str, set[str]] = {}
    for graph in catalogue().values():
        for name in graph.names:
            spelled.setdefault(name.lower(), set()).add(graph.name)
            assert find(name) is graph
            assert find(name.upper()) is graph
    assert all(len(names) == 1 for names in spelled.values())


def test_what_papers_call_the_same_and_what_they_do_not() -> None:
    assert find("Soc-LiveJ").name == find("soc-livejournal1").name == "soc-LiveJournal1"
    assert find("scale18").name == find("graph500_scale18").name == "graph500-scale18-ef16"
    assert find("Twitter").figures["trust"].n == Figure(41_652_230)
    assert find("twitter").figures["bbtc"].n == Figure(61_578_414)
    assert find("wikipedia").name != find("wikipedia_link_en").name
    with pytest.raises(UnknownNameError, match="similar ones are: soc-LiveJournal1"):
        find("soc-LiveJurnal")
    with pytest.raises(UnknownNameError, match=r"no dataset named '\?'; `wedgewise datasets list`"):
        find("?")


def test_every_graph_can_be_had_or_says_why_not() -> None:
    for graph in catalogue().values():
        assert graph.addresses or graph.recipe is not None or graph.note, graph.name
        assert all(address.startswith(("https://", "http://konect.cc/")) for address in graph.addresses)
        assert len({file_name(address) for address in graph.addresses}) == len(graph.addresses)


def test_sources_say_how_they_count() -> None:
    assert [key for key, source in sources().items() if source.leaves_dropped] == ["itc"]
    for source in sources().values():
        assert source.vertices in VERTICES
        assert (source.vertices == "left") == source.leaves_dropped


def test_the_bundled_graph_is_in_the_catalogue_with_the_same_facts() -> None:
    for name, facts in packaged.BUNDLED.items():
        best = [find(name).best(figure) for figure in ("n", "m", "triangles")]
        assert best == [Figure(facts.n), Figure(facts.m), Figure(facts.triangles)]


@pytest.mark.parametrize(
    ("printed", "figure"),
    [
        (45, Figure(45)),
        ("16K", Figure(16_000, 1000)),
        ("2349.9k", Figure(2_349_900, 100)),
        ("1.6M", Figure(1_600_000, 100_000)),
        ("1.2B", Figure(1_200_000_000, 100_000_000)),
        ("1.4e10", Figure(14_000_000_000, 1_000_000_000)),
    ],
)
def test_rounded_figures_stand_for_an_interval(printed: int | str, figure: Figure) -> None:
    assert parse_figure(printed) == figure
    assert figure.agrees(figure.value)
    assert figure.agrees(figure.value + figure.step // 2)
    assert not figure.agrees(figure.value + figure.step)
    assert not figure.agrees(figure.value - figure.step)
    down = replace(figure, rounded="down")
    assert down.agrees(figure.value + figure.step - 1)
    assert not down.agrees(figure.value - 1)
    assert not down.agrees(figure.value + figure.step)


def test_a_figure_that_is_none_is_refused() -> None:
    for text in ("", "many", "1,000", "-3", "1.5T"):
        with pytest.raises(ValueError, match="is not a figure"):
            parse_figure(text)


@pytest.mark.parametrize("name", GENERATED)
def test_generators_make_what_is_published(name: str) -> None:
    """Of every size: the formulas of the generators against the published table."""
    graph = catalogue()[name]
    assert graph.recipe is not None
    stream = graph.recipe.stream()
    assert stream.n == value_of(graph, "n")
    assert stream.pairs_count == value_of(graph, "m")
    assert stream.expected_triangles == value_of(graph, "triangles")


@pytest.mark.parametrize("name", countable())
def test_generated_graphs_count_as_published(name: str, cache: Path) -> None:
    verification = datasets.verify(name, trusses=True)
    assert all(finding.agrees for finding in verification.findings)
    assert {finding.figure for finding in verification.findings} == {"n", "m", "triangles", "kmax"}
    assert files_in(cache.parent) == []


def test_a_generated_graph_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(hardware, "available_memory", lambda: 10**9)
    with pytest.raises(MemoryLimitError, match=r"torus3d-464: its 299,692,032 pairs take 2,397,536,256 bytes"):
        datasets.load("3Dgrid")


def test_a_generated_graph_as_a_file(cache: Path) -> None:
    told: list[str] = []
    path = datasets.get("Theory-9-16-B1k", progress=lambda stage, _done, _total: told.append(stage))
    assert path == cache / "datasets" / "Theory-9-16-B1k" / "Theory-9-16-B1k.bel"
    assert ww.count(path) == 144
    assert told[0] == "generate Theory-9-16-B1k"
    assert datasets.get("Theory-9-16-B1k") == path
    assert datasets.verify("Theory-9-16-B1k").agrees


@pytest.mark.compiled
def test_the_bundled_graph_needs_no_cache(cache: Path) -> None:
    assert datasets.get("email-enron") == packaged.bundled("email-Enron")
    graph = datasets.load("email-Enron")
    assert (graph.n, graph.m) == (36_692, 183_831)
    assert not cache.exists()


def test_the_bundled_graph_is_verified_where_it_is(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    monkeypatch.setattr(obtain, "read_graph", read.append)
    monkeypatch.setattr("wedgewise.datasets.check.compare", lambda graph, _, **__: graph.name)
    assert datasets.verify("email-Enron") == "email-Enron"  # type: ignore[comparison-overlap]
    assert read == [packaged.bundled("email-Enron")]
    with pytest.raises(MissingFileError, match="is not there; `wedgewise datasets get as20000102` brings it"):
        datasets.verify(NAME)


def test_a_paper_s_cleaning(cache: Path) -> None:
    whole = datasets.load(NAME, source=FIXTURES)
    pruned = datasets.load(NAME, source=FIXTURES, paper="itc")
    assert whole.m == TRUTHS[NAME]["m"]
    assert pruned.n < whole.n
    assert pruned.m < whole.m
    assert ww.count(pruned) == ww.count(whole)
    assert datasets.load(NAME, paper="trust").n == whole.n
    assert datasets.load("Theory-3-4-B1k", paper="itc").m < datasets.load("Theory-3-4-B1k").m
    with pytest.raises(UnknownNameError, match="no paper named 'mine'; there are: itc, wetric"):
        datasets.load(NAME, paper="mine")


def test_a_download_is_counted_kept_and_not_repeated(server: Loopback, cache: Path) -> None:
    server.files[f"{NAME}.txt.gz"] = Served(gzip.compress(LINES))
    told: list[str] = []
    graph = datasets.load(NAME, source=f"{server.address}/", progress=lambda stage, *_: told.append(stage))
    assert (graph.m, ww.count(graph)) == (12_572, 6584)
    assert told[0] == f"download {NAME}"
    folder = cache / "datasets" / NAME
    assert files_in(cache.parent) == [f"{NAME}.json", f"{NAME}.txt.gz"]
    record = folder_of(NAME).record()
    assert record is not None
    assert record.is_verified
    assert record.origin == server.url(f"{NAME}.txt.gz")
    assert record.counted == {"n": 6474, "m": 12_572, "triangles": 6584}
    assert datasets.get(NAME) == folder / f"{NAME}.txt.gz"
    assert len(server.asked) == 1


def test_verified_content_is_known_by_its_checksum(
    server: Loopback, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed = gzip.compress(LINES, mtime=0)
    server.files["first.gz"] = Served(compressed)
    path = datasets.get(NAME, source=server.url("first.gz"))
    path.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(obtain, "compare", lambda *_args, **_how: pytest.fail("it was counted again"))
        assert datasets.get(NAME, source=server.url("first.gz")) == path
    path.unlink()
    server.files["second.gz"] = Served(gzip.compress(LINES, compresslevel=1, mtime=0))
    assert datasets.get(NAME, source=server.url("second.gz")).name == "second.gz"
    record = folder_of(NAME).record()
    assert record is not None
    assert len(record.verified) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"0 1\n1 2\n", "m is 2 where graphchallenge has 12,572"),
        (b"<html><body>not here</body></html>\n", "is not as20000102"),
        (b"0 1\n1 -2\n", "is not as20000102"),
        (gzip.compress(LINES)[:-9], "is not as20000102"),
        (b"\x00\x01" * 2048, "is binary"),
    ],
    ids=["another graph", "a page", "no ids", "truncated", "binary"],
)
def test_a_file_that_is_another_is_put_aside(server: Loopback, cache: Path, content: bytes, said: str) -> None:
    server.files["graph"] = Served(content)
    with pytest.raises(InputError, match=said) as caught:
        datasets.load(NAME, source=server.url("graph"))
    assert "graph.refused" in str(caught.value)
    assert folder_of(NAME).file() is None
    with pytest.raises(MissingFileError, match=f"datasets get {NAME}"):
        datasets.verify(NAME)
    server.files["graph"] = Served(LINES)
    assert datasets.load(NAME, source=server.url("graph")).m == 12_572


def test_the_same_sizes_with_other_triangles_are_another_graph(server: Loopback, cache: Path) -> None:
    graph = ww.Graph(io.BytesIO(LINES))
    edges = graph.edges.tolist()
    support = ww.edge_support(graph)
    busiest = int(support.argmax())
    taken = {tuple(edge) for edge in edges}
    leaves = [vertex for vertex in range(graph.n) if graph.degrees[vertex] == 1]
    edges[busiest] = next([u, v] for u in leaves for v in leaves if u < v and (u, v) not in taken)
    server.files["graph"] = Served("".join(f"{u} {v}\n" for u, v in edges).encode())
    with pytest.raises(InputError, match=r"triangles is \d,\d+ where graphchallenge has 6,584"):
        datasets.get(NAME, source=server.url("graph"))


def test_sizes_are_compared_before_anything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from wedgewise import api

    monkeypatch.setattr(api, "count", lambda *_args, **_how: pytest.fail("it was counted"))
    verification = compare(find(NAME), ww.Graph([(0, 1)]))
    assert not verification.agrees
    assert verification.counted == {"n": 2, "m": 1}


def test_what_cannot_be_counted_here_stays(server: Loopback, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_args: object, **_how: object) -> Verification:
        raise MemoryLimitError("a count needs more; use another machine")

    server.files["graph"] = Served(LINES)
    with monkeypatch.context() as patched:
        patched.setattr(obtain, "compare", too_much)
        with pytest.raises(MemoryLimitError, match="is complete, but cannot be counted here: a count needs more"):
            datasets.get(NAME, source=server.url("graph"))
    assert folder_of(NAME).file() is not None
    assert datasets.load(NAME).m == 12_572
    assert len(server.asked) == 1


def test_what_is_beyond_a_limit_is_not_taken_for_another_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def beyond(*_args: object, **_how: object) -> Verification:
        raise LimitError("has 7 pairs and 6 are allowed")

    path = tmp_path / "graph.txt"
    path.touch()
    monkeypatch.setattr(obtain, "verify_file", beyond)
    with pytest.raises(LimitError, match="has 7 pairs and 6 are allowed"):
        obtain.check(find(NAME), folder_of(NAME), path, None)
    assert path.exists()


def test_a_damaged_file_is_brought_again(server: Loopback, cache: Path) -> None:
    server.files["graph"] = Served(LINES)
    path = datasets.get(NAME, source=server.url("graph"))
    path.write_bytes(LINES[:-100])
    assert datasets.load(NAME, source=server.url("graph")).m == 12_572
    assert len(server.asked) == 2
    (cache / "datasets" / f"{NAME}.json").write_text("{")
    assert datasets.load(NAME, source=server.url("graph")).m == 12_572
    assert len(server.asked) == 3


def test_content_that_changed_behind_our_back_is_found_by_verify(server: Loopback, cache: Path) -> None:
    server.files["graph"] = Served(LINES)
    path = datasets.get(NAME, source=server.url("graph"))
    first = LINES.partition(b"\n")[0]
    path.write_bytes(b"0 0".ljust(len(first)) + LINES[len(first) :])
    assert not datasets.verify(NAME).agrees
    record = folder_of(NAME).record()
    assert record is not None
    assert not record.is_verified


def test_the_next_address_is_tried_where_the_first_has_nothing(server: Loopback, cache: Path) -> None:
    both = replace(find(NAME), addresses=(server.url("gone.txt"), server.url("there.txt")))
    server.files["there.txt"] = Served(LINES)
    assert obtain.file_of(both, None, None).name == "there.txt"
    one = replace(both, name="one", addresses=(server.url("gone.txt"),))
    with pytest.raises(DownloadError, match=r"^http://.*gone.txt: .*404"):
        obtain.file_of(one, None, None)
    neither = replace(both, name="neither", addresses=(server.url("gone.txt"), server.url("gone.gz")))
    with pytest.raises(DownloadError, match=r"neither: none of its addresses served: .*gone.txt.*404.*gone.gz.*404"):
        obtain.file_of(neither, None, None)


def test_a_download_that_has_begun_is_not_begun_elsewhere(server: Loopback, cache: Path) -> None:
    both = replace(find(NAME), addresses=(server.url("first.txt"), server.url("second.txt")))
    server.files |= {"first.txt": Served(LINES, cuts=[1000, *[0] * 10]), "second.txt": Served(LINES)}
    with pytest.raises(DownloadError, match="1,000 bytes are kept"):
        obtain.file_of(both, None, None)
    assert folder_of(NAME).begun()
    assert {path for path, _ in server.asked} == {"first.txt"}
    server.files["first.txt"] = Served(LINES)
    assert obtain.file_of(both, None, None).name == "first.txt"
    assert server.asked[-1] == ("first.txt", "bytes=1000-")


def test_a_graph_without_an_address_says_so(cache: Path) -> None:
    with pytest.raises(DownloadError, match=r"uk-2014: no address of a file is known \(.*WebGraph.*name one with"):
        datasets.load("uk-2014")
    with pytest.raises(DownloadError, match="no address of a file is known"):
        datasets.load("uk-2014", source="http://127.0.0.1:9/mirror/")


def test_names_of_addresses_stay_in_their_folder() -> None:
    assert file_name("http://x/a/b.txt.gz?c=d#e") == "b.txt.gz"
    assert file_name("http://x/a/%2e%2e%2f%2e%2e%2fb") == "b"
    assert file_name("http://x/..%5cb") == ".._b"
    assert file_name("http://x/") == "graph"


def test_a_folder_is_searched_by_every_name(tmp_path: Path) -> None:
    graph = find("com-LiveJournal")
    for name in ("Com-Lj.mtx", "com-lj.ungraph.txt.gz", "com-livejournal.el.xz", "com-LiveJournal"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / "com-Orkut.txt").touch()
        (folder / name).touch()
        assert file_at(graph, folder) == folder / name
        assert file_at(graph, folder / name) == folder / name
    with pytest.raises(MissingFileError, match=r"no file of com-LiveJournal in it; .* com-lj.ungraph.txt.gz or com-L"):
        file_at(graph, tmp_path)
    with pytest.raises(MissingFileError, match="no such folder or file"):
        file_at(graph, tmp_path / "nowhere")
    assert stem("A.B.TSV.GZ") == "a.b"


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / f"{NAME}.txt").touch()
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(MissingFileError, match=r"cannot be read \(Permission denied\); check its permissions"):
        file_at(find(NAME), tmp_path)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(MissingFileError, match=r"txt: cannot be read \(Permission denied\); check its permissions"):
        folder_of(NAME).copy_in(tmp_path / f"{NAME}.txt", "copy", None)


def test_a_copy_from_a_folder_leaves_the_original(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    original = folder / f"{NAME}.tsv"
    original.write_bytes(LINES)
    path = datasets.get(NAME, source=str(folder), progress=lambda *_: None)
    assert path.read_bytes() == LINES
    assert path.parent == cache / "datasets" / NAME
    assert files_in(folder) == [f"{NAME}.tsv"]


def archive_of(members: dict[str, bytes], mode: str) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def as_matrix(lines: bytes) -> bytes:
    pairs = [line.split() for line in lines.splitlines()]
    body = b"".join(b"%d %d\n" % (int(v) + 1, int(u) + 1) for u, v in pairs)
    head = b"%%MatrixMarket matrix coordinate pattern symmetric\n"
    return head + b"6474 6474 %d\n" % len(pairs) + body


@pytest.mark.parametrize(
    ("file", "members", "mode"),
    [
        ("download.tsv.x.tar.bz2", {"x/README": b"words\n", "x/meta.x": b"", "x/out.x": b"% sym\n" + LINES}, "w:bz2"),
        (f"{NAME}.tar.gz", {f"{NAME}/{NAME}_a.mtx": b"", f"{NAME}/{NAME}.mtx": as_matrix(LINES)}, "w:gz"),
    ],
    ids=["konect", "suitesparse"],
)
def test_archives_are_read_without_unpacking(
    server: Loopback, cache: Path, file: str, members: dict[str, bytes], mode: str
) -> None:
    server.files[file] = Served(archive_of(members, mode))
    graph = datasets.load(NAME, source=server.url(file))
    assert (graph.m, ww.count(graph)) == (12_572, 6584)
    assert files_in(cache.parent) == sorted([file, f"{NAME}.json"])


def test_archives_without_edges_and_damaged_ones(server: Loopback, cache: Path) -> None:
    whole = archive_of({"x/README": b"words\n"}, "w:gz")
    server.files["empty.tar.gz"] = Served(whole)
    with pytest.raises(InputError, match=r"neither out[.]NAME nor NAME[.]mtx"):
        datasets.load(NAME, source=server.url("empty.tar.gz"))
    server.files["endless.tar"] = Served(archive_of({"x/README": b"words\n"}, "w")[: 2 * tarfile.BLOCKSIZE])
    with pytest.raises(InputError, match=r"neither out[.]NAME nor NAME[.]mtx"):
        datasets.load(NAME, source=server.url("endless.tar"))
    server.files["page.tar.gz"] = Served(b"<html>not here</html>")
    with pytest.raises(InputError, match="the archive is damaged"):
        datasets.load(NAME, source=server.url("page.tar.gz"))
    for mode, suffix in (("w:bz2", "bz2"), ("w:gz", "gz"), ("w:xz", "xz")):
        cut = archive_of({"x/README": bytes(range(256)) * 64, "x/out.x": LINES}, mode)[:-2000]
        server.files[f"cut.tar.{suffix}"] = Served(cut)
        with pytest.raises(InputError, match=r"is not as20000102: .*(damaged|ends|decompress|m is)"):
            datasets.load(NAME, source=server.url(f"cut.tar.{suffix}"))


def test_errors_of_ours_are_no_damage_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(archive_of({"x/out.x": LINES}, "w:gz"))
    with pytest.raises(StorageError, match="the disk is full"), obtain.opened(path):
        raise StorageError("the disk is full")


def test_vertices_are_counted_as_each_source_counts_them() -> None:
    lines = b"1 2\n2 3\n3 1\n3 4\n7 7\n"  # a triangle with a tail, and a vertex with a loop alone
    graph = ww.Graph(io.BytesIO(lines))
    published = made_up(itc=(3, 3), trust=(4, 4), bbtc=(7, 4), graphchallenge=(5, 4), snap=(8, 4))
    verification = compare(published, graph)
    assert all(finding.agrees for finding in verification.findings), verification
    assert verification.agrees
    off_by_one = compare(made_up(trust=(5, 4)), graph)
    assert not off_by_one.findings[0].agrees
    assert off_by_one.agrees  # a matter of convention
    assert not compare(made_up(trust=(4, 5)), graph).agrees


def made_up(**sizes: tuple[int, int]) -> PublishedGraph:
    """A graph of one triangle, with vertices and edges by source."""
    some = find(NAME).figures["graphchallenge"]
    figures = {
        key: replace(some, source=sources()[key], n=Figure(n), m=Figure(m), triangles=Figure(1), kmax=None)
        for key, (n, m) in sizes.items()
    }
    return PublishedGraph("made-up", figures, (), None, False, "")


def test_rounded_figures_decide_only_where_nobody_has_exact_ones() -> None:
    graph = ww.Graph([(0, 1), (1, 2), (2, 0)])
    exact = made_up(trust=(3, 3))
    rounded = replace(exact.figures["trust"], m=Figure(100, step=10), triangles=None)
    assert compare(replace(exact, figures={**exact.figures, "eager": rounded}), graph).agrees
    assert not compare(replace(exact, figures={"eager": rounded}), graph).agrees


def test_text_labels_have_no_largest() -> None:
    graph = ww.Graph([("a", "b"), ("b", "c"), ("c", "a")])
    assert compare(made_up(bbtc=(3, 3)), graph).agrees


def test_without_a_folder_to_keep_things_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("wedgewise.datasets.cache.cache_root", lambda: None)
    with pytest.raises(StorageError, match=f"name a folder with {jit.CACHE_VARIABLE}"):
        datasets.get(NAME)
    assert datasets.load("Theory-3-4-Bk").m == 24
    (tmp_path / "file").touch()
    monkeypatch.setattr("wedgewise.datasets.cache.cache_root", lambda: tmp_path / "file")
    with pytest.raises(StorageError, match="cannot be made"):
        datasets.get(NAME)


@pytest.mark.parametrize("module", [datasets, packaged], ids=lambda module: module.__name__)
def test_the_examples_in_the_documentation_run(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0

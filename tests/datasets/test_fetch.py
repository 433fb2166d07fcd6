"""Files over HTTP from a real server on loopback: ranges, truncation, other versions, refusals, ended processes."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.http_server import PIECE, Loopback, Served, loopback, wait_for

from wedgewise.datasets import fetch as fetching
from wedgewise.datasets.fetch import fetch
from wedgewise.errors import DownloadError, StorageError
from wedgewise.machine.files import partial_file

CONTENT = random.Random(1).randbytes(10 * PIECE + 7)
HALF = 5 * PIECE
MOST = 1 << 20


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.0)
    with loopback() as served:
        yield served


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "graph"


def bring(server: Loopback, target: Path, path: str = "graph") -> list[tuple[int, int]]:
    """Fetch, and return what was told of the progress."""
    told: list[tuple[int, int]] = []
    fetch(server.url(path), target, "download", lambda _stage, done, total: told.append((done, total)), most_bytes=MOST)
    return told


def part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_whole_and_alone(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT)
    told = bring(server, target)
    assert target.read_bytes() == CONTENT
    assert names_in(target.parent) == ["graph"]
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert server.asked == [("graph", "")]


@pytest.mark.parametrize("content", [b"", b"x"])
def test_tiny_files(server: Loopback, target: Path, content: bytes) -> None:
    server.files["graph"] = Served(content)
    bring(server, target)
    assert target.read_bytes() == content


def test_what_a_cut_connection_left_is_asked_for_by_range(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT, cuts=[HALF, PIECE])
    bring(server, target)
    assert target.read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == ["", f"bytes={HALF}-", f"bytes={HALF + PIECE}-"]


@pytest.mark.parametrize("mark", [{"etag": None}, {"etag": None, "modified": "Sun, 15 Nov 2026 10:00:00 GMT"}])
def test_ranges_need_no_tag(server: Loopback, target: Path, mark: dict[str, str | None]) -> None:
    server.files["graph"] = Served(CONTENT, cuts=[HALF], **mark)  # type: ignore[arg-type]
    bring(server, target)
    assert target.read_bytes() == CONTENT
    assert len(server.asked) == 2


def test_a_weak_tag_does_not_name_a_version(server: Loopback, target: Path) -> None:
    assert fetching.Version("a", 1, 'W/"x"', "then").mark == "then"
    server.files["graph"] = Served(CONTENT, cuts=[HALF], etag='W/"x"')
    bring(server, target)
    assert target.read_bytes() == CONTENT


def test_a_server_without_ranges_sends_all_again(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT, ranges=False, cuts=[HALF, PIECE])
    bring(server, target)
    assert target.read_bytes() == CONTENT
    assert len(server.asked) == 3


def test_a_server_that_always_ends_early_is_given_up_and_what_came_is_kept(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT, ranges=False, cuts=[HALF] * 20)
    with pytest.raises(DownloadError, match=f"{HALF:,} bytes are kept, and the same call goes on"):
        bring(server, target)
    assert len(server.asked) == 1 + fetching.ATTEMPTS
    assert names_in(target.parent) == ["graph.part", "graph.part.json"]
    server.files["graph"] = Served(CONTENT)
    bring(server, target)
    assert server.asked[-1] == ("graph", f"bytes={HALF}-")
    assert target.read_bytes() == CONTENT
    assert names_in(target.parent) == ["graph"]


def test_another_version_is_not_glued_to_the_first(server: Loopback, target: Path) -> None:
    newer = CONTENT[::-1] + b"more"
    server.files["graph"] = Served(CONTENT, cuts=[HALF, 0, 0, 0, 0, 0])
    with pytest.raises(DownloadError):
        bring(server, target)
    server.files["graph"] = Served(newer, etag='"two"')
    bring(server, target)
    assert target.read_bytes() == newer


def test_another_length_without_a_tag_is_another_version(server: Loopback, target: Path) -> None:
    newer = CONTENT[::-1] + b"more"
    server.files["graph"] = Served(CONTENT, etag=None, cuts=[HALF, 0, 0, 0, 0, 0])
    with pytest.raises(DownloadError):
        bring(server, target)
    server.files["graph"] = Served(newer, etag=None)
    bring(server, target)
    assert target.read_bytes() == newer


def test_parts_from_another_address_are_not_used(server: Loopback, target: Path) -> None:
    server.files["old"] = Served(b"o" * len(CONTENT), etag=None, cuts=[HALF, 0, 0, 0, 0, 0])
    with pytest.raises(DownloadError):
        bring(server, target, "old")
    server.files["graph"] = Served(CONTENT, etag=None)
    bring(server, target)
    assert server.asked[-1] == ("graph", "")
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("note", ["", "{", '{"address": 1}', "[]"])
def test_a_part_without_a_readable_note_is_not_used(server: Loopback, target: Path, note: str) -> None:
    part_of(target).write_bytes(b"something")
    part_of(target).with_name("graph.part.json").write_text(note)
    server.files["graph"] = Served(CONTENT)
    bring(server, target)
    assert server.asked == [("graph", "")]
    assert target.read_bytes() == CONTENT


def test_a_part_that_is_complete_is_only_named(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT)
    write_part(server, target, CONTENT)
    bring(server, target)
    assert server.asked == [("graph", f"bytes={len(CONTENT)}-")]
    assert target.read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_dropped(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT)
    write_part(server, target, CONTENT + b"more")
    bring(server, target)
    assert target.read_bytes() == CONTENT


def test_a_range_that_was_not_asked_for_is_dropped(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT, content_range=f"bytes 1-{len(CONTENT) - 1}/{len(CONTENT)}")
    write_part(server, target, CONTENT[:HALF])
    bring(server, target)
    assert target.read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == [f"bytes={HALF}-", ""]


def write_part(server: Loopback, target: Path, content: bytes) -> None:
    """What a killed process leaves."""
    part_of(target).write_bytes(content)
    version = {"address": server.url("graph"), "bytes": len(CONTENT), "etag": '"one"', "modified": None}
    part_of(target).with_name("graph.part.json").write_text(json.dumps(version))


def test_a_file_of_unknown_length_ends_with_its_connection(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT, says_length=False)
    assert bring(server, target)[-1] == (len(CONTENT), 0)
    assert target.read_bytes() == CONTENT


def test_a_missing_file_is_named_and_leaves_nothing(server: Loopback, target: Path) -> None:
    with pytest.raises(DownloadError, match=r"/graph: the server answers 404 Not Found; name another source"):
        bring(server, target)
    assert names_in(target.parent) == []
    assert len(server.asked) == 1


@pytest.mark.parametrize(("status", "said"), [(416, "416"), (206, "a range nobody asked for"), (403, "403 Forbidden")])
def test_answers_that_fit_no_question_end_it(server: Loopback, target: Path, status: int, said: str) -> None:
    server.files["graph"] = Served(CONTENT, statuses=[status] * 20)
    with pytest.raises(DownloadError, match=said):
        bring(server, target)
    assert len(server.asked) == 1


def test_a_busy_server_is_asked_again(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT, statuses=[503, 429])
    bring(server, target)
    assert target.read_bytes() == CONTENT
    server.files["other"] = Served(CONTENT, statuses=[503] * 20)
    with pytest.raises(DownloadError, match="503 Service Unavailable"):
        bring(server, target, "other")


def test_redirections_are_followed_but_not_in_circles(server: Loopback, target: Path) -> None:
    server.files |= {"old": Served(location="/graph"), "graph": Served(CONTENT)}
    bring(server, target, "old")
    assert target.read_bytes() == CONTENT
    server.files |= {"here": Served(location="/there"), "there": Served(location="/here")}
    with pytest.raises(DownloadError, match="infinite loop"):
        bring(server, target, "here")
    assert len(server.asked) < 20


def test_nothing_but_http_is_opened(server: Loopback, target: Path) -> None:
    secret = target.with_name("secret")
    secret.write_bytes(b"secret")
    with pytest.raises(DownloadError, match="is not of http or https"):
        fetch(secret.as_uri(), target, "download", None, most_bytes=MOST)
    server.files["graph"] = Served(location=secret.as_uri())
    with pytest.raises(DownloadError, match="not allowed"):
        bring(server, target)
    assert names_in(target.parent) == ["secret"]


def test_a_server_that_is_not_there_is_asked_once(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/graph"
        with pytest.raises(DownloadError, match=r"no answer \(.*refused\); name another source"):
            fetch(address, target, "download", None, most_bytes=MOST)
    assert names_in(target.parent) == []


def test_a_server_that_falls_silent_is_asked_again(
    server: Loopback, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT_SECONDS", 1.0)
    silent = Served(CONTENT, stops_at=HALF)
    server.files["graph"] = silent

    def mend(_stage: str, done: int, _total: int) -> None:
        if done >= HALF:
            silent.stops_at = None

    fetch(server.url("graph"), target, "download", mend, most_bytes=MOST)
    assert target.read_bytes() == CONTENT
    assert any(wanted.startswith("bytes=") for _, wanted in server.asked[1:])


def test_one_process_fetches_a_file(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT)
    with partial_file(part_of(target)), pytest.raises(StorageError, match="another process is writing it"):
        bring(server, target)
    bring(server, target)
    assert target.read_bytes() == CONTENT


def test_a_folder_that_is_not_there_is_an_error_of_storage(server: Loopback, tmp_path: Path) -> None:
    server.files["graph"] = Served(CONTENT)
    with pytest.raises(StorageError, match="could not be written"):
        bring(server, tmp_path / "no such folder" / "graph")


PROGRAM = """
import sys
from pathlib import Path
from wedgewise.datasets.fetch import fetch
fetch(sys.argv[1], Path(sys.argv[2]), "download", None, most_bytes=1 << 20)
"""


LIMITED = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({HALF}, {HALF}))
{PROGRAM}"""


def test_a_full_disk_keeps_what_it_could_take(server: Loopback, target: Path) -> None:
    server.files["graph"] = Served(CONTENT)
    command = [sys.executable, "-c", LIMITED, server.url("graph"), str(target)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "StorageError" in ended.stderr.splitlines()[-1]
    assert "could not be written (File too large)" in ended.stderr.splitlines()[-1]
    assert not target.exists()
    bring(server, target)
    assert server.asked[-1][1].startswith("bytes=")
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_process_leaves_what_came(server: Loopback, target: Path, number: signal.Signals) -> None:
    slow = Served(CONTENT, stops_at=HALF)
    server.files["graph"] = slow
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child of a background job would ignore it
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, server.url("graph"), str(target)], stderr=subprocess.PIPE
        )
    finally:
        signal.signal(signal.SIGINT, ours)
    with child:
        wait_for(lambda: part_of(target).is_file() and part_of(target).stat().st_size >= PIECE)
        child.send_signal(number)
        _, said = child.communicate(timeout=60)
    assert child.returncode == -number, said
    arrived = part_of(target).stat().st_size
    assert not target.exists()
    slow.stops_at = None
    bring(server, target)
    assert server.asked[-1] == ("graph", f"bytes={arrived}-")
    assert target.read_bytes() == CONTENT

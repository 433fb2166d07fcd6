"""A process whose memory is capped counts right or says in one line that memory is short."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wedgewise import generate
from wedgewise.write.edges import write_edges

resource = pytest.importorskip("resource", reason="address-space limits are POSIX")

CAPPED = """
import contextlib, io, json, os, resource, sys, tempfile, traceback
from wedgewise.cli import main

small, large, *beyond = sys.argv[1:]

def count(path):
    sys.argv = ["wedgewise", "count", path, "--algorithm", "keystone", "--threads", "2"]
    main()

def ended(cap):
    # how a child ends whose memory is capped, and what it wrote
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        child = os.fork()
        if child == 0:
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
            code = 2
            try:
                resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
                count(large)
                code = 0
            except SystemExit as end:
                code = end.code or 0
            except BaseException:
                traceback.print_exc()
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        streams = []
        for stream in (stdout, stderr):
            stream.seek(0)
            streams.append(stream.read().decode())
    return code, *streams

with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    count(small)  # so that all modules, kernels and libraries are there
pages = int(open("/proc/self/statm").read().split()[0])
print(json.dumps([ended(pages * resource.getpagesize() + int(size)) for size in beyond]))
"""
MEGABYTES = (0, 1, 2, 4, 8, 12, 16, 24, 32, 64, 256, 1024)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two files, a small and a large graph."""
    folder = tmp_path_factory.mktemp("capped")
    for name, scale in (("small", 8), ("large", 15)):
        write_edges(generate.kronecker(scale, seed=4).pairs(), folder / f"{name}.bel32")
    return [str(folder / "small.bel32"), str(folder / "large.bel32")]


@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads its own size from /proc")
def test_every_cap_ends_in_the_count_or_in_one_line(graphs: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CAPPED, *graphs, *(str(megabytes << 20) for megabytes in MEGABYTES)],
        stdout=subprocess.PIPE,
        timeout=300,
        check=True,
    )
    outcomes = []
    for code, stdout, stderr in json.loads(ran.stdout):
        assert code in (0, 1), stderr
        if code == 0:
            outcomes.append(stdout)
        else:
            assert stderr.startswith("error: "), stderr
            assert stderr.count("\n") == 1
            assert stdout == ""
            outcomes.append("refused")
    assert outcomes[0] == "refused", "a process without any memory left cannot count"
    assert outcomes[-1] != "refused", "a gigabyte is plenty"
    assert len(set(outcomes)) == 2, "all that were counted agree"

"""A process whose memory is capped counts right or says in one line that memory is short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wedgewise import generate
from wedgewise.write.edges import write_edges

resource = pytest.importorskip("resource", reason="address-space limits are POSIX")

CAPPED = """
import contextlib, io, resource, sys
from wedgewise.cli import main
beyond, small, large = sys.argv[1:]
def count(path):
    sys.argv = ["wedgewise", "count", path, "--algorithm", "keystone", "--threads", "2"]
    main()
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    count(small)  # so that all modules, kernels and libraries are there
pages = int(open("/proc/self/statm").read().split()[0])
cap = pages * resource.getpagesize() + int(beyond)
resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
count(large)
"""


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
    outcomes = []
    for megabytes in (0, 1, 2, 4, 8, 12, 16, 24, 32, 64, 256, 1024):
        found = subprocess.run(
            [sys.executable, "-c", CAPPED, str(megabytes << 20), *graphs],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert found.returncode in (0, 1), found.stderr
        if found.returncode == 0:
            outcomes.append(found.stdout)
        else:
            assert found.stderr.startswith("error: "), found.stderr
            assert found.stderr.count("\n") == 1
            assert found.stdout == ""
            outcomes.append("refused")
    assert outcomes[0] == "refused", "a process without any memory left cannot count"
    assert outcomes[-1] != "refused", "a gigabyte is plenty"
    assert len(set(outcomes)) == 2, "all that were counted agree"

"""Python processes of our own: they import from where this one does, and never from the folder that it stands in."""

from __future__ import annotations

import os
import sys


def python_command(program: str) -> list[str]:
    """The command that runs a program in another interpreter like this one."""
    paths = [os.fspath(path) for path in sys.path]
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {paths!r}\n{program}"]

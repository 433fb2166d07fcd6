"""A pytest plugin that counts how often NetworkX's own tests reach each function of the backend.

Loaded with ``-p networkx_ledger --ledger FILE`` in the process that runs them; the counts are written to FILE as JSON.
A call counts when the backend answered it: one that was left to NetworkX does not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from _wedgewise_nx import FUNCTIONS
from wedgewise.interop.networkx_backend import backend

answered: Counter[str] = Counter()


def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, counted."""

    @wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        answer = function(*args, **kwargs)
        answered[name] += 1
        return answer

    return counted


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ledger", type=Path, required=True)


def pytest_configure() -> None:
    for name in FUNCTIONS:
        setattr(backend, name, counting(name, getattr(backend, name)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.getoption("--ledger").write_text(json.dumps(answered), encoding="utf-8")

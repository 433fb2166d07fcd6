"""Answers that must be the same to the last bit, wherever they were computed."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def assert_same(answer: Any, expected: Any) -> None:
    """Equal to the last bit, of the same types, and on the host."""
    assert type(answer) is type(expected)
    if is_dataclass(answer):
        for field in (field for field in fields(answer) if field.compare):
            assert_same(getattr(answer, field.name), getattr(expected, field.name))
    elif isinstance(answer, dict):
        assert list(answer) == list(expected)
        for name, values in answer.items():
            assert_same(values, expected[name])
    elif isinstance(answer, np.ndarray):
        assert (answer.dtype, answer.shape) == (expected.dtype, expected.shape)
        assert answer.tobytes() == expected.tobytes()
    else:
        assert answer == expected

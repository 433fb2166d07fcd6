"""Answers that must be the same to the last bit, wherever they were computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.questions import GeneralizedDegree


def assert_same(answer: Any, expected: Any) -> None:
    """Equal to the last bit, of the same types, and on the host."""
    assert type(answer) is type(expected)
    if isinstance(answer, GeneralizedDegree):
        for name in GeneralizedDegree.__slots__:
            assert_same(getattr(answer, name), getattr(expected, name))
    elif isinstance(answer, np.ndarray):
        assert (answer.dtype, answer.shape) == (expected.dtype, expected.shape)
        assert answer.tobytes() == expected.tobytes()
    else:
        assert answer == expected

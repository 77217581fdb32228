"""Which cases of a test belong to its everyday part: the first few; all of them are run by `make test`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(values: Iterable[Any], everyday: int = 1) -> list[Any]:
    """Mark the cases after the first ones as slow."""
    slow = pytest.mark.slow
    return [
        value if place < everyday else pytest.param(value, marks=slow, id=str(value))
        for place, value in enumerate(values)
    ]

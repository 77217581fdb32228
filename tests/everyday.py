"""Which cases of a test belong to its everyday part, to `make test`, and to the long form alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest

from battery.covering import covering


def first(values: Iterable[Any], everyday: int = 1) -> list[Any]:
    """Mark the cases after the first ones as slow."""
    slow = pytest.mark.slow
    return [
        value if place < everyday else pytest.param(value, marks=slow, id=str(value))
        for place, value in enumerate(values)
    ]


def pairwise(**factors: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test: one case each day, every pair of two values in `make test`, the product in the long form."""
    rows = [tuple(row.values()) for row in covering(factors, 1)]
    rest = [row for row in product(*factors.values()) if row not in rows]
    slow, long = [pytest.mark.slow], [pytest.mark.slow, pytest.mark.long, pytest.mark.trust("products")]
    cases = [pytest.param(*row, marks=slow if place else []) for place, row in enumerate(rows)]
    return pytest.mark.parametrize(",".join(factors), cases + [pytest.param(*row, marks=long) for row in rest])

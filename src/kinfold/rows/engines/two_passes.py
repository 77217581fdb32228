"""Means and covariances of columns in two passes, the second around the means of the first; the engine answers.

Numbers whose squares are too large to be added up are made smaller by a power of two, which loses no digit, and their
means and covariances larger again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

LARGE = 400  # powers of two: the squares of smaller numbers, and sums of any table of them, are doubles


@dataclass(frozen=True)
class Aggregates:
    """How an engine is asked: for a row of aggregates over the rows that have a number in every column."""

    row: Callable[[Sequence[str]], Sequence[Any]]
    average: str  # the name of its mean
    suffix: str = ""  # of a double in its SQL

    def number(self, value: float) -> str:
        """Return a number as the engine reads it."""
        return f"({value!r}{self.suffix})"


def two_passes(asked: Aggregates, names: Sequence[str]) -> tuple[int, Floats, Floats]:
    """Return how many rows there are, and the means and covariances of these columns; the mean of equal numbers is one.

    Where nothing is, means are NaN and covariances 0.
    """
    found = asked.row(["count(*)", *(f"{what}({x})" for x in names for what in (asked.average, "min", "max"))])
    count, facts = int(found[0]), np.array([found[1:]], np.float64).reshape(-1, 3)
    if not count:
        return count, facts[:, 0], np.zeros((len(names), len(names)))
    scale = _scales(facts[:, 1], facts[:, 2])
    scaled = [x if s == 1 else f"({x} * {asked.number(s)})" for x, s in zip(names, scale.tolist(), strict=True)]
    if (scale < 1).any():
        facts[:, 0] = asked.row([f"{asked.average}({x})" for x in scaled])
    means = np.where(facts[:, 1] == facts[:, 2], facts[:, 1] * scale, facts[:, 0])
    covariances = _covariances(asked, scaled, means)
    with np.errstate(over="ignore"):  # of numbers beyond 1e154 even one square is no double
        return count, means / scale, covariances / scale / scale[:, None]


def _scales(low: Floats, high: Floats) -> Floats:
    """Return the power of two that each column is multiplied by: 1 but for large numbers."""
    exponents = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    return np.asarray(np.ldexp(1.0, -np.maximum(exponents - LARGE, 0)))


def _covariances(asked: Aggregates, names: Sequence[str], means: Floats) -> Floats:
    gaps = [f"({x} - {asked.number(mean)})" for x, mean in zip(names, means.tolist(), strict=True)]
    pairs = [(i, j) for i in range(len(names)) for j in range(i, len(names))]
    found = np.zeros((len(names), len(names)))
    answers = asked.row([f"{asked.average}({gaps[i]} * {gaps[j]})" for i, j in pairs])
    for (i, j), value in zip(pairs, answers, strict=True):
        found[i, j] = found[j, i] = value
    return found

"""The criterion of a class: what a model asks of one class, as numbers that a search can read.

A model judges a tally; a search changes one class at a time, millions of times, and cannot make a tally each time. So
a model also hands out a criterion: which statistic of a class it limits, and at what. The search steers by it; the
model itself has the last word.

    ordered     earth mover's distance over values in order, at most the limit
    nested      the same over a hierarchy (equal: one level), at most the limit
    share       share of the most frequent value, at most the limit
    distinct    number of values, at least the limit
    effective   exponential of the entropy, at least the limit
    recursive   r₁ < c·(r_l + …), l being the limit
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Statistic = Literal["ordered", "nested", "share", "distinct", "effective", "recursive"]


@dataclass(frozen=True, eq=False)
class ClassCriterion:
    """A statistic of a class, and its limit."""

    statistic: Statistic
    limit: float
    c: float = 1.0  # recursive only
    paths: NDArray[np.integer[Any]] | None = None  # nested only: labels of each value at each level below the top

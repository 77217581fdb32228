"""l-diversity: every class holds enough different values of a confidential column (Machanavajjhala et al. 2007).

    distinct     at least l different values
    entropy      exp(-Σ p log p) is at least l: as many different values as if all were equally frequent
    recursive    r₁ < c·(r_l + … + r_m), r being the counts from the most frequent value down: the most frequent value
                 does not stand out even when l-2 others are known not to be there

All three only grow when classes merge, so a search may prune: a union holds the values of both (distinct); entropy is
concave and the union is a mixture (entropy); the most frequent value of a union has at most r₁ + r₁' records, and
what is left of it without any l-1 values is at least what was left of the two (recursive).

Null is a value like any other. Cost: O(c log c) for c cells of the spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.models.class_criterion import ClassCriterion, Statistic
from kinfold.models.finding import Finding, Mask, Promise
from kinfold.rows.tally import Ints, Spread, Tally

TOLERANCE = 1e-12  # relative: logarithms are rounded, and l equally frequent values are l-diverse
BEYOND = 2.0**53  # a larger c is the same: no class has so many records
Kind = Literal["distinct", "entropy", "recursive"]


@dataclass(frozen=True)
class LDiversity:
    """Every class is l-diverse in the column, in the sense that `kind` names.

    >>> from kinfold.rows.tally import of_labels
    >>> tally = of_labels(np.array([0, 0, 0, 1, 1]), {"disease": ["flu", "flu", "cold", "flu", "cold"]})
    >>> [round(LDiversity(2, "disease", kind).check(tally).found, 3) for kind in ("distinct", "entropy")]
    [2, 1.89]
    """

    l: float
    column: str
    kind: Kind = "distinct"
    c: float = 1.0  # recursive only
    monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in ("distinct", "entropy", "recursive"):
            raise PolicyError(f"l_kind of {self.column!r} is {self.kind!r}", fix="one of distinct, entropy, recursive")
        whole = self.kind == "entropy" or self.l == int(self.l)
        if not 1 <= self.l < np.inf or not whole:
            raise PolicyError(f"l of {self.column!r} is {self.l}", fix="l is a whole number from 1 up (entropy: any)")
        if not 0 < self.c < np.inf:
            raise PolicyError(f"c of {self.column!r} is {self.c}", fix="c is a number above 0")

    @property
    def absorbing(self) -> bool:
        """Only distinct values can never be lost by a merge: a one-sided class spoils the other two kinds."""
        return self.kind == "distinct"

    def levels(self, tally: Tally) -> NDArray[np.float64]:
        """The largest l that each class reaches."""
        spread = tally.spreads[self.column]
        if self.kind == "distinct":
            return distinct(spread, len(tally)).astype(np.float64)
        counted = spread.counted(len(tally))
        return effective(spread, counted) if self.kind == "entropy" else recursive(spread, counted, min(self.c, BEYOND))

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:  # noqa: ARG002  the same for any values
        """Return the promise as a search reads it."""
        statistic: dict[Kind, Statistic] = {"distinct": "distinct", "entropy": "effective", "recursive": "recursive"}
        return ClassCriterion(statistic[self.kind], self.l, min(self.c, BEYOND))

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes that do not reach l."""
        return np.asarray(self.levels(tally) < self.l * (1 - TOLERANCE), np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the poorest class with l."""
        levels = self.levels(tally)
        found = float(levels.min()) if len(tally) else 0.0
        failing = np.asarray(levels < self.l * (1 - TOLERANCE), np.bool_)
        l = f"({self.c:g},{self.l:g})" if self.kind == "recursive" else f"{self.l:g}"
        promise = Promise(f"{self.kind} {l}-diversity of {self.column}", "l", self.column, self.l)
        return promise.judged(found if self.kind == "entropy" else int(found), failing, tally)


def distinct(spread: Spread, classes: int) -> Ints:
    """How many different values each class holds."""
    return np.bincount(spread.group, spread.count > 0, classes).astype(np.int64)


def effective(spread: Spread, sizes: Ints) -> NDArray[np.float64]:
    """The exponential of the entropy of each class."""
    held = spread.count > 0
    group, count = spread.group[held], spread.count[held]
    share = count / sizes[group]
    return np.asarray(np.exp(np.bincount(group, -share * np.log(share), len(sizes))) * (sizes > 0))


def recursive(spread: Spread, sizes: Ints, c: float) -> NDArray[np.float64]:
    """The largest l for which each class is (c,l)-diverse; 0 if it is for none.

    The comparison is strict; where c·tail is rounded, equality counts as a miss.
    """
    order = np.lexsort((-spread.count, spread.group))
    group, count = spread.group[order], spread.count[order]
    first = np.concatenate([[True], group[1:] != group[:-1]]) if len(group) else np.zeros(0, np.bool_)
    start = np.flatnonzero(first)[np.cumsum(first) - 1] if len(group) else np.zeros(0, np.int64)
    before = np.cumsum(count) - count
    tail = sizes[group] - (before - before[start])  # records of this value and the less frequent ones
    reached = count[start] < c * tail * (1 - TOLERANCE)
    return np.bincount(group, reached, len(sizes)).astype(np.float64)

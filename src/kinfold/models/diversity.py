"""Diversity of the confidential values in a class: l-diversity, p-sensitive k-anonymity and (alpha,k)-anonymity.

l-diversity (Machanavajjhala et al. 2007):

    distinct     at least l different values
    entropy      exp(-sum p log p) is at least l: the number of equally frequent values with the same entropy
    recursive    r_1 < c (r_l + ... + r_m), where r are the counts from the most frequent value down

All three only grow when classes merge, so a search may prune: a union holds the values of both classes (distinct);
entropy is concave and the union is a mixture (entropy); the most frequent value of a union has at most r_1 + r_1'
records, and what remains of the union without any l-1 values is at least what remains of both classes (recursive).

p-sensitive k-anonymity (Truta & Vinay 2006): every class holds at least p values. For one column this equals distinct
l-diversity; policies name it separately.

(alpha,k)-anonymity (Wong, Li, Fu & Wang, KDD 2006, section 4): no value has a share above alpha in a class. This is the
general form: the limit holds for every value of the column.

`KAnonymity` checks the k of the last two. Null is a value like any other. Cost: O(c log c) for c cells of the spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.models.model import ClassCriterion, Finding, Mask, Promise, Statistic
from kinfold.tables.schema import MAX_EXACT_INTEGER
from kinfold.tables.tally import Ints, Spread, Tally

RELATIVE_TOLERANCE = 1e-12  # logarithms are rounded, and l equally frequent values must be l-diverse
DiversityKind = Literal["distinct", "entropy", "recursive"]


@dataclass(frozen=True)
class LDiversity:
    """Every class is l-diverse in the column; `kind` names the definition.

    >>> from kinfold.tables.tally import tally_labels
    >>> tally = tally_labels(np.array([0, 0, 0, 1, 1]), {"disease": ["flu", "flu", "cold", "flu", "cold"]})
    >>> [round(LDiversity(2, "disease", kind).check(tally).found, 3) for kind in ("distinct", "entropy")]
    [2, 1.89]
    """

    l: float
    column: str
    kind: DiversityKind = "distinct"
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
        """Whether a class keeps the promise after any merge: only a number of distinct values never shrinks."""
        return self.kind == "distinct"

    def levels(self, tally: Tally) -> NDArray[np.float64]:
        """Return the largest l that each class reaches."""
        spread = tally.spreads[self.column]
        if self.kind == "distinct":
            return count_distinct(spread, len(tally)).astype(np.float64)
        sizes = spread.class_totals(len(tally))
        if self.kind == "entropy":
            return effective_values(spread, sizes)
        return recursive_levels(spread, sizes, min(self.c, MAX_EXACT_INTEGER))

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:  # noqa: ARG002  the same for any values
        """Return the criterion that a search uses."""
        statistic: Statistic = "effective" if self.kind == "entropy" else self.kind
        return ClassCriterion(statistic, self.l, min(self.c, MAX_EXACT_INTEGER))

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes below l."""
        return np.asarray(self.levels(tally) < self.l * (1 - RELATIVE_TOLERANCE), np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the least diverse class with l."""
        least = float(self.levels(tally).min()) if len(tally) else 0.0
        l = f"({self.c:g},{self.l:g})" if self.kind == "recursive" else f"{self.l:g}"
        promise = Promise(f"{self.kind} {l}-diversity of {self.column}", "l", self.column, self.l)
        return promise.compare(least if self.kind == "entropy" else int(least), self.failing(tally), tally)


def count_distinct(spread: Spread, classes: int) -> Ints:
    """Return the number of distinct values in each class."""
    return np.bincount(spread.group, spread.count > 0, classes).astype(np.int64)


def effective_values(spread: Spread, sizes: Ints) -> NDArray[np.float64]:
    """Return the exponential of the entropy of each class."""
    present = spread.count > 0
    group, count = spread.group[present], spread.count[present]
    share = count / sizes[group]
    return np.asarray(np.exp(np.bincount(group, -share * np.log(share), len(sizes))) * (sizes > 0))


def recursive_levels(spread: Spread, sizes: Ints, c: float) -> NDArray[np.float64]:
    """Return the largest l for which each class is (c,l)-diverse, or 0.

    The comparison is strict; if c * tail is rounded, equality fails.
    """
    order = np.lexsort((-spread.count, spread.group))
    group, count = spread.group[order], spread.count[order]
    first = np.concatenate([[True], group[1:] != group[:-1]]) if len(group) else np.zeros(0, np.bool_)
    start = np.flatnonzero(first)[np.cumsum(first) - 1] if len(group) else np.zeros(0, np.int64)
    before = np.cumsum(count) - count
    tail = sizes[group] - (before - before[start])  # records of this value and the less frequent ones
    reached = count[start] < c * tail * (1 - RELATIVE_TOLERANCE)
    return np.bincount(group, reached, len(sizes)).astype(np.float64)


@dataclass(frozen=True)
class PSensitive:
    """Every class holds at least p distinct values of the column.

    >>> from kinfold.tables.tally import tally_labels
    >>> tally = tally_labels(np.array([0, 0, 1, 1]), {"disease": ["flu", "flu", "flu", "cold"]})
    >>> PSensitive(2, "disease").check(tally).failing
    1
    """

    p: int
    column: str
    monotone: ClassVar[bool] = True  # a union holds the values of both classes
    absorbing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.p < 1 or self.p != int(self.p):
            raise PolicyError(f"p of {self.column!r} is {self.p}", fix="p is a whole number from 1 up")

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:  # noqa: ARG002  the same for any values
        """Return the criterion that a search uses."""
        return ClassCriterion("distinct", self.p)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes with fewer than p distinct values."""
        return np.asarray(count_distinct(tally.spreads[self.column], len(tally)) < self.p, np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the least diverse class with p."""
        fewest = count_distinct(tally.spreads[self.column], len(tally)).min() if len(tally) else 0
        promise = Promise(f"{self.p}-sensitivity of {self.column}", "p", self.column, self.p)
        return promise.compare(int(fewest), self.failing(tally), tally)


@dataclass(frozen=True)
class AlphaK:
    """No value of the column has a share above alpha in any class.

    >>> from kinfold.tables.tally import tally_labels
    >>> tally = tally_labels(np.array([0, 0, 1, 1]), {"disease": ["flu", "flu", "flu", "cold"]})
    >>> AlphaK(0.5, "disease").check(tally).found
    1.0
    """

    alpha: float
    column: str
    monotone: ClassVar[bool] = True  # the share in a union lies between the shares in its parts
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise PolicyError(f"alpha of {self.column!r} is {self.alpha}", fix="alpha is above 0 and at most 1")

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        """Return the share of the most frequent value in each class."""
        spread = tally.spreads[self.column]
        largest = np.zeros(len(tally), np.int64)
        np.maximum.at(largest, spread.group, spread.count)
        return largest / np.maximum(spread.class_totals(len(tally)), 1)

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:  # noqa: ARG002  the same for any values
        """Return the criterion that a search uses."""
        return ClassCriterion("share", self.alpha)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes with a share above alpha. Quotients are rounded as alpha is, so there is no tolerance."""
        return np.asarray(self.shares(tally) > self.alpha, np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the largest share in any class with alpha."""
        largest = float(self.shares(tally).max()) if len(tally) else 0.0
        promise = Promise(f"{self.alpha}-limit on each value of {self.column}", "alpha", self.column, self.alpha)
        return promise.compare(largest, self.failing(tally), tally)

"""Likeness: how much more, or how differently, a class holds each confidential value than the table does.

p is the share of a value in the table (all records of the tally, so a recipient can check it), q its share in a class.

    basic beta-likeness      (q - p) / p is at most beta, for every value
    enhanced beta-likeness   (q - p) / p is at most min(beta, -ln p)
    delta-disclosure         abs(log2(q / p)) is below delta, for every value of the table in every class

Only positive changes count for beta. The value found is the largest (q - p) / p; for the enhanced kind it is infinite
if some value exceeds its own -ln p, because then no beta holds. A value that a class lacks has q = 0 and an infinite
delta: this is the definition of Brickell & Shmatikov. Over present values only, delta-disclosure is not monotone.

All three are monotone: a share in a union lies between the shares in its parts, and p stays. Null is a value.

Shares are compared as quotients of integers, rounded once.

Papers: Cao & Karras, Publishing microdata with a robust privacy guarantee, PVLDB 5(11), 2012 (beta); Brickell &
Shmatikov, The cost of privacy: destruction of data-mining utility in anonymized data publishing, KDD 2008 (delta).
Cost: O(c) for c cells of the spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.models.model import EXACT_CHECK_MARGIN, ClassCriterion, Finding, Mask, Promise
from kinfold.tables.tally import Ints, Spread, Tally

Floats: TypeAlias = NDArray[np.float64]
LikenessKind = Literal["basic", "enhanced"]


@dataclass(frozen=True, eq=False)
class SharePairs:
    """The cells of a spread as shares: in the class, `count / size`; in the table, `total / records`."""

    group: Ints
    count: Ints
    size: Ints  # of the class of each cell
    total: Ints  # records of the table with the value of each cell
    records: int
    incomplete: Mask  # the classes that lack a value of the table

    @classmethod
    def from_spread(cls, spread: Spread, classes: int) -> SharePairs:
        """Return the shares of the values that classes hold."""
        held = spread.count > 0
        group, count, totals = spread.group[held], spread.count[held], spread.totals()
        sizes = spread.class_totals(classes)
        values = np.bincount(group, minlength=classes)
        incomplete = (values < int((totals > 0).sum())) & (sizes > 0)
        return cls(group, count, sizes[group], totals[spread.code[held]], int(totals.sum()), incomplete)

    def ratio(self, cell: int) -> Fraction:
        """Return q / p of a cell, exactly."""
        return Fraction(int(self.count[cell]) * self.records, int(self.total[cell]) * int(self.size[cell]))

    def gains(self, limit: Floats) -> Floats:
        """Return (q - p) / p of each cell, rounded once where that could matter for the comparison with the limit."""
        due = self.total.astype(np.float64) * self.size
        gains = (self.count.astype(np.float64) * self.records - due) / due
        for cell in np.flatnonzero(abs(gains - limit) <= EXACT_CHECK_MARGIN * (1 + abs(limit))):
            gains[cell] = float(self.ratio(int(cell)) - 1)
        return np.asarray(gains)

    def logarithms(self, limit: float) -> Floats:
        """Return abs(log2(q / p)) of each cell, from the exact quotient where it is near the limit."""
        ratios = (self.count.astype(np.float64) * self.records) / (self.total.astype(np.float64) * self.size)
        logarithms = abs(np.log2(ratios))
        for cell in np.flatnonzero(abs(logarithms - limit) <= EXACT_CHECK_MARGIN * (1 + limit)):
            logarithms[cell] = abs(math.log2(self.ratio(int(cell))))
        return np.asarray(logarithms)

    def surprise(self) -> Floats:
        """Return -ln p of the value of each cell."""
        return np.array([-math.log(total / self.records) + 0.0 for total in self.total.tolist()], np.float64)


@dataclass(frozen=True)
class BetaLikeness:
    """No value is more frequent in a class than in the table by more than beta times its share there.

    >>> from kinfold.tables.tally import tally_labels
    >>> tally = tally_labels(np.array([0, 0, 1, 1]), {"disease": ["flu", "flu", "flu", "cold"]})
    >>> [BetaLikeness(2, "disease", kind).check(tally).found for kind in ("basic", "enhanced")]
    [1.0, inf]
    """

    beta: float
    column: str
    kind: LikenessKind = "basic"
    monotone: ClassVar[bool] = True  # the share in a union lies between the shares in its parts
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.kind not in ("basic", "enhanced"):
            raise PolicyError(f"beta_kind of {self.column!r} is {self.kind!r}", fix="one of basic, enhanced")
        if not 0 < self.beta < math.inf:
            raise PolicyError(f"beta of {self.column!r} is {self.beta}", fix="beta is a number above 0")

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:  # noqa: ARG002  the same for any values
        """Return the criterion that a search uses."""
        return ClassCriterion("likeness" if self.kind == "basic" else "enhanced", self.beta)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes in which a value gains more than beta, or more than its own limit."""
        shares, limit, gains = self._measure(tally)
        return np.asarray(np.bincount(shares.group, gains > limit, len(tally)) > 0)

    def check(self, tally: Tally) -> Finding:
        """Compare the largest gain with beta."""
        shares, limit, gains = self._measure(tally)
        largest = float(gains.max(initial=0.0))
        if self.kind == "enhanced" and (gains > shares.surprise()).any():
            largest = math.inf
        text = f"{self.beta:g}-likeness ({self.kind}) of {self.column}"
        failing = np.asarray(np.bincount(shares.group, gains > limit, len(tally)) > 0)
        return Promise(text, "beta", self.column, self.beta).compare(largest, failing, tally)

    def _measure(self, tally: Tally) -> tuple[SharePairs, Floats, Floats]:
        """Return the shares, the limit of each cell, and its gain."""
        shares = SharePairs.from_spread(tally.spreads[self.column], len(tally))
        limit = np.full(len(shares.group), float(self.beta))
        if self.kind == "enhanced":
            limit = np.minimum(limit, shares.surprise())
        return shares, limit, shares.gains(limit)


@dataclass(frozen=True)
class DeltaDisclosure:
    """Every class holds every value of the column with almost its share in the table: the factor is within 2^±delta.

    >>> from kinfold.tables.tally import tally_labels
    >>> tally = tally_labels(np.array([0, 0, 1, 1, 1]), {"disease": ["flu", "cold", "flu", "flu", "cold"]})
    >>> round(DeltaDisclosure(1, "disease").check(tally).found, 3)
    0.322
    """

    delta: float
    column: str
    monotone: ClassVar[bool] = True  # the share in a union lies between the shares in its parts
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.delta < math.inf:
            raise PolicyError(f"delta of {self.column!r} is {self.delta}", fix="delta is a number above 0")

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:  # noqa: ARG002  the same for any values
        """Return the criterion that a search uses."""
        return ClassCriterion("disclosure", self.delta)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes that lack a value of the table, or hold one in too different a share."""
        return self._mark(tally)[1]

    def check(self, tally: Tally) -> Finding:
        """Compare the largest logarithm with delta."""
        largest, failing = self._mark(tally)
        text = f"{self.delta:g}-disclosure (strict) of {self.column}"
        return Promise(text, "delta", self.column, self.delta).compare(largest, failing, tally)

    def _mark(self, tally: Tally) -> tuple[float, Mask]:
        """Return the largest logarithm and the failing classes."""
        shares = SharePairs.from_spread(tally.spreads[self.column], len(tally))
        logarithms = shares.logarithms(self.delta)
        failing = (np.bincount(shares.group, logarithms >= self.delta, len(tally)) > 0) | shares.incomplete
        largest = math.inf if shares.incomplete.any() else float(logarithms.max(initial=0.0))
        return largest, np.asarray(failing)

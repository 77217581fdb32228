"""(alpha,k)-anonymity: no value of a confidential column makes up more than a share alpha of a class.

The general form of Wong, Li, Fu & Wang (KDD 2006, section 4): the limit holds for every value of the column, not for
one value that was named. The k of the name is promised beside it, by `KAnonymity`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.models.class_criterion import ClassCriterion
from kinfold.models.finding import Finding, Mask, Promise
from kinfold.rows.tally import Tally


@dataclass(frozen=True)
class AlphaK:
    """In no class is a value of the column more frequent than alpha; null is a value.

    >>> from kinfold.rows.tally import of_labels
    >>> tally = of_labels(np.array([0, 0, 1, 1]), {"disease": ["flu", "flu", "flu", "cold"]})
    >>> AlphaK(0.5, "disease").check(tally).found
    1.0
    """

    alpha: float
    column: str
    monotone: ClassVar[bool] = True  # a share of a union lies between the shares of its parts
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise PolicyError(f"alpha of {self.column!r} is {self.alpha}", fix="alpha is above 0 and at most 1")

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        """Share of the most frequent value in each class."""
        spread = tally.spreads[self.column]
        most = np.zeros(len(tally), np.int64)
        np.maximum.at(most, spread.group, spread.count)
        return most / np.maximum(spread.counted(len(tally)), 1)

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:  # noqa: ARG002  the same for any values
        """Return the promise as a search reads it."""
        return ClassCriterion("share", self.alpha)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes where some value is more frequent than alpha. Quotients round as alpha did: no tolerance."""
        return np.asarray(self.shares(tally) > self.alpha, np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the most frequent value of any class with alpha."""
        found = float(self.shares(tally).max()) if len(tally) else 0.0
        promise = Promise(f"{self.alpha}-limit on each value of {self.column}", "alpha", self.column, self.alpha)
        return promise.judged(found, self.failing(tally), tally)

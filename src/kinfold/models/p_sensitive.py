"""p-sensitive k-anonymity: every class holds at least p values of a confidential column (Truta & Vinay 2006).

The k of the name is promised beside it, by `KAnonymity`. For one column it asks what distinct l-diversity asks; it is
kept apart because it is asked for under its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.models.class_criterion import ClassCriterion
from kinfold.models.finding import Finding, Mask, Promise
from kinfold.models.l_diversity import distinct
from kinfold.rows.tally import Tally


@dataclass(frozen=True)
class PSensitive:
    """Every class holds at least p different values of the column; null is a value.

    >>> from kinfold.rows.tally import of_labels
    >>> tally = of_labels(np.array([0, 0, 1, 1]), {"disease": ["flu", "flu", "flu", "cold"]})
    >>> PSensitive(2, "disease").check(tally).failing
    1
    """

    p: int
    column: str
    monotone: ClassVar[bool] = True  # a union holds the values of both
    absorbing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.p < 1 or self.p != int(self.p):
            raise PolicyError(f"p of {self.column!r} is {self.p}", fix="p is a whole number from 1 up")

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:  # noqa: ARG002  the same for any values
        """Return the promise as a search reads it."""
        return ClassCriterion("distinct", self.p)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes with fewer than p values."""
        return np.asarray(distinct(tally.spreads[self.column], len(tally)) < self.p, np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the poorest class with p."""
        found = distinct(tally.spreads[self.column], len(tally)).min() if len(tally) else 0
        promise = Promise(f"{self.p}-sensitivity of {self.column}", "p", self.column, self.p)
        return promise.judged(int(found), self.failing(tally), tally)

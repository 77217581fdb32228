"""k-anonymity: every class holds at least k records (Samarati & Sweeney 1998)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from kinfold.errors import PolicyError
from kinfold.models.model import Finding, Mask, Promise
from kinfold.tables.tally import Tally


@dataclass(frozen=True)
class KAnonymity:
    """Every combination of quasi-identifier values that occurs is shared by at least k records.

    >>> KAnonymity(3).check(Tally({}, np.array([3, 2, 5]))).found
    2
    """

    k: int
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = True  # sizes add up
    absorbing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        k: object = self.k  # a certificate may hold any value
        if isinstance(k, bool) or not isinstance(k, Integral) or int(k) < 1:
            raise PolicyError(f"k is {self.k}", fix="k is a whole number from 1 up")

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes with fewer than k records."""
        return np.asarray(tally.sizes < self.k, np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the smallest class with k."""
        smallest = int(tally.sizes.min()) if len(tally) else 0
        return Promise(f"{self.k}-anonymity", "k", None, self.k).compare(smallest, self.failing(tally), tally)

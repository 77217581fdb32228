"""k-anonymity: every class holds at least k records (Samarati & Sweeney 1998)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kinfold.models.finding import Finding
from kinfold.tally import Tally


@dataclass(frozen=True)
class KAnonymity:
    """Every combination of quasi-identifier values that occurs is shared by at least k records.

    >>> import numpy as np
    >>> KAnonymity(3).check(Tally({}, np.array([3, 2, 5]))).found
    2
    """

    k: int
    monotone: ClassVar[bool] = True

    def check(self, tally: Tally) -> Finding:
        """Compare the smallest class with k; a table without records promises nothing."""
        small = tally.sizes[tally.sizes < self.k]
        found = int(tally.sizes.min()) if len(tally) else 0
        return Finding(
            promise=f"{self.k}-anonymity",
            model="k",
            column=None,
            asked=self.k,
            found=found,
            holds=found >= self.k,
            failing=len(small),
            smallest=found if len(small) else 0,
        )

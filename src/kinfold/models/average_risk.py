"""Average risk: promises about the sizes of all classes together.

The risk of a record is 1 / (size of its class): the chance that an attacker who knows a person's quasi-identifiers and
that the person is in the table takes the right record.

    average risk    classes / records, the mean risk of the records, is at most r
    risk share      the share of the records with a risk above a limit is at most s

Both are promises about the table: no class can be judged alone. Merging classes never breaks them. `failing` marks the
smallest classes, as few as must be dropped for the others to keep the promise.

Paper: El Emam & Dankar, J. Am. Med. Inform. Assoc. 15 (2008), for the prosecutor's risk.
Cost: O(c log c) for c classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kinfold.errors import PolicyError
from kinfold.models.k_anonymity import KAnonymity
from kinfold.models.model import Finding, Mask, Model, Promise, TableModel
from kinfold.tables.tally import Ints, Tally


@dataclass(frozen=True)
class AverageRisk(TableModel):
    """The number of classes is at most so many times the number of records.

    >>> AverageRisk(0.25).check(Tally({}, np.array([1, 4, 5]))).found
    0.3
    """

    risk: float
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = True  # a merge leaves fewer classes of as many records
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.risk <= 1:
            raise PolicyError(f"average_risk is {self.risk}", fix="average_risk is above 0 and at most 1")

    def imply(self, records: int) -> tuple[Model, ...]:  # noqa: ARG002  the same for any table
        """Return promises about each class that imply this one."""
        return (KAnonymity(size_for_risk(self.risk)),)

    def failing(self, tally: Tally) -> Mask:
        """Mark the smallest classes, until the others keep the promise."""
        sizes = np.sort(tally.sizes)
        kept = np.arange(len(sizes), 0, -1)
        average = kept / np.cumsum(sizes[::-1])[::-1]  # if only the classes from here on are kept
        return _mark_smallest(tally.sizes, _find_first(average <= self.risk))

    def check(self, tally: Tally) -> Finding:
        """Compare the average risk with the limit."""
        average = len(tally) / tally.records if len(tally) else 1.0
        promise = Promise(f"average risk of at most {self.risk:g}", "average_risk", None, self.risk)
        return promise.compare(average, self.failing(tally), tally)


@dataclass(frozen=True)
class RiskShare(TableModel):
    """At most this share of the records has a risk above a limit.

    >>> RiskShare(above=0.3, most=0.1).check(Tally({}, np.array([1, 4, 5]))).found
    0.1
    """

    above: float
    most: float
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = True  # classes grow
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (0 < self.above <= 1 and 0 <= self.most < 1):
            what = f"risk_share has above = {self.above} and most = {self.most}"
            raise PolicyError(what, fix="above is above 0 and at most 1; most is from 0 up to below 1")

    def imply(self, records: int) -> tuple[Model, ...]:  # noqa: ARG002  the same for any table
        """Return promises about each class that imply this one."""
        return (KAnonymity(size_for_risk(self.above)),)

    def failing(self, tally: Tally) -> Mask:
        """Mark the smallest classes above the limit, until the others keep the promise."""
        sizes = np.sort(tally.sizes)
        at_risk = np.where(1 / np.maximum(sizes, 1) > self.above, sizes, 0)
        share = np.cumsum(at_risk[::-1])[::-1] / np.cumsum(sizes[::-1])[::-1]
        return _mark_smallest(tally.sizes, _find_first(share <= self.most))

    def check(self, tally: Tally) -> Finding:
        """Compare the share of the records above the limit with the largest one."""
        at_risk = int(tally.sizes[1 / np.maximum(tally.sizes, 1) > self.above].sum())
        share = at_risk / tally.records if len(tally) else 1.0
        text = f"at most {self.most:g} of the records at a risk above {self.above:g}"
        return Promise(text, "risk_share", None, self.most).compare(share, self.failing(tally), tally)


MAX_SIZE = 10**15  # no table has a larger class


def size_for_risk(risk: float) -> int:
    """Return the least class size with at most this risk.

    >>> size_for_risk(0.1), size_for_risk(0.3), size_for_risk(1 / 49)
    (10, 4, 49)
    """
    if risk < 1 / MAX_SIZE:
        return MAX_SIZE
    size = max(int(1 / risk), 1)
    while 1 / size > risk:
        size += 1
    return size - 1 if size > 1 and 1 / (size - 1) <= risk else size


def _find_first(holds: Mask) -> int:
    """Return the first place that holds, or the end."""
    return int(np.argmax(holds)) if holds.any() else len(holds)


def _mark_smallest(sizes: Ints, count: int) -> Mask:
    marked = np.zeros(len(sizes), np.bool_)
    marked[np.argsort(sizes, kind="stable")[:count]] = True
    return marked

"""t-closeness: the values of a confidential column fall in every class as in the whole table (Li et al. 2007).

The distance is the earth mover's, over the distinct values that the table holds, against all records of the same
tally: the table as released, so that whoever receives it can check it. Null is one more value: first in an order, and
under nothing but the top of a hierarchy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError
from kinfold.hierarchy import Hierarchy
from kinfold.models import emd
from kinfold.models.class_criterion import ClassCriterion
from kinfold.models.finding import Finding, Mask, Promise
from kinfold.rows.categories import category
from kinfold.rows.tally import Tally, is_null

Distance = Literal["ordered", "equal", "hierarchical"]


@dataclass(frozen=True)
class TCloseness:
    """In no class is the distribution of the column farther than t from its distribution in the table.

    >>> from kinfold.rows.tally import of_labels
    >>> tally = of_labels(np.array([0, 0, 1, 1]), {"wage": [1, 2, 3, 4]})
    >>> TCloseness(0.3, "wage").check(tally).found
    0.3333333333333333
    """

    t: float
    column: str
    distance: Distance = "ordered"
    hierarchy: Hierarchy | None = None
    monotone: ClassVar[bool] = True  # the distance is convex, and the union of two classes is a mixture of them
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.t <= 1:
            raise PolicyError(f"t of {self.column!r} is {self.t}", fix="t is above 0 and at most 1")
        if self.distance not in ("ordered", "equal", "hierarchical"):
            raise PolicyError(
                f"distance of {self.column!r} is {self.distance!r}", fix="one of ordered, equal, hierarchical"
            )
        if (self.hierarchy is None) == (self.distance == "hierarchical"):
            what = f"{self.column!r} has {'no' if self.hierarchy is None else 'a'} hierarchy"
            raise PolicyError(
                f"{what}, and the distance is {self.distance}",
                fix="the distance 'hierarchical' and a hierarchy go together",
            )

    def work(self, tally: Tally) -> emd.ClassDistances:
        """What it takes to turn each class into the table."""
        spread = tally.spreads[self.column]
        counted = spread.counted(len(tally))
        if self.distance == "ordered":
            return emd.ordered_work(spread, counted)
        if self.hierarchy is None:
            return emd.equal_work(spread, counted)
        return emd.nested_work(spread, counted, paths(self.hierarchy, spread.values, self.column))

    def distances(self, tally: Tally) -> NDArray[np.float64]:
        """Distance of each class to the table, from 0 to 1."""
        return self.work(tally).shares()

    def criterion(self, values: NDArray[Any]) -> ClassCriterion:
        """Return the promise as a search reads it; `values` are the distinct values in order."""
        if self.distance == "ordered":
            return ClassCriterion("ordered", self.t)
        if self.hierarchy is None:
            return ClassCriterion("nested", self.t, paths=np.arange(len(values))[:, None])
        return ClassCriterion("nested", self.t, paths=paths(self.hierarchy, values, self.column))

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes that are farther than t from the table."""
        return self.work(tally).above(self.t)

    def check(self, tally: Tally) -> Finding:
        """Compare the class that is farthest from the table with t."""
        work = self.work(tally)
        found = float(work.shares().max()) if len(tally) else 0.0
        promise = Promise(f"{self.t}-closeness of {self.column}", "t", self.column, self.t)
        return promise.judged(found, work.above(self.t), tally)


def paths(hierarchy: Hierarchy, values: NDArray[Any], column: str) -> NDArray[np.int32]:
    """Number the labels of each value at each level below the top; null stands by itself at every level.

    >>> tree = Hierarchy.of([("flu", "lungs"), ("cold", "lungs"), ("ulcer", "stomach")])
    >>> paths(tree, np.array([None, "cold", "ulcer"], object), "disease").tolist()
    [[3, 2], [1, 0], [2, 1]]
    """
    null = is_null(values)
    known = {category(leaf): row for row, leaf in enumerate(hierarchy.values)}
    rows = np.array([known.get(category(str(value)), -1) for value in values[~null]], np.int64)
    if missing := int((rows < 0).sum()):
        what = f"the hierarchy of {column!r} lacks {missing} of its {len(values)} values"
        raise DataError(what, fix="add them to the hierarchy")
    labels = hierarchy.paths[:, : hierarchy.height]
    numbered = np.empty((len(values), hierarchy.height), np.int32)
    numbered[null] = labels.max(axis=0) + 1
    numbered[~null] = labels[rows]
    return numbered

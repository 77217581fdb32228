"""The interface of a privacy model, and its result.

A model is a frozen value with two methods. `failing(tally)` marks the classes that fail the promise; a search and a
repair use it. `check(tally)` returns a finding with the value found; verification uses it. Both use the same formula.

A promise about the table as a whole (`TableModel`) names promises about each class that imply it.

A model of a confidential column also returns a `ClassCriterion`: a statistic of one class and its limit. A search
changes one class at a time, millions of times, and reads the criterion instead of a tally. The model itself makes the
final check.

    ordered     earth mover's distance over ordered values, at most the limit
    nested      the same over a hierarchy (equal distances: one level), at most the limit
    share       share of the most frequent value, at most the limit
    distinct    number of values, at least the limit
    effective   exponential of the entropy, at least the limit
    recursive   r_1 < c (r_l + ... + r_m), where l is the limit
    likeness    the largest gain of a value over its share in the table, at most the limit
    enhanced    the same, and at most -ln of that share
    disclosure  the largest abs(log2) of the quotient of the two shares, below the limit
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.tables.tally import Tally

Statistic = Literal[
    "ordered", "nested", "share", "distinct", "effective", "recursive", "likeness", "enhanced", "disclosure"
]

EXACT_CHECK_MARGIN = 1e-9  # relative; rounding cannot move a quotient across a limit that is farther away than this


@dataclass(frozen=True, eq=False)
class ClassCriterion:
    """A statistic of a class, and its limit."""

    statistic: Statistic
    limit: float
    c: float = 1.0  # recursive only
    paths: NDArray[np.integer[Any]] | None = None  # nested only: labels of each value at each level below the top


Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """The result of one model on a tally: the required value, the value found, and the failing classes."""

    promise: str  # for example "5-anonymity" or "0.2-closeness of disease"
    model: str  # a short name: k, l, t, p, alpha, beta, delta
    column: str | None
    asked: float
    found: float  # may be infinite if the promise fails
    holds: bool
    failing: int = 0  # number of classes that fail
    smallest: int = 0  # size of the smallest failing class

    @property
    def figure(self) -> float | None:
        """The value found, None if it is infinite: JSON has no infinity."""
        return None if self.found == math.inf else self.found

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a dictionary for JSON."""
        return asdict(self) | {"found": self.figure}


class Model(Protocol):
    """A promise about every class of a table."""

    monotone: ClassVar[bool]  # the union of two classes that keep the promise keeps it, so a search may prune

    @property
    def column(self) -> str | None:
        """The confidential column of the promise; None if the promise is about class sizes only."""
        ...

    @property
    def absorbing(self) -> bool:
        """Whether a class that keeps the promise keeps it after any merge, so that suppression may prune."""
        ...

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes that fail the promise."""
        ...

    def check(self, tally: Tally) -> Finding:
        """Compare the worst class with the promise."""
        ...


class TableModel(ABC):
    """A promise about the table as a whole: no class can be judged on its own."""

    @abstractmethod
    def imply(self, records: int) -> tuple[Model, ...]:
        """Return promises about each class that imply this one, for a table of so many records; none if there are none.

        A method that changes one class at a time keeps these instead.
        """


def to_class_models(models: Iterable[Model], records: int) -> list[Model]:
    """Replace promises about the table as a whole by promises about each class that imply them."""
    return [each for model in models for each in (model.imply(records) if isinstance(model, TableModel) else (model,))]


@dataclass(frozen=True)
class Promise:
    """The text and the required value of a promise."""

    text: str
    model: str
    column: str | None
    required: float

    def compare(self, value: float, failing: Mask, tally: Tally) -> Finding:
        """Return the finding for the value found and the failing classes. An empty table fails every promise."""
        sizes = tally.sizes[failing]
        return Finding(
            promise=self.text,
            model=self.model,
            column=self.column,
            asked=self.required,
            found=value,
            holds=bool(len(tally)) and not len(sizes),
            failing=len(sizes),
            smallest=int(sizes.min()) if len(sizes) else 0,
        )

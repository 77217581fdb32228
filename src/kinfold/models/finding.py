"""What a privacy model is, and what it answers.

A model is a frozen value with two verbs. `failing(tally)` marks the classes that miss the promise: a search and a
repair ask it. `check(tally)` says what was found, not only yes or no: a release is judged by it. Both ask the same
formula, so that what was built and what is verified cannot drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.rows.tally import Tally

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """What a model found on a tally: the value asked, the value found, and the classes that miss it."""

    promise: str  # in words, for example "5-anonymity" or "0.2-closeness of disease"
    model: str  # a short name: k, l, t, p, alpha
    column: str | None
    asked: float
    found: float
    holds: bool
    failing: int = 0  # classes that miss the promise
    smallest: int = 0  # size of the smallest class that misses it


class Model(Protocol):
    """A promise about every class of a table."""

    monotone: ClassVar[bool]  # merging two classes that keep the promise keeps it, so a search may prune

    @property
    def column(self) -> str | None:
        """The confidential column that it is about; None where it is about the size of classes alone."""
        ...

    @property
    def absorbing(self) -> bool:
        """Whether a class that keeps the promise keeps it whatever it merges with, so that suppression may prune."""
        ...

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes that miss the promise."""
        ...

    def check(self, tally: Tally) -> Finding:
        """Compare every class with the promise."""
        ...


@dataclass(frozen=True)
class Promise:
    """The words and numbers of a promise, before a table is asked."""

    text: str
    model: str
    column: str | None
    asked: float

    def judged(self, found: float, failing: Mask, tally: Tally) -> Finding:
        """Put what was found beside what was asked; a table without records promises nothing."""
        misses = tally.sizes[failing]
        return Finding(
            promise=self.text,
            model=self.model,
            column=self.column,
            asked=self.asked,
            found=found,
            holds=bool(len(tally)) and not len(misses),
            failing=len(misses),
            smallest=int(misses.min()) if len(misses) else 0,
        )

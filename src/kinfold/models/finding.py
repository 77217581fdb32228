"""What a privacy model is, and what it answers.

A model is a frozen value with one verb: `check(tally)`. The search for a release and the judgement of a release ask
the same object. It answers with what it found, not only yes or no.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from kinfold.tally import Tally


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

    def check(self, tally: Tally) -> Finding:
        """Compare every class with the promise."""
        ...

"""Which classes must go so that every promise holds on what is left.

    while a class of what is left misses a promise: suppress all such classes
    starred records stand in one class of their own, which has to keep the promises as well:
        while it does not, the smallest class that is left (the first of equals) is starred too

Suppressing changes what t-closeness compares with, so it is asked again until nothing more has to go. A model that is
absorbing loses no class by a merge: then the records that must go only get fewer on the way up the lattice.

Reading of paper 002, Figure 8, step 4: while some but fewer than k tuples are suppressed, suppress the whole smallest
class as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np

from kinfold.errors import PolicyError
from kinfold.generalize.domain import Mask
from kinfold.tally import Tally


class Model(Protocol):
    """A promise about every class of a table (see `kinfold.models`)."""

    monotone: ClassVar[bool]

    @property
    def absorbing(self) -> bool:
        """Whether a class that keeps the promise keeps it whatever it merges with."""
        ...

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes that miss the promise."""
        ...


Models = Sequence[Model]


def failing(models: Models, tally: Tally) -> Mask:
    """Mark the classes that miss any of the promises."""
    marked = np.zeros(len(tally), np.bool_)
    for model in models:
        marked |= model.failing(tally)
    return marked


def outliers(models: Models, tally: Tally, at_once: bool = False) -> Mask:
    """Mark the classes to suppress so that the others keep every promise; all are marked where that takes all.

    `at_once` is enough for models that only look at one class at a time.
    """
    gone = failing(models, tally)
    while not at_once and gone.any() and not gone.all():
        more = failing(models, tally.drop(gone))
        if not more.any():
            break
        gone[np.flatnonzero(~gone)[more]] = True
    return gone


def completed(models: Models, tally: Tally, gone: Mask) -> Mask:
    """Mark more classes, the smallest first, until those marked would keep the promises as one class."""
    gone = gone.copy()
    while gone.any() and not gone.all() and _missed(models, tally, gone):
        left = np.flatnonzero(~gone)
        gone[left[np.argmin(tally.sizes[left])]] = True
    return gone


def _missed(models: Models, tally: Tally, gone: Mask) -> bool:
    kept = ~gone
    into = np.where(kept, np.cumsum(kept), 0)  # class 0 holds all that are suppressed
    return bool(failing(models, tally.merge(into, {}))[0])


def threshold(suppression: float, records: int) -> int:
    """Return how many records may be suppressed: a whole number is a count, a fraction a share of the records.

    >>> threshold(3, 200), threshold(0.02, 200), threshold(1.0, 200)
    (3, 4, 200)
    """
    share = isinstance(suppression, float)
    if suppression < 0 or (share and suppression > 1) or suppression != suppression:
        raise PolicyError(
            f"suppression is {suppression}", fix="give a number of records from 0 up, or a share from 0.0 to 1.0"
        )
    return int(np.floor(suppression * records + 1e-9)) if share else min(int(suppression), records)


def asked_k(models: Models) -> int:
    """Return the largest k that the models ask for, 1 if none does."""
    return max((int(getattr(model, "k", 1)) for model in models), default=1)

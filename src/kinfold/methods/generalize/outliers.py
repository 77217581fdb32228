"""Which classes must go so that every promise holds on what is left.

    dropped     suppress the classes that miss an absorbing promise, such as k
                while a class of what is left misses another promise: suppress all such classes
    starred     suppress the classes that miss a promise; they are released as one class, which has to keep them too:
                while it does not, the smallest class that is left (the first of equals) is starred as well

Dropping changes what t-closeness compares with, so it is asked again until nothing more has to go. A model that is
absorbing loses no class by a merge: then the records that must be dropped only get fewer on the way up the lattice.
Those that must be starred do not: few of them need others to fill their class, which can be more in all.

Reading of paper 002, Figure 8, step 4: while some but fewer than k tuples are suppressed, suppress the whole smallest
class as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kinfold.errors import PolicyError
from kinfold.methods.generalize.domain import Mask
from kinfold.models import KAnonymity, Model
from kinfold.rows.tally import Tally

Models = Sequence[Model]


def failing(models: Models, tally: Tally) -> Mask:
    """Mark the classes that miss any of the promises."""
    marked = np.zeros(len(tally), np.bool_)
    for model in models:
        marked |= model.failing(tally)
    return marked


def outliers(models: Models, tally: Tally, *, starred: bool = False) -> Mask:
    """Mark the classes to suppress so that the others keep every promise; all are marked where that takes all.

    Where suppressed records are starred, they are one class of the release and keep every promise as well.
    """
    if starred:
        return completed(models, tally, failing(models, tally))
    gone = failing([model for model in models if model.absorbing], tally)
    others = [model for model in models if not model.absorbing]
    while others and not gone.all():
        left = np.flatnonzero(~gone)
        more = failing(others, tally.drop(gone) if len(left) < len(gone) else tally)
        if not more.any():
            break
        gone[left[more]] = True
    return gone


def completed(models: Models, tally: Tally, gone: Mask) -> Mask:
    """Mark more classes until the others, and those marked as one class of their own, all keep the promises."""
    gone = gone.copy()
    while gone.any() and not gone.all():
        left = np.flatnonzero(~gone)
        into = np.zeros(len(tally), np.int64)  # class 0 holds all that are suppressed
        into[left] = np.arange(1, len(left) + 1)
        missed = failing(models, tally.merge(into, {}))
        if missed[1:].any():
            gone[left[missed[1:]]] = True
        elif missed[0]:
            gone[left[np.argmin(tally.sizes[left])]] = True
        else:
            break
    return gone


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
    return max((model.k for model in models if isinstance(model, KAnonymity)), default=1)

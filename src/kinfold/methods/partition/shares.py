"""Shares: how many records of each kind a class takes, where it is close if its shares are those of the table.

Of n records with n_v of kind v, in C classes:

    every class takes    ⌊n_v / C⌋ of kind v, whatever happens
    over are             n_v mod C of kind v: no class takes more than one of them, and every class about as many in all

So each class has the share of every kind rounded down or up, as by largest remainders, and which kinds are rounded up
is left to what is near. Nothing is left over in the end: a kind of which every class to come has to take one
more comes first.

How large a class has to be so that such shares are often close enough is tried out on some classes drawn at random,
for growing sizes.

Cost: O(TRIED · size) a size, at most as many sizes as it takes.   Ties: the smallest size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.partition.record_kinds import MOST, coarser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement

TRIED = 200  # classes drawn for a size; fewer large ones
# of them must be close, the others are repaired: 0.3 to 0.9 were tried on Adult (3 requests) and on made tables of 4 to
# 25 values. Below, repair costs more than larger classes do, and of occupation takes 30 times as long
OFTEN = 0.8
STEP = 1.1  # between two sizes that are tried, where they are large


@dataclass(frozen=True, eq=False)
class Quotas:
    """How many records of each kind every class takes, and how many are over."""

    classes: int
    always: NDArray[np.int64]
    over: NDArray[np.int64]

    @classmethod
    def of(cls, kind: NDArray[np.int32], size: int) -> Quotas:
        """Return the quotas of classes of about so many records.

        >>> quotas = Quotas.of(np.array([0] * 7 + [1] * 3, np.int32), 3)
        >>> quotas.classes, quotas.always.tolist(), quotas.over.tolist()
        (3, [2, 1], [1, 0])
        """
        classes = len(kind) // size
        return cls(classes, *np.divmod(np.bincount(kind), classes))


def share_kinds(required: Requirement) -> NDArray[np.int32]:
    """Number the kind of each record: its value, or one kind for all rare values where there are many."""
    return coarser(required.codes, MOST, ordered=False).astype(np.int32)


def fitting_size(required: Requirement, k: int) -> int:
    """Return the smallest size from k up (in steps) at which classes with such shares are often close.

    >>> from kinfold.methods.partition.requirement import Requirement
    >>> from kinfold.models import TCloseness
    >>> ill = Requirement.of(TCloseness(0.1, "ill", "equal"), ["flu", "cold", "cold", "cold"] * 50)
    >>> fitting_size(ill, 2), fitting_size(ill, 7)
    (4, 7)
    """
    kind = share_kinds(required)
    by_kind = np.argsort(kind, kind="stable")
    n, size = len(kind), k
    while 2 * size <= n:
        drawn = _drawn(by_kind, Quotas.of(kind, size), max(20, min(TRIED, 50_000 // size)))
        if (distances(required, *drawn) <= required.criterion.limit).mean() >= OFTEN:
            return size
        size = max(size + 1, int(size * STEP))
    return max(k, n // 2)


def _drawn(by_kind: NDArray[np.intp], quotas: Quotas, many: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Draw so many classes with these quotas: the class of each record drawn, and the record."""
    chance = np.random.default_rng(0)
    taken = np.repeat(quotas.always[None, :], many, axis=0)
    shuffled = chance.permuted(np.repeat(np.arange(len(quotas.over))[None, :], many, axis=0), axis=1)
    chances = np.cumsum(quotas.over[shuffled] / quotas.classes, axis=1) + chance.random((many, 1))
    up = np.diff(np.floor(chances), axis=1, prepend=0.0).astype(np.int64)
    np.put_along_axis(taken, shuffled, np.take_along_axis(taken, shuffled, axis=1) + up, axis=1)
    owner, kind = (np.repeat(index.ravel(), taken.ravel()) for index in np.indices(taken.shape))
    total = quotas.always * quotas.classes + quotas.over
    start = np.cumsum(total) - total
    return owner, by_kind[start[kind] + (chance.random(len(kind)) * total[kind]).astype(np.int64)]


def distances(required: Requirement, owner: NDArray[np.int64], record: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the earth mover's distance of each class to the table, the mean over levels; `owner` says whose it is."""
    size = np.bincount(owner)
    found = []
    for codes in required.rows():
        values = int(codes.max()) + 1
        share = np.bincount(codes, minlength=values) / len(codes)
        count = np.bincount(owner * values + codes[record], minlength=len(size) * values).reshape(-1, values)
        found.append(0.5 * np.abs(count / size[:, None] - share).sum(axis=1))
    return np.asarray(np.mean(found, axis=0))

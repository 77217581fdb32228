"""Quantiles of values in order, each of which may stand for many records: between two ranks by straight line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold.measures.arrays import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray


def quantiles(ranked: Floats, shares: Sequence[float] | Floats, records: NDArray[Any] | None = None) -> Floats:
    """Return the value at each share of the records, as `numpy.quantile` has it of all of them written out.

    `ranked` are values in ascending order, `records` how many hold each: one without it.

    >>> quantiles(np.array([1.0, 3.0]), [0.5, 0.75], records=np.array([3, 1])).tolist()
    [1.0, 1.5]
    """
    until = None if records is None else np.cumsum(records)
    last = (len(ranked) if until is None else until[-1]) - 1
    rank = np.asarray(shares, np.float64) * float(last)
    below = np.floor(rank)
    low, high = (ranked[_place(np.minimum(at, last), until)] for at in (below, below + 1))
    return np.asarray(low + (high - low) * (rank - below), np.float64)


def _place(rank: Floats, until: NDArray[Any] | None) -> NDArray[np.intp]:
    """Return the place of the value that each rank falls on."""
    return rank.astype(np.intp) if until is None else np.searchsorted(until, rank, side="right")

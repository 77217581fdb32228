"""Meetings: what a column was and what it became, counted: most measures of a column need no more.

Cost: one pass over the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.pairing import GONE, PairedColumn

Ints: TypeAlias = NDArray[np.int64]

DENSE = 4_000_000  # pairs of a value and a label that are counted in one array; more are counted by sorting


@dataclass(frozen=True, eq=False)
class Meetings:
    """The pairs of an original value and a released label that occur, and how many records have each."""

    value: Ints
    label: Ints  # -1 null, -2 left out
    records: Ints


def met(value: NDArray[Any], column: PairedColumn, records: Ints | None) -> Meetings:
    """Count the meetings of original values, given as numbers from 0 up, with the labels of a column."""
    place = column.place if column.place is not None else np.where(column.kept, 0, GONE)
    width = len(column.labels) - GONE + (column.place is None)
    pairs = value.astype(np.int64) * width
    pairs += place - GONE
    most = (int(value.max(initial=0)) + 1) * width
    if most <= DENSE:
        counts = np.bincount(pairs, records, most)
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, at = np.unique(pairs, return_inverse=True)
        counts = np.bincount(at, records, len(found))
    return Meetings(found // width, found % width + GONE, counts.astype(np.int64))

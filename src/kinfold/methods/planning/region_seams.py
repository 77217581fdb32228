"""Seams: where regions meet, their classes are looked at once more, together.

    at a seam     a class whose records, and a fifth as much on either side, reach a cut between regions
    together      such classes, whole, of all regions, parted by other cuts: what was a border lies within a part
    borders       as between blocks (see `blocks.borders`): records move and change places as long as that costs less

Classes away from seams stay as they are. Cost: O(n log n).   Ties: as in the searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.planning.region_routes import MOST
from kinfold.rows.points import Points

if TYPE_CHECKING:
    from kinfold.methods.blocks.routing import Routes
    from kinfold.rows.points import Floats, Labels

Ints: TypeAlias = NDArray[np.int64]

REACH = 0.2  # of the width of a class, to either side of it: more takes longer, and gains little
NOWHERE = -1


@dataclass(frozen=True, eq=False)
class SeamRoute:
    """How classes find out whether they are at a seam, and with which others they are looked at again."""

    cuts: Routes  # between regions
    others: Routes  # by which classes at seams are parted
    pattern: int

    def of_classes(self, every: Points, labels: Labels, places: Ints) -> Ints:
        """Return the part of each class that is at a seam, `NOWHERE` of the others."""
        order = np.argsort(labels, kind="stable")
        first = np.flatnonzero(np.diff(labels[order], prepend=-1))
        values = np.column_stack([every.numbers, every.codes])[order]
        low, high = (extreme.reduceat(values, first, axis=0) for extreme in (np.minimum, np.maximum))
        found = np.full(len(first), NOWHERE, np.int64)
        at = np.flatnonzero(_at_cuts(self.cuts, low, high, every.numbers.shape[1]))
        if len(at):
            middle = _centres(every, order, first, values, low)[at]
            numbers, codes = np.split(middle, [every.numbers.shape[1]], axis=1)
            centres = Points(np.ascontiguousarray(numbers), codes.astype(np.int32), every.scales)
            found[at] = self.pattern * MOST + self.others.block_of(centres, places[order][first][at])
        return found


def _centres(every: Points, order: NDArray[np.intp], first: NDArray[np.intp], values: Floats, low: Floats) -> Floats:
    """Return the mean of each number over each class, and the lowest of each code."""
    size = np.diff(first, append=len(order))
    means = np.add.reduceat(values, first, axis=0) / size[:, None]
    width = every.numbers.shape[1]
    return np.column_stack([means[:, :width], low[:, width:]])


def _at_cuts(cuts: Routes, low: Floats, high: Floats, numbers: int) -> NDArray[np.bool_]:
    """Mark the boxes that reach a cut on their way; codes reach no further than they are."""
    found = np.zeros(len(low), np.bool_)
    reach = np.where(np.arange(low.shape[1]) < numbers, REACH, 0.0) * (high - low)
    ways = [(0, np.arange(len(low)))] if cuts.forks else []
    while ways:
        at, rows = ways.pop()
        fork = cuts.forks[at]
        lower = low[rows, fork.attribute] - reach[rows, fork.attribute]
        upper = high[rows, fork.attribute] + reach[rows, fork.attribute]
        below, above = upper < fork.edge.min(), lower > fork.edge.max()
        found[rows[~below & ~above]] = True
        for side, here in ((fork.low, rows[below]), (fork.high, rows[above])):
            if side >= 0 and len(here):
                ways.append((side, here))
    return found


def blocks_and_labels(rows: Any) -> tuple[Labels, Labels]:
    """Return the region of each record that came together at a seam, and its class there, numbered through."""
    region, label = (rows.column(name).to_numpy().astype(np.int64) for name in ("number", "label"))
    both = region * (int(label.max()) + 1) + label
    return region.astype(np.int32), np.unique(both, return_inverse=True)[1].astype(np.int32)

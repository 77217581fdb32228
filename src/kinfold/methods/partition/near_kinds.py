"""The index of a repair: some records of each kind, by nearness, some of those that tie for all of them.

One box tree for each kind, a few for a kind that most records are of, for all trees have room for the largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.index import grown_apart, resting_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.rows.points import Labels, Points

PARTS = 4  # a tree holds at most this part of the points


class NearKinds:
    """Records of some kinds, ready to be asked which are nearest to a place."""

    def __init__(self, points: Points, place: Labels, kind: Labels, among: NDArray[np.bool_]) -> None:
        """Take the records, the place of each (see `curves.places`), its kind, and whether it is to be found."""
        self.points, self.kinds = points, int(kind.max()) + 1
        rows = np.flatnonzero(among)
        key = kind[rows].astype(np.int64) * (int(place.max()) + 1) + place[rows]
        order = np.argsort(key, kind="stable")
        rows = rows[order]
        self.member = rows.astype(np.int32)
        begins = np.flatnonzero(np.diff(key[order], prepend=-1))
        self.start = np.append(begins, len(rows)).astype(np.int64)
        there = rows[begins]  # a record of each point
        self._plant(points.take(there), kind[there])

    def _plant(self, there: Points, kind: Labels) -> None:
        """Grow the trees; the points come sorted by kind."""
        most = -(-len(there) // PARTS)
        strata, self.first, self.tree = [], np.zeros(self.kinds + 1, np.int64), None
        if not most:  # nobody is to be found
            return
        ends = np.searchsorted(kind, np.arange(self.kinds + 1))
        for v in range(self.kinds):
            rows = np.arange(ends[v], ends[v + 1], dtype=np.int32)
            strata += [rows[at : at + most] for at in range(0, len(rows), most)]
            self.first[v + 1] = len(strata)
        self.run = resting_run(there)
        self.tree = grown_apart(self.run, there, strata)

    def around(self, records: NDArray[np.int64], wide: int) -> NDArray[np.int32]:
        """Return for each of these records so many records of each kind, the nearest first; -1 for none."""
        rows = np.repeat(records, self.kinds)
        kinds = np.tile(np.arange(self.kinds, dtype=np.int32), len(records))
        return self.nearest(self.points.take(rows), kinds, wide).reshape(len(records), self.kinds, wide)

    def nearest(self, places: Points, kinds: NDArray[np.int32], wide: int) -> NDArray[np.int32]:
        """Return for each place so many records of the kind asked for there, the nearest first; -1 for none."""
        found = np.full((len(places), wide), -1, np.int32)
        if self.tree is not None:
            kernel = kernels.load("near_kinds")
            query = kernels.load("queries").query_from(self.run.query.place, wide, len(self.run.query.distance))
            numbers, codes = np.ascontiguousarray(places.numbers), np.ascontiguousarray(places.codes)
            sought = kernel.Sought(numbers, codes, kinds, self.first, self.start, self.member)
            kernel.list_nearest(self.run._replace(query=query), self.tree, sought, found)
        return found

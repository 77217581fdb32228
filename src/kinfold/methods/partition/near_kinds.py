"""The index of a repair: some records of each kind, by nearness.

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

PARTS = 4  # a tree holds at most this part of the records


class NearKinds:
    """Records of some kinds, ready to be asked which are nearest to a place."""

    def __init__(self, points: Points, kind: Labels, kinds: int, among: NDArray[np.bool_]) -> None:
        self.points, self.kinds = points, kinds
        most = -(-len(points) // PARTS)
        strata, self.first = [], np.zeros(kinds + 1, np.int64)
        for v in range(kinds):
            rows = np.flatnonzero(among & (kind == v)).astype(np.int32)
            strata += [rows[at : at + most] for at in range(0, len(rows), most)]
            self.first[v + 1] = len(strata)
        self.run = resting_run(points)
        self.tree = grown_apart(self.run, points, strata) if strata else None

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
            sought = kernel.Sought(np.ascontiguousarray(places.numbers), np.ascontiguousarray(places.codes), kinds)
            kernel.list_nearest(self.run._replace(query=query), self.tree, self.first, sought, found)
        return found

"""Oracles: what a search asks about distances and promises, and a partition laid out for the kernels over one.

    tabled      the squared distances of all pairs, for some thousand records
    meant       the means of the groups, for numbers in tables of any size
    mixed       the records themselves, numbers and codes

Any of them may come with promises that every group must keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.requirement import Requirement, mixed, packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kinfold.kernels.groups import Groups
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises
    from kinfold.methods.partition.gaps import Gaps
    from kinfold.rows.points import Floats, Labels, Points

SLACK = 6  # under promises a group may grow to twice its size and this many records before it is laid out anew
NO_TABLE, NOBODY_NEAR = np.zeros((0, 0)), np.zeros((0, 0), np.int32)


@dataclass(frozen=True, eq=False)
class Oracle:
    """Records, a table of their distances or none, who is near whom, promises, and whether means are kept."""

    records: Mixed
    gaps: Floats
    near: Labels
    promises: Promises
    means: bool

    @classmethod
    def tabled(cls, gaps: Gaps) -> Oracle:
        """Ask a table of all distances."""
        nothing = kernels.load("mixed").example()
        return cls(nothing, gaps.pairs, gaps.near, packed((), len(gaps)), False)

    @classmethod
    def of(
        cls,
        points: Points,
        requirements: Sequence[Requirement] = (),
        gaps: Gaps | None = None,
        near: Labels = NOBODY_NEAR,
    ) -> Oracle:
        """Ask the records, their means where they are numbers, and a table besides if there is one."""
        pairs, near = (NO_TABLE, near) if gaps is None else (gaps.pairs, gaps.near)
        return cls(mixed(points), pairs, near, packed(requirements, len(points)), points.codes.shape[1] == 0)

    @property
    def promised(self) -> bool:
        """Whether groups have promises to keep."""
        return len(self.promises.kind) > 0

    def arranged(self, labels: Labels, k: int, free: int = 0) -> Groups:
        """Return the groups of these labels as the kernels take them, and so many free ones."""
        kernel = kernels.load("groups")
        size = np.bincount(labels).astype(np.int64)
        rooms = self._rooms(size, k, free)
        start = np.concatenate([[0], np.cumsum(rooms)])
        size = np.concatenate([size, np.zeros(free, np.int64)])
        n, width = len(labels), self.records.numbers.shape[1] if self.means else 0
        place, members = self._placed(labels, size, start)
        groups: Groups = kernel.Groups(
            *(self.gaps, self.near, labels.astype(np.int32), place, np.zeros(n), members, start, size),
            *(np.zeros(len(size)), np.zeros(len(size)), np.zeros((len(size), width)), *kernel.room(n)),
        )
        groups.state[0].k = k
        return groups

    def _rooms(self, size: NDArray[np.int64], k: int, free: int) -> NDArray[np.int64]:
        """How many records each group has room for: as many each where there are free ones to be filled."""
        if not self.promised:
            return np.full(len(size) + free, max(2 * k - 1, int(size.max())))
        rooms = np.minimum(2 * size + SLACK, int(size.sum()))
        return np.full(len(size) + free, rooms.max()) if free else rooms

    def _placed(self, labels: Labels, size: NDArray[np.int64], start: NDArray[np.int64]) -> tuple[Labels, Labels]:
        """Return the place of each record in its group, and the members of one group after the other."""
        order = np.lexsort((self.promises.codes[0], labels)) if self.promised else np.argsort(labels, kind="stable")
        place = np.empty(len(labels), np.int32)
        place[order] = np.arange(len(labels)) - np.repeat(np.cumsum(size) - size, size)
        members = np.zeros(start[-1], np.int32)
        members[start[labels] + place] = np.arange(len(labels))
        return place, members

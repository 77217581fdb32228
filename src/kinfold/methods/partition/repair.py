"""Repair: classes that miss a promise are repaired at the least cost, and merged only where nothing else helps.

    until no class misses a promise:
        index the records that their classes can spare, by kind
        exchange, the worst class first: swaps and moves that restore the promise for the least error, with the nearest
        records of each kind
        where that did not help much: with more of them; where no more help: of the classes that are left, merge the
        worst with their nearest ones, or all of them where exchanges hardly help

What is asked of a class is in the requirements (any model that hands out a criterion); at least k records stay in each.
One class of everything is the last resort; where even that misses a promise, nothing can be done.

Cost: O(n log n) a pass, and for each class that misses a promise a trial for each member and each record listed.
Ties: the class of the lowest label, then the nearest record. Deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.curves import places
from kinfold.methods.partition.gaps import numbered
from kinfold.methods.partition.near_kinds import NearKinds
from kinfold.methods.partition.oracle import Oracle
from kinfold.methods.partition.out_of_reach import require_within_reach
from kinfold.methods.partition.record_kinds import kinds_of
from kinfold.methods.partition.requirement import Requirement, missed
from kinfold.methods.partition.settle import costs, middles
from kinfold.methods.partition.t_merge import merged
from kinfold.progress import silent
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from kinfold.kernels.groups import Groups
    from kinfold.kernels.repair import RepairState
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels

LISTED = 16  # records listed for a class at first,
WIDE, WIDEST = 2, 16  # at least so many of each kind; and so many times as many before classes are merged
WIDER = 4  # times as many where those did not help
HELPED = 0.97  # a pass that leaves more than this share of what is missed has not helped
HARDLY = 0.1  # exchanges for each class that is left: fewer are not worth another try
PASSES = 200  # then what is left is merged,
WORK = 5_000  # or after so many members were looked at for each record: some seconds for 30,000 records
LARGE = 400  # records: a class of more is not mended one by one, which would take too long, but merged
CHUNK = 200  # classes between two looks at the listener
NO_CLASS, NOBODY, NOTHING_LISTED = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, 0, 0), np.int32)


@dataclass(frozen=True, eq=False)
class Repair:
    """The labels, how many classes missed a promise before, and what repaired them."""

    labels: Labels
    repaired: int
    steps: int
    merges: int


class TooDear(Exception):  # noqa: N818  nothing is wrong
    """Keeping the promises from these classes costs more than was known to be enough, or takes too long."""


def repair(
    x: object,
    labels: Labels,
    k: int,
    requirements: Sequence[Requirement],
    *,
    bound: float = np.inf,
    progress: Progress = silent,
) -> Repair:
    """Return labels whose classes keep every requirement and have at least k records.

    Raises `TooDear` as soon as it is to be seen that they will cost more than the bound, or that it takes long to know.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> wages = Requirement.close([1, 2, 3, 4], 0.2)
    >>> repair(x, np.array([0, 0, 1, 1], np.int32), 2, [wages]).labels.tolist()
    [0, 1, 0, 1]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    labels = numbered(labels)
    if not requirements:
        return Repair(labels, 0, 0, 0)
    require_within_reach(requirements)
    failing = int((missed(requirements, labels) > 0).sum())
    if not failing:
        return Repair(labels, 0, 0, 0)
    return Works(points, k, requirements, failing, progress, bound).repaired(labels)


class Works:
    """A repair in progress: the records by kind, what is promised, and who listens."""

    def __init__(
        self,
        points: Points,
        k: int,
        requirements: Sequence[Requirement],
        failing: int,
        progress: Progress,
        bound: float,
    ) -> None:
        self.points, self.k, self.failing, self.progress = points, k, failing, progress
        self.requirements = requirements
        self.oracle = Oracle.of(points, requirements)
        self.kind, self.place = kinds_of(requirements), places(points)
        self.sample = np.unique(self.kind, return_index=True)[1].astype(np.int32)
        self.kernel = kernels.load("repair")
        self.passes, self.tried, self.bound = 0, 0, bound
        self.prices: list[tuple[float, float]] = []  # what was missed, and what all classes cost then
        self.least = failing  # classes that miss a promise, at the best moment so far

    def repaired(self, labels: Labels) -> Repair:
        """Exchange records and merge classes until none misses a promise."""
        steps = merges = 0
        left = self.failing
        while left:
            labels, made, left = self.exchanged(labels)
            steps += made
            if left:
                helpful = made > HARDLY * left and not self.worn_out
                most = max(1, left // 4) if helpful else None
                labels, made = merged(self.points, labels, self.requirements, most=most)
                merges += made
                left = int((missed(self.requirements, labels) > 0).sum())
        return Repair(labels, self.failing, steps, merges)

    def exchanged(self, labels: Labels) -> tuple[Labels, int, int]:
        """Exchange records, pass after pass, while it helps; return the labels, the steps made and what is left."""
        failing = missed(self.requirements, labels) > 0
        if (np.bincount(labels)[failing] > LARGE).all():
            return labels, 0, int(failing.sum())
        groups = self.oracle.arranged(labels, self.k)
        state = self.kernel.state_of(self.oracle.records, self.oracle.promises, groups, self.kind, self.sample)
        base = self.kernel.repair_all(state, NO_CLASS, NOTHING_LISTED, NOBODY)
        state.best[0].scale = base / len(labels) + 1e-300
        wide, left = max(WIDE, LISTED // len(self.sample)), int((groups.missed > 0).sum())
        widest = WIDEST * wide
        self.prices = [(float(groups.missed.sum()), base)]
        while left and wide <= widest and not self.worn_out:
            before = groups.missed.sum()
            left = self._pass(state, wide)
            if groups.missed.sum() > HELPED * before:
                wide *= WIDER
        return numbered(groups.label), int(state.best[0].made), left

    @property
    def worn_out(self) -> bool:
        """Whether so much was tried that the rest is merged."""
        return self.passes >= PASSES or self.tried > WORK * len(self.points)

    def _pass(self, state: RepairState, wide: int) -> int:
        """Repair what can be with so many records of each kind; return how many classes are left."""
        self.passes += 1
        groups = state.groups
        order = np.argsort(-groups.missed, kind="stable")
        order = order[(groups.missed[order] > 0) & (groups.size[order] <= LARGE)]
        if not len(order):
            return int((groups.missed > 0).sum())
        spare = np.zeros(len(self.points), np.int32)
        self.kernel.repair_all(state, np.arange(len(groups.size)), NOTHING_LISTED, spare)
        near = NearKinds(self.points, self.place, self.kind, spare > 0)
        middle = middles(groups, costs(self.points, groups, means=self.oracle.means))
        for done in range(0, len(order), CHUNK):
            chunk = order[done : done + CHUNK]
            before = int(state.best[0].tried)
            self.kernel.repair_all(state, chunk, near.around(middle[chunk], wide), NOBODY)
            self.tried += int(state.best[0].tried) - before
            self.told(int((groups.missed > 0).sum()))
            self._weigh_up(groups)
            if self.worn_out:
                break
        return int((groups.missed > 0).sum())

    def _weigh_up(self, groups: Groups) -> None:
        """Give up where what is still missed will cost too much, at the price of the later half of what is mended.

        The price rises: near records are taken first.
        """
        missed = float(groups.missed.sum())
        cost = float((groups.pairs / np.maximum(groups.size, 1)).sum())
        half = (self.prices[0][0] + missed) / 2
        before, paid = next((then for then in reversed(self.prices) if then[0] >= half), self.prices[0])
        self.prices.append((missed, cost))
        if self.worn_out and np.isfinite(self.bound):
            raise TooDear
        if before > missed and cost + max(cost - paid, 0.0) * missed / (before - missed) > self.bound:
            raise TooDear

    def told(self, left: int) -> None:
        """Tell how far the repair is: never less than before."""
        self.least = min(self.least, left)
        self.progress(self.failing - self.least, self.failing)

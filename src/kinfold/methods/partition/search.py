"""Search: from the best of several starts down, then shaken out of one local optimum after the other.

    1. descend from each start (relocate, swap, chains of three) and go on from the best
    2. until the steps or the seconds are spent, a step: take a few neighbouring groups apart, build one more, fewer
       or as many, descend from there; keep the result unless the cost grew by more than a random threshold
    3. now and then cross what was met with the best so far, region by region (see `crossing`): the result, never worse
       than the best start

The threshold is drawn around a heat that falls within each cycle; each cycle is twice as long as the last (see
`annealing`). The descents of step 1 are always run to their end.

The constants were chosen by what ten seconds reach on the field's three benchmark files at k = 3, 5 and 10
(`benchmarks/refine.py`).

Cost: O(n²) memory; a step is O(k² w) for w candidate groups.   Ties: the first found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Budget, Refinement, Walk
from kinfold.methods.partition.crossing import cross
from kinfold.methods.partition.gaps import renumbered
from kinfold.methods.partition.oracle import Oracle
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kinfold.methods.partition.gaps import Gaps
    from kinfold.rows.points import Floats, Labels

CHUNK = 600  # steps over k between two looks at the clock, and between two recounts of the costs
REACH = 5  # groups taken apart besides the first
WIDE, DEEP = 6, 4  # candidate groups of a record, and of the second record of a chain
LOOKS = 100  # at each record in the first descent, at most; it ends long before
HEAT = 1.5  # of the cost of a record over the root of k, at the start of a cycle
CYCLE = 60  # steps for each group of k in the first cycle
LARGE = 10  # from this k on a step takes so long that there are fewer


class Shaken:
    """The ground of this search: partitions that are shaken, over a table of distances, with promises or without."""

    def __init__(self, oracle: Oracle, gaps: Gaps, k: int, seed: int) -> None:
        self.oracle, self.gaps, self.k = oracle, gaps, k
        self.stream = kernels.load("draws").stream_of(seed)
        self.chunk = max(5, CHUNK // k)

    def begin(self, labels: Labels) -> None:
        """Go on from this partition."""
        free = max(0, len(labels) // self.k + 1 - (int(labels.max()) + 1))
        self.groups = self.oracle.arranged(labels, self.k, free)
        now = self.groups.state[0]
        now.wide, now.deep, now.reach = WIDE, DEEP, REACH

    def take(self, heats: Floats) -> None:
        """Take a step for each heat."""
        self.lowest = np.empty_like(self.groups.label)
        kernels.load("plain_search").search(self.groups, self.stream, heats, self.lowest)

    def better(self, labels: Labels, cost: float) -> tuple[Labels, float]:
        """Cross this partition with the lowest of the last steps and with where they ended."""
        crossed = labels
        for met in (self.lowest, self.groups.label):
            crossed = cross(self.gaps, crossed, renumbered(met))
        return crossed, min(cost, self.gaps.cost(crossed))

    def descended(self, starts: Iterable[Labels]) -> tuple[Labels, float]:
        """Return the best partition that a descent from one of these ends at, and its cost."""
        ends = []
        for labels in starts:
            self.begin(labels)
            kernels.load("plain_search").descend(self.groups, LOOKS)
            ends.append(renumbered(self.groups.label))
        costs = [self.gaps.cost(labels) for labels in ends]
        best = int(np.argmin(costs))
        return ends[best], costs[best]


def search(
    gaps: Gaps,
    starts: Iterable[Labels],
    k: int,
    budget: Budget,
    seed: int = 0,
    progress: Progress = silent,
) -> Refinement:
    """Return the best partition into groups of at least k that is found from these starts within the budget."""
    ground = Shaken(Oracle.tabled(gaps), gaps, k, seed)
    walk = Walk(ground, *ground.descended(starts))
    return walk.follow(walk.doubling(budget.first or first_cycle(len(gaps), k), heat(k)), budget, progress)


def first_cycle(n: int, k: int) -> int:
    """How many steps the first cycle has in a table of n records.

    >>> [first_cycle(1000, k) for k in (3, 10, 50)]
    [20000, 6000, 240]
    """
    return max(1, CYCLE * n * min(k, LARGE) // k**2)


def heat(k: int) -> float:
    """How hot a cycle starts: larger groups want it cooler, by trial."""
    return float(HEAT / np.sqrt(k))


def warm() -> None:
    """Load what the search needs, compiling it if need be, before any clock runs."""
    import scipy.sparse.csgraph

    assert scipy.sparse.csgraph  # noqa: S101  loaded for its own sake
    for name in ("draws", "plain_search", "distances", "paths"):
        kernels.load(name)

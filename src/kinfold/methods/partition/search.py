"""Search: from the best of several starts down, then shaken out of one local optimum after the other.

    1. descend from each start (relocate, swap, chains of three) and go on from the best
    2. until the steps or the seconds are spent, a step: take a few neighbouring groups apart, build one more, fewer
       or as many, descend from there; keep the result unless the cost grew by more than a random threshold
    3. now and then cross what was met with the best so far, region by region (see `crossing`): the result, never worse
       than the best start

The threshold is drawn around a heat that falls within each cycle; each cycle is twice as long as the last (see
`annealing`). The descents of step 1 are always run to their end.

Cost: O(n²) memory; a step is O(k² w) for w candidate groups.   Ties: the first found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Budget, Refinement, Walk
from kinfold.methods.partition.crossing import cross
from kinfold.methods.partition.gaps import Layout, renumbered
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kinfold.kernels.groups import Groups
    from kinfold.methods.partition.gaps import Gaps
    from kinfold.rows.points import Floats, Labels

CHUNK = 600  # steps over k between two looks at the clock, and between two recounts of the costs
REACH = 5  # groups taken apart besides the first
WIDE, DEEP = 6, 4  # candidate groups of a record, and of the second record of a chain
HEAT = 1.5  # of the cost of a record over the root of k, at the start of a cycle
CYCLE = 60  # steps for each group of k in the first cycle
LARGE = 10  # from this k on a step takes so long that there are fewer


class Pairs:
    """The ground of this search: the squared distances of all pairs."""

    def __init__(self, gaps: Gaps, k: int, seed: int) -> None:
        self.gaps, self.k, self.stream = gaps, k, stream_of(seed)
        self.chunk = max(5, CHUNK // k)

    def begin(self, labels: Labels) -> None:
        """Go on from this partition."""
        self.groups = arranged(self.gaps, labels, self.k)

    def take(self, heats: Floats) -> None:
        """Take a step for each heat."""
        descent = kernels.load("descent")

        self.lowest = np.empty_like(self.groups.label)
        descent.search(self.groups, self.stream, REACH, heats, self.lowest)

    def better(self, labels: Labels, cost: float) -> tuple[Labels, float]:
        """Cross this partition with the lowest of the last steps and with where they ended."""
        crossed = labels
        for met in (self.lowest, self.groups.label):
            crossed = cross(self.gaps, crossed, renumbered(met))
        return crossed, min(cost, self.gaps.cost(crossed))

    def descended(self, starts: Iterable[Labels]) -> tuple[Labels, float]:
        """Return the best partition that a descent from one of these ends at, and its cost."""
        descent = kernels.load("descent")

        ends = []
        for labels in starts:
            self.begin(labels)
            descent.descend_from_all(self.groups)
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
    first: int | None = None,
) -> Refinement:
    """Return the best partition into groups of at least k that is found from these starts within the budget.

    `first` is the length of the first cycle, for who knows how many steps there will be.
    """
    ground = Pairs(gaps, k, seed)
    walk = Walk(ground, *ground.descended(starts))
    return walk.follow(walk.doubling(first or first_cycle(len(gaps), k), heat(k)), budget, progress)


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

    descent = kernels.load("descent")
    distances = kernels.load("distances")
    paths = kernels.load("paths")

    assert all((descent, distances, paths, scipy.sparse.csgraph))  # noqa: S101  loaded for their own sake


def stream_of(seed: int) -> Labels:
    """Return the state of a random stream for a seed."""
    drawn = np.random.SeedSequence(seed).generate_state(2, np.uint32)
    return np.asarray(1 + drawn % 2_000_000_000, np.int64)


def arranged(gaps: Gaps, labels: Labels, k: int) -> Groups:
    """Return the groups of these labels as the kernels take them, room for the search included."""
    groups = kernels.load("groups")

    layout = Layout.of(labels, k, len(labels) // k + 1)
    n, (rows, most) = len(labels), layout.members.shape
    counts = np.zeros(groups.COUNTERS, np.int64)
    counts[[groups.K, groups.MOST, groups.WIDE, groups.DEEP]] = k, most, WIDE, DEEP
    state = groups.Groups(
        *(gaps.pairs, gaps.near, layout.label, layout.place, np.zeros(n)),
        *(layout.members, layout.size, np.zeros(rows), np.zeros(1), counts),
        np.zeros((groups.LISTS, max(n, (REACH + 2) * most)), np.int32),
    )
    groups.recount(state)
    return state

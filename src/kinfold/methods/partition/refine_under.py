"""Refinement under promises: the search of `search`, and random single moves, with every promise kept at every step.

    quench     steps without heat, from the partition as given
    race       the same partition and coarser ones, whose neighbouring classes were put together, each annealed a while;
               the best goes on. A union keeps what its parts kept, and larger classes leave more freedom: with them it
               often ends far lower
    rounds     annealing, each round twice as long as the one before, from the best partition so far

    a step     one random move or swap (see `kernels/random_moves`)
    shakes     after a chunk of steps, in tables whose distances all fit into memory: a few neighbouring classes are
               taken apart, made anew and settled (see `kernels/descent`). The larger the classes, the fewer: one takes
               as long as many steps, by about the third power of their size
    crossing   now and then what was met with the best so far (see `crossing`): promises are kept class by class

Within an annealing the heat falls from the cost of half an average record to nothing (see `annealing`).

The partition to start from must keep every promise (see `repair`); all that follow do.
Cost: O(d + class size) a step.   Ties: the earlier partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.methods.annealing import Budget, Cycle, Refinement, Walk
from kinfold.methods.partition.cost import cost
from kinfold.methods.partition.crossing import cross
from kinfold.methods.partition.curves import around, curves
from kinfold.methods.partition.gaps import Gaps, numbered, renumbered
from kinfold.methods.partition.oracle import Oracle
from kinfold.methods.partition.requirement import Requirement, missed
from kinfold.methods.partition.search import DEEP, REACH, WIDE
from kinfold.progress import silent
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from kinfold.progress import Progress
    from kinfold.rows.points import Floats, Labels

# Those of shakes were tried out on Census, Tarragona and EIA, some seconds each on a busy machine: a rough choice
CHUNK = 20_000  # steps between two looks at the clock and the listener
CURVES = 4  # orders along which neighbours are looked for; with one, pairs that lie across it never meet
COARSER = (1, 2, 3, 5)  # how many classes become one, for each runner of the race
QUENCH, RACE, ROUND, STEPS = 10, 100, 400, 1000  # steps a record
HEAT = 0.5  # of the cost of an average record
SMALL = 3_000  # records; in larger tables descents under promises take too long (EIA loses less by single moves)
EVERY = 1.5  # times the mean third power of the size of a record's class: steps for each shake, about as long
RARE = 2_000  # where shakes would be rarer than this, each takes too long: single moves alone reach more
FREE = 8  # classes that shakes may make besides twice as many as there are
CROSSED = 8  # chunks between two crossings, which take as long as some thousand steps
ROUNDING = 1e-9  # a gain below this share is none


def refine_under(
    x: object,
    labels: Labels,
    k: int,
    requirements: Sequence[Requirement],
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Refinement:
    """Return a partition of lower cost whose classes keep every requirement and have at least k records.

    With neither steps nor seconds a thousand steps are taken for each record.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> wages = Requirement.close([1, 4, 2, 3], 0.4)
    >>> refine_under(x, np.array([0, 1, 0, 1], np.int32), 2, [wages], steps=2000).labels.tolist()
    [0, 0, 1, 1]
    """
    points = Points.of(x)
    k = checked_size(points, k)
    labels = numbered(labels)
    if np.bincount(labels).min() < k or missed(requirements, labels).max() > 0:
        raise PolicyError("the partition to refine misses a promise already", fix="repair it first")
    if steps is None and seconds is None:
        steps = STEPS * len(points)
    for name in ("draws", "random_moves", "promised_search", "distances"):
        kernels.load(name)  # compiling is no part of the time given
    budget = Budget(steps, seconds)
    ground = Promised(points, k, requirements, seed)
    ground.lowest = cost(points, labels)
    walk = Walk(ground, labels, ground.lowest)
    found = walk.follow(_plan(walk, ground), budget, progress)
    labels = numbered(found.labels)
    return replace(found, labels=labels, cost=cost(points, labels))


def _plan(walk: Walk, ground: Promised) -> Iterator[Cycle]:
    """Quench, race, then rounds from the best so far."""
    n = len(walk.best)
    yield Cycle(walk.best, QUENCH * n, 0.0)
    given = walk.best
    for many in COARSER:
        yield Cycle(ground.coarser(given, many), RACE * n, HEAT)
    yield from walk.doubling(ROUND * n, HEAT)


class Promised:
    """The ground of this search: numbers and codes in groups that keep promises."""

    chunk = CHUNK

    def __init__(self, points: Points, k: int, requirements: Sequence[Requirement], seed: int) -> None:
        self.points, self.k = points, k
        self.gaps: Gaps | None = None
        self.oracle = Oracle.of(points, requirements)
        self.around = around(points, CURVES)
        self.stream = kernels.load("draws").stream_of(seed)
        self.lowest, self.chunks = np.inf, 0

    def begin(self, labels: Labels) -> None:
        """Go on from this partition."""
        size, n = np.bincount(labels), len(labels)
        self.every = int(EVERY * (size.astype(np.float64) ** 4).sum() / n)  # a record's class, to the third power
        self.shaken = n <= SMALL and self.every <= RARE
        if self.shaken and self.gaps is None:
            self.gaps = Gaps.of(self.points)
            self.oracle = replace(self.oracle, gaps=self.gaps.pairs, near=self.gaps.near)
        free = max(0, min(n // self.k + 1 - len(size), len(size) + FREE)) if self.shaken else 0
        self.groups = self.oracle.arranged(labels, self.k, free)
        now = self.groups.state[0]
        now.wide, now.deep, now.reach = WIDE, DEEP, REACH
        self.unit = self.lowest / n

    def take(self, heats: Floats) -> None:
        """Take a step for each heat, a share of the cost of an average record of the best partition; then shakes."""
        s, p = self.groups, self.oracle.promises
        wander = kernels.load("random_moves").wander
        reached = wander(self.oracle.records, p, s, self.around, self.stream, self.unit * heats)
        self.met = [(s.label, reached)]
        if self.shaken and len(heats) >= self.every:
            lowest = np.empty_like(s.label)
            often = np.ascontiguousarray(heats[self.every - 1 :: self.every])
            self.met[0] = (s.label.copy(), reached)
            reached = kernels.load("promised_search").search(p, s, self.stream, often, lowest)
            self.met.append((lowest, reached))

    def better(self, labels: Labels, cost: float) -> tuple[Labels, float]:
        """Return this partition or the best met in the last steps; now and then, cross it with them."""
        for met, reached in self.met:
            if reached < cost * (1 - ROUNDING):
                labels, cost = renumbered(met), reached
        self.chunks += 1
        if self.gaps is not None and self.shaken and self.chunks % CROSSED == 0:
            for met, _ in self.met:
                labels = cross(self.gaps, labels, renumbered(met))
            cost = min(cost, self.gaps.cost(labels))
        self.lowest = cost
        return labels, cost

    def coarser(self, labels: Labels, many: int) -> Labels:
        """Put so many neighbouring classes together at a time; a few classes stay as they are."""
        size = np.bincount(labels)
        if many == 1 or len(size) < 2 * many:
            return labels
        means = np.empty((len(size), self.points.numbers.shape[1]))  # which may have no column at all
        for column, values in enumerate(self.points.numbers.T):
            means[:, column] = np.bincount(labels, values) / size
        codes = np.zeros((len(size), self.points.codes.shape[1]), np.int32)
        codes[labels] = self.points.codes
        order = curves(Points(means, codes, self.points.scales), 1, 0)[0]
        union = np.empty(len(size), np.int64)
        union[order] = np.minimum(np.arange(len(size)) // many, len(size) // many - 1)
        return numbered(union[labels].astype(np.int32))

"""Refinement under promises: the partition is changed record by record, and every class keeps what was promised.

    quench     steps without heat, from the partition as given
    race       the same partition and coarser ones, whose neighbouring classes were put together, each annealed a while;
               the best goes on. A union keeps what its parts kept, and larger classes leave more freedom: with them it
               often ends far lower
    rounds     annealing, each round twice as long as the one before, from the best partition so far

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
from kinfold.methods.partition.classes import laid_out, numbered
from kinfold.methods.partition.curves import curves
from kinfold.methods.partition.requirement import Requirement, missed, mixed, packed
from kinfold.methods.partition.search import stream_of
from kinfold.progress import silent
from kinfold.rows.points import Points, checked_size

if TYPE_CHECKING:
    from kinfold.kernels.annealing import Search
    from kinfold.progress import Progress
    from kinfold.rows.points import Floats, Labels

CHUNK = 20_000  # steps between two looks at the clock and the listener
CURVES = 4
COARSER = (1, 2, 3, 5)  # how many classes become one, for each runner of the race
QUENCH, RACE, ROUND, STEPS = 10, 100, 400, 1000  # steps a record
HEAT = 0.5  # of the cost of an average record


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
    kernels.load("annealing")  # compiling is no part of the time given
    budget = Budget(steps, seconds)
    ground = Promised(points, labels, k, requirements, seed)
    walk = Walk(ground, labels, ground.cost)
    found = walk.follow(_plan(walk, ground), budget, progress)
    labels = numbered(found.labels)
    return replace(found, labels=labels, cost=ground.cost_of(labels))


def _plan(walk: Walk, ground: Promised) -> Iterator[Cycle]:
    """Quench, race, then rounds from the best so far."""
    n = len(walk.best)
    yield Cycle(walk.best, QUENCH * n, 0.0)
    given = walk.best
    for many in COARSER:
        yield Cycle(ground.coarser(given, many), RACE * n, HEAT)
    yield from walk.doubling(ROUND * n, HEAT)


class Promised:
    """The ground of this search: numbers and codes in classes that keep promises."""

    chunk = CHUNK

    def __init__(self, points: Points, labels: Labels, k: int, requirements: Sequence[Requirement], seed: int) -> None:
        self.points, self.k = points, k
        self.mixed, self.promises = mixed(points), packed(requirements, len(points))
        self.curve = curves(points, CURVES, 0)
        self.place = np.argsort(self.curve, axis=1).astype(np.int32)
        self.stream = stream_of(seed).astype(np.int64)
        self.lowest = self.cost_of(labels)
        self.begin(labels)

    @property
    def cost(self) -> float:
        """What the classes cost now."""
        return float(self.search.s.cost[0])

    def begin(self, labels: Labels) -> None:
        """Go on from this partition."""
        self.search = self._begun(labels)
        self.unit = self.lowest / len(labels)

    def take(self, heats: Floats) -> None:
        """Take a step for each heat, a share of the cost of an average record of the best partition."""
        kernels.load("annealing").anneal(self.search, self.unit * heats)

    def better(self, labels: Labels, cost: float) -> tuple[Labels, float]:
        """Return this partition or the one of the last step, whichever costs less."""
        if self.cost < cost * (1 - 1e-9):
            self.lowest = self.cost
            return self.search.s.label.copy(), self.cost
        return labels, cost

    def cost_of(self, labels: Labels) -> float:
        """Return what these classes cost, summed afresh."""
        return float(self._begun(labels).s.cost[0])

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

    def _begun(self, labels: Labels) -> Search:
        classes = laid_out(self.points, labels, self.promises)
        kernels.load("classes").recount(self.mixed, self.promises, classes)
        search: Search = kernels.load("annealing").Search(
            self.mixed, self.promises, classes, self.k, self.curve, self.place, self.stream
        )
        return search

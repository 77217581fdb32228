"""Refinement under promises: the partition is changed record by record, and every class keeps what was promised.

    quench     steps without heat, from the partition as given
    race       the same partition and coarser ones, whose neighbouring classes were put together, each annealed a while;
               the best goes on. A union keeps what its parts kept, and larger classes leave more freedom: with them it
               often ends far lower
    rounds     annealing, each round twice as long as the one before, from the best partition so far

Within an annealing the heat falls from the cost of half an average record to nothing. What is done at a step depends on
its number, the seed and the partition given alone. So the number of steps says all: a run that the clock stopped is
repeated exactly by the steps it took.

The partition to start from must keep every promise (see `repair`); all that follow do.
Cost: O(d + class size) a step.   Ties: the earlier partition.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.partition.classes import laid_out, numbered
from kinfold.partition.curves import curves
from kinfold.partition.points import Points, checked_size
from kinfold.partition.requirement import Requirement, missed, mixed, packed
from kinfold.partition.search import Budget, Mark, Refinement, stream_of
from kinfold.progress import silent

if TYPE_CHECKING:
    from kinfold.kernels.annealing import Search
    from kinfold.partition.points import Floats, Labels
    from kinfold.progress import Progress

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
    return _Run(points, labels, k, requirements, seed).finished(Budget(steps, seconds), progress)


class _Run:
    """A search in progress: the best partition so far, and the one that is being changed."""

    def __init__(self, points: Points, labels: Labels, k: int, requirements: Sequence[Requirement], seed: int) -> None:
        self.points, self.k = points, k
        self.mixed, self.promises = mixed(points), packed(requirements, len(points))
        self.curve = curves(points, CURVES, 0)
        self.place = np.argsort(self.curve, axis=1).astype(np.int32)
        self.stream = stream_of(seed).astype(np.int64)
        self.steps = 0
        kernels.load("annealing")  # compiling is no part of the time given
        start = self._begun(labels)
        self.best, self.cost = start.s.label.copy(), float(start.s.cost[0])
        self.since = time.monotonic()
        self.history = [Mark(0, 0.0, self.cost)]

    def finished(self, budget: Budget, progress: Progress) -> Refinement:
        """Search until the budget is spent."""
        for labels, heats in self._plan():
            search = self._begun(labels)
            for first in range(0, len(heats), CHUNK):
                if budget.done(self.steps, self.since):
                    return self._result()
                self._advance(search, heats[first : first + budget.chunk(self.steps, CHUNK)])
                progress(self.steps, budget.steps or 0)
        return self._result()

    def _plan(self) -> Iterator[tuple[Labels, Floats]]:
        """The partitions to start from, each with the heat of every step."""
        n = len(self.points)
        yield self.best, np.zeros(QUENCH * n)
        given = self.best
        for many in COARSER:
            labels = self._coarser(given, many)
            yield labels, self._cooling(RACE * n)
        length = ROUND * n
        while True:
            yield self.best, self._cooling(length)
            length *= 2

    def _cooling(self, steps: int) -> Floats:
        """Heats that fall to nothing, from the cost of half an average record of the best partition."""
        return HEAT * self.cost / len(self.points) * (1.0 - np.arange(steps) / steps) ** 2

    def _coarser(self, labels: Labels, many: int) -> Labels:
        """Put so many neighbouring classes together at a time; a few classes stay as they are."""
        size = np.bincount(labels)
        if many == 1 or len(size) < 2 * many:
            return labels
        centres = np.column_stack([np.bincount(labels, column) / size for column in self.points.numbers.T])
        codes = np.zeros((len(size), self.points.codes.shape[1]), np.int32)
        codes[labels] = self.points.codes
        order = curves(Points(centres.reshape(len(size), -1), codes, self.points.scales), 1, 0)[0]
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

    def _advance(self, search: Search, heats: Floats) -> None:
        """Take a step for each heat, and keep the partition if it is the best so far."""
        kernels.load("annealing").anneal(search, heats)
        self.steps += len(heats)
        cost = float(search.s.cost[0])
        if cost < self.cost * (1 - 1e-9):
            self.best, self.cost = search.s.label.copy(), cost
            self.history.append(Mark(self.steps, time.monotonic() - self.since, cost))

    def _result(self) -> Refinement:
        labels = numbered(self.best)
        return Refinement(labels, float(self._begun(labels).s.cost[0]), self.steps, tuple(self.history))

"""Annealing: one engine that searches for cheaper partitions, whatever they cost.

    ground    what is searched: it begins from a partition, takes a step on it for each heat, and knows the best it met
    cycle     so many steps from a partition; they start hot and get colder until the last
    plan      cycle after cycle, most of them from the best partition so far

Three grounds: the squared distances of all pairs (`partition.search`), numbers and codes under promises
(`partition.refine_under`), and what is said of a class by lowest common ancestors (`generalize.rebuilding`).

What is done at a step depends on its number, the seed and the start alone, never on a clock. So the number of steps
says all: a run that the clock stopped is repeated exactly by the steps it took.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kinfold.progress import Progress, silent, tell_cost

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Labels = NDArray[Any]


class Ground(Protocol):
    """A cost of partitions and a way to change them."""

    chunk: int  # steps between two looks at the clock

    def begin(self, labels: Labels) -> None:
        """Go on from this partition."""

    def take(self, heats: Floats) -> None:
        """Take a step for each heat; the hotter, the more it may cost."""

    def better(self, labels: Labels, cost: float) -> tuple[Labels, float]:
        """Return the best partition that can be made of this one and of what the last steps met, and its cost."""


@dataclass(frozen=True, eq=False)
class Cycle:
    """So many steps from a partition, this hot at first."""

    start: Labels
    steps: int
    heat: float

    def heats(self, first: int, many: int) -> Floats:
        """Return how hot these steps are: less and less, nothing after the last.

        >>> Cycle(np.zeros(2), 4, 16.0).heats(1, 3).tolist()
        [9.0, 4.0, 1.0]
        """
        return np.asarray(self.heat * (1.0 - np.arange(first, first + many) / self.steps) ** 2, np.float64)


@dataclass(frozen=True)
class Budget:
    """How long a search may go on: so many steps, so many seconds from now on, whichever comes first."""

    steps: int | None
    seconds: float | None
    since: float = field(default_factory=time.monotonic)
    first: int | None = None  # steps of the first cycle, where it is known how many there will be

    def spent(self) -> float:
        """Return the seconds since the budget was made."""
        return time.monotonic() - self.since

    def done(self, steps: int) -> bool:
        """Tell whether the budget is spent."""
        return (self.steps is not None and steps >= self.steps) or (
            self.seconds is not None and self.spent() >= self.seconds
        )

    def share(self, steps: int) -> tuple[int, int]:
        """Return how much of the budget is spent, and of how much: steps, or hundredths of the seconds."""
        if self.steps is not None:
            return steps, self.steps
        whole = int(100 * (self.seconds or 0))
        return min(int(100 * self.spent()), whole), whole

    def chunk(self, steps: int, most: int) -> int:
        """How many steps to take at once, `most` unless fewer are left."""
        return most if self.steps is None else min(most, self.steps - steps)


@dataclass(frozen=True)
class Mark:
    """A cost and when it was reached."""

    steps: int
    seconds: float
    cost: float


@dataclass(frozen=True, eq=False)
class Refinement:
    """The best partition found, its cost, the steps it took and how the cost fell."""

    labels: Labels
    cost: float
    steps: int
    history: tuple[Mark, ...]


class Walk:
    """A search in progress: where it is, and the best partition so far."""

    def __init__(self, ground: Ground, labels: Labels, cost: float) -> None:
        self.ground, self.best, self.cost = ground, labels, cost
        self.steps = 0
        self.history: list[Mark] = []

    def follow(self, plan: Iterator[Cycle], budget: Budget, progress: Progress = silent) -> Refinement:
        """Take the steps of this plan until the budget is spent or nothing is left to gain."""
        for _ in self.moments(plan, budget):
            progress(*budget.share(self.steps))
        return Refinement(self.best, self.cost, self.steps, tuple(self.history))

    def moments(self, plan: Iterator[Cycle], budget: Budget) -> Iterator[None]:
        """Follow a plan, and come back after every chunk."""
        self._note(budget)
        for cycle in plan:
            if budget.done(self.steps) or self.cost <= 0.0:
                return
            self.ground.begin(cycle.start)
            for first in range(0, cycle.steps, self.ground.chunk):
                if budget.done(self.steps):
                    return
                self._take(cycle, first, budget)
                yield

    def doubling(self, first: int, heat: float) -> Iterator[Cycle]:
        """Plan cycles from the best so far, each twice as long as the one before.

        The longer a cycle cools, the better it ends. Of a run of any length the last whole cycle has a quarter or more.
        """
        steps = first
        while True:
            yield Cycle(self.best, steps, heat)
            steps *= 2

    def _take(self, cycle: Cycle, first: int, budget: Budget) -> None:
        many = budget.chunk(self.steps, min(self.ground.chunk, cycle.steps - first))
        self.ground.take(cycle.heats(first, many))
        self.steps += many
        before = self.cost
        self.best, self.cost = self.ground.better(self.best, self.cost)
        if self.cost < before:
            self._note(budget)

    def _note(self, budget: Budget) -> None:
        self.history.append(Mark(self.steps, budget.spent(), self.cost))
        tell_cost(self.cost)

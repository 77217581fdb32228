"""Simulated annealing of partitions, for any cost.

    search space   starts from a partition, takes a step at each temperature, and knows the best partition it reached
    cycle          steps from a partition; the temperature falls from step to step
    plan           cycle after cycle, most of them from the best partition so far

There are three search spaces: the distances of all pairs (`partition.search`), numbers and codes under promises
(`partition.refine`), and classes described by lowest common ancestors (`generalize.cell_classes`).

A step depends on its number, the seed and the start, never on a clock. So the number of steps determines the result: a
run that a clock stopped is repeated exactly by the steps it took.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kinfold.progress import Progress, no_progress, report_cost

Floats = NDArray[np.float64]
Labels = NDArray[Any]


class SearchSpace(Protocol):
    """A cost of partitions and the steps that change them."""

    chunk: int  # steps between two looks at the clock

    def begin(self, labels: Labels) -> None:
        """Start from this partition."""

    def take_steps(self, temperatures: Floats) -> None:
        """Take a step at each temperature; the higher it is, the more a step may cost."""

    def improve(self, labels: Labels, cost: float) -> tuple[Labels, float]:
        """Return the best partition made of this one and those of the last steps, and its cost."""


@dataclass(frozen=True, eq=False)
class Cycle:
    """Steps from a partition, and the temperature of the first."""

    start: Labels
    steps: int
    temperature: float

    def temperatures(self, first: int, count: int) -> Floats:
        """Return the temperatures of `count` steps from the step `first` on; they fall to 0 after the last step.

        >>> Cycle(np.zeros(2), 4, 16.0).temperatures(1, 3).tolist()
        [9.0, 4.0, 1.0]
        """
        return np.asarray(self.temperature * (1.0 - np.arange(first, first + count) / self.steps) ** 2, np.float64)


@dataclass(frozen=True)
class Budget:
    """How long a search may take: a number of steps or of seconds, whichever ends first."""

    steps: int | None
    seconds: float | None
    started: float = field(default_factory=time.monotonic)
    first_cycle: int | None = None  # steps of the first cycle, if the caller knows them

    def elapsed(self) -> float:
        """Return the seconds since the budget was created."""
        return time.monotonic() - self.started

    def is_spent(self, steps: int) -> bool:
        """Whether the budget ends after these steps."""
        if self.steps is not None and steps >= self.steps:
            return True
        return self.seconds is not None and self.elapsed() >= self.seconds

    def measure_progress(self, steps: int) -> tuple[int, int]:
        """Return what is spent and the total: steps, or hundredths of seconds."""
        if self.steps is not None:
            return steps, self.steps
        total = int(100 * (self.seconds or 0))
        return min(int(100 * self.elapsed()), total), total


@dataclass(frozen=True)
class CostMark:
    """A cost and when the search reached it."""

    steps: int
    seconds: float
    cost: float


@dataclass(frozen=True, eq=False)
class Refinement:
    """The best partition, its cost, the steps taken and how the cost fell."""

    labels: Labels
    cost: float
    steps: int
    history: tuple[CostMark, ...]


class Annealer:
    """A search in progress, and its best partition so far."""

    def __init__(self, space: SearchSpace, labels: Labels, cost: float) -> None:
        self.space, self.best, self.cost = space, labels, cost
        self.steps = 0
        self.history: list[CostMark] = []

    def run(self, plan: Iterator[Cycle], budget: Budget, progress: Progress = no_progress) -> Refinement:
        """Take the steps of this plan until the budget is spent or the cost is 0."""
        report_cost(self.cost)
        for _ in self.run_chunks(plan, budget):
            report_cost(self.cost)
            progress(*budget.measure_progress(self.steps))
        return Refinement(self.best, self.cost, self.steps, tuple(self.history))

    def run_chunks(self, plan: Iterator[Cycle], budget: Budget) -> Iterator[None]:
        """Take the steps of this plan, and yield after every chunk."""
        self._record_cost(budget)
        for cycle in plan:
            if budget.is_spent(self.steps) or self.cost <= 0.0:
                return
            self.space.begin(cycle.start)
            for first in range(0, cycle.steps, self.space.chunk):
                if budget.is_spent(self.steps):
                    return
                steps = min(self.space.chunk, cycle.steps - first)
                if budget.steps is not None:
                    steps = min(steps, budget.steps - self.steps)
                self.space.take_steps(cycle.temperatures(first, steps))
                self.steps += steps
                before = self.cost
                self.best, self.cost = self.space.improve(self.best, self.cost)
                if self.cost < before:
                    self._record_cost(budget)
                yield

    def plan_doubling_cycles(self, steps: int, temperature: float) -> Iterator[Cycle]:
        """Plan cycles from the best partition so far, each twice as long as the one before.

        The slower a cycle cools, the better it ends. The last whole cycle of any run has at least a quarter of it.
        """
        while True:
            yield Cycle(self.best, steps, temperature)
            steps *= 2

    def _record_cost(self, budget: Budget) -> None:
        self.history.append(CostMark(self.steps, budget.elapsed(), self.cost))

"""Search: from the best of several starts down, then shaken out of one local optimum after the other.

    1. descend from each start (relocate, swap, chains of three) and go on from the best
    2. until the steps or the seconds are spent, a step: take a few neighbouring groups apart, build one more, fewer
       or as many, descend from there; keep the result unless the cost grew by more than a random threshold
    3. the best partition met is the result, never worse than the best start

The threshold is drawn around a heat that falls with the number of the step alone, so that a run of N steps
repeats a run of so many seconds that took N steps. The descents of step 1 are always run to their end.

Cost: O(n²) memory; a step is O(k² w) for w candidate groups.   Ties: the first found.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.partition.gaps import Layout, renumbered
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kinfold.kernels.groups import Groups
    from kinfold.partition.gaps import Gaps
    from kinfold.partition.points import Floats, Labels

CHUNK = 200  # steps between two looks at the clock, and between two recounts of the costs
REACH = 5  # groups taken apart besides the first
WIDE, DEEP = 6, 4  # candidate groups of a record, and of the second record of a chain
CHAINS_UP_TO = 7  # beyond this k many plain steps are worth more than few with chains
HEAT, COOLING = 0.02, 10.0  # share of a group's mean cost; steps for each record until the heat is halved


@dataclass(frozen=True)
class Budget:
    """How long a search may go on: so many steps, so many seconds, whichever comes first."""

    steps: int | None
    seconds: float | None

    def done(self, steps: int, since: float) -> bool:
        """Tell whether the budget is spent."""
        spent = self.steps is not None and steps >= self.steps
        return spent or (self.seconds is not None and time.monotonic() - since >= self.seconds)

    def chunk(self, steps: int, size: int) -> int:
        """Return how many steps to take before the next look."""
        return size if self.steps is None else min(size, self.steps - steps)


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


def search(
    gaps: Gaps, starts: Iterable[Labels], k: int, budget: Budget, seed: int = 0, progress: Progress = silent
) -> Refinement:
    """Return the best partition into groups of at least k that is found from these starts within the budget."""
    from kinfold.kernels import descent, groups

    since = time.monotonic()
    state, best = _best_descent(gaps, starts, k)
    lowest = groups.cost(state)
    history = [Mark(0, time.monotonic() - since, lowest)]
    state.counts[groups.DEEP] = DEEP if k <= CHAINS_UP_TO else 0
    stream, unit = stream_of(seed), HEAT * lowest * k / len(best)
    steps = 0
    while not budget.done(steps, since) and lowest > 0.0:
        chunk = budget.chunk(steps, CHUNK)
        found = np.empty_like(best)
        low = descent.search(state, stream, REACH, unit * heats(steps, chunk, len(best)), found)
        steps += chunk
        if low < lowest:
            lowest, best = low, found
            history.append(Mark(steps, time.monotonic() - since, lowest))
        progress(steps, budget.steps or 0)
    labels = renumbered(best)
    return Refinement(labels, gaps.cost(labels), steps, tuple(history))


def heats(first: int, many: int, n: int) -> Floats:
    """Return how hot each of these steps is, 1 at the first step of all and ever colder.

    >>> heats(0, 3, 1).round(3).tolist()
    [1.0, 0.909, 0.833]
    """
    return np.asarray(1.0 / (1.0 + np.arange(first, first + many) / (COOLING * n)), np.float64)


def stream_of(seed: int) -> Labels:
    """Return the state of a random stream for a seed."""
    drawn = np.random.SeedSequence(seed).generate_state(2, np.uint32)
    return np.asarray(1 + drawn % 2_000_000_000, np.int64)


def arranged(gaps: Gaps, labels: Labels, k: int) -> Groups:
    """Return the groups of these labels as the kernels take them, room for the search included."""
    from kinfold.kernels import groups

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


def _best_descent(gaps: Gaps, starts: Iterable[Labels], k: int) -> tuple[Groups, Labels]:
    from kinfold.kernels import descent, groups

    best: Groups | None = None
    for labels in starts:
        state = arranged(gaps, labels, k)
        descent.descend_from_all(state)
        groups.recount(state)
        if best is None or groups.cost(state) < groups.cost(best):
            best = state
    assert best is not None  # noqa: S101  the caller gives a start
    return best, best.label.copy()

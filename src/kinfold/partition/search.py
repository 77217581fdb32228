"""Search: from the best of several starts down, then shaken out of one local optimum after the other.

    1. descend from each start (relocate, swap, chains of three) and go on from the best
    2. until the steps or the seconds are spent, a step: take a few neighbouring groups apart, build one more, fewer
       or as many, descend from there; keep the result unless the cost grew by more than a random threshold
    3. now and then cross what was met with the best so far, region by region (see `crossing`): the result, never worse
       than the best start
    4. steps come in cycles, each twice as long as the last; a cycle starts hot again from the best so far

The threshold is drawn around a heat that falls with the number of the step alone, so that a run of N steps
repeats a run of so many seconds that took N steps. The descents of step 1 are always run to their end.

Cost: O(n²) memory; a step is O(k² w) for w candidate groups.   Ties: the first found.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.partition.crossing import cross
from kinfold.partition.gaps import Layout, renumbered
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kinfold.kernels.groups import Groups
    from kinfold.partition.gaps import Gaps
    from kinfold.partition.points import Floats, Labels

CHUNK = 200  # steps between two looks at the clock, and between two recounts of the costs
REACH = 5  # groups taken apart besides the first
WIDE, DEEP = 6, 4  # candidate groups of a record, and of the second record of a chain
CHAINS_UP_TO = 7  # beyond this k many plain steps are worth more than few with chains
HEAT = 0.2  # share of the mean cost of a record
COOLING = 10.0  # steps for each record until the heat is halved
CYCLE = 20  # steps for each record in the first cycle


@dataclass(frozen=True)
class Budget:
    """How long a search may go on: so many steps, so many seconds, whichever comes first."""

    steps: int | None
    seconds: float | None

    def done(self, steps: int, since: float) -> bool:
        """Tell whether the budget is spent."""
        spent = self.steps is not None and steps >= self.steps
        return spent or (self.seconds is not None and time.monotonic() - since >= self.seconds)

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


@dataclass(frozen=True, eq=False)
class Met:
    """Where a walk stands: its steps, the lowest cost so far with its labels, and the labels right now."""

    steps: int
    cost: float
    best: Labels
    now: Labels


def search(
    gaps: Gaps, starts: Iterable[Labels], k: int, budget: Budget, seed: int = 0, progress: Progress = silent
) -> Refinement:
    """Return the best partition into groups of at least k that is found from these starts within the budget."""
    warm()
    since = time.monotonic()
    history: list[Mark] = []
    for met in walk(gaps, starts, k, budget.steps, seed):
        if not history or met.cost < history[-1].cost:
            history.append(Mark(met.steps, time.monotonic() - since, met.cost))
        progress(met.steps, budget.steps or 0)
        if budget.done(met.steps, since):
            break
    labels = renumbered(met.best)
    return Refinement(labels, gaps.cost(labels), met.steps, tuple(history))


def warm() -> None:
    """Load what the search needs, compiling it if need be, before any clock runs."""
    import scipy.sparse.csgraph

    from kinfold.kernels import descent, distances, paths

    assert all((descent, distances, paths, scipy.sparse.csgraph))  # noqa: S101  loaded for their own sake


def walk(gaps: Gaps, starts: Iterable[Labels], k: int, most: int | None, seed: int) -> Iterator[Met]:
    """Descend, then step on and on, at most so many steps; tell now and then where the walk stands."""
    from kinfold.kernels import descent, groups

    state, best = _best_descent(gaps, starts, k)
    lowest, steps = groups.cost(state), 0
    yield Met(steps, lowest, best, state.label)
    stream, unit = stream_of(seed), HEAT * lowest / len(best)
    while lowest > 0.0 and (most is None or steps < most):
        since = cycle(steps, len(best))
        if steps - since < CHUNK:
            state = arranged(gaps, best, k)
            state.counts[groups.DEEP] = DEEP if k <= CHAINS_UP_TO else 0
        chunk = CHUNK if most is None else min(CHUNK, most - steps)
        found = np.empty_like(best)
        descent.search(state, stream, REACH, unit * heats(steps - since, chunk, len(best)), found)
        steps += chunk
        for labels in (found, state.label):
            best = cross(gaps, best, renumbered(labels))
        lowest = gaps.cost(best)
        yield Met(steps, lowest, best, state.label)


def cycle(step: int, n: int) -> int:
    """Return the first step of the cycle that this step is in; each cycle lasts twice as long as the one before.

    >>> [cycle(step, 10) for step in (0, 199, 200, 599, 600, 1399)]
    [0, 0, 200, 200, 600, 600]
    """
    since, lasts = 0, CYCLE * n
    while step >= since + lasts:
        since, lasts = since + lasts, 2 * lasts
    return since


def heats(first: int, many: int, n: int) -> Floats:
    """Return how hot each of these steps of a cycle is, 1 at its first and ever colder.

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

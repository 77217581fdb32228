"""Columns: the groups worth choosing from, found by pricing, and the linear program over them.

    pool        the groups of good partitions and those of near records
    repeat      solve the linear program: take a share of each group so that each record is taken once, at least cost;
                its dual values are prices of the records
                price groups at a point between the best prices known and these (Wentges smoothing), exactly
                add the groups found; keep the best bound
    until no group is found at the prices of the program itself, or the time is up

Paper: Aloise, Hansen, Rocha & Santi, J. Global Optim. 60 (2014), 165-182; here the stars bound the pricing.
Cost: one linear program of n rows and one pricing for each size, each round.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Budget, Walk
from kinfold.methods.partition.gaps import renumbered, split
from kinfold.methods.partition.oracle import Oracle
from kinfold.methods.partition.path import path_starts
from kinfold.methods.partition.search import Shaken, heat
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scipy.sparse import csc_array

    from kinfold.methods.partition.gaps import Gaps
    from kinfold.rows.points import Floats, Labels

ROUNDS = 200  # of pricing, at most; the bound is mostly reached after 20
MOST_FOUND, PER_ROOT = 60_000, 20  # groups taken from one pricing of one size
FIRST_LOOKS, MORE_LOOKS, MOST_LOOKS = 2_000, 8, 50_000_000
TOWARDS_BEST = 0.5  # how far from the prices of the program to the best known the pricing goes
FEW = 100  # new groups below which roots that were cut short get more looks
CLOSE = 1e-6  # a gap below this share is none
STEPS = 3  # of search for each record, to meet good groups
WALKS = 3  # searches with seeds of their own: one alone misses groups that the best partition has


@dataclass
class Pool:
    """The groups met so far with their costs, and the best partition known."""

    gaps: Gaps
    k: int
    labels: Labels
    cost: float
    groups: dict[tuple[int, ...], float] = field(default_factory=dict)

    @classmethod
    def of(cls, gaps: Gaps, k: int, labels: Labels | None = None) -> Pool:
        """Gather the groups met on some walks from this partition (else from paths), and those of near records."""
        starts = [*path_starts(gaps, k)] if labels is None else [labels]
        pool = cls(gaps, k, starts[0], np.inf)
        for seed in range(WALKS):
            pool.walk(starts, STEPS * len(gaps), seed)
        for i, near in enumerate(gaps.near):
            pool.add((i, *near[: m - 1]) for m in pool.sizes)
            pool.add((i, *others) for others in combinations(near[: k + 1 + (k < 5)].tolist(), k - 1))
        return pool

    def walk(self, starts: Sequence[Labels], steps: int, seed: int = 0) -> None:
        """Add the groups met on one cycle of so many steps from the best of these starts."""
        ground = Shaken(Oracle.tabled(self.gaps), self.gaps, self.k, seed)
        walk = Walk(ground, *ground.descended(starts))
        for _ in walk.moments(walk.doubling(steps, heat(self.k)), Budget(steps, None)):
            self.add(split(renumbered(ground.groups.label)))
        self.add(split(walk.best))
        self.keep(walk.best)

    @property
    def sizes(self) -> range:
        """The sizes of the groups of some optimal partition."""
        return range(self.k, min(2 * self.k, len(self.gaps) + 1))

    def add(self, groups: Iterable[Iterable[int]]) -> int:
        """Add groups, and return how many were new. Groups that no optimal partition needs are left out."""
        before = len(self.groups)
        for group in groups:
            rows = tuple(sorted(int(i) for i in group))
            if rows not in self.groups and self.k <= len(rows) < 2 * self.k:
                self.groups[rows] = float(self.gaps.pairs[np.ix_(rows, rows)].sum()) / (2 * len(rows))
        return len(self.groups) - before

    def matrix(self, groups: Iterable[tuple[int, ...]]) -> csc_array:
        """Return which record (row) is in which group (column)."""
        from scipy.sparse import csc_array

        groups = list(groups)
        start = np.cumsum([0, *map(len, groups)])
        rows = np.concatenate([np.array(group) for group in groups])
        return csc_array((np.ones(len(rows)), rows, start), shape=(len(self.gaps), len(groups)))

    def keep(self, labels: Labels) -> None:
        """Take this partition as the best known, if it is."""
        labels = renumbered(labels)
        cost = self.gaps.cost(labels)
        if cost < self.cost:
            self.labels, self.cost = labels, cost


@dataclass(frozen=True)
class Generated:
    """The best bound and the prices it was found at."""

    bound: float
    prices: Floats
    rounds: int = 0  # that it took


def generate(
    pool: Pool,
    prices: Floats,
    until: float,
    progress: Progress = silent,
    rounds: int = ROUNDS,
    most_looks: int = MOST_LOOKS,
) -> Generated:
    """Add groups to the pool until none is missing, and return the best bound met."""
    bound, _, _ = price(pool, prices, FIRST_LOOKS)
    best, looks, taken = Generated(bound, prices), FIRST_LOOKS, 0
    for step in range(rounds):
        if time.monotonic() > until or pool.cost - best.bound <= CLOSE * pool.cost:
            break
        taken = step + 1
        value, at = program(pool, until)
        if at is None:
            break
        new, whole = 0, True
        for towards in (TOWARDS_BEST, 0.0):
            here = towards * best.prices + (1.0 - towards) * at
            bound, new, whole = price(pool, here, looks)
            if bound > best.bound:
                best = Generated(bound, here)
            if new:
                break
        if new < FEW:
            if value - best.bound <= CLOSE * value or (whole and new == 0) or looks >= most_looks:
                break
            looks *= 1 if whole else MORE_LOOKS
        progress(step, rounds)
    return replace(best, rounds=taken)


def price(pool: Pool, prices: Floats, looks: int, wanted: float = 0.0) -> tuple[float, int, bool]:
    """Add the groups with a reduced cost below `wanted`; return a bound, how many are new, and if none is missing."""
    pricing = kernels.load("pricing")

    least, new, whole = np.zeros(len(prices)), 0, True
    stars = np.full(len(prices), np.inf)
    for m in pool.sizes:
        many, taken = MOST_FOUND, PER_ROOT if wanted == 0.0 else MOST_FOUND
        priced = pricing.of(pool.gaps.pairs, prices, m, (many, taken, looks), wanted)
        pricing.sum_stars(priced, np.zeros((len(prices), m - 1), np.int32))
        pricing.search_all(priced)
        found = int(priced.counts[0].found)
        new += pool.add(priced.found[:found])
        whole = whole and found < many and not priced.counts[0].cut_short
        if wanted > 0.0 and not whole:
            break
        least = np.minimum(least, priced.least)
        stars = np.minimum(stars, priced.sums[:, m - 1])
    groups = len(prices) // pool.k
    by_roots = float(prices.sum() + np.sort(least)[:groups].sum())
    return max(by_roots, float(prices.sum() + 0.5 * stars.sum())), new, whole


def program(pool: Pool, until: float) -> tuple[float, Floats | None]:
    """Return the value and the prices of the linear program over the pool; no prices when the time is up."""
    from scipy.optimize import linprog

    seconds = max(0.1, until - time.monotonic())
    solved = linprog(  # type: ignore[call-overload]  # its types know no sparse matrix
        np.fromiter(pool.groups.values(), np.float64),
        A_eq=pool.matrix(pool.groups),
        b_eq=np.ones(len(pool.gaps)),
        method="highs",
        options={"time_limit": seconds},
    )
    if solved.status != 0:
        return np.inf, None
    return float(solved.fun), np.asarray(solved.eqlin.marginals, np.float64)

"""Rebuilding at cell level: many small parts of a partition are taken apart and put together better.

What the models say of a class is asked beforehand: of every make-up that a class of the pool can have (how many of
its records hold each confidential value). That is a short table for k alone or for few confidential values; where it
would be too long, classes are only merged (see `merging`), never rebuilt.

    find the statements near each record by a tree; then take steps that get colder (`kernels/cell_search`)

Cost: about 0.1 ms a step, whatever the size of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kinfold import kernels
from kinfold.methods.annealing import Budget, Refinement, Walk
from kinfold.methods.generalize.cells import Trees
from kinfold.methods.generalize.domain import Codes, Floats, Mask
from kinfold.methods.generalize.merging import nearest_classes
from kinfold.methods.generalize.outliers import Models, asked_k, failing
from kinfold.progress import Progress, silent
from kinfold.rows.tally import Ints, Spread, Tally

POOL = 60  # records taken apart in one step, at most
MAKE_UPS = 2_000_000  # combinations of counts whose answer is kept: two megabytes
NEAR = 16  # statements known to be near a record
CHUNK = 10_000  # steps between two calls of the listener
HEAT = 0.02  # what a step may cost at first, about


@dataclass(frozen=True, eq=False)
class MakeUps:
    """What each record adds to the make-up of its class, and whether classes of each make-up keep the promises."""

    weight: Ints
    holds: Mask
    pool: int
    count: Ints  # for how many records each row stands

    @classmethod
    def of(cls, tally: Tally, models: Models) -> MakeUps | None:
        """Ask the models about every make-up of up to POOL records; None where there are too many."""
        if (tally.sizes != 1).any():
            return cls._of_tuples(tally, models)
        names = [name for name in tally.spreads if any(model.column == name for model in models)]
        value, values = _values(tally, names)
        pool = POOL
        while (pool + 1) ** values > MAKE_UPS:
            pool -= 1
            if pool < 24:
                return None
        weight = (pool + 1) ** np.arange(values, dtype=np.int64)
        holds = np.zeros((pool + 1) ** values, np.bool_)
        counts = _compositions(pool, values)
        holds[counts @ weight] = ~_missed(tally, models, names, value, counts)
        return cls(weight[value], holds, pool, tally.sizes)

    @classmethod
    def _of_tuples(cls, tally: Tally, models: Models) -> MakeUps | None:
        """Ask about sizes alone, of rows that stand for many records each; None where more than sizes matters."""
        most = asked_k(models)  # a row that stands for more keeps k as well as one of these
        if any(model.column is not None for model in models) or POOL * most > MAKE_UPS:
            return None
        sizes = np.arange(1, POOL * most + 1, dtype=np.int64)
        holds = np.concatenate([[False], ~failing(models, Tally({}, sizes))])
        return cls(np.minimum(tally.sizes, most), holds, POOL, tally.sizes)


class Statements:
    """The ground of this search: what is said of the classes, by lowest common ancestors."""

    chunk = CHUNK

    def __init__(self, trees: Trees, records: Codes, make_ups: MakeUps, seed: int = 0) -> None:
        cell_search = kernels.load("cell_search")
        stream = kernels.load("draws").stream_of(seed)
        self.trees = trees
        self.parts = cell_search.parts_of(make_ups.pool, records.shape[1])
        near = _near(trees, records)
        self.classes = cell_search.classes_of(records, make_ups.weight, make_ups.count, make_ups.holds, near, stream)

    def begin(self, labels: Ints) -> None:
        """Go on from these classes."""
        cell_search = kernels.load("cell_search")
        self.classes.label[:] = labels
        cell_search.lay_out(self.classes, self.trees.forest)
        self.cost = cell_search.cost(self.classes, self.trees.forest, self.parts)

    def take(self, heats: Floats) -> None:
        """Take a step for each heat."""
        cell_search = kernels.load("cell_search")
        self.cost += cell_search.rebuild(self.classes, self.trees.forest, self.parts, heats)

    def better(self, labels: Ints, cost: float) -> tuple[Ints, float]:
        """Return these classes or those of the last step, whichever cost less."""
        if self.cost < cost:
            return self.classes.label.astype(np.int64), self.cost
        return labels, cost


def rebuilt(ground: Statements, labels: Ints, first: int, budget: Budget, progress: Progress = silent) -> Refinement:
    """Return better classes, found within the budget; `first` is the length of the first cycle."""
    ground.begin(labels)
    walk = Walk(ground, labels, ground.cost)
    return walk.follow(walk.doubling(first, HEAT), budget, progress)


def _near(trees: Trees, records: Codes) -> Codes:
    """A record of each of the statements nearest to each record's own."""
    _, first, inverse = np.unique(records, axis=0, return_index=True, return_inverse=True)
    says = np.ascontiguousarray(records[first])
    every = np.arange(len(first))
    found, _ = nearest_classes(trees, says, np.ones(len(first), np.int64), every, NEAR)
    return np.where(found >= 0, first[found], -1)[inverse.ravel()].astype(np.int32)


def _values(tally: Tally, names: list[str]) -> tuple[Ints, int]:
    """One number for what each record holds in the columns together, and how many numbers there are."""
    value = np.zeros(len(tally), np.int64)
    for name in names:
        spread = tally.spreads[name]
        held = np.zeros(len(tally), np.int64)
        held[spread.group] = spread.code
        value = value * len(spread.values) + held
    seen, value = np.unique(value, return_inverse=True)
    return value.astype(np.int64), len(seen)


def _compositions(pool: int, values: int) -> Ints:
    counts = np.arange(pool + 1)[:, None]
    for _ in range(values - 1):
        left = pool - counts.sum(axis=1)
        more = np.concatenate([np.arange(room + 1) for room in left])
        counts = np.column_stack([np.repeat(counts, left + 1, axis=0), more])
    return np.asarray(counts[counts.sum(axis=1) > 0], np.int64)


def _missed(tally: Tally, models: Models, names: list[str], value: Ints, counts: Ints) -> Mask:
    """Ask about classes made up of these counts, beside one more that keeps the whole spread like the table."""
    first = np.full(counts.shape[1], -1)
    first[value[::-1]] = np.arange(len(value))[::-1]
    whole = np.bincount(value, tally.sizes, counts.shape[1]).astype(np.int64)
    turns = int(np.ceil((counts.sum(axis=0) / whole).max())) + 1
    table = np.vstack([counts, turns * whole - counts.sum(axis=0)])
    spreads = {}
    for name in names:
        spread = tally.spreads[name]
        held = np.zeros(len(tally), np.int64)
        held[spread.group] = spread.code
        by_code = np.zeros((len(table), len(spread.values)), np.int64)
        for v in range(counts.shape[1]):
            by_code[:, held[first[v]]] += table[:, v]
        group, code = np.nonzero(by_code)
        spreads[name] = Spread(group, code, by_code[group, code], spread.values)
    return failing(models, Tally({}, table.sum(axis=1), spreads))[:-1]

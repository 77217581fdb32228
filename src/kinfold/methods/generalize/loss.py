"""What a generalization loses, from 0 (nothing) to 1 (everything).

    prec            mean over cells of level / height                         Sweeney 2002, Definition 5 (Prec = 1 - it)
    granularity     mean over cells of (m - 1) / (M - 1), m the leaves under the label, M all leaves; the top loses 1
    discernibility  Σ over released records of their class size, and n for a suppressed one, over n²

Attributes can have weights. A suppressed record loses 1 in each of its cells. Null loses nothing below the top.

All three grow on the way up while nothing is suppressed, and the extra that a suppressed record costs shrinks: a
search may use both (see `lattice`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.hierarchy import Hierarchy
from kinfold.methods.generalize.domain import FEW, Domain, Floats, Levels, Mask, View

Objective = Literal["granularity", "prec", "discernibility"]
OBJECTIVES: tuple[Objective, ...] = ("granularity", "prec", "discernibility")


def steps_lost(hierarchy: Hierarchy) -> Floats:
    """Level over height for each code (the last one null) and level."""
    levels = np.arange(hierarchy.height + 1) / max(hierarchy.height, 1)
    return np.broadcast_to(levels, (len(hierarchy) + 1, len(levels))).copy()


def leaves_lost(hierarchy: Hierarchy) -> Floats:
    """(m - 1) / (M - 1) for each code (the last one null) and level; the top loses 1, a value nothing.

    >>> leaves_lost(Hierarchy.of([("a", "ab"), ("b", "ab"), ("c", "c")]))[0].tolist()
    [0.0, 0.5, 1.0]
    """
    lost = np.zeros((len(hierarchy) + 1, hierarchy.height + 1))
    lost[:-1] = (hierarchy.leaves - 1) / max(len(hierarchy) - 1, 1)
    lost[:, -1] = 1.0 if hierarchy.height else 0.0
    return lost


@dataclass(frozen=True, eq=False)
class CellLoss:
    """A loss that is a weighted mean over cells: `tables[a][code, level]` is what the cell loses."""

    domain: Domain
    tables: tuple[Floats, ...]
    weights: Floats  # they sum to 1

    @classmethod
    def of(cls, domain: Domain, objective: Objective, weights: Mapping[str, float] | None = None) -> CellLoss:
        """Make the tables of granularity or prec."""
        table = leaves_lost if objective == "granularity" else steps_lost
        return cls(domain, tuple(table(tree) for tree in domain.hierarchies), _weights(domain, weights))

    @cached_property
    def steps(self) -> tuple[Floats, ...]:
        """What each attribute adds to the loss of the whole table at each of its levels."""
        records = self.domain.records
        tables = zip(self.tables, self.domain.codes.T, self.weights, strict=True)
        held = ((table, np.bincount(codes, self.domain.tally.sizes, len(table)), w) for table, codes, w in tables)
        return tuple(weight * (counts @ table / records) for table, counts, weight in held)

    def plain(self, view: View) -> float:
        """The loss while nothing is suppressed."""
        return float(sum(step[level] for step, level in zip(self.steps, view.levels, strict=True)))

    def suppressing(self, view: View, gone: Mask) -> float:
        """What suppressing the marked classes adds: 1 less what their cells lose already."""
        records = view.tally.sizes[gone].sum() / self.domain.records
        few_gone = 2 * int(np.count_nonzero(gone)) < len(gone)
        lost = self._lost(view, np.flatnonzero(gone if few_gone else ~gone))
        return float(records - (lost if few_gone else self.plain(view) - lost))

    def _lost(self, view: View, classes: NDArray[np.intp]) -> float:
        rows, sizes = view.rows[classes], view.tally.sizes[classes]
        if len(classes) > FEW:
            rollup = kernels.load("rollup")

            flat, start = self._flat
            at = np.array([first[level] for first, level in zip(start, view.levels, strict=True)])
            return float(rollup.weigh(self.domain.codes, rows, sizes, flat, at)) / self.domain.records
        lost = np.zeros(len(classes))
        for a, (table, level) in enumerate(zip(self.tables, view.levels, strict=True)):
            lost += self.weights[a] * table[self.domain.codes[rows, a], level]
        return float(sizes @ lost) / self.domain.records

    @cached_property
    def _flat(self) -> tuple[Floats, list[list[int]]]:
        # One column after the other, and where each level of each attribute begins
        columns, start, place = [], [], 0
        for table, weight in zip(self.tables, self.weights, strict=True):
            columns.append((weight * table).T.ravel())
            start.append([place + level * len(table) for level in range(table.shape[1])])
            place += table.size
        return np.concatenate(columns), start

    def cells(self, levels: NDArray[np.integer[Any]], suppressed: Mask) -> float:
        """The loss where each cell of each row has its own level."""
        lost = np.zeros(len(self.domain))
        for a, table in enumerate(self.tables):
            lost += self.weights[a] * table[self.domain.codes[:, a], levels[:, a]]
        return float(self.domain.tally.sizes @ np.where(suppressed, 1.0, lost)) / self.domain.records


@dataclass(frozen=True, eq=False)
class ClassLoss:
    """Discernibility: how many records each is confused with."""

    domain: Domain
    steps: None = None  # the attributes do not add up

    def plain(self, view: View) -> float:
        """The loss while nothing is suppressed."""
        return float((view.tally.sizes.astype(np.float64) ** 2).sum()) / self.domain.records**2

    def suppressing(self, view: View, gone: Mask) -> float:
        """What suppressing the marked classes adds: n for each record, less the size of its class."""
        sizes = view.tally.sizes[gone].astype(np.float64)
        return float((sizes * (self.domain.records - sizes)).sum()) / self.domain.records**2


Loss = CellLoss | ClassLoss


def loss_of(domain: Domain, objective: Objective, weights: Mapping[str, float] | None = None) -> Loss:
    """Return the loss that an objective names."""
    if objective not in OBJECTIVES:
        raise PolicyError(f"the objective is {objective!r}", fix=f"choose one of {', '.join(OBJECTIVES)}")
    return ClassLoss(domain) if objective == "discernibility" else CellLoss.of(domain, objective, weights)


def generalizations(heights: Sequence[int]) -> int:
    """How many tables a level for each attribute can make (Sweeney 2002, Equation 1).

    >>> generalizations([2, 3])
    12
    """
    return int(np.prod([height + 1 for height in heights], dtype=object))


def is_below(low: Levels, high: Levels) -> bool:
    """Whether the table at `high` is a generalization of the table at `low` (the partial order of section 3.2).

    >>> is_below((0, 1), (1, 1)), is_below((1, 0), (0, 2))
    (True, False)
    """
    return all(a <= b for a, b in zip(low, high, strict=True))


def _weights(domain: Domain, weights: Mapping[str, float] | None) -> Floats:
    given = np.array([(weights or {}).get(name, 1.0) for name in domain.names])
    if unknown := sorted(set(weights or {}) - set(domain.names)):
        raise PolicyError(f"weights name columns that are not generalized: {', '.join(unknown)}", fix="leave them out")
    if not (given >= 0).all() or not given.sum() > 0 or not np.isfinite(given).all():
        raise PolicyError("a weight is below 0, or all are 0", fix="give weights from 0 up, one of them above 0")
    return np.asarray(given / given.sum(), np.float64)

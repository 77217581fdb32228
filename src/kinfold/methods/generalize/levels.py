"""A generalization: the level of every cell, the rows that are suppressed, and the information loss.

Full-domain methods use one level for a whole column; mu-Argus stars single cells; cell-level methods give every class
its own levels. `Generalization` represents all of them.

The loss lies between 0 (nothing is lost) and 1 (everything is lost). Attributes can have weights.

    prec            mean over cells of level / height, which is 1 - Prec (Sweeney 2002, Definition 5)
    granularity     mean over cells of (m - 1) / (M - 1): m leaves under the label, M leaves in all; the top loses 1
    discernibility  sum over released records of their class size, and n for a suppressed record, over n^2

A suppressed record loses 1 in each of its cells. Null loses nothing below the top. While nothing is suppressed, all
three losses grow up the lattice, and the extra cost of a suppressed record shrinks; the lattice search uses both.

Classes that fail a promise are suppressed:

    dropped     suppress the classes that fail an absorbing promise, such as k;
                while a remaining class fails another promise, or one about the table, suppress all such classes
    starred     suppress the classes that fail a promise; they are released as one class, which must keep the promises
                too: while it does not, star the smallest remaining class as well (the first one of a tie)

Dropping records changes the distribution that t-closeness compares with, so the check is repeated. A class that keeps
an absorbing promise keeps it after any merge, so the number of records to drop only shrinks up the lattice. The number
of records to star can grow, because a small starred class must be filled.

Reading of paper 002, Figure 8, step 4: while some but fewer than k tuples are suppressed, suppress the whole smallest
class as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.errors import PolicyError, Unreachable
from kinfold.hierarchies import TOP, Hierarchy
from kinfold.methods.generalize.closeness import Closeness
from kinfold.methods.generalize.domain import MAX_ROWS_WITHOUT_KERNEL, Domain, Floats, Levels, Mask, View, number_keys
from kinfold.models import KAnonymity, Model, TableModel
from kinfold.tables.tally import Ints, Tally, Values

Objective = Literal["granularity", "prec", "discernibility"]
OBJECTIVES: tuple[Objective, ...] = ("granularity", "prec", "discernibility")


def level_losses(hierarchy: Hierarchy) -> Floats:
    """Return level / height by code and level; the last code is null."""
    levels = np.arange(hierarchy.height + 1) / max(hierarchy.height, 1)
    return np.broadcast_to(levels, (len(hierarchy) + 1, len(levels))).copy()


def leaf_losses(hierarchy: Hierarchy) -> Floats:
    """Return (m - 1) / (M - 1) by code and level; the last code is null, and the top loses 1.

    >>> leaf_losses(Hierarchy.from_rows([("a", "ab"), ("b", "ab"), ("c", "c")]))[0].tolist()
    [0.0, 0.5, 1.0]
    """
    losses = np.zeros((len(hierarchy) + 1, hierarchy.height + 1))
    losses[:-1] = (hierarchy.leaves - 1) / max(len(hierarchy) - 1, 1)
    losses[:, -1] = 1.0 if hierarchy.height else 0.0
    return losses


@dataclass(frozen=True, eq=False)
class CellLoss:
    """A loss that is a weighted mean over cells: `tables[a][code, level]` is the loss of a cell."""

    domain: Domain
    tables: tuple[Floats, ...]
    weights: Floats  # they sum to 1

    @classmethod
    def from_objective(
        cls, domain: Domain, objective: Objective, weights: Mapping[str, float] | None = None
    ) -> CellLoss:
        """Return the loss for granularity or prec."""
        table = leaf_losses if objective == "granularity" else level_losses
        return cls(domain, tuple(table(tree) for tree in domain.hierarchies), _normalize_weights(domain, weights))

    @cached_property
    def steps(self) -> tuple[Floats, ...]:
        """The contribution of each attribute to the loss of the whole table, by level."""
        records = self.domain.records
        columns = zip(self.tables, self.domain.codes.T, self.weights, strict=True)
        return tuple(
            weight * (np.bincount(codes, self.domain.tally.sizes, len(table)) @ table / records)
            for table, codes, weight in columns
        )

    def plain(self, view: View) -> float:
        """Return the loss if nothing is suppressed."""
        return float(sum(step[level] for step, level in zip(self.steps, view.levels, strict=True)))

    def suppressing(self, view: View, suppressed: Ints) -> float:
        """Return the extra loss of suppressing so many records of each class: 1 minus the loss of their cells."""
        share = suppressed.sum() / self.domain.records
        few = 2 * int(np.count_nonzero(suppressed)) < len(suppressed)
        loss = self._class_loss(view, suppressed if few else view.tally.sizes - suppressed)
        return float(share - (loss if few else self.plain(view) - loss))

    def _class_loss(self, view: View, records: Ints) -> float:
        classes = np.flatnonzero(records)
        rows, sizes = view.rows[classes], records[classes]
        if len(self.domain) > MAX_ROWS_WITHOUT_KERNEL:
            flat, starts = self._flat
            start = np.array([first[level] for first, level in zip(starts, view.levels, strict=True)])
            total = kernels.load("rollup").weigh(self.domain.codes, rows, sizes, flat, start)
            return float(total) / self.domain.records
        losses = np.zeros(len(classes))
        for a, (table, level) in enumerate(zip(self.tables, view.levels, strict=True)):
            losses += self.weights[a] * table[self.domain.codes[rows, a], level]
        return float(sizes @ losses) / self.domain.records

    @cached_property
    def _flat(self) -> tuple[Floats, list[list[int]]]:
        # All tables in one array, and the start of each level of each attribute
        columns, starts, place = [], [], 0
        for table, weight in zip(self.tables, self.weights, strict=True):
            columns.append((weight * table).T.ravel())
            starts.append([place + level * len(table) for level in range(table.shape[1])])
            place += table.size
        return np.concatenate(columns), starts

    def mean_loss(self, levels: NDArray[np.integer[Any]], suppressed: Mask) -> float:
        """Return the loss if each cell of each row has its own level."""
        losses = np.zeros(len(self.domain))
        for a, table in enumerate(self.tables):
            losses += self.weights[a] * table[self.domain.codes[:, a], levels[:, a]]
        return float(self.domain.tally.sizes @ np.where(suppressed, 1.0, losses)) / self.domain.records


@dataclass(frozen=True, eq=False)
class ClassLoss:
    """Discernibility: the number of records that share the class of each record."""

    domain: Domain
    steps: None = None  # the loss does not add up over attributes

    def plain(self, view: View) -> float:
        """Return the loss if nothing is suppressed."""
        return float((view.tally.sizes.astype(np.float64) ** 2).sum()) / self.domain.records**2

    def suppressing(self, view: View, suppressed: Ints) -> float:
        """Return the extra loss of suppressing so many records of each class: n minus the class size for each."""
        sizes = view.tally.sizes.astype(np.float64)
        return float((suppressed * (self.domain.records - sizes)).sum()) / self.domain.records**2


Loss = CellLoss | ClassLoss


def make_loss(domain: Domain, objective: Objective, weights: Mapping[str, float] | None = None) -> Loss:
    """Return the loss of an objective."""
    if objective not in OBJECTIVES:
        raise PolicyError(f"the objective is {objective!r}", fix=f"choose one of {', '.join(OBJECTIVES)}")
    return ClassLoss(domain) if objective == "discernibility" else CellLoss.from_objective(domain, objective, weights)


def count_generalizations(heights: Sequence[int]) -> int:
    """Return the number of full-domain generalizations (Sweeney 2002, Equation 1).

    >>> count_generalizations([2, 3])
    12
    """
    return int(np.prod([height + 1 for height in heights], dtype=object))


def is_below(low: Levels, high: Levels) -> bool:
    """Return whether the table at `high` generalizes the table at `low` (Sweeney 2002, section 3.2).

    >>> is_below((0, 1), (1, 1)), is_below((1, 0), (0, 2))
    (True, False)
    """
    return all(a <= b for a, b in zip(low, high, strict=True))


def _normalize_weights(domain: Domain, weights: Mapping[str, float] | None) -> Floats:
    given = np.array([(weights or {}).get(name, 1.0) for name in domain.names])
    if unknown := sorted(set(weights or {}) - set(domain.names)):
        raise PolicyError(
            f"weights name columns that are not generalized: {', '.join(unknown)}", fix="remove these weights"
        )
    if not (given >= 0).all() or not given.sum() > 0 or not np.isfinite(given).all():
        raise PolicyError("a weight is below 0, or all are 0", fix="give weights of 0 or more, at least one above 0")
    return np.asarray(given / given.sum(), np.float64)


Models = Sequence[Model]


def mark_failing(models: Models, tally: Tally) -> Mask:
    """Mark the classes that fail any promise."""
    marked = np.zeros(len(tally), np.bool_)
    for model in models:
        marked |= model.failing(tally)
    return marked


def mark_outliers(models: Models, tally: Tally, *, starred: bool = False, closeness: Closeness | None = None) -> Mask:
    """Mark the classes to suppress so that the others keep every promise.

    If suppressed records are starred, they form one class of the release, which must keep every promise too.
    `closeness` stands for the promises that do not absorb: the same classes, marked faster.
    """
    if starred:
        return complete_starred_class(models, tally, mark_failing(models, tally))
    suppressed = mark_failing([model for model in models if model.absorbing], tally)
    if closeness is not None:
        return closeness.mark(tally, suppressed)
    others = [model for model in models if not model.absorbing or isinstance(model, TableModel)]
    while others and not suppressed.all():
        kept = np.flatnonzero(~suppressed)
        more = mark_failing(others, tally.drop(suppressed) if len(kept) < len(suppressed) else tally)
        if not more.any():
            break
        suppressed[kept[more]] = True
    return suppressed


def complete_starred_class(models: Models, tally: Tally, suppressed: Mask) -> Mask:
    """Mark more classes until the marked classes, as one class, and all other classes keep the promises."""
    suppressed = suppressed.copy()
    while suppressed.any() and not suppressed.all():
        kept = np.flatnonzero(~suppressed)
        into = np.zeros(len(tally), np.int64)  # class 0 is the starred class
        into[kept] = np.arange(1, len(kept) + 1)
        failing = mark_failing(models, tally.merge(into, {}))
        if failing[1:].any():
            suppressed[kept[failing[1:]]] = True
        elif failing[0]:
            suppressed[kept[np.argmin(tally.sizes[kept])]] = True
        else:
            break
    return suppressed


def suppression_limit(suppression: float, records: int) -> int:
    """Return how many records may be suppressed: an integer is a count, a float a share of the records.

    >>> suppression_limit(3, 200), suppression_limit(0.02, 200), suppression_limit(1.0, 200)
    (3, 4, 200)
    """
    share = isinstance(suppression, float)
    if suppression < 0 or (share and suppression > 1) or suppression != suppression:
        raise PolicyError(
            f"suppression is {suppression}", fix="give a number of records (0 or more), or a share from 0.0 to 1.0"
        )
    return int(np.floor(suppression * records + 1e-9)) if share else min(int(suppression), records)


def required_k(models: Models) -> int:
    """Return the largest k that a model requires, or 1."""
    return max((model.k for model in models if isinstance(model, KAnonymity)), default=1)


@dataclass(frozen=True, eq=False)
class Generalization:
    """The level of each cell, `levels[row, attribute]`, and the suppressed rows."""

    domain: Domain
    levels: NDArray[np.integer[Any]]
    suppressed: Mask

    @classmethod
    def full_domain(cls, domain: Domain, levels: Sequence[int], suppressed: Mask | None = None) -> Generalization:
        """Return the generalization with one level per column."""
        cells = np.broadcast_to(np.asarray(levels, np.int16), domain.codes.shape).copy()
        return cls(domain, cells, np.zeros(len(domain), np.bool_) if suppressed is None else suppressed)

    @property
    def vector(self) -> Levels | None:
        """The level of each column, or None if the cells of a column differ."""
        kept = self.levels[~self.suppressed]
        if not len(kept) or (kept != kept[0]).any():
            return None
        return tuple(int(level) for level in kept[0])

    @property
    def records_suppressed(self) -> int:
        """The number of suppressed records."""
        return int(self.domain.tally.sizes[self.suppressed].sum())

    @property
    def records_lost(self) -> int:
        """The number of records that are suppressed or have only stars; 0 if all records have only stars."""
        starred = self._starred
        return 0 if starred.all() and not self.suppressed.any() else int(self.domain.tally.sizes[starred].sum())

    @property
    def _starred(self) -> Mask:
        """Mark the rows that are suppressed or have only top labels."""
        labels = [self._number_labels(a)[0] for a in range(len(self.domain.names))]
        return np.asarray(np.logical_and.reduce([number == 0 for number in labels]), np.bool_)

    @property
    def k(self) -> int:
        """The size of the smallest released class, or 0."""
        sizes = self.tally().sizes
        return int(sizes.min()) if len(sizes) else 0

    def columns(self) -> dict[str, Values]:
        """Return the released labels by column; suppressed rows have the top everywhere, null is None."""
        columns = {}
        for a, name in enumerate(self.domain.names):
            labels = self.domain.labels_at(a, self.levels[:, a])
            labels[self.suppressed] = TOP
            columns[name] = labels
        return columns

    def classes(self) -> Ints:
        """Return the class of each row by its released labels."""
        into, classes = np.zeros(len(self.domain), np.int64), 1
        for a in range(len(self.domain.names)):
            number, labels = self._number_labels(a)
            into, classes = number_keys(into * labels + number, classes * labels)
        return into

    def _number_labels(self, attribute: int) -> tuple[Ints, int]:
        """Number the released labels of a column; equal texts have equal numbers at all levels, the top has 0."""
        table = self.domain.label_table(attribute)
        known: dict[Any, int] = {TOP: 0}
        number = np.array([known.setdefault(label, len(known)) for label in table.ravel()], np.int64)
        numbers = number.reshape(table.shape)[self.domain.codes[:, attribute], self.levels[:, attribute]]
        numbers[self.suppressed] = 0
        return numbers, len(known)

    def one_row_per_class(self) -> tuple[Generalization, Ints]:
        """Return the generalization of one row per class, and the class of each row."""
        # suppressed rows differ from released rows that have only top labels
        into, classes = number_keys(self.classes() * 2 + self.suppressed, 2 * len(self.domain))
        first = np.full(classes, -1, np.int64)
        first[into[::-1]] = np.arange(len(into))[::-1]
        domain = replace(self.domain, codes=self.domain.codes[first], tally=Tally({}, self.domain.tally.sizes[first]))
        return Generalization(domain, self.levels[first], self.suppressed[first]), into

    def tally(self) -> Tally:
        """Return the tally of the released rows."""
        into, _ = number_keys(self.classes()[~self.suppressed], len(self.domain))
        return self.domain.tally.drop(self.suppressed).merge(into, {})

    def holds(self, models: Models) -> bool:
        """Return whether there are released rows and every promise holds on them."""
        tally = self.tally()
        return len(tally) > 0 and not mark_failing(models, tally).any()

    def complete(self, models: Models, starred: bool = False) -> Generalization:
        """Suppress classes until every promise holds; with `starred` also on the class of suppressed rows."""
        into, _ = number_keys(self.classes()[~self.suppressed], len(self.domain))
        suppressed = self.suppressed.copy()
        suppressed[~self.suppressed] = mark_outliers(models, self.tally())[into]
        result = replace(self, suppressed=suppressed)
        if starred and suppressed.any():
            starred_rows = result._starred
            into, classes = number_keys(np.where(starred_rows, -1, result.classes()) + 1, len(self.domain) + 1)
            marked = np.zeros(classes, np.bool_)
            marked[into[starred_rows]] = True
            marked = complete_starred_class(models, self.domain.tally.merge(into, {}), marked)
            result = replace(result, suppressed=marked[into])
        if result.suppressed.all():
            what = f"no class of the {self.domain.records} records keeps the promises of the policy"
            raise Unreachable(what, fix="generalize more, or require less")
        return result

    def prec(self, weights: Mapping[str, float] | None = None) -> float:
        """Return Prec, from 0 to 1 (Sweeney 2002, Definition 5); a suppressed cell loses 1."""
        return 1.0 - CellLoss.from_objective(self.domain, "prec", weights).mean_loss(self.levels, self.suppressed)

    def granularity(self, weights: Mapping[str, float] | None = None) -> float:
        """Return 1 - the granularity loss, from 0 to 1."""
        loss = CellLoss.from_objective(self.domain, "granularity", weights)
        return 1.0 - loss.mean_loss(self.levels, self.suppressed)

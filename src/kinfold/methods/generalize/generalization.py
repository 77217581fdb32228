"""A generalization: the level of every cell, and which rows are not released.

Full-domain methods have one level for a whole column; mu-Argus stars single cells; at cell level every class has its
own levels. All of them are this one value, which says what is released and what it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable
from kinfold.hierarchy import TOP
from kinfold.methods.generalize.domain import Domain, Levels, Mask, numbered
from kinfold.methods.generalize.loss import CellLoss
from kinfold.methods.generalize.outliers import Models, completed, failing, outliers
from kinfold.rows.tally import Ints, Tally, Values


@dataclass(frozen=True, eq=False)
class Generalization:
    """`levels[row, attribute]` of each cell of the domain's rows, and the rows that are suppressed."""

    domain: Domain
    levels: NDArray[np.integer[Any]]
    suppressed: Mask

    @classmethod
    def full(cls, domain: Domain, levels: Sequence[int], suppressed: Mask | None = None) -> Generalization:
        """Put every column on one level."""
        cells = np.broadcast_to(np.asarray(levels, np.int16), domain.codes.shape).copy()
        return cls(domain, cells, np.zeros(len(domain), np.bool_) if suppressed is None else suppressed)

    @property
    def vector(self) -> Levels | None:
        """The level of each column, or None where cells of a column differ."""
        kept = self.levels[~self.suppressed]
        if not len(kept) or (kept != kept[0]).any():
            return None
        return tuple(int(level) for level in kept[0])

    @property
    def records_suppressed(self) -> int:
        """How many records are not released."""
        return int(self.domain.tally.sizes[self.suppressed].sum())

    @property
    def records_lost(self) -> int:
        """How many records are not released, or have nothing but stars while others have more."""
        starred = self._starred
        return 0 if starred.all() and not self.suppressed.any() else int(self.domain.tally.sizes[starred].sum())

    @property
    def _starred(self) -> Mask:
        """Mark the rows that are suppressed, and those whose labels are all the top."""
        labels = [self._numbers(a)[0] for a in range(len(self.domain.names))]
        return np.asarray(np.logical_and.reduce([number == 0 for number in labels]), np.bool_)

    @property
    def k(self) -> int:
        """The size of the smallest class that is released, 0 where nothing is."""
        sizes = self.tally().sizes
        return int(sizes.min()) if len(sizes) else 0

    def columns(self) -> dict[str, Values]:
        """The released label of each row in each column; suppressed rows hold the top everywhere, null is None."""
        found = {}
        for a, name in enumerate(self.domain.names):
            labels = self.domain.released(a, self.levels[:, a])
            labels[self.suppressed] = TOP
            found[name] = labels
        return found

    def classes(self, names: Sequence[str] | None = None) -> Ints:
        """The class of each row by its released labels, in all columns or in those named."""
        into, classes = np.zeros(len(self.domain), np.int64), 1
        for name in self.domain.names if names is None else names:
            number, labels = self._numbers(self.domain.names.index(name))
            into, classes = numbered(into * labels + number, classes * labels)
        return into

    def _numbers(self, attribute: int) -> tuple[Ints, int]:
        """Number the released labels of a column: the same text, the same number, on whatever level."""
        table = self.domain.labels(attribute)
        seen: dict[Any, int] = {TOP: 0}
        number = [seen.setdefault(label, len(seen)) for label in table.ravel()]
        found = np.array(number, np.int64).reshape(table.shape)[
            self.domain.codes[:, attribute], self.levels[:, attribute]
        ]
        found[self.suppressed] = 0
        return found, len(seen)

    def classed(self) -> tuple[Generalization, Ints]:
        """Return what is released of one row of each class, and the class of each row."""
        into, classes = numbered(self.classes() * 2 + self.suppressed, 2 * len(self.domain))  # * in a cell is no star
        first = np.full(classes, -1, np.int64)
        first[into[::-1]] = np.arange(len(into))[::-1]
        domain = replace(self.domain, codes=self.domain.codes[first], tally=Tally({}, self.domain.tally.sizes[first]))
        return Generalization(domain, self.levels[first], self.suppressed[first]), into

    def tally(self, names: Sequence[str] | None = None) -> Tally:
        """Tally the rows that are released; those suppressed do not count."""
        into, _ = numbered(self.classes(names)[~self.suppressed], len(self.domain))
        return self.domain.tally.drop(self.suppressed).merge(into, {})

    def holds(self, models: Models) -> bool:
        """Whether every promise holds on the rows that are released, and there are some."""
        tally = self.tally()
        return len(tally) > 0 and not failing(models, tally).any()

    def completed(self, models: Models, starred: bool = False) -> Generalization:
        """Suppress whole classes until every promise holds; with `starred` also on the suppressed rows together."""
        into, _ = numbered(self.classes()[~self.suppressed], len(self.domain))
        tally = self.tally()
        gone = outliers(models, tally)
        suppressed = self.suppressed.copy()
        suppressed[~self.suppressed] = gone[into]
        done = replace(self, suppressed=suppressed)
        if starred and suppressed.any():
            done = done._with_starred_class(models)
        if done.suppressed.all():
            raise Unreachable(
                f"no class of the {self.domain.records} records keeps what was asked",
                fix="generalize more, or ask less",
            )
        return done

    def prec(self, weights: Mapping[str, float] | None = None) -> float:
        """Precision, from 0 to 1 (Sweeney 2002, Definition 5); a suppressed row counts 1 in each of its cells."""
        return 1.0 - CellLoss.of(self.domain, "prec", weights).cells(self.levels, self.suppressed)

    def granularity(self, weights: Mapping[str, float] | None = None) -> float:
        """1 less the mean over cells of (m - 1) / (M - 1), from 0 to 1."""
        return 1.0 - CellLoss.of(self.domain, "granularity", weights).cells(self.levels, self.suppressed)

    def _with_starred_class(self, models: Models) -> Generalization:
        starred = self._starred
        into, classes = numbered(np.where(starred, -1, self.classes()) + 1, len(self.domain) + 1)
        gone = np.zeros(classes, np.bool_)
        gone[into[starred]] = True
        gone = completed(models, self.domain.tally.merge(into, {}), gone)
        return replace(self, suppressed=gone[into])

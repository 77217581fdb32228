"""Terms: what a check needs to know and nothing more: which columns are what, and the models.

They come from a policy bound to a table, or from a certificate; either way the check is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kinfold.errors import DataError
from kinfold.hierarchy import Hierarchy
from kinfold.models.finding import Model
from kinfold.rows.schema import AS_TEXT, Kind, Reading
from kinfold.rows.tally import Spread


@dataclass(frozen=True, eq=False)
class Confidential:
    """A confidential column as a check sees it: how its values are told apart and how far apart they are."""

    name: str
    kind: str
    distance: str
    order: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None
    date_format: str | None = None  # how dates are written, where they are text and not as ISO 8601 writes them

    @property
    def reading(self) -> Reading:
        """How its values are read: a declared order and a hierarchy are over texts."""
        if self.kind == Kind.NOMINAL or self.order is not None or self.hierarchy is not None:
            return AS_TEXT
        return Reading("moment", self.date_format) if self.kind == Kind.DATE else Reading("number")

    def arranged(self, spread: Spread) -> Spread:
        """Put the values of a column that has a declared order into that order, null first."""
        if self.order is None:
            return spread
        place = {None: -1} | {text: rank for rank, text in enumerate(self.order)}
        if unknown := sum(value not in place for value in spread.values):
            raise DataError(
                f"column '{self.name}': {unknown:,} of its {len(spread.values):,} values are not in its order",
                fix="add them to the order, or check the file",
            )
        order = np.argsort([place[value] for value in spread.values], kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        return Spread(spread.group, number[spread.code], spread.count, spread.values[order])


@dataclass(frozen=True, eq=False)
class Terms:
    """The columns of a release and what is promised of them."""

    quasi: tuple[str, ...]
    confidential: tuple[Confidential, ...]
    other: tuple[str, ...]
    removed: tuple[str, ...]  # identifiers: must not be there
    models: tuple[Model, ...]
    joint: bool = False  # a promise about one confidential column holds for whoever knows the others
    unit: str | None = None  # whom k, l and t count, where that is not rows: only the column itself could show it

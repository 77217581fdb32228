"""Terms: what a check needs to know and nothing more: which columns are what, and the models.

They come from a policy bound to a table, or from a certificate; either way the check is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kinfold.errors import DataError, PolicyError
from kinfold.hierarchy import Hierarchy
from kinfold.models.finding import Model
from kinfold.rows.categories import category
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

    def __post_init__(self) -> None:
        """Refuse an order or a hierarchy in which one number, written in two ways, has two places."""
        twice = len(self.order or ()) - len(self.places)
        rows = [] if self.hierarchy is None else [(category(row[0]), *row[1:]) for row in self.hierarchy.labels]
        torn = len({*rows}) - len({row[0] for row in rows})
        if twice or torn:
            what = f"columns.{self.name}: a number that is written in two ways has two places in the order or hierarchy"
            raise PolicyError(what, fix="write it in one way, in the source too, or give it one place")

    @property
    def places(self) -> dict[str, int]:
        """The place of each category in the declared order."""
        return {category(text): rank for rank, text in enumerate(self.order or ())}

    @property
    def reading(self) -> Reading:
        """How its values are read: a declared order and a hierarchy are over categories."""
        if self.kind == Kind.NOMINAL or self.order is not None or self.hierarchy is not None:
            return AS_TEXT
        return Reading("moment", self.date_format) if self.kind == Kind.DATE else Reading("number")

    def arranged(self, spread: Spread) -> Spread:
        """Put the values of a column that has a declared order into that order, null first."""
        if self.order is None:
            return spread
        place = self.places
        found = [-1 if value is None else place.get(category(value)) for value in spread.values]
        if unknown := found.count(None):
            raise DataError(
                f"column '{self.name}': {unknown:,} of its {len(spread.values):,} values are not in its order",
                fix="add them to the order, or check the file",
            )
        order = np.argsort(np.array(found, np.int64), kind="stable")
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

"""Terms: the roles of the columns and the models, which is all that a check needs.

They come from a policy bound to a table, or from a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kinfold.errors import DataError, PolicyError
from kinfold.hierarchies import Hierarchy
from kinfold.models.known_events import KnownEvents
from kinfold.models.model import Model
from kinfold.tables.schema import AS_TEXT, Kind, OrderedReading, normalize_category
from kinfold.tables.tally import Spread


@dataclass(frozen=True, eq=False)
class ConfidentialColumn:
    """A confidential column: how its values are compared, and their distance."""

    name: str
    kind: str
    distance: str
    order: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None
    date_format: str | None = None  # of dates that are text and not ISO 8601

    def __post_init__(self) -> None:
        """Refuse an order or a hierarchy that lists one number twice, for example as 1 and 1.0."""
        in_order = len(self.order or ()) - len(self.positions)
        labels = () if self.hierarchy is None else self.hierarchy.labels
        rows = {(normalize_category(row[0]), *row[1:]) for row in labels}
        if in_order or len(rows) > len({row[0] for row in rows}):
            what = f"columns.{self.name}: a number that is written in two ways has two places in the order or hierarchy"
            raise PolicyError(what, fix="write it in one way, in the source too, or give it one place")

    @property
    def positions(self) -> dict[str, int]:
        """The position of each category in the declared order."""
        return {normalize_category(text): rank for rank, text in enumerate(self.order or ())}

    @property
    def reading(self) -> OrderedReading:
        """How values are parsed: as text if the column has an order or a hierarchy, else as dates or numbers."""
        if self.kind == Kind.NOMINAL or self.order is not None or self.hierarchy is not None:
            return AS_TEXT
        return OrderedReading("moment", self.date_format) if self.kind == Kind.DATE else OrderedReading("number")

    def sort_spread(self, spread: Spread) -> Spread:
        """Return the spread with its values in the declared order, if there is one; null comes first."""
        if self.order is None:
            return spread
        position = self.positions
        ranks = [-1 if value is None else position.get(normalize_category(value)) for value in spread.values]
        if unknown := ranks.count(None):
            raise DataError(
                f"column '{self.name}': {unknown:,} of its {len(spread.values):,} values are not in its order",
                fix="add them to the order, or check the file",
            )
        order = np.argsort(np.array(ranks, np.int64), kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        return Spread(spread.group, number[spread.code], spread.count, spread.values[order])


@dataclass(frozen=True)
class HouseholdTerms:
    """The column that names households, what all members of one show alike, and how many share a class."""

    column: str
    attributes: tuple[str, ...] = ()
    k: int | None = None


@dataclass(frozen=True, eq=False)
class Terms:
    """The columns of a release, and the promises about them."""

    quasi: tuple[str, ...]
    confidential: tuple[ConfidentialColumn, ...]
    other: tuple[str, ...]
    removed: tuple[str, ...]  # identifiers, which a release must not contain
    models: tuple[Model, ...]
    statements: tuple[Model, ...] = ()  # promises about the population, which only the data holder can check
    joint: bool = False  # promises about a confidential column also hold given the other confidential columns
    unit: str | None = None  # the column that names people, if k, l and t count people instead of rows
    surrogates: tuple[str, ...] = ()  # columns that the release holds with surrogates
    events: KnownEvents | None = None  # what others know about the events of a person
    household: HouseholdTerms | None = None  # of a table of households

    @property
    def counted_by(self) -> str | None:
        """The released column by which people can be counted, if there is one."""
        return self.unit if self.unit in self.surrogates else None

    @property
    def unchecked_unit(self) -> str | None:
        """The column that names people or households, if a release does not have it."""
        named = (self.unit, self.household.column if self.household else None)
        return next((name for name in named if name is not None and name not in self.surrogates), None)

    @property
    def released_household(self) -> HouseholdTerms | None:
        """What belongs to households, if the release has their surrogates."""
        return self.household if self.household and self.household.column in self.surrogates else None

"""What a table's columns are: how they are stored, what they mean, and the part they play."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal


class Role(StrEnum):
    """The part a column plays in a release."""

    IDENTIFIER = "identifier"
    QUASI = "quasi-identifier"
    CONFIDENTIAL = "confidential"
    OTHER = "other"


# What other tools call the roles.
ROLE_SYNONYMS = {
    "id": Role.IDENTIFIER,
    "direct": Role.IDENTIFIER,
    "identifying": Role.IDENTIFIER,
    "quasi": Role.QUASI,
    "quasi_identifier": Role.QUASI,
    "quasi-identifying": Role.QUASI,
    "key": Role.QUASI,
    "sensitive": Role.CONFIDENTIAL,
    "insensitive": Role.OTHER,
}


class Kind(StrEnum):
    """What the values of a column mean, and so how they are compared and averaged."""

    CONTINUOUS = "continuous"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"

    @property
    def measured(self) -> bool:
        """Whether values of this kind have differences: continuous and date."""
        return self in (Kind.CONTINUOUS, Kind.DATE)


class Storage(StrEnum):
    """How the values of a column are written, found out from all of them."""

    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"
    TEXT = "text"

    @property
    def kind(self) -> Kind:
        """The kind that such a column has unless the policy says otherwise."""
        if self in (Storage.INTEGER, Storage.NUMBER):
            return Kind.CONTINUOUS
        return Kind.DATE if self in (Storage.DATE, Storage.TIMESTAMP) else Kind.NOMINAL


@dataclass(frozen=True)
class Reading:
    """How the values of a column are told apart and ordered, exactly: as text, as numbers, or as moments in time.

    Among texts numbers are told apart as numbers: see `categories`.
    """

    sort: Literal["text", "number", "moment"] = "text"
    date_format: str | None = None  # of moments written as text; None: as ISO 8601 writes them


AS_TEXT = Reading()
UTC_ZONE = "UTC"


@dataclass(frozen=True)
class Seeming:
    """What a column of text seems to hold, and in which ways: `[source]` would have to say one of them."""

    sort: Literal["number", "moment"]
    fitting: int  # values that are that, in each of the ways
    others: int  # values that are neither that nor a word for missing
    ways: tuple[Any, ...]  # marks of numbers (decimal, thousands), or formats of dates; the simplest first
    words: tuple[str, ...] = ()  # known words for missing among them


@dataclass(frozen=True)
class Column:
    """One column as it stands in a table; counts are of rows."""

    name: str
    storage: Storage
    rows: int
    nulls: int = 0
    distinct: int = 0
    numbers: int = 0  # how many values can be read as finite numbers
    not_finite: int = 0  # how many are infinite or not a number
    decimals: int | None = None  # the most decimals that a value has; None where that is no small number
    date_format: str | None = None  # how dates are written, where they are text
    literal: bool = False  # told apart by its text as written: no type may change that
    formulas: int = 0  # how many texts a spreadsheet may run
    seems: Seeming | None = None  # what a column of text would be if `[source]` said so
    order: tuple[str, ...] | None = None  # the order that its categories have in the source
    ordered: bool = False  # whether the source says that this order means something
    floating: bool = False  # whether its numbers are stored as doubles or floats
    zone: str | None = None  # the time zone of moments that have one: what the source names, else UTC

    FEW: ClassVar[int] = 2

    @property
    def kind(self) -> Kind:
        """The kind to assume: numbers with at most two distinct values are codes, not quantities."""
        if self.ordered:
            return Kind.ORDINAL
        if self.storage.kind is Kind.CONTINUOUS and self.distinct <= self.FEW:
            return Kind.NOMINAL
        return self.storage.kind


@dataclass(frozen=True)
class Exactly:
    """Asks for the values of a column without a loss: numbers as text, moments in UTC.

    Moments written with their offsets from UTC come with these.
    """

    column: Column


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order."""

    columns: tuple[Column, ...]
    rows: int
    doubtful: tuple[int, ...] = ()  # places, from 1, where what should be names looks like a record: see `header`
    notes: tuple[str, ...] = ()  # what there is to say of how the table was read

    @classmethod
    def of(
        cls, columns: Iterable[Column], rows: int, doubtful: tuple[int, ...] = (), notes: tuple[str, ...] = ()
    ) -> Schema:
        """Gather columns."""
        return cls(tuple(columns), rows, doubtful, notes)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def literally(self, names: Collection[str]) -> Schema:
        """Return the schema in which these columns are told apart by their text as written."""
        columns = tuple(replace(column, literal=True) if column.name in names else column for column in self.columns)
        return replace(self, columns=columns)

    def get(self, name: str) -> Column | None:
        """The column of this name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

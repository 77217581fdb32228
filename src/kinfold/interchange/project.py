"""A project of ARX as far as it is told in plain text: the table, what each column is, and what is promised."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kinfold.errors import DataError
from kinfold.interchange.criteria import Criterion
from kinfold.rows.schema import Role


@dataclass(frozen=True)
class Attribute:
    """A column as ARX defines it; levels are bounds on its generalization, None where there is none."""

    name: str
    role: Role
    datatype: str = "String"  # String, Ordinal, Integer, Decimal, Date
    format: str = ""  # of numbers and dates as Java writes it; the categories of an ordinal one, a line each
    hierarchy: tuple[tuple[str, ...], ...] = ()  # a row a value, ever coarser
    lowest: int | None = None
    highest: int | None = None
    weight: float | None = None
    averaged: str = ""  # how it is microaggregated, in ARX's words


@dataclass(frozen=True)
class Project:
    """What a `.deid` file says: its data as CSV in UTF-8, its columns in the data's order, and its configuration."""

    name: str
    version: str  # of ARX
    data: bytes
    separator: str
    attributes: tuple[Attribute, ...]
    criteria: tuple[Criterion, ...] = ()
    others: tuple[str, ...] = ()  # criteria that kinfold does not have, in ARX's words
    suppression: float = 0.0  # share of the records
    metric: str = ""
    notes: tuple[str, ...] = ()  # what was found odd on reading

    def of(self, role: Role) -> tuple[Attribute, ...]:
        """The columns of a role."""
        return tuple(attribute for attribute in self.attributes if attribute.role is role)

    def rows(self) -> Iterator[list[str]]:
        """Return the records, after making sure that each has a field for each column."""
        width = len(self.attributes)
        for number, row in enumerate(csv_rows(self.data.decode(), self.separator, "the data")):
            if len(row) != width:
                what = f"the data: record {number} has {len(row)} fields, and the header {width}"
                raise DataError(what, fix="save the project again")
            if number:
                yield row

    def values(self) -> dict[str, set[str]]:
        """Return the distinct values of each column; one that is missing is the empty text."""
        found: dict[str, set[str]] = {attribute.name: set() for attribute in self.attributes}
        held: Sequence[set[str]] = list(found.values())
        for row in self.rows():
            for place, value in enumerate(row):
                held[place].add(value)
        return found


def csv_rows(text: str, separator: str, where: str) -> Iterator[list[str]]:
    """Return the records of a CSV text that are not empty."""
    try:
        yield from (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row)
    except csv.Error:
        raise DataError(f"{where}: a quote is open, or a field is very long", fix="save the project again") from None

"""SQL for the columns of a table inside the database: as text, as numbers, in the type that they had, quoted.

Columns are called c0, c1, ... there: a name in the data never becomes part of an expression, but as a quoted one when
a file is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kinfold.rows.date_formats import has_offset, has_time
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.recoding import Keep, Replace
from kinfold.rows.schema import UTC_ZONE, Column, Storage
from kinfold.rows.source_form import PLAIN, Form

FLOATING = ("FLOAT", "DOUBLE")


class Order(NamedTuple):
    """The order of a column's categories in its source, and whether the source says that it means something."""

    categories: tuple[str, ...]
    means_something: bool


@dataclass(frozen=True)
class Frame:
    """A table inside the engine: its name there, the columns' own names and SQL types, in order."""

    table: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    typed: bool  # False where every field is text as written: CSV
    form: Form = PLAIN  # how its source is written, and a CSV file made of it
    labelled: frozenset[str] = frozenset()  # columns that hold generalized labels instead of what the source had
    checksum: str | None = None  # of the bytes that were read
    blanked: frozenset[str] = frozenset()  # columns where texts that stand for a missing value became null
    numeric: frozenset[str] = frozenset()  # columns of text that were numbers by the marks of the source
    mixed: frozenset[str] = frozenset()  # columns of a typed source with numbers and texts: read as written
    orders: tuple[Order | None, ...] = ()  # of its columns, where the source has categories
    order: str = "rowid"  # SQL for the place of a row in the order in which rows came
    doubtful: tuple[int, ...] = ()  # places where the first line looks like a record instead of names
    zones: tuple[tuple[str, str], ...] = ()  # of columns of moments, by name, where the source says one
    notes: tuple[str, ...] = ()  # what there is to say of how it was read
    weight: str | None = None  # the column that says how many rows each stands for, where equal ones are held once

    @property
    def columns(self) -> list[str]:
        """The names of all columns inside the engine."""
        return [f"c{i}" for i in range(len(self.names))]

    def at(self, name: str) -> str:
        """The name of a column inside the engine."""
        return f"c{self.names.index(name)}"

    def zone_of(self, name: str) -> str | None:
        """The time zone of a column of moments; UTC where it has one that the source does not name."""
        kind = self.type_of(name)
        named = dict(self.zones).get(name) if kind.startswith("TIMESTAMP") else None
        return named or (UTC_ZONE if kind.endswith("TIME ZONE") else None)

    def knows_type(self, name: str) -> bool:
        """Whether the source knows the type of a column, so that its text is text whatever it looks like."""
        return self.typed and name not in self.mixed

    def order_of(self, place: int) -> Order | None:
        """The order of the categories of a column in the source, if it has one."""
        return self.orders[place] if self.orders else None

    def type_of(self, name: str) -> str:
        """The SQL type of a column."""
        return self.types[self.names.index(name)]

    @property
    def many(self) -> str:
        """SQL for how many rows there are."""
        return "count(*)" if self.weight is None else self.rows_where("TRUE")

    def rows_where(self, condition: str) -> str:
        """SQL for how many rows meet a condition."""
        if self.weight is None:
            return f"count(*) FILTER (WHERE {condition})"
        return f"CAST(coalesce(sum({self.weight}) FILTER (WHERE {condition}), 0) AS BIGINT)"


def identifier(name: str) -> str:
    """SQL for the name of a column."""
    return '"' + name.replace('"', '""') + '"'


def literal(path: Path) -> str:
    """SQL for a path."""
    return string(str(path))


def text(frame: Frame, name: str) -> str:
    """SQL for a column as the text that a file would hold."""
    return as_text(frame.at(name), frame.type_of(name))


def as_text(c: str, kind: str) -> str:
    """SQL for a value of a type as text; what is not a number may have a sign, which says nothing."""
    written = f"CAST({c} AS VARCHAR)"
    return f"CASE WHEN isnan({c}) THEN 'nan' ELSE {written} END" if kind in FLOATING else written


def number(frame: Frame, column: Column) -> str:
    """SQL for a column as a number: dates and times as days since 1970."""
    c, kind = frame.at(column.name), frame.type_of(column.name)
    if kind == "VARCHAR" and column.date_format:
        c = f"strptime(trim({c}), '{column.date_format}')"
    elif kind == "VARCHAR":
        return f"CAST(trim({c}) AS DOUBLE)"
    elif kind != "DATE" and not kind.startswith("TIMESTAMP"):
        return f"CAST({c} AS DOUBLE)"
    if column.storage is Storage.TIMESTAMP or has_time(column.date_format):
        return f"epoch(CAST({c} AS TIMESTAMP)) / 86400"
    return f"CAST(CAST({c} AS DATE) - DATE '1970-01-01' AS DOUBLE)"


def exact(frame: Frame, column: Column) -> str:
    """SQL for a column without a loss: see `Exactly`."""
    c, kind = frame.at(column.name), frame.type_of(column.name)
    if not column.date_format and kind != "DATE" and not kind.startswith("TIMESTAMP"):
        return f"trim({c})" if kind == "VARCHAR" else f"CAST({c} AS VARCHAR)"
    moment = exact_moment(frame, column)
    if kind != "VARCHAR" or not has_offset(column.date_format):
        return moment
    offset = rf"regexp_extract({c}, '[+-][0-9:]+\s*$')"
    return f"CASE WHEN {c} IS NOT NULL THEN struct_pack(at := {moment}, beyond := trim({offset})) END"


def exact_moment(frame: Frame, column: Column) -> str:
    """SQL for moments without a loss, in UTC."""
    c, kind = frame.at(column.name), frame.type_of(column.name)
    if kind == "VARCHAR":
        c = f"strptime(trim({c}), '{column.date_format}')"
    return c if kind == "TIMESTAMP_NS" else f"CAST({c} AS TIMESTAMP)"


def restored(value: str, held: pa.DataType, stored: str, column: Column) -> str:
    """SQL that brings a class value, held as an Arrow type, back into the type that the column had."""
    if stored == "VARCHAR" and pa.types.is_temporal(held):
        form = column.date_format or ""
        if form.endswith("%z"):  # moments of several zones have an average in none: UTC
            return f"strftime({value}, '{form.removesuffix('%z')}') || '+00:00'"
        return f"strftime({value}, '{form}')"
    return f"CAST({value} AS {stored})"


def holds_text(treatment: Keep | Replace, stored: str) -> bool:
    """Whether a column is text after its treatment."""
    if isinstance(treatment, Replace) and not treatment.as_stored:
        return bool(pa.types.is_string(treatment.values.type) or pa.types.is_large_string(treatment.values.type))
    return stored == "VARCHAR"

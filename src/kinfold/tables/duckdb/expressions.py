"""A table inside the engine, and SQL for its columns: as text, as numbers, in their stored type.

Functions whose names end in `_sql` return SQL.

Columns are named c0, c1, ... inside the engine: a name in the data never becomes part of a query, except as a quoted
one when a file is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kinfold.tables.readers.files import PartRows
from kinfold.tables.readers.linked_tables import JoinedParts
from kinfold.tables.schema import SECONDS_PER_DAY, UTC_ZONE, Column, Storage
from kinfold.tables.source_form import DEFAULT_FORM, SourceForm, has_offset, has_time
from kinfold.tables.text_values import FORMULA_PATTERN, NUMBER_CELL_PATTERN, QUOTE, SIGNS_ONLY_PATTERN


def quote_string(text: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def is_formula_sql(value: str) -> str:
    """Test whether a spreadsheet would run a text as a formula."""
    return f"NOT starts_with({value}, {quote_string(QUOTE)}) AND {_is_quotable_sql(value)}"


def quote_formula_sql(value: str) -> str:
    """Add an apostrophe before a text that looks like a formula."""
    return f"CASE WHEN {_is_quotable_sql(value)} THEN {quote_string(QUOTE)} || {value} ELSE {value} END"


def is_quoted_sql(value: str) -> str:
    """Test whether a text is a quoted formula."""
    return f"starts_with({value}, {quote_string(QUOTE)}) AND {_is_quotable_sql(value)}"


def unquote_formula_sql(value: str) -> str:
    """Remove the apostrophe before a quoted formula."""
    return f"CASE WHEN {is_quoted_sql(value)} THEN substr({value}, 2) ELSE {value} END"


def _is_quotable_sql(value: str) -> str:
    formula, number, signs = (
        f"regexp_full_match({value}, {quote_string(pattern)})"
        for pattern in (FORMULA_PATTERN, NUMBER_CELL_PATTERN, SIGNS_ONLY_PATTERN)
    )
    return f"{formula} AND NOT {number} AND NOT {signs}"


FLOAT_TYPES = ("FLOAT", "DOUBLE")


class CategoryOrder(NamedTuple):
    """The order of a column's categories in its source, and whether the source declares them as ordered."""

    categories: tuple[str, ...]
    ordered: bool


@dataclass(frozen=True)
class Frame:
    """A table inside the engine: its SQL name, the names of its columns and their SQL types, in order."""

    table: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    typed: bool  # False if every field is text as written, as in CSV
    form: SourceForm = DEFAULT_FORM  # how the source is written; a CSV release is written the same way
    labelled: frozenset[str] = frozenset()  # columns that hold generalized labels
    checksum: str | None = None  # of the bytes that were read
    blanked: frozenset[str] = frozenset()  # columns in which a word for a missing value became null
    numeric: frozenset[str] = frozenset()  # text columns that hold numbers with the marks of the source
    mixed: frozenset[str] = frozenset()  # columns of a typed source that mix numbers and texts: read as written
    orders: tuple[CategoryOrder | None, ...] = ()  # for each column, if the source has categories
    order: str = "rowid"  # SQL for the place of a row in the source order
    doubtful: tuple[int, ...] = ()  # columns whose header looks like a value
    totals: int = 0  # rows that look like totals or footers
    zones: tuple[tuple[str, str], ...] = ()  # (column, time zone) as the source names it
    labels: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()  # (column, value labels by code) of SPSS and Stata
    titles: tuple[tuple[str, str], ...] = ()  # (column, label of the column) of SPSS and Stata
    notes: tuple[str, ...] = ()  # for the holder, on how the source was read
    formulas: tuple[tuple[str, int], ...] = ()  # (column, cells that are not quoted), if `form` says that they are
    files: tuple[PartRows, ...] = ()  # if the source is a folder of parts
    parts: JoinedParts | None = None  # which part is of which file, if several files were joined
    weight: str | None = None  # the column with the count of each row, if equal rows are stored once

    @property
    def columns(self) -> list[str]:
        """The SQL names of all columns."""
        return [f"c{i}" for i in range(len(self.names))]

    def at(self, name: str) -> str:
        """Return the SQL name of a column."""
        return f"c{self.names.index(name)}"

    def select(self, names: Sequence[str], table: str) -> Frame:
        """Return the frame of a table that has some of these columns, as c0, c1, ..."""
        places = [self.names.index(name) for name in names]
        types = tuple(self.types[i] for i in places)
        orders = tuple(self.orders[i] for i in places) if self.orders else ()
        return replace(self, table=table, names=tuple(names), types=types, orders=orders)

    def time_zone(self, name: str) -> str | None:
        """Return the time zone of a column of timestamps: as the source names it, else UTC; None if it has none."""
        kind = self.sql_type(name)
        named = dict(self.zones).get(name) if kind.startswith("TIMESTAMP") else None
        return named or (UTC_ZONE if kind.endswith("TIME ZONE") else None)

    def knows_type(self, name: str) -> bool:
        """Whether the source declares the type of a column: then text stays text, even if it looks like numbers."""
        return self.typed and name not in self.mixed

    def sql_type(self, name: str) -> str:
        """Return the SQL type of a column."""
        return self.types[self.names.index(name)]

    @property
    def separator(self) -> str:
        """The field separator of a CSV file of this table: a comma if it has one column."""
        return self.form.field_separator if len(self.names) > 1 else ","

    @property
    def row_count_sql(self) -> str:
        """SQL that counts the rows."""
        return "count(*)" if self.weight is None else self.count_where_sql("TRUE")

    def count_where_sql(self, condition: str) -> str:
        """Count the rows that meet a condition."""
        if self.weight is None:
            return f"count(*) FILTER (WHERE {condition})"
        return f"CAST(coalesce(sum({self.weight}) FILTER (WHERE {condition}), 0) AS BIGINT)"


def quote_identifier(name: str) -> str:
    """Return a name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_path(path: Path) -> str:
    """Return a path as a SQL literal."""
    return quote_string(str(path))


def text_sql(frame: Frame, name: str) -> str:
    """Cast a column to the text that a file holds."""
    return cast_text_sql(frame.at(name), frame.sql_type(name))


def cast_text_sql(c: str, kind: str) -> str:
    """Cast a value of a SQL type to text; NaN is written without its sign."""
    text = f"CAST({c} AS VARCHAR)"
    return f"CASE WHEN isnan({c}) THEN 'nan' ELSE {text} END" if kind in FLOAT_TYPES else text


def number_sql(frame: Frame, column: Column) -> str:
    """Cast a column to doubles; dates and timestamps to days since 1970."""
    c, kind = frame.at(column.name), frame.sql_type(column.name)
    if kind == "VARCHAR" and column.date_format:
        c = f"strptime(trim({c}), '{column.date_format}')"
    elif kind == "VARCHAR":
        return f"CAST(trim({c}) AS DOUBLE)"
    elif kind != "DATE" and not kind.startswith("TIMESTAMP"):
        return f"CAST({c} AS DOUBLE)"
    if column.storage is Storage.TIMESTAMP or has_time(column.date_format):
        return f"epoch(CAST({c} AS TIMESTAMP)) / {SECONDS_PER_DAY}"
    return f"CAST(CAST({c} AS DATE) - DATE '1970-01-01' AS DOUBLE)"


def exact_sql(frame: Frame, column: Column) -> str:
    """Return a column without loss of digits: see `ExactColumn`."""
    c, kind = frame.at(column.name), frame.sql_type(column.name)
    if not column.date_format and kind != "DATE" and not kind.startswith("TIMESTAMP"):
        return f"trim({c})" if kind == "VARCHAR" else f"CAST({c} AS VARCHAR)"
    moment = exact_moment_sql(frame, column)
    if kind != "VARCHAR" or not has_offset(column.date_format):
        return moment
    offset = rf"regexp_extract({c}, '[+-][0-9:]+\s*$')"
    return f"CASE WHEN {c} IS NOT NULL THEN struct_pack(at := {moment}, beyond := trim({offset})) END"


def exact_moment_sql(frame: Frame, column: Column) -> str:
    """Return timestamps without loss of digits, in UTC."""
    c, kind = frame.at(column.name), frame.sql_type(column.name)
    if kind == "VARCHAR":
        c = f"strptime(trim({c}), '{column.date_format}')"
    return c if kind == "TIMESTAMP_NS" else f"CAST({c} AS TIMESTAMP)"


def stored_type_sql(value: str, arrow_type: pa.DataType, stored: str, column: Column) -> str:
    """Cast a class value, held as an Arrow type, to the stored type of its column."""
    if stored == "VARCHAR" and pa.types.is_temporal(arrow_type):
        form = column.date_format or ""
        if form.endswith("%z"):  # the average of timestamps of several zones is in UTC
            return f"strftime({value}, '{form.removesuffix('%z')}') || '+00:00'"
        return f"strftime({value}, '{form}')"
    return f"CAST({value} AS {stored})"

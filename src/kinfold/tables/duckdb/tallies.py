"""Tallies in SQL: classes by the text of their keys, values in their exact order, profiles, means and covariances.

    tuples   the distinct keys with their row counts, as a table in the order of their texts
    values   the distinct values of the column in their order, null first
    cells    rows joined to their tuple, and counted by tuple and value

Rows are grouped by their keys as stored, which is much cheaper than by their texts. Two values of one type have the
same text if and only if they are equal, except for the two zeros of floating point: their sign is an extra key. All NaN
are one value, written without a sign. A query on a short table takes as long as its counting, so few queries are asked
there.

Profiles: each column is grouped once; all further queries read its distinct values.

Exact order: a typed column is ordered by its type. Numbers written as text become decimals if 38 digits hold all of
them; otherwise Python ranks their distinct texts. Timestamps written as text are parsed in the declared format or as
ISO 8601: the database compares whole seconds, and the digits after them are compared as text.

Means and covariances take two passes, the second around the means of the first. Numbers whose squares would overflow
are scaled by a power of two, which loses no digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError
from kinfold.tables.duckdb.columns import WHOLE_TYPES
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import FLOAT_TYPES, Frame, cast_text_sql, number_sql, text_sql
from kinfold.tables.schema import (
    CANONICAL_NUMBER_PATTERN,
    MAX_DECIMAL_DIGITS,
    MAX_LISTED_VALUES,
    MAX_NUMBER_LENGTH,
    NUMBER_PATTERN,
    Column,
    OrderedReading,
    OrderStats,
    Storage,
    ValueStats,
)
from kinfold.tables.tally import Computed, Spread


def group_keys(frame: Frame, by: Sequence[str]) -> list[str]:
    """Return SQL for the grouping keys: equal if and only if the texts of the columns are equal."""
    kinds = [(frame.at(name), frame.sql_type(name)) for name in by]
    signs = [f"(signbit({c}) AND {c} = 0)" for c, kind in kinds if kind in FLOAT_TYPES]
    return [c for c, _ in kinds] + signs


def make_tuples(db: Database, frame: Frame, by: Sequence[str]) -> Frame:
    """Return the distinct keys as stored, in the order of their texts; the column `n` counts their rows."""
    values = "".join(f"{frame.at(name)} AS c{i}, " for i, name in enumerate(by))
    grouped = f"SELECT {values}{frame.row_count_sql} AS n FROM {frame.table}"
    if by:
        texts = ", ".join(cast_text_sql(f"c{i}", frame.sql_type(name)) for i, name in enumerate(by))
        grouped = f"SELECT * FROM ({grouped} GROUP BY {', '.join(group_keys(frame, by))}) ORDER BY {texts}"
    return replace(frame.select(by, db.table(grouped)), orders=(), order="rowid", weight=None)


def count_class_sizes(
    db: Database, frame: Frame, names: Sequence[str], present: Sequence[str] = ()
) -> list[tuple[int, int]]:
    """Return (rows, classes) ascending, of the rows that have a value in every column of `present`."""
    keys = ", ".join(group_keys(frame, names)) or "()"
    where = " AND ".join(f"{frame.at(name)} IS NOT NULL" for name in present) or "TRUE"
    classes = f"SELECT {frame.row_count_sql} AS n FROM {frame.table} WHERE {where} GROUP BY {keys}"
    sizes = db.arrow(f"SELECT n, count(*) AS classes FROM ({classes}) GROUP BY n ORDER BY n").to_pydict()
    return [(int(n), int(count)) for n, count in zip(sizes["n"], sizes["classes"], strict=True) if n]


def fetch_classes(db: Database, tuples: Frame) -> tuple[Computed[NDArray[Any]], NDArray[np.int64]]:
    """Return the keys of the classes as texts, fetched on first use, and the number of rows of each class."""

    def fetch(names: Sequence[str], *others: str) -> list[NDArray[Any]]:
        columns = [*(f"{text_sql(tuples, name)} AS v{i}" for i, name in enumerate(names)), *others]
        rows = db.arrow(f"SELECT {', '.join(columns)} FROM {tuples.table} ORDER BY rowid")
        return [column.to_numpy(zero_copy_only=False) for column in rows.columns]

    names = tuples.names if db.is_short(tuples.table) else ()
    *texts, sizes = fetch(names, "n")
    known = dict(zip(names, texts, strict=True))
    fetch_once = cache(lambda name: known[name] if name in known else fetch([name])[0])
    return Computed(tuples.names, fetch_once), sizes.astype(np.int64)


def count_spread(db: Database, frame: Frame, tuples: Frame, value: str) -> Spread:
    """Count the values of a column, given as SQL, in each class."""
    if not tuples.names:
        return _count_all(db, frame, value)
    row_columns = f"{value} AS v" + (f", {frame.weight}" if frame.weight else "")
    joined = join_tuples_sql(frame, tuples, row_columns, "CAST(rowid AS BIGINT) AS g")
    cells = f"SELECT u.g, s.v, {frame.row_count_sql} AS n FROM {joined} GROUP BY ALL"
    if db.is_short(frame.table):
        return _count_few(db, cells)
    distinct = f"SELECT DISTINCT {value} AS v FROM {frame.table}"
    values = db.table(f"SELECT v, row_number() OVER (ORDER BY v NULLS FIRST) - 1 AS code FROM ({distinct})")
    joined = f"({cells}) c JOIN {values} w ON c.v IS NOT DISTINCT FROM w.v"
    counted = db.arrow(f"SELECT g, code, n FROM {joined} ORDER BY g, code")
    distinct_values = db.arrow(f"SELECT v FROM {values} ORDER BY code").column(0)
    db.drop(values)
    arrays = []
    while counted.num_columns:  # one by one, so that at most one column is in memory twice
        arrays.append(counted.column(0).to_numpy())
        counted = counted.remove_column(0)
    group, code, count = arrays
    return Spread(group, code, count, _distinct_array(distinct_values))


def _count_few(db: Database, cells: str) -> Spread:
    """Count the values of few cells in one query that also ranks them."""
    ranked = f"SELECT g, dense_rank() OVER (ORDER BY v NULLS FIRST) - 1 AS code, n, v FROM ({cells})"
    counted = db.arrow(f"{ranked} ORDER BY g, code")
    group, code, count = (counted.column(i).to_numpy() for i in range(3))
    first = np.unique(code, return_index=True)[1]
    return Spread(group, code, count, _distinct_array(counted.column("v").take(first)))


def _count_all(db: Database, frame: Frame, value: str) -> Spread:
    counted = db.arrow(
        f"SELECT {value} AS v, {frame.row_count_sql} AS n FROM {frame.table} GROUP BY v ORDER BY v NULLS FIRST"
    )
    codes = np.arange(counted.num_rows)
    return Spread(np.zeros_like(codes), codes, counted.column(1).to_numpy(), _distinct_array(counted.column(0)))


def join_tuples_sql(frame: Frame, tuples: Frame, row_columns: str, tuple_columns: str) -> str:
    """Join the rows `s` of a table to their tuples `u`, with the given columns of each."""
    row_keys, tuple_keys = (
        ", ".join(f"{key} AS k{i}" for i, key in enumerate(group_keys(each, tuples.names))) for each in (frame, tuples)
    )
    keys = range(len(group_keys(tuples, tuples.names)))
    same = " AND ".join(f"s.k{i} IS NOT DISTINCT FROM u.k{i}" for i in keys)
    rows = f"SELECT {row_columns}, {row_keys} FROM {frame.table}"
    return f"({rows}) s JOIN (SELECT {tuple_columns}, {tuple_keys} FROM {tuples.table}) u ON {same}"


def compute_table_moments(
    db: Database, frame: Frame, values: Sequence[str]
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Return how many rows have a finite number in every column, given as SQL, and their means and covariances.

    DuckDB's `favg` is a Kahan sum.
    """
    select = ", ".join(f"{value} AS x{i}" for i, value in enumerate(values))
    names = [f"x{i}" for i in range(len(values))]
    rows = f"(SELECT * FROM (SELECT {select} FROM {frame.table}) WHERE {' AND '.join(f'isfinite({x})' for x in names)})"
    query = AggregateQuery(lambda aggregates: db.row(f"SELECT {', '.join(aggregates)} FROM {rows}"), "favg")
    return compute_moments(query, names)


def _distinct_array(values: pa.ChunkedArray) -> Any:
    """Return ordered values as an array; timestamps in parts, which may lie after the year 9999, as their ranks."""
    if not pa.types.is_struct(values.type):
        return values.to_numpy(zero_copy_only=False)
    return np.where(values.is_null().to_numpy(), np.nan, np.arange(len(values)))


NUMERIC_STORAGES = (Storage.INTEGER, Storage.NUMBER)


def profile_columns(db: Database, frame: Frame, columns: Sequence[Column]) -> dict[str, ValueStats]:
    """Return statistics on the values of columns, by name: group each column, then query all groups at once."""
    counted = db.table(" UNION ALL ".join(_group_sql(frame, i, column) for i, column in enumerate(columns)))
    try:
        stats = _profile_groups(db, counted)
    finally:
        db.drop(counted)
    return {column.name: stats.get(i, ValueStats(0, 0)) for i, column in enumerate(columns)}


def _group_sql(frame: Frame, i: int, column: Column) -> str:
    number = number_sql(frame, column) if column.storage in NUMERIC_STORAGES else "CAST(NULL AS DOUBLE)"
    value = text_sql(frame, column.name)
    select = f"{i} AS c, {value} AS v, {frame.row_count_sql} AS n, any_value({number}) AS x"
    return f"SELECT {select} FROM {frame.table} GROUP BY {value}"


def _profile_groups(db: Database, counted: str) -> dict[int, ValueStats]:
    present, finite = "FILTER (v IS NOT NULL)", "FILTER (isfinite(x))"
    counts = {
        "filled": f"sum(n) {present}",
        "distinct": "count(v)",
        "unique_rows": "count(*) FILTER (WHERE n = 1)",
        "min_count": f"min(n) {present}",
        "max_count": f"max(n) {present}",
        "whole_numbers": "sum(n) FILTER (isfinite(x) AND x = trunc(x))",
    }
    numbers = {
        "low": f"min(x) {finite}",
        "high": f"max(x) {finite}",
        "mean": f"sum(n * x) {finite} / sum(n) {finite}",
        "mean_length": f"sum(n * length(v)) / sum(n) {present}",
        "mean_words": f"sum(n * len(string_split_regex(trim(v), '\\s+'))) / sum(n) {present}",
    }
    query = f"SELECT c, {', '.join((*counts.values(), *numbers.values()))} FROM {counted} GROUP BY c"
    top = _find_most_frequent(db, counted)
    stats = {}
    for c, *row in db.execute(query):
        answers = iter(row)
        facts: dict[str, Any] = {name: int(next(answers) or 0) for name in counts}
        facts |= {name: float(next(answers) or 0) for name in numbers}
        values, value_counts = zip(*top[c], strict=True) if c in top else ((), ())
        stats[c] = ValueStats(**facts, values=values, counts=value_counts)
    return stats


def _find_most_frequent(db: Database, counted: str) -> dict[int, list[tuple[str, int]]]:
    place = "row_number() OVER (PARTITION BY c ORDER BY n DESC, v)"
    ranked = f"SELECT c, v, n, {place} AS place FROM {counted} WHERE v IS NOT NULL QUALIFY place <= {MAX_LISTED_VALUES}"
    values: dict[int, list[tuple[str, int]]] = {}
    for c, v, n in db.execute(f"SELECT c, v, n FROM ({ranked}) ORDER BY c, place"):
        values.setdefault(c, []).append((v, n))
    return values


def compute_order_stats(db: Database, frame: Frame, column: Column) -> OrderStats:
    """Count, from the first row to the last, where the value of a column changes and where it does not fall."""
    is_numeric = column.storage in NUMERIC_STORAGES
    value = number_sql(frame, column) if is_numeric else text_sql(frame, column.name)
    rows = f"SELECT {value} AS v FROM {frame.table} WHERE {frame.at(column.name)} IS NOT NULL"
    before = f"SELECT v, lag(v) OVER () AS p FROM ({rows})"  # an empty window: rows stream in their order
    runs, rises = "count(*) FILTER (WHERE v IS DISTINCT FROM p)", "count(*) FILTER (WHERE v >= p)"
    return OrderStats(*db.row(f"SELECT {runs}, {rises} FROM ({before})"))


ALWAYS = "TRUE"  # every value is readable
ZERO_PADDED_NUMBER_PATTERN = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?"
ISO_PATTERN = (
    r"[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}( \(BC\))?([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?"
    r"( ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?( \(BC\))?"
)


@dataclass(frozen=True)
class ExactOrder:
    """SQL for a value in its order, and for whether a value is readable so."""

    value: str
    fits: str


def find_exact_order(c: str, sql_type: str, reading: OrderedReading) -> ExactOrder | None:
    """Return how to order a column; None for numbers written as text, for which see `digits_sql`."""
    if reading.sort == "text":
        return ExactOrder(_category_sql(c, sql_type), ALWAYS)
    if reading.sort == "moment":
        return _order_moments(c, sql_type, reading.date_format)
    if sql_type in WHOLE_TYPES or sql_type.startswith("DECIMAL"):
        return ExactOrder(c, ALWAYS)
    if sql_type in ("FLOAT", "DOUBLE"):
        return ExactOrder(c, f"isfinite({c})")
    return None if sql_type == "VARCHAR" else ExactOrder(c, "FALSE")


def _category_sql(c: str, sql_type: str) -> str:
    """Cast a typed column to text, the two zeros of floating point to one.

    For numbers written as text see `other_spellings_sql`.
    """
    text = cast_text_sql(c, sql_type)
    return f"CASE WHEN {c} = 0 THEN '0.0' ELSE {text} END" if sql_type in FLOAT_TYPES else text


def other_spellings_sql(c: str, table: str) -> str:
    """Select the distinct texts of a column that are numbers, but not written as `normalize_category` writes them."""
    canonical = f"regexp_full_match(v, '{CANONICAL_NUMBER_PATTERN}') AND length(v) <= {MAX_NUMBER_LENGTH}"
    return (
        f"SELECT v FROM (SELECT DISTINCT {c} AS v FROM {table}) "
        f"WHERE regexp_full_match(trim(v), '{NUMBER_PATTERN}') AND NOT ({canonical})"
    )


def _order_moments(c: str, sql_type: str, date_format: str | None) -> ExactOrder:
    if sql_type == "DATE" or sql_type.startswith("TIMESTAMP"):
        return ExactOrder(c, ALWAYS)
    if sql_type != "VARCHAR":
        return ExactOrder(c, "FALSE")
    text = f"trim({c})"
    if date_format:
        read = "try_strptime({}, '{}')".format(text, date_format.replace("'", "''"))
        return ExactOrder(read, f"{read} IS NOT NULL")
    fraction = rf"regexp_extract({text}, '\.([0-9]+)', 1)"
    second = rf"try_cast(regexp_replace({text}, '\.[0-9]+', '') AS TIMESTAMPTZ)"
    value = f"CASE WHEN {c} IS NOT NULL THEN struct_pack(at := {second}, beyond := rtrim({fraction}, '0')) END"
    return ExactOrder(value, f"regexp_full_match({text}, '{ISO_PATTERN}') AND {second} IS NOT NULL")


def digits_sql(c: str) -> str:
    """Count the values of a text column, its numbers and exponents, and the most digits before and after the point."""
    text = f"trim({c})"
    questions = (
        f"count({c})",
        f"count(*) FILTER (WHERE regexp_full_match({text}, '{ZERO_PADDED_NUMBER_PATTERN}'))",
        f"count(*) FILTER (WHERE {text} ILIKE '%e%')",
        f"max(length(split_part(ltrim({text}, '+-'), '.', 1)))",
        f"max(length(split_part({text}, '.', 2)))",
    )
    return ", ".join(f"coalesce({question}, 0)" for question in questions)  # max is null if all values are


def decimal_sql(c: str, exponents: int, before: int, after: int) -> str | None:
    """Cast numbers written as text to decimals; None if they have too many digits."""
    if exponents or before + after > MAX_DECIMAL_DIGITS:
        return None
    return f"CAST(trim({c}) AS DECIMAL({MAX_DECIMAL_DIGITS}, {after}))"


def rank_numbers(texts: Sequence[str]) -> list[int]:
    """Rank texts by their numbers; equal numbers have the same rank.

    >>> rank_numbers(["1e3", "2", "1000.0", "-1e-500"])
    [2, 1, 2, 0]
    """
    numbers = [Decimal(text) for text in texts]
    ranks = {number: rank for rank, number in enumerate(sorted(set(numbers)))}
    return [ranks[number] for number in numbers]


def check_readable(name: str, reading: OrderedReading, filled: int, fitting: int) -> None:
    """Refuse a column with values that are not numbers or dates, as declared."""
    if fitting < filled:
        what = {"number": "numbers", "moment": "dates"}[reading.sort]
        date_format = f" in the format {reading.date_format}" if reading.date_format else ""
        what = f"column '{name}': {filled - fitting:,} of its {filled:,} values are not {what}{date_format}"
        raise DataError(what, fix="correct them, or declare the column nominal")


Floats: TypeAlias = NDArray[np.float64]

MAX_EXPONENT = 400  # powers of two: the squares of smaller numbers, and their sums, do not overflow a double


@dataclass(frozen=True)
class AggregateQuery:
    """How to compute aggregates in an engine, over the rows that have a number in every column."""

    row: Callable[[Sequence[str]], Sequence[Any]]
    average: str  # the SQL function for the mean
    suffix: str = ""  # of a double literal

    def number(self, value: float) -> str:
        """Return a number as a SQL literal."""
        return f"({value!r}{self.suffix})"


def compute_moments(query: AggregateQuery, names: Sequence[str]) -> tuple[int, Floats, Floats]:
    """Return the number of rows, and the means and covariances of columns.

    The mean of equal numbers is exactly that number. Without rows means are NaN and covariances 0.
    """
    answers = query.row(["count(*)", *(f"{what}({x})" for x in names for what in (query.average, "min", "max"))])
    count, facts = int(answers[0]), np.array([answers[1:]], np.float64).reshape(-1, 3)
    if not count:
        return count, facts[:, 0], np.zeros((len(names), len(names)))
    exponents = np.frexp(np.abs(facts[:, 1:]).max(axis=1))[1]
    scale = np.ldexp(1.0, -np.maximum(exponents - MAX_EXPONENT, 0))  # 1 except for columns of large numbers
    scaled = [x if s == 1 else f"({x} * {query.number(s)})" for x, s in zip(names, scale.tolist(), strict=True)]
    if (scale < 1).any():
        facts[:, 0] = query.row([f"{query.average}({x})" for x in scaled])
    means = np.where(facts[:, 1] == facts[:, 2], facts[:, 1] * scale, facts[:, 0])
    covariances = _compute_covariances(query, scaled, means)
    with np.errstate(over="ignore"):  # the square of a number above 1e154 overflows
        return count, means / scale, covariances / scale / scale[:, None]


def _compute_covariances(query: AggregateQuery, names: Sequence[str], means: Floats) -> Floats:
    gaps = [f"({x} - {query.number(mean)})" for x, mean in zip(names, means.tolist(), strict=True)]
    pairs = [(i, j) for i in range(len(names)) for j in range(i, len(names))]
    covariances = np.zeros((len(names), len(names)))
    answers = query.row([f"{query.average}({gaps[i]} * {gaps[j]})" for i, j in pairs])
    for (i, j), value in zip(pairs, answers, strict=True):
        covariances[i, j] = covariances[j, i] = value
    return covariances

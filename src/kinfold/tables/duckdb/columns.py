"""What the columns of a table are, and how their values repeat: queries for the schema and the profile.

A wide table is cut into strips of columns, because the cost of a query grows with the width of its table. For a profile
each column is grouped once; all further queries read its distinct values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kinfold.tables.duckdb import expressions
from kinfold.tables.duckdb.connection import Database, split_questions
from kinfold.tables.duckdb.expressions import Frame
from kinfold.tables.readers import type_inference
from kinfold.tables.readers.type_inference import TextType
from kinfold.tables.schema import MAX_LISTED_VALUES, Column, OrderStats, Schema, Storage, ValueStats
from kinfold.tables.source_form import build_number_pattern

MIN_WIDE_COLUMNS, COLUMNS_PER_STRIP = 400, 100  # wider tables are cut into strips of so many columns


class Strips:
    """Copies of some columns of wide tables, each made once."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._strips: dict[str, list[Frame]] = {}

    def of(self, frame: Frame) -> list[Frame]:
        """Return the strips of a table; a narrow table is its only strip."""
        if len(frame.names) <= MIN_WIDE_COLUMNS:
            return [frame]
        if frame.table not in self._strips:
            starts = range(0, len(frame.names), COLUMNS_PER_STRIP)
            self._strips[frame.table] = [self._copy(frame, slice(start, start + COLUMNS_PER_STRIP)) for start in starts]
        return self._strips[frame.table]

    def _copy(self, frame: Frame, part: slice) -> Frame:
        columns = frame.columns[part]
        select = ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
        table = self._db.table(f"SELECT {select} FROM {frame.table}")
        orders = frame.orders[part]
        return replace(frame, table=table, names=frame.names[part], types=frame.types[part], orders=orders)

    def holding(self, frame: Frame, names: Sequence[str]) -> Frame:
        """Return the strip that has all of these columns; the table itself if there is none."""
        if len(frame.names) <= MIN_WIDE_COLUMNS or not names:
            return frame
        strips = {frame.names.index(name) // COLUMNS_PER_STRIP for name in names}
        return self.of(frame)[strips.pop()] if len(strips) == 1 else frame


ROWS_CHECKED_FIRST = 2_000  # computed numbers have many decimals from the first row on: no need to count all


def describe_table(db: Database, strips: Strips, frame: Frame) -> Schema:
    """Return the schema of a table, from queries on all of its rows."""
    rows = int(db.row(f"SELECT {frame.row_count_sql} FROM {frame.table}")[0])
    columns = [column for strip in strips.of(frame) for column in _describe_columns(db, strip, rows)]
    return Schema.from_columns(columns, rows, frame.doubtful, frame.notes)


def _describe_columns(db: Database, frame: Frame, rows: int) -> list[Column]:
    counts = _ask_columns(db, frame)
    for answer in counts:
        if not answer.get("fractions", 1):
            answer["decimals"] = 0  # 43.0 is a whole number
    text_types = type_inference.detect_text_types(db, frame, counts)
    return [
        type_inference.infer_column(frame, name, rows, answer, text_types.get(i, TextType()))
        for i, (name, answer) in enumerate(zip(frame.names, counts, strict=True))
    ]


def _ask_columns(db: Database, frame: Frame) -> list[dict[str, int]]:
    questions = [
        type_inference.make_type_questions(kind, f"c{i}", _number_pattern(frame, name, kind), frame.count_where_sql)
        for i, (name, kind) in enumerate(zip(frame.names, frame.types, strict=True))
    ]
    typed = [i for i, kind in enumerate(frame.types) if kind != "VARCHAR"]
    answers = _ask_typed_columns(db, frame, {i: questions[i] for i in typed})
    texts = [i for i, kind in enumerate(frame.types) if kind == "VARCHAR"]
    unmarked = [i for i in texts if _number_pattern(frame, frame.names[i], "VARCHAR") is None]
    if len(unmarked) > 1 and frame.weight is None and db.is_short(frame.table):
        answers |= _ask_short_texts(db, frame, unmarked)
    answers |= {i: _ask_texts(db, frame, i, questions[i]) for i in texts if i not in answers}
    return [answers[i] for i in range(len(questions))]


def _ask_texts(db: Database, frame: Frame, i: int, questions: dict[str, str]) -> dict[str, int]:
    """Ask about the distinct texts of a column, because matching patterns takes most of the time."""
    distinct = f"(SELECT c{i}, {frame.row_count_sql} AS n FROM {frame.table} WHERE c{i} IS NOT NULL GROUP BY c{i})"
    answers = db.row(f"SELECT {', '.join(questions.values())}, count(*) FROM {distinct}")
    return {key: int(answer or 0) for key, answer in zip((*questions, "distinct"), answers, strict=True)}


def _ask_short_texts(db: Database, frame: Frame, indexes: Sequence[int]) -> dict[int, dict[str, int]]:
    """Ask about many columns of a short table in one query: planning many queries would take longer."""
    questions = type_inference.make_type_questions("VARCHAR", "v")
    columns = ", ".join(f"c{i}" for i in indexes)
    long = f"(UNPIVOT (SELECT {columns} FROM {frame.table}) ON {columns} INTO NAME c VALUE v)"
    distinct = f"(SELECT c, v, count(*) AS n FROM {long} GROUP BY c, v)"
    rows = db.connection.execute(f"SELECT c, {', '.join(questions.values())}, count(*) FROM {distinct} GROUP BY c")
    keys = (*questions, "distinct")
    answers = {c: [int(answer or 0) for answer in each] for c, *each in rows.fetchall()}
    zeros = [0] * len(keys)  # for a column of nulls
    return {i: dict(zip(keys, answers.get(f"c{i}", zeros), strict=True)) for i in indexes}


def _ask_typed_columns(db: Database, frame: Frame, questions: dict[int, dict[str, str]]) -> dict[int, dict[str, int]]:
    distinct = dict(zip(questions, _count_distinct(db, frame, list(questions)), strict=True))
    for i in _find_long_decimals(db, frame, [i for i in questions if distinct[i]]):
        questions[i]["decimals"] = str(type_inference.MAX_DECIMALS + 1)
    # Skip columns of nulls: DuckDB fails on some aggregates of no values.
    select = [sql for i, each in questions.items() if distinct[i] for sql in each.values()]
    answers = db.answers(select, frame.table)
    return {
        i: {key: (next(answers) or 0) if distinct[i] else 0 for key in each} | {"distinct": distinct[i]}
        for i, each in questions.items()
    }


def _find_long_decimals(db: Database, frame: Frame, indexes: Sequence[int]) -> list[int]:
    """Return the floating columns whose first values have too many decimals to count them all."""
    floats = [i for i in indexes if frame.types[i] in ("FLOAT", "DOUBLE")]
    first = f"(SELECT * FROM {frame.table} LIMIT {ROWS_CHECKED_FIRST})"
    answers = db.answers([type_inference.has_long_decimals_sql(f"c{i}", frame.types[i]) for i in floats], first)
    return [i for i, long in zip(floats, answers, strict=True) if long]


def _number_pattern(frame: Frame, name: str, kind: str) -> str | None:
    """Return the pattern of the source's numbers for a text column that also holds other texts."""
    if kind != "VARCHAR" or not frame.form.has_marks or name in frame.numeric:
        return None
    return build_number_pattern(frame.form.decimal, frame.form.thousands)


def _count_distinct(db: Database, frame: Frame, indexes: Sequence[int]) -> list[int]:
    # Much cheaper than as many count(DISTINCT ...) in one query.
    counts = [
        f"SELECT {i} AS i, count(*) AS n FROM (SELECT DISTINCT c{i} FROM {frame.table} WHERE c{i} IS NOT NULL)"
        for i in indexes
    ]
    rows = [db.connection.execute(" UNION ALL ".join(batch)).fetchall() for batch in split_questions(counts)]
    return [n for _, n in sorted(pair for pairs in rows for pair in pairs)]


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
    number = expressions.number_sql(frame, column) if column.storage in NUMERIC_STORAGES else "CAST(NULL AS DOUBLE)"
    value = expressions.text_sql(frame, column.name)
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
    for c, *row in db.connection.execute(query).fetchall():
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
    for c, v, n in db.connection.execute(f"SELECT c, v, n FROM ({ranked}) ORDER BY c, place").fetchall():
        values.setdefault(c, []).append((v, n))
    return values


def compute_order_stats(db: Database, frame: Frame, column: Column) -> OrderStats:
    """Count, from the first row to the last, where the value of a column changes and where it does not fall."""
    is_numeric = column.storage in NUMERIC_STORAGES
    value = expressions.number_sql(frame, column) if is_numeric else expressions.text_sql(frame, column.name)
    rows = f"SELECT {value} AS v FROM {frame.table} WHERE {frame.at(column.name)} IS NOT NULL"
    before = f"SELECT v, lag(v) OVER () AS p FROM ({rows})"  # an empty window: rows stream in their order
    runs, rises = "count(*) FILTER (WHERE v IS DISTINCT FROM p)", "count(*) FILTER (WHERE v >= p)"
    return OrderStats(*db.row(f"SELECT {runs}, {rises} FROM ({before})"))

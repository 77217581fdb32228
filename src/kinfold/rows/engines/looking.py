"""Looking: how the values of columns repeat, are written and follow one another, asked of the database.

Each column is grouped once; whatever is asked further is asked of its distinct values.
"""

from __future__ import annotations

from collections.abc import Sequence

from kinfold.rows.engines import expressions
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.appearance import MOST_VALUES, Appearance, Succession
from kinfold.rows.schema import Column, Storage

NUMBERS = (Storage.INTEGER, Storage.NUMBER)


def look_at(db: Database, frame: Frame, column: Column) -> Appearance:
    """Group the rows by a column and look at the groups."""
    number = expressions.number(frame, column) if column.storage in NUMBERS else "CAST(NULL AS DOUBLE)"
    counted = f"{expressions.text(frame, column.name)} AS v, count(*) AS n, any_value({number}) AS x"
    grouped = db.table(f"SELECT {counted} FROM {frame.table} GROUP BY 1")
    try:
        return _looked(db, grouped)
    finally:
        db.drop(grouped)


def _looked(db: Database, grouped: str) -> Appearance:
    asked = (
        "sum(n) FILTER (v IS NOT NULL)",
        "count(v)",
        "count_if(n = 1)",
        "min(n) FILTER (v IS NOT NULL)",
        "max(n) FILTER (v IS NOT NULL)",
        "sum(n) FILTER (isfinite(x) AND x = trunc(x))",
        "min(x) FILTER (isfinite(x))",
        "max(x) FILTER (isfinite(x))",
        "sum(n * x) FILTER (isfinite(x)) / sum(n) FILTER (isfinite(x))",
        "sum(n * length(v)) / sum(n) FILTER (v IS NOT NULL)",
        "sum(n * len(string_split_regex(trim(v), '[ \\t\\n]+'))) / sum(n) FILTER (v IS NOT NULL)",
    )
    found = [answer or 0 for answer in db.row(f"SELECT {', '.join(asked)} FROM {grouped}")]
    counted = db.arrow(
        f"SELECT v, n FROM {grouped} WHERE v IS NOT NULL ORDER BY n DESC, v LIMIT {MOST_VALUES}"
    ).to_pydict()
    whole = (int(answer) for answer in found[:6])
    parts = (float(answer) for answer in found[6:])
    return Appearance(*whole, *parts, tuple(counted["v"]), tuple(counted["n"]))


def succession_of(db: Database, frame: Frame, column: Column) -> Succession:
    """Read a column from the first row to the last, and count where its value changes and where it does not fall."""
    value = expressions.number(frame, column) if column.storage in NUMBERS else expressions.text(frame, column.name)
    rows = f"SELECT {value} AS v FROM {frame.table} WHERE {frame.at(column.name)} IS NOT NULL"
    before = f"SELECT v, lag(v) OVER () AS p FROM ({rows})"  # over nothing: rows stream by in their order
    runs, rises = db.row(f"SELECT count_if(v IS DISTINCT FROM p), count_if(v >= p) FROM ({before})")
    return Succession(int(runs or 0), int(rises or 0))


def alone_in(db: Database, frame: Frame, names: Sequence[str]) -> int:
    """Count the rows that no other row is like in all of these columns together; null is like null."""
    keys = ", ".join(frame.at(name) for name in names)
    return int(db.row(f"SELECT count(*) FROM (SELECT 1 FROM {frame.table} GROUP BY {keys} HAVING count(*) = 1)")[0])


def pairs_in(db: Database, frame: Frame, one: str, other: str) -> tuple[int, int]:
    """Count the pairs of values of two columns that occur, and the values of the first that occur in them."""
    a, b = frame.at(one), frame.at(other)
    pairs = f"SELECT DISTINCT {a} AS a, {b} AS b FROM {frame.table} WHERE {a} IS NOT NULL AND {b} IS NOT NULL"
    found = db.row(f"SELECT count(*), count(DISTINCT a) FROM ({pairs})")
    return int(found[0]), int(found[1])

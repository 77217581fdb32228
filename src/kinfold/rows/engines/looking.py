"""Looking: how the values of columns repeat, are written and follow one another, asked of the database.

Each column is grouped once; whatever is asked further is asked of its distinct values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kinfold.rows.appearance import MOST_VALUES, Appearance, Succession
from kinfold.rows.engines import expressions
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.tallying import keys_of
from kinfold.rows.schema import Column, Storage

NUMBERS = (Storage.INTEGER, Storage.NUMBER)
MOST_LETTERS = 200  # of a text on a page of rows


def look_at(db: Database, frame: Frame, columns: Sequence[Column]) -> dict[str, Appearance]:
    """Group the rows by each of some columns, and look at the groups of all of them together."""
    counted = db.table(" UNION ALL ".join(_grouped(frame, i, column) for i, column in enumerate(columns)))
    try:
        looks = _looked(db, counted)
    finally:
        db.drop(counted)
    return {column.name: looks.get(i, Appearance(0, 0)) for i, column in enumerate(columns)}


def _grouped(frame: Frame, i: int, column: Column) -> str:
    number = expressions.number(frame, column) if column.storage in NUMBERS else "CAST(NULL AS DOUBLE)"
    value = expressions.text(frame, column.name)
    asked = f"{i} AS c, {value} AS v, {frame.many} AS n, any_value({number}) AS x"
    return f"SELECT {asked} FROM {frame.table} GROUP BY {value}"


def _looked(db: Database, counted: str) -> dict[int, Appearance]:
    there, finite = "FILTER (v IS NOT NULL)", "FILTER (isfinite(x))"
    counts = {
        "filled": f"sum(n) {there}",
        "distinct": "count(v)",
        "alone": "count(*) FILTER (WHERE n = 1)",
        "least": f"min(n) {there}",
        "most": f"max(n) {there}",
        "whole": "sum(n) FILTER (isfinite(x) AND x = trunc(x))",
    }
    numbers = {
        "low": f"min(x) {finite}",
        "high": f"max(x) {finite}",
        "mean": f"sum(n * x) {finite} / sum(n) {finite}",
        "letters": f"sum(n * length(v)) / sum(n) {there}",
        "words": f"sum(n * len(string_split_regex(trim(v), '\\s+'))) / sum(n) {there}",
    }
    asked = f"SELECT c, {', '.join((*counts.values(), *numbers.values()))} FROM {counted} GROUP BY c"
    found = {c: iter(answers) for c, *answers in db.connection.execute(asked).fetchall()}
    top = _most_frequent(db, counted)
    looks = {}
    for c, answers in found.items():
        facts: dict[str, Any] = {name: int(next(answers) or 0) for name in counts}
        facts |= {name: float(next(answers) or 0) for name in numbers}
        values, times = zip(*top[c], strict=True) if c in top else ((), ())
        looks[c] = Appearance(**facts, values=values, counts=times)
    return looks


def _most_frequent(db: Database, counted: str) -> dict[int, list[tuple[str, int]]]:
    place = "row_number() OVER (PARTITION BY c ORDER BY n DESC, v)"
    ranked = f"SELECT c, v, n, {place} AS place FROM {counted} WHERE v IS NOT NULL QUALIFY place <= {MOST_VALUES}"
    found: dict[int, list[tuple[str, int]]] = {}
    for c, v, n in db.connection.execute(f"SELECT c, v, n FROM ({ranked}) ORDER BY c, place").fetchall():
        found.setdefault(c, []).append((v, n))
    return found


def succession_of(db: Database, frame: Frame, column: Column) -> Succession:
    """Read a column from the first row to the last, and count where its value changes and where it does not fall."""
    value = expressions.number(frame, column) if column.storage in NUMBERS else expressions.text(frame, column.name)
    rows = f"SELECT {value} AS v FROM {frame.table} WHERE {frame.at(column.name)} IS NOT NULL"
    before = f"SELECT v, lag(v) OVER () AS p FROM ({rows})"  # over nothing: rows stream by in their order
    runs, rises = "count(*) FILTER (WHERE v IS DISTINCT FROM p)", "count(*) FILTER (WHERE v >= p)"
    return Succession(*db.row(f"SELECT {runs}, {rises} FROM ({before})"))


def alone_in(db: Database, frame: Frame, names: Sequence[str]) -> int:
    """Count the rows that no other row is like in all of these columns together; null is like null."""
    keys = ", ".join(keys_of(frame, names))
    single = f"SELECT 1 FROM {frame.table} GROUP BY {keys} HAVING {frame.many} = 1"
    return int(db.row(f"SELECT count(*) FROM ({single})")[0])


def pairs_in(db: Database, frame: Frame, one: str, other: str) -> tuple[int, int]:
    """Count the pairs of values of two columns that occur, and the values of the first that occur in them."""
    a, b = frame.at(one), frame.at(other)
    pairs = f"SELECT DISTINCT {a} AS a, {b} AS b FROM {frame.table} WHERE {a} IS NOT NULL AND {b} IS NOT NULL"
    found = db.row(f"SELECT count(*), count(DISTINCT a) FROM ({pairs})")
    return int(found[0]), int(found[1])


def unmet_in(db: Database, original: Frame, released: Frame, pairs: Sequence[tuple[str, str]]) -> list[int]:
    """Count for each pair of columns the released rows whose two values no row of the original has together."""
    number: dict[str, dict[str | None, int]] = {name: {} for pair in pairs for name in pair}
    before, after = ({name: _codes(db, side, name, number[name]) for name in number} for side in (original, released))
    weights = f"SELECT {released.weight or 1} AS n FROM {released.table} ORDER BY {released.order}"
    weight = db.arrow(weights).column(0).to_numpy()
    found = []
    for one, other in pairs:
        met = np.zeros((len(number[one]), len(number[other])), np.bool_)
        met[before[one], before[other]] = True
        found.append(int(weight[~met[after[one], after[other]]].sum()))
    return found


def _codes(db: Database, frame: Frame, name: str, number: dict[str | None, int]) -> Any:
    """Return the texts of a column as numbers, those that have one already by that one."""
    query = f"SELECT {expressions.text(frame, name)} AS v FROM {frame.table} ORDER BY {frame.order}"
    encoded = db.arrow(query).column(0).combine_chunks().dictionary_encode()
    codes = [number.setdefault(text, len(number)) for text in (*encoded.dictionary.to_pylist(), None)]
    return np.array(codes, np.int64)[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]


def sizes_in(db: Database, frame: Frame, names: Sequence[str]) -> list[tuple[int, int]]:
    """Count the classes of these columns by how many rows they have: (rows, classes), ascending; null is like null."""
    keys = ", ".join(keys_of(frame, names)) or "()"
    classes = f"SELECT {frame.many} AS n FROM {frame.table} GROUP BY {keys}"
    found = db.arrow(f"SELECT n, count(*) AS many FROM ({classes}) GROUP BY n ORDER BY n").to_pydict()
    return [(int(n), int(many)) for n, many in zip(found["n"], found["many"], strict=True) if n]


def page_of(db: Database, frame: Frame, start: int, many: int) -> list[list[str | None]]:
    """Return some rows as text, from one on in the order in which they came; long texts are cut."""
    cells = ", ".join(
        f"left({expressions.text(frame, name)}, {MOST_LETTERS}) AS c{i}" for i, name in enumerate(frame.names)
    )
    rows = f"SELECT {cells} FROM {frame.table} WHERE rowid BETWEEN {int(start)} AND {int(start) + int(many) - 1}"
    columns = db.arrow(f"{rows} ORDER BY rowid").to_pydict()
    return [list(row) for row in zip(*columns.values(), strict=True)]

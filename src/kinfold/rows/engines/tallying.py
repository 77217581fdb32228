"""Tallying in SQL: classes by the text of their keys, and within them the values of a column.

Rows are grouped by their keys as they are stored, which is far cheaper than by their texts, and only the classes are
written out. Two values of one type have the same text if and only if they are equal, but for the two zeros of floating
point, which are told apart by their sign. What is not a number is one value, and written without a sign.

    tuples   the distinct keys and how many rows hold each, as a table in the order of their texts
    values   the distinct values of the column in their order, null first
    cells    rows led to their tuple by a join, and counted by tuple and value

Of a short table as much as possible is asked in one query: there a query takes as long as what it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import FLOATING, Frame, as_text, text
from kinfold.rows.engines.two_passes import Aggregates, two_passes
from kinfold.rows.tally import Spread


class Texts(Mapping[str, NDArray[Any]]):
    """The key columns of classes by name, as arrays of texts that are fetched when they are asked for."""

    def __init__(
        self,
        names: Sequence[str],
        fetch: Callable[[str], NDArray[Any]],
        known: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self._names, self._fetch = tuple(names), fetch
        self._made = dict(known or {})

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._fetch(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def keys_of(frame: Frame, by: Sequence[str]) -> list[str]:
    """SQL for what rows are grouped by: equal if and only if the texts of the key columns are."""
    kinds = [(frame.at(name), frame.type_of(name)) for name in by]
    signs = [f"(signbit({c}) AND {c} = 0)" for c, kind in kinds if kind in FLOATING]
    return [c for c, _ in kinds] + signs


def tuples_of(db: Database, frame: Frame, by: Sequence[str]) -> Frame:
    """Return the distinct keys as they are stored, in the order of their texts; `n` is how many rows hold each."""
    values = "".join(f"{frame.at(name)} AS c{i}, " for i, name in enumerate(by))
    grouped = f"SELECT {values}{frame.many} AS n FROM {frame.table}"
    if by:
        texts = ", ".join(as_text(f"c{i}", frame.type_of(name)) for i, name in enumerate(by))
        grouped = f"SELECT * FROM ({grouped} GROUP BY {', '.join(keys_of(frame, by))}) ORDER BY {texts}"
    table = db.table(grouped)
    plain: dict[str, Any] = {"orders": (), "order": "rowid", "weight": None}
    return replace(frame, table=table, names=tuple(by), types=tuple(map(frame.type_of, by)), **plain)


def classes_of(db: Database, tuples: Frame) -> tuple[Texts, NDArray[np.int64]]:
    """Return the keys of the classes as texts, and how many rows each has."""

    def asked(names: Sequence[str], *also: str) -> list[NDArray[Any]]:
        columns = [*(f"{text(tuples, name)} AS v{i}" for i, name in enumerate(names)), *also]
        found = db.arrow(f"SELECT {', '.join(columns)} FROM {tuples.table} ORDER BY rowid")
        return [column.to_numpy(zero_copy_only=False) for column in found.columns]

    few = tuples.names if db.is_short(tuples.table) else ()
    *texts, sizes = asked(few, "n")
    known = dict(zip(few, texts, strict=True))
    return Texts(tuples.names, lambda name: asked([name])[0], known), sizes.astype(np.int64)


def spread_of(db: Database, frame: Frame, tuples: Frame, value: str) -> Spread:
    """Return how the values of a column, given as SQL, fall into the classes."""
    if not tuples.names:
        return _of_all(db, frame, value)
    wanted = f"{value} AS v" + (f", {frame.weight}" if frame.weight else "")
    joined = beside_tuples(frame, tuples, wanted, "CAST(rowid AS BIGINT) AS g")
    cells = f"SELECT u.g, s.v, {frame.many} AS n FROM {joined} GROUP BY ALL"
    if db.is_short(frame.table):
        return _of_few(db, cells)
    distinct = f"SELECT DISTINCT {value} AS v FROM {frame.table}"
    values = db.table(f"SELECT v, row_number() OVER (ORDER BY v NULLS FIRST) - 1 AS code FROM ({distinct})")
    joined = f"({cells}) c JOIN {values} w ON c.v IS NOT DISTINCT FROM w.v"
    counted = db.arrow(f"SELECT g, code, n FROM {joined} ORDER BY g, code")
    held = db.arrow(f"SELECT v FROM {values} ORDER BY code").column(0)
    db.drop(values)
    found = []
    while counted.num_columns:  # one by one, so that no more than one is there twice
        found.append(counted.column(0).to_numpy())
        counted = counted.remove_column(0)
    group, code, count = found
    return Spread(group, code, count, _distinct(held))


def _of_few(db: Database, cells: str) -> Spread:
    """Return how values fall into classes by cells that are few: their values are ranked among the cells."""
    ranked = f"SELECT g, dense_rank() OVER (ORDER BY v NULLS FIRST) - 1 AS code, n, v FROM ({cells})"
    counted = db.arrow(f"{ranked} ORDER BY g, code")
    group, code, count = (counted.column(i).to_numpy() for i in range(3))
    first = np.unique(code, return_index=True)[1]
    return Spread(group, code, count, _distinct(counted.column("v").take(first)))


def _of_all(db: Database, frame: Frame, value: str) -> Spread:
    """Return how often a column has each of its values, where all rows are one class."""
    counted = db.arrow(f"SELECT {value} AS v, {frame.many} AS n FROM {frame.table} GROUP BY v ORDER BY v NULLS FIRST")
    codes = np.arange(counted.num_rows)
    return Spread(np.zeros_like(codes), codes, counted.column(1).to_numpy(), _distinct(counted.column(0)))


def beside_tuples(frame: Frame, tuples: Frame, wanted: str, known: str) -> str:
    """SQL for the rows `s` of a table, each beside its tuple `u`; `wanted` of the rows, `known` of the tuples."""
    ours, theirs = (
        ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys_of(each, tuples.names))) for each in (frame, tuples)
    )
    keys = range(len(keys_of(tuples, tuples.names)))
    same = " AND ".join(f"s.k{i} IS NOT DISTINCT FROM u.k{i}" for i in keys)
    rows, named = f"SELECT {wanted}, {ours} FROM {frame.table}", f"SELECT {known}, {theirs} FROM {tuples.table}"
    return f"({rows}) s JOIN ({named}) u ON {same}"


def moments_of(
    db: Database, frame: Frame, values: Sequence[str]
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Return how many rows have a finite number in every column, given as SQL, and their means and covariances.

    By sums that carry what rounding takes away.
    """
    named = ", ".join(f"{value} AS x{i}" for i, value in enumerate(values))
    names = [f"x{i}" for i in range(len(values))]
    rows = f"(SELECT * FROM (SELECT {named} FROM {frame.table}) WHERE {' AND '.join(f'isfinite({x})' for x in names)})"
    return two_passes(Aggregates(lambda asked: db.row(f"SELECT {', '.join(asked)} FROM {rows}"), "favg"), names)


def _distinct(values: pa.ChunkedArray) -> Any:
    """Return values, in order, as an array; moments in parts, which Python ends in the year 9999, as their places."""
    if not pa.types.is_struct(values.type):
        return values.to_numpy(zero_copy_only=False)
    return np.where(values.is_null().to_numpy(), np.nan, np.arange(len(values)))

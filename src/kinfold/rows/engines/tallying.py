"""Tallying in SQL: classes by the text of their keys, and within them the values of a column, in one grouping each.

Rows are grouped by their keys as they are stored, which is far cheaper than by their texts, and only the classes are
written out. Two values of one type have the same text if and only if they are equal, but for the two zeros of floating
point, and what is not a number: these are told apart by their sign.

    cells     rows by keys and value, counted                      as many as differ, never more than rows
    ranks     the place of each cell's value among the distinct ones, null first
    classes   cells by keys: the size, and its values with their counts, in the order of the keys' texts
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.tally import Spread

FLOATING = ("FLOAT", "DOUBLE")


class Texts(Mapping[str, NDArray[Any]]):
    """The key columns of classes by name, as arrays of texts that are made when they are asked for."""

    def __init__(self, columns: Mapping[str, pa.ChunkedArray]) -> None:
        self._columns = columns
        self._made: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._made:
            self._made[name] = self._columns[name].to_numpy(zero_copy_only=False)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def keys_of(frame: Frame, by: Sequence[str]) -> list[str]:
    """SQL for what rows are grouped by: equal if and only if the texts of the key columns are."""
    keys = [frame.at(name) for name in by]
    return keys + [f"(signbit({c}) AND ({c} = 0 OR isnan({c})))" for c, kind in _kinds(frame, by) if kind in FLOATING]


def _kinds(frame: Frame, by: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((frame.at(name), frame.type_of(name)) for name in by)


def classes_of(db: Database, frame: Frame, by: Sequence[str]) -> tuple[Texts, NDArray[np.int64]]:
    """Return the classes in the order of their texts, and how many rows each has."""
    keys = ", ".join(f"{key} AS g{i}" for i, key in enumerate(keys_of(frame, by)))
    grouped = f"SELECT {keys}{',' if keys else ''} count(*) AS n FROM {frame.table} GROUP BY ALL"
    found = db.arrow(f"SELECT {_texts(by)} n FROM ({grouped}) {_order(by)}")
    return _named(found, by), found.column("n").to_numpy().astype(np.int64)


def spread_of(db: Database, frame: Frame, by: Sequence[str], value: str) -> Spread:
    """Return how the values of a column, given as SQL, fall into the classes."""
    keys = keys_of(frame, by)
    named = "".join(f"{key} AS g{i}, " for i, key in enumerate(keys))
    cells = f"SELECT {named}{value} AS v, count(*) AS n FROM {frame.table} GROUP BY ALL"
    ranked = f"SELECT * EXCLUDE (v), dense_rank() OVER (ORDER BY v NULLS FIRST) - 1 AS code FROM ({cells})"
    groups = "".join(f"g{i}, " for i in range(len(keys)))
    grouped = f"SELECT {groups}list(code) AS codes, list(n) AS counts FROM ({ranked}) GROUP BY ALL"
    found = db.arrow(f"SELECT codes, counts FROM (SELECT {_texts(by)} codes, counts FROM ({grouped})) {_order(by)}")
    values = db.arrow(f"SELECT DISTINCT {value} AS v FROM {frame.table} ORDER BY v NULLS FIRST").column(0)
    codes, counts = (found.column(name).combine_chunks() for name in ("codes", "counts"))
    group = np.repeat(np.arange(len(codes)), np.diff(codes.offsets.to_numpy()))
    code, count = (each.flatten().to_numpy().astype(np.int64) for each in (codes, counts))
    order = np.argsort(group * max(len(values), 1) + code)
    return Spread(group[order], code[order], count[order], _distinct(values))


def moments_of(
    db: Database, frame: Frame, values: Sequence[str]
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Return how many rows have a finite number in every column, given as SQL, and their means and covariances.

    Two passes, with sums that carry what rounding takes away; the mean of equal numbers is that number.
    """
    named = ", ".join(f"{value} AS x{i}" for i, value in enumerate(values))
    names = [f"x{i}" for i in range(len(values))]
    rows = f"(SELECT * FROM (SELECT {named} FROM {frame.table}) WHERE {' AND '.join(f'isfinite({x})' for x in names)})"
    first = db.row(f"SELECT count(*), {', '.join(f'favg({x}), min({x}), max({x})' for x in names)} FROM {rows}")
    count, facts = int(first[0]), np.array([first[1:]], np.float64).reshape(-1, 3)
    means = np.where(facts[:, 1] == facts[:, 2], facts[:, 1], facts[:, 0])
    pairs = [(i, j) for i in range(len(values)) for j in range(i, len(values))]
    gaps = [f"({x} - ({mean!r}))" for x, mean in zip(names, means.tolist(), strict=True)]
    covariances = np.zeros((len(values), len(values)))
    if count:
        found = db.row(f"SELECT {', '.join(f'favg({gaps[i]} * {gaps[j]})' for i, j in pairs)} FROM {rows}")
        for (i, j), value in zip(pairs, found, strict=True):
            covariances[i, j] = covariances[j, i] = value
    return count, means, covariances


def _texts(by: Sequence[str]) -> str:
    return "".join(f"CAST(g{i} AS VARCHAR) AS k{i}, " for i in range(len(by)))


def _order(by: Sequence[str]) -> str:
    return f"ORDER BY {', '.join(f'k{i}' for i in range(len(by)))}" if by else ""


def _named(found: pa.Table, by: Sequence[str]) -> Texts:
    return Texts({name: found.column(f"k{i}") for i, name in enumerate(by)})


def _distinct(values: pa.ChunkedArray) -> Any:
    """Return values, in order, as an array; moments in parts, which Python ends in the year 9999, as their places."""
    if not pa.types.is_struct(values.type):
        return values.to_numpy(zero_copy_only=False)
    return np.where(values.is_null().to_numpy(), np.nan, np.arange(len(values)))

"""Counts of one table by the engine: values of a column, and class sizes of chosen columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfold.measures.formulas.attackers import prosecutor_max, prosecutor_mean
from kinfold.policy.binding import BoundColumn
from kinfold.tables.engine import Engine
from kinfold.tables.queries import count_unique_rows

MAX_DISTINCT_COUNTED = 1_000_000  # of a column; with more, a sample is counted, if there is one


class NumberCounts(NamedTuple):
    """Distinct numbers in ascending order, NaN for null, each with its number of records."""

    values: NDArray[np.float64]
    records: NDArray[np.int64]

    @property
    def finite(self) -> NDArray[np.float64]:
        """The values, NaN instead of infinite ones."""
        return np.where(np.isfinite(self.values), self.values, np.nan)


class SampleRows(NamedTuple):
    """A sample of a large table, and the number of rows of the table."""

    frame: Any
    rows: int


def count_values(
    engine: Engine, frame: Any, bound: BoundColumn, sample: SampleRows | None = None
) -> NumberCounts | Counter[str | None]:
    """Count the values of a column as numbers, if it holds numbers or dates, else as text.

    A column with very count values is counted on the `sample`, if there is one.
    """
    column = engine.schema(frame)[bound.name]
    counted = sample if sample is not None and column.distinct > MAX_DISTINCT_COUNTED else None
    rows = frame if counted is None else counted.frame
    if bound.kind.is_numeric and (column.storage.kind.is_numeric or column.date_format):
        spread = engine.tally(rows, (), {bound.name: column}).spreads[bound.name]
        return NumberCounts(np.asarray(spread.values, np.float64), _scale_up(spread.totals(), counted))
    tally = engine.tally(rows, [bound.name], {})
    records = _scale_up(tally.sizes, counted).tolist()
    return Counter(dict(zip(tally.keys[bound.name].tolist(), records, strict=True)))


def _scale_up(counts: NDArray[np.int64], sample: SampleRows | None) -> NDArray[np.int64]:
    """Return the estimated counts of the whole table; their sum is exact."""
    if sample is None:
        return counts
    cumulative = np.round(np.cumsum(counts) * (sample.rows / max(int(counts.sum()), 1))).astype(np.int64)
    return np.diff(cumulative, prepend=np.int64(0))


MAX_COMBINED_COLUMNS = 8  # columns in pairs and triples
MAX_ROWS_FOR_COMBINATIONS = 100_000  # of larger tables the profile lists the combinations
MAX_COMBINATIONS_LISTED = 10
MAX_SIZES_LISTED = 100


def measure_column_risk(engine: Engine, frame: Any, quasi: Sequence[str], k: int) -> dict[str, Any]:
    """Return the risk of releasing these columns unchanged: shares of records, and class sizes."""
    sizes = engine.count_classes(frame, quasi)  # one class without columns
    rows = sum(size * count for size, count in sizes)
    classes = np.repeat([size for size, _ in sizes], [count for _, count in sizes])
    return {
        "quasi": list(quasi),
        "records": rows,
        "classes": len(classes),
        "k": k,
        "unique": _share_below(sizes, 2, rows),
        "below_k": _share_below(sizes, k, rows),
        "smallest": sizes[0][0] if sizes else None,
        "prosecutor_max": prosecutor_max(classes) if rows else None,
        "prosecutor_mean": prosecutor_mean(classes) if rows else None,
        "sizes": sizes[:MAX_SIZES_LISTED],
        "combinations": _combinations(engine, frame, quasi, rows),
    }


def _share_below(sizes: Sequence[tuple[int, int]], below: int, rows: int) -> float:
    return sum(size * count for size, count in sizes if size < below) / max(rows, 1)


def _combinations(engine: Engine, frame: Any, quasi: Sequence[str], rows: int) -> list[dict[str, Any]]:
    columns = quasi[:MAX_COMBINED_COLUMNS] if rows <= MAX_ROWS_FOR_COMBINATIONS else ()
    sets = [*combinations(columns, 2), *combinations(columns, 3)]
    shares = [(count_unique_rows(engine, frame, names) / max(rows, 1), names) for names in sets]
    shares.sort(key=lambda each: (-each[0], len(each[1])))
    return [{"columns": list(names), "unique": unique} for unique, names in shares[:MAX_COMBINATIONS_LISTED]]

"""The values of one column and how many records hold each, as the engine counts them: what charts and tables show."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfold.request.binding import BoundColumn
from kinfold.rows.engines import Engine

MOST = 1_000_000  # distinct values of a column that are counted one by one, whatever the table


class Numbers(NamedTuple):
    """Distinct numbers in order, NaN for null, and how many records hold each."""

    values: NDArray[np.float64]
    records: NDArray[np.int64]

    @property
    def finite(self) -> NDArray[np.float64]:
        """The values, with nothing in the place of the infinite, which no chart has a place for."""
        return np.where(np.isfinite(self.values), self.values, np.nan)


class RowsForAll(NamedTuple):
    """Rows that stand for all of a far table, and how many rows it has."""

    frame: Any
    rows: int


def value_counts(
    engine: Engine, frame: Any, bound: BoundColumn, some: RowsForAll | None = None
) -> Numbers | Counter[str | None]:
    """Count a column as numbers where it can be read as such, else as text.

    Of a column with a value for nearly every record `some` are counted, if they are given.
    """
    column = engine.schema(frame)[bound.name]
    counted = some if some is not None and column.distinct > MOST else None
    where = frame if counted is None else counted.frame
    if bound.kind.measured and (column.storage.kind.measured or column.date_format):
        spread = engine.tally(where, (), {bound.name: column}).spreads[bound.name]
        return Numbers(np.asarray(spread.values, np.float64), _of_all(spread.totals(), counted))
    tally = engine.tally(where, [bound.name], {})
    records = _of_all(tally.sizes, counted).tolist()
    return Counter(dict(zip(tally.keys[bound.name].tolist(), records, strict=True)))


def _of_all(counts: NDArray[np.int64], some: RowsForAll | None) -> NDArray[np.int64]:
    """Return how many of all rows hold each value, given how many of some do."""
    if some is None:
        return counts
    upto = np.round(np.cumsum(counts) * (some.rows / max(int(counts.sum()), 1))).astype(np.int64)
    return np.diff(upto, prepend=np.int64(0))

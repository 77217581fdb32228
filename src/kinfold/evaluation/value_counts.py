"""The values of one column and how many records hold each, as the engine counts them: what charts and tables show."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfold.request.binding import BoundColumn
from kinfold.rows.engines import Engine


class Numbers(NamedTuple):
    """Distinct numbers in order, NaN for null, and how many records hold each."""

    values: NDArray[np.float64]
    records: NDArray[np.int64]

    @property
    def finite(self) -> NDArray[np.float64]:
        """The values, with nothing in the place of the infinite, which no chart has a place for."""
        return np.where(np.isfinite(self.values), self.values, np.nan)


def value_counts(engine: Engine, frame: Any, bound: BoundColumn) -> Numbers | Counter[str | None]:
    """Count a column as numbers where it can be read as such, else as text."""
    column = engine.schema(frame)[bound.name]
    if bound.kind.measured and (column.storage.kind.measured or column.date_format):
        spread = engine.tally(frame, (), {bound.name: column}).spreads[bound.name]
        return Numbers(np.asarray(spread.values, np.float64), spread.totals())
    tally = engine.tally(frame, [bound.name], {})
    return Counter(dict(zip(tally.keys[bound.name].tolist(), tally.sizes.tolist(), strict=True)))

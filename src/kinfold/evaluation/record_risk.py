"""The risk of each record, before and after: 1 over the number of records that share its quasi-identifiers.

It is internal: whoever has it knows which records are the easiest to find. The measures of a release hold it, and no
file that is written does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.evaluation.pairing import ByTuple, Pair
from kinfold.measures.arrays import class_sizes

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """One number from 0 to 1 for each original record, in its order; NaN `after` for a record that was left out."""

    before: Floats
    after: Floats

    def __repr__(self) -> str:
        return f"<RecordRisk: before and after, of {plural(len(self.before), 'record')}>"


def record_risk(pair: Pair, rows: Any) -> RecordRisk:
    """Return the risk of each record by its original values and by its released ones."""
    sizes = [class_sizes(classes, pair.weight).astype(np.float64) for classes in (pair.initial, pair.masked)]
    sizes[1][sizes[1] == 0] = np.nan
    before, after = (1.0 / size for size in sizes)
    return (
        RecordRisk(before[rows.places()], after[rows.places()])
        if isinstance(rows, ByTuple)
        else RecordRisk(before, after)
    )

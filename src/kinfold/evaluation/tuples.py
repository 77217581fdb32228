"""Original and release side by side: by tuple where a recoding is by tuple, so that no value of a record is looked at.

Some measures need records: those that `measures = "all"` adds, sampling weights, and losses of columns whose values
were recoded before any tuple was counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kinfold.evaluation.pairing import ByTuple, Tables
from kinfold.request.table import Table
from kinfold.rows.recoding import Recoding
from kinfold.rows.schema import Role


def side_by_side(table: Table, original: Any, released: Any, recoding: Recoding) -> Tables:
    """Return both tables as measures take them."""
    engine, report = table.engine, table.policy.request.report
    if recoding.tuples is None or original is not table.frame or report.measures == "all" or report.sampling_weights:
        return Tables(engine, original, released, np.flatnonzero(engine.by_row(table.frame, recoding).kept))
    quasi = {column.name for column in table.policy.of(Role.QUASI)}
    treatments = {name: treatment for name, treatment in recoding.columns.items() if name in quasi}
    known = engine.schema(table.frame)
    became = engine.apply(recoding.tuples, Recoding(recoding.labels, treatments), known)
    number = replace(recoding, labels=np.arange(len(recoding.labels), dtype=np.int32))

    def places() -> Any:
        return engine.by_row(table.frame, number).labels

    found = ByTuple(became, np.flatnonzero(recoding.kept), table.tuples.tally.sizes, places)
    return Tables(engine, original, released, found)

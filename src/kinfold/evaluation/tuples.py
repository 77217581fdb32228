"""Original and release side by side: by tuple where a recoding is by tuple, so that no value of a record is looked at.

Of a far table, whose records are in no place together, some that are drawn stand for all. Some measures need records:
those that `measures = "all"` adds, sampling weights, and losses of columns whose values were recoded before any tuple
was counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kinfold.evaluation.drawn_records import Drawn, FarTable, draw_records
from kinfold.evaluation.pairing import ByTuple, Tables
from kinfold.request.encoding import Attribute
from kinfold.request.table import Table
from kinfold.rows.recoding import Recoding
from kinfold.rows.schema import Role


def side_by_side(
    table: Table, original: Any, released: Any, recoding: Recoding, *, far: Mapping[str, tuple[int, int]] | None = None
) -> Tables:
    """Return both tables as measures take them; `far` is what was counted of a far table, whose records are apart."""
    engine, report = table.engine, table.policy.request.report
    every = report.measures == "all" or bool(report.sampling_weights)
    if far is not None and not every:
        names = [column.name for column in table.policy.of(Role.QUASI)]
        drawn = draw_records(engine, FarTable(original, table.frame, released, recoding, far), names)
        return Tables(engine, original, released, drawn)
    if recoding.tuples is None or original is not table.frame or every:
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


def described(table: Table, tables: Tables) -> tuple[Attribute, ...]:
    """Return the quasi-identifiers of every record, or of those that stand for them."""
    if isinstance(tables.rows, ByTuple):
        return table.tuples.attributes
    return table.of_rows(tables.rows.prepared) if isinstance(tables.rows, Drawn) else table.attributes

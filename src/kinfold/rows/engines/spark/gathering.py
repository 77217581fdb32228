"""Gathering: some columns of a table come to the driver, in the order of the rows, a part at a time onto its disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.spark.carried import inward
from kinfold.rows.engines.spark.frame import PLACE, Distributed
from kinfold.rows.engines.spark.recoded import handed
from kinfold.rows.engines.spark.running_spark import RunningSpark

PART = 2_000_000  # rows that are under way at a time


def picked(
    session: RunningSpark, db: Database, frame: Distributed, places: NDArray[np.int64]
) -> tuple[Frame, NDArray[np.int64]]:
    """Return the rows at some places as a table of the embedded engine, and the numbers of the places that have one."""
    seen, beside = frame.seen, handed(session, pa.table({"at": places}), {"at": "BIGINT"})
    typed = [f"{inward(c, kind)} AS {c}" for c, kind in zip(seen.columns, seen.types, strict=True)]
    with session.job():
        arrow = frame.rows.join(beside, frame.rows[PLACE] == beside["at"], "inner").drop("at").toArrow()
    with db.registered(arrow) as view:
        table = db.table(f"SELECT {', '.join([*typed, PLACE])} FROM {view} ORDER BY {PLACE}")
    there = np.sort(arrow.column(PLACE).to_numpy())
    return replace(seen, table=table, order=PLACE, checksum=None), np.searchsorted(places, there)


def brought(session: RunningSpark, db: Database, frame: Distributed, names: Sequence[str]) -> Frame:
    """Return some columns of a table as a table of the embedded engine."""
    seen = frame.seen
    columns = [seen.at(name) for name in names]
    types = tuple(seen.type_of(name) for name in names)
    typed = [f"{inward(c, kind)} AS c{i}" for i, (c, kind) in enumerate(zip(columns, types, strict=True))]
    parts = []
    for start in range(0, frame.end, PART):
        here = frame.rows.where(f"{PLACE} >= {start} AND {PLACE} < {start + PART}")
        with session.job():
            arrow = here.select(*columns, PLACE).toArrow()
        with db.registered(arrow) as view:
            parts.append(db.table(f"SELECT {', '.join([*typed, PLACE])} FROM {view} ORDER BY {PLACE}"))
    for part in parts[1:]:
        db.connection.execute(f"INSERT INTO {parts[0]} SELECT * FROM {part}")
        db.drop(part)
    orders = tuple(seen.order_of(seen.names.index(name)) for name in names) if seen.orders else ()
    return replace(seen, table=parts[0], names=tuple(names), types=types, orders=orders, order=PLACE)

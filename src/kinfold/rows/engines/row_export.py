"""Handing out: the rows of a table to somebody who keeps tables elsewhere, a batch at a time, in types that he takes.

A type that he does not have becomes the one that he names for it where no value changes by that, and text elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame, identifier
from kinfold.rows.engines.row_checksum import row_checksum

BATCH = 65_536  # rows


class Handed(NamedTuple):
    """Rows on their way out: the types of the columns, the rows, and the checksum of all of them."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: pa.RecordBatchReader
    checksum: str


def handed(db: Database, frame: Frame, values: Sequence[str], fitted: Callable[[str], str], ordered: bool) -> Handed:
    """Hand out some values of a table; `ordered` sorts the rows by all of them."""
    select = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
    kinds = [row[1] for row in db.connection.execute(f"DESCRIBE SELECT {select} FROM {frame.table}").fetchall()]
    taken = [_taken(db, frame, value, kind, fitted(kind)) for value, kind in zip(values, kinds, strict=True)]
    cast = [f"CAST({value} AS {kind})" for value, kind in zip(values, taken, strict=True)]
    inner = ", ".join(f"{value} AS {identifier(name)}" for value, name in zip(cast, frame.names, strict=True))
    order = "ORDER BY ALL" if ordered else f"ORDER BY {frame.order}"
    checksum = row_checksum(db, cast, frame.table)
    rows = db.connection.reader(f"SELECT {inner} FROM {frame.table} {order}", BATCH)
    return Handed(frame.names, tuple(taken), rows, checksum)


def _taken(db: Database, frame: Frame, value: str, kind: str, wanted: str) -> str:
    if wanted in (kind, "VARCHAR"):
        return wanted
    there_and_back = f"TRY_CAST(TRY_CAST({value} AS {wanted}) AS {kind})"
    (changed,) = db.row(f"SELECT count(*) FILTER (WHERE {there_and_back} IS DISTINCT FROM {value}) FROM {frame.table}")
    return "VARCHAR" if changed else wanted

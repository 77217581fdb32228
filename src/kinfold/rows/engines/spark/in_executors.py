"""What runs beside the rows, in the Python of an executor: values computed by the embedded engine, batch by batch.

So an expression gives the same value wherever rows are. Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

MISFIT = "kinfold: a value does not fit its type"  # what an executor says of it: no value
UNREADABLE = "kinfold: cannot read the part "  # and its name, as JSON


class DoesNotFit(Exception):  # noqa: N818  a word that travels
    """A value does not fit the type that it should have."""


class UnreadablePart(Exception):  # noqa: N818  a word that travels
    """A file cannot be read."""


class Computed:
    """Rows whose values are computed by SQL; `batch` is what the rows are called in it."""

    def __init__(self, query: str) -> None:
        self.query = query

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each batch, computed."""
        with _database() as db:
            for batch in batches:
                yield from _computed(db, self.query, batch)


def _database() -> Any:
    from kinfold.rows.engines import instances

    return instances.start(":memory:", {"threads": "1"})[0]


def _computed(db: Any, query: str, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    db.register("batch", pa.Table.from_batches([batch]))
    try:
        found: list[pa.RecordBatch] = db.sql(query).to_arrow_table().combine_chunks().to_batches()
    except duckdb.ConversionException:  # whose message quotes the value
        raise DoesNotFit(MISFIT) from None
    finally:
        db.unregister("batch")
    return found

"""A table in Spark: its rows, and what the embedded engine would say of it.

Columns are called c0, c1, ... there too; `place` is where a row stood, by which rows keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.spark.carried import inward, key, outward, schema_in_words
from kinfold.rows.engines.spark.in_executors import Computed
from kinfold.rows.engines.spark.running_spark import quietly

PLACE = "place"


@dataclass(frozen=True, eq=False)
class Distributed:
    """Rows in Spark. `seen` has their names and types; its table is no table, but tells this one from others."""

    rows: Any  # a DataFrame
    seen: Frame
    end: int  # every place is below it
    dense: bool = True  # whether the places are 0, 1, 2, ..., so that there are `end` rows

    def keys(self, names: tuple[str, ...]) -> list[Any]:
        """Return what rows are grouped by, as k0, k1, ..."""
        from pyspark.sql.functions import expr

        seen = self.seen
        told = [key(seen.at(name), seen.type_of(name)) for name in names]
        return [expr(each).alias(f"k{i}") for i, each in enumerate(told)]

    def computed(self, values: dict[str, str], kinds: dict[str, str]) -> Any:
        """Return a frame of values by name, each computed by SQL of the embedded engine, beside the places."""
        fresh = [f"{outward(value, kinds[name])} AS {name}" for name, value in values.items()]
        query = f"SELECT {', '.join([*fresh, PLACE])} FROM ({self._batch()}) s"
        with quietly():
            return self.rows.mapInArrow(Computed(query), schema_in_words(kinds, place="bigint"))

    def counted(self, counts: Sequence[str]) -> Any:
        """Return a frame of one row: counts of all rows, each by SQL of the embedded engine, batch by batch."""
        names = [f"a{i}" for i in range(len(counts))]
        told = ", ".join(f"CAST({count} AS BIGINT) AS {name}" for name, count in zip(names, counts, strict=True))
        with quietly():
            rows = self.rows.mapInArrow(Computed(f"SELECT {told} FROM ({self._batch()}) s"), _wide(names))
        return rows.selectExpr(*(f"sum({name}) AS {name}" for name in names))

    def _batch(self) -> str:
        typed = [f"{inward(c, kind)} AS {c}" for c, kind in zip(self.seen.columns, self.seen.types, strict=True)]
        return f"SELECT {', '.join([*typed, PLACE])} FROM batch"

    def rewritten(self, fresh: dict[str, str], types: tuple[str, ...], table: str, seen: Frame) -> Distributed:
        """Return the table with some columns computed anew, by their names here."""
        values = {c: fresh.get(c, c) for c in seen.columns}
        rows = self.computed(values, dict(zip(seen.columns, types, strict=True)))
        return replace(self, rows=rows, seen=replace(seen, table=table, types=types))


def _wide(names: Sequence[str]) -> str:
    return ", ".join(f"{name} bigint" for name in names)

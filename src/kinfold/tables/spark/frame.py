"""A table in Spark: its rows, the layout of its columns, and the types that carry its values.

Columns are named c0, c1, ...; `place` is the row's position in the source and keeps the order of the rows. Values of
types that Spark does not have (wide integers, nanoseconds, times of day) travel as text: two values are equal if and
only if their texts are equal. Floating-point numbers are grouped and joined by their text too, because Spark treats
0.0 and -0.0 as equal.

Executors evaluate SQL with the embedded engine, batch by batch, so an expression has the same value wherever its rows
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import duckdb
import pyarrow as pa

from kinfold.errors import DataError
from kinfold.tables.duckdb.expressions import FLOAT_TYPES, Frame, quote_formula_sql
from kinfold.tables.spark.session import MISFIT_MARKER, MisfitError, silence_pyspark

PLACE = "place"

SPARK_TYPES = {  # of DuckDB's types
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint", "FLOAT": "float",
    "DOUBLE": "double", "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp", "VARCHAR": "string",
}  # fmt: skip
WIDER_TYPES = {  # of types that Spark does not have; any other becomes text
    "UTINYINT": "SMALLINT", "USMALLINT": "INTEGER", "UINTEGER": "BIGINT", "UBIGINT": "DECIMAL(20,0)",
    "TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP",
}  # fmt: skip
DUCKDB_TYPES = {spark: kind for kind, spark in SPARK_TYPES.items()} | {"void": "VARCHAR"}


def get_carrier(kind: str) -> tuple[str, str]:
    """Return the Spark type that carries a DuckDB type, and the DuckDB type that Arrow converts to it."""
    wider = WIDER_TYPES.get(kind, kind)
    if wider.startswith("DECIMAL"):
        return wider.lower(), wider
    wider = wider if wider in SPARK_TYPES else "VARCHAR"
    return SPARK_TYPES[wider], wider


def cast_for_spark(value: str, kind: str) -> str:
    """Return DuckDB's SQL for a value that is sent to Spark."""
    return f"CAST({value} AS {get_carrier(kind)[1]})"


def cast_from_spark(value: str, kind: str) -> str:
    """Return DuckDB's SQL for a value that comes from Spark."""
    return f"CAST({value} AS {kind})"


def make_key(column: str, kind: str) -> str:
    """Return Spark's SQL for a key of groups and joins: equal if and only if the texts of the values are."""
    return f"CAST({column} AS STRING)" if kind in FLOAT_TYPES else column


def get_duckdb_type(spark_type: str, name: str) -> str:
    """Return the DuckDB type of a Spark column; refuse arrays, maps and structs."""
    simple = re.sub(r"\s+", "", spark_type)
    if simple.startswith("decimal"):
        return simple.upper()
    if simple.startswith(("varchar", "char")):
        return "VARCHAR"
    if simple not in DUCKDB_TYPES:
        what = f"column '{name}' of the frame has values of type {spark_type.partition('<')[0]}, not single values"
        raise DataError(what, fix="unpack the column, or leave it out")
    return DUCKDB_TYPES[simple]


def describe_schema(kinds: dict[str, str], **spark_types: str) -> str:
    """Return the Spark schema of columns, given by their DuckDB types, and of further ones by their Spark types."""
    types = {name: get_carrier(kind)[0] for name, kind in kinds.items()} | spark_types
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


@dataclass(frozen=True, eq=False)
class SparkFrame:
    """Rows in Spark. `layout` has their names and types; its table does not exist, but its name is unique."""

    rows: Any  # a DataFrame
    layout: Frame
    end: int  # every place is below it
    dense: bool = True  # whether the places are 0, 1, 2, ..., so that there are `end` rows

    names = property(attrgetter("layout.names"))
    form = property(attrgetter("layout.form"))
    checksum = property(attrgetter("layout.checksum"))
    blanked = property(attrgetter("layout.blanked"))
    separator = property(attrgetter("layout.separator"))
    formulas = property(attrgetter("layout.formulas"))

    def to_spark(self, *, quoted: bool = False) -> Any:
        """Return the rows as a Spark frame, in their order, with their names; formulas may be quoted."""
        layout, rows = self.layout, self.rows
        if quoted:
            texts = {
                c: quote_formula_sql(c)
                for c, kind in zip(layout.columns, layout.types, strict=True)
                if kind == "VARCHAR"
            }
            rows = self.rewrite(texts, layout.types, layout.table, layout).rows
        return rows.orderBy("place").drop("place").toDF(*self.names)

    def keys(self, names: tuple[str, ...]) -> list[Any]:
        """Return the keys of some columns, as k0, k1, ..."""
        from pyspark.sql.functions import expr

        keys = [make_key(self.layout.at(name), self.layout.sql_type(name)) for name in names]
        return [expr(key).alias(f"k{i}") for i, key in enumerate(keys)]

    def compute(self, values: dict[str, str], kinds: dict[str, str]) -> Any:
        """Return a DataFrame of values by name, computed by DuckDB's SQL, with the places."""
        select = [f"{cast_for_spark(value, kinds[name])} AS {name}" for name, value in values.items()]
        query = f"SELECT {', '.join([*select, PLACE])} FROM ({self._batch_query()}) s"
        with silence_pyspark():
            return self.rows.mapInArrow(BatchQuery(query), describe_schema(kinds, place="bigint"))

    def count_by_sql(self, counts: Sequence[str]) -> Any:
        """Return a DataFrame of one row: counts over all rows, each given as DuckDB's SQL over a batch."""
        names = [f"a{i}" for i in range(len(counts))]
        select = ", ".join(f"CAST({count} AS BIGINT) AS {name}" for name, count in zip(names, counts, strict=True))
        query, schema = f"SELECT {select} FROM ({self._batch_query()}) s", ", ".join(f"{name} bigint" for name in names)
        with silence_pyspark():
            rows = self.rows.mapInArrow(BatchQuery(query), schema)
        return rows.selectExpr(*(f"sum({name}) AS {name}" for name in names))

    def _batch_query(self) -> str:
        columns = zip(self.layout.columns, self.layout.types, strict=True)
        return f"SELECT {', '.join([*(f'{cast_from_spark(c, kind)} AS {c}' for c, kind in columns), PLACE])} FROM batch"

    def rewrite(self, values: dict[str, str], types: tuple[str, ...], table: str, layout: Frame) -> SparkFrame:
        """Return the table with some columns computed by SQL."""
        every = {c: values.get(c, c) for c in layout.columns}
        rows = self.compute(every, dict(zip(layout.columns, types, strict=True)))
        return replace(self, rows=rows, layout=replace(layout, table=table, types=types))


class BatchQuery:
    """A query over batches of rows in the Python of an executor; its rows are called `batch`."""

    def __init__(self, query: str) -> None:
        self.query = query

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result of each batch."""
        from kinfold.tables.duckdb.connection import start_instance

        with start_instance(":memory:", {"threads": "1"})[0] as db:
            for batch in batches:
                db.register("batch", pa.Table.from_batches([batch]))
                try:
                    yield from db.sql(self.query).to_arrow_table().combine_chunks().to_batches()
                except duckdb.ConversionException:  # its message quotes the value
                    raise MisfitError(MISFIT_MARKER) from None
                db.unregister("batch")

"""Types of Arrow that the database does not know, brought into ones that it does; no value is changed by that.

    half floats              single ones
    decimals of 256 bits     of 128, where their digits suffice

What else it does not know is refused, column by column. A Parquet file may say that whole numbers are durations where
only the library that wrote it looks: the database would return the numbers without their unit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kinfold.errors import DataError, Problem

DIGITS = 38  # of a decimal of 128 bits
SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def known_types(table: pa.Table, name: str) -> pa.Table:
    """Return a table without half floats and decimals of 256 bits."""
    problems = []
    for at, field in enumerate(table.schema):
        kind = _plain(field.type)
        if (known := _known(kind)) is None:
            continue
        try:
            table = table.set_column(at, field.name, table.column(at).cast(kind).cast(known))
        except pa.ArrowInvalid:  # which quotes a value
            problems.append(
                Problem(
                    f"column '{field.name}' of {name} holds numbers of more than {DIGITS} digits",
                    "round them, or turn them into text",
                )
            )
    if problems:
        raise DataError(problems)
    return table


def check_stored(path: Path, name: str) -> pa.Schema:
    """Return the Arrow schema of a Parquet file; refuse columns of durations, which the database takes for numbers."""
    try:
        schema = pq.read_schema(path)
        spark = json.loads((schema.metadata or {}).get(SPARK, b"{}")).get("fields", ())
    except (pa.ArrowException, OSError, ValueError):
        raise DataError(f"{name} cannot be read", fix="check that it is whole and what its ending says") from None
    durations = {field.name for field in schema if pa.types.is_duration(_plain(field.type))}
    durations |= {field["name"] for field in spark if str(field["type"]).startswith("interval")}
    fix = "turn it into a number of seconds, hours or days, or leave out that column"
    if durations:
        raise DataError(Problem(f"column '{each}' of {name} holds durations", fix) for each in sorted(durations))
    return schema


def needs_arrow(schema: pa.Schema) -> bool:
    """Whether a Parquet file holds decimals that the database would return as doubles."""
    return any(pa.types.is_decimal256(_plain(field.type)) for field in schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _known(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, DIGITS), min(kind.scale, DIGITS))
    return None


def unknown_types(table: pa.Table, name: str, known: Callable[[pa.Table], bool]) -> DataError:
    """Return what to say of the columns that the database does not know: it is asked about each, without its rows."""
    problems = [
        Problem(
            f"column '{field.name}' of {name} holds {field.type}, which cannot be read",
            "turn it into numbers, dates or text, or leave out that column",
        )
        for at, field in enumerate(table.schema)
        if not known(table.select([at]).slice(0, 0))
    ]
    return DataError(problems or [Problem(f"{name} cannot be read", "give each column a plain type")])

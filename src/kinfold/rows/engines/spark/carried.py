"""Types between the engines: what each type of the embedded one is carried as in Spark, and back.

What Spark has no type for (wide integers, nanoseconds, times of day) travels as text: two values are equal if and only
if their texts are. Floating numbers are grouped and joined by their text too: Spark takes 0.0 and -0.0 for one.
"""

from __future__ import annotations

import re
from typing import Any

from kinfold.errors import DataError

PLAIN = {  # type here: (type in Spark, type here that Arrow hands over as such)
    "TINYINT": ("tinyint", "TINYINT"),
    "SMALLINT": ("smallint", "SMALLINT"),
    "INTEGER": ("int", "INTEGER"),
    "BIGINT": ("bigint", "BIGINT"),
    "UTINYINT": ("smallint", "SMALLINT"),
    "USMALLINT": ("int", "INTEGER"),
    "UINTEGER": ("bigint", "BIGINT"),
    "UBIGINT": ("decimal(20,0)", "DECIMAL(20,0)"),
    "FLOAT": ("float", "FLOAT"),
    "DOUBLE": ("double", "DOUBLE"),
    "BOOLEAN": ("boolean", "BOOLEAN"),
    "DATE": ("date", "DATE"),
    "TIMESTAMP": ("timestamp_ntz", "TIMESTAMP"),
    "TIMESTAMP WITH TIME ZONE": ("timestamp", "TIMESTAMP WITH TIME ZONE"),
    "TIMESTAMP_S": ("timestamp_ntz", "TIMESTAMP"),
    "TIMESTAMP_MS": ("timestamp_ntz", "TIMESTAMP"),
}
TEXT = ("string", "VARCHAR")
FLOATING = ("FLOAT", "DOUBLE")
OF_SPARK = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "string": "VARCHAR",
    "void": "VARCHAR",
}


def carrier(kind: str) -> tuple[str, str]:
    """Return the type in Spark that carries a type, and the type here that Arrow hands over as that."""
    if kind.startswith("DECIMAL"):
        return kind.lower(), kind
    return PLAIN.get(kind, TEXT)


def outward(value: str, kind: str) -> str:
    """SQL here for a value on its way to Spark."""
    return f"CAST({value} AS {carrier(kind)[1]})"


def inward(value: str, kind: str) -> str:
    """SQL here for a value that came from Spark."""
    return f"CAST({value} AS {kind})"


def key(column: str, kind: str) -> str:
    """SQL in Spark for what rows are grouped and joined by: equal if and only if the texts of the values are."""
    return f"CAST({column} AS STRING)" if kind in FLOATING else column


def type_here(told: str, name: str) -> str:
    """Return the type here of a column of Spark, or refuse what is no single value."""
    simple = re.sub(r"\s+", "", told)
    if simple.startswith("decimal"):
        return simple.upper()
    if simple.startswith(("varchar", "char")):
        return "VARCHAR"
    if simple not in OF_SPARK:
        what = f"column '{name}' of the frame holds {told.partition('<')[0]}, not single values"
        raise DataError(what, fix="unpack or leave out that column")
    return OF_SPARK[simple]


def schema_in_words(kinds: dict[str, str], **further: str) -> str:
    """Return the schema of carried columns as Spark is told it."""
    told: dict[str, Any] = {name: carrier(kind)[0] for name, kind in kinds.items()} | further
    return ", ".join(f"{name} {kind}" for name, kind in told.items())

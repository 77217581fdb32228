"""Types of Arrow that the database does not know, brought into ones that it does; no value is changed by that.

    half floats              single ones
    decimals of 256 bits     of 128, where their digits suffice

What else it does not know is refused, column by column.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from kinfold.errors import DataError, Problem

DIGITS = 38  # of a decimal of 128 bits


def known_types(table: pa.Table, name: str) -> pa.Table:
    """Return a table without half floats and decimals of 256 bits."""
    problems = []
    for at, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
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

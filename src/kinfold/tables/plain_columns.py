"""Columns of a table in memory as arrays: codes of values, and numbers.

A table is a frame of pandas, polars or pyarrow, a mapping of column names to values, a list of rows (mappings), or a
two-dimensional array, whose columns are named by their positions. A missing value is null or NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.tables.frames import ARROW_ERRORS, is_frame, is_lazy, to_arrow

Codes: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = str | int | Sequence[str] | Sequence[int]

ONE_TYPE = "give the column one type of values: text, numbers, dates or true and false"


def list_keys(keys: Keys) -> list[str | int]:
    """Return the names of key columns; raise if there is none or one twice.

    >>> list_keys("age"), list_keys(("age", "sex"))
    (['age'], ['age', 'sex'])
    """
    names: list[str | int] = [keys] if isinstance(keys, str | int) else list(keys)
    if not names:
        raise PolicyError("there is no key column", fix="name at least one column that an attacker knows")
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise PolicyError(f"key columns are named twice: {', '.join(twice)}", fix="name each column once")
    return names


def encode_columns(table: Any, keys: Keys) -> Codes:
    """Return the values of these columns as codes, records by columns; -1 for a missing value.

    >>> encode_columns({"age": [30, None, 30], "sex": ["f", "m", "m"]}, ["age", "sex"]).tolist()
    [[0, 0], [-1, 1], [0, 1]]
    """
    return np.column_stack([_encode(column) for column in _read_columns(table, list_keys(keys))])


def encode_pair(table: Any, other: Any, keys: Keys) -> tuple[Codes, Codes]:
    """Return the codes of two tables with the same columns; equal values have the same code."""
    names, pairs = list_keys(keys), []
    for name, *sides in zip(names, _read_columns(table, names), _read_columns(other, names), strict=True):
        try:
            both = _encode(pa.concat_arrays(_unify(sides)))
        except ARROW_ERRORS:
            raise DataError(f"'{name}' has different types in the two tables", fix=ONE_TYPE) from None
        pairs.append((both[: len(sides[0])], both[len(sides[0]) :]))
    first, second = (np.column_stack(each) for each in zip(*pairs, strict=True))
    return first, second


def encode_values(values: Any, name: str = "values") -> Codes:
    """Return one column of values as codes; -1 for a missing value."""
    return _encode(_to_array(values, name))


def list_values(table: Any, name: str | int) -> tuple[Codes, list[Any]]:
    """Return the codes of a column and the value of each code."""
    (column,) = _read_columns(table, [name])
    encoded = column.dictionary_encode()
    return _encode(column), encoded.dictionary.to_pylist()


def read_numbers(table: Any, values: Any, what: str) -> NDArray[np.float64]:
    """Return numbers: a column of the table by its name, or one value per record; raise if one is missing."""
    column = _read_columns(table, [values])[0] if isinstance(values, str) else _to_array(values, what)
    try:
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except ARROW_ERRORS:
        raise DataError(f"{what} are not numbers", fix="give one number per record") from None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        raise DataError(f"{what} are text, not numbers", fix="convert them to numbers")
    numbers = np.asarray(numbers, np.float64)
    if missing := int(np.isnan(numbers).sum()):
        raise DataError(f"{what}: {missing:,} of {len(numbers):,} are missing", fix="give one number per record")
    return numbers


def count_people(population: Any) -> int:
    """Return a number of people, or the number of rows of a table of people.

    >>> count_people(1000), count_people({"age": [30, 41]})
    (1000, 2)
    """
    if isinstance(population, Mapping):
        return len(next(iter(population.values()), ()))
    if isinstance(population, np.ndarray | list | tuple | pa.Table) or is_frame(population):
        return len(population)
    if isinstance(population, int | float | np.number) and float(population).is_integer() and population is not True:
        return int(population)
    raise PolicyError("the population is not a whole number or a table", fix="give the number of people")


def _read_columns(table: Any, names: Sequence[str | int]) -> list[pa.Array]:
    """Return the columns as arrays of the same length; raise with every name that the table lacks."""
    columns = _select(table, names)
    if len({len(column) for column in columns}) > 1:
        raise DataError("the columns do not have the same length", fix="give one value per record in each column")
    if not len(columns[0]):
        raise DataError("the table has no records", fix="give a table with at least one record")
    return columns


def _select(table: Any, names: Sequence[str | int]) -> list[pa.Array]:
    if isinstance(table, Mapping):
        _require_names(names, table)
        return [_to_array(table[name], f"column '{name}'") for name in names]
    if isinstance(table, np.ndarray) and table.dtype.names is None:
        if table.ndim != 2:
            raise DataError(f"the array has {table.ndim} dimensions", fix="give records by columns")
        _require_names(names, range(table.shape[1]))
        return [_to_array(table[:, int(name)], f"column {name}") for name in names]
    if isinstance(table, np.ndarray):
        return _select({name: table[name] for name in table.dtype.names or ()}, names)
    if isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
        _require_names(names, {name for row in table for name in row} if table else names)
        return [_to_array([row.get(name) for row in table], f"column '{name}'") for name in names]
    if not is_frame(table):
        fix = "collect it first" if is_lazy(table) else "give a frame of pandas, polars or pyarrow, or a dict of lists"
        raise DataError(f"a {type(table).__name__} is not a table", fix=fix)
    _require_names(names, table.column_names if isinstance(table, pa.Table) else list(table.columns))
    chosen = table.select(list(names)) if hasattr(table, "select") else table[list(names)].reset_index(drop=True)
    arrow = to_arrow(chosen)
    return [_combine(arrow.column(name)) for name in names]


def _require_names(names: Sequence[str | int], known: Any) -> None:
    missing = [str(name) for name in names if name not in known]
    if missing:
        fix = "name columns of the table"
        raise PolicyError([Problem(f"the table has no column '{name}'", fix) for name in missing])


def _to_array(values: Any, what: str) -> pa.Array:
    """Return values as an array; NaN is missing."""
    try:
        values = values.to_arrow() if hasattr(values, "to_arrow") else values
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, from_pandas=True)
    except ARROW_ERRORS:  # their messages may quote a value
        raise DataError(f"{what} has mixed values, or is not a list of values", fix=ONE_TYPE) from None
    return _combine(array)


def _combine(array: Any) -> pa.Array:
    """Return an array in one piece, with plain values: no dictionary, NaN as null, -0.0 as 0.0."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), None, pc.add(array, 0.0))
    return array


def _unify(sides: Sequence[pa.Array]) -> list[pa.Array]:
    """Return both arrays with one type: numbers of different widths are the same values."""
    if sides[0].type == sides[1].type:
        return list(sides)
    schemas = [pa.schema([("values", side.type)]) for side in sides]
    kind = pa.unify_schemas(schemas, promote_options="permissive").field("values").type
    return [side.cast(kind) for side in sides]


def _encode(column: pa.Array) -> Codes:
    try:
        indices = column.dictionary_encode().indices
    except ARROW_ERRORS:
        raise DataError("a column has values that cannot be compared, such as lists", fix=ONE_TYPE) from None
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)

"""Fresh columns: copies that carry the rows that are released and nothing else.

A filtered or sliced column still holds what was left out: categories that no row has any more, a dictionary, the
buffers of the array it is a part of. Here every column is taken row by row into memory of its own, and its categories
are those that occur, in the order that they had.

A copy of a whole column keeps its categories; it shares no memory that anything else can write to.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def every(library: str, frame: Any) -> dict[str, Any]:
    """Return copies of all columns of a frame."""
    if library == "pyarrow":
        return {name: _whole_arrow(column) for name, column in zip(frame.column_names, frame.columns, strict=True)}
    if library == "pandas":
        return {name: _whole_pandas(frame[name]) for name in frame.columns}
    return {series.name: _whole_polars(series.alias("values")) for series in frame.get_columns()}


def taken(column: Any, rows: np.ndarray) -> Any:
    """Return these rows of a column of pandas, polars or pyarrow."""
    if isinstance(column, pa.ChunkedArray):
        return arrow(column, pa.array(rows))
    return pandas(column, rows) if hasattr(column, "iloc") else polars(column, rows)


def without_rows(column: Any) -> Any:
    """Return a column of the same type and categories, without values."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.slice(0, 0) for chunk in column.chunks[:1]], column.type)
    return column.iloc[:0].copy() if hasattr(column, "iloc") else column.clear()


def _whole_arrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Copy an Arrow column, dictionaries too: written as a stream into memory of its own, and read from there."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):  # a stream keeps only the extension types that are registered
        stored = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        chunks = [pa.ExtensionArray.from_storage(kind, chunk) for chunk in _whole_arrow(stored).chunks]
        return pa.chunked_array(chunks, kind)
    table, sink = pa.table([column.unify_dictionaries()], names=["values"]), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all().column(0)


def _whole_pandas(series: Any) -> Any:
    values = series.array.take(np.arange(len(series)))
    if hasattr(values, "remove_unused_categories"):
        values = _with_own_categories(values)
    elif pa.types.is_dictionary(getattr(values.dtype, "pyarrow_dtype", pa.null())):
        values = type(values)(_whole_arrow(pa.chunked_array(values.__arrow_array__())))
    return type(series)(values, dtype=object if series.dtype == object else None)


def _whole_polars(series: Any) -> Any:
    import polars as pl

    if series.dtype in (pl.String, pl.Binary):  # views into memory that is not copied with them
        return pl.Series(series.name, _whole_arrow(pa.chunked_array([series.to_arrow()])), dtype=series.dtype)
    return series.gather(np.arange(len(series)))


def arrow(column: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    """Return these rows of an Arrow column; `take` copies, and writes nothing where there is a null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return encoded(arrow(column.cast(kind.value_type), rows), kind, categories(column))
    if pa.types.is_run_end_encoded(kind):
        return into(arrow(pc.run_end_decode(column), rows), kind)
    if pa.types.is_string_view(kind):
        return arrow(column.cast(pa.large_string()), rows).cast(kind)
    return column.take(rows)


def into(column: pa.ChunkedArray, kind: pa.DataType, order: pa.Array | None = None) -> pa.ChunkedArray:
    """Bring a column into an Arrow type; `order` is that of the categories, where it has some."""
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if isinstance(kind, pa.BaseExtensionType):
        return _extended(column, kind)
    if pa.types.is_dictionary(kind):
        return encoded(column.cast(kind.value_type), kind, order)
    if pa.types.is_run_end_encoded(kind):
        whole = column.cast(kind.value_type).combine_chunks()
        return pa.chunked_array([pc.run_end_encode(whole, run_end_type=kind.run_end_type)])
    return column.cast(kind)


def _extended(column: pa.ChunkedArray, kind: pa.BaseExtensionType) -> pa.ChunkedArray:
    """Bring texts or numbers into a type that another one stores; a UUID, which is read as text, is stored as bytes."""
    whole = column.combine_chunks()
    if isinstance(kind, pa.UuidType):
        whole = pa.array([None if text is None else UUID(text).bytes for text in whole.to_pylist()], pa.binary(16))
    return pa.chunked_array([pa.ExtensionArray.from_storage(kind, whole.cast(kind.storage_type))])


def categories(column: pa.ChunkedArray) -> pa.Array:
    """Return the categories of a dictionary column, in their order."""
    whole = column.unify_dictionaries()
    held = whole.chunk(0).dictionary if whole.num_chunks else pa.array([], column.type.value_type)
    return held.drop_null().unique()


def encoded(column: pa.ChunkedArray, kind: pa.DictionaryType, order: pa.Array | None) -> pa.ChunkedArray:
    """Return a dictionary column whose dictionary is what occurs: in the order, then what has no place in it."""
    found = column.drop_null().unique()
    if order is not None:
        rest = found.filter(pc.invert(pc.is_in(found, order)))
        found = pa.concat_arrays([order.filter(pc.is_in(order, found)), rest])
    codes = pc.index_in(column, found).combine_chunks().cast(kind.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, found, ordered=kind.ordered)])


def pandas(series: Any, rows: np.ndarray) -> Any:
    """Return these rows of a pandas series, numbered from 0."""
    taken = series.array.take(rows)
    if hasattr(taken, "remove_unused_categories"):
        taken = _with_own_categories(taken.remove_unused_categories())
    elif pa.types.is_dictionary(getattr(taken.dtype, "pyarrow_dtype", pa.null())):
        held = taken.__arrow_array__()
        taken = type(taken)(arrow(held, pa.array(np.arange(len(held)))))
    return type(series)(taken, dtype=object if series.dtype == object else None)  # else texts become another type


def _with_own_categories(values: Any) -> Any:
    names = values.categories
    return values.rename_categories(names.take(np.arange(len(names))).rename(None))


def polars(series: Any, rows: np.ndarray) -> Any:
    """Return these rows of a polars series; texts are views into shared memory, so they go through Arrow."""
    import polars as pl

    kind = series.dtype
    if kind == pl.Enum:
        kept = polars(series.cast(pl.String), rows)
        occur = set(kept.drop_nulls().unique().to_list())
        return kept.cast(pl.Enum([name for name in kind.categories.to_list() if name in occur]))
    if kind == pl.Categorical:
        return polars(series.cast(pl.String), rows).cast(kind)
    if kind == pl.String:
        held = pa.chunked_array([series.to_arrow()])
        return pl.Series(series.name, arrow(held, pa.array(rows)).cast(pa.large_string()), dtype=pl.String)
    return series.gather(rows)

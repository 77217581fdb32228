"""Copies of columns that hold the released rows and nothing else.

A filtered or sliced column still holds what was removed: unused categories, a dictionary, the buffers of the array that
it is a slice of. Here every column is copied row by row into its own memory, and its categories are those that occur,
in their original order.

A copy of a whole column keeps its categories. It shares no memory that other code can write to.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def copy_columns(library: str, frame: Any) -> dict[str, Any]:
    """Return copies of all columns of a frame."""
    if library == "pyarrow":
        return {name: _copy_arrow(column) for name, column in zip(frame.column_names, frame.columns, strict=True)}
    if library == "pandas":
        return {name: _take_pandas(frame[name], np.arange(len(frame)), keep_unused=True) for name in frame.columns}
    return {series.name: _copy_polars(series.alias("values")) for series in frame.get_columns()}


def copy_rows(column: Any, rows: np.ndarray) -> Any:
    """Return these rows of a column of pandas, polars or pyarrow."""
    if isinstance(column, pa.ChunkedArray):
        return _take_arrow(column, pa.array(rows))
    return _take_pandas(column, rows) if hasattr(column, "iloc") else _take_polars(column, rows)


def copy_empty(column: Any) -> Any:
    """Return a column of the same type and categories, without values."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.slice(0, 0) for chunk in column.chunks[:1]], column.type)
    return column.iloc[:0].copy() if hasattr(column, "iloc") else column.clear()


def _copy_arrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Copy an Arrow column and its dictionaries: write it to a stream in memory and read it from there."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):  # a stream keeps only registered extension types
        stored = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        chunks = [pa.ExtensionArray.from_storage(kind, chunk) for chunk in _copy_arrow(stored).chunks]
        return pa.chunked_array(chunks, kind)
    table, sink = pa.table([column.unify_dictionaries()], names=["values"]), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all().column(0)


def _copy_polars(series: Any) -> Any:
    import polars as pl

    if series.dtype in (pl.String, pl.Binary):  # views into memory that `gather` does not copy
        return pl.Series(series.name, _copy_arrow(pa.chunked_array([series.to_arrow()])), dtype=series.dtype)
    return series.gather(np.arange(len(series)))


def _take_arrow(column: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    """Return these rows of an Arrow column. `take` copies values and writes nothing for a null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _encode_dictionary(_take_arrow(column.cast(kind.value_type), rows), kind, get_categories(column))
    if pa.types.is_run_end_encoded(kind):
        return cast_arrow(_take_arrow(pc.run_end_decode(column), rows), kind)
    if pa.types.is_string_view(kind):
        return _take_arrow(column.cast(pa.large_string()), rows).cast(kind)
    return column.take(rows)


def cast_arrow(column: pa.ChunkedArray, kind: pa.DataType, order: pa.Array | None = None) -> pa.ChunkedArray:
    """Convert a column to an Arrow type; `order` is the order of its categories, if it has some."""
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if isinstance(kind, pa.BaseExtensionType):
        return _cast_extension(column, kind)
    if pa.types.is_dictionary(kind):
        return _encode_dictionary(column.cast(kind.value_type), kind, order)
    if pa.types.is_run_end_encoded(kind):
        whole = column.cast(kind.value_type).combine_chunks()
        return pa.chunked_array([pc.run_end_encode(whole, run_end_type=kind.run_end_type)])
    return column.cast(kind)


def _cast_extension(column: pa.ChunkedArray, kind: pa.BaseExtensionType) -> pa.ChunkedArray:
    """Convert texts or numbers to an extension type; a UUID is read as text and stored as bytes."""
    whole = column.combine_chunks()
    if isinstance(kind, pa.UuidType):
        whole = pa.array([None if text is None else UUID(text).bytes for text in whole.to_pylist()], pa.binary(16))
    return pa.chunked_array([pa.ExtensionArray.from_storage(kind, whole.cast(kind.storage_type))])


def get_categories(column: pa.ChunkedArray) -> pa.Array:
    """Return the categories of a dictionary column, in their order."""
    whole = column.unify_dictionaries()
    values = whole.chunk(0).dictionary if whole.num_chunks else pa.array([], column.type.value_type)
    return values.drop_null().unique()


def _encode_dictionary(column: pa.ChunkedArray, kind: pa.DictionaryType, order: pa.Array | None) -> pa.ChunkedArray:
    """Return a dictionary column with the values that occur: those of `order` first, then the others."""
    values = column.drop_null().unique()
    if order is not None:
        others = values.filter(pc.invert(pc.is_in(values, order)))
        values = pa.concat_arrays([order.filter(pc.is_in(order, values)), others])
    codes = pc.index_in(column, values).combine_chunks().cast(kind.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, values, ordered=kind.ordered)])


def _take_pandas(series: Any, rows: np.ndarray, *, keep_unused: bool = False) -> Any:
    """Return these rows of a pandas series, numbered from 0; unused categories are dropped unless they are kept."""
    values = series.array.take(rows)
    if hasattr(values, "remove_unused_categories"):
        values = _copy_categories(values if keep_unused else values.remove_unused_categories())
    elif pa.types.is_dictionary(getattr(values.dtype, "pyarrow_dtype", pa.null())):
        column = pa.chunked_array(values.__arrow_array__())
        values = type(values)(
            _copy_arrow(column) if keep_unused else _take_arrow(column, pa.array(np.arange(len(values))))
        )
    return type(series)(values, dtype=object if series.dtype == object else None)  # otherwise pandas infers a type


def _copy_categories(values: Any) -> Any:
    names = values.categories
    return values.rename_categories(names.take(np.arange(len(names))).rename(None))


def _take_polars(series: Any, rows: np.ndarray) -> Any:
    """Return these rows of a polars series. Texts are views into shared memory, so they are copied by Arrow."""
    import polars as pl

    kind = series.dtype
    if kind == pl.Enum:
        texts = _take_polars(series.cast(pl.String), rows)
        used = set(texts.drop_nulls().unique().to_list())
        return texts.cast(pl.Enum([name for name in kind.categories.to_list() if name in used]))
    if kind == pl.Categorical:
        return _take_polars(series.cast(pl.String), rows).cast(kind)
    if kind == pl.String:
        texts = _take_arrow(pa.chunked_array([series.to_arrow()]), pa.array(rows))
        return pl.Series(series.name, texts.cast(pa.large_string()), dtype=pl.String)
    return series.gather(rows)

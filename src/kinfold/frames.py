"""Frames of other libraries: pandas, polars and pyarrow in, the same kind out.

Columns that a release does not touch are the caller's own, bit for bit; replaced ones go back into the type they had
where their values still fit it. A pandas index stays with its rows.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError, Problem
from kinfold.recoding import Drop, Recoding, Replace


def is_frame(source: Any) -> bool:
    """Whether this is a table of a library that is known."""
    try:
        return isinstance(nw.from_native(source, eager_only=True, pass_through=True), nw.DataFrame)
    except nw.exceptions.DuplicateError:
        what = "the frame has more than one column of the same name"
        raise DataError(what, fix="rename all but one of them") from None


def to_arrow(source: Any) -> pa.Table:
    """Return a frame's rows as Arrow, without its index."""
    frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("the frame has columns whose names are not text", fix="rename them: frame.columns = [...]")
    try:
        native = frame.to_native()
        table = pa.Table.from_pandas(native, preserve_index=False) if frame.implementation.is_pandas() else native
        return _plain(table if isinstance(table, pa.Table) else frame.to_arrow())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):  # whose message quotes a value
        raise DataError("the frame has a column of mixed values", fix="give each column one type") from None


def _plain(table: pa.Table) -> pa.Table:
    """Return a table whose types other libraries know; pandas' periods and intervals are its own."""
    if not table.num_columns:
        raise DataError("the frame has no columns", fix="give a table with at least one column")
    problems = [
        Problem(f"column '{field.name}' of the frame holds {field.type.extension_name}", "turn it into dates or text")
        for field in table.schema
        if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name.startswith("pandas.")
    ]
    if problems:
        raise DataError(problems)
    return table


def recoded(source: Any, released: pa.Table, recoding: Recoding) -> Any:
    """Return the caller's frame after a recoding whose rows are known as Arrow."""
    frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
    kept = [name for name, treatment in recoding.columns.items() if not isinstance(treatment, Drop)]
    rows = recoding.kept
    if frame.implementation.is_pyarrow():
        return _pyarrow(source.select(kept), released, recoding)
    frame = frame.select(kept) if rows.all() else frame.select(kept).filter(rows.tolist())
    if frame.implementation.is_pandas():
        return _pandas(frame.to_native(), released, recoding)
    return _polars(frame.to_native(), released, recoding)


def _replaced(recoding: Recoding) -> dict[str, Replace]:
    return {name: treatment for name, treatment in recoding.columns.items() if isinstance(treatment, Replace)}


def _pyarrow(table: pa.Table, released: pa.Table, recoding: Recoding) -> pa.Table:
    table = table.filter(pa.array(recoding.kept))
    for name, treatment in _replaced(recoding).items():
        place, column = table.column_names.index(name), released.column(name)
        if treatment.as_stored:
            column = _cast(column, table.schema.field(name).type)
        table = table.set_column(place, name, column)
    return table


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type).dictionary_encode().cast(kind)
    return column.cast(kind)


def _pandas(frame: Any, released: pa.Table, recoding: Recoding) -> Any:
    frame = frame.copy()
    for name, treatment in _replaced(recoding).items():
        column = released.column(name).to_pandas()
        column.index = frame.index
        frame[name] = column.astype(frame[name].dtype) if treatment.as_stored else column
    return frame


def _polars(frame: Any, released: pa.Table, recoding: Recoding) -> Any:
    import polars as pl

    columns = []
    for name, treatment in _replaced(recoding).items():
        column = pl.Series(name, released.column(name))
        columns.append(column.cast(frame[name].dtype) if treatment.as_stored else column)
    return frame.with_columns(columns)


def classes(recoding: Recoding) -> NDArray[np.int64]:
    """Number the classes of the released rows by their released values: equal values, equal number."""
    columns = [treatment.values for treatment in _replaced(recoding).values()]
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        number = np.unique(number * (code.max() + 2) + code + 1, return_inverse=True)[1]
    return number[recoding.labels[recoding.kept]]

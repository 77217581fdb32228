"""Frames of other libraries: pandas, polars and pyarrow in, the same kind out.

A pandas index is a column like any other. If the policy does not name it, `output.others` decides: it is refused,
dropped (and replaced by a range) or released as the index. An index that the policy names becomes a column, as with
`reset_index`. Only a plain range is not a column: an unnamed `RangeIndex`, or whole numbers from 0 without gaps. It is
numbered again in the release, because gaps would show which records were dropped. An index without a name, or with the
name of a column, is called `index` (or `level_0`, ... if that name is used).

A frame is copied before it is read (see `Snapshot`). The engine reads the copy, and columns that are released unchanged
come from it, so no later change of the caller's frame reaches a release. After planning, only the unchanged columns of
the copy stay in memory.

Unchanged columns have the caller's values, bit for bit. Replaced columns are converted back to their type if their new
values fit it. Both are copies, row by row, into memory of their own: a filtered or sliced column would still hold what
was removed (unused categories, a dictionary, the buffers of the array that it is a slice of). Their categories are
those that occur, in their original order; a copy of a whole column keeps its categories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any, Literal, TypeAlias
from uuid import UUID

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinfold.errors import DataError, Problem
from kinfold.tables.column_names import check_column_names
from kinfold.tables.recoding import Drop, Keep, Recoding, Replace, number_equal_classes
from kinfold.tables.text_values import QUOTE, quote_formula

Library: TypeAlias = Literal["pandas", "polars", "pyarrow"]

ARROW_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)  # raised if Arrow cannot convert a value


def is_frame(source: Any) -> bool:
    """Whether the source is a frame of a supported library."""
    try:
        return isinstance(nw.from_native(source, eager_only=True, pass_through=True), nw.DataFrame)
    except nw.exceptions.DuplicateError:
        what = "the frame has more than one column of the same name"
        raise DataError(what, fix="rename all but one of them") from None


def is_spark(source: Any) -> bool:
    """Whether the source is a Spark frame; Spark itself is not imported."""
    kind = type(source)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


def is_lazy(source: Any) -> bool:
    """Whether the source is a lazy frame."""
    return isinstance(nw.from_native(source, pass_through=True), nw.LazyFrame)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A private copy of the columns of a frame; the levels of an index that is not a plain range come first."""

    library: Library
    columns: Mapping[str, Any]  # series of pandas or polars, chunked arrays of pyarrow
    index: Mapping[str, Any]  # columns that were levels of the index, and the names of the levels
    required: frozenset[str] = frozenset()  # columns of a pyarrow table that are declared without nulls
    module: str = ""  # of the class of the caller's frame

    @classmethod
    def from_frame(cls, source: Any) -> Snapshot:
        """Copy a frame with the memory of its values, which other objects may share and change."""
        frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
        native, known, required = frame.to_native(), frame.implementation, frozenset[str]()
        _check_columns(frame)
        library: Library = "pandas" if known.is_pandas() else "pyarrow" if known.is_pyarrow() else "polars"
        levels: dict[str, Any] = {}
        if library == "pandas":
            native = native.copy(deep=False)  # later changes of its rows or columns do not reach the copy
            levels = dict(zip(get_index_names(native), native.index.names, strict=False))
            native = _reset_index(native)
        elif library == "pyarrow":
            required = frozenset(field.name for field in native.schema if not field.nullable)
        try:
            columns = _copy_columns(library, native)
        except ARROW_ERRORS:  # their messages may quote a value
            raise DataError(_list_conversion_problems(native)) from None
        if len({len(column) for column in columns.values()}) > 1:
            what = "the frame was changed while it was read"
            raise DataError(what, fix="do not change it meanwhile, or give a copy of it")
        return cls(library, columns, levels, required, type(source).__module__)

    def to_arrow(self) -> pa.Table:
        """Return the rows as Arrow."""
        return _as_arrow(self.build_native(self.columns), self.library, tuple(self.index))

    def build_native(self, columns: Mapping[str, Any]) -> Any:
        """Return columns as a frame of the caller's library, without a copy."""
        if self.library == "pandas":
            import pandas as pd

            return pd.DataFrame(dict(columns), copy=False)
        if self.library == "polars":
            import polars as pl

            return pl.DataFrame([series.alias(name) for name, series in columns.items()])
        fields = [
            pa.field(name, column.type, name not in self.required or column.null_count > 0)
            for name, column in columns.items()
        ]
        return pa.table([*columns.values()], schema=pa.schema(fields))

    def reduce_to(self, recoding: Recoding) -> Snapshot:
        """Return the part that a release needs: the columns that it keeps, and the types of those that it replaces."""
        columns = {}
        for name, treatment in recoding.columns.items():
            if not isinstance(treatment, Drop):
                column = self.columns[name]
                columns[name] = column if isinstance(treatment, Keep) else _copy_empty(column)
        return replace(self, columns=columns)

    def recode(
        self,
        released: pa.Table,
        recoding: Recoding,
        index: Sequence[str] = (),
        changed: Mapping[str, bool] | None = None,
        *,
        quoted: bool = False,
    ) -> Any:
        """Return the caller's frame after a recoding; `released` has the recoded rows as Arrow, with formulas `quoted`.

        `index` columns become the index again. `changed` are columns whose values already differ from the caller's
        (words for missing became null, values were recoded); False if the new values do not fit the column's type.
        """
        rows, columns = np.flatnonzero(recoding.kept), {}
        with_quotes = {name: True for name in released.column_names if quoted and _has_quotes(released.column(name))}
        rewritten = {**with_quotes, **(changed or {})}
        restore = {"pandas": _restore_pandas, "polars": _restore_polars, "pyarrow": _restore_pyarrow}[self.library]
        for name, treatment in recoding.columns.items():
            if isinstance(treatment, Keep) and name not in rewritten:
                columns[name] = _copy_rows(self.columns[name], rows)
            elif not isinstance(treatment, Drop):
                as_stored = rewritten.get(name, True) and (isinstance(treatment, Keep) or treatment.as_stored)
                columns[name] = restore(self.columns[name], released.column(name), as_stored, quoted)
        frame, levels = self.build_native(columns), [name for name in index if name in columns]
        if not levels:
            return frame
        return frame.set_index(levels).rename_axis(index=[self.index[name] for name in levels])


def to_arrow(source: Any) -> pa.Table:
    """Return the rows of a frame as Arrow, the index first if it is not a plain range."""
    frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
    _check_columns(frame)
    pandas, native = frame.implementation.is_pandas(), frame.to_native()
    return _as_arrow(_reset_index(native), "pandas", get_index_names(native)) if pandas else _as_arrow(native, "polars")


def _check_columns(frame: nw.DataFrame[Any]) -> None:
    """Refuse names that other libraries cannot handle."""
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("the frame has columns whose names are not text", fix="rename them: frame.columns = [...]")
    if not frame.columns:
        raise DataError("the frame has no columns", fix="give a table with at least one column")
    check_column_names(frame.columns, "the frame")


def _as_arrow(native: Any, library: Library, index: Sequence[str] = ()) -> pa.Table:
    """Convert a frame to Arrow; `index` are the columns that were its index."""
    if index:
        native = native.assign(**{name: _convert_index_level(native[name]) for name in index})
    try:
        table = pa.Table.from_pandas(native, preserve_index=False) if library == "pandas" else native
        table = table if isinstance(table, pa.Table) else nw.from_native(native, eager_only=True).to_arrow()
    except ARROW_ERRORS:  # their messages quote a value
        raise DataError(_list_conversion_problems(native)) from None
    return _require_known_types(table)


def _list_conversion_problems(native: Any) -> list[Problem]:
    """List the columns that Arrow cannot convert: mixed types, huge integers, Python objects."""
    fix = "give each column one type, or convert it to text: frame[column].astype(str)"
    problems = []
    for name in native.columns:
        try:
            pa.Array.from_pandas(native[name])
        except ARROW_ERRORS:
            what = f"column '{name}' of the frame has mixed values, or values that no table can store"
            problems.append(Problem(what, fix))
    return problems or [Problem("the frame has a column of mixed values", fix)]


def _require_known_types(table: pa.Table) -> pa.Table:
    """Return the table, or raise if a column has a type that only pandas knows: a period or an interval."""
    types = {field.name: field.type for field in table.schema}
    types = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in types.items()}
    problems = [
        Problem(f"column '{name}' of the frame holds {kind.extension_name}", "convert it to dates or text")
        for name, kind in types.items()
        if isinstance(kind, pa.BaseExtensionType) and kind.extension_name.startswith("pandas.")
    ]
    if problems:
        raise DataError(problems)
    return table


def get_index_names(source: Any) -> tuple[str, ...]:
    """Return the column names of a frame's index; none if it is a plain range."""
    if isinstance(source, Snapshot):
        return tuple(source.index)
    frame = nw.from_native(source, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or not frame.implementation.is_pandas():
        return ()
    index = frame.to_native().index
    if _is_plain_range(index):
        return ()
    used = {str(name).casefold() for name in frame.columns}
    names = []
    for name in index.names:
        if not isinstance(name, str) or not name.strip() or name.casefold() in used:
            name = next(free for free in chain(["index"], (f"level_{i}" for i in count())) if free not in used)
        names.append(name)
        used.add(name.casefold())
    return tuple(names)


def _is_plain_range(index: Any) -> bool:
    if index.nlevels > 1 or index.name is not None:
        return False
    if type(index).__name__ == "RangeIndex":
        return True
    return bool(index.dtype.kind in "iu" and (np.asarray(index) == np.arange(len(index))).all())


def _reset_index(frame: Any) -> Any:
    """Return a pandas frame whose index is columns, unless it is a plain range."""
    names = get_index_names(frame)
    return frame.reset_index(names=list(names)) if names else frame


def _convert_index_level(level: Any) -> Any:
    """Convert a level of an index to text if only pandas knows its type; it may be dropped, so do not refuse it."""
    try:
        kind = pa.array(level).type
    except ARROW_ERRORS:
        return level.astype(str)
    known = (pa.types.is_primitive, pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    single = pa.types.is_decimal(kind) or any(is_kind(kind) for is_kind in known)
    return level if single and not pa.types.is_duration(kind) else level.astype(str)


def _has_quotes(column: pa.ChunkedArray) -> bool:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.any(pc.starts_with(column, QUOTE)).as_py())


def _quote_categories(categories: Sequence[Any], are_quoted: bool) -> list[Any]:
    return [quote_formula(each) if are_quoted and isinstance(each, str) else each for each in categories]


def _restore_pyarrow(
    column: pa.ChunkedArray, released: pa.ChunkedArray, as_stored: bool, are_quoted: bool
) -> pa.ChunkedArray:
    if not as_stored:
        return released
    order = None
    if pa.types.is_dictionary(column.type):
        names = _quote_categories(get_categories(column).to_pylist(), are_quoted)
        order = pa.array(names, column.type.value_type)
    return _cast_arrow(released, column.type, order)


def _restore_pandas(column: Any, released: pa.ChunkedArray, as_stored: bool, are_quoted: bool) -> Any:
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype) and are_quoted:
        kind = pd.CategoricalDtype(_quote_categories(kind.categories.tolist(), are_quoted), kind.ordered)
    new = _convert_to_pandas_type(released, kind) if as_stored else released.to_pandas()
    return _copy_rows(new, np.arange(len(new)))


def _convert_to_pandas_type(column: pa.ChunkedArray, kind: Any) -> Any:
    """Convert a column to its old type; integers and booleans with nulls to a nullable type."""
    import pandas as pd

    if not column.null_count or not isinstance(kind, np.dtype) or kind.kind not in "iub":
        return column.to_pandas().astype(kind)
    nullable = {"i": "Int", "u": "UInt", "b": "boolean"}[kind.kind]
    name = nullable if kind.kind == "b" else f"{nullable}{8 * kind.itemsize}"
    return pd.Series(pd.array(column.to_pylist(), dtype=name))  # without a conversion to doubles


def _restore_polars(column: Any, released: pa.ChunkedArray, as_stored: bool, are_quoted: bool) -> Any:
    """Return a column without its name, because polars reads `*` and `^x$` as patterns."""
    import polars as pl

    kind = column.dtype
    if kind == pl.Enum:
        kind = pl.Enum(_quote_categories(kind.categories.to_list(), are_quoted))
    new = pl.Series("values", released)
    return _copy_rows(new.cast(kind) if as_stored else new, np.arange(len(new)))


def number_classes(recoding: Recoding, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the class number of each released row: rows with equal values in these columns have equal ones."""
    treatments = [recoding.columns[name] for name in names]
    number = number_equal_classes([each.values for each in treatments if isinstance(each, Replace)])
    return number[recoding.labels[recoding.kept]].astype(np.int64)


def _copy_columns(library: str, frame: Any) -> dict[str, Any]:
    """Return copies of all columns of a frame."""
    if library == "pyarrow":
        return {name: _copy_arrow(column) for name, column in zip(frame.column_names, frame.columns, strict=True)}
    if library == "pandas":
        return {name: _take_pandas(frame[name], np.arange(len(frame)), keep_unused=True) for name in frame.columns}
    return {series.name: _copy_polars(series.alias("values")) for series in frame.get_columns()}


def _copy_rows(column: Any, rows: np.ndarray) -> Any:
    """Return these rows of a column of pandas, polars or pyarrow."""
    if isinstance(column, pa.ChunkedArray):
        return _take_arrow(column, pa.array(rows))
    return _take_pandas(column, rows) if hasattr(column, "iloc") else _take_polars(column, rows)


def _copy_empty(column: Any) -> Any:
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
        return _cast_arrow(_take_arrow(pc.run_end_decode(column), rows), kind)
    if pa.types.is_string_view(kind):
        return _take_arrow(column.cast(pa.large_string()), rows).cast(kind)
    return column.take(rows)


def _cast_arrow(column: pa.ChunkedArray, kind: pa.DataType, order: pa.Array | None = None) -> pa.ChunkedArray:
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

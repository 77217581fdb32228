"""Frames of other libraries: pandas, polars and pyarrow in, the same kind out.

A pandas index is a column like any other, and where the policy does not name it `output.others` decides: refused,
dropped (a range instead) or released, as the index again. An index that the policy names becomes a column, as by
`reset_index`. Only a plain range carries nothing and is no column: an index without a name that is a `RangeIndex`, or
whole numbers from 0 up without a gap; it is counted anew in the release, for gaps would tell which records were left
out. An index without a name, or with that of a column, is called `index` (`level_0`, ... if that is taken).

Columns that a release does not touch have the caller's values, bit for bit; replaced ones go back into the type they
had where their values still fit it. Either way they are copies (see `column_copies`), and nothing that was stored
beside the values leaves with them: no attributes, no metadata, no categories that do not occur.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinfold.errors import DataError, Problem
from kinfold.rows import column_copies
from kinfold.rows.column_names import check_names
from kinfold.rows.formulas import QUOTE, quoted
from kinfold.rows.recoding import Drop, Keep, Recoding, Replace

UNTAKEN = (pa.ArrowException, TypeError, ValueError, OverflowError)  # what Arrow raises where it takes no value


def is_frame(source: Any) -> bool:
    """Whether this is a table of a library that is known."""
    try:
        return isinstance(nw.from_native(source, eager_only=True, pass_through=True), nw.DataFrame)
    except nw.exceptions.DuplicateError:
        what = "the frame has more than one column of the same name"
        raise DataError(what, fix="rename all but one of them") from None


def is_spark(source: Any) -> bool:
    """Whether this is a frame of Spark; asked without a look at Spark itself."""
    kind = type(source)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


def is_lazy(source: Any) -> bool:
    """Whether this is a table that is still to be computed."""
    return isinstance(nw.from_native(source, pass_through=True), nw.LazyFrame)


def to_arrow(source: Any) -> pa.Table:
    """Return a frame's rows as Arrow, its index first where that is more than a plain range."""
    frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("the frame has columns whose names are not text", fix="rename them: frame.columns = [...]")
    if not frame.columns:
        raise DataError("the frame has no columns", fix="give a table with at least one column")
    check_names(frame.columns, "the frame")  # before other libraries meet them
    native = _opened(frame.to_native(), readable=True)
    try:
        table = pa.Table.from_pandas(native, preserve_index=False) if frame.implementation.is_pandas() else native
        table = table if isinstance(table, pa.Table) else frame.to_arrow()
    except UNTAKEN:  # whose message quotes a value
        raise DataError(_untaken(native)) from None
    return _plain(table)


def _untaken(native: Any) -> list[Problem]:
    """Say which columns Arrow does not take: numbers beside text, whole numbers without end, Python's own objects."""
    fix = "give each column one type, or turn it into text: frame[column].astype(str)"
    problems = []
    for name in native.columns:
        try:
            pa.Array.from_pandas(native[name])
        except UNTAKEN:
            what = f"column '{name}' of the frame has mixed values, or such as no table holds"
            problems.append(Problem(what, fix))
    return problems or [Problem("the frame has a column of mixed values", fix)]


def _plain(table: pa.Table) -> pa.Table:
    """Return a table whose types other libraries know; pandas' periods and intervals are its own."""
    held = {field.name: field.type for field in table.schema}
    held = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in held.items()}
    problems = [
        Problem(f"column '{name}' of the frame holds {kind.extension_name}", "turn it into dates or text")
        for name, kind in held.items()
        if isinstance(kind, pa.BaseExtensionType) and kind.extension_name.startswith("pandas.")
    ]
    if problems:
        raise DataError(problems)
    return table


def index_names(source: Any) -> tuple[str, ...]:
    """Return what the index of a frame is called where it counts as columns; nothing where it is a plain range."""
    frame = nw.from_native(source, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or not frame.implementation.is_pandas():
        return ()
    index = frame.to_native().index
    if _carries_nothing(index):
        return ()
    taken = {str(name).casefold() for name in frame.columns}
    names = []
    for name in index.names:
        own = isinstance(name, str) and name.strip() and name.casefold() not in taken
        names.append(name if own else _free(taken))
        taken.add(names[-1].casefold())
    return tuple(names)


def _carries_nothing(index: Any) -> bool:
    if index.nlevels > 1 or index.name is not None:
        return False
    if type(index).__name__ == "RangeIndex":
        return True
    return bool(index.dtype.kind in "iu" and (np.asarray(index) == np.arange(len(index))).all())


def _free(taken: Collection[str]) -> str:
    return next(name for name in chain(["index"], (f"level_{i}" for i in count())) if name not in taken)


def _opened(frame: Any, *, readable: bool = False) -> Any:
    """Return a frame whose index, where it carries something, is columns; `readable` ones are for Arrow."""
    names = index_names(frame)
    opened = frame.reset_index(names=list(names)) if names else frame
    for name in names if readable else ():
        opened[name] = _readable(opened[name])
    return opened


def _readable(level: Any) -> Any:
    """Return a level of an index as texts where only pandas knows its type: it may be about to be dropped."""
    try:
        kind = pa.array(level).type
    except UNTAKEN:
        return level.astype(str)
    known = (pa.types.is_primitive, pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    single = pa.types.is_decimal(kind) or any(is_kind(kind) for is_kind in known)
    return level if single and not pa.types.is_duration(kind) else level.astype(str)


def recoded(
    source: Any,
    released: pa.Table,
    recoding: Recoding,
    index: Sequence[str] = (),
    changed: Mapping[str, bool] | None = None,
) -> Any:
    """Return the caller's frame after a recoding whose rows are known as Arrow.

    `index` columns are the index again. Columns that were `changed` beforehand (texts that stand for a missing value
    became null, values were recoded) are not the caller's any more; False where they do not fit their type either.
    """
    altered = changed or {}
    frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
    kept = [name for name, treatment in recoding.columns.items() if not isinstance(treatment, Drop)]
    native = frame.to_native()
    if frame.implementation.is_pyarrow():
        return _pyarrow(native.select(kept), released, recoding, altered)
    if frame.implementation.is_pandas():
        rows = _pandas(_opened(native)[kept], released, recoding, altered)
        return _indexed(rows, native, [name for name in index if name in kept])
    return _polars(native, released, recoding, altered)


def _places(recoding: Recoding) -> NDArray[np.intp]:
    return np.flatnonzero(recoding.kept)


def _replaced(recoding: Recoding) -> dict[str, Replace]:
    return {name: treatment for name, treatment in recoding.columns.items() if isinstance(treatment, Replace)}


def _rewritten(recoding: Recoding, released: pa.Table, altered: Mapping[str, bool]) -> dict[str, bool]:
    """Return the columns whose values are not the caller's any more, and whether they go back into their type."""
    kept = {name: t for name, t in recoding.columns.items() if isinstance(t, Keep)}
    fresh = {n: True for n, t in kept.items() if n in altered or (t.quotes and _has_quotes(released.column(n)))}
    fresh |= {name: treatment.as_stored for name, treatment in _replaced(recoding).items()}
    return {name: as_stored and altered.get(name, True) for name, as_stored in fresh.items()}


def _has_quotes(column: pa.ChunkedArray) -> bool:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.any(pc.starts_with(column, QUOTE)).as_py())


def _is_quoted(recoding: Recoding, name: str) -> bool:
    treatment = recoding.columns[name]
    return not isinstance(treatment, Drop) and treatment.quotes != 0


def _as_quoted(categories: Sequence[Any], recoding: Recoding, name: str) -> list[Any]:
    """Return the categories of a column as they are written."""
    if not _is_quoted(recoding, name):
        return list(categories)
    return [quoted(each) if isinstance(each, str) else each for each in categories]


def _pyarrow(table: pa.Table, released: pa.Table, recoding: Recoding, altered: Mapping[str, bool]) -> pa.Table:
    rows, rewritten, columns, fields = pa.array(_places(recoding)), _rewritten(recoding, released, altered), [], []
    for field in table.schema:
        column, as_stored = table.column(field.name), rewritten.get(field.name)
        if as_stored is None:
            column = column_copies.arrow(column, rows)
        elif as_stored:
            order = None
            if pa.types.is_dictionary(field.type):
                names = _as_quoted(column_copies.categories(column).to_pylist(), recoding, field.name)
                order = pa.array(names, field.type.value_type)
            column = column_copies.into(released.column(field.name), field.type, order)
        else:
            column = released.column(field.name)
        columns.append(column)
        fields.append(pa.field(field.name, column.type, field.nullable or column.null_count > 0))
    return pa.table(columns, schema=pa.schema(fields))


def _pandas(frame: Any, released: pa.Table, recoding: Recoding, altered: Mapping[str, bool]) -> Any:
    import pandas as pd

    rows, rewritten, columns = _places(recoding), _rewritten(recoding, released, altered), {}
    for name in frame.columns:
        kind, as_stored = frame[name].dtype, rewritten.get(name)
        if as_stored is None:
            columns[name] = column_copies.pandas(frame[name], rows)
            continue
        if isinstance(kind, pd.CategoricalDtype) and _is_quoted(recoding, name):
            kind = pd.CategoricalDtype(_as_quoted(kind.categories.tolist(), recoding, name), kind.ordered)
        column = _restored(released.column(name), kind) if as_stored else released.column(name).to_pandas()
        columns[name] = column_copies.pandas(column, np.arange(len(column)))
    return pd.DataFrame(columns)


def _restored(column: pa.ChunkedArray, kind: Any) -> Any:
    """Return a column in the type that it had; integers and truths with empty cells in one that has them."""
    import pandas as pd

    if not column.null_count or not isinstance(kind, np.dtype) or kind.kind not in "iub":
        return column.to_pandas().astype(kind)
    nullable = {"i": "Int", "u": "UInt", "b": "boolean"}[kind.kind]
    name = nullable if kind.kind == "b" else f"{nullable}{8 * kind.itemsize}"
    return pd.Series(pd.array(column.to_pylist(), dtype=name))  # not by way of doubles


def _indexed(frame: Any, source: Any, index: Sequence[str]) -> Any:
    """Return the frame with these columns as its index, by the names that its levels had."""
    if not index:
        return frame
    names = dict(zip(index_names(source), source.index.names, strict=True))
    return frame.set_index(list(index)).rename_axis(index=[names[name] for name in index])


def _polars(frame: Any, released: pa.Table, recoding: Recoding, altered: Mapping[str, bool]) -> Any:
    """Return the frame; columns go by their places, and without their names: polars takes `*` and `^x$` as patterns."""
    import polars as pl

    rows, rewritten, columns = _places(recoding), _rewritten(recoding, released, altered), {}
    for name, column in zip(frame.columns, frame.get_columns(), strict=True):
        if isinstance(recoding.columns[name], Drop):
            continue
        kind, as_stored = column.dtype, rewritten.get(name)
        if as_stored is None:
            columns[name] = column_copies.polars(column.alias("values"), rows)
            continue
        if kind == pl.Enum:
            kind = pl.Enum(_as_quoted(kind.categories.to_list(), recoding, name))
        new = pl.Series("values", released.column(name))
        columns[name] = column_copies.polars(new.cast(kind) if as_stored else new, np.arange(len(new)))
    return pl.DataFrame(columns)


def classes(recoding: Recoding) -> NDArray[np.int64]:
    """Number the classes of the released rows by their released values: equal values, equal number."""
    columns = [treatment.values for treatment in _replaced(recoding).values()]
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        number = np.unique(number * (code.max() + 2) + code + 1, return_inverse=True)[1]
    return number[recoding.labels[recoding.kept]]

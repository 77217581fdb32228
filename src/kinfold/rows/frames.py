"""Frames of other libraries: pandas, polars and pyarrow in, the same kind out.

A pandas index is a column like any other, and where the policy does not name it `output.others` decides: refused,
dropped (a range instead) or released, as the index again. An index that the policy names becomes a column, as by
`reset_index`. Only a plain range carries nothing and is no column: an index without a name that is a `RangeIndex`, or
whole numbers from 0 up without a gap; it is counted anew in the release, for gaps would tell which records were left
out. An index without a name, or with that of a column, is called `index` (`level_0`, ... if that is taken).

A frame is copied before anything is read from it (see `Snapshot`). The engine reads that copy, and columns that are
released untouched come from it, so no later change of the caller's frame reaches a release. After planning, only the
untouched columns of the copy stay in memory.

Columns that a release does not touch have the caller's values, bit for bit; replaced ones go back into the type they
had where their values still fit it. Either way they are copies (see `column_copies`), and nothing that was stored
beside the values leaves with them: no attributes, no metadata, no categories that do not occur.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any, Literal, TypeAlias

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

Library: TypeAlias = Literal["pandas", "polars", "pyarrow"]

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


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A private copy of the columns of a frame; the levels of an index that carries something come first."""

    library: Library
    columns: Mapping[str, Any]  # series of pandas or polars, chunked arrays of pyarrow
    index: Mapping[str, Any]  # columns that were levels of the index, and the names of the levels
    required: frozenset[str] = frozenset()  # columns of a pyarrow table that are declared to have no null
    module: str = ""  # of the class of the caller's frame

    @classmethod
    def of(cls, source: Any) -> Snapshot:
        """Copy a frame and the memory of its values, which other objects may share and change."""
        frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
        native, known, required = frame.to_native(), frame.implementation, frozenset[str]()
        _check_columns(frame)
        library: Library = "pandas" if known.is_pandas() else "pyarrow" if known.is_pyarrow() else "polars"
        levels: dict[str, Any] = {}
        if library == "pandas":
            native = native.copy(deep=False)  # rows or columns added, dropped or sorted later do not reach it
            levels = dict(zip(index_names(native), native.index.names, strict=False))
            native = _opened(native)
        elif library == "pyarrow":
            required = frozenset(field.name for field in native.schema if not field.nullable)
        try:
            columns = column_copies.every(library, native)
        except UNTAKEN:  # whose message may quote a value
            raise DataError(_untaken(native)) from None
        if len({len(column) for column in columns.values()}) > 1:
            what = "the frame was changed while it was read"
            raise DataError(what, fix="let nothing change it meanwhile, or give a copy of it")
        return cls(library, columns, levels, required, type(source).__module__)

    def to_arrow(self) -> pa.Table:
        """Return the rows as Arrow."""
        return _as_arrow(self.native(self.columns), self.library, tuple(self.index))

    def native(self, columns: Mapping[str, Any]) -> Any:
        """Return a frame of the same kind as the caller's over some columns, without a copy."""
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

    def only(self, recoding: Recoding) -> Snapshot:
        """Return what a release needs: the columns that it keeps, and the types of those that it replaces."""
        columns = {}
        for name, treatment in recoding.columns.items():
            if not isinstance(treatment, Drop):
                column = self.columns[name]
                columns[name] = column if isinstance(treatment, Keep) else column_copies.without_rows(column)
        return replace(self, columns=columns)

    def recoded(
        self,
        released: pa.Table,
        recoding: Recoding,
        index: Sequence[str] = (),
        changed: Mapping[str, bool] | None = None,
    ) -> Any:
        """Return the caller's frame after a recoding whose rows are known as Arrow.

        `index` columns are the index again. Columns that were `changed` beforehand (texts that stand for a missing
        value became null, values were recoded) are not the caller's any more; False where they do not fit their type
        either.
        """
        rows, rewritten, columns = _places(recoding), _rewritten(recoding, released, changed or {}), {}
        restore = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}[self.library]
        for name, treatment in recoding.columns.items():
            if isinstance(treatment, Drop):
                continue
            column, as_stored = self.columns[name], rewritten.get(name)
            if as_stored is None:
                columns[name] = column_copies.taken(column, rows)
            else:
                columns[name] = restore(column, released.column(name), as_stored, _is_quoted(treatment))
        frame, levels = self.native(columns), [name for name in index if name in columns]
        if not levels:
            return frame
        return frame.set_index(levels).rename_axis(index=[self.index[name] for name in levels])


def to_arrow(source: Any) -> pa.Table:
    """Return a frame's rows as Arrow, its index first where that is more than a plain range."""
    frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
    _check_columns(frame)
    pandas, native = frame.implementation.is_pandas(), frame.to_native()
    return _as_arrow(_opened(native), "pandas", index_names(native)) if pandas else _as_arrow(native, "polars")


def _check_columns(frame: nw.DataFrame[Any]) -> None:
    """Refuse names that other libraries would trip over."""
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("the frame has columns whose names are not text", fix="rename them: frame.columns = [...]")
    if not frame.columns:
        raise DataError("the frame has no columns", fix="give a table with at least one column")
    check_names(frame.columns, "the frame")


def _as_arrow(native: Any, library: Library, index: Sequence[str] = ()) -> pa.Table:
    """Return a frame, whose index is columns, as Arrow."""
    if index:
        native = native.assign(**{name: _readable(native[name]) for name in index})
    try:
        table = pa.Table.from_pandas(native, preserve_index=False) if library == "pandas" else native
        table = table if isinstance(table, pa.Table) else nw.from_native(native, eager_only=True).to_arrow()
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
    if isinstance(source, Snapshot):
        return tuple(source.index)
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


def _opened(frame: Any) -> Any:
    """Return a frame of pandas whose index, where it carries something, is columns."""
    names = index_names(frame)
    return frame.reset_index(names=list(names)) if names else frame


def _readable(level: Any) -> Any:
    """Return a level of an index as texts where only pandas knows its type: it may be about to be dropped."""
    try:
        kind = pa.array(level).type
    except UNTAKEN:
        return level.astype(str)
    known = (pa.types.is_primitive, pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    single = pa.types.is_decimal(kind) or any(is_kind(kind) for is_kind in known)
    return level if single and not pa.types.is_duration(kind) else level.astype(str)


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


def _is_quoted(treatment: Keep | Replace) -> bool:
    return treatment.quotes != 0


def _as_quoted(categories: Sequence[Any], are_quoted: bool) -> list[Any]:
    """Return the categories of a column as they are written."""
    return [quoted(each) if are_quoted and isinstance(each, str) else each for each in categories]


def _pyarrow(column: pa.ChunkedArray, released: pa.ChunkedArray, as_stored: bool, are_quoted: bool) -> pa.ChunkedArray:
    if not as_stored:
        return released
    order = None
    if pa.types.is_dictionary(column.type):
        names = _as_quoted(column_copies.categories(column).to_pylist(), are_quoted)
        order = pa.array(names, column.type.value_type)
    return column_copies.into(released, column.type, order)


def _pandas(column: Any, released: pa.ChunkedArray, as_stored: bool, are_quoted: bool) -> Any:
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype) and are_quoted:
        kind = pd.CategoricalDtype(_as_quoted(kind.categories.tolist(), are_quoted), kind.ordered)
    new = _restored(released, kind) if as_stored else released.to_pandas()
    return column_copies.taken(new, np.arange(len(new)))


def _restored(column: pa.ChunkedArray, kind: Any) -> Any:
    """Return a column in the type that it had; integers and truths with empty cells in one that has them."""
    import pandas as pd

    if not column.null_count or not isinstance(kind, np.dtype) or kind.kind not in "iub":
        return column.to_pandas().astype(kind)
    nullable = {"i": "Int", "u": "UInt", "b": "boolean"}[kind.kind]
    name = nullable if kind.kind == "b" else f"{nullable}{8 * kind.itemsize}"
    return pd.Series(pd.array(column.to_pylist(), dtype=name))  # not by way of doubles


def _polars(column: Any, released: pa.ChunkedArray, as_stored: bool, are_quoted: bool) -> Any:
    """Return a column without its name: polars takes `*` and `^x$` as patterns."""
    import polars as pl

    kind = column.dtype
    if kind == pl.Enum:
        kind = pl.Enum(_as_quoted(kind.categories.to_list(), are_quoted))
    new = pl.Series("values", released)
    return column_copies.taken(new.cast(kind) if as_stored else new, np.arange(len(new)))


def classes(recoding: Recoding) -> NDArray[np.int64]:
    """Number the classes of the released rows by their released values: equal values, equal number."""
    columns = [treatment.values for treatment in _replaced(recoding).values()]
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        number = np.unique(number * (code.max() + 2) + code + 1, return_inverse=True)[1]
    return number[recoding.labels[recoding.kept]]

"""SQL for recodings: of single values before any class is formed, and of classes; and the schema of a recoded table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from kinfold.errors import DataError
from kinfold.tables.duckdb import expressions
from kinfold.tables.duckdb.columns import MAX_DECIMALS
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import Frame, quote_string
from kinfold.tables.duckdb.tallies import NUMERIC_STORAGES
from kinfold.tables.recoding import (
    Keep,
    RecodedValues,
    Recoding,
    Replace,
    Treatment,
    ValueLimits,
    ValueMap,
    ValueRecoding,
    count_decimals,
)
from kinfold.tables.schema import SECONDS_PER_DAY, Column, Schema, Storage


@dataclass(frozen=True, eq=False)
class RecodedTable:
    """A table after a recoding, the schema before it, and the values of its classes, a column for each replaced one.

    Its schema follows from these, mostly without reading its rows.
    """

    frame: Frame
    source: Schema
    treated: Mapping[str, Treatment]
    classes: Frame | None

    def schema(
        self, rows: int, describe: Callable[[Frame], Schema], describe_columns: Callable[[Sequence[str]], Schema]
    ) -> Schema:
        """Return the schema; `describe` reads a table, `describe_columns` some columns of all rows."""
        columns = {} if self.classes is None else {c.name: c for c in describe(self.classes)}
        columns |= {name: self.source[name] for name, how in self.treated.items() if isinstance(how, Keep)}
        unknown = [name for name, column in columns.items() if self._must_read_rows(column, rows)]
        columns |= {c.name: c for c in describe_columns(unknown)} if unknown else {}
        return Schema.from_columns((self._extend(columns[name], rows) for name in self.frame.names), rows)

    def _extend(self, column: Column, rows: int) -> Column:
        """Return a column of one value for each class, or of all rows, with the counts of rows."""
        nulls = min(column.nulls, rows)
        only_numbers = column.numbers == column.rows - column.nulls
        return replace(column, rows=rows, nulls=nulls, numbers=rows - nulls if only_numbers else column.numbers)

    def _must_read_rows(self, column: Column, rows: int) -> bool:
        """Whether the number of formulas can have changed."""
        kept = isinstance(self.treated[column.name], Keep)
        return bool(column.formulas) and not (kept and rows == self.source.rows)


def select_columns(db: Database, frame: Frame, names: Sequence[str]) -> Frame:
    """Copy some columns of a table."""
    select = ", ".join(f"{frame.at(name)} AS c{i}" for i, name in enumerate(names))
    return frame.select(names, db.table(f"SELECT {select} FROM {frame.table}"))


def make_treatment_sql(frame: Frame, treated: Mapping[str, Keep | Replace], schema: Schema) -> dict[str, str]:
    """Return SQL for the columns after a recoding: of the rows `s`, or of the class values `n`."""
    values, replaced = {}, [name for name, t in treated.items() if isinstance(t, Replace)]
    for name, treatment in treated.items():
        value = f"n.v{replaced.index(name)}" if isinstance(treatment, Replace) else f"s.{frame.at(name)}"
        if isinstance(treatment, Replace) and treatment.as_stored:
            value = expressions.stored_type_sql(value, treatment.values.type, frame.sql_type(name), schema[name])
        values[name] = value
    return values


def add_labels(db: Database, recoding: Recoding) -> Frame:
    """Return the tuples of a recoding with an extra column `label`, the class of each."""
    tuples: Frame = recoding.tuples
    with db.registered(pa.table({"label": recoding.labels})) as view:
        return replace(tuples, table=db.table(f"SELECT * FROM {tuples.table} POSITIONAL JOIN {view}"))


def make_class_values(recoding: Recoding) -> pa.Table:
    """Return the number of each class as `id`, and its values as v0, v1, ..., a column for each replaced one."""
    values = [t.values for t in recoding.columns.values() if isinstance(t, Replace)]
    classes = max((len(each) for each in values), default=int(recoding.labels.max(initial=0)) + 1)
    return pa.table({"id": np.arange(classes, dtype=np.int32)} | {f"v{i}": each for i, each in enumerate(values)})


def release_frame(
    frame: Frame, table: str, types: tuple[str, ...], treated: Mapping[str, Treatment], order: str
) -> Frame:
    """Return the frame of a released table."""
    labelled = frozenset(name for name, t in treated.items() if isinstance(t, Replace) and not t.as_stored)
    released = replace(frame, table=table, names=tuple(treated), types=types, order=order, labelled=labelled)
    return replace(released, orders=(), checksum=None, blanked=frozenset(), doubtful=())


def make_released_classes(db: Database, frame: Frame, recoding: Recoding, values: Mapping[str, str]) -> Frame | None:
    """Return the values of the released classes, as a table of the replaced columns."""
    if not values:
        return None
    arrow = make_class_values(recoding)
    if recoding.engine_labels is None:  # of labels that the engine holds every class is used
        arrow = arrow.take(pa.array(np.unique(recoding.labels[recoding.kept])))
    select = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values.values()))
    table = db.load(arrow, select)
    return replace(frame, table=table, names=tuple(values), types=db.types(table))


@contextmanager
def report_misfits() -> Iterator[None]:
    """Raise a `DataError` if a released value does not fit the type of its column."""
    try:
        yield
    except duckdb.ConversionException:
        raise misfit_error() from None


def misfit_error() -> DataError:
    """Return the error for a released value that does not fit the type of its column."""
    what = "a released value does not fit the type of its column"
    return DataError(what, fix="give the column a wider type, or set output.round = false")


@dataclass(frozen=True)
class RecodedValue:
    """SQL for a recoded column, for whether a cell changes, and for whether it holds each key of a map.

    Keys and limits come from a policy and are quoted.
    """

    value: str
    changed: str
    holding: tuple[str, ...] = ()
    as_stored: bool = True


def recode_values(db: Database, frame: Frame, how: Mapping[str, ValueRecoding], schema: Schema) -> RecodedValues:
    """Recode the values of some columns, and count the changes."""
    recoded = make_value_sql(db, frame, how, schema)
    counts = count_changes(db, frame, recoded)
    values = {name: recoded[name].value if name in recoded else frame.at(name) for name in frame.names}
    select = ", ".join(f"{sql} AS {frame.at(name)}" for name, sql in values.items())
    ordered = "" if frame.order == "rowid" else f" ORDER BY {frame.order}"  # rows taken from Spark have a place
    table = db.table(f"SELECT {select} FROM {frame.table}{ordered}")
    return make_recoded(replace(frame, table=table, types=db.types(table), order="rowid"), recoded, counts)


def make_value_sql(
    db: Database, frame: Frame, how: Mapping[str, ValueRecoding], schema: Schema
) -> dict[str, RecodedValue]:
    """Return the SQL for each column that is recoded."""
    return {
        name: _rename_sql(db, frame, schema[name], each)
        if isinstance(each, ValueMap)
        else _limit_sql(frame, schema[name], each)
        for name, each in how.items()
    }


def count_changes(db: Database, frame: Frame, recoded: Mapping[str, RecodedValue]) -> dict[str, list[int]]:
    """Count, for each column, the cells that change, and the cells that hold each key of its map."""
    conditions = [sql for each in recoded.values() for sql in (each.changed, *each.holding)]
    answers = db.answers([frame.count_where_sql(sql) for sql in conditions], frame.table)
    return {name: [int(next(answers)) for _ in (each.changed, *each.holding)] for name, each in recoded.items()}


def make_recoded(frame: Any, recoded: Mapping[str, RecodedValue], counts: Mapping[str, list[int]]) -> RecodedValues:
    """Return a recoded table with its counts."""
    return RecodedValues(
        frame,
        {name: each[0] for name, each in counts.items()},
        {name: each[1:].count(0) for name, each in counts.items()},
        {name: each.as_stored for name, each in recoded.items()},
    )


def _rename_sql(db: Database, frame: Frame, column: Column, how: ValueMap) -> RecodedValue:
    """Map values; the column keeps its type if every new value fits it, else it becomes text."""
    kind, text = frame.sql_type(column.name), expressions.text_sql(frame, column.name)
    holding = {old: _holds_sql(frame, column, old) for old in how.names}
    new_texts = {old: quote_string(new) if new else "NULL" for old, new in how.names.items()}
    cases = "".join(f" WHEN {holding[old]} THEN {new}" for old, new in new_texts.items())
    value = f"CASE{cases} ELSE {text} END" if cases else text
    changed = " OR ".join(holding[old] for old, new in how.names.items() if old != new) or "FALSE"
    fits = [f"TRY_CAST({quote_string(new)} AS {kind}) IS NOT NULL" for new in how.names.values() if new]
    typed = kind != "VARCHAR" and bool(db.row(f"SELECT {' AND '.join(fits) or 'TRUE'}")[0])
    as_stored = typed and "" not in how.names.values()  # not every type has a missing value
    return RecodedValue(f"CAST({value} AS {kind})" if typed else value, changed, tuple(holding.values()), as_stored)


def _holds_sql(frame: Frame, column: Column, text: str) -> str:
    """Test whether a cell holds this text, or an equal number: 3.0 equals 3 in a column of numbers."""
    kind, c = frame.sql_type(column.name), frame.at(column.name)
    same = f"{expressions.text_sql(frame, column.name)} = {quote_string(text)}"
    numeric = column.storage in NUMERIC_STORAGES
    doubles = f"TRY_CAST({c} AS DOUBLE) = TRY_CAST({quote_string(text)} AS DOUBLE)"
    if kind != "VARCHAR":  # compare doubles too, because 3.5 becomes 4 as an integer
        same += f" OR ({c} = TRY_CAST({quote_string(text)} AS {kind}){f' AND {doubles}' if numeric else ''})"
    elif numeric:
        same += f" OR ({doubles} AND {_compare_sql(c, kind, '=', text, otherwise='TRUE')})"
    return f"coalesce({same}, FALSE)"


def _compare_sql(c: str, kind: str, sign: str, text: str, *, otherwise: str) -> str:
    """Compare numbers whose doubles are equal, as decimals of 38 digits."""
    kinds = [kind] if kind != "VARCHAR" else ["DECIMAL(38,28)", "DECIMAL(38,9)"]
    value = c if kind != "VARCHAR" else f"trim({c})"
    tests = [f"TRY_CAST({value} AS {each}) {sign} TRY_CAST({quote_string(text)} AS {each})" for each in kinds]
    return f"coalesce({', '.join(tests)}, {otherwise})"


def _limit_sql(frame: Frame, column: Column, how: ValueLimits) -> RecodedValue:
    """Limit and round numbers or dates; an unchanged value keeps its text."""
    cases = [*_list_limit_cases(frame, column, how)] or [("FALSE", "NULL")]
    value = "".join(f" WHEN {when} THEN {value}" for when, value in cases)
    return RecodedValue(f"CASE{value} ELSE {frame.at(column.name)} END", " OR ".join(f"({when})" for when, _ in cases))


def _list_limit_cases(frame: Frame, column: Column, how: ValueLimits) -> Iterator[tuple[str, str]]:
    """Yield (condition, new value) in SQL; the first condition that is true applies."""
    kind, whole, c = frame.sql_type(column.name), _is_whole(column, how), frame.at(column.name)
    integer = f"CAST({f'trim({c})' if kind == 'VARCHAR' else c} AS HUGEINT)"
    x = integer if whole else expressions.number_sql(frame, column)
    present = f"{x} IS NOT NULL" if whole else f"isfinite({x})"
    for limit, sign in ((how.top, ">"), (how.bottom, "<")):
        if limit is not None:
            past = f"{x} {sign} {int(limit)}" if whole else _past_limit_sql(frame, column, sign, limit)
            yield f"{present} AND {past}", _limit_text_sql(limit, column, kind)
    if how.step is None:
        return
    write = (lambda limit: str(int(limit))) if whole else _limit_number
    ends = [None if limit is None else write(limit) for limit in (how.top, how.bottom)]
    present = " AND ".join([present, *(f"{x} <> {end}" for end in ends if end)])
    step = int(how.step) if whole else how.step
    rounded = f"round({x} / {step!r}) * {step!r}"
    if whole:  # half away from zero, as round() does
        rounded = f"sign({x}) * ((abs({x}) * 2 + {step}) // (2 * {step})) * {step}"
    for end, nearest in zip(ends, ("least", "greatest"), strict=True):
        rounded = rounded if end is None else f"{nearest}({rounded}, {end})"
    given = [how.step, *(each for each in (how.top, how.bottom) if isinstance(each, float))]
    digits = max(map(count_decimals, given))
    rounded = f"({rounded})" if whole else f"(round({rounded}, {digits}) + 0.0)"
    yield f"{present} AND {x} <> {rounded}", _number_text_sql(rounded, digits, column, kind)


def _is_whole(column: Column, how: ValueLimits) -> bool:
    """Whether a column and all of its limits are whole numbers: then exact integer arithmetic is used."""
    given = [each for each in (how.top, how.bottom, how.step) if each is not None]
    return column.storage is Storage.INTEGER and all(not isinstance(each, str) and each % 1 == 0 for each in given)


def _past_limit_sql(frame: Frame, column: Column, sign: str, limit: float | str) -> str:
    """Test whether a value is past a limit; if the doubles are equal, compare the exact values."""
    x, number = expressions.number_sql(frame, column), _limit_number(limit)
    plain = f"{x} {sign} {number}"
    if column.floating:
        return plain
    if isinstance(limit, str):
        finer = f"{expressions.exact_moment_sql(frame, column)} {sign} TIMESTAMP '{_format_moment(limit)}'"
    else:
        kind = frame.sql_type(column.name)
        finer = _compare_sql(frame.at(column.name), kind, sign, repr(float(limit)), otherwise="FALSE")
    return f"({plain} OR ({x} = {number} AND {finer}))"


def _format_moment(limit: str) -> str:
    return datetime.fromisoformat(limit).replace(tzinfo=None).isoformat(sep=" ")


def _limit_number(limit: float | str) -> str:
    if not isinstance(limit, str):
        return repr(float(limit))
    moment = datetime.fromisoformat(limit).replace(tzinfo=None)
    return repr((moment - datetime(1970, 1, 1)).total_seconds() / SECONDS_PER_DAY)


def _limit_text_sql(limit: float | str, column: Column, kind: str) -> str:
    """Write a limit as the values of its column are written."""
    if isinstance(limit, str):
        moment = f"TIMESTAMP '{_format_moment(limit)}'"
        return f"strftime({moment}, '{column.date_format}')" if kind == "VARCHAR" else f"CAST({moment} AS {kind})"
    return _number_text_sql(repr(float(limit)), count_decimals(limit), column, kind)


def _number_text_sql(number: str, digits: int, column: Column, kind: str) -> str:
    """Write a number as the values of its column are written."""
    if kind != "VARCHAR":
        return f"CAST({number} AS {kind})"
    if column.storage is Storage.INTEGER:
        return f"CAST(CAST({number} AS BIGINT) AS VARCHAR)"
    decimals = max(digits, min(column.decimals or 0, MAX_DECIMALS))
    return f"printf('%.{decimals}f', CASE WHEN {number} = 0 THEN 0.0 ELSE CAST({number} AS DOUBLE) END)"

"""SQL for values that are recoded before any class is formed: see `rows.value_recoding`.

Names and limits come from a policy and are written as quoted literals; columns are c0, c1, ... as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kinfold.rows.engines import expressions
from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.engines.type_inference import MOST_DECIMALS
from kinfold.rows.schema import Column, Schema, Storage
from kinfold.rows.value_recoding import Limited, Recoded, Renamed, ValueRecoding, decimals

NUMERIC = (Storage.INTEGER, Storage.NUMBER)


@dataclass(frozen=True)
class FreshValue:
    """SQL for a recoded column, for which cells change, and for which hold each name of a map."""

    value: str
    changed: str
    holding: tuple[str, ...] = ()
    as_stored: bool = True


def recode_values(db: Database, frame: Frame, how: Mapping[str, ValueRecoding], schema: Schema) -> Recoded:
    """Make the table in which some columns are recoded, and count what changed."""
    fresh = fresh_values(db, frame, how, schema)
    found = changes(db, frame, fresh)
    values = {name: fresh[name].value if name in fresh else frame.at(name) for name in frame.names}
    table = db.table(
        f"SELECT {', '.join(f'{sql} AS {frame.at(name)}' for name, sql in values.items())} FROM {frame.table}"
    )
    return told(replace(frame, table=table, types=db.types(table)), fresh, found)


def fresh_values(db: Database, frame: Frame, how: Mapping[str, ValueRecoding], schema: Schema) -> dict[str, FreshValue]:
    """Return what becomes of each column that is recoded."""
    return {
        name: _renamed(db, frame, schema[name], each)
        if isinstance(each, Renamed)
        else _limited(frame, schema[name], each)
        for name, each in how.items()
    }


def changes(db: Database, frame: Frame, fresh: Mapping[str, FreshValue]) -> dict[str, list[int]]:
    """Count the cells of each column that change, and those that hold each name of its map."""
    asked = [sql for each in fresh.values() for sql in (each.changed, *each.holding)]
    answers = db.answers([frame.rows_where(sql) for sql in asked], frame.table)
    return {name: [int(next(answers)) for _ in (each.changed, *each.holding)] for name, each in fresh.items()}


def told(frame: Any, fresh: Mapping[str, FreshValue], found: Mapping[str, list[int]]) -> Recoded:
    """Return a recoded table with what there is to say of it."""
    return Recoded(
        frame,
        {name: counts[0] for name, counts in found.items()},
        {name: counts[1:].count(0) for name, counts in found.items()},
        {name: each.as_stored for name, each in fresh.items()},
    )


def _renamed(db: Database, frame: Frame, column: Column, how: Renamed) -> FreshValue:
    """A column after a map: in the type that it had where every new name fits it, else as text."""
    kind, text = frame.type_of(column.name), expressions.text(frame, column.name)
    holding = {old: _holds(frame, column, old) for old in how.names}
    cases = "".join(f" WHEN {holding[old]} THEN {string(new) if new else 'NULL'}" for old, new in how.names.items())
    value = f"CASE{cases} ELSE {text} END" if cases else text
    changed = " OR ".join(holding[old] for old, new in how.names.items() if old != new) or "FALSE"
    fits = [f"TRY_CAST({string(new)} AS {kind}) IS NOT NULL" for new in how.names.values() if new]
    typed = kind != "VARCHAR" and bool(db.row(f"SELECT {' AND '.join(fits) or 'TRUE'}")[0])
    as_stored = typed and "" not in how.names.values()  # not every type has a missing value
    return FreshValue(f"CAST({value} AS {kind})" if typed else value, changed, tuple(holding.values()), as_stored)


def _holds(frame: Frame, column: Column, text: str) -> str:
    """SQL for whether a cell holds a value of this text, or equal to it: 3.0 is 3 in a column of numbers."""
    kind, c = frame.type_of(column.name), frame.at(column.name)
    same, numeric = f"{expressions.text(frame, column.name)} = {string(text)}", column.storage in NUMERIC
    doubles = f"TRY_CAST({c} AS DOUBLE) = TRY_CAST({string(text)} AS DOUBLE)"
    if kind != "VARCHAR":  # 3.5 becomes 4 as a whole number
        same += f" OR ({c} = TRY_CAST({string(text)} AS {kind}){f' AND {doubles}' if numeric else ''})"
    elif numeric:
        same += f" OR ({doubles} AND {_compared(c, kind, '=', text, otherwise='TRUE')})"
    return f"coalesce({same}, FALSE)"


def _compared(c: str, kind: str, sign: str, text: str, *, otherwise: str) -> str:
    """SQL that compares numbers whose doubles are equal, in decimals as wide as the database has."""
    kinds = [kind] if kind != "VARCHAR" else ["DECIMAL(38,28)", "DECIMAL(38,9)"]
    value = c if kind != "VARCHAR" else f"trim({c})"
    tests = [f"TRY_CAST({value} AS {each}) {sign} TRY_CAST({string(text)} AS {each})" for each in kinds]
    return f"coalesce({', '.join(tests)}, {otherwise})"


def _limited(frame: Frame, column: Column, how: Limited) -> FreshValue:
    """A column of numbers or dates between its limits, in steps; a value that stays keeps its text."""
    cases = [*_cases(frame, column, how)] or [("FALSE", "NULL")]
    value = "".join(f" WHEN {when} THEN {value}" for when, value in cases)
    return FreshValue(f"CASE{value} ELSE {frame.at(column.name)} END", " OR ".join(f"({when})" for when, _ in cases))


def _cases(frame: Frame, column: Column, how: Limited) -> Iterator[tuple[str, str]]:
    """When a value is changed, and what it becomes; the first case that fits."""
    kind, whole = frame.type_of(column.name), _is_whole(column, how)
    x = _whole_number(frame, column.name) if whole else expressions.number(frame, column)
    there = f"{x} IS NOT NULL" if whole else f"isfinite({x})"
    for limit, sign in ((how.top, ">"), (how.bottom, "<")):
        if limit is not None:
            beyond = f"{x} {sign} {int(limit)}" if whole else _beyond(frame, column, sign, limit)
            yield f"{there} AND {beyond}", _written(limit, column, kind)
    if how.step is None:
        return
    ends = [None if each is None else str(int(each)) if whole else _as_number(each) for each in (how.top, how.bottom)]
    there = " AND ".join([there, *(f"{x} <> {end}" for end in ends if end)])
    step = int(how.step) if whole else how.step
    rounded = f"round({x} / {step!r}) * {step!r}"
    if whole:  # halves away from zero, too
        rounded = f"sign({x}) * ((abs({x}) * 2 + {step}) // (2 * {step})) * {step}"
    for end, nearest in zip(ends, ("least", "greatest"), strict=True):
        rounded = rounded if end is None else f"{nearest}({rounded}, {end})"
    digits = max(decimals(how.step), *(decimals(each) for each in (how.top, how.bottom) if isinstance(each, float)), 0)
    rounded = f"({rounded})" if whole else f"(round({rounded}, {digits}) + 0.0)"
    yield f"{there} AND {x} <> {rounded}", _computed(rounded, digits, column, kind)


def _is_whole(column: Column, how: Limited) -> bool:
    """Whether a column and all of its limits are whole numbers: these are compared and rounded digit by digit."""
    given = [each for each in (how.top, how.bottom, how.step) if each is not None]
    return column.storage is Storage.INTEGER and all(not isinstance(each, str) and each % 1 == 0 for each in given)


def _whole_number(frame: Frame, name: str) -> str:
    c = frame.at(name)
    return f"CAST({f'trim({c})' if frame.type_of(name) == 'VARCHAR' else c} AS HUGEINT)"


def _beyond(frame: Frame, column: Column, sign: str, limit: float | str) -> str:
    """SQL for whether a value is beyond a limit; where doubles are equal, the values themselves are compared."""
    x, number = expressions.number(frame, column), _as_number(limit)
    plain = f"{x} {sign} {number}"
    if column.floating:
        return plain
    if isinstance(limit, str):
        finer = f"{expressions.exact_moment(frame, column)} {sign} TIMESTAMP '{_moment(limit)}'"
    else:
        kind = frame.type_of(column.name)
        finer = _compared(frame.at(column.name), kind, sign, repr(float(limit)), otherwise="FALSE")
    return f"({plain} OR ({x} = {number} AND {finer}))"


def _moment(limit: str) -> str:
    return datetime.fromisoformat(limit).replace(tzinfo=None).isoformat(sep=" ")


def _as_number(limit: float | str) -> str:
    if not isinstance(limit, str):
        return repr(float(limit))
    moment = datetime.fromisoformat(limit).replace(tzinfo=None)
    return repr((moment - datetime(1970, 1, 1)).total_seconds() / 86400)


def _written(limit: float | str, column: Column, kind: str) -> str:
    """SQL for a limit the way that the values of its column are written."""
    if isinstance(limit, str):
        moment = f"TIMESTAMP '{_moment(limit)}'"
        return f"strftime({moment}, '{column.date_format}')" if kind == "VARCHAR" else f"CAST({moment} AS {kind})"
    return _computed(repr(float(limit)), decimals(limit), column, kind)


def _computed(number: str, digits: int, column: Column, kind: str) -> str:
    """SQL for a number the way that the values of its column are written."""
    if kind != "VARCHAR":
        return f"CAST({number} AS {kind})"
    if column.storage is Storage.INTEGER:
        return f"CAST(CAST({number} AS BIGINT) AS VARCHAR)"
    shown = max(digits, min(column.decimals or 0, MOST_DECIMALS))
    return f"printf('%.{shown}f', CASE WHEN {number} = 0 THEN 0.0 ELSE CAST({number} AS DOUBLE) END)"

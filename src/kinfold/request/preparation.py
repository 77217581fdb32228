"""Preparation: single values recoded as the policy says, before a table is bound: map, then top, bottom and round_to.

What follows knows the recoded values only: orders, hierarchies, models and the release are about them. Losses are
measured against the table as it came, and edit rules are counted on it after `map` alone, by whose names they speak.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.request.binding import bind
from kinfold.request.policy import ColumnPolicy, Policy
from kinfold.rows.engines import Engine
from kinfold.rows.schema import Column, Schema, Storage
from kinfold.rows.value_recoding import Limited, Recoded, Renamed, decimals

MOST_DECIMALS = 9  # of a step or a limit
KEYS = ("top", "bottom", "round_to")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table after its values are recoded: the rows, those after `map` alone, and what there is to say."""

    frame: Any
    mapped: Any
    changed: Mapping[str, bool] = field(default_factory=dict)  # by column: whether its values still fit its type
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()  # for a recipient: that values were recoded, and nothing about what they were


def prepare(engine: Engine, original: Any, policy: Policy, index: Collection[str] = ()) -> Prepared:
    """Recode the values of a table, or raise with every problem of the policy."""
    schema = engine.schema(original)
    read = schema.notes  # of a file some of whose cells are hidden, say
    asked = {name: column for name, column in policy.columns.items() if name in schema}
    names = {name: Renamed(column.map) for name, column in asked.items() if column.map}
    first = engine.recode(original, names, schema) if names else Recoded(original, {})
    schema = engine.schema(first.frame)
    limits = {name: column for name, column in asked.items() if any(_given(column).values())}
    problems = [problem for name, column in limits.items() for problem in _misfits(schema[name], column)]
    if problems:
        raise PolicyError([*problems, *_others(policy, schema, index)])
    how = {name: Limited(column.bottom, column.top, column.round_to) for name, column in limits.items()}
    second = engine.recode(first.frame, how, schema) if how else Recoded(first.frame, {})
    recoded = [name for name in asked if name in {**names, **how}]
    told = tuple(f"'{name}': {in_words(asked[name])}" for name in recoded)
    notes = tuple(f"'{name}': {_counted(asked[name], name, first, second)}" for name in recoded)
    absent = tuple(_absent(name, first.absent[name], len(names[name].names)) for name in names if first.absent[name])
    return Prepared(second.frame, first.frame, {**second.as_stored, **first.as_stored}, (*read, *notes, *absent), told)


def in_words(column: ColumnPolicy) -> str:
    """Say how single values of a column are recoded, as a recipient may know it; nothing where they are not.

    How many values a map names or changes stays here: beside the blanks of a release it tells what these stand for.

    >>> in_words(ColumnPolicy(role="quasi-identifier", top=85, round_to=5))
    '85 and above are shown as 85, others in multiples of 5'
    """
    return ", ".join((["some values are shown as others"] if column.map else []) + _limits(column))


def _counted(column: ColumnPolicy, name: str, first: Recoded, second: Recoded) -> str:
    """Say how single values of a column were recoded, and how many: for the holder of the table."""
    named, parts = column.map or {}, _limits(column)
    if named:
        old, new = len(named), len({*named.values()})
        parts = [f"{old} value{'s are' if old > 1 else ' is'} shown as {new} other{'s' if new > 1 else ''}", *parts]
    changed = first.changed.get(name, 0) + second.changed.get(name, 0)
    return f"{', '.join(parts)} ({changed:,} value{'' if changed == 1 else 's'} changed)"


def _limits(column: ColumnPolicy) -> list[str]:
    parts = []
    for limit, more, later in ((column.top, "above", "later"), (column.bottom, "below", "earlier")):
        if limit is not None:
            beyond = later if isinstance(limit, str) else more
            parts.append(f"{_number(limit)} and {beyond} are shown as {_number(limit)}")
    if column.round_to is not None:
        others = "others" if parts or column.map else "shown"
        parts.append(f"{others} in multiples of {_number(column.round_to)}")
    return parts


def _number(limit: float | str) -> str:
    return limit if isinstance(limit, str) else f"{limit:.15g}"


def _absent(name: str, absent: int, names: int) -> str:
    return f"'{name}': {absent} of the {names} values that its map names do not occur"


def _given(column: ColumnPolicy) -> dict[str, bool]:
    return {key: getattr(column, key) is not None for key in KEYS}


def _others(policy: Policy, schema: Schema, index: Collection[str]) -> tuple[Problem, ...]:
    """Return what else is wrong with a policy, so that all of it is said at once."""
    try:
        bind(policy, schema, index=index)
    except PolicyError as error:
        return error.problems
    except DataError:
        return ()
    return ()


def _misfits(column: Column, asked: ColumnPolicy) -> Iterator[Problem]:
    where, keys = f"columns.{column.name}", [key for key, given in _given(asked).items() if given]
    if column.storage in (Storage.INTEGER, Storage.NUMBER):
        yield from _number_misfits(column, asked, where)
    elif column.storage in (Storage.DATE, Storage.TIMESTAMP) or column.date_format:
        yield from _date_misfits(asked, where)
    elif column.distinct:
        what = f"{where}: {' and '.join(keys)} {'is' if len(keys) == 1 else 'are'} for numbers and dates"
        yield Problem(f"{what}, and this column holds neither", "leave it out, or use map")


def _number_misfits(column: Column, asked: ColumnPolicy, where: str) -> Iterator[Problem]:
    limits = {key: getattr(asked, key) for key, given in _given(asked).items() if given}
    for key, limit in limits.items():
        if isinstance(limit, str):
            yield Problem(f"{where}.{key}: a text, and the column holds numbers", f"write a number: {key} = 85")
        elif column.storage is Storage.INTEGER and limit % 1:
            yield Problem(f"{where}.{key}: not a whole number, and the column holds whole numbers", "write a whole one")
        elif decimals(limit) > MOST_DECIMALS:
            yield Problem(f"{where}.{key}: more than {MOST_DECIMALS} decimals", "write fewer")
    ends = (asked.bottom, asked.top)
    if isinstance(ends[0], float) and isinstance(ends[1], float) and ends[0] > ends[1]:
        yield Problem(f"{where}: bottom is above top", "exchange them")


def _date_misfits(asked: ColumnPolicy, where: str) -> Iterator[Problem]:
    if asked.round_to is not None:
        yield Problem(f"{where}: round_to is for numbers, and the column holds dates", "use a hierarchy of dates")
    read = {}
    for key in ("bottom", "top"):
        if (limit := getattr(asked, key)) is not None and (moment := _moment(limit)) is None:
            yield Problem(f"{where}.{key}: not a date, and the column holds dates", f'write it as {key} = "2024-12-31"')
        elif limit is not None:
            read[key] = moment
    if len(read) > 1 and read["bottom"] > read["top"]:  # type: ignore[operator]
        yield Problem(f"{where}: bottom is above top", "exchange them")


def _moment(limit: float | str) -> datetime | None:
    try:
        return datetime.fromisoformat(str(limit)).replace(tzinfo=None) if isinstance(limit, str) else None
    except ValueError:
        return None

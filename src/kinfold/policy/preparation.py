"""Preparation: recode single values before a table is bound: first map, then top, bottom and round_to.

All later steps see the recoded values: orders, hierarchies, models and the release. Losses are measured against the
original table. Edit rules are counted on the table after `map` alone, because they use its new names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kinfold.errors import DataError, PolicyError, Problem
from kinfold.policy.binding import bind
from kinfold.policy.model import ColumnPolicy, Policy
from kinfold.policy.perturbation import KIND_TEXTS
from kinfold.tables.engine import Engine
from kinfold.tables.recoding import RecodedValues, ValueLimits, ValueMap, count_decimals
from kinfold.tables.schema import Column, Schema, Storage

MAX_LIMIT_DECIMALS = 9  # of top, bottom and round_to
LIMIT_KEYS = ("top", "bottom", "round_to")


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A recoded table: its rows, the rows after `map` alone, and notes."""

    frame: Any
    mapped: Any
    changed: Mapping[str, bool] = field(default_factory=dict)  # by column: whether its values still fit its type
    notes: tuple[str, ...] = ()
    public_notes: tuple[str, ...] = ()  # for a recipient: without original values and counts
    unperturbed: Any = None  # the rows before columns were perturbed, if any are


def prepare(engine: Engine, original: Any, policy: Policy, index: Collection[str] = ()) -> PreparedTable:
    """Recode the values of a table; raise with all problems of the policy."""
    schema = engine.schema(original)
    policy = policy.for_columns(schema.names)
    read_notes = schema.notes  # such as hidden cells of a workbook
    columns = {name: column for name, column in policy.columns.items() if name in schema}
    for name, column in columns.items():
        if column.regrouped:  # its weights are rounded after the method, as means of classes
            columns[name] = column.model_copy(update={"round_to": None})
    names = {name: ValueMap(column.map) for name, column in columns.items() if column.map}
    first = engine.recode(original, names, schema) if names else RecodedValues(original, {})
    schema = engine.schema(first.frame)
    limits = {name: column for name, column in columns.items() if _given_limits(column)}
    problems = [problem for name, column in limits.items() for problem in _check_limits(schema[name], column)]
    if problems:
        raise PolicyError([*problems, *_find_other_problems(policy, schema, index)])
    steps = {name: steps for name, column in limits.items() if (steps := make_limits(column)) is not None}
    second = engine.recode(first.frame, steps, schema) if steps else RecodedValues(first.frame, {})
    recoded = [name for name in columns if name in {**names, **steps}]
    public_notes = tuple(f"'{name}': {describe_recoding(columns[name])}" for name in recoded)
    notes = tuple(f"'{name}': {_describe_counts(columns[name], name, first, second)}" for name in recoded)
    absent = tuple(
        f"'{name}': {unused} of the {len(names[name].names)} values that its map names do not occur"
        for name, unused in first.unused_names.items()
        if name in names and unused
    )
    changed = {**second.as_stored, **first.as_stored}
    return PreparedTable(second.frame, first.frame, changed, (*read_notes, *notes, *absent), public_notes)


def make_limits(column: ColumnPolicy) -> ValueLimits | None:
    """Return the limits and the step of a column, or None if it has none."""
    return ValueLimits(column.bottom, column.top, column.round_to) if _given_limits(column) else None


def describe_recoding(column: ColumnPolicy) -> str:
    """Describe how values of a column are recoded, for a recipient; empty if they are not.

    Counts of mapped values are left out: together with blanks in a release they can reveal what the blanks hide.

    >>> describe_recoding(ColumnPolicy(role="quasi-identifier", top=85, round_to=5))
    '85 and above are shown as 85, others in multiples of 5'
    """
    mapped = ["some values are shown as others"] if column.map else []
    perturbed = [KIND_TEXTS[column.perturb.kind]] if column.perturb else []
    return ", ".join(mapped + _describe_limits(column) + perturbed)


def _describe_counts(column: ColumnPolicy, name: str, first: RecodedValues, second: RecodedValues) -> str:
    """Describe how values of a column were recoded, and how many, for the holder."""
    value_map, parts = column.map or {}, _describe_limits(column)
    if value_map:
        old, new = len(value_map), len({*value_map.values()})
        parts = [f"{old} value{'s are' if old > 1 else ' is'} shown as {new} other{'s' if new > 1 else ''}", *parts]
    changed = first.changed.get(name, 0) + second.changed.get(name, 0)
    return f"{', '.join(parts)} ({changed:,} value{'' if changed == 1 else 's'} changed)"


def _describe_limits(column: ColumnPolicy) -> list[str]:
    parts = []
    for limit, more, later in ((column.top, "above", "later"), (column.bottom, "below", "earlier")):
        if limit is not None:
            direction = later if isinstance(limit, str) else more
            parts.append(f"{_format_limit(limit)} and {direction} are shown as {_format_limit(limit)}")
    if column.round_to is not None:
        others = "others" if parts or column.map else "shown"
        parts.append(f"{others} in multiples of {_format_limit(column.round_to)}")
    return parts


def _format_limit(limit: float | str) -> str:
    return limit if isinstance(limit, str) else f"{limit:.15g}"


def _given_limits(column: ColumnPolicy) -> dict[str, Any]:
    return {key: limit for key in LIMIT_KEYS if (limit := getattr(column, key)) is not None}


def _find_other_problems(policy: Policy, schema: Schema, index: Collection[str]) -> tuple[Problem, ...]:
    """Return the other problems of a policy, so that all are reported together."""
    try:
        bind(policy, schema, index=index)
    except PolicyError as error:
        return error.problems
    except DataError:
        pass
    return ()


def _check_limits(column: Column, request: ColumnPolicy) -> Iterator[Problem]:
    where, keys = f"columns.{column.name}", [*_given_limits(request)]
    if column.storage in (Storage.INTEGER, Storage.NUMBER):
        yield from _check_number_limits(column, request, where)
    elif column.storage in (Storage.DATE, Storage.TIMESTAMP) or column.date_format:
        yield from _check_date_limits(request, where)
    elif column.distinct:
        what = f"{where}: {' and '.join(keys)} {'is' if len(keys) == 1 else 'are'} for numbers and dates"
        yield Problem(f"{what}, but this column holds neither", "leave it out, or use map")


def _check_number_limits(column: Column, request: ColumnPolicy, where: str) -> Iterator[Problem]:
    for key, limit in _given_limits(request).items():
        if isinstance(limit, str):
            yield Problem(f"{where}.{key}: a text, but the column holds numbers", f"write a number: {key} = 85")
        elif column.storage is Storage.INTEGER and limit % 1:
            what = f"{where}.{key}: not a whole number, but the column holds whole numbers"
            yield Problem(what, "write a whole number")
        elif count_decimals(limit) > MAX_LIMIT_DECIMALS:
            yield Problem(f"{where}.{key}: more than {MAX_LIMIT_DECIMALS} decimals", "write fewer decimals")
    ends = (request.bottom, request.top)
    if isinstance(ends[0], float) and isinstance(ends[1], float) and ends[0] > ends[1]:
        yield Problem(f"{where}: bottom is above top", "exchange them")


def _check_date_limits(request: ColumnPolicy, where: str) -> Iterator[Problem]:
    if request.round_to is not None:
        yield Problem(f"{where}: round_to is for numbers, but the column holds dates", "use a hierarchy of dates")
    moments = {}
    for key in ("bottom", "top"):
        if (limit := getattr(request, key)) is None:
            continue
        try:
            moments[key] = datetime.fromisoformat(limit if isinstance(limit, str) else "").replace(tzinfo=None)
        except ValueError:
            yield Problem(f"{where}.{key}: not a date, but the column holds dates", f'write it as {key} = "2024-12-31"')
    if len(moments) > 1 and moments["bottom"] > moments["top"]:
        yield Problem(f"{where}: bottom is above top", "exchange them")

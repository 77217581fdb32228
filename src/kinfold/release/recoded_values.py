"""Recoded values: a release holds none that its policy says is shown as another, where a recipient can tell.

map             no value that the map names, unless another one becomes it
top, bottom     nothing beyond a limit; an average of limited values is within the limits, one that keeps the
                variance need not be
round_to        multiples alone, but for averages
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kinfold.errors import Problem, plural
from kinfold.models.verdict import Verdict
from kinfold.request.policy import ColumnPolicy, Policy
from kinfold.rows.engines import Engine
from kinfold.rows.schema import Column, Kind, Role, Storage
from kinfold.rows.value_recoding import Limited, Renamed, ValueRecoding


def with_recoded_values(verdict: Verdict, engine: Engine, frame: Any, policy: Policy) -> Verdict:
    """Add values that should have become others to what is wrong with a table."""
    schema = engine.schema(frame)
    found = []
    for name, asked in policy.columns.items():
        if name in schema:
            averaged = asked.role is Role.QUASI
            for key, how in _recodings(asked, schema[name], averaged, policy.output.preserve == "variance"):
                changed = engine.recode(frame, {name: how}, schema).changed[name]
                what = f"column '{name}' holds {plural(changed, 'value')} that columns.{name}.{key} says is shown as"
                found += [Problem(f"{what} another", "do not use this file")] if changed else []
    return replace(verdict, problems=(*verdict.problems, *found))


def _recodings(
    asked: ColumnPolicy, column: Column, averaged: bool, stretched: bool
) -> Iterator[tuple[str, ValueRecoding]]:
    """Yield what can be told of a released column, by the key of the policy."""
    names = asked.map or {}
    gone = {old: new for old, new in names.items() if old not in {*names.values()}}
    if gone:
        yield "map", Renamed(gone)
    if column.storage.kind is Kind.NOMINAL or (averaged and stretched):
        return  # labels, or averages beyond the limits
    whole = column.storage is Storage.INTEGER
    if (top := _limit(asked.top, column)) is not None:
        yield "top", Limited(top=math.floor(top) if whole else top)  # type: ignore[arg-type]
    if (bottom := _limit(asked.bottom, column)) is not None:
        yield "bottom", Limited(bottom=math.ceil(bottom) if whole else bottom)  # type: ignore[arg-type]
    if asked.round_to is not None and column.storage.kind is Kind.CONTINUOUS and not averaged:
        yield "round_to", Limited(bottom, top, asked.round_to)


def _limit(asked: float | str | None, column: Column) -> float | str | None:
    """Return a limit if it is one of such a column: a text of dates, else a number."""
    return asked if isinstance(asked, str) == (column.storage.kind is Kind.DATE) else None

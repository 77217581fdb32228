"""Oddities: texts of a column that are not what they seem, counted and told without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kinfold.rows.engines import Engine
from kinfold.rows.formulas import is_formula
from kinfold.rows.lookalikes import look_alikes as alike_in
from kinfold.rows.schema import Column
from kinfold.rows.tally import Tally


def look_alikes(engine: Engine, frame: Any, names: Sequence[str]) -> Iterator[str]:
    """Say of columns that a table has in how far their values look alike."""
    for name in names:
        if name in engine.schema(frame):
            yield from alike_told(name, _texts(engine, frame, name))


def formulas(engine: Engine, frame: Any, safe: bool) -> Iterator[str]:
    """Say what a spreadsheet may run of a table; `safe` means that it is quoted when it is written."""
    for column in engine.schema(frame):
        if is_formula(column.name):
            yield name_told(column.name)
        yield from formulas_told(column, safe=safe)


def _texts(engine: Engine, frame: Any, name: str) -> dict[str, int]:
    return texts_in(engine.tally(frame, [name], {}), name)


def texts_in(tally: Tally, name: str) -> dict[str, int]:
    """Return the texts of a column by which rows were counted, and how many records hold each."""
    pairs = zip(tally.keys[name].tolist(), tally.sizes.tolist(), strict=True)
    return {value: count for value, count in pairs if isinstance(value, str)}


def alike_told(name: str, texts: Mapping[str, int]) -> Iterator[str]:
    """Say how many values of a column look alike."""
    found = alike_in(texts)
    if found.groups:
        groups = "1 group" if found.groups == 1 else f"{found.groups:,} groups"
        yield (
            f"'{name}': {found.values:,} values in {groups} differ only in case, spaces or characters without a width "
            f"({found.records:,} records); each counts as a value of its own, which makes l and t look better than "
            "they are: make them one in the source"
        )


def formulas_told(column: Column, *, safe: bool = False) -> Iterator[str]:
    """Say how many cells of a column a spreadsheet may run."""
    if column.formulas:
        many = "1 cell starts" if column.formulas == 1 else f"{column.formulas:,} cells start"
        after = "an apostrophe is written before each" if safe else "output.spreadsheet_safe = true quotes them"
        yield f"'{column.name}': {many} like a formula (=, +, -, @), which a spreadsheet may run; {after}"


def name_told(name: str) -> str:
    """Say that the name of a column looks like a formula."""
    return (
        f"the name of the column '{name}' starts like a formula, which a spreadsheet may run: rename it in the source"
    )

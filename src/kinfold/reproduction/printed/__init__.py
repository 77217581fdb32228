"""What the papers print, as data: one CSV file a table, as it stands there, and one of single values a paper."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Any, cast

from kinfold.reproduction.expectation import Due, Expectation, Key


@cache
def table(paper: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a printed table, all cells as text."""
    text = files("kinfold.reproduction").joinpath("printed", paper, f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def columns(paper: str, name: str) -> list[str]:
    """Return the names of the columns of a printed table."""
    return list(table(paper, name)[0])


def rows(paper: str, name: str) -> list[tuple[str, ...]]:
    """Return the cells of a printed table, row by row."""
    return [tuple(row.values()) for row in table(paper, name)]


def cells(paper: str, name: str, label: str) -> dict[Key, str]:
    """Return a printed table as cells; `label` makes the name of a row, its columns are not among the cells.

    >>> cells("003", "table_3", "{file}")[("MM1", "W2")]
    '0.5'
    """
    made: dict[Key, str] = {}
    for row in table(paper, name):
        head = [column for column in row if f"{{{column}}}" in label]
        made |= {(label.format(**row), column): cell for column, cell in row.items() if column not in head}
    return made


def examples(paper: str, place: str) -> dict[Key, Expectation]:
    """Return the single values that a paper states at one place."""
    return {(row["row"], row["column"]): _expectation(row) for row in table(paper, "examples") if row["place"] == place}


def value(paper: str, place: str, row: str, column: str = "value") -> float:
    """Return one number as it is printed."""
    return float(examples(paper, place)[(row, column)].printed)


def _expectation(row: dict[str, Any]) -> Expectation:
    return Expectation(row["printed"], cast("Due", row["due"] or "match"), row["reading"] or None, row["why"])

"""The options that say how a table is written: the same on every command that reads one, and the keys of `[source]`.

A table is named by its path, or by the address of a database, whose rows `--table` or `--query` name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfold.cli.gathered_options import signed
from kinfold.cli.terminal import errors
from kinfold.rows.databases.address import DatabaseAddress, located, narrowed

PANEL, ROWS = "How the table is written", "Which rows of a database"
TABLES = ("data", "original", "released", "population")  # parameters of commands that name a table

if TYPE_CHECKING:
    TableSource = Path | DatabaseAddress
else:
    TableSource = Path  # as the help calls it


def _option(kind: Any, help_: str, panel: str = PANEL) -> Any:
    return Annotated[kind | None, typer.Option(help=help_, show_default=False, rich_help_panel=panel)]


def as_named(text: str) -> str:
    """Take the name of a table as it is: a path type would take an address apart."""
    return text


OPTIONS = {
    "na": _option(list[str], "Words for missing: NA,n/a"),
    "decimal": _option(str, "Decimal mark: , or ."),
    "thousands": _option(str, "Mark between thousands."),
    "dates": _option(list[str], "How dates are written: %d.%m.%Y"),
    "encoding": _option(str, "utf-8, latin-1, cp1252, utf-16, ..."),
    "separator": _option(str, "What stands between fields: ; or tab"),
    "sheet": _option(str, "Sheet of a workbook: its name, or its number."),
    "header": _option(int, "Line of the column names; 0: there is none."),
    "skip": _option(int, "Lines above the table."),
    "parts": _option(bool, "The table is a folder, or a pattern of files."),
}
CHOICES = {
    "table": _option(str, "Table of a database: name, or schema.name.", ROWS),
    "query": _option(str, "Query to a database: one SELECT.", ROWS),
}


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `[source]`; it gets them as `source`, by their dotted keys.

    What names a table becomes a path or an address; the first one is what `--table` and `--query` are about.
    """

    @wraps(command)
    def wrapped(**given: Any) -> None:
        source = {f"source.{key}": _read(key, given.pop(key)) for key in OPTIONS}
        table, query = (given.pop(key) for key in CHOICES)
        with errors():
            named = {key: located(given[key]) for key in TABLES if given.get(key) is not None}
            for first in [*named][:1]:  # a command may have none
                named[first] = narrowed(named[first], table, query)
        command(**given | named, source=source)

    return signed(wrapped, command, ("source",), {**OPTIONS, **CHOICES})


def keywords(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, by the names of their keys."""
    return {key.removeprefix("source."): value for key, value in source.items() if value is not None}


def _read(key: str, value: Any) -> Any:
    if key == "na" and value is not None:
        return [word for given in value for word in given.split(",")]
    if key == "sheet" and value is not None and value.isdigit():
        return int(value)
    return value if key == "header" else value or None

"""What a database is asked for, and what will come: the same whatever the system."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kinfold.errors import PolicyError

COMMENTS = re.compile(r"\s+|--[^\n]*(\n|$)|/\*.*?\*/|\(", re.DOTALL)
READS = re.compile(r"(?i)(select|with|values|table)\b")


class Selected(NamedTuple):
    """A column that comes: its own name, and whether its text is a decimal number, of how many digits and decimals."""

    name: str
    decimal: bool = False
    digits: tuple[int, int] | None = None
    written: bool = False  # its text is all there is: numbers and dates are to be found in it


@dataclass(frozen=True)
class Selection:
    """A query that gives the rows as c0, c1, ...; what these are; how the driver is to bring them."""

    sql: str
    columns: tuple[Selected, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    example: bool = False  # the first row is none: it shows the driver what the columns are


def inner_query(query: str | None) -> str:
    """Return a query that can stand inside another one, as far as its beginning tells."""
    if query is None:
        what = "the address names a database, but no rows in it"
        raise PolicyError(what, fix="add ?table=NAME to it, or say --table NAME or --query 'SELECT ...'")
    start = 0
    while found := COMMENTS.match(query, start):
        start = found.end()
    if not READS.match(query, start):
        raise PolicyError("the query is no SELECT: it would write, or do something else", fix="give one SELECT")
    return query

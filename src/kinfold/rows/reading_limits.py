"""Bounds on a table that is read for somebody: how far a packed file may expand, and how many columns there may be.

A file that is a thousandth of what it holds is made to fill a memory or a disk. A workbook is held in memory as it is
read, so one that expands like no sheet of a real table is refused wherever it is read. Other bounds are set where files
come from others, as in the studio.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from kinfold.errors import DataError

MB, GB = 10**6, 10**9


@dataclass(frozen=True)
class Bounds:
    """What may be read; None is no bound."""

    expanded: int | None = None  # bytes that a packed file holds
    columns: int | None = None


ANY = Bounds()
_bounds: ContextVar[Bounds] = ContextVar("bounds", default=ANY)


@contextmanager
def bounded(bounds: Bounds) -> Iterator[None]:
    """Bound what is read for as long as the `with` block lasts."""
    before = _bounds.set(bounds)
    try:
        yield
    finally:
        _bounds.reset(before)


def check_expanded(size: int, name: str, most: int | None = None) -> None:
    """Refuse a file that holds more than `most`, or more than is allowed here."""
    allowed = [each for each in (most, _bounds.get().expanded) if each is not None]
    if allowed and size > min(allowed):
        told = f"{min(allowed) / GB:g} GB" if min(allowed) >= GB else f"{min(allowed) // MB:,} MB"
        what = f"'{name}' expands to more than {told}, which is more than is read of a packed file"
        raise DataError(what, fix="check where it comes from; save the table as plain CSV or Parquet")


def check_columns(count: int, where: str) -> None:
    """Refuse a table of more columns than is allowed here."""
    most = _bounds.get().columns
    if most is not None and count > most:
        what = f"{where} has {count:,} columns, and {most:,} are read here"
        raise DataError(what, fix="leave out the columns that are not needed")

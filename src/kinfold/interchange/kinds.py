"""What kind of column one of ARX's is here: its data type, unless its values could not be handled as that kind.

A generalizing method looks values up in their hierarchy as they are written. So numbers and dates are declared as such
only where every value is written in the one way in which kinfold writes it (`39`, `1.5`, `2024-12-31`); otherwise the
column is nominal, which takes any text. Missing values are empty fields.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime

from kinfold.interchange.project import Attribute
from kinfold.rows.schema import Kind

WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,14})")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
DAYS = {"yyyy-MM-dd": "%Y-%m-%d", "yyyy/MM/dd": "%Y/%m/%d", "dd.MM.yyyy": "%d.%m.%Y"}  # which no other can be taken for


@dataclass(frozen=True)
class Judged:
    """A kind, the order of an ordinal column, and why it is not what ARX says."""

    kind: Kind
    order: tuple[str, ...] = ()
    note: str = ""


def judge(attribute: Attribute, values: Collection[str], *, looked_up: bool, ordered: bool = False) -> Judged:
    """Return the kind of a column; `looked_up` in a hierarchy as text, `ordered` where a promise needs an order."""
    held = sorted({value for value in values if value})
    if attribute.datatype == "Ordinal" or (ordered and attribute.datatype == "String"):
        return Judged(Kind.ORDINAL, _order(attribute, held)) if held else Judged(Kind.NOMINAL)
    if attribute.datatype == "String":
        return Judged(Kind.NOMINAL)
    kind = Kind.DATE if attribute.datatype == "Date" else Kind.CONTINUOUS
    if held and all(_written(attribute, held, looked_up)):
        return Judged(kind)
    note = f"'{attribute.name}' is {attribute.datatype} in ARX, but not every value is written as one"
    if ordered:
        return Judged(Kind.ORDINAL, tuple(sorted(held, key=_place)), f"{note}: ordinal here, numbers first, then texts")
    return Judged(Kind.NOMINAL, note=f"{note}: nominal here")


def _place(value: str) -> tuple[bool, float, str]:
    number = NUMBER.fullmatch(value) is not None
    return (not number, float(value) if number else 0.0, value)


def _order(attribute: Attribute, held: list[str]) -> tuple[str, ...]:
    """The categories that occur, as ARX orders them: as listed, then the rest (null among them) by their text."""
    occurring = set(held)
    listed = [value for value in attribute.format.splitlines() if value in occurring]
    return tuple(dict.fromkeys([*listed, *held]))


def _written(attribute: Attribute, held: list[str], looked_up: bool) -> list[bool]:
    if attribute.datatype == "Date":
        form = "%Y-%m-%d" if looked_up else DAYS.get(attribute.format, "%Y-%m-%d")
        return [_is_day(value, form) for value in held]
    if not looked_up:
        return [NUMBER.fullmatch(value) is not None for value in held]
    if all(WHOLE.fullmatch(value) for value in held):
        return [value != "-0" for value in held]
    return [NUMBER.fullmatch(value) is not None and repr(float(value)) == value for value in held]


def _is_day(value: str, form: str) -> bool:
    try:
        day: date = datetime.strptime(value, form).date()
    except ValueError:
        return False
    return day.strftime(form) == value

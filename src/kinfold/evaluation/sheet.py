"""A sheet of measures: each formula is asked for its value, and where it has none the reason is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from kinfold.measures import NotApplicable

Value = TypeVar("Value")

RECORDED = "measured when the release was made, before its rows were put in another order: from the audit beside it"
COUNTED = frozenset(  # on the whole release, by its classes
    {"prosecutor_max", "prosecutor_mean", "inference", "uniques", "discernibility", "average_class_size"}
)
BEYOND = "the numbers are too small, too large or too far apart for it"


@dataclass
class Sheet:
    """Values by key, and why some are null; `recorded` are those that somebody else could measure who saw more."""

    section: str
    recorded: Mapping[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)

    def write(self, key: str, formula: Callable[[], Any]) -> None:
        """Write down what a formula answers; null where it does not apply."""
        try:
            self.values[key] = answered(formula)
        except NotApplicable as nothing:
            self.values[key] = self.recorded.get(key)
            self.remark(key, str(nothing) if self.values[key] is None else RECORDED)

    def remark(self, key: str, reason: str) -> None:
        """Note something about a measure."""
        self.reasons.setdefault(reason, []).append(f"{self.section}.{key}")


def notes_of(*sheets: Sheet) -> list[str]:
    """Return one line for each reason, with the measures of all sheets that it leaves null."""
    found: dict[str, list[str]] = {}
    for sheet in sheets:
        for reason, keys in sheet.reasons.items():
            found.setdefault(reason, []).extend(keys)
    return [f"{', '.join(keys)}: {reason}" for reason, keys in found.items()]


def told_of_sample(reason: str, exact: Collection[str], *sheets: Sheet) -> None:
    """Note of every measure that was taken on some records that it is an estimate; class sizes are exact."""
    for sheet in sheets:
        known = {key for keys in sheet.reasons.values() for key in keys}
        for key, value in sheet.values.items():
            if value is not None and key not in {*COUNTED, *exact} and f"{sheet.section}.{key}" not in known:
                sheet.remark(key, reason)


def answered(formula: Callable[[], Value]) -> Value:
    """Ask a formula; where it squares or divides what a double cannot hold, it does not apply.

    >>> answered(lambda: np.float64(1e300) ** 2)
    Traceback (most recent call last):
    kinfold.measures.arrays.NotApplicable: the numbers are too small, too large or too far apart for it
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            value = formula()
    except (ArithmeticError, np.linalg.LinAlgError):
        raise NotApplicable(BEYOND) from None
    if not _finite(value):
        raise NotApplicable(BEYOND)
    return value


def _finite(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_finite(part) for part in value.values())
    return not isinstance(value, float) or math.isfinite(value)


def remembered(make: Callable[[], Value]) -> Callable[[], Value]:
    """Return a function that makes its value once, when it is first asked."""
    made: list[Value] = []

    def recall() -> Value:
        if not made:
            made.append(make())
        return made[0]

    return recall

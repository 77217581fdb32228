"""The table of measures: title and meaning of each, its value, and the reason for a value that is null."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from kinfold.measures.formulas import NotApplicable


@dataclass(frozen=True)
class MeasureEntry:
    """Title, meaning and range of a measure, for reports."""

    title: str
    meaning: str
    range: str
    better: Literal["less", "more"] = "less"


CATALOGUE = {
    f"{section}.{key}": MeasureEntry(**entry)
    for section, entries in tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text("utf-8")).items()
    for key, entry in entries.items()
}


Value = TypeVar("Value")

RECORDED_NOTE = "measured when the release was made, before its rows were reordered: from the audit next to it"
CLASS_MEASURES = frozenset(  # exact for a sample too: they are counted on the classes of the whole release
    {
        "prosecutor_max", "prosecutor_mean", "journalist_max", "marketer", "inference", "uniques", "discernibility",
        "average_class_size", "removed_columns",
    }
)  # fmt: skip
OUT_OF_RANGE = "the numbers are too small or too large for it"


@dataclass
class MeasureTable:
    """Measures of a section by key, and the reasons for null; `recorded` are values from the audit of the release."""

    section: str
    recorded: Mapping[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)

    def write(self, key: str, formula: Callable[[], Any]) -> None:
        """Write the value of a formula; the recorded one or null, with a note, if it does not apply."""
        try:
            self.values[key] = evaluate(formula)
        except NotApplicable as error:
            self.values[key] = self.recorded.get(key)
            self.add_note(key, error.reason if self.values[key] is None else RECORDED_NOTE)

    def add_note(self, key: str, reason: str) -> None:
        """Add a note on a measure."""
        self.reasons.setdefault(reason, []).append(f"{self.section}.{key}")


def collect_notes(*tables: MeasureTable) -> list[str]:
    """Return one line for each reason, with its measures in all tables."""
    notes: dict[str, list[str]] = {}
    for table in tables:
        for reason, keys in table.reasons.items():
            notes.setdefault(reason, []).extend(keys)
    return [f"{', '.join(keys)}: {reason}" for reason, keys in notes.items()]


def note_sample(reason: str, exact: Collection[str], *tables: MeasureTable) -> None:
    """Add a note to every measure that is estimated from a sample, but the `exact` ones and those of classes."""
    for table in tables:
        known = {key for keys in table.reasons.values() for key in keys}
        for key, value in table.values.items():
            if value is not None and key not in {*CLASS_MEASURES, *exact} and f"{table.section}.{key}" not in known:
                table.add_note(key, reason)


def evaluate(formula: Callable[[], Value]) -> Value:
    """Return the value of a formula; not applicable if doubles overflow or divide by 0.

    >>> evaluate(lambda: np.float64(1e300) ** 2)
    Traceback (most recent call last):
    kinfold.measures.formulas.arrays.NotApplicable: the numbers are too small or too large for it
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            value = formula()
    except (ArithmeticError, np.linalg.LinAlgError):
        raise NotApplicable(OUT_OF_RANGE) from None
    if not _is_finite(value):
        raise NotApplicable(OUT_OF_RANGE)
    return value


def _is_finite(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_finite(part) for part in value.values())
    return not isinstance(value, float) or math.isfinite(value)


def compute_once(compute: Callable[[], Value]) -> Callable[[], Value]:
    """Return a function that computes its value on the first call; exceptions are not stored."""
    return cache(compute)

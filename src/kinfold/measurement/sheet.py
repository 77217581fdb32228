"""A sheet of measures: each formula is asked for its value, and where it has none the reason is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kinfold.measures import NotApplicable

Value = TypeVar("Value")


@dataclass
class Sheet:
    """Values by key, and why some are null."""

    section: str
    values: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)

    def write(self, key: str, formula: Callable[[], Any]) -> None:
        """Write down what a formula answers; null where it does not apply."""
        try:
            self.values[key] = formula()
        except NotApplicable as nothing:
            self.values[key] = None
            self.remark(key, str(nothing))

    def remark(self, key: str, reason: str) -> None:
        """Note something about a measure."""
        self.reasons.setdefault(reason, []).append(f"{self.section}.{key}")

    @property
    def notes(self) -> list[str]:
        """One line for each reason, with the measures that it leaves null."""
        return [f"{', '.join(keys)}: {reason}" for reason, keys in self.reasons.items()]


def remembered(make: Callable[[], Value]) -> Callable[[], Value]:
    """Return a function that makes its value once, when it is first asked."""
    made: list[Value] = []

    def recall() -> Value:
        if not made:
            made.append(make())
        return made[0]

    return recall

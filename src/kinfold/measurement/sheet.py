"""A sheet of measures: each formula is asked for its value, and where it has none the reason is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kinfold.measures import NotApplicable


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
            self.reasons.setdefault(str(nothing), []).append(f"{self.section}.{key}")

    @property
    def notes(self) -> list[str]:
        """One line for each reason, with the measures that it leaves null."""
        return [f"{', '.join(keys)}: {reason}" for reason, keys in self.reasons.items()]

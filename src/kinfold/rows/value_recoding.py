"""What becomes of single values before any class is formed: named ones become others, numbers are limited and rounded.

    Renamed    each value of a map becomes another, or missing where that is an empty text; all others stay
    Limited    what is at or above `top` becomes `top`, at or below `bottom` becomes `bottom`; what lies between becomes
               the nearest multiple of `step` (halves away from zero), though no more than `top`, no less than `bottom`

Nothing else is touched: a value that stays the same keeps its text. Missing values stay missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Renamed:
    """Values by their text, and what each becomes; an empty text is a missing value."""

    names: Mapping[str, str]


@dataclass(frozen=True)
class Limited:
    """Numbers between two limits, in steps; of a date the limits are ISO texts, and there is no step."""

    bottom: float | str | None = None
    top: float | str | None = None
    step: float | None = None


ValueRecoding: TypeAlias = Renamed | Limited


@dataclass(frozen=True, eq=False)
class Recoded:
    """A table after it, how many values changed in each column, and how many names of a map do not occur."""

    frame: Any
    changed: Mapping[str, int]
    absent: Mapping[str, int] = field(default_factory=dict)
    as_stored: Mapping[str, bool] = field(default_factory=dict)  # whether values still fit the type that they had


def decimals(number: float) -> int:
    """How many decimals a number is written with.

    >>> decimals(1000.0), decimals(0.25)
    (0, 2)
    """
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return max(0, -int(exponent))

"""Figures that are the same on any engine: a sum is kept to the digits that do not depend on the order of its parts."""

from __future__ import annotations

DIGITS = 10


def steady(value: float) -> float:
    """Return a figure without the digits that another order of summing might change.

    >>> steady(0.1 + 0.2) == steady(0.3)
    True
    """
    return float(f"{value:.{DIGITS}g}")

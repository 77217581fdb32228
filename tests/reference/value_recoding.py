"""Recoding of single values, one at a time: map, then top and bottom, then the nearest multiple."""

from __future__ import annotations

import math
from collections.abc import Mapping


def mapped(text: str | None, names: Mapping[str, str]) -> str | None:
    return None if text is None else names.get(text, text) or None


def limited(x: float | None, bottom: float | None, top: float | None, step: float | None) -> float | None:
    if x is None or not math.isfinite(x):
        return x
    if top is not None and x >= top:
        return top
    if bottom is not None and x <= bottom:
        return bottom
    if step is None:
        return x
    times = math.floor(abs(x / step))
    times += abs(x / step) - times >= 0.5  # halves go away from zero
    rounded = math.copysign(times, x) * step
    rounded = rounded if top is None else min(rounded, top)
    return rounded if bottom is None else max(rounded, bottom)

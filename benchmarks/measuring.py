"""Measuring one call: processor seconds of this process, and the memory it took beyond what was there."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Row: TypeAlias = dict[str, object]


def seconds(call: Callable[[], object], times: int = 1) -> float:
    """Processor seconds of the fastest of some calls: other programs on the machine count less than with a clock."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
    return best


def memory(call: Callable[[], object]) -> int:
    """Most bytes held at once during a call, of those it asked for itself (numpy reports its arrays)."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def exponent(sizes: list[int], times: list[float]) -> float:
    """Slope of time against size, both as logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])

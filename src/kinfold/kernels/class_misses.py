"""Judging: how far each class of a partition misses its promises (see `promises`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels.compiling import entry
from kinfold.kernels.promises import example, miss

if TYPE_CHECKING:
    from kinfold.kernels.groups import Floats, Ints, Rows
    from kinfold.kernels.promises import Promises


@entry(example(), np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1))
def misses(p: Promises, order: Rows, start: Ints, result: Floats) -> None:
    """How far each class misses its promises; class g is order[start[g]:start[g + 1]]."""
    for g in range(result.size):
        result[g] = miss(p, order[start[g] : start[g + 1]], -1, -1)

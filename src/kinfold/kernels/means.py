"""The mean of each group of rows: the exact sum of each column, rounded once, over the group's size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels.compiling import entry
from kinfold.kernels.exact_sums import DIGITS, LIMBS, add, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray


@entry(np.zeros((1, 1)), np.zeros(2, np.int64), np.zeros((1, 1)))
def group_means(values: NDArray[np.float64], starts: NDArray[np.int64], means: NDArray[np.float64]) -> None:
    """Write the mean of rows starts[g] to starts[g + 1] of `values` into row g of `means`."""
    bits = values.view(np.int64)
    sums, digits = np.zeros((1, LIMBS), np.int64), np.zeros(DIGITS, np.int64)
    for group in range(means.shape[0]):
        begin, end = starts[group], starts[group + 1]
        for column in range(values.shape[1]):
            for row in range(begin, end):
                add(sums, 0, bits[row, column], 1)
            means[group, column] = rounded(sums, 0, digits) / (end - begin)
            sums[:] = 0

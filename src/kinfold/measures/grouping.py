"""Grouping rows by their values: one label per row, in the order of the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.measures.arrays import Ints


def group_rows(table: NDArray[np.generic]) -> tuple[Ints, Ints]:
    """Return the class of each row (rows with the same values share one) and the first row of each class.

    One column after the other: the classes so far are split by the column's values and numbered densely again.

    >>> group_rows(np.array([[1, 5], [0, 5], [1, 5]]))[0].tolist()
    [1, 0, 1]
    """
    group = np.zeros(len(table), np.int64)
    for j in range(table.shape[1]):
        values, code = np.unique(table[:, j], return_inverse=True)
        _, group = np.unique(group * len(values) + code, return_inverse=True)
    first = np.full(int(group.max(initial=-1)) + 1, len(group), np.int64)
    np.minimum.at(first, group, np.arange(len(group)))
    return group.astype(np.int64, copy=False), first

"""Correlations: whether a number is computed from two others, although some of their values are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]  # NaN: missing

MIN_COMPARED = 20  # rows that have all three numbers
MIN_DETERMINATION = 0.9995  # R² of a number as a combination of two others
MIN_NEAR_DETERMINATION = 0.8  # by the rows that have each two; then R² is computed in the rows that have all three
MAX_DETERMINATION_OF_ONE = 0.99  # R² by one of the two alone


class Correlations:
    """Numbers, or their logarithms, and the correlations of each two in the rows that have both."""

    def __init__(self, numbers: Mapping[str, Numbers], *, logs: bool) -> None:
        with np.errstate(all="ignore"):
            self._values = np.array([np.log(each) if logs else each for each in numbers.values()])
            self._values[~np.isfinite(self._values)] = np.nan
            self._near = np.nan_to_num(_correlate_present(self._values))
        self._at = {name: i for i, name in enumerate(numbers)}

    def is_combination(self, name: str, one: str, other: str) -> bool:
        """Whether a number is a linear combination of two others, and not of one of them alone."""
        places = [self._at[each] for each in (name, one, other)]
        near = self._near[np.ix_(places, places)]
        close = near[1, 2] ** 2 > MAX_DETERMINATION_OF_ONE  # as are admission and discharge, over years
        if not close and _compute_determination(near) < MIN_NEAR_DETERMINATION:
            return False
        columns = self._values[places]
        kept = columns[:, ~np.isnan(columns).any(axis=0)]
        if kept.shape[1] < MIN_COMPARED or (kept.std(axis=1) <= 0).any():
            return False
        if close:
            return _is_difference(*kept)
        return _compute_determination(np.corrcoef(kept)) >= MIN_DETERMINATION


def _correlate_present(values: Numbers) -> Numbers:
    """Return the correlations of rows, each from the columns where both have a number."""
    present = ~np.isnan(values)
    mean = np.where(present, values, 0).sum(axis=1, keepdims=True) / present.sum(axis=1, keepdims=True)
    centred, both = np.where(present, values - mean, 0), present.astype(np.float64)
    rows = both @ both.T
    sums, squares = centred @ both.T, centred**2 @ both.T
    products = centred @ centred.T - sums * sums.T / rows
    variances = squares - sums**2 / rows
    return np.asarray(products / np.sqrt(variances * variances.T), np.float64)


def _is_difference(number: Numbers, one: Numbers, other: Numbers) -> bool:
    """Whether a number follows the difference of two others that are almost the same, and neither of the two."""
    difference = one - other
    if difference.std() <= 0 or np.corrcoef(number, one)[0, 1] ** 2 > MAX_DETERMINATION_OF_ONE:
        return False
    return bool(np.corrcoef(number, difference)[0, 1] ** 2 >= MIN_DETERMINATION)


def _compute_determination(r: Numbers) -> float:
    """Return R² of the first number by two others, given all correlations; 0 if one of the two is enough."""
    if max(r[0, 1] ** 2, r[0, 2] ** 2, r[1, 2] ** 2) > MAX_DETERMINATION_OF_ONE:
        return 0.0
    both = r[0, 1] ** 2 + r[0, 2] ** 2 - 2 * r[0, 1] * r[0, 2] * r[1, 2]
    return float(both / (1 - r[1, 2] ** 2))

"""The shortest path of univariate microaggregation for large k, a bounded number of steps at a time.

The state is that of `kinfold.kernels.univariate`, and so is the tie rule: the smaller last group. The k paths that end
in j, j+1, ... j+k-1 all begin before j, and the start of the best one never moves back from one to the next (both costs
satisfy the quadrangle inequality), so that each is sought between the starts of its neighbours: O(n log k).

The cost of any group is read from prefix sums. They are taken afresh for each block of k paths, from the first value
that it needs, and held as two doubles each (106 bits), so that their differences are as good as the costs that the scan
adds up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import entry, inner
from kinfold.kernels.univariate import Path, example, settle

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPLIT = 134217729.0  # 2^27 + 1 cuts a double into two halves whose products are exact (Dekker 1971)


class Sums(NamedTuple):
    """Prefix sums of the values from `first` on and of their squares, each as a high and a low part."""

    first: int
    high: NDArray[np.float64]
    low: NDArray[np.float64]
    squares_high: NDArray[np.float64]
    squares_low: NDArray[np.float64]


@inner
def _added(one: float, other: float) -> tuple[float, float]:
    """Return the sum as the nearest double and the rest."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


@inner
def _times(one: float, other: float) -> tuple[float, float]:
    """Return the product as the nearest double and the rest."""
    product = one * other
    one_high = one * _SPLIT - (one * _SPLIT - one)
    other_high = other * _SPLIT - (other * _SPLIT - other)
    one_low, other_low = one - one_high, other - other_high
    rest = ((one_high * other_high - product) + one_high * other_low + one_low * other_high) + one_low * other_low
    return product, rest


@inner
def _total(values: NDArray[np.float64], first: int, end: int, sums: Sums) -> None:
    """Sum up the differences to the first value, and their squares."""
    sums.high[0] = sums.low[0] = sums.squares_high[0] = sums.squares_low[0] = 0.0
    for at in range(first, end):
        before, after = at - first, at - first + 1
        step, step_rest = _added(values[at], -values[first])
        high, rest = _added(sums.high[before], step)
        sums.high[after], sums.low[after] = _added(high, rest + (sums.low[before] + step_rest))
        square, square_rest = _times(step, step)
        high, rest = _added(sums.squares_high[before], square)
        rest += sums.squares_low[before] + (square_rest + 2.0 * step * step_rest)
        sums.squares_high[after], sums.squares_low[after] = _added(high, rest)


@inner
def _between(high: NDArray[np.float64], low: NDArray[np.float64], begin: int, end: int) -> tuple[float, float]:
    total, rest = _added(high[end], -high[begin])
    return _added(total, rest + (low[end] - low[begin]))


@inner
def _squares(sums: Sums, begin: int, end: int) -> float:
    """Return the sum of squared deviations from the mean: Σy² - (Σy)²/n."""
    total, total_rest = _between(sums.high, sums.low, begin, end)
    squares, squares_rest = _between(sums.squares_high, sums.squares_low, begin, end)
    count = float(end - begin)
    square, rest = _times(total, total)
    rest += 2.0 * total * total_rest
    share = square / count
    back, back_rest = _times(share, count)
    cost, cost_rest = _added(squares, -share)
    return max(0.0, cost + (cost_rest + (squares_rest - ((square - back) - back_rest + rest) / count)))


@inner
def _medians(sums: Sums, begin: int, end: int) -> float:
    """Return the sum of absolute deviations from the median: the upper half less the lower half."""
    count = end - begin
    upper, upper_rest = _between(sums.high, sums.low, begin + (count + 1) // 2, end)
    lower, lower_rest = _between(sums.high, sums.low, begin, begin + count // 2)
    cost, rest = _added(upper, -lower)
    return max(0.0, cost + (rest + (upper_rest - lower_rest)))


@inner
def _reach(path: Path, sums: Sums, last: int, starts: tuple[int, int], squared: bool) -> int:
    """Find the best path to `last` whose last group begins between the two starts, and return its start."""
    least, best = np.inf, starts[0]
    for start in range(starts[0], starts[1] + 1):
        if path.best[start] == np.inf:
            continue
        begin, end = start - sums.first, last - sums.first
        cost = path.best[start] + (_squares(sums, begin, end) if squared else _medians(sums, begin, end))
        if cost <= least:
            least, best = cost, start
    path.best[last], path.size[last] = least, last - best
    return best


@inner
def _block(path: Path, sums: Sums, k: int, span: tuple[int, int], squared: bool) -> None:
    """Find the best paths to span[0], ... span[1] - 1, which are at most k."""
    begin, rows = span[0], span[1] - span[0]
    stride = 1
    while 2 * stride <= rows:
        stride *= 2
    while stride >= 1:
        for row in range(stride - 1, rows, 2 * stride):
            last = begin + row
            low, high = max(0, last - 2 * k + 1), last - k
            if row - stride >= 0:
                low = max(low, last - stride - path.size[last - stride])
            if row + stride < rows:
                high = min(high, last + stride - path.size[last + stride])
            _reach(path, sums, last, (low, high), squared)
        stride //= 2


@inner
def _blocks(path: Path, k: int, begin: int, end: int, squared: bool) -> None:
    high, low, squares_high, squares_low = np.empty(3 * k), np.empty(3 * k), np.empty(3 * k), np.empty(3 * k)
    for block in range(begin, end, k):
        stop = min(block + k, end)
        settle(path, k, block)
        first = max(0, block - 2 * k + 1)
        sums = Sums(first, high, low, squares_high, squares_low)
        _total(path.values, first, stop - 1, sums)
        _block(path, sums, k, (block, stop), squared)


@entry(example(), 1, 1, 1)
def halve_squares(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by squared deviations from the mean."""
    _blocks(path, k, begin, end, True)


@entry(example(), 1, 1, 1)
def halve_medians(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by absolute deviations from the median."""
    _blocks(path, k, begin, end, False)

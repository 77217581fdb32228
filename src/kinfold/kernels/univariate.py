"""The shortest path of univariate microaggregation, a bounded number of steps at a time.

See `methods.partition.univariate` for the problem. `best[j]` is the least cost of the first j sorted values, up to a
constant that is subtracted as the path proceeds, and `size[j]` the size of their last group. Ties: the smaller last
group.

For squares and for deviations from the median `scan_squares` and `scan_medians` try all k sizes of the last group. Its
cost grows value by value, downwards: no difference of large sums is taken.

For large k, `halve_squares` and `halve_medians` use that the k paths that end in j, j+1, ... j+k-1 all begin before j,
and the start of the best one never moves back from one to the next (both costs satisfy the quadrangle inequality). So
each is searched between the starts of its neighbours: O(n log k). The cost of a group is read from prefix sums. They
are computed again for each block of k paths, from the first value that it needs, and held as two doubles each (106
bits), so that their differences are as good as the sums of the scan.

`scan_absolutes` has no largest size of a group (see the method) and stops early by a bound. Write f(G) for the absolute
deviations of a group from its mean, med(G) for those from its median, A for the values from a start s' up to s and B
for those from s to the end, so that no value of A exceeds one of B and A has at least k values. Then

    f(A + B) >= f(A), because f(G) is twice what its values lie below its mean, and the mean of A + B is not below A's
    f(A + B) >= med(A) + med(B), because the median is the best centre of each part

and so the path that takes the group A + B costs at least best[s], and at least below[s] + med(B), where below[s] is a
lower bound of best[s'] + med(A) over all s'. Once one of the two reaches the least cost so far, no start at s - k or
before can improve on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfold.kernels.compiling import Floats, Rows, entry, inner


class Path(NamedTuple):
    """Sorted values and the paths to each of them."""

    values: Floats
    best: Floats
    size: Rows


def example_path() -> Path:
    """Return the smallest path, to compile for."""
    return Path(np.zeros(1), np.zeros(1), np.zeros(1, np.int32))


@inner
def subtract_base(path: Path, k: int, end: int) -> None:
    """Subtract the least of the costs that are still needed, so that sums stay as small as the last few groups."""
    if end >= 2 * k:
        base = path.best[end - k]
        for at in range(end - 2 * k + 1, end):
            base = min(base, path.best[at])
        for at in range(end - 2 * k + 1, end):
            path.best[at] -= base


@entry(example_path(), 1, 1, 1)
def scan_squares(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by squared deviations from the mean."""
    share = 1.0 / np.arange(1, 2 * k)
    for last in range(begin, end):
        if last % (2 * k) == 0:
            subtract_base(path, k, last)
        mean, cost, least, size = 0.0, 0.0, np.inf, 0
        for count in range(1, min(2 * k, last + 1)):
            step = path.values[last - count] - mean
            mean += step * share[count - 1]
            cost += step * (path.values[last - count] - mean)
            if count >= k and path.best[last - count] + cost < least:
                least, size = path.best[last - count] + cost, count
        path.best[last], path.size[last] = least, size


@entry(example_path(), 1, 1, 1)
def scan_medians(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by absolute deviations from the median of the group."""
    for last in range(begin, end):
        if last % (2 * k) == 0:
            subtract_base(path, k, last)
        cost, least, size = 0.0, np.inf, 0
        for count in range(1, min(2 * k, last + 1)):
            # a value below all others adds its distance to their lower median
            cost += path.values[last - 1 - (count - 1) // 2] - path.values[last - count]
            if count >= k and path.best[last - count] + cost < least:
                least, size = path.best[last - count] + cost, count
        path.best[last], path.size[last] = least, size


@entry(example_path(), np.zeros(1), 1, 1, 1)
def scan_absolutes(path: Path, below: Floats, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by absolute deviations from the mean of the group."""
    for last in range(begin, end):
        top = path.values[last - 1]  # distances from it rise downwards: 0 first
        total, near, inside, median = 0.0, 0.0, 0, 0.0
        least, size, low, floor = np.inf, 0, np.inf, 0
        count = 0
        while last - count > floor:
            count += 1
            start = last - count
            total += top - path.values[start]
            median += path.values[last - 1 - (count - 1) // 2] - path.values[start]
            mean = total / count
            while inside < count and top - path.values[last - 1 - inside] < mean:  # the mean only rises
                near += top - path.values[last - 1 - inside]
                inside += 1
            if count < k or path.best[start] == np.inf:
                continue
            cost = path.best[start] + 2.0 * (inside * mean - near)
            if cost < least:
                least, size = cost, count
            low = min(low, path.best[start] + median)
            if floor == 0 and max(path.best[start], below[start] + median) >= least:
                floor = max(start - k + 1, 0)
                low = min(low, below[start] + median)
        path.best[last], path.size[last], below[last] = least, size, low


_SPLIT = 134217729.0  # 2^27 + 1 cuts a double into two halves whose products are exact (Dekker 1971)


class Sums(NamedTuple):
    """Prefix sums of the values from `first` on and of their squares, each as a high and a low part."""

    first: int
    high: Floats
    low: Floats
    squares_high: Floats
    squares_low: Floats


@inner
def _add_exactly(one: float, other: float) -> tuple[float, float]:
    """Return the sum as the nearest double and the rest."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


@inner
def _multiply_exactly(one: float, other: float) -> tuple[float, float]:
    """Return the product as the nearest double and the rest."""
    product = one * other
    one_high = one * _SPLIT - (one * _SPLIT - one)
    other_high = other * _SPLIT - (other * _SPLIT - other)
    one_low, other_low = one - one_high, other - other_high
    rest = ((one_high * other_high - product) + one_high * other_low + one_low * other_high) + one_low * other_low
    return product, rest


@inner
def _fill_sums(values: Floats, first: int, end: int, sums: Sums) -> None:
    """Sum the differences to the first value, and their squares."""
    sums.high[0] = sums.low[0] = sums.squares_high[0] = sums.squares_low[0] = 0.0
    for at in range(first, end):
        before, after = at - first, at - first + 1
        step, step_rest = _add_exactly(values[at], -values[first])
        high, rest = _add_exactly(sums.high[before], step)
        sums.high[after], sums.low[after] = _add_exactly(high, rest + (sums.low[before] + step_rest))
        square, square_rest = _multiply_exactly(step, step)
        high, rest = _add_exactly(sums.squares_high[before], square)
        rest += sums.squares_low[before] + (square_rest + 2.0 * step * step_rest)
        sums.squares_high[after], sums.squares_low[after] = _add_exactly(high, rest)


@inner
def _range_sum(high: Floats, low: Floats, begin: int, end: int) -> tuple[float, float]:
    total, rest = _add_exactly(high[end], -high[begin])
    return _add_exactly(total, rest + (low[end] - low[begin]))


@inner
def _squared_cost(sums: Sums, begin: int, end: int) -> float:
    """Return the sum of squared deviations from the mean: Σy² - (Σy)²/n."""
    total, total_rest = _range_sum(sums.high, sums.low, begin, end)
    squares, squares_rest = _range_sum(sums.squares_high, sums.squares_low, begin, end)
    count = float(end - begin)
    square, rest = _multiply_exactly(total, total)
    rest += 2.0 * total * total_rest
    share = square / count
    back, back_rest = _multiply_exactly(share, count)
    cost, cost_rest = _add_exactly(squares, -share)
    return max(0.0, cost + (cost_rest + (squares_rest - ((square - back) - back_rest + rest) / count)))


@inner
def _median_cost(sums: Sums, begin: int, end: int) -> float:
    """Return the sum of absolute deviations from the median: the upper half minus the lower half."""
    count = end - begin
    upper, upper_rest = _range_sum(sums.high, sums.low, begin + (count + 1) // 2, end)
    lower, lower_rest = _range_sum(sums.high, sums.low, begin, begin + count // 2)
    cost, rest = _add_exactly(upper, -lower)
    return max(0.0, cost + (rest + (upper_rest - lower_rest)))


@inner
def _find_start(path: Path, sums: Sums, last: int, starts: tuple[int, int], squared: bool) -> int:
    """Find the best path to `last` whose last group begins between the two starts, and return its start."""
    least, best = np.inf, starts[0]
    for start in range(starts[0], starts[1] + 1):
        if path.best[start] == np.inf:
            continue
        begin, end = start - sums.first, last - sums.first
        cost = path.best[start] + (_squared_cost(sums, begin, end) if squared else _median_cost(sums, begin, end))
        if cost <= least:
            least, best = cost, start
    path.best[last], path.size[last] = least, last - best
    return best


@inner
def _solve_block(path: Path, sums: Sums, k: int, span: tuple[int, int], squared: bool) -> None:
    """Find the best paths to span[0], ... span[1] - 1, at most k of them."""
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
            _find_start(path, sums, last, (low, high), squared)
        stride //= 2


@inner
def _solve_blocks(path: Path, k: int, begin: int, end: int, squared: bool) -> None:
    high, low, squares_high, squares_low = np.empty(3 * k), np.empty(3 * k), np.empty(3 * k), np.empty(3 * k)
    for block in range(begin, end, k):
        stop = min(block + k, end)
        subtract_base(path, k, block)
        first = max(0, block - 2 * k + 1)
        sums = Sums(first, high, low, squares_high, squares_low)
        _fill_sums(path.values, first, stop - 1, sums)
        _solve_block(path, sums, k, (block, stop), squared)


@entry(example_path(), 1, 1, 1)
def halve_squares(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by squared deviations from the mean."""
    _solve_blocks(path, k, begin, end, True)


@entry(example_path(), 1, 1, 1)
def halve_medians(path: Path, k: int, begin: int, end: int) -> None:
    """Extend the paths to the values begin to end, by absolute deviations from the median."""
    _solve_blocks(path, k, begin, end, False)

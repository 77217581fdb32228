"""Every partition of sorted values into groups of at least k neighbours, its exact cost, and the path by numpy."""

from fractions import Fraction

import numpy as np


def compositions(n, k):
    """Yield the sizes of the groups of every partition."""
    if n == 0:
        yield []
    for size in range(k, n + 1):
        for rest in compositions(n - size, k):
            yield [size, *rest]


def group_cost(group, cost):
    if cost == "sse":
        mean = sum(group) / Fraction(len(group))
        return sum((value - mean) ** 2 for value in group)
    centre = sum(group) / Fraction(len(group)) if cost == "absolute" else sorted(group)[len(group) // 2]
    return sum(abs(value - centre) for value in group)


def cost_of_sizes(ordered, sizes, cost):
    total, begin = Fraction(0), 0
    for size in sizes:
        total += group_cost(ordered[begin : begin + size], cost)
        begin += size
    return total


def least_cost(values, k, cost):
    ordered = sorted(Fraction(value) for value in values)
    return min(cost_of_sizes(ordered, sizes, cost) for sizes in compositions(len(ordered), k))


def cost_of_labels(values, labels, cost):
    groups = {}
    for value, label in zip(values, labels, strict=True):
        groups.setdefault(int(label), []).append(Fraction(value))
    return sum(group_cost(group, cost) for group in groups.values())


def find_sizes(values, k, cost):
    """Return the size of the last group of the best path to each number of sorted values, with numpy."""
    if cost == "absolute":
        return _find_sizes_absolute(values, k)
    table = _squared_costs(values, k) if cost == "sse" else _median_costs(values, k)
    best = np.full(len(values) + 1, np.inf)
    best[0] = 0.0
    sizes = np.zeros(len(values) + 1, np.int32)
    for last in range(k, len(values) + 1):
        if last % (2 * k) == 0:  # keeps sums no larger than the last few groups
            best[last - 2 * k + 1 : last] -= best[last - 2 * k + 1 : last].min()
        longest = min(2 * k - 1, last)
        totals = best[last - longest : last - k + 1][::-1] + table[: longest - k + 1, last]
        at = int(np.argmin(totals))
        best[last], sizes[last] = totals[at], k + at
    return sizes


def _squared_costs(values, k):
    """Return the SSE of the group of k + s values that ends before value j, at [s, j]."""
    table = np.full((k, len(values) + 1), np.inf)
    mean = np.zeros(len(values) + 1)
    total = np.zeros(len(values) + 1)
    for count in range(1, min(2 * k, len(values) + 1)):
        added = values[: len(values) - count + 1]  # the first value of a group of `count` values before j
        step = added - mean[count:]
        mean[count:] += step * (1.0 / count)
        total[count:] += step * (added - mean[count:])
        if count >= k:
            table[count - k, count:] = total[count:]
    return table


def _median_costs(values, k):
    """Return the deviations from the median of the group of k + s values that ends before value j, at [s, j]."""
    table = np.full((k, len(values) + 1), np.inf)
    total = np.zeros(len(values) + 1)
    for count in range(1, min(2 * k, len(values) + 1)):
        ends = np.arange(count, len(values) + 1)
        total[count:] += values[ends - 1 - (count - 1) // 2] - values[ends - count]
        if count >= k:
            table[count - k, count:] = total[count:]
    return table


def _find_sizes_absolute(values, k):
    """Return the sizes for absolute deviations from the mean, by trying every start of the last group."""
    best = np.full(len(values) + 1, np.inf)
    best[0] = 0.0
    sizes = np.zeros(len(values) + 1, np.int32)
    counts = np.arange(1, len(values) + 1)
    for last in range(k, len(values) + 1):
        below = values[last - 1] - values[:last][::-1]  # distances from the largest value, 0 first
        totals = np.concatenate([[0.0], np.cumsum(below)])
        means = totals[1:] / counts[:last]
        inside = np.searchsorted(below, means)  # values of a group above its mean
        costs = best[:last][::-1] + 2.0 * (inside * means - totals[inside])
        at = int(np.argmin(costs[k - 1 :])) + k - 1
        best[last], sizes[last] = costs[at], at + 1
    return sizes

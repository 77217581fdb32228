"""Patterns of missing values, assigned so that none is rarer than k: the fewest values given up, exactly.

A record that lacks some values can be released as one that lacks more. A pattern is a set of columns (a bit each);
x[s, t] records of pattern s are released with pattern t, a superset of s, and give up |t - s| values each:

    least      Σ x[s, t] · |t - s|
    so that    every record of s goes somewhere, and to each t go none or at least k

The patterns that anybody may end in are unions of those that occur. Not only rare records move: where nobody lacks
more than they do, some of a larger pattern come to them.

Cost: an integer program with a variable for each pair of nested patterns; None is returned beyond `MOST` patterns, or
where the solver needs more than `NODES` branches.   Ties: as the solver finds them, the same each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

Flow: TypeAlias = dict[tuple[int, int], int]  # from a pattern to a pattern, so many records

MOST = 48  # patterns that records may end in
NODES = 5_000  # branches of the solver; not tuned


def assigned(sizes: Mapping[int, int], k: int) -> Flow | None:
    """Return how many records of each pattern are released with which; None where that is too much to find out.

    >>> assigned({0b00: 100, 0b01: 2, 0b11: 9}, 5)  # two records give up one value each
    {(0, 0): 100, (1, 3): 2, (3, 3): 9}
    >>> assigned({0b0: 100, 0b1: 2}, 5)  # nobody lacks more: three others come to them
    {(0, 0): 97, (0, 1): 3, (1, 1): 2}
    """
    ends = _unions(sorted(sizes))
    return None if ends is None or sum(sizes.values()) < k else _solved(sizes, ends, k)


def _unions(patterns: Sequence[int]) -> list[int] | None:
    """Return every union of patterns, in their order; None where there are too many."""
    found: set[int] = set()
    for pattern in patterns:
        found |= {pattern, *(pattern | other for other in found)}
        if len(found) > MOST:
            return None
    return sorted(found)


def _solved(sizes: Mapping[int, int], ends: Sequence[int], k: int) -> Flow | None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    ways = [(start, end) for start in sorted(sizes) for end in ends if start | end == end]
    count = len(ways) + len(ends)  # the ways, then whether anybody ends there
    cost = np.array([(end & ~start).bit_count() for start, end in ways] + [0] * len(ends), np.float64)
    leaving = np.zeros((len(sizes), count))
    arriving = np.zeros((len(ends), count))
    opened = np.zeros((len(ways), count))
    for i, (start, end) in enumerate(ways):
        leaving[sorted(sizes).index(start), i] = 1.0
        arriving[ends.index(end), i] = 1.0
        opened[i, [i, len(ways) + ends.index(end)]] = 1.0, -sizes[start]
    arriving[np.arange(len(ends)), len(ways) + np.arange(len(ends))] = -k
    every = [float(sizes[start]) for start in sorted(sizes)]
    rules = [LinearConstraint(leaving, every, every), LinearConstraint(arriving, 0.0), LinearConstraint(opened, ub=0.0)]
    most = np.array([sizes[start] for start, _ in ways] + [1] * len(ends), np.float64)
    solved = milp(
        cost,
        integrality=np.ones(count, np.int64),
        bounds=Bounds(0.0, most),
        constraints=rules,
        options={"node_limit": NODES, "mip_rel_gap": 0.0},
    )
    if solved.status != 0:
        return None
    moved = np.round(solved.x[: len(ways)]).astype(int)
    return {way: int(number) for way, number in zip(ways, moved, strict=True) if number}

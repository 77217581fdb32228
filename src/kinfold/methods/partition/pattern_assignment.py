"""Assign patterns of missing values so that none is rarer than k, with the fewest values lost.

A record that lacks some values can be released as one that lacks more. A pattern is a set of columns (a bit each);
x[s, t] records of pattern s are released with pattern t, a superset of s, and lose |t - s| values each:

    minimize      Σ x[s, t] · |t - s|
    subject to    every record of s is released, and each t gets no record or at least k

The patterns of a release are unions of those that occur. Not only rare records lose values: if no other record lacks
more than they do, some records of a larger pattern join them.

Cost: an integer program with a variable for each pair of nested patterns. The result is None for more than MAX_PATTERNS
patterns, or if the solver needs more than MAX_SOLVER_NODES branches. Ties: by the solver, which is deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

# Records released, by their pattern and the pattern of their release
Assignment: TypeAlias = dict[tuple[int, int], int]

MAX_PATTERNS = 48  # of the release
MAX_SOLVER_NODES = 5_000  # branches of the solver; not tuned


def assign_patterns(sizes: Mapping[int, int], k: int) -> Assignment | None:
    """Return how many records of each pattern are released with which pattern; None if that takes too long.

    >>> assign_patterns({0b00: 100, 0b01: 2, 0b11: 9}, 5)  # two records lose one value each
    {(0, 0): 100, (1, 3): 2, (3, 3): 9}
    >>> assign_patterns({0b0: 100, 0b1: 2}, 5)  # no record lacks more: three others lose a value
    {(0, 0): 97, (0, 1): 3, (1, 1): 2}
    """
    unions: set[int] = set()
    for pattern in sorted(sizes):
        unions |= {pattern, *(pattern | other for other in unions)}
        if len(unions) > MAX_PATTERNS:
            return None
    return _solve(sizes, sorted(unions), k) if sum(sizes.values()) >= k else None


def _solve(sizes: Mapping[int, int], ends: Sequence[int], k: int) -> Assignment | None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    moves = [(start, end) for start in sorted(sizes) for end in ends if start | end == end]
    count = len(moves) + len(ends)  # the moves, then whether a pattern is used
    cost = np.array([(end & ~start).bit_count() for start, end in moves] + [0] * len(ends), np.float64)
    leaving = np.zeros((len(sizes), count))
    arriving = np.zeros((len(ends), count))
    used = np.zeros((len(moves), count))
    for i, (start, end) in enumerate(moves):
        leaving[sorted(sizes).index(start), i] = 1.0
        arriving[ends.index(end), i] = 1.0
        used[i, [i, len(moves) + ends.index(end)]] = 1.0, -sizes[start]
    arriving[np.arange(len(ends)), len(moves) + np.arange(len(ends))] = -k
    every = [float(sizes[start]) for start in sorted(sizes)]
    rules = [LinearConstraint(leaving, every, every), LinearConstraint(arriving, 0.0), LinearConstraint(used, ub=0.0)]
    most = np.array([sizes[start] for start, _ in moves] + [1] * len(ends), np.float64)
    result = milp(
        cost,
        integrality=np.ones(count, np.int64),
        bounds=Bounds(0.0, most),
        constraints=rules,
        options={"node_limit": MAX_SOLVER_NODES, "mip_rel_gap": 0.0},
    )
    if result.status != 0:
        return None
    counts = np.round(result.x[: len(moves)]).astype(int)
    return {move: int(number) for move, number in zip(moves, counts, strict=True) if number}

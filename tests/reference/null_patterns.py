"""The fewest values given up so that no pattern of missing values is rarer than k: by trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations


def fewest(sizes: Mapping[int, int], k: int) -> int:
    """Try every set of patterns to end in, and every way to get there; patterns are bits."""
    every = 0
    for pattern in sizes:
        every |= pattern
    ends = range(every + 1)
    costs = [
        cost
        for number in range(1, len(ends) + 1)
        for chosen in combinations(ends, number)
        if (cost := _least([*sizes.items()], dict.fromkeys(chosen, 0), k)) is not None
    ]
    return min(costs)


def _least(left: Sequence[tuple[int, int]], arrived: Mapping[int, int], k: int) -> int | None:
    """The least cost of sending all of these to some of the ends, each of which must then have none or k."""
    if not left:
        return 0 if all(number >= k for number in arrived.values()) else None
    (pattern, size), rest = left[0], left[1:]
    ends = [end for end in arrived if end & pattern == pattern]
    costs = []
    for shares in _shares(size, len(ends)):
        after = dict(arrived)
        for end, share in zip(ends, shares, strict=True):
            after[end] += share
        cost = _least(rest, after, k)
        if cost is not None:
            own = sum(share * bin(end ^ pattern).count("1") for end, share in zip(ends, shares, strict=True))
            costs.append(cost + own)
    return min(costs, default=None)


def _shares(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(total + 1):
        for rest in _shares(total - first, parts - 1):
            yield first, *rest

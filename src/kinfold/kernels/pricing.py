"""Pricing: every group that costs less than the prices of its records (or not much more), found exactly.

With a price for each record, a group of m records has the reduced cost (its cost less the prices of its members)

    sum over its pairs of   w(i, j) = gap(i, j) / m - (price(i) + price(j)) / (m - 1)

which is half the sum of its stars, the star of a member being the sum of its weights to the others. Hence

    a star is at least the sum of the m - 1 smallest weights of that record: the stars of all records bound every
    group, without any search;
    a group of negative reduced cost has a member with a negative star: its root.

The search takes each record as root and adds members by increasing weight. It turns back when the star of the root
cannot stay negative, or when half of (the stars so far, each completed by its smallest weights, and the least star
for each member to come) is not negative. A root that takes more looks than allowed is left with the bound of its
stars, so what is returned stays valid.

Cost: O(n² m) for the stars; the search depends on the prices, few looks a root when they are near the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from kinfold.kernels.options import inner, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDING = 1e-9  # a reduced cost above minus this is none


class Market(NamedTuple):
    """Prices, what follows from them for groups of one size, and the room in which the search works."""

    gaps: np.ndarray  # (n, n)
    prices: np.ndarray  # (n)
    sums: np.ndarray  # (n, m): sums of the 0 to m - 1 smallest weights of a record
    least: np.ndarray  # (n) the least reduced cost with this root, at most 0
    found: np.ndarray  # (many, m) the groups found
    counts: np.ndarray  # counters, by the names below
    weight: np.ndarray  # (n) weights of the candidates of this root, increasing
    candidate: np.ndarray  # (n) the candidates
    chosen: np.ndarray  # (2, m) the members so far, the root first, and where the search stands at each depth
    stars: np.ndarray  # (m, m) at each depth, the star so far of each member
    floor: np.ndarray  # (2) the least star of all, and the reduced cost below which groups are wanted


# Places in `counts`: groups found, looks and groups of this root, how many of each are allowed, roots cut short
FOUND, LOOKS, TAKEN, LOOKS_ALLOWED, TAKEN_ALLOWED, CUT_SHORT = range(6)
_f8, _f8_2, _i4, _i4_2 = numba.float64[::1], numba.float64[:, ::1], numba.int32[::1], numba.int32[:, ::1]
_int, _float, _void = numba.int64, numba.float64, numba.void
MARKET = numba.types.NamedTuple(  # type: ignore[no-untyped-call]
    [_f8_2, _f8, _f8_2, _f8, _i4_2, numba.int64[::1], _f8, _i4, _i4_2, _f8_2, _f8], Market
)


@inner(_float(MARKET, _int, _int))
def weight(q: Market, i: int, j: int) -> float:
    """Return the weight of a pair."""
    m = q.sums.shape[1]
    return float(q.gaps[i, j] / m - (q.prices[i] + q.prices[j]) / (m - 1))


@kernel(_void(MARKET, _i4_2))
def sum_stars(q: Market, picks: np.ndarray) -> None:
    """Fill the sums of the smallest weights of each record, and `picks` with the records they lead to."""
    many = q.sums.shape[1] - 1
    low = np.empty(many)
    for i in range(q.prices.size):
        found = 0
        for j in range(q.prices.size):
            there = weight(q, i, j)
            if j == i or (found == many and there >= low[many - 1]):
                continue
            at = min(found, many - 1)
            while at > 0 and low[at - 1] > there:
                low[at] = low[at - 1]
                picks[i, at] = picks[i, at - 1]
                at -= 1
            low[at] = there
            picks[i, at] = j
            found = min(found + 1, many)
        q.sums[i, 0] = 0.0
        for t in range(many):
            q.sums[i, t + 1] = q.sums[i, t] + low[t]
    q.floor[0] = q.sums[:, many].min()


@inner(_float(MARKET))
def wanted_star(q: Market) -> float:
    """Return what the star of a root is below: the least star of a group is at most the mean of them all."""
    return float(2.0 * q.floor[1] / q.sums.shape[1] - ROUNDING)


@inner(_int(MARKET, _int))
def list_candidates(q: Market, root: int) -> int:
    """List by increasing weight the records that can be in a negative star of the root; return how many."""
    others = q.sums.shape[1] - 2
    found = 0
    for j in range(q.prices.size):
        there = weight(q, root, j)
        if j != root and there + q.sums[root, others] < wanted_star(q):
            q.weight[found] = there
            q.candidate[found] = j
            found += 1
    order = np.argsort(q.weight[:found], kind="mergesort")
    q.weight[:found] = q.weight[:found][order]
    q.candidate[:found] = q.candidate[:found][order]
    return found


@inner(_float(MARKET, _int, _int))
def add_member(q: Market, depth: int, j: int) -> float:
    """Write j as member number `depth` with the stars then; return the lowest that the reduced cost can still be."""
    m = q.sums.shape[1]
    missing = m - 1 - depth
    q.chosen[0, depth] = j
    q.stars[depth, depth] = 0.0
    total = missing * q.floor[0]
    for t in range(depth):
        c = q.chosen[0, t]
        there = weight(q, c, j)
        q.stars[depth, t] = q.stars[depth - 1, t] + there
        q.stars[depth, depth] += there
        total += q.stars[depth, t] + q.sums[c, missing]
    return float(0.5 * (total + q.stars[depth, depth] + q.sums[j, missing]))


@inner(_void(MARKET, _float))
def record(q: Market, value: float) -> None:
    """Write down the group in hand, if there is room and the root has not given enough already."""
    root = q.chosen[0, 0]
    q.least[root] = min(q.least[root], value)
    if q.counts[FOUND] < q.found.shape[0] and q.counts[TAKEN] < q.counts[TAKEN_ALLOWED]:
        for t in range(q.sums.shape[1]):
            q.found[q.counts[FOUND], t] = q.chosen[0, t]
        q.counts[FOUND] += 1
        q.counts[TAKEN] += 1


@inner(numba.boolean(MARKET, _int, _int))
def promising(q: Market, depth: int, many: int) -> bool:
    """Tell whether the star of the root can end negative if the next member is the one at hand or a later one."""
    missing = q.sums.shape[1] - depth
    at = q.chosen[1, depth]
    if at + missing > many:
        return False
    star = q.stars[depth - 1, 0]
    for u in range(missing):
        star += q.weight[at + u]
    return bool(star < wanted_star(q))


@inner(_void(MARKET, _int))
def search_root(q: Market, root: int) -> None:
    """Find the groups of negative reduced cost in which this record is the root."""
    m = q.sums.shape[1]
    many = list_candidates(q, root)
    add_member(q, 0, root)
    depth = 1
    q.chosen[1, 1] = 0
    while depth > 0:
        if not promising(q, depth, many):
            depth -= 1
            continue
        q.counts[LOOKS] += 1
        if q.counts[LOOKS] > q.counts[LOOKS_ALLOWED]:
            q.counts[CUT_SHORT] += 1
            q.least[root] = min(q.least[root], 0.5 * (q.sums[root, m - 1] + (m - 1) * q.floor[0]))
            return
        at = q.chosen[1, depth]
        q.chosen[1, depth] += 1
        lowest = add_member(q, depth, q.candidate[at])
        if lowest >= q.floor[1] - ROUNDING:
            continue
        if depth == m - 1:
            record(q, lowest)
        else:
            q.chosen[1, depth + 1] = at + 1
            depth += 1


@kernel(_void(MARKET))
def search_all(q: Market) -> None:
    """Find groups of negative reduced cost from every root, and the least reduced cost of each."""
    for root in range(q.prices.size):
        if q.sums[root, q.sums.shape[1] - 1] < wanted_star(q):
            q.counts[LOOKS] = 0
            q.counts[TAKEN] = 0
            search_root(q, root)


def of(gaps: np.ndarray, prices: np.ndarray, size: int, limits: Sequence[int], wanted: float = 0.0) -> Market:
    """Return a market for groups of this size; limits: groups in all, groups a root, looks a root."""
    n = len(prices)
    many, taken, looks = limits
    count = np.array([0, 0, 0, looks, taken, 0], np.int64)
    found, chosen = np.zeros((many, size), np.int32), np.zeros((2, size + 1), np.int32)
    stars, weights, candidates = np.zeros((size, size)), np.empty(n), np.empty(n, np.int32)
    return Market(
        *(gaps, prices, np.zeros((n, size)), np.zeros(n), found, count),
        *(weights, candidates, chosen, stars, np.array([0.0, wanted])),
    )

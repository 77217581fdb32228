"""Pricing: find every group that costs less than the prices of its records (or not much more), exactly.

With a price for each record, a group of m records has the reduced cost (its cost minus the prices of its members)

    sum over its pairs of   w(i, j) = distance(i, j) / m - (price(i) + price(j)) / (m - 1)

which is half the sum of its stars, the star of a member being the sum of its weights to the others. Hence

    a star is at least the sum of the m - 1 smallest weights of that record: the stars of all records bound every group,
    without any search;
    a group of negative reduced cost has a member with a negative star: its root.

The search takes each record as root and adds members by increasing weight. It turns back if the star of the root cannot
stay negative, or if half of (the stars so far, each completed by its smallest weights, and the least star for each
member to come) is not negative. A root that exceeds its looks keeps the bound of its stars, so the result stays valid.

Cost: O(n² m) for the stars; the search depends on the prices, few looks a root if they are near the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinfold.kernels.compiling import Floats, Rows, entry, inner
from kinfold.kernels.geometry import keep_nearest

PRICE_ROUNDING = 1e-9  # a reduced cost above minus this is rounding

COUNTS = np.dtype(
    [
        ("groups", np.int64),  # groups so far
        ("looks", np.int64),  # at this root so far
        ("root_groups", np.int64),  # groups of this root so far
        ("most_looks", np.int64),  # limit of a root
        ("most_root_groups", np.int64),  # limit of groups of a root
        ("cut_short", np.int64),  # roots that exceeded their looks
        ("least_star", np.float64),  # of all records
        ("wanted", np.float64),  # reduced cost below which groups are listed
    ],
    align=True,
)
CHOSEN = np.dtype([("record", np.int64), ("at", np.int64)], align=True)


class Pricing(NamedTuple):
    """Prices, what follows from them for groups of one size, and the workspace of the search."""

    gaps: Floats  # (n, n)
    prices: Floats  # (n)
    sums: Floats  # (n, m): sums of the 0 to m - 1 smallest weights of a record
    least: Floats  # (n) the least reduced cost with this root, at most 0
    groups: Rows  # (many, m) the groups so far
    counts: Any  # (1) COUNTS
    weight: Floats  # (n) weights of the candidates of this root, increasing
    candidate: Rows  # (n) the candidates
    chosen: Any  # (m + 1) CHOSEN: the members so far, the root first, and the candidate at each depth
    stars: Floats  # (m, m) at each depth, the star so far of each member


def make_pricing(gaps: Floats, prices: Floats, size: int, limits: Sequence[int], wanted: float = 0.0) -> Pricing:
    """Return the pricing of groups of this size; limits: groups in all, groups of a root, looks of a root."""
    n = len(prices)
    many, per_root, looks = limits
    counts = np.zeros(1, COUNTS).view(np.recarray)
    counts[0].most_looks, counts[0].most_root_groups, counts[0].wanted = looks, per_root, wanted
    groups, chosen = np.zeros((many, size), np.int32), np.zeros(size + 1, CHOSEN).view(np.recarray)
    stars, weights, candidates = np.zeros((size, size)), np.empty(n), np.empty(n, np.int32)
    return Pricing(gaps, prices, np.zeros((n, size)), np.zeros(n), groups, counts, weights, candidates, chosen, stars)


_EXAMPLE = make_pricing(np.zeros((1, 1)), np.zeros(1), 1, (1, 1, 1))


@inner
def pair_weight(q: Pricing, i: int, j: int) -> float:
    """Return the weight of a pair."""
    m = q.sums.shape[1]
    return float(q.gaps[i, j] / m - (q.prices[i] + q.prices[j]) / (m - 1))


@entry(_EXAMPLE, np.zeros((1, 1), np.int32))
def sum_stars(q: Pricing, picks: Rows) -> None:
    """Compute the sums of the smallest weights of each record, and fill `picks` with the records they lead to."""
    many = q.sums.shape[1] - 1
    low = np.empty(many)
    for i in range(q.prices.size):
        count = 0
        for j in range(q.prices.size):
            if j != i:
                count = keep_nearest(low, picks[i], count, pair_weight(q, i, j), j)
        q.sums[i, 0] = 0.0
        for t in range(many):
            q.sums[i, t + 1] = q.sums[i, t] + low[t]
    q.counts[0].least_star = q.sums[:, many].min()


@inner
def wanted_star(q: Pricing) -> float:
    """Return the bound on the star of a root: the least star of a group is at most the mean of all."""
    return float(2.0 * q.counts[0].wanted / q.sums.shape[1] - PRICE_ROUNDING)


@inner
def list_candidates(q: Pricing, root: int) -> int:
    """List by increasing weight the records that can be in a negative star of the root; return their number."""
    others = q.sums.shape[1] - 2
    count = 0
    for j in range(q.prices.size):
        there = pair_weight(q, root, j)
        if j != root and there + q.sums[root, others] < wanted_star(q):
            q.weight[count] = there
            q.candidate[count] = j
            count += 1
    order = np.argsort(q.weight[:count], kind="mergesort")
    q.weight[:count] = q.weight[:count][order]
    q.candidate[:count] = q.candidate[:count][order]
    return count


@inner
def add_member(q: Pricing, depth: int, j: int) -> float:
    """Write j as member number `depth` with its stars; return the lowest possible reduced cost."""
    m = q.sums.shape[1]
    missing = m - 1 - depth
    q.chosen[depth].record = j
    q.stars[depth, depth] = 0.0
    total = missing * q.counts[0].least_star
    for t in range(depth):
        c = q.chosen[t].record
        there = pair_weight(q, c, j)
        q.stars[depth, t] = q.stars[depth - 1, t] + there
        q.stars[depth, depth] += there
        total += q.stars[depth, t] + q.sums[c, missing]
    return float(0.5 * (total + q.stars[depth, depth] + q.sums[j, missing]))


@inner
def is_promising(q: Pricing, depth: int, many: int) -> bool:
    """Whether the star of the root can end negative if the next member is the current one or a later one."""
    missing = q.sums.shape[1] - depth
    at = q.chosen[depth].at
    if at + missing > many:
        return False
    star = q.stars[depth - 1, 0]
    for u in range(missing):
        star += q.weight[at + u]
    return bool(star < wanted_star(q))


@inner
def search_root(q: Pricing, root: int) -> None:
    """Find the groups of negative reduced cost with this root."""
    m = q.sums.shape[1]
    many = list_candidates(q, root)
    add_member(q, 0, root)
    depth = 1
    q.chosen[1].at = 0
    while depth > 0:
        if not is_promising(q, depth, many):
            depth -= 1
            continue
        q.counts[0].looks += 1
        if q.counts[0].looks > q.counts[0].most_looks:
            q.counts[0].cut_short += 1
            q.least[root] = min(q.least[root], 0.5 * (q.sums[root, m - 1] + (m - 1) * q.counts[0].least_star))
            return
        at = q.chosen[depth].at
        q.chosen[depth].at += 1
        lowest = add_member(q, depth, q.candidate[at])
        if lowest >= q.counts[0].wanted - PRICE_ROUNDING:
            continue
        if depth < m - 1:
            q.chosen[depth + 1].at = at + 1
            depth += 1
            continue
        q.least[root] = min(q.least[root], lowest)
        if q.counts[0].groups < q.groups.shape[0] and q.counts[0].root_groups < q.counts[0].most_root_groups:
            for t in range(m):
                q.groups[q.counts[0].groups, t] = q.chosen[t].record
            q.counts[0].groups += 1
            q.counts[0].root_groups += 1


@entry(_EXAMPLE)
def search_all(q: Pricing) -> None:
    """Find groups of negative reduced cost from every root, and the least reduced cost of each."""
    for root in range(q.prices.size):
        if q.sums[root, q.sums.shape[1] - 1] < wanted_star(q):
            q.counts[0].looks = 0
            q.counts[0].root_groups = 0
            search_root(q, root)

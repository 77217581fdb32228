"""Prices of the records, climbed to a high bound by subgradients.

    bound(prices) = sum over records i of   price(i) + half the least star of i over all group sizes m
    slope at j    = 1/2 - sum over the records i whose least star leads to j of   1 / (2 (m - 1))
    step          = (the cost of a good partition - bound) / |slope|², times a share that is halved when
                    nothing was gained for a while (Polyak)

Start: prices made safe again and again from 0 on; this soon ends, much higher than nearest records.
With half its least star added a price is safe: no group costs less than the safe prices of its members. The least
star over m is found for each m from k to 2k-1 and is exact, so that every bound on the way is valid.
Cost: O(n² k) a step.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from kinfold import kernels
from kinfold.progress import Progress, silent

if TYPE_CHECKING:
    from kinfold.methods.partition.gaps import Gaps
    from kinfold.rows.points import Floats

STEPS = 400  # at most
PATIENCE = 10  # steps without a gain before the steps are made smaller
SMALLEST = 1e-3  # a step below this share of the first is the last
SETTLING, GROWTH = 20, 1e-4  # rounds that make prices safe at first, and the least growth for another round


def climb(gaps: Gaps, k: int, cost: float, until: float, progress: Progress = silent) -> tuple[Floats, float]:
    """Return safe prices with a high sum, and that sum, the bound; `cost` is that of any partition."""
    prices = top = best = settle(gaps, k)
    highest, share, idle = -np.inf, 1.0, 0
    for step in range(STEPS):
        safe, slope = star_bound(gaps, k, prices)
        value = float(safe.sum())
        idle += 1
        if value > highest:
            idle, top, best, highest = 0, prices, safe, value
        if idle >= PATIENCE:
            share, idle, prices = share / 2, 0, top
            safe, slope = star_bound(gaps, k, prices)
            value = float(safe.sum())
        steepness = float((slope**2).sum())
        if steepness == 0.0 or share < SMALLEST or cost - highest <= 1e-9 * cost or time.monotonic() > until:
            break
        prices = prices + share * (cost - value) / steepness * slope
        progress(step, STEPS)
    return best, highest


def settle(gaps: Gaps, k: int) -> Floats:
    """Return prices made safe again and again from 0 on, as long as their sum grows."""
    prices = np.zeros(len(gaps))
    for _ in range(SETTLING):
        safe, _slope = star_bound(gaps, k, prices)
        if safe.sum() <= prices.sum() * (1.0 + GROWTH):
            break
        prices = safe
    return prices


def star_bound(gaps: Gaps, k: int, prices: Floats) -> tuple[Floats, Floats]:
    """Return safe prices, with half the least star added, and the slope of their sum."""
    pricing = kernels.load("pricing")

    n = len(gaps)
    least, slope = np.full(n, np.inf), np.full(n, 0.5)
    leads = np.zeros((n, 0), np.int32)
    sizes = np.zeros(n, np.int64)
    for m in range(k, min(2 * k - 1, n) + 1):
        priced = pricing.of(gaps.pairs, prices, m, (0, 0, 0))
        picks = np.zeros((n, m - 1), np.int32)
        pricing.sum_stars(priced, picks)
        lower = priced.sums[:, m - 1] < least
        picks[~lower, : leads.shape[1]] = leads[~lower]
        leads, least = picks, np.where(lower, priced.sums[:, m - 1], least)
        sizes[lower] = m
    for m in range(k, 2 * k):
        led = leads[sizes == m, : m - 1].ravel()
        slope -= np.bincount(led, minlength=n) / (2 * (m - 1))
    return prices + 0.5 * least, slope

"""Sampling weights, plainly: a record of weight 3 is three records; raking scales one category after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Any

ROUNDS = 20_000


def repeat(values: Sequence[Any], weights: Sequence[int]) -> list[Any]:
    """Return each value as often as its weight says."""
    return [value for value, weight in zip(values, weights, strict=True) for _ in range(weight)]


def lower_median(values: Sequence[Any], weights: Sequence[int]) -> Any:
    return median_low(repeat(values, weights))


def most_frequent(values: Sequence[Any], weights: Sequence[int]) -> Any:
    counts = Counter(repeat(values, weights))
    return min(counts, key=lambda value: (-counts[value], value))


def rake(weights: Sequence[float], columns: Sequence[Sequence[str]], wanted: Sequence[Mapping[str, float]]) -> Any:
    """Scale the weights to the totals of each category of each column in turn, until all totals hold."""
    weights = [*weights]
    for _ in range(ROUNDS):
        worst = 0.0
        for column, goals in zip(columns, wanted, strict=True):
            totals = Counter[str]()
            for value, weight in zip(column, weights, strict=True):
                totals[value] += weight
            worst = max(worst, max(abs(totals[value] - goal) for value, goal in goals.items()))
            weights = [weight * goals[value] / totals[value] for value, weight in zip(column, weights, strict=True)]
        if worst < 1e-10:
            return weights
    return None

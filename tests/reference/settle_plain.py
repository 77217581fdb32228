"""Repair and settling the plain way: every exchange tried, every cost and promise from its definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

Miss = Callable[[list[int]], float]
Classes = list[list[int]]


def cost(gaps: np.ndarray, classes: Classes) -> float:
    """Squared distances of the pairs of each class over its size."""
    return sum(sum(float(gaps[i, j]) for i, j in combinations(each, 2)) / len(each) for each in classes if each)


def exchanges(classes: Classes, k: int) -> Iterator[Classes]:
    """Every partition that one record gets to by going to another class, or two by changing places."""
    for a, b in combinations(range(len(classes)), 2):
        for one, other in ((a, b), (b, a)):
            if len(classes[one]) > k:
                for i in classes[one]:
                    yield _with(classes, {one: _less(classes[one], i), other: [*classes[other], i]})
        for i in classes[a]:
            for j in classes[b]:
                yield _with(classes, {a: [*_less(classes[a], i), j], b: [*_less(classes[b], j), i]})


def settle(gaps: np.ndarray, classes: Classes, k: int, miss: Miss) -> Classes:
    """The best exchange that keeps every promise, again and again until none lowers the cost."""
    while True:
        kept = [each for each in exchanges(classes, k) if not any(map(miss, each))]
        best = min(kept, key=lambda each: cost(gaps, each), default=classes)
        if cost(gaps, best) > cost(gaps, classes) - 1e-9:
            return classes
        classes = best


def repair(gaps: np.ndarray, classes: Classes, k: int, miss: Miss) -> Classes:
    """The exchange that lowers what is missed most, then costs least; where none does, the worst class is merged."""
    while any(map(miss, classes)) and len(classes) > 1:
        now = sum(map(miss, classes))
        best = min(exchanges(classes, k), key=lambda each: (round(sum(map(miss, each)), 9), cost(gaps, each)))
        if sum(map(miss, best)) < now - 1e-9:
            classes = best
            continue
        worst = max(range(len(classes)), key=lambda g: miss(classes[g]))
        merged = [
            [each for g, each in enumerate(classes) if g not in (worst, h)] + [classes[worst] + classes[h]]
            for h in range(len(classes))
            if h != worst
        ]
        classes = min(merged, key=lambda each: cost(gaps, each))
    return classes


def _less(members: list[int], i: int) -> list[int]:
    return [j for j in members if j != i]


def _with(classes: Classes, changed: dict[int, list[int]]) -> Classes:
    return [changed.get(g, each) for g, each in enumerate(classes)]

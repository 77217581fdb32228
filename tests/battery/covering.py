"""A covering array: few choices of one value for each factor, such that every pair of values of two factors occurs.

Greedy, from a fixed seed: a row starts from a pair that did not occur yet, the other factors are filled in at random a
few times, and the filling that covers most pairs is taken. Further rows are random: more of the whole product.
"""

import random
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, TypeAlias

Choice: TypeAlias = dict[str, Any]

TRIES = 12


def covering(factors: Mapping[str, Sequence[Any]], seed: int, more: int = 0) -> list[Choice]:
    """Return rows in which every pair of values occurs, and so many random rows more."""
    chance = random.Random(seed)
    names = list(factors)
    missing = {
        (a, i, b, j)
        for a, b in combinations(range(len(names)), 2)
        for i, j in product(range(len(factors[names[a]])), range(len(factors[names[b]])))
    }
    sizes = [len(factors[name]) for name in names]
    rows = []
    while missing:
        a, i, b, j = min(missing, key=lambda pair: (-sizes[pair[0]] * sizes[pair[2]], pair))
        fillings = [_filled(sizes, {a: i, b: j}, chance) for _ in range(TRIES)]
        best = max(fillings, key=lambda row: sum(pair in missing for pair in _pairs(row)))
        missing.difference_update(_pairs(best))
        rows.append(best)
    rows += [_filled(sizes, {}, chance) for _ in range(more)]
    return [{name: factors[name][at] for name, at in zip(names, row, strict=True)} for row in rows]


def _filled(sizes: list[int], fixed: dict[int, int], chance: random.Random) -> list[int]:
    return [fixed.get(at, chance.randrange(size)) for at, size in enumerate(sizes)]


def _pairs(row: list[int]) -> list[tuple[int, int, int, int]]:
    return [(a, row[a], b, row[b]) for a, b in combinations(range(len(row)), 2)]

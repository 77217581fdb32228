"""SUDA2 by its definition: every set of columns, every record."""

from itertools import combinations
from math import factorial


def minimal_sample_uniques(rows: list[tuple]) -> list[list[frozenset[int]]]:
    """The minimal sample uniques of each record; None is no item."""
    columns = range(len(rows[0]))
    found: list[list[frozenset[int]]] = [[] for _ in rows]
    for size in range(1, len(rows[0]) + 1):
        for chosen in combinations(columns, size):
            tuples = [tuple(row[j] for j in chosen) for row in rows]
            for i, own in enumerate(tuples):
                if None not in own and tuples.count(own) == 1 and not any(m <= set(chosen) for m in found[i]):
                    found[i].append(frozenset(chosen))
    return found


def scores(rows: list[tuple]) -> list[int]:
    """The score of each record."""
    width = len(rows[0])
    return [sum(factorial(width - len(m)) for m in sets) for sets in minimal_sample_uniques(rows)]

"""Cell-level generalization by exhaustion: every division of a few records into classes."""

import numpy as np

from kinfold.methods.generalize.domain import Domain
from reference import full_domain


def divisions(items: list[int]):
    """Every way to divide the items into classes."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for division in divisions(rest):
        yield [[first], *division]
        for i, part in enumerate(division):
            yield [*division[:i], [first, *part], *division[i + 1 :]]


def lost(domain: Domain, part: list[int]) -> float:
    """What the records of a class lose together, with the lowest level at which they agree in each attribute."""
    total = 0.0
    for a, height in enumerate(domain.heights):
        level = next(
            up for up in range(height + 1) if len({full_domain.label(domain, row, a, up) for row in part}) == 1
        )
        total += sum(full_domain.cell_lost(domain, row, a, level) for row in part) / len(domain.heights)
    return total


def best(domain: Domain, k: int, l: int = 1) -> float:
    """The least mean loss of all divisions into classes of k records with l diseases; infinite if there is none."""
    held = full_domain.diseases(domain)
    found = np.inf
    for division in divisions(list(range(len(domain)))):
        if all(len(part) >= k and len({held[row] for row in part}) >= l for part in division):
            found = min(found, sum(lost(domain, part) for part in division) / len(domain))
    return found

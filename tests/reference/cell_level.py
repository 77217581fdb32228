"""Cell-level generalization by exhaustion: every division of a few records into classes, and a bound."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.levels import CellLoss, count_generalizations, mark_failing
from kinfold.models import Model
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


def lower_bound(domain: Domain, models: Sequence[Model]) -> float:
    """Return a granularity that no cell-level generalization can lose less than (0 for large lattices).

    Each record loses at least what the most specific statement loses that it shares with enough others. Only absorbing
    models count: other promises can fail or hold again when records join a class.
    """
    if count_generalizations(domain.heights) > 20_000:
        return 0.0
    loss = CellLoss.from_objective(domain, "granularity")
    least = np.ones(len(domain))
    absorbing = [model for model in models if model.absorbing]
    for levels in product(*(range(height + 1) for height in domain.heights)):
        into = domain.classes(levels)
        kept = ~mark_failing(absorbing, domain.tally.merge(into, {}))[into]
        losses = np.zeros(int(kept.sum()))
        for a, level in enumerate(levels):
            losses += loss.weights[a] * loss.tables[a][domain.codes[kept, a], level]
        least[kept] = np.minimum(least[kept], losses)
    return float(domain.tally.sizes @ least) / domain.records

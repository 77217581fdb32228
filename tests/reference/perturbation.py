"""Perturbation by its definitions, one value at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def two_stages(matrix: Sequence[Sequence[Fraction]], counts: Sequence[int]) -> list[list[Fraction]]:
    """R = P Q: draw from P, then draw the original category by Bayes' rule."""
    size, total = len(counts), sum(counts)
    shares = [Fraction(count, total) for count in counts]
    reached = [sum(shares[i] * matrix[i][k] for i in range(size)) for k in range(size)]
    back = [
        [matrix[j][k] * shares[j] / reached[k] if reached[k] else Fraction(int(j == k)) for j in range(size)]
        for k in range(size)
    ]
    return [[sum(matrix[i][k] * back[k][j] for k in range(size)) for j in range(size)] for i in range(size)]


def rank_gap(before: Sequence[float], after: Sequence[float]) -> int:
    """The most ranks between a value and its replacement, with the ranks of ties chosen as near as possible."""
    ranks: dict[float, list[int]] = {}
    for rank, value in enumerate(sorted(before)):
        ranks.setdefault(value, []).append(rank)
    gaps = [min(abs(i - j) for i in ranks[x] for j in ranks[y]) for x, y in zip(before, after, strict=True)]
    return max(gaps, default=0)


def informed_links(scores: Sequence[Sequence[float]]) -> float:
    """The expected share of targets whose own record is drawn from the most likely ones; a row for each target."""
    found = Fraction(0)
    for target, row in enumerate(scores):
        best = [record for record, score in enumerate(row) if score >= max(row) - 1e-9]
        found += Fraction(target in best, len(best))
    return float(found / len(scores))

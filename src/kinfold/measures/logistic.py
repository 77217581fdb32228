"""Logistic regression, small: Newton's steps, halved until they climb, with a little ridge, over blocks of rows.

Features are standardized and may be taken to the second degree (squares and products), made block by block, so that
memory stays at one block. The ridge keeps a table that a plane can split from running to infinity.
Cost: O(n p²) for each of at most `STEPS` steps, p features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kinfold.measures.arrays import Flags, Floats

STEPS = 25
RIDGE = 1e-6  # of the number of rows
BLOCK = 65_536
ENOUGH = 1e-6  # the largest change of a coefficient that is no longer followed


@dataclass(frozen=True, eq=False)
class Features:
    """Standardized columns, an intercept and, for degree 2, their squares and products."""

    means: Floats
    units: Floats
    degree: int

    @classmethod
    def of(cls, x: Floats, degree: int = 1) -> Features:
        """Take means and deviations of a table; a constant column becomes 0."""
        deviation = x.std(axis=0)
        varied = (x.max(axis=0) > x.min(axis=0)) & (deviation > 0)
        return cls(x.mean(axis=0), np.where(varied, deviation, np.inf), degree)

    def __call__(self, x: Floats) -> Floats:
        """Return the features of these rows."""
        z = (x - self.means) / self.units
        parts = [np.ones((len(z), 1)), z]
        if self.degree == 2:
            i, j = np.triu_indices(z.shape[1])
            parts.append(z[:, i] * z[:, j])
        return np.hstack(parts)


def fit(features: Features, x: Floats, chosen: Flags) -> Floats:
    """Return the coefficients that tell the chosen rows from the others with the highest likelihood."""
    size = features(x[:1]).shape[1]
    step: Floats = np.zeros(size)
    best: Floats = np.zeros(size)
    reached = -np.inf
    for _ in range(STEPS):
        likelihood, slope, bend = _likelihood(features, x, chosen, best + step)
        if likelihood < reached:  # too far: back by half, and look again
            step = step / 2.0
            continue
        best, reached = best + step, likelihood
        step = np.asarray(np.linalg.solve(bend, slope), np.float64)
        if np.abs(step).max() <= ENOUGH:
            break
    return best


def _likelihood(features: Features, x: Floats, chosen: Flags, beta: Floats) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood less the ridge, its slope and the negative of its second derivatives."""
    ridge = RIDGE * len(x)
    value = -ridge * float(beta @ beta) / 2.0
    slope, bend = -ridge * beta, ridge * np.eye(len(beta))
    for rows in _blocks(len(x)):
        block = features(x[rows])
        z = block @ beta
        chance = sigmoid(z)
        value += float((np.where(chosen[rows], z, 0.0) - np.logaddexp(0.0, z)).sum())
        slope += block.T @ (chosen[rows] - chance)
        bend += (block * (chance * (1.0 - chance))[:, None]).T @ block
    return value, slope, bend


def chances(features: Features, x: Floats, beta: Floats) -> Floats:
    """Return for each row the fitted chance that it is a chosen one."""
    return np.concatenate([sigmoid(features(x[rows]) @ beta) for rows in _blocks(len(x))])


def sigmoid(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, small) / (1.0 + small), np.float64)


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n, BLOCK))

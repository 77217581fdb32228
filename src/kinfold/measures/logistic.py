"""Logistic regression, small: Newton's steps, halved until they climb, with a little ridge.

Features are standardized columns, with their squares and products if asked for. The ridge keeps a table that a plane
can split from running to infinity; the climb ends when a step gains next to nothing per row.
Cost: O(n p²) for each of at most `STEPS` steps, p features; memory O(n p).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kinfold.measures.arrays import Flags, Floats

STEPS = 25
RIDGE = 1e-6  # of the number of rows
ENOUGH = 1e-9  # likelihood gained per row that is no longer followed


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


def fit(design: Floats, chosen: Flags) -> Floats:
    """Return the coefficients that tell the chosen rows from the others with the highest likelihood."""
    best: Floats = np.zeros(design.shape[1])
    step: Floats = np.zeros(design.shape[1])
    reached = -np.inf
    for _ in range(STEPS):
        z = design @ (best + step)
        found = likelihood(z, chosen, best + step)
        if found < reached:  # too far: back by half, and look again
            step = step / 2.0
            continue
        best, gain, reached = best + step, found - reached, found
        if gain <= ENOUGH * len(z):
            break
        step = _newton(design, z, chosen, best)
    return best


def likelihood(z: Floats, chosen: Flags, beta: Floats) -> float:
    """Return the log-likelihood of the scores z, less the ridge on the coefficients."""
    return float(z[chosen].sum() - np.logaddexp(0.0, z).sum() - RIDGE * len(z) * (beta @ beta) / 2.0)


def sigmoid(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, small) / (1.0 + small), np.float64)


def _newton(design: Floats, z: Floats, chosen: Flags, beta: Floats) -> Floats:
    chance = sigmoid(z)
    ridge = RIDGE * len(z)
    slope = design.T @ (chosen - chance) - ridge * beta
    bend = (design * (chance * (1.0 - chance))[:, None]).T @ design + ridge * np.eye(len(beta))
    return np.asarray(np.linalg.solve(bend, slope), np.float64)

"""Logistic regression with a little ridge, fitted by scipy's Newton steps within a trust region.

Features are standardized columns, with their squares and products if asked for. The ridge keeps a table that a plane
can split from running to infinity.
Cost: O(n p²) for each of at most `STEPS` steps, p features; memory O(n p).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kinfold.measures.arrays import Flags, Floats

STEPS = 100  # seldom more than 15 are taken; a table that a plane can split takes the most
RIDGE = 1e-6  # of the number of rows: too little to move a fit, enough to end one
FLAT = 1e-9  # slope per row at which the fit ends: scores are then settled to about 10 digits


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
    from scipy.optimize import minimize  # loaded only where something is fitted
    from scipy.special import expit

    records = len(design)

    def cost(beta: Floats) -> tuple[float, Floats]:
        z = design @ beta
        slope = design.T @ (expit(z) - chosen) / records + RIDGE * beta
        return -likelihood(z, chosen, beta) / records, slope

    def bend(beta: Floats) -> Floats:
        chance = expit(design @ beta)
        weighted = design * (chance * (1.0 - chance))[:, None]
        return np.asarray(weighted.T @ design / records + RIDGE * np.eye(len(beta)), np.float64)

    start = np.zeros(design.shape[1])
    with np.errstate(under="ignore", over="ignore"):  # a chance of next to 0 is 0
        found = minimize(
            cost, start, jac=True, hess=bend, method="trust-exact", options={"gtol": FLAT, "maxiter": STEPS}
        )
    return np.asarray(found.x, np.float64)


def likelihood(z: Floats, chosen: Flags, beta: Floats) -> float:
    """Return the log-likelihood of the scores z, less the ridge on the coefficients."""
    return float(z[chosen].sum() - np.logaddexp(0.0, z).sum() - RIDGE * len(z) * (beta @ beta) / 2.0)


def chances(design: Floats, beta: Floats) -> Floats:
    """Return for each row the fitted chance that it is a chosen one."""
    from scipy.special import expit

    return np.asarray(expit(design @ beta), np.float64)

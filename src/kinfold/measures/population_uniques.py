"""A promise about the people who are unique in the population, estimated from the class sizes of a release.

The value found is the estimated number of population uniques over the size of the population. If an estimate does not
exist for these classes, the promise fails, and its text has the reason.

Dropping or merging classes changes the estimate in no fixed direction, so a search evaluates every candidate. Classes
of at least two records have no sample uniques, and every estimator then finds no population unique.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kinfold.measures.formulas.arrays import Ints, NotApplicable
from kinfold.measures.formulas.uniques import dankar_uniques, pitman_uniques, snb_uniques, zayatz_uniques
from kinfold.models import Finding, KAnonymity, Mask, Model, Promise, TableModel
from kinfold.policy.model import Policy
from kinfold.tables.tally import Tally

ESTIMATORS: Mapping[str, Callable[[Ints, int], float]] = {
    "dankar": dankar_uniques,
    "zayatz": zayatz_uniques,
    "pitman": pitman_uniques,
    "snb": snb_uniques,
}


@dataclass(frozen=True)
class PopulationUniques(TableModel):
    """At most this share of the people is unique in the population.

    >>> model = PopulationUniques(0.1, population=80, estimator="zayatz")
    >>> round(model.check(Tally({}, np.array([1, 1, 1, 2, 3]))).found, 4)
    0.1539
    """

    share: float
    population: int
    estimator: str = "dankar"
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = False
    absorbing: ClassVar[bool] = False

    def imply(self, records: int) -> tuple[Model, ...]:  # noqa: ARG002  the same for any table
        """Return a promise about each class that implies this one: without sample uniques every estimate is 0."""
        return (KAnonymity(2),)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes of one record if the promise fails: without them it holds."""
        return np.asarray((tally.sizes == 1) & (self._estimate(tally)[0] > self.share), np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the estimate with the largest share."""
        share, reason = self._estimate(tally)
        text = f"at most {self.share:g} of {self.population:,} people unique (estimated by {self.estimator}{reason})"
        return Promise(text, "uniques", None, self.share).compare(share, self.failing(tally), tally)

    def _estimate(self, tally: Tally) -> tuple[float, str]:
        """Return the share of unique people, or infinity and the reason."""
        if not (tally.sizes == 1).any():
            return 0.0, ""
        try:
            return ESTIMATORS[self.estimator](tally.sizes, self.population) / self.population, ""
        except NotApplicable as error:
            return math.inf, f"; {error.reason}"


def build_unique_promises(policy: Policy) -> tuple[Model, ...]:
    """Return the promise about population uniques, if the policy has one."""
    keys = policy.privacy.population
    if keys is None or keys.uniques is None or keys.size is None:
        return ()
    return (PopulationUniques(keys.uniques, keys.size, keys.estimator),)

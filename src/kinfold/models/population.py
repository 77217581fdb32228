"""Promises about the population that a table is a sample of.

    KMap             every class has at least k people of a table of the population (Sweeney 2002)
    DeltaPresence    every class holds from `least` to `most` of its people of the population (Nergiz et al. 2007)
    EstimatedKMap    without such a table: every class has so many records that, with the confidence 1 - alpha, at least
                     k of the people of the population have its values (El Emam & Dankar 2008, see `measures`)

The first two need the people of each class in the tally, and a recipient cannot check them: they are statements of the
data holder. The last one needs the size of the population only. `DeltaPresence` looks at the classes of the table, as
ARX does; a class of the population that holds no record has a presence of 0, which `count_empty` of the holder's check
reports.

All are monotone: people and records of a union add up, and a share in a union lies between the shares in its parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import ClassVar

import numpy as np

from kinfold.errors import PolicyError
from kinfold.models.k_anonymity import KAnonymity
from kinfold.models.model import Finding, Mask, Model, Promise, TableModel
from kinfold.tables.tally import Ints, Tally


@dataclass(frozen=True)
class KMap(TableModel):
    """Every class has at least k people of the population.

    >>> KMap(5).check(Tally({}, np.array([2, 3]), people=np.array([4, 9]))).found
    4
    """

    k: int
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = True  # people add up
    absorbing: ClassVar[bool] = True

    def imply(self, records: int) -> tuple[Model, ...]:  # noqa: ARG002  the same for any table
        """Return the promise about each class that implies this one, because the population has every record."""
        return (KAnonymity(self.k),)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes with fewer than k people."""
        return np.asarray(_get_people(tally) < self.k, np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the class with the fewest people with k."""
        fewest = int(_get_people(tally).min()) if len(tally) else 0
        text = f"{self.k} people of the population in every class (k-map)"
        return Promise(text, "kmap", None, self.k).compare(fewest, self.failing(tally), tally)


@dataclass(frozen=True)
class DeltaPresence(TableModel):
    """Every class holds a share from `least` to `most` of its people of the population.

    >>> DeltaPresence(0.1, 0.5).check(Tally({}, np.array([2, 3]), people=np.array([4, 9]))).found
    0.5
    """

    least: float
    most: float
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = True  # the share in a union lies between the shares in its parts
    absorbing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most <= 1:
            what = f"presence is from {self.least} to {self.most}"
            raise PolicyError(what, fix="give two shares from 0 to 1, the smaller one first: [0.1, 0.5]")

    def imply(self, records: int) -> tuple[Model, ...]:  # noqa: ARG002  the same for any table
        """Return nothing: no promise about class sizes implies it, and methods that need one are refused."""
        return ()

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes with a share outside of the limits."""
        shares = self._shares(tally)
        return np.asarray((shares < self.least) | (shares > self.most), np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the largest share with the upper limit; the promise also has a lower one."""
        largest = float(self._shares(tally).max(initial=0.0))
        text = f"presence from {self.least:g} to {self.most:g}"
        return Promise(text, "presence", None, self.most).compare(largest, self.failing(tally), tally)

    def _shares(self, tally: Tally) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        people = _get_people(tally)
        return np.where(people > 0, tally.sizes / np.maximum(people, 1), 1.0)


@dataclass(frozen=True)
class EstimatedKMap(TableModel):
    """Every class has enough records that at least k people of the population have its values, up to a risk alpha.

    >>> EstimatedKMap(5, population=150_000, alpha=0.1).check(Tally({}, np.array([3, 30_159]))).asked
    4
    """

    k: int
    population: int
    alpha: float
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = True  # sizes add up
    absorbing: ClassVar[bool] = True  # dropping records lowers the number that is needed

    def imply(self, records: int) -> tuple[Model, ...]:
        """Return the promise about each class that implies this one."""
        return (KAnonymity(self.require_size(records)),)

    def require_size(self, records: int) -> int:
        """Return the records that a class needs; raise if the population is smaller than the table."""
        if records > self.population:
            what = f"privacy.population: {self.population:,} people, but {records:,} records"
            raise PolicyError(what, fix="give the number of people that the records were drawn from")
        return find_k_map_size(records, self.population, self.k, self.alpha)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes with too few records."""
        if not len(tally):
            return np.zeros(0, np.bool_)
        return np.asarray(tally.sizes < self.require_size(tally.records), np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the smallest class with the number of records that is needed."""
        smallest = int(tally.sizes.min()) if len(tally) else 0
        needed = self.require_size(tally.records) if len(tally) else self.k
        text = f"{self.k} of {self.population:,} people in every class (k-map, estimated, risk {self.alpha:g})"
        return Promise(text, "estimated_kmap", None, needed).compare(smallest, self.failing(tally), tally)


@cache
def find_k_map_size(n: int, population: int, k: int, alpha: float, *, truncated: bool = True) -> int:
    """Return the least k' with P(X ≥ k' | X > 0) ≤ alpha, X Poisson with mean n k/N, at most k.

    `truncated`: given that the class has a record, as every released class does. Without it, the result may be 1.
    Probabilities are added from the smallest up.

    >>> find_k_map_size(30_162, 150_000, 5, 0.1), find_k_map_size(30_162, 60_000, 50, 0.05, truncated=False)
    (4, 35)
    """
    if k > population:  # no class has so many people
        return k
    mean = n * k / population
    most = int(mean + 40 * math.sqrt(mean) + 40)  # larger numbers have no weight
    chances = [math.exp(x * math.log(mean) - mean - math.lgamma(x + 1)) for x in range(most, -1, -1)]
    tails = [*accumulate(chances)][::-1]  # P(X ≥ 0), P(X ≥ 1), …
    some = -math.expm1(-mean) if truncated else 1.0
    return next((least for least in range(1, min(k, most)) if tails[least] <= alpha * some), k)


def _get_people(tally: Tally) -> Ints:
    if tally.people is None:
        raise PolicyError("the people of each class are not known", fix="give privacy.population a table")
    return tally.people

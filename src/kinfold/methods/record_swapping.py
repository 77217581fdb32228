"""Targeted record swapping: households exchange their regions with similar households elsewhere.

    risk        at each level of the regions, from the widest: the records of the area that share the values of the risk
                columns; a household is at risk at a level if one of its records is among fewer than k
    forced      the households at risk swap across the widest level at which they are, also beyond the rate
    others      up to the rate, households drawn with a probability that falls with their count, across the last level
    partner     a household with the same values of the similar columns in another area, that is not swapped yet

Both sides of a swap count as swapped. Each household is swapped at most once, as a whole, and with all levels of its
region: every region keeps its households by similarity, and all other columns stay as they are.

Papers: Shlomo, Tudor & Groom, PSD (2010); the variant of Eurostat's Centre of Excellence on statistical disclosure
control (2017-2019). Cost: O(n log n).   Ties: the lowest household first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError
from kinfold.measures.formulas.arrays import group_rows
from kinfold.methods.perturbation import MAX_TRIES, draw_uniforms, make_key, stream_uniforms
from kinfold.tables.plain_columns import encode_values

Codes: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class HouseholdSwap:
    """The household that each household swaps its regions with (itself: none), and those at risk that found none."""

    partner: Codes
    places: Codes  # by record, the record whose regions it gets
    forced: int
    unmatched: int

    @property
    def swapped(self) -> int:
        """The number of swapped households."""
        return int((self.partner != np.arange(len(self.partner))).sum())


def swap_households(
    household: Any,
    regions: Sequence[Any],
    *,
    similar: Sequence[Any] = (),
    risk: Sequence[Any] = (),
    rate: float = 0.05,
    k: int = 0,
    seed: int = 0,
) -> HouseholdSwap:
    """Swap the regions of households; each argument has a value for each record, `regions` from the widest level.

    >>> swap = swap_households([1, 1, 2, 3, 4], [["a", "a", "b", "a", "b"]], similar=[[2, 2, 1, 1, 1]], rate=0.5)
    >>> swap.swapped, int(swap.partner[0])
    (2, 0)
    """
    if not 0 <= rate <= 1 or k < 0:
        raise PolicyError("record swapping: the rate is a share from 0 to 1, and k a count", fix="correct them")
    if (
        not len(regions)
        or not len(household)
        or {len(each) for each in (*regions, *similar, *risk)} != {len(household)}
    ):
        what = "record swapping: no region, no record, or columns of different lengths"
        raise DataError(what, fix="give at least one level of the regions, and in each column a value for every record")
    if missing := int((encode_values(household, "household") < 0).sum()):
        what = f"record swapping: {missing:,} of {len(household):,} households are missing"
        raise DataError(what, fix="give every record its household, a number of its own if it lives alone")
    people, first = _number_groups([household])
    areas = [_number_groups(regions[: level + 1])[0] for level in range(len(regions))]
    if any((area[first][people] != area).any() for area in areas):
        what = "record swapping: the region differs within a household"
        raise DataError(what, fix="correct the region, or name the column that numbers households")
    counts = [_count_sharing([area, *risk]) if risk else np.full(len(people), k, np.int64) for area in areas]
    least = np.array([_least_of_group(people, count, len(first)) for count in counts])
    profile = _number_profiles(people, similar, len(first))
    key = make_key(seed, "record swapping", people, *areas, profile)
    swap = _Swapping([area[first] for area in areas], profile, stream_uniforms(key))
    forced = [np.flatnonzero(each < k) for each in least]
    for level, houses in enumerate(forced):
        for house in filter(swap.is_free, houses.tolist()):
            swap.find(house, level)
    at_risk = np.unique(np.concatenate(forced))
    unmatched = sum(map(swap.is_free, at_risk.tolist()))
    _swap_others(swap, least[-1], round(rate * len(first)), key)
    return HouseholdSwap(swap.partner, first[swap.partner[people]], len(at_risk), unmatched)


def _swap_others(swap: _Swapping, counts: NDArray[np.int64], target: int, key: bytes) -> None:
    """Swap households up to the target number, drawn with probabilities that fall with their counts."""
    race = -np.log(draw_uniforms(key + b"order", len(counts))) * np.maximum(counts, 1)
    for house in np.argsort(race, kind="stable").tolist():
        if swap.count + 2 > target:
            return
        if swap.is_free(house):
            swap.find(house, len(swap.areas) - 1)


class _Swapping:
    """Households that are not swapped yet, by profile."""

    def __init__(self, areas: Sequence[Codes], profile: Codes, draws: Iterator[float]) -> None:
        self.areas, self.partner, self.count = areas, np.arange(len(profile)), 0
        self._profile, self._draws = profile, draws
        self._free: list[list[int]] = [[] for _ in range(profile.max() + 1)]
        self._at = np.empty(len(profile), np.intp)  # the place of each household in its list
        for house, own in enumerate(profile.tolist()):
            self._at[house] = len(self._free[own])
            self._free[own].append(house)

    def is_free(self, house: int) -> bool:
        """Whether a household is not swapped yet."""
        return bool(self.partner[house] == house)

    def find(self, house: int, level: int) -> bool:
        """Swap a household with a similar one in another area of a level, and return whether there is one."""
        free, area = self._free[self._profile[house]], self.areas[level]
        for _ in range(MAX_TRIES):
            other = free[int(next(self._draws) * len(free))]
            if area[other] != area[house]:
                break
        else:
            elsewhere = [each for each in free if area[each] != area[house]]
            if not elsewhere:
                return False
            other = elsewhere[int(next(self._draws) * len(elsewhere))]
        self.partner[house], self.partner[other] = other, house
        self.count += 2
        for each in (house, other):
            self._remove(free, each)
        return True

    def _remove(self, free: list[int], house: int) -> None:
        last = free.pop()
        if last != house:
            free[self._at[house]], self._at[last] = last, self._at[house]


def _number_groups(columns: Sequence[Any]) -> tuple[Codes, Codes]:
    """Return the number of the group of each record, in the order of their first records, and these records."""
    numbers, first = group_rows(np.column_stack([encode_values(column) for column in columns]))
    return np.argsort(np.argsort(first))[numbers], np.sort(first)


def _count_sharing(columns: Sequence[Any]) -> NDArray[np.int64]:
    numbers = _number_groups(columns)[0]
    return np.bincount(numbers)[numbers]


def _least_of_group(groups: Codes, values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, groups, values)
    return least


def _number_profiles(people: Codes, similar: Sequence[Any], count: int) -> Codes:
    """Return the number of the profile of each household: the values of its records in the similar columns."""
    if not similar:
        return np.zeros(count, np.intp)
    numbers = _number_groups(similar)[0]
    order = np.lexsort((numbers, people))
    starts = np.searchsorted(people[order], np.arange(count + 1))
    texts = [numbers[order[a:b]].tobytes() for a, b in pairwise(starts.tolist())]
    return np.unique(np.array(texts, object), return_inverse=True)[1].reshape(-1)

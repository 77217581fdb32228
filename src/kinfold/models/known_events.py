"""k-anonymity for known events (k^m): at most m known events of a person, with the class, match at least k people.

An event is one row of a person as released: its codes, and the period of its date, counted in days from the first
event of the person. Equal events of a person count as often as they are known. A row without any of these values is no
event. Terrovitis, Mamoulis & Kalnis, *Privacy-preserving anonymization of set-valued data*, VLDB 2008.

Cost: the number of combinations of at most m events, over all people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable
from kinfold.tables.tally import split_classes

Ints: TypeAlias = NDArray[np.int64]

MAX_COMBINATIONS = 100_000_000  # of one size: some 5 GB of places and counts
NO_DAY = np.iinfo(np.int64).max  # a missing date


@dataclass(frozen=True)
class KnownEvents:
    """What an attacker knows about the events of a person, and the least number of people that must match it."""

    k: int
    known: int  # events, at most
    codes: tuple[str, ...]  # columns of an event that are not dates
    dates: tuple[str, ...]
    formats: tuple[str | None, ...]  # of the dates; None: ISO 8601
    days: int = 1  # length of the periods in which an attacker knows dates; 0: not at all
    shift: int = 0  # the first dates of the people of a class are within twice as many days

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of an event."""
        return (*self.dates, *self.codes)


@dataclass(frozen=True, eq=False)
class Events:
    """Events as arrays, a value for each: its person, its number in its class, and whether it repeats another.

    The n-th of equal events of a person has a number of its own, and is known only with those before it.
    """

    owner: Ints
    number: Ints
    repeated: NDArray[np.bool_]

    def sort(self) -> NDArray[np.intp]:
        """Return the places of the events by person."""
        return np.lexsort((self.number, self.owner))


def find_first_days(owner: Ints, days: Sequence[Ints]) -> Ints:
    """Return the first day of each person."""
    first = np.full(int(owner.max(initial=-1)) + 1, NO_DAY)
    for column in days:
        np.minimum.at(first, owner, column)
    return first


def number_events(classes: Ints, owner: Ints, days: Sequence[Ints], codes: Sequence[Ints], period: int) -> Events:
    """Return the events of people: equal ones in a class have one number, and so have the second ones."""
    first = find_first_days(owner, days)[owner] if days else np.zeros(len(owner), np.int64)
    periods = [np.where(day == NO_DAY, 0, (day - first) // period + 1) for day in days] if period else []
    equal = split_classes(classes, [*periods, *codes])[0]
    order = np.lexsort((equal, owner))
    key = owner[order] * (int(equal.max(initial=0)) + 1) + equal[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    nth = np.empty(len(order), np.int64)
    nth[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return Events(owner, split_classes(equal, [nth])[0], nth > 0)


def count_matches(events: Events, known: int) -> Iterator[tuple[NDArray[np.intp], Ints]]:
    """Yield combinations of events of one person, by size, as places, and the people that have each combination.

    >>> events = Events(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 2]), np.zeros(4, bool))
    >>> [count.tolist() for _, count in count_matches(events, 2)]
    [[2, 1, 2, 1], [1, 1]]
    """
    order = events.sort()
    owner, number, repeated = events.owner[order], events.number[order], events.repeated[order]
    combinations = np.flatnonzero(~repeated)[:, None]
    for size in range(1, known + 1):
        if size > 1:
            combinations = _extend(combinations, owner)
            last, previous = combinations[:, -1], combinations[:, -2]
            combinations = combinations[~repeated[last] | (previous == last - 1)]
        if not len(combinations):
            return
        same = number[combinations[:, 0]]
        for column in combinations.T[1:]:
            same = np.unique(same * (int(number.max()) + 1) + number[column], return_inverse=True)[1]
        yield order[combinations], np.bincount(same)[same]


def _extend(combinations: NDArray[np.intp], owner: Ints) -> NDArray[np.intp]:
    """Return each combination with each later event of its person."""
    after = np.searchsorted(owner, owner, side="right")[combinations[:, -1]] - combinations[:, -1] - 1
    if int(after.sum()) > MAX_COMBINATIONS:
        what = f"privacy.events_known: there are more than {MAX_COMBINATIONS:,} combinations of events"
        raise Unreachable(what, fix="lower events_known, or leave out events of people who have very many")
    place = np.repeat(np.arange(len(after)), after)
    nth = np.arange(len(place)) - np.repeat(np.cumsum(after) - after, after)
    return np.column_stack([combinations[place], combinations[place, -1] + 1 + nth])


def find_least_match(events: Events, known: int, people: int) -> int:
    """Return the least number of people that a combination of known events matches; `people` match without any."""
    return min([people, *(int(count.min()) for _, count in count_matches(events, known))])


def choose_rare(events: Events, k: int, known: int) -> NDArray[np.intp]:
    """Return places of events so that every combination that fewer than k people have, of the least size, has one."""
    support = np.zeros(len(events.number), np.int64)
    for combinations, count in count_matches(events, known):
        if combinations.shape[1] == 1:
            support[combinations[:, 0]] = count
        if (rare := count < k).any():
            rarest = np.argmin(support[combinations[rare]], axis=1)
            return np.unique(combinations[rare][np.arange(len(rarest)), rarest])
    return np.empty(0, np.intp)

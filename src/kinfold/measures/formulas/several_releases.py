"""What several releases of the same people disclose together.

The attacker knows the quasi-identifiers of a person, and in which of the releases the person is.

    candidates   the people who are in every class, of every release, that the person is in. k-anonymity of each
                 release sets no lower bound on their number
    values       what the confidential value of the person can be: the class of the person holds it in every release.
                 If keys link the rows of the releases, one of the candidates holds it
    m-invariance each class has at least m records, all with different values; the class of a person has the same set
                 of values in every release (Xiao & Tao, SIGMOD 2007). Then m values remain, whatever is combined

Cost: O(n s) for n people with s classes each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from kinfold.tables.tally import Ints

ValueSet: TypeAlias = frozenset[int]


@dataclass(frozen=True, eq=False)
class PeopleInClasses:
    """A release as rows: the person and the class of each row, and the code of each confidential value."""

    person: Ints
    label: Ints
    values: Mapping[str, Ints] = field(default_factory=dict)

    def list_places(self) -> list[list[int]]:
        """Return the distinct pairs of a person and a class."""
        return np.unique(np.column_stack([self.person, self.label]), axis=0).tolist()  # type: ignore[no-any-return]

    def list_value_sets(self, name: str) -> list[ValueSet]:
        """Return the set of values of each class."""
        pairs = np.unique(np.column_stack([self.label, self.values[name]]), axis=0)
        cuts = np.searchsorted(pairs[:, 0], np.arange(1, int(self.label.max(initial=-1)) + 1))
        return [frozenset(part[:, 1].tolist()) for part in np.split(pairs, cuts)]


@dataclass(frozen=True)
class Invariance:
    """Whether releases are m-invariant, why not, and the fewest values that remain for a person."""

    holds: bool
    reason: str
    smallest_intersection: int


def find_candidates(releases: Sequence[PeopleInClasses]) -> dict[int, frozenset[int]]:
    """Return for each person in several of the releases the people who are in all of the person's classes.

    >>> march = PeopleInClasses(np.array([1, 2, 3, 4]), np.array([0, 0, 1, 1]))
    >>> april = PeopleInClasses(np.array([1, 2, 3, 5]), np.array([0, 1, 1, 0]))
    >>> {person: [*others] for person, others in find_candidates([march, april]).items()}
    {1: [1], 2: [2], 3: [3]}
    """
    members: dict[tuple[int, int], set[int]] = {}
    places: dict[int, list[tuple[int, int]]] = {}
    for number, release in enumerate(releases):
        for person, label in release.list_places():
            members.setdefault((number, label), set()).add(person)
            places.setdefault(person, []).append((number, label))
    shared: dict[tuple[tuple[int, int], ...], frozenset[int]] = {}
    candidates = {}
    for person, classes in sorted(places.items()):
        if classes[0][0] != classes[-1][0]:  # in several releases
            key = tuple(classes)
            if key not in shared:
                shared[key] = frozenset.intersection(*(frozenset(members[place]) for place in key))
            candidates[person] = shared[key]
    return candidates


def list_candidate_values(releases: Sequence[PeopleInClasses], name: str) -> dict[int, ValueSet]:
    """Return for each person in several releases the values of their candidates.

    That is what a reader concludes who can tell which rows of the releases are of one person.

    >>> march = PeopleInClasses(np.array([1, 2]), np.array([0, 0]), {"ill": np.array([7, 8])})
    >>> list_candidate_values([march, PeopleInClasses(np.array([1]), np.array([0]), {"ill": np.array([7])})], "ill")
    {1: frozenset({7})}
    """
    held: dict[int, set[int]] = {}
    for release in releases:
        for person, value in zip(release.person.tolist(), release.values[name].tolist(), strict=True):
            held.setdefault(person, set()).add(value)
    candidates = find_candidates(releases)
    values = {each: frozenset[int]().union(*map(held.__getitem__, each)) for each in {*candidates.values()}}
    return {person: values[each] for person, each in candidates.items()}


def list_value_sets(releases: Sequence[PeopleInClasses], name: str) -> dict[int, list[ValueSet]]:
    """Return for each person, for each release that they are in, the values that their class holds.

    A person with several classes in one release may hold the values of any of them.

    >>> march = PeopleInClasses(np.array([1, 2]), np.array([0, 0]), {"ill": np.array([7, 8])})
    >>> list_value_sets([march], "ill") == {1: [{7, 8}], 2: [{7, 8}]}
    True
    """
    sets: dict[int, list[ValueSet]] = {}
    for release in releases:
        classes, held = release.list_value_sets(name), dict[int, ValueSet]()
        for person, label in release.list_places():
            held[person] = held[person] | classes[label] if person in held else classes[label]
        for person, values in held.items():
            sets.setdefault(person, []).append(values)
    return sets


def check_invariance(releases: Sequence[PeopleInClasses], name: str, m: int) -> Invariance:
    """Check m-invariance of a confidential column over a sequence of releases.

    >>> march = PeopleInClasses(np.array([1, 2]), np.array([0, 0]), {"ill": np.array([7, 8])})
    >>> check_invariance([march], "ill", 2)
    Invariance(holds=True, reason='', smallest_intersection=2)
    """
    sizes = [np.bincount(release.label) for release in releases]
    distinct = [[len(held) for held in release.list_value_sets(name)] for release in releases]
    people = list_value_sets(releases, name).values()
    reason = ""
    if any(((each > 0) & (each < m)).any() for each in sizes):
        reason = "a class has fewer than m records"
    elif any((each > held).any() for each, held in zip(sizes, distinct, strict=True)):
        reason = "a class holds a value twice"
    elif any(len({*sets}) > 1 for sets in people):
        reason = "the class of a person has another set of values"
    return Invariance(not reason, reason, min((len(frozenset.intersection(*sets)) for sets in people), default=0))

"""Successive releases: people who were in an earlier release stay with the people of their class there.

    groups     people who shared a class in every earlier release, with the set of values that the class held (the
               condition of m-invariance: the class of a person holds the same set in every release)
    leave      a person whose value is not in the set of their group cannot be placed
    fill       a group that lacks a value of its set, or is smaller than k, takes the nearest new people that fit
    merge      groups that still miss something merge with the nearest group of the same set
    new        the method partitions the remaining new people; those who cannot form a class join the nearest class
               whose set holds their values
    withhold   the people of any class that still misses a promise; repeated, because the table changes

Without counterfeit records (Xiao & Tao 2007) not everybody can be placed: people who are not are left out and counted.
Several columns have a set each. Columns of numbers have none, because nearly every value is unique.

Cost: O(n) for each group that lacks something.   Ties: the lowest row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Unreachable
from kinfold.methods.classes import make_classes
from kinfold.methods.missing_values import make_promise_check, number_strata
from kinfold.methods.partition.geometry import compute_centre, compute_centres, distances_to
from kinfold.methods.task import EarlierClasses, Task
from kinfold.policy.registry import Declaration
from kinfold.tables.points import Labels, Points
from kinfold.tables.recoding import NO_CLASS

Rows: TypeAlias = NDArray[np.intp]


@dataclass(eq=False)
class Placement:
    """The class of each record as people are placed; NO_CLASS for those who are not.

    The classes of earlier people have the number of their group; higher numbers are classes of new people.
    """

    task: Task
    points: Points
    earlier: EarlierClasses
    labels: Labels

    def list_members(self, group: int) -> Rows:
        """Return the records of a class."""
        return np.flatnonzero(self.labels == group)

    def mark_fitting(self, group: int, rows: Rows) -> NDArray[np.bool_]:
        """Mark the records whose values are all in the sets of a group."""
        fitting = np.ones(len(rows), np.bool_)
        for name, held in self.earlier.sets[group].items():
            fitting &= np.isin(self.earlier.values[name][rows], list(held))
        return fitting

    def find_missing(self, group: int) -> list[tuple[str, int]]:
        """Return the values of its sets that a group lacks."""
        rows = self.list_members(group)
        return [
            (name, value)
            for name, held in self.earlier.sets[group].items()
            for value in sorted(held - {*self.earlier.values[name][rows].tolist()})
        ]

    def list_incomplete(self) -> list[int]:
        """Return the groups that are smaller than k, or lack a value of their sets."""
        sizes = np.bincount(self.labels[self.labels != NO_CLASS], minlength=self.earlier.count)
        groups = np.flatnonzero(sizes[: self.earlier.count]).tolist()
        return [group for group in groups if sizes[group] < self.task.k or self.find_missing(group)]

    def fill(self, group: int, free: NDArray[np.bool_]) -> None:
        """Give a group the nearest free people with the values that it lacks, then others until it is large enough."""
        rows, members = np.flatnonzero(free), self.list_members(group)
        rows = rows[self.mark_fitting(group, rows)]
        distances = distances_to(self.points.take(rows), compute_centre(self.points.take(members)), 0)
        rows = rows[np.argsort(distances, kind="stable")]
        chosen: dict[int, None] = {}
        for name, value in self.find_missing(group):
            holders = rows[self.earlier.values[name][rows] == value]
            chosen |= dict.fromkeys(holders[:1].tolist())
        others = [row for row in rows.tolist() if row not in chosen]
        selection = [*chosen, *others[: max(self.task.k - len(members) - len(chosen), 0)]]
        self.labels[selection] = group
        free[selection] = False

    def merge(self, group: int) -> None:
        """Merge a class with the nearest one of the same sets; withhold it if there is no other."""
        rows, present = self.list_members(group), np.unique(self.labels[self.labels != NO_CLASS])
        alike = [other for other in present.tolist() if other != group and self.earlier.are_alike(group, other)]
        if not alike:
            self.labels[rows] = NO_CLASS
            return
        places = np.array(sorted([group, *alike]))
        members = np.flatnonzero(np.isin(self.labels, places))
        centres = compute_centres(
            self.points.take(members), np.searchsorted(places, self.labels[members]).astype(np.int32)
        )
        distances = distances_to(centres, centres, int(np.searchsorted(places, group)))
        distances[places == group] = np.inf
        self.labels[rows] = places[int(np.argmin(distances))]

    def join_nearest(self, rows: Rows) -> None:
        """Put each of these people into the nearest class of earlier people whose sets hold their values."""
        members = np.flatnonzero(self.labels != NO_CLASS)
        places = np.unique(self.labels[members])
        if not len(places):
            return
        centres = compute_centres(
            self.points.take(members), np.searchsorted(places, self.labels[members]).astype(np.int32)
        )
        fitting = np.array([self.mark_fitting(group, rows) for group in places.tolist()])
        for i, row in enumerate(rows.tolist()):
            distances = np.where(fitting[:, i], distances_to(centres, self.points, row), np.inf)
            if np.isfinite(distances).any():
                self.labels[row] = places[int(np.argmin(distances))]

    def withhold_failing(self) -> None:
        """Merge or withhold classes that miss a promise, until none does; the table changes with each."""
        while True:
            rows = np.flatnonzero(self.labels != NO_CLASS)
            if len(rows) < self.task.k:
                what = "too few people can be placed so that the earlier releases stay protected"
                raise Unreachable(what, fix="lower k, or release the table to other recipients, without --after")
            present, labels = np.unique(self.labels[rows], return_inverse=True)
            failing = present[make_promise_check(self.task.take(rows))(labels.astype(np.int32))]
            if not len(failing):
                return
            self.merge(int(failing[0]))


def place_people(task: Task, method: Declaration, earlier: EarlierClasses) -> Placement:
    """Return the class of each record; no class for people who cannot be placed."""
    if number_strata(task.attributes).any():
        what = 'after earlier releases, records with missing values cannot be kept apart (missing = "separate")'
        raise PolicyError(what, fix='choose missing = "mean" or missing = "drop" for these columns')
    placement = Placement(task, task.points(), earlier, earlier.group.astype(np.int32))
    for group in range(earlier.count):
        rows = placement.list_members(group)
        placement.labels[rows[~placement.mark_fitting(group, rows)]] = NO_CLASS
    free = earlier.group == NO_CLASS
    for group in placement.list_incomplete():
        placement.fill(group, free)
    while incomplete := placement.list_incomplete():
        placement.merge(incomplete[0])
    _place_new_people(placement, method, np.flatnonzero(free))
    placement.withhold_failing()
    return placement


def _place_new_people(placement: Placement, method: Declaration, rows: Rows) -> None:
    """Partition new people; if they cannot form classes, each joins the nearest class whose sets hold their values."""
    task = placement.task
    if len(rows) >= task.k:
        required = [each.with_reference() for each in task.requirements()]
        try:
            labels = make_classes(replace(task.take_block(rows, required), progress=task.progress), method).labels
        except Unreachable:
            pass
        else:
            placement.labels[rows] = labels + placement.earlier.count
            return
    placement.join_nearest(rows)


def separate_equal_classes(placement: Placement, released: Labels) -> bool:
    """Withhold classes that are released with the values of another class and change its sets; return whether any was.

    Classes with equal values are one class of the release. `released` numbers the placed records by these values. The
    class with the most people of earlier releases stays, and so do classes whose values are in its sets.
    """
    earlier, kept = placement.earlier, np.flatnonzero(placement.labels != NO_CLASS)
    classes = np.unique(np.column_stack([released, placement.labels[kept]]), axis=0)
    shared = np.flatnonzero(np.bincount(classes[:, 0]) > 1)
    changed = False
    for number in shared.tolist():
        equal = classes[classes[:, 0] == number, 1]
        known = [label for label in equal.tolist() if label < earlier.count]
        if not known:
            continue
        stays = max(known, key=lambda label: int((earlier.group[placement.list_members(label)] != NO_CLASS).sum()))
        for label in equal.tolist():
            rows = placement.list_members(label)
            alike = label >= earlier.count or earlier.are_alike(label, stays)
            if not (alike and placement.mark_fitting(stays, rows).all()):
                placement.labels[rows] = NO_CLASS
                changed = True
    return changed


def describe_placement(earlier: EarlierClasses, labels: Labels) -> str:
    """Return a note on how many people were placed and withheld."""
    known, placed = earlier.group != NO_CLASS, labels != NO_CLASS
    withheld = int((~placed).sum())
    return (
        f"{int((known & placed).sum()):,} records are of people in an earlier release and stay with people of their "
        f"class, {int((~known & placed).sum()):,} are of new people; {withheld:,} cannot be placed and are left out"
    )

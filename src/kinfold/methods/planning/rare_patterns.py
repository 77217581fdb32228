"""Rare patterns of missing values: records that too few others resemble in what they lack.

A class has one pattern of missing numbers and dates, so every pattern must be shared by enough records to keep every
promise, if only as one class. Where one is not, `missing_rare` of the columns that it lacks decides:

    refuse   the run ends, with the counts
    drop     its records are left out
    blank    it joins the nearest pattern: by giving up the fewest further values, of its own records or of others

Which is exact where k alone counts and patterns are few (`partition.pattern_assignment`). Where they are many, and
where a promise about a confidential column or about people fails, patterns are mended one by one, the rarest first:
it goes together with another one, both lacking what either lacks. Of the other so many records come along as k wants,
doubled until both keep every promise; all of them where nothing less does. What gives up the fewest values is taken,
among the `LOOK` patterns that could be cheapest.

Those come along who are nearest to the rare ones; where a confidential column is protected, those who are spread
evenly over its values; of people, first those who are not there yet.
Cost: one tally a trial.   Ties: the pattern of the lowest number, the record that comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable
from kinfold.methods.partition.geometry import centre, distances
from kinfold.methods.partition.pattern_assignment import assigned
from kinfold.methods.planning.people_and_joint import Failing, beyond_rows
from kinfold.methods.task import Records, Task
from kinfold.request.encoding import Attribute, Measured
from kinfold.rows.points import Points
from kinfold.rows.tally import Tally, coded, spread_of

Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]
Labels: TypeAlias = NDArray[np.int32]

LOOK = 8  # patterns that are tried in earnest
GOLDEN = (5**0.5 - 1) / 2  # multiples of it, without their whole parts, are spread evenly at any number


@dataclass(frozen=True, eq=False)
class Patterns:
    """The pattern of each record, and what each pattern lacks: a bit for each number or date."""

    label: Labels
    lacks: tuple[int, ...]

    @classmethod
    def of(cls, attributes: Sequence[Attribute]) -> Patterns:
        """Find the patterns of some records."""
        nulls = [a.null for a in attributes if isinstance(a, Measured)]
        if not np.any(nulls):
            return cls(np.zeros(len(nulls[0]), np.int32), (0,))
        rows, label = np.unique(np.column_stack(nulls), axis=0, return_inverse=True)
        return cls(label.astype(np.int32), tuple(sum(1 << int(j) for j in np.flatnonzero(row)) for row in rows))

    @cached_property
    def sizes(self) -> list[int]:
        """How many records have each pattern."""
        return [int(size) for size in np.bincount(self.label, minlength=len(self.lacks))]

    def rows(self, pattern: int) -> Rows:
        """Return the records of a pattern."""
        return np.flatnonzero(self.label == pattern)

    def sent(self, rows: Rows, lacks: int) -> Patterns:
        """Return the patterns after some records lack this; patterns that nobody has any more are gone."""
        known = [*self.lacks, lacks]
        label = self.label.copy()
        label[rows] = known.index(lacks)
        used = np.bincount(label, minlength=len(known)) > 0
        fresh = (np.cumsum(used) - 1).astype(np.int32)
        return Patterns(fresh[label], tuple(lost for lost, there in zip(known, used, strict=True) if there))


def settled(task: Task) -> tuple[Task, Mask]:
    """Return the task in which every pattern can keep every promise, and which records were left out for it."""
    gone = np.zeros(task.records, np.bool_)
    if not any(isinstance(a, Measured) and a.null.any() for a in task.attributes):
        return task, gone
    while not gone.all():
        here = task.take(np.flatnonzero(~gone))
        found = Patterns.of(here.attributes)
        failing = keeping(here)
        hopeless = _hopeless(here, found, failing)
        if not hopeless.any():
            return _blanked(here, _joined(here, found, failing)), gone
        gone[np.flatnonzero(~gone)[hopeless]] = True
    return task.take(np.flatnonzero(~gone)), gone


def keeping(task: Task) -> Failing:
    """Return what marks the classes of a task that miss any promise."""
    columns = {name: coded(np.asarray(values)) for name, values in task.confidential.items()}
    beyond = beyond_rows(task)

    def failing(labels: Labels) -> Mask:
        spreads = {name: spread_of(labels, *column) for name, column in columns.items()}
        tally = Tally({}, np.bincount(labels).astype(np.int64), spreads)
        missed = [model.failing(tally) for model in task.models]
        return np.asarray(np.logical_or.reduce(missed if beyond is None else [*missed, beyond(labels)]))

    return failing


def _bits(attributes: Sequence[Attribute], *answers: str) -> int:
    """Return the numbers and dates whose `missing_rare` is one of these, a bit each."""
    measured = [a.bound.request for a in attributes if isinstance(a, Measured)]
    return sum(1 << j for j, asked in enumerate(measured) if asked.missing_rare in answers)


def _hopeless(task: Task, found: Patterns, failing: Failing) -> Mask:
    """Mark the records to leave out: of rare patterns that may not be blanked, or that even together are too rare."""
    missed, refuse, keep = failing(found.label), _bits(task.attributes, "refuse"), _bits(task.attributes, "blank")
    _refuse(task, found, np.array([lost and bool(own & refuse) for lost, own in zip(missed, found.lacks, strict=True)]))
    bound = np.array([bool(own & ~keep) for own in found.lacks])
    if (missed & bound).any():
        return np.asarray((missed & bound)[found.label])
    together = (~bound)[found.label]  # those who may join each other
    if bound.any() and together.any() and failing(np.where(together, 0, 1).astype(np.int32))[0]:
        return together
    return np.zeros(len(found.label), np.bool_)


def _refuse(task: Task, found: Patterns, rare: Mask) -> None:
    if not rare.any():
        return
    sizes, many = np.bincount(found.label)[rare], int(rare.sum()) > 1
    what = f"{len(sizes)} patterns of missing values are" if many else "1 pattern of missing values is"
    few = "shared by fewer than" if (sizes < task.k).all() else "unable to keep the promises alone, at"
    raise Unreachable(
        f"{what} {few} k = {task.k} records ({int(sizes.sum())} in all)",
        fix='choose missing_rare = "blank" or "drop", or missing = "mean" or "drop", for some of those columns',
    )


def _joined(task: Task, found: Patterns, failing: Failing) -> Patterns:
    """Send records to patterns that lack more, until no pattern misses a promise."""
    keep, company = _bits(task.attributes, "blank"), _Company(task)
    found = _by_size(task.k, company, found, keep)
    for step in range(4 * len(found.lacks)):
        missed = failing(found.label)
        free = np.array([not own & ~keep for own in found.lacks])
        if not (missed & free).any() or free.sum() == 1:
            break
        sizes = np.where(missed & free, found.sizes, len(found.label) + 1)
        others = [int(other) for other in np.flatnonzero(free) if other != np.argmin(sizes)]
        mending = _Mending(task.k, company, found, failing, int(np.argmin(sizes)), others)
        found = (mending.best() if step < 2 * len(free) else None) or mending.merged()
    return found


def _by_size(k: int, company: _Company, found: Patterns, keep: int) -> Patterns:
    """Send records away so that no pattern is rarer than k, giving up the fewest values, where that can be found."""
    here = {own: size for own, size in zip(found.lacks, found.sizes, strict=True) if not own & ~keep}
    flow = assigned(here, k) if min(here.values(), default=k) < k else None
    result = found
    for start in here if flow else ():
        ends = {end: number for (begin, end), number in flow.items() if begin == start}  # type: ignore[union-attr]
        rows = found.rows(found.lacks.index(start))
        last = start if start in ends else max(ends, key=lambda end: (ends[end], -end))
        for end in sorted(set(ends) - {last}):
            near = found.rows(found.lacks.index(end)) if end in found.lacks else rows[:1]
            come = company.order(near, rows)[: ends[end]]
            result, rows = result.sent(come, end), np.setdiff1d(rows, come)
        result = result.sent(rows, last)
    return result


@dataclass(frozen=True, eq=False)
class _Mending:
    """A pattern that misses a promise, and those that it may go together with."""

    k: int
    company: _Company
    found: Patterns
    failing: Failing
    pattern: int
    others: Sequence[int]

    def best(self) -> Patterns | None:
        """Return the patterns after the cheapest of some ways to mend this one; None where none was found."""
        fewest, best = np.inf, None
        for other in sorted(self.others, key=self._at_least)[:LOOK]:
            if self._at_least(other) >= fewest:
                break
            for number, after in self._ways(other):
                if self._keeps(after, other):
                    if (cost := self._cost(other, number)) < fewest:
                        fewest, best = cost, after
                    break
        return best

    def merged(self) -> Patterns:
        """Return the patterns after this one and the cheapest other have become one."""
        other = min(self.others, key=lambda each: self._cost(each, self.found.sizes[each]))
        both = np.concatenate([self.found.rows(self.pattern), self.found.rows(other)])
        return self.found.sent(both, self._union(other))

    def _union(self, other: int) -> int:
        return self.found.lacks[self.pattern] | self.found.lacks[other]

    def _cost(self, other: int, number: int) -> int:
        """Values given up where so many records of another pattern come along."""
        both = self._union(other)
        own, theirs = ((both & ~self.found.lacks[each]).bit_count() for each in (self.pattern, other))
        return self.found.sizes[self.pattern] * own + number * theirs

    def _at_least(self, other: int) -> int:
        return self._cost(other, self._wanted(other))

    def _wanted(self, other: int) -> int:
        return min(max(self.k - self.found.sizes[self.pattern], 1), self.found.sizes[other])

    def _ways(self, other: int) -> Iterator[tuple[int, Patterns]]:
        """Yield how many records of another pattern come along, and the patterns after it, from few to all."""
        own, both = self.found.rows(self.pattern), self._union(other)
        after = self.found.sent(own, both)
        if both == self.found.lacks[other]:
            yield 0, after
            return
        come = self.company.order(own, self.found.rows(other))
        for number in takewhile(lambda n: n < len(come), (self._wanted(other) << i for i in range(60))):
            yield number, after.sent(come[:number], both)
        yield len(come), after.sent(come, both)

    def _keeps(self, after: Patterns, other: int) -> bool:
        missed = dict(zip(after.lacks, self.failing(after.label), strict=True))
        return not missed[self._union(other)] and not missed.get(self.found.lacks[other], False)


@dataclass(frozen=True, eq=False)
class _Company:
    """Who comes along to a rare pattern."""

    task: Task

    @cached_property
    def _points(self) -> Points:
        return self.task.points()

    @cached_property
    def _protected(self) -> list[NDArray[np.int64]]:
        columns = [self.task.confidential[model.column] for model in self.task.models if model.column is not None]
        return [coded(np.asarray(values))[1] for values in columns]

    def order(self, near: Rows, rows: Rows) -> Rows:
        """Return records in the order in which they come along to others."""
        if self._protected:
            rows = rows[np.lexsort([codes[rows] for codes in self._protected[::-1]])]
            rows = rows[np.argsort(np.arange(len(rows)) * GOLDEN % 1.0, kind="stable")]
        else:
            middle = centre(self._points.take(near))
            rows = rows[np.argsort(distances(self._points.take(rows), middle, 0), kind="stable")]
        person = None if self.task.scopes is None else self.task.scopes.person
        if person is None:
            return rows
        first = np.zeros(len(rows), np.bool_)
        first[np.unique(person[rows], return_index=True)[1]] = True
        return rows[np.argsort(~first | np.isin(person[rows], person[near]), kind="stable")]


def _blanked(task: Task, found: Patterns) -> Task:
    """Return the task in which every record lacks what its pattern lacks."""
    place, attributes = 0, []
    for attribute in task.attributes:
        here = attribute
        if isinstance(here, Measured):
            lost = np.array([bool(own >> place & 1) for own in found.lacks])[found.label]
            here, place = blank(here, lost), place + 1
        attributes.append(here)
    return replace(task, table=Records(attributes, task.confidential, task.scopes))


def blank(attribute: Measured, lost: Mask) -> Measured:
    """Return a number or date of which these records lack the value."""
    if not (lost & ~attribute.null).any():
        return attribute
    leaves = None if attribute.leaves is None else np.where(lost, -1, attribute.leaves).astype(np.int32)
    return replace(attribute, numbers=np.where(lost, np.nan, attribute.numbers), leaves=leaves)

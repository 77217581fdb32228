"""Missing numbers and dates: leave the record out, impute the mean, or keep patterns of missing values apart.

A class has one pattern of missing values, so every pattern must have enough records to keep every promise, if only as
one class. If it has not, `missing_rare` of the columns decides:

    refuse   the run ends, with the counts
    drop     the records of the pattern are left out
    blank    the pattern joins the nearest one: its records, or others, give up the fewest further values

If only k is promised and patterns are few, the assignment of records to patterns is exact. A pattern is a set of
columns (a bit each); x[s, t] records of pattern s are released with pattern t, a superset of s, and lose |t - s| values
each:

    minimize      Σ x[s, t] · |t - s|
    subject to    every record of s is released, and each t gets no record or at least k

The patterns of a release are unions of those that occur. Not only rare records lose values: if no other record lacks
more than they do, some records of a larger pattern join them. The integer program has a variable for each pair of
nested patterns. With more than MAX_PATTERNS patterns, or MAX_SOLVER_NODES branches of the solver, and under other
promises, patterns are repaired one by one, the rarest first: the pattern joins another one, and both lack what either
lacks. The other pattern gives as many records as k needs, doubled until both keep every promise, or all of them. Of the
`MAX_PATTERNS_TRIED` cheapest patterns, the one that gives up the fewest values wins.

Records nearest to the rare pattern join first; if a confidential column is protected, records spread evenly over its
values; of people, first those who are not in the pattern yet.
Cost: one tally a trial.   Ties: the lowest pattern number, the first record; in the program by the solver, which is
deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable, plural
from kinfold.methods.partition.geometry import compute_centre, distances_to
from kinfold.methods.promises import FailingClasses, make_scope_check
from kinfold.methods.task import Task
from kinfold.policy.encoding import Attribute, NumericAttribute, count_records
from kinfold.tables.points import Labels, Points
from kinfold.tables.tally import Tally, count_spread, encode_values

Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]
# Records released, by their pattern and the pattern of their release
Assignment: TypeAlias = dict[tuple[int, int], int]

MAX_PATTERNS_TRIED = 8  # other patterns that a rare one tries to join: the cheapest ones
MAX_PATTERNS = 48  # of a release, for the exact assignment
MAX_SOLVER_NODES = 5_000  # branches of the solver; not tuned
GOLDEN_RATIO = (5**0.5 - 1) / 2  # the fractional parts of its multiples are spread evenly, for any number of them


def impute_means(attributes: Sequence[Attribute]) -> tuple[list[Attribute], list[str]]:
    """Impute the mean where the policy says `missing = "mean"`; return the attributes and notes."""
    filled: list[Attribute] = []
    notes = []
    for attribute in attributes:
        here = attribute
        if isinstance(here, NumericAttribute) and here.bound.request.missing == "mean" and here.null.any():
            notes.append(f"'{here.bound.name}': {int(here.null.sum())} missing values were imputed with the mean")
            here = replace(here, numbers=np.where(here.null, np.nanmean(here.numbers), here.numbers), exact=None)
        filled.append(here)
    return filled, notes


def mark_left_out(attributes: Sequence[Attribute]) -> Mask:
    """Mark the records that `missing = "drop"` leaves out."""
    left_out = np.zeros(count_records(attributes), np.bool_)
    for attribute in attributes:
        if attribute.bound.request.missing == "drop":
            left_out |= attribute.null
    return left_out


def describe_left_out(records: int) -> list[str]:
    """Return a note on records that `missing = "drop"` leaves out."""
    were = plural(records, "record was", "records were")
    return [f"{were} left out because a value is missing, as the policy says"] if records else []


def number_strata(attributes: Sequence[Attribute]) -> Labels:
    """Number the patterns of missing values of some records."""
    pattern = np.zeros(count_records(attributes), np.int64)
    for attribute in attributes:
        if isinstance(attribute, NumericAttribute) and attribute.null.any():
            pattern = np.unique(pattern * 2 + attribute.null, return_inverse=True)[1].astype(np.int64)
    return pattern.astype(np.int32)


def blank_mixed_classes(attributes: Sequence[Attribute], labels: Labels) -> list[Attribute]:
    """Blank an averaged number or date in every record of a class in which one record lacks it."""
    blanked: list[Attribute] = []
    for attribute in attributes:
        here = attribute
        if isinstance(here, NumericAttribute) and here.bound.average != "generalize":
            here = blank_values(here, (np.bincount(labels, here.null) > 0)[labels])
        blanked.append(here)
    return blanked


def refuse_mixed_classes(attributes: Sequence[Attribute], labels: Labels) -> None:
    """Raise if a class mixes present and missing values of a column with `missing_rare = "refuse"`."""
    mixed = np.zeros(int(labels.max()) + 1, np.bool_)
    for attribute in attributes:
        if isinstance(attribute, NumericAttribute) and attribute.bound.request.missing_rare == "refuse":
            nulls = np.bincount(labels, attribute.null)
            mixed |= (nulls > 0) & (nulls < np.bincount(labels))
    if mixed.any():
        what = f"{int(mixed.sum())} classes keep the promises only if they mix records with and without missing values"
        fix = 'choose missing_rare = "blank", or missing = "mean" or "drop", or relax the promises'
        raise Unreachable(what, fix=fix)


def describe_blanked(before: Sequence[Attribute], after: Sequence[Attribute]) -> list[str]:
    """Return a note on the values that were blanked because a pattern of missing values was too rare."""
    blanked = {
        a.bound.name: b.null & ~a.null
        for a, b in zip(before, after, strict=True)
        if isinstance(a, NumericAttribute) and isinstance(b, NumericAttribute) and (b.null & ~a.null).any()
    }
    if not blanked:
        return []
    masks = [*blanked.values()]
    cells, records = sum(int(mask.sum()) for mask in masks), int(np.logical_or.reduce(masks).sum())
    columns = ", ".join(f"'{name}' {int(mask.sum()):,}" for name, mask in blanked.items())
    what = f"{cells:,} values of {records:,} records were blanked"
    return [f"{what}, because too few records lack the same values ({columns})"]


def blank_values(attribute: NumericAttribute, mask: Mask) -> NumericAttribute:
    """Make the values of these records missing."""
    if not (mask & ~attribute.null).any():
        return attribute
    leaves = None if attribute.leaves is None else np.where(mask, -1, attribute.leaves).astype(np.int32)
    return replace(attribute, numbers=np.where(mask, np.nan, attribute.numbers), leaves=leaves)


def make_promise_check(task: Task) -> FailingClasses:
    """Return a function that marks the classes of a task that miss any promise."""
    columns = {name: encode_values(np.asarray(values)) for name, values in task.confidential.items()}
    scope_check = make_scope_check(task)

    def mark_failing(labels: Labels) -> Mask:
        spreads = {name: count_spread(labels, *column) for name, column in columns.items()}
        tally = Tally({}, np.bincount(labels).astype(np.int64), spreads)
        failing = [model.failing(tally) for model in task.models]
        return np.asarray(np.logical_or.reduce(failing if scope_check is None else [*failing, scope_check(labels)]))

    return mark_failing


@dataclass(frozen=True, eq=False)
class MissingPatterns:
    """The pattern of each record, and what each pattern lacks: a bit for each number or date."""

    labels: Labels
    missing: tuple[int, ...]

    @classmethod
    def from_attributes(cls, attributes: Sequence[Attribute]) -> MissingPatterns:
        """Find the patterns of some records."""
        nulls = [a.null for a in attributes if isinstance(a, NumericAttribute)]
        if not np.any(nulls):
            return cls(np.zeros(len(nulls[0]), np.int32), (0,))
        rows, labels = np.unique(np.column_stack(nulls), axis=0, return_inverse=True)
        return cls(labels.astype(np.int32), tuple(sum(1 << int(j) for j in np.flatnonzero(row)) for row in rows))

    @cached_property
    def sizes(self) -> list[int]:
        """How many records have each pattern."""
        return [int(size) for size in np.bincount(self.labels, minlength=len(self.missing))]

    def rows(self, pattern: int) -> Rows:
        """Return the records of a pattern."""
        return np.flatnonzero(self.labels == pattern)

    def move(self, rows: Rows, missing: int) -> MissingPatterns:
        """Move records to the pattern that lacks `missing`; drop patterns without records."""
        patterns = [*self.missing, missing]
        labels = self.labels.copy()
        labels[rows] = patterns.index(missing)
        used = np.bincount(labels, minlength=len(patterns)) > 0
        numbers = (np.cumsum(used) - 1).astype(np.int32)
        return MissingPatterns(
            numbers[labels], tuple(own for own, any_record in zip(patterns, used, strict=True) if any_record)
        )


def settle_patterns(task: Task) -> tuple[Task, Mask]:
    """Return the task in which every pattern can keep every promise, and mark the records left out for that."""
    left_out = np.zeros(task.records, np.bool_)
    if not any(isinstance(a, NumericAttribute) and a.null.any() for a in task.attributes):
        return task, left_out
    while not left_out.all():
        rest = task.take(np.flatnonzero(~left_out))
        patterns = MissingPatterns.from_attributes(rest.attributes)
        mark_failing = make_promise_check(rest)
        unreachable = _mark_unreachable(rest, patterns, mark_failing)
        if not unreachable.any():
            return _blank_task(rest, _join_patterns(rest, patterns, mark_failing)), left_out
        left_out[np.flatnonzero(~left_out)[unreachable]] = True
    return task.take(np.flatnonzero(~left_out)), left_out


def _mask_columns(attributes: Sequence[Attribute], answer: str) -> int:
    """Return the numbers and dates whose `missing_rare` is this answer, a bit each."""
    requests = [a.bound.request for a in attributes if isinstance(a, NumericAttribute)]
    return sum(1 << j for j, request in enumerate(requests) if request.missing_rare == answer)


def _mark_unreachable(task: Task, patterns: MissingPatterns, mark_failing: FailingClasses) -> Mask:
    """Mark the records to leave out: rare patterns that may not be blanked, and those too rare even when joined."""
    failing = mark_failing(patterns.labels)
    refused, blankable = _mask_columns(task.attributes, "refuse"), _mask_columns(task.attributes, "blank")
    rare = failing & [bool(own & refused) for own in patterns.missing]
    if rare.any():
        sizes = np.bincount(patterns.labels)[rare]
        what = "1 pattern of missing values is" if len(sizes) == 1 else f"{len(sizes)} patterns of missing values are"
        few = "shared by fewer than" if (sizes < task.k).all() else "unable to keep the promises alone, at"
        raise Unreachable(
            f"{what} {few} k = {task.k} records ({int(sizes.sum())} in all)",
            fix='choose missing_rare = "blank" or "drop", or missing = "mean" or "drop", for some of those columns',
        )
    fixed = np.array([bool(own & ~blankable) for own in patterns.missing])
    if (failing & fixed).any():
        return np.asarray((failing & fixed)[patterns.labels])
    joinable = (~fixed)[patterns.labels]
    if fixed.any() and joinable.any() and mark_failing(np.where(joinable, 0, 1).astype(np.int32))[0]:
        return joinable
    return np.zeros(len(patterns.labels), np.bool_)


def _join_patterns(task: Task, patterns: MissingPatterns, mark_failing: FailingClasses) -> MissingPatterns:
    """Move records to patterns that lack more, until no pattern misses a promise."""
    blankable, order = _mask_columns(task.attributes, "blank"), _JoiningOrder(task)
    patterns = _join_by_size(task.k, order, patterns, blankable)
    for step in range(4 * len(patterns.missing)):
        failing = mark_failing(patterns.labels)
        free = np.array([not own & ~blankable for own in patterns.missing])
        if not (failing & free).any() or free.sum() == 1:
            break
        rarest = int(np.argmin(np.where(failing & free, patterns.sizes, len(patterns.labels) + 1)))
        others = [int(other) for other in np.flatnonzero(free) if other != rarest]
        repair = _PatternRepair(task.k, order, patterns, mark_failing, rarest, others)
        patterns = (repair.find_best() if step < 2 * len(free) else None) or repair.merge()
    return patterns


def _join_by_size(k: int, order: _JoiningOrder, patterns: MissingPatterns, blankable: int) -> MissingPatterns:
    """Move records so that no pattern has fewer than k, giving up the fewest values, if an exact solution exists."""
    sizes = {own: size for own, size in zip(patterns.missing, patterns.sizes, strict=True) if not own & ~blankable}
    moves = assign_patterns(sizes, k) if min(sizes.values(), default=k) < k else None
    result = patterns
    for start in sizes if moves else ():
        ends = {end: number for (begin, end), number in moves.items() if begin == start}  # type: ignore[union-attr]
        rows = patterns.rows(patterns.missing.index(start))
        last = start if start in ends else max(ends, key=lambda end: (ends[end], -end))
        for end in sorted(set(ends) - {last}):
            near = patterns.rows(patterns.missing.index(end)) if end in patterns.missing else rows[:1]
            joining = order.sort(near, rows)[: ends[end]]
            result, rows = result.move(joining, end), np.setdiff1d(rows, joining)
        result = result.move(rows, last)
    return result


def assign_patterns(sizes: Mapping[int, int], k: int) -> Assignment | None:
    """Return how many records of each pattern are released with which pattern; None if that takes too long.

    >>> assign_patterns({0b00: 100, 0b01: 2, 0b11: 9}, 5)  # two records lose one value each
    {(0, 0): 100, (1, 3): 2, (3, 3): 9}
    >>> assign_patterns({0b0: 100, 0b1: 2}, 5)  # no record lacks more: three others lose a value
    {(0, 0): 97, (0, 1): 3, (1, 1): 2}
    """
    unions: set[int] = set()
    for pattern in sorted(sizes):
        unions |= {pattern, *(pattern | other for other in unions)}
        if len(unions) > MAX_PATTERNS:
            return None
    return _solve_assignment(sizes, sorted(unions), k) if sum(sizes.values()) >= k else None


def _solve_assignment(sizes: Mapping[int, int], ends: Sequence[int], k: int) -> Assignment | None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    moves = [(start, end) for start in sorted(sizes) for end in ends if start | end == end]
    count = len(moves) + len(ends)  # the moves, then whether a pattern is used
    cost = np.array([(end & ~start).bit_count() for start, end in moves] + [0] * len(ends), np.float64)
    leaving = np.zeros((len(sizes), count))
    arriving = np.zeros((len(ends), count))
    used = np.zeros((len(moves), count))
    for i, (start, end) in enumerate(moves):
        leaving[sorted(sizes).index(start), i] = 1.0
        arriving[ends.index(end), i] = 1.0
        used[i, [i, len(moves) + ends.index(end)]] = 1.0, -sizes[start]
    arriving[np.arange(len(ends)), len(moves) + np.arange(len(ends))] = -k
    every = [float(sizes[start]) for start in sorted(sizes)]
    rules = [LinearConstraint(leaving, every, every), LinearConstraint(arriving, 0.0), LinearConstraint(used, ub=0.0)]
    most = np.array([sizes[start] for start, _ in moves] + [1] * len(ends), np.float64)
    result = milp(
        cost,
        integrality=np.ones(count, np.int64),
        bounds=Bounds(0.0, most),
        constraints=rules,
        options={"node_limit": MAX_SOLVER_NODES, "mip_rel_gap": 0.0},
    )
    if result.status != 0:
        return None
    counts = np.round(result.x[: len(moves)]).astype(int)
    return {move: int(number) for move, number in zip(moves, counts, strict=True) if number}


@dataclass(frozen=True, eq=False)
class _PatternRepair:
    """A pattern that misses a promise, and the patterns that it may join."""

    k: int
    order: _JoiningOrder
    patterns: MissingPatterns
    mark_failing: FailingClasses
    pattern: int
    others: Sequence[int]

    def find_best(self) -> MissingPatterns | None:
        """Return the patterns after the cheapest join that keeps every promise, or None."""
        fewest, best = np.inf, None
        for other in sorted(self.others, key=self._min_cost)[:MAX_PATTERNS_TRIED]:
            if self._min_cost(other) >= fewest:
                break
            for number, after in self._try_numbers(other):
                failing = dict(zip(after.missing, self.mark_failing(after.labels), strict=True))
                if not failing[self._unite(other)] and not failing.get(self.patterns.missing[other], False):
                    if (cost := self._cost(other, number)) < fewest:
                        fewest, best = cost, after
                    break
        return best

    def merge(self) -> MissingPatterns:
        """Return the patterns after this one and the cheapest other are merged."""
        other = min(self.others, key=lambda each: self._cost(each, self.patterns.sizes[each]))
        both = np.concatenate([self.patterns.rows(self.pattern), self.patterns.rows(other)])
        return self.patterns.move(both, self._unite(other))

    def _unite(self, other: int) -> int:
        return self.patterns.missing[self.pattern] | self.patterns.missing[other]

    def _cost(self, other: int, number: int) -> int:
        """Return how many values are given up if so many records of the other pattern join."""
        both = self._unite(other)
        own, theirs = ((both & ~self.patterns.missing[each]).bit_count() for each in (self.pattern, other))
        return self.patterns.sizes[self.pattern] * own + number * theirs

    def _min_cost(self, other: int) -> int:
        return self._cost(other, self._count_needed(other))

    def _count_needed(self, other: int) -> int:
        return min(max(self.k - self.patterns.sizes[self.pattern], 1), self.patterns.sizes[other])

    def _try_numbers(self, other: int) -> Iterator[tuple[int, MissingPatterns]]:
        """Yield how many records of the other pattern join, from few to all, and the patterns after that."""
        own, both = self.patterns.rows(self.pattern), self._unite(other)
        after = self.patterns.move(own, both)
        if both == self.patterns.missing[other]:
            yield 0, after
            return
        joining = self.order.sort(own, self.patterns.rows(other))
        for number in takewhile(lambda n: n < len(joining), (self._count_needed(other) << i for i in range(60))):
            yield number, after.move(joining[:number], both)
        yield len(joining), after.move(joining, both)


@dataclass(frozen=True, eq=False)
class _JoiningOrder:
    """The order in which records join a rare pattern."""

    task: Task

    @cached_property
    def _points(self) -> Points:
        return self.task.points()

    @cached_property
    def _protected(self) -> list[NDArray[np.int64]]:
        columns = [self.task.confidential[model.column] for model in self.task.models if model.column is not None]
        return [encode_values(np.asarray(values))[1] for values in columns]

    def sort(self, near: Rows, rows: Rows) -> Rows:
        """Return `rows` in the order in which they join the records `near`."""
        if self._protected:
            rows = rows[np.lexsort([codes[rows] for codes in self._protected[::-1]])]
            rows = rows[np.argsort(np.arange(len(rows)) * GOLDEN_RATIO % 1.0, kind="stable")]
        else:
            centre = compute_centre(self._points.take(near))
            rows = rows[np.argsort(distances_to(self._points.take(rows), centre, 0), kind="stable")]
        person = None if self.task.scopes is None else self.task.scopes.person
        if person is None:
            return rows
        first = np.zeros(len(rows), np.bool_)
        first[np.unique(person[rows], return_index=True)[1]] = True
        return rows[np.argsort(~first | np.isin(person[rows], person[near]), kind="stable")]


def _blank_task(task: Task, patterns: MissingPatterns) -> Task:
    """Return the task in which every record lacks what its pattern lacks."""
    bit, attributes = 0, []
    for attribute in task.attributes:
        here = attribute
        if isinstance(here, NumericAttribute):
            missing = np.array([bool(own >> bit & 1) for own in patterns.missing])[patterns.labels]
            here, bit = blank_values(here, missing), bit + 1
        attributes.append(here)
    return replace(task, table=task.to_records(attributes))

"""Edit rules, kept: class averages are nudged so that no record breaks a rule that it did not break before.

    judge     the release that the averages make: of each record its class's values, and its own in other columns
    nudge     each class with a record that newly breaks a rule: try values that its own records hold, in one column, or
              in all columns of the rules from one record; where that is not enough, in two columns at once; take what
              breaks fewest, then what lies nearest to the class
    merge     classes where no such value helps, with their nearest ones, as long as fewer records break a rule
    blank     what is left: a class without a value breaks nothing

A class has one value in each column before and after, so every promise about classes stays as it was. Rules are kept
where they say `repair = true`, and for every record with an imputed value, whatever they say.

Cost: a judgement of its records for each of at most `MOST` trials a class.   Ties: the first in the order of trials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice, product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.methods.averaging import Averaged, as_arrow, exact_arrow
from kinfold.methods.task import Task
from kinfold.request.encoding import Attribute, Coded, Measured, as_text
from kinfold.request.rules.counting import values_in
from kinfold.request.rules.judging import Held, Values, judge, read
from kinfold.request.rules.meaning import BoundRule
from kinfold.request.table import Table

Mask: TypeAlias = NDArray[np.bool_]
Labels: TypeAlias = NDArray[np.int32]
Rows: TypeAlias = NDArray[np.intp]
Results: TypeAlias = Mapping[str, Averaged]
Choice: TypeAlias = dict[str, int]  # by column, the record of the class whose value is taken, or none

NOTHING = -1  # no record: the value is blanked

MOST = 1500  # trials of a class
PAIRED = 15  # records of a class whose values are tried in two columns at once


@dataclass(frozen=True, eq=False)
class Rules:
    """The rules of a task, with what its records hold in every column that they speak of."""

    rules: tuple[BoundRule, ...]
    values: Values  # as the release has them, but for averages
    before: tuple[Mask, ...]  # of each rule, which records broke it in the table as it came
    attributes: Mapping[str, Attribute]  # averaged quasi-identifiers, as they were before anything was imputed
    imputed: Mapping[str, Mask]
    variances: Mapping[str, float]  # of numbers and dates in the whole table

    @classmethod
    def of(cls, task: Task) -> Rules | None:
        """Take the rules of a whole table; None where there is none to keep."""
        table = task.table
        if not isinstance(table, Table) or not task.policy.rules:
            return None
        values = values_in(task.policy, table.engine, table.frame)
        came = values if table.came is None else values_in(task.policy, table.engine, table.came)
        averaged = {a.bound.name: a for a in task.attributes if a.bound.average != "generalize"}
        shown = _hiding({a.bound.name for a in task.attributes} - {*averaged}, values)
        filled = {
            name: a.null
            for name, a in averaged.items()
            if isinstance(a, Measured) and a.bound.request.missing == "mean"
        }
        rules = tuple(r for r in task.policy.rules if {*averaged} & {*r.tree.columns})
        rules = tuple(r for r in rules if r.repair or {*filled} & {*r.tree.columns})
        before = tuple(judge(rule.tree, came).false for rule in rules)
        spreads = {name: float(np.nanvar(a.numbers)) or 1.0 for name, a in averaged.items() if isinstance(a, Measured)}
        return cls(rules, shown, before, averaged, filled, spreads) if rules else None

    def take(self, rows: Rows) -> Rules:
        """Return the rules of some records."""
        values = self.values
        return Rules(
            self.rules,
            lambda name, sort: values(name, sort).take(rows),
            tuple(each[rows] for each in self.before),
            {name: attribute.take(rows) for name, attribute in self.attributes.items()},
            {name: mask[rows] for name, mask in self.imputed.items()},
            self.variances,
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The averaged columns that the rules speak of."""
        named = [name for rule in self.rules for name in rule.tree.columns if name in self.attributes]
        return tuple(dict.fromkeys(named))

    def newly(self, values: Values, rows: Rows | slice = slice(None)) -> NDArray[np.int64]:
        """Count, of each record, the rules that it breaks now, did not break before, and must not."""
        total: Any = 0
        for rule, before in zip(self.rules, self.before, strict=True):
            wanted = np.full(len(before), rule.repair)
            for name in rule.tree.columns:
                wanted |= self.imputed.get(name, np.False_)
            total = total + (judge(rule.tree, values).false & ~before[rows] & wanted[rows])
        return np.asarray(total, np.int64)


def _hiding(names: Collection[str], values: Values) -> Values:
    """Return the values without those of columns that are generalized: nobody can judge a rule by them."""

    def shown(name: str, sort: str) -> Held:
        held = values(name, sort)
        nothing = np.zeros(len(held.known), np.bool_)
        return Held(held.values, nothing, nothing) if name in names else held

    return shown


@dataclass(frozen=True, eq=False)
class Nudged:
    """Class values after nudging, how many were moved, and the classes in which a rule is still newly broken."""

    results: Results
    moved: int
    blanked: Mapping[str, int]  # records, by column
    left: NDArray[np.int64]  # broken rules, by class


def nudged(rules: Rules, labels: Labels, results: Results, *, exact: bool, blank: bool = False) -> Nudged:
    """Move class values so that no record newly breaks a rule, as far as the class has values for it; or blank them."""
    classes = int(labels.max()) + 1
    texts = {name: results[name].replace.values.cast(pa.string()) for name in rules.columns}
    broken = np.bincount(labels, rules.newly(_released(rules, texts, labels)), classes).astype(np.int64)
    chosen: dict[str, dict[int, int]] = {name: {} for name in rules.columns}
    for group in np.flatnonzero(broken):
        members = np.flatnonzero(labels == group)
        averages = {name: text[int(group)].as_py() for name, text in texts.items()}
        choice, broken[group] = _Nudging(rules.take(members), averages, blank).best(int(broken[group]))
        for name, member in choice.items():
            chosen[name][int(group)] = NOTHING if member == NOTHING else int(members[member])
    fresh = {name: _moved(rules, name, results[name], rows, exact) for name, rows in chosen.items() if rows}
    sizes = np.bincount(labels)
    lost = {name: sum(int(sizes[g]) for g, row in rows.items() if row == NOTHING) for name, rows in chosen.items()}
    moved = sum(row != NOTHING for rows in chosen.values() for row in rows.values())
    return Nudged({**results, **fresh}, moved, {name: count for name, count in lost.items() if count}, broken)


def _released(rules: Rules, texts: Mapping[str, Any], labels: Labels) -> Values:
    """Return what each record would be released with: its class's values, its own in other columns."""
    held: dict[tuple[str, str], Held] = {}

    def values(name: str, sort: str) -> Held:
        if name not in texts:
            return rules.values(name, sort)
        if (name, sort) not in held:
            held[name, sort] = read(texts[name], sort, rules.attributes[name].bound).take(labels)
        return held[name, sort]

    return values


@dataclass(frozen=True, eq=False)
class _Nudging:
    """One class: the rules of its records, and the averages that break one."""

    rules: Rules
    averages: Mapping[str, str | None]
    blank: bool

    def best(self, broken: int) -> tuple[Choice, int]:
        """Return the choice that breaks fewest, nearest to the class, and how many rules are broken then."""
        found: Choice = {}
        for stage in (self._simple, self._paired, *([self._blanked] if self.blank else [])):
            choices = [*islice(stage(), MOST)]
            if not choices or not broken:
                continue
            left = self._broken(choices)
            if left.min() < broken:
                least = [choice for choice, each in zip(choices, left, strict=True) if each == left.min()]
                found, broken = min(least, key=self._away), int(left.min())
        return found, broken

    @property
    def _members(self) -> int:
        return len(self.rules.before[0])

    @cached_property
    def _options(self) -> dict[str, list[int]]:
        """Of each column that the class has a value in, a record for each value, the nearest to the class first."""
        options = {}
        for name in self.rules.columns:
            first: dict[str, int] = {}
            for member in range(self._members if self.averages[name] is not None else 0):
                if (text := _written(self.rules.attributes[name], member)) is not None:
                    first.setdefault(text, member)
            if first:
                options[name] = sorted(first.values(), key=lambda member, name=name: self._distance(name, member))  # type: ignore[misc]
        return options

    def _simple(self) -> Iterator[Choice]:
        for name, members in self._options.items():
            yield from ({name: member} for member in members)
        if len(self._options) > 1:
            for member in range(self._members):
                if all(_written(self.rules.attributes[name], member) is not None for name in self._options):
                    yield dict.fromkeys(self._options, member)

    def _paired(self) -> Iterator[Choice]:
        for one, other in combinations(self._options, 2):
            both = product(self._options[one][:PAIRED], self._options[other][:PAIRED])
            yield from ({one: a, other: b} for a, b in both)

    def _blanked(self) -> Iterator[Choice]:
        for count in range(1, len(self._options) + 1):
            yield from (dict.fromkeys(names, NOTHING) for names in combinations(self._options, count))

    def _broken(self, choices: Sequence[Choice]) -> NDArray[np.int64]:
        """Count the rules that are broken by each choice: all records under every choice, judged at once."""
        here = {name: [self._text(name, choice) for choice in choices] for name in self.averages}
        texts = {name: pa.array(each, pa.string()) for name, each in here.items()}
        every = self.rules.take(np.tile(np.arange(self._members), len(choices)))
        under = np.repeat(np.arange(len(choices), dtype=np.int32), self._members)
        return every.newly(_released(every, texts, under)).reshape(len(choices), -1).sum(axis=1)

    def _text(self, name: str, choice: Choice) -> str | None:
        if name not in choice:
            return self.averages[name]
        return None if choice[name] == NOTHING else _written(self.rules.attributes[name], choice[name])

    def _away(self, choice: Choice) -> float:
        return sum(1.0 if member == NOTHING else self._distance(name, member) for name, member in choice.items())

    def _distance(self, name: str, member: int) -> float:
        """Squared distance of a record's value to those of the class, on the scale of the column."""
        attribute = self.rules.attributes[name]
        if isinstance(attribute, Coded):
            return float(attribute.scale.gaps(int(attribute.codes[member]))[attribute.codes].mean())
        known = attribute.numbers[~attribute.null]
        return float((attribute.numbers[member] - known.mean()) ** 2 / self.rules.variances[name])


def _written(attribute: Attribute, row: int) -> str | None:
    """Return the value of a record as text; None where it is missing."""
    if isinstance(attribute, Coded):
        text = attribute.texts[attribute.codes[row]]
        return None if text is None else str(text)
    number = float(attribute.numbers[row])
    return None if np.isnan(number) else as_text(attribute.bound, number)


def _moved(rules: Rules, name: str, result: Averaged, rows: Mapping[int, int], exact: bool) -> Averaged:
    """Return the class values of a column, some of them those of a record."""
    attribute, values = rules.attributes[name], result.replace.values
    taken, index = np.array([*rows.values()]), np.arange(len(values))
    if isinstance(attribute, Measured) and attribute.units is not None:
        fresh = exact_arrow(attribute, attribute.units[taken], taken == NOTHING)
    elif isinstance(attribute, Measured):
        fresh = as_arrow(attribute, np.where(taken == NOTHING, np.nan, attribute.numbers[taken]), exact=exact)
    else:
        fresh = pa.array(attribute.texts[np.where(taken == NOTHING, -1, attribute.codes[taken])], pa.string())
    index[[*rows]] = len(values) + np.arange(len(taken))
    every = pa.concat_arrays([values, fresh.cast(values.type)])
    return replace(result, replace=replace(result.replace, values=every.take(pa.array(index))))

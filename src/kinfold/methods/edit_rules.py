"""Edit rules: class averages and imputed values are moved so that no record newly breaks a rule.

    judge     the release with the averages: each record has the values of its class, and its own in other columns
    adjust    each class with a record that newly breaks a rule: try values of its own records, in one column, or in all
              columns of the rules from one record, then in two columns; take what breaks fewest rules, then the nearest
    merge     classes that no value helps, with their nearest ones, as long as fewer records break a rule
    blank     the rest: a class without a value breaks nothing

A class has one value in each column before and after, so every promise about classes stays as it is. Rules are kept
if they say `repair = true`, and always for records with an imputed value.

An imputed value that breaks a rule moves to the nearest value of its column that breaks none; two imputed values of a
record may both move. A record that no value fits is left out and counted.

Cost: one judgement of its records for each of at most `MAX_TRIALS` trials a class.   Ties: the first trial.
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

from kinfold.methods.aggregation import ReplacedColumn, exact_to_arrow, numbers_to_arrow
from kinfold.methods.task import Task
from kinfold.policy.encoding import Attribute, CategoricalAttribute, NumericAttribute, format_value
from kinfold.policy.rule_checks import RuleValues, ValueLookup, evaluate_rule, parse_values, read_functions, read_values
from kinfold.policy.rules import BoundRule
from kinfold.policy.table import Table
from kinfold.tables.points import Labels

Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]
Results: TypeAlias = Mapping[str, ReplacedColumn]
Choice: TypeAlias = dict[str, int]  # by column, the record of the class whose value is used, or `NO_RECORD`

NO_RECORD = -1  # the value is blanked
MAX_TRIALS = 1500  # for each class
MAX_PAIRED_VALUES = 15  # of each column, if two columns are tried at once


@dataclass(frozen=True, eq=False)
class EditRules:
    """The rules of a task, and the values of its records in the columns of the rules."""

    rules: tuple[BoundRule, ...]
    values: ValueLookup  # of the records; those of generalized columns are unknown
    before: tuple[Mask, ...]  # for each rule, the records that break it in the source
    attributes: Mapping[str, Attribute]  # averaged quasi-identifiers, before imputation
    imputed: Mapping[str, Mask]
    variances: Mapping[str, float]  # of numbers and dates in the whole table

    @classmethod
    def from_task(cls, task: Task) -> EditRules | None:
        """Return the rules of a whole table, or None if there is none to keep."""
        table = task.table
        if not isinstance(table, Table) or not task.policy.rules:
            return None
        values = read_values(task.policy, table.engine, table.frame)
        source = values if table.rule_frame is None else read_values(task.policy, table.engine, table.rule_frame)
        averaged = {a.bound.name: a for a in task.attributes if a.bound.average != "generalize"}
        numeric = {name: a for name, a in averaged.items() if isinstance(a, NumericAttribute)}
        imputed = {name: a.null for name, a in numeric.items() if a.bound.request.missing == "mean"}
        rules = tuple(r for r in task.policy.rules if {*averaged} & {*r.tree.columns})
        rules = tuple(r for r in rules if r.repair or {*imputed} & {*r.tree.columns})
        if not rules:
            return None
        rules = tuple(replace(rule, tree=read_functions(rule.tree, source)) for rule in rules)
        known = _hide_columns({a.bound.name for a in task.attributes} - {*averaged}, values)
        before = tuple(evaluate_rule(rule.tree, source).false for rule in rules)
        variances = {name: float(np.nanvar(a.numbers)) or 1.0 for name, a in numeric.items()}
        return cls(rules, known, before, averaged, imputed, variances)

    def take(self, rows: Rows) -> EditRules:
        """Return the rules of some records."""
        values = self.values
        return EditRules(
            self.rules,
            lambda name, sort: values(name, sort).take(rows),
            tuple(each[rows] for each in self.before),
            {name: attribute.take(rows) for name, attribute in self.attributes.items()},
            {name: mask[rows] for name, mask in self.imputed.items()},
            self.variances,
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The averaged columns of the rules."""
        names = [name for rule in self.rules for name in rule.tree.columns if name in self.attributes]
        return tuple(dict.fromkeys(names))

    def count_new_breaks(self, values: ValueLookup) -> NDArray[np.int64]:
        """Count for each record the rules that it breaks, did not break in the source, and must keep."""
        total: Any = 0
        for rule, before in zip(self.rules, self.before, strict=True):
            required = np.full(len(before), rule.repair)
            for name in rule.tree.columns:
                required |= self.imputed.get(name, np.False_)
            total = total + (evaluate_rule(rule.tree, values).false & ~before & required)
        return np.asarray(total, np.int64)


def _hide_columns(names: Collection[str], values: ValueLookup) -> ValueLookup:
    """Return the values without those of generalized columns, by which a rule cannot be judged."""

    def look_up(name: str, sort: str) -> RuleValues:
        column = values(name, sort)
        unknown = np.zeros(len(column.known), np.bool_)
        return RuleValues(column.values, unknown, unknown) if name in names else column

    return look_up


@dataclass(frozen=True, eq=False)
class AdjustedAverages:
    """Class values after the adjustment."""

    results: Results
    moved: int  # class values
    blanked: Mapping[str, int]  # records, by column
    remaining: NDArray[np.int64]  # rules newly broken, by class


def adjust_averages(
    rules: EditRules, labels: Labels, results: Results, *, exact: bool, blank: bool = False
) -> AdjustedAverages:
    """Move class values so that no record newly breaks a rule, if its class has such values; or blank them."""
    texts = {name: results[name].replace.values.cast(pa.string()) for name in rules.columns}
    breaks = rules.count_new_breaks(_look_up_release(rules, texts, labels))
    broken = np.bincount(labels, breaks, int(labels.max()) + 1).astype(np.int64)
    chosen: dict[str, dict[int, int]] = {name: {} for name in rules.columns}
    for group in np.flatnonzero(broken):
        members = np.flatnonzero(labels == group)
        averages = {name: text[int(group)].as_py() for name, text in texts.items()}
        choice, broken[group] = _ClassAdjustment(rules.take(members), averages, blank).find_best(int(broken[group]))
        for name, member in choice.items():
            chosen[name][int(group)] = NO_RECORD if member == NO_RECORD else int(members[member])
    adjusted = {name: _replace_values(rules, name, results[name], rows, exact) for name, rows in chosen.items() if rows}
    sizes = np.bincount(labels)
    blanked = {name: sum(int(sizes[g]) for g, row in rows.items() if row == NO_RECORD) for name, rows in chosen.items()}
    return AdjustedAverages(
        results={**results, **adjusted},
        moved=sum(row != NO_RECORD for rows in chosen.values() for row in rows.values()),
        blanked={name: count for name, count in blanked.items() if count},
        remaining=broken,
    )


def _look_up_release(rules: EditRules, texts: Mapping[str, Any], labels: Labels) -> ValueLookup:
    """Return the released values of each record: those of its class, its own in other columns."""
    parsed: dict[tuple[str, str], RuleValues] = {}

    def look_up(name: str, sort: str) -> RuleValues:
        if name not in texts:
            return rules.values(name, sort)
        if (name, sort) not in parsed:
            parsed[name, sort] = parse_values(texts[name], sort, rules.attributes[name].bound).take(labels)
        return parsed[name, sort]

    return look_up


@dataclass(frozen=True, eq=False)
class _ClassAdjustment:
    """One class: the rules of its records, and its averages as text."""

    rules: EditRules
    averages: Mapping[str, str | None]
    blank: bool

    def find_best(self, broken: int) -> tuple[Choice, int]:
        """Return the choice that breaks the fewest rules, nearest to the class, and how many it breaks."""
        best: Choice = {}
        for stage in (self._try_single, self._try_pairs, *([self._try_blanks] if self.blank else [])):
            choices = [*islice(stage(), MAX_TRIALS)]
            if not choices or not broken:
                continue
            counts = self._count_broken(choices)
            fewest = int(counts.min())
            if fewest < broken:
                tied = [choice for choice, count in zip(choices, counts, strict=True) if count == fewest]
                best, broken = (
                    min(tied, key=lambda choice: sum(self._distance(*item) for item in choice.items())),
                    fewest,
                )
        return best, broken

    @property
    def _members(self) -> int:
        return len(self.rules.before[0])

    @cached_property
    def _options(self) -> dict[str, list[int]]:
        """By column, one record for each value of the class, the nearest to the class first."""
        options = {}
        for name in self.rules.columns:
            first: dict[str, int] = {}
            for member in range(self._members if self.averages[name] is not None else 0):
                if (text := _format_value(self.rules.attributes[name], member)) is not None:
                    first.setdefault(text, member)
            if first:
                options[name] = sorted(first.values(), key=lambda member, name=name: self._distance(name, member))  # type: ignore[misc]
        return options

    def _try_single(self) -> Iterator[Choice]:
        for name, members in self._options.items():
            yield from ({name: member} for member in members)
        if len(self._options) > 1:
            for member in range(self._members):
                if all(_format_value(self.rules.attributes[name], member) is not None for name in self._options):
                    yield dict.fromkeys(self._options, member)

    def _try_pairs(self) -> Iterator[Choice]:
        for one, other in combinations(self._options, 2):
            both = product(self._options[one][:MAX_PAIRED_VALUES], self._options[other][:MAX_PAIRED_VALUES])
            yield from ({one: a, other: b} for a, b in both)

    def _try_blanks(self) -> Iterator[Choice]:
        for count in range(1, len(self._options) + 1):
            yield from (dict.fromkeys(names, NO_RECORD) for names in combinations(self._options, count))

    def _count_broken(self, choices: Sequence[Choice]) -> NDArray[np.int64]:
        """Count the rules that each choice breaks: all records under every choice are judged at once."""
        texts = {}
        for name, average in self.averages.items():
            chosen = [choice.get(name) for choice in choices]
            values = [average if row is None else _format_value(self.rules.attributes[name], row) for row in chosen]
            texts[name] = pa.array(values, pa.string())
        copies = self.rules.take(np.tile(np.arange(self._members), len(choices)))
        choice_of_copy = np.repeat(np.arange(len(choices), dtype=np.int32), self._members)
        breaks = copies.count_new_breaks(_look_up_release(copies, texts, choice_of_copy))
        return breaks.reshape(len(choices), -1).sum(axis=1)

    def _distance(self, name: str, member: int) -> float:
        """Return the squared distance of a record's value to those of the class, on the scale of the column."""
        if member == NO_RECORD:
            return 1.0
        attribute = self.rules.attributes[name]
        if isinstance(attribute, CategoricalAttribute):
            return float(attribute.scale.squared_distances(int(attribute.codes[member]))[attribute.codes].mean())
        known = attribute.numbers[~attribute.null]
        return float((attribute.numbers[member] - known.mean()) ** 2 / self.rules.variances[name])


def _format_value(attribute: Attribute, row: int) -> str | None:
    """Return the value of a record as text, None if it is missing or the record is `NO_RECORD`."""
    if row == NO_RECORD:
        return None
    if isinstance(attribute, CategoricalAttribute):
        text = attribute.texts[attribute.codes[row]]
        return None if text is None else str(text)
    number = float(attribute.numbers[row])
    return None if np.isnan(number) else format_value(attribute.bound, number)


def _replace_values(
    rules: EditRules, name: str, result: ReplacedColumn, rows: Mapping[int, int], exact: bool
) -> ReplacedColumn:
    """Return the class values of a column, some of them replaced by those of records; `rows` is by class."""
    attribute, values = rules.attributes[name], result.replace.values
    records, index = np.array([*rows.values()]), np.arange(len(values))
    blank = records == NO_RECORD
    if isinstance(attribute, NumericAttribute) and attribute.units is not None:
        new = exact_to_arrow(attribute, attribute.units[records], blank)
    elif isinstance(attribute, NumericAttribute):
        new = numbers_to_arrow(attribute, np.where(blank, np.nan, attribute.numbers[records]), exact=exact)
    else:
        new = pa.array(attribute.texts[np.where(blank, -1, attribute.codes[records])], pa.string())
    index[[*rows]] = len(values) + np.arange(len(records))
    replaced = pa.concat_arrays([values, new.cast(values.type)]).take(pa.array(index))
    return replace(result, replace=replace(result.replace, values=replaced))


def fit_imputed_values(
    task: Task, attributes: Sequence[Attribute], rules: EditRules | None
) -> tuple[list[Attribute], Mask]:
    """Move imputed values that break a rule to the nearest value that does not; mark records without such a value."""
    unfit = np.zeros(task.records, np.bool_)
    if rules is None or not rules.imputed:
        return [*attributes], unfit
    by_name = {a.bound.name: a for a in attributes}
    rows = np.flatnonzero(np.logical_or.reduce([*rules.imputed.values()]))
    moved: dict[str, dict[int, float]] = {name: {} for name in rules.imputed}
    for place in np.flatnonzero(rules.take(rows).count_new_breaks(_look_up_imputed(rules, by_name, rows))):
        row = int(rows[place])
        numbers = _find_fitting(rules, by_name, row)
        unfit[row] = numbers is None
        for name, number in (numbers or {}).items():
            moved[name][row] = number
    return [_replace_numbers(attribute, moved.get(attribute.bound.name)) for attribute in attributes], unfit


def _replace_numbers(attribute: Attribute, moved: Mapping[int, float] | None) -> Attribute:
    if not moved or not isinstance(attribute, NumericAttribute):
        return attribute
    numbers = attribute.numbers.copy()
    numbers[[*moved]] = [*moved.values()]
    return replace(attribute, numbers=numbers, exact=None)


def _look_up_imputed(
    rules: EditRules, attributes: Mapping[str, Attribute], rows: Rows, trial: Mapping[str, float] | None = None
) -> ValueLookup:
    """Return the values of some records with imputed values, or with those of a trial, filled in."""

    def look_up(name: str, sort: str) -> RuleValues:
        column = rules.values(name, sort).take(rows)
        if name not in rules.imputed:
            return column
        imputed = rules.imputed[name][rows]
        numbers = np.where(imputed, attributes[name].numbers[rows], column.values)  # type: ignore[union-attr]
        if trial and name in trial:
            numbers = np.full(len(rows), trial[name])
        return RuleValues(numbers, column.known | imputed, column.missing & ~imputed)

    return look_up


def _find_fitting(rules: EditRules, attributes: Mapping[str, Attribute], row: int) -> dict[str, float] | None:
    """Return the nearest numbers for the imputed values of a record with which it breaks no rule, or None."""
    names = [name for name in rules.imputed if rules.imputed[name][row] and name in rules.columns]
    options = {name: _sort_by_distance(rules.attributes[name], attributes[name], row) for name in names}
    rows = np.array([row])
    record = rules.take(rows)
    for columns in [[name] for name in names] + ([names] if len(names) > 1 else []):
        limit = MAX_TRIALS if len(columns) == 1 else MAX_PAIRED_VALUES
        for numbers in islice(product(*(options[name][:limit] for name in columns)), MAX_TRIALS):
            trial = dict(zip(columns, numbers, strict=True))
            if not record.count_new_breaks(_look_up_imputed(rules, attributes, rows, trial)).any():
                return trial
    return None


def _sort_by_distance(attribute: Attribute, filled: Attribute, row: int) -> list[float]:
    """Return the values of a column, the nearest to the imputed one first."""
    assert isinstance(attribute, NumericAttribute)  # noqa: S101  only these are imputed
    assert isinstance(filled, NumericAttribute)  # noqa: S101  as above
    known = np.unique(attribute.numbers[~attribute.null])
    return [float(x) for x in known[np.argsort(np.abs(known - filled.numbers[row]), kind="stable")]]

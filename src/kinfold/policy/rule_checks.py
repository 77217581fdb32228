"""Evaluate edit rules on arrays, and count the records that break each rule before and after.

Conditions have three values: true, false and unknown. Missing, generalized and starred cells are unknown.
A record breaks a rule if the rule is false whatever the unknown cells hold. Numbers are equal up to rounding.
A function `a -> b` is read from the source: each value of `a` has the value of `b` that most of its records have. A
record with a value that the source does not have is unknown.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.rules import RulePart, parse_day
from kinfold.tables.engine import Engine
from kinfold.tables.recoding import encode_dictionary

Mask: TypeAlias = NDArray[np.bool_]

ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
EQUAL_TOLERANCE = 1e-12  # relative to the larger number, absolute below 1


@dataclass(frozen=True, eq=False)
class RuleValues:
    """The values of one column as one type, with masks of the known and of the missing ones."""

    values: NDArray[Any]
    known: Mask
    missing: Mask

    def take(self, rows: NDArray[np.integer[Any]]) -> RuleValues:
        """Return the values of these records."""
        return RuleValues(self.values[rows], self.known[rows], self.missing[rows])


ValueLookup: TypeAlias = Callable[[str, str], RuleValues]  # by column and type


def parse_values(texts: Any, value_type: str, column: BoundColumn, known: frozenset[str] | None = None) -> RuleValues:
    """Read an Arrow array of texts as a type; texts that are not in `known`, if given, are unknown."""
    index, distinct = encode_dictionary(texts)
    parsed = [_parse_text(text, value_type, column, known) for text in distinct.to_pylist()]
    readable = np.array([value is not None for value in parsed] + [False])
    empty: Any = "" if value_type == "text" else np.nan
    filled = [empty if value is None else value for value in parsed] + [empty]
    values = np.array(filled, object if value_type == "text" else np.float64)
    return RuleValues(values[index], readable[index], index < 0)


def _parse_text(text: str, value_type: str, column: BoundColumn, known: frozenset[str] | None) -> float | str | None:
    if value_type == "text":
        return text if known is None or text in known else None
    if value_type == "date":
        return parse_day(text, column.column.date_format)
    if value_type == "rank":
        order = column.request.order or ()
        return float(order.index(text)) if text in order else None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


@dataclass(frozen=True, eq=False)
class TruthValues:
    """Masks of the records for which a condition is true or false; it is unknown for the others."""

    true: Mask
    false: Mask


def evaluate_rule(tree: RulePart, values: ValueLookup) -> TruthValues:
    """Return the records that keep a rule and those that break it."""
    if tree.kind in ("and", "or", "not"):
        return _combine(tree.kind, [evaluate_rule(part, values) for part in tree.parts])
    if tree.kind == "->":
        return _evaluate_function(tree, values)
    if tree.kind == "missing":
        column = values(str(tree.parts[0].value), tree.parts[0].value_type)
        return TruthValues(column.missing, column.known)
    left, right = (_evaluate_value(part, values) for part in tree.parts)
    known = left[1] & right[1]
    holds = _compare(tree.kind, left[0], right[0], tree.parts[0].value_type)
    return TruthValues(holds & known, ~holds & known)


def _combine(word: str, parts: Sequence[TruthValues]) -> TruthValues:
    if word == "not":
        return TruthValues(parts[0].false, parts[0].true)
    true = np.array(np.broadcast_arrays(*(part.true for part in parts)))
    false = np.array(np.broadcast_arrays(*(part.false for part in parts)))
    if word == "and":
        return TruthValues(np.asarray(true.all(axis=0)), np.asarray(false.any(axis=0)))
    return TruthValues(np.asarray(true.any(axis=0)), np.asarray(false.all(axis=0)))


def read_functions(tree: RulePart, source: ValueLookup) -> RulePart:
    """Return a rule with the values of its functions in the source.

    These are, by first value, the second one that most records have; of equally many, the first to occur.
    """
    tree = replace(tree, parts=tuple(read_functions(part, source) for part in tree.parts))
    if tree.kind != "->":
        return tree
    first, second = (source(str(part.value), part.value_type) for part in tree.parts)
    known = first.known & second.known
    images: dict[Any, Any] = {}
    for (a, b), _ in Counter(
        zip(first.values[known].tolist(), second.values[known].tolist(), strict=True)
    ).most_common():
        images.setdefault(a, b)
    return replace(tree, images=images)


def _evaluate_function(tree: RulePart, values: ValueLookup) -> TruthValues:
    first, second = (values(str(part.value), part.value_type) for part in tree.parts)
    known = first.known & second.known
    images, possible = tree.images, {*tree.images.values()}
    pairs = zip(first.values[known].tolist(), second.values[known].tolist(), strict=True)
    judged = [(images[a] == b, images[a] != b) if a in images and b in possible else (False, False) for a, b in pairs]
    masks = np.zeros((2, len(known)), np.bool_)
    masks[:, known] = np.array(judged, np.bool_).reshape(-1, 2).T
    return TruthValues(*masks)


def _evaluate_value(node: RulePart, values: ValueLookup) -> tuple[Any, Any]:
    """Return the value of each record and the mask of known ones; a literal is one value for all."""
    if node.kind == "column":
        column = values(str(node.value), node.value_type)
        return column.values, column.known
    if not node.parts:
        return node.value, np.True_
    parts = [_evaluate_value(part, values) for part in node.parts]
    if node.kind == "negative":
        return -parts[0][0], parts[0][1]
    (first, first_known), (second, second_known) = parts
    with np.errstate(over="ignore", invalid="ignore"):
        return ARITHMETIC[node.kind](first, second), first_known & second_known


def _compare(kind: str, left: Any, right: Any, value_type: str) -> Any:
    if value_type == "text":
        same = np.asarray(left == right, np.bool_)
        return same if kind == "=" else ~same
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
        same, less = np.abs(left - right) <= EQUAL_TOLERANCE * size, np.asarray(left < right)
    if kind in ("=", "!="):
        return same if kind == "=" else ~same
    if kind in ("<", ">="):
        return (less & ~same) if kind == "<" else ~(less & ~same)
    return (less | same) if kind == "<=" else ~(less | same)


@dataclass(frozen=True)
class RuleCount:
    """The records of the source and of the release that break a rule; `not_judged` are unknown in the release."""

    check: str
    before: int
    after: int
    not_judged: int

    @property
    def is_worse(self) -> bool:
        """Whether the release breaks the rule more often than the source."""
        return self.after > self.before


def count_violations(policy: BoundPolicy, engine: Engine, source: Any, released: Any) -> tuple[RuleCount, ...]:
    """Count the records that break each rule of a policy, in the source and in the release."""
    if not policy.rules:
        return ()
    before, after = read_values(policy, engine, source), read_values(policy, engine, released, source)
    counts = []
    for rule in policy.rules:
        tree = read_functions(rule.tree, before)
        original, release = evaluate_rule(tree, before), evaluate_rule(tree, after)
        unknown = int((~release.true & ~release.false).sum())
        counts.append(RuleCount(rule.text, int(original.false.sum()), int(release.false.sum()), unknown))
    return tuple(counts)


def read_values(policy: BoundPolicy, engine: Engine, frame: Any, source: Any = None) -> ValueLookup:
    """Return the columns of a table as rules read them; texts that the `source` lacks are labels, hence unknown."""
    wanted = dict.fromkeys(read for rule in policy.rules for read in rule.column_types)
    texts = engine.collect(frame, dict.fromkeys(name for name, _ in wanted))
    text_columns = [name for name, value_type in wanted if value_type == "text" and source is not None]
    known = {
        name: frozenset(engine.collect(source, {name: None}).column(0).drop_null().unique().to_pylist())
        for name in text_columns
    }
    columns: dict[tuple[str, str], RuleValues] = {
        (name, value_type): parse_values(texts.column(name), value_type, policy[name], known.get(name))
        for name, value_type in wanted
    }
    return lambda name, value_type: columns[name, value_type]


def describe_rule_counts(counts: Sequence[RuleCount]) -> tuple[list[str], list[str]]:
    """Return notes for the holder, and notes for a recipient, which do not name the rules."""
    notes = [
        f"edit rule {count.check}: broken by {count.before:,} records before and {count.after:,} after"
        + (f", {count.not_judged:,} cannot be judged" if count.not_judged else "")
        + (". MORE THAN BEFORE" if count.is_worse else "")
        for count in counts
    ]
    worse = [count for count in counts if count.is_worse]
    more = sum(count.after - count.before for count in worse)
    are = "is" if len(worse) == 1 else "are"
    public = f"{len(worse)} of {len(counts)} edit rules {are} broken more often than before: by {more:,} records"
    return notes, [public] if worse else []

"""What a rule means on a table: its columns are there, and every comparison has a sort that both sides can be read as.

    number    columns of numbers, numbers, sums and products; also the days between two dates
    date      columns of dates, dates, quoted ISO dates; a date and a number of days
    rank      ordinal columns with an order, and quoted categories of it
    text      every other column, and quoted texts: equal or not, there is no order

A column of codes is read as numbers beside a number, as text beside a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from kinfold.errors import Problem
from kinfold.request.policy_problems import did_you_mean
from kinfold.request.rules.language import RulePart, parse
from kinfold.rows.schema import Kind, Role, Storage

if TYPE_CHECKING:
    from kinfold.request.binding import BoundColumn
    from kinfold.request.policy import Rule

SORTS = ("number", "date", "rank", "text")
SUMS = {
    "+": {("number", "number"): "number", ("date", "number"): "date", ("number", "date"): "date"},
    "-": {("number", "number"): "number", ("date", "date"): "number", ("date", "number"): "date"},
    "*": {("number", "number"): "number"},
}


@dataclass(frozen=True)
class BoundRule:
    """A rule that fits a table: as it was written, whether it is kept, and its tree with sorts."""

    text: str
    repair: bool
    tree: RulePart

    @property
    def reads(self) -> tuple[tuple[str, str], ...]:
        """Each column that it speaks of, with the sort that it is read as."""
        return tuple(dict.fromkeys((str(n.value), n.sort) for n in self.tree.walk() if n.kind == "column"))


def bind_rules(rules: Sequence[Rule], columns: Sequence[BoundColumn]) -> tuple[list[BoundRule], list[Problem]]:
    """Return the rules as they are meant, and what is wrong with those that mean nothing on this table."""
    known = {column.name: column for column in columns}
    bound, problems = [], []
    for number, rule in enumerate(rules, 1):
        tree = parse(rule.check)
        wrong = [*_unknown(tree, known)]
        if not wrong:
            try:
                bound.append(BoundRule(rule.check, rule.repair, _truth(tree, known)))
            except _MismatchError as error:
                wrong.append(Problem(f"{error.args[0]}", error.args[1]))
        problems += [replace(each, what=f"rules, {number}: {each.what}") for each in wrong]
    return bound, problems


class _MismatchError(Exception):
    """Two sides that cannot be compared."""


def _unknown(tree: RulePart, known: Mapping[str, BoundColumn]) -> Iterator[Problem]:
    if not tree.columns:
        yield Problem("it speaks of no column", "correct the rule")
    for name in tree.columns:
        if name not in known:
            yield Problem(f"no column '{name}'{did_you_mean(name, [*known])}", "correct the rule")
        elif known[name].role is Role.IDENTIFIER:
            yield Problem(f"column '{name}' is removed, and no release can be checked by it", "leave the rule out")


def _truth(node: RulePart, known: Mapping[str, BoundColumn]) -> RulePart:
    """Return a part that is true or false, with sorts."""
    if node.kind in ("and", "or", "not"):
        return replace(node, parts=tuple(_truth(part, known) for part in node.parts), sort="truth")
    if node.kind == "missing":
        return replace(node, parts=(_asked_of(node.parts[0], known),), sort="truth")
    if node.kind not in ("=", "!=", "<", "<=", ">", ">="):
        raise _MismatchError(f"{_named(node)} is neither true nor false", "compare it: age < 16")
    return replace(node, parts=_compared(node, known), sort="truth")


def _asked_of(node: RulePart, known: Mapping[str, BoundColumn]) -> RulePart:
    if node.kind != "column":
        raise _MismatchError("'is missing' is asked of something that is no column", "write: age is missing")
    return replace(node, sort=_readings(known[str(node.value)])[0])


def _compared(node: RulePart, known: Mapping[str, BoundColumn]) -> tuple[RulePart, ...]:
    """Return both sides of a comparison, read as the first sort that both can be."""
    sides = [_sorts(part, known) for part in node.parts]
    both = [sort for sort in SORTS if all(sort in side for side in sides)]
    left, right = node.parts
    if not both:
        what = f"{_named(left)} and {_named(right)} cannot be compared"
        raise _MismatchError(what, f"one is {_either(sides[0])}, the other {_either(sides[1])}")
    if both[0] == "text" and node.kind not in ("=", "!="):
        raise _MismatchError(f"{_named(left)} has no order", "use = or !=, or give the column an order")
    order = _order(node, known) if both[0] == "rank" else ()
    return tuple(_resolved(part, both[0], known, order) for part in node.parts)


def _either(sorts: Sequence[str]) -> str:
    return " or ".join(sorts) or "nothing that can be compared"


def _sorts(node: RulePart, known: Mapping[str, BoundColumn]) -> tuple[str, ...]:
    """As what a value can be read."""
    if node.kind == "column":
        return _readings(known[str(node.value)])
    if node.kind == "text":
        return ("date", "rank", "text") if day(str(node.value)) is not None else ("rank", "text")
    if node.kind in ("number", "date"):
        return (node.kind,)
    if node.kind == "truth":
        return ("text",)
    if node.kind == "negative":
        return ("number",) if "number" in _sorts(node.parts[0], known) else ()
    if node.kind in SUMS:
        left, right = (_sorts(part, known) for part in node.parts)
        return tuple(dict.fromkeys(gives for (a, b), gives in SUMS[node.kind].items() if a in left and b in right))
    return ()


def _readings(column: BoundColumn) -> tuple[str, ...]:
    """As what a column can be read, the most telling first."""
    storage = column.column.storage
    if column.request.order:
        return ("rank", "text")
    if storage in (Storage.INTEGER, Storage.NUMBER):
        return ("number",) if column.kind is Kind.CONTINUOUS else ("number", "text")
    if storage in (Storage.DATE, Storage.TIMESTAMP) or (column.kind is Kind.DATE and column.column.date_format):
        return ("date",)
    return ("text",)


def _order(node: RulePart, known: Mapping[str, BoundColumn]) -> tuple[str, ...]:
    orders = {known[str(part.value)].request.order or () for part in node.parts if part.kind == "column"}
    if len(orders) != 1:
        raise _MismatchError("categories of different orders cannot be compared", "compare a column with a category")
    order = orders.pop()
    for part in node.parts:
        if part.kind == "text" and part.value not in order:
            raise _MismatchError(f"'{part.value}' is not in the order of its column", "write one of its categories")
    return order


def _resolved(node: RulePart, sort: str, known: Mapping[str, BoundColumn], order: Sequence[str] = ()) -> RulePart:
    """Return a value that is read as this sort; dates are days, categories in an order are places."""
    if node.kind in SUMS:
        sides = [_sorts(part, known) for part in node.parts]
        parts = next(
            p for p, gives in SUMS[node.kind].items() if gives == sort and p[0] in sides[0] and p[1] in sides[1]
        )
        return replace(
            node, parts=tuple(_resolved(p, s, known) for p, s in zip(node.parts, parts, strict=True)), sort=sort
        )
    if node.kind == "negative":
        return replace(node, parts=(_resolved(node.parts[0], "number", known),), sort=sort)
    value = node.value
    if node.kind in ("text", "date") and sort == "date":
        value = day(str(value)) or 0.0
    elif node.kind == "text" and sort == "rank":
        value = float(order.index(str(value)))
    elif node.kind == "truth":
        value = str(value).lower()
    return replace(node, value=value, sort=sort)


def day(text: str, form: str | None = None) -> float | None:
    """Return a date or moment as days since 1970, or None where the text is none.

    >>> day("1970-01-02"), day("02.01.1970", "%d.%m.%Y"), day("soon")
    (1.0, 1.0, None)
    """
    for form_here in (form, None):
        try:
            text = text.strip()
            moment = datetime.strptime(text, form_here) if form_here else datetime.fromisoformat(text)
        except ValueError:
            continue
        return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() / 86400
    return None


def _named(node: RulePart) -> str:
    return f"'{node.value}'" if node.kind == "column" else f"what stands at character {node.at + 1}"

"""The promises checked by their definitions, on rows as anybody would read them, with nothing of kinfold's own.

Classes are rows whose quasi-identifiers have the same text. Null is a value: first in an order, under nothing but the
top of a hierarchy.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet

from reference import definitions, labels

Row: TypeAlias = dict[str, Any]

NEAR = 1e-9
WEIGHT = "many"  # the column of sampling weights, which a release does not have


@dataclass(frozen=True)
class Population:
    """A table with a row for each person, and the kinds of its columns."""

    rows: Sequence[Row]
    kinds: dict[str, str]
    tree: dict[str, list[str]]  # of ranks

    def count(self, classes: Iterable[tuple[str | None, ...]]) -> list[int]:
        """The people who fit each class: each label says what it stands for."""
        names, held = [*self.kinds], Counter(tuple(row[name] for name in self.kinds) for row in self.rows)
        fits = {
            (name, label): {value for value in {who[at] for who in held} if self._fits(name, label, value)}
            for at, name in enumerate(names)
            for label in {each[at] for each in classes}
        }
        return [
            sum(
                n
                for who, n in held.items()
                if all(value in fits[name, label] for name, label, value in zip(names, each, who, strict=True))
            )
            for each in classes
        ]

    def _fits(self, name: str, label: str | None, value: Any) -> bool:
        kind = self.kinds[name]
        if label == "*" or value is None or label is None:
            return label == "*" or (value is None and label is None)
        if kind in ("whole", "decimal", "grade"):
            return labels.has_number(label, labels.fraction(value))
        if kind in ("day", "moment"):
            moment = value if isinstance(value, datetime) else datetime.combine(value, time())
            return labels.has_moment(label, labels.ticks(moment), date(moment.year, moment.month, moment.day))
        if kind == "rank":
            return label in (value, *self.tree[value])
        return labels.has_text(label.lower(), str(value).lower())


@dataclass(frozen=True)
class Promise:
    """What is asked of every class about one column, or of all classes together."""

    model: str
    column: str
    asked: float
    kind: str = ""  # the ground distance of t, the kind of l or beta
    stored: str = ""
    c: float = (
        1.0  # of a recursive l; the size of combinations; a risk above which records count, or of an estimate; the
    )
    # largest presence
    people: int = 0  # of the population
    known: Population | None = None
    order: Sequence[str] = ()
    tree: dict[str, list[str]] = field(default_factory=dict)

    def kept(self, held: Counter[str | None], whole: Counter[str | None]) -> bool:
        """Whether one class keeps it."""
        if self.model == "t":
            return self._distance(held, whole) <= Fraction(self.asked) + Fraction(NEAR)
        if self.model == "p" or self.kind == "distinct":
            return len(held) >= self.asked
        if self.model in ("alpha", "confidence"):
            return definitions.alpha(held) <= self.asked + NEAR
        if self.model == "beta":
            return definitions.gain(held, whole, enhanced=self.kind == "enhanced") <= self.asked + NEAR
        if self.model == "delta":
            return definitions.disclosure(held, whole) < self.asked + NEAR
        if self.kind == "entropy":
            return definitions.entropy(held) >= self.asked - NEAR
        return definitions.recursive(held, self.c) >= self.asked

    def kept_in_all(self, held: Counter[tuple[str | None, ...]], weights: Counter[tuple[str | None, ...]]) -> bool:
        """Whether classes with these records and weights keep it together."""
        sizes = [*held.values()]
        if self.model == "individual risk":
            worst = max(definitions.individual_risk(n, weights[key]) for key, n in held.items())
            return worst <= self.asked + NEAR
        if self.model == "uniques":
            return definitions.zayatz(sizes, self.people) <= self.asked * self.people + NEAR
        if self.known is not None:
            counts = self.known.count([*held])
            if self.model == "people":
                return min(counts) >= self.asked
            shares = [n / count if count else 1.0 for n, count in zip(sizes, counts, strict=True)]
            return min(shares) >= self.asked - NEAR and max(shares) <= self.c + NEAR
        if self.model == "average risk":
            return len(sizes) / sum(sizes) <= self.asked + NEAR
        if self.model == "combinations":
            return min(sizes) >= self.asked
        if self.model == "population":
            return min(sizes) >= definitions.k_map_size(sum(sizes), self.people, int(self.asked), self.c)
        return sum(size for size in sizes if 1 / size > self.c) / sum(sizes) <= self.asked + NEAR

    def _distance(self, held: Counter[str | None], whole: Counter[str | None]) -> Fraction:
        if self.kind == "ordered":
            return definitions.ordered_emd(held, whole, sorted(whole, key=self._rank))
        if self.kind == "equal":
            return definitions.equal_emd(held, whole)
        gap = {v: Fraction(held[v], held.total()) - Fraction(n, whole.total()) for v, n in whole.items()}
        return self._hierarchical(gap)

    def _rank(self, value: str | None) -> Any:
        if value is None:
            return (0, 0)
        if self.order:
            return (1, self.order.index(value))
        return (1, Fraction(value)) if self.stored in ("whole", "decimal", "grade") else (1, value)

    def _hierarchical(self, gap: dict[str | None, Fraction]) -> Fraction:
        """Move what is too much to where it is too little, at the lowest node that both are under (Li et al. 2007)."""
        paths = {value: [*self.tree[value], "*"] if value is not None else None for value in gap}
        height = len(next(iter(self.tree.values())))
        left = {(text(value),): each for value, each in gap.items()}
        total = Fraction(0)
        for level in range(1, height + 1):
            nodes: dict[Any, list[Fraction]] = defaultdict(list)
            owner = {value: _node(value, path, level, height) for value, path in paths.items()}
            below = {value: _node(value, path, level - 1, height) for value, path in paths.items()}
            for child in set(below.values()):
                above = next(owner[value] for value in gap if below[value] == child)
                nodes[above].append(left[child])
            moved = {node: min(_above(parts), -_under(parts)) for node, parts in nodes.items()}
            total += sum(moved.values(), Fraction(0)) * level / height
            left = {node: sum(parts, Fraction(0)) for node, parts in nodes.items()}
        return total


def _node(value: str | None, path: list[str] | None, level: int, height: int) -> tuple[Any, ...]:
    if level == height:
        return ("*",)
    return (value,) if path is None or level == 0 else (level, path[level])


def _above(parts: Iterable[Fraction]) -> Fraction:
    return sum((part for part in parts if part > 0), Fraction(0))


def _under(parts: Iterable[Fraction]) -> Fraction:
    return sum((part for part in parts if part < 0), Fraction(0))


def text(value: Any) -> str | None:
    """A value as it would be written; a missing one is None."""
    return None if value is None or value != value else str(value)


def broken(
    rows: Sequence[Row], quasi: Sequence[str], k: int, promises: Sequence[Promise], joint: Sequence[str] = ()
) -> list[str]:
    """Name the promises that the rows do not keep; `joint` columns are known to whoever looks at another one."""
    few = any(promise.model == "combinations" for promise in promises)  # k is then about these alone
    all_of_k = [] if few else [Promise("combinations", "", k, c=len(quasi))]
    missed = []
    for promise in [*all_of_k, *promises]:
        small = promise.model in ("combinations", "confidence")
        for columns in combinations(quasi, min(int(promise.c), len(quasi))) if small else [quasi]:
            known = [*columns, *(name for name in joint if name != promise.column)] if promise.column else columns
            keys = [tuple(text(row[name]) for name in known) for row in rows]
            if promise.column:
                values = [text(row[promise.column]) for row in rows]
                kept = all(promise.kept(held, Counter(values)) for held in definitions.classes(keys, values))
            else:
                weights = Counter[tuple[str | None, ...]]()
                for key, row in zip(keys, rows, strict=True):
                    weights[key] += row.get(WEIGHT, 0)
                kept = not rows or promise.kept_in_all(Counter(keys), weights)
            missed += [] if kept else [f"{promise.model} {promise.kind} of {promise.column}"]
    return missed


def rows_of(frame: Any) -> list[Row]:
    """The rows of a pandas, polars or Arrow table as Python values."""
    if hasattr(frame, "to_pylist"):
        return list(frame.to_pylist())
    if hasattr(frame, "to_dicts"):
        return list(frame.to_dicts())
    columns = {name: frame[name].astype(object).where(frame[name].notna(), None) for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rows_in(folder: Path) -> list[Row]:
    """The rows of a release as its file holds them; an empty field is null."""
    path = next(folder.glob("release.*"))
    if path.suffix == ".parquet":
        return list(pyarrow.parquet.read_table(path).to_pylist())
    with path.open(newline="", encoding="utf-8") as lines:
        return [{name: value or None for name, value in row.items()} for row in csv.DictReader(lines)]

"""Regrouping: labels of a hierarchy put under one name, renamed or taken apart, one step at a time.

Rows are those of `Hierarchy.of`: a value and its labels, ever coarser, without the top. A flat hierarchy, in which
every value stands right under the top, has rows of one label. A level that is not there yet is added above the highest,
where each label first repeats: what is not grouped stays what it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kinfold.errors import PolicyError
from kinfold.hierarchy.hierarchy import TOP, Hierarchy

Rows: TypeAlias = list[tuple[str, ...]]

MOST_CHILDREN = 100  # of a label that are listed


def rows_of_labels(hierarchy: Hierarchy) -> Rows:
    """Return the rows of a hierarchy without the top.

    >>> rows_of_labels(Hierarchy.of([("flu", "lung"), ("ulcer", "stomach")]))
    [('flu', 'lung'), ('ulcer', 'stomach')]
    """
    return [tuple(row[:-1]) for row in hierarchy.labels.tolist()]


def merged(rows: Rows, labels: Collection[str], name: str, level: int) -> Rows:
    """Put the values under these labels of the level below under one name at this level.

    >>> merged([("flu",), ("asthma",), ("ulcer",)], ["flu", "asthma"], "lung", 1)
    [('flu', 'lung'), ('asthma', 'lung'), ('ulcer', 'ulcer')]
    """
    rows = _with_level(rows, level)
    if not (known := {row[level - 1] for row in rows}) >= set(labels) or not labels:
        what = f"{len(set(labels) - known) or 'none'} of the labels are not at level {level - 1}"
        raise PolicyError(what, fix="choose labels of one level")
    _named(name)
    members = {row[0] for row in rows if row[level - 1] in set(labels)}
    return [_relabelled(row, name, level) if row[0] in members else row for row in rows]


def renamed(rows: Rows, label: str, name: str, level: int) -> Rows:
    """Give a label of a level another name.

    >>> renamed([("flu", "lung"), ("ulcer", "ulcer")], "lung", "lungs", 1)
    [('flu', 'lungs'), ('ulcer', 'ulcer')]
    """
    _there(rows, label, level)
    _named(name)
    return [(*row[:level], name, *row[level + 1 :]) if row[level] == label else row for row in rows]


def parted(rows: Rows, label: str, level: int) -> Rows:
    """Take a group apart: its members stand at this level as they do at the level below.

    >>> parted([("flu", "lung"), ("asthma", "lung")], "lung", 1)
    [('flu',), ('asthma',)]
    """
    _there(rows, label, level)
    apart = [(*row[:level], row[level - 1], *row[level + 1 :]) if row[level] == label else row for row in rows]
    return _without_repeats(apart)


def _with_level(rows: Rows, level: int) -> Rows:
    height = len(rows[0]) if rows else 0
    if not 1 <= level <= height:
        raise PolicyError(f"there is no level {level} to put labels at", fix=f"name a level from 1 to {height}")
    return [(*row, row[-1]) for row in rows] if level == height else rows


def _relabelled(row: tuple[str, ...], name: str, level: int) -> tuple[str, ...]:
    """Put a name at a level; labels above that only repeated what was there repeat the name instead."""
    before, above = row[level], list(row[level + 1 :])
    for i, label in enumerate(above):
        if label != before:
            break
        above[i] = name
    return (*row[:level], name, *above)


def _without_repeats(rows: Rows) -> Rows:
    """Leave out the highest levels that say no more than the one below."""
    while rows and len(rows[0]) > 1 and all(row[-1] == row[-2] for row in rows):
        rows = [row[:-1] for row in rows]
    return rows


def _there(rows: Rows, label: str, level: int) -> None:
    if not rows or not 1 <= level < len(rows[0]) or label not in {row[level] for row in rows}:
        raise PolicyError(f"there is no such label at level {level}", fix="choose a label of that level")


def _named(name: str) -> None:
    if not name.strip() or name == TOP:
        raise PolicyError("a group needs a name", fix=f"give it one that is not empty and not '{TOP}'")


@dataclass
class Branch:
    """A label of a level with the records and the labels under it."""

    label: str
    level: int
    count: int = 0
    children: dict[str, Branch] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, of many children the most frequent."""
        ranked = sorted(self.children.values(), key=lambda child: -child.count)
        shown = [child.to_dict() for child in ranked[:MOST_CHILDREN]]
        more = max(len(ranked) - MOST_CHILDREN, 0)
        return {"label": self.label, "level": self.level, "count": self.count, "children": shown, "more": more}


def tree_of(labels: Sequence[Sequence[str]], counts: Mapping[str, int]) -> Branch:
    """Return a hierarchy as a tree from the top down, with the records that hold each label.

    >>> tree_of([("flu", "lung", "*"), ("ulcer", "stomach", "*")], {"flu": 2}).children["lung"].count
    2
    """
    height = len(labels[0]) - 1 if len(labels) else 0
    top = Branch(TOP, height)
    for row in labels:
        place, records = top, counts.get(row[0], 0)
        place.count += records
        for level in range(height - 1, -1, -1):
            place = place.children.setdefault(row[level], Branch(row[level], level))
            place.count += records
    return top

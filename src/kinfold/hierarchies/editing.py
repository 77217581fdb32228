"""Editing of hierarchies, one step at a time: merge labels into a group, rename a label, split a group.

Rows are those of `Hierarchy.from_rows`: a value and its labels, increasingly general, without the top. In a flat
hierarchy every value is directly under the top, so a row has one label. A missing level is added above the highest one,
where each label first repeats: labels outside the new group stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kinfold.errors import PolicyError
from kinfold.hierarchies.hierarchy import TOP, Hierarchy

Rows: TypeAlias = list[tuple[str, ...]]  # of a value: its labels, increasingly general, without the top

MAX_LISTED_CHILDREN = 100  # of a label in the studio: a page shows no more


def get_label_rows(hierarchy: Hierarchy) -> Rows:
    """Return the rows of a hierarchy without the top.

    >>> get_label_rows(Hierarchy.from_rows([("flu", "lung"), ("ulcer", "stomach")]))
    [('flu', 'lung'), ('ulcer', 'stomach')]
    """
    return [tuple(row[:-1]) for row in hierarchy.labels.tolist()]


def merge_labels(rows: Rows, labels: Collection[str], name: str, level: int) -> Rows:
    """Group these labels of the level below under one name at this level.

    >>> merge_labels([("flu",), ("asthma",), ("ulcer",)], ["flu", "asthma"], "lung", 1)
    [('flu', 'lung'), ('asthma', 'lung'), ('ulcer', 'ulcer')]
    """
    height = len(rows[0]) if rows else 0
    if not 1 <= level <= height:
        raise PolicyError(f"there is no level {level} for a group", fix=f"choose a level from 1 to {height}")
    rows = [(*row, row[-1]) for row in rows] if level == height else rows
    if not (known := {row[level - 1] for row in rows}) >= set(labels) or not labels:
        what = f"{len(set(labels) - known) or 'none'} of the labels are not at level {level - 1}"
        raise PolicyError(what, fix="choose labels of one level")
    _require_name(name)
    members = {row[0] for row in rows if row[level - 1] in set(labels)}
    return [_relabel(row, name, level) if row[0] in members else row for row in rows]


def rename_label(rows: Rows, label: str, name: str, level: int) -> Rows:
    """Rename a label of a level.

    >>> rename_label([("flu", "lung"), ("ulcer", "ulcer")], "lung", "lungs", 1)
    [('flu', 'lungs'), ('ulcer', 'ulcer')]
    """
    _require_label(rows, label, level)
    _require_name(name)
    return [(*row[:level], name, *row[level + 1 :]) if row[level] == label else row for row in rows]


def split_group(rows: Rows, label: str, level: int) -> Rows:
    """Split a group: at this level its members have their labels of the level below.

    >>> split_group([("flu", "lung"), ("asthma", "lung")], "lung", 1)
    [('flu',), ('asthma',)]
    """
    _require_label(rows, label, level)
    rows = [(*row[:level], row[level - 1], *row[level + 1 :]) if row[level] == label else row for row in rows]
    while len(rows[0]) > 1 and all(row[-1] == row[-2] for row in rows):  # the highest level repeats the one below
        rows = [row[:-1] for row in rows]
    return rows


def _relabel(row: tuple[str, ...], name: str, level: int) -> tuple[str, ...]:
    """Set the label of a level; labels above it that repeat the old label repeat the new one."""
    old, above = row[level], list(row[level + 1 :])
    for i, label in enumerate(above):
        if label != old:
            break
        above[i] = name
    return (*row[:level], name, *above)


def _require_label(rows: Rows, label: str, level: int) -> None:
    if not rows or not 1 <= level < len(rows[0]) or label not in {row[level] for row in rows}:
        raise PolicyError(f"there is no such label at level {level}", fix="choose a label of that level")


def _require_name(name: str) -> None:
    if not name.strip() or name == TOP:
        raise PolicyError(f"the name of a group is empty or '{TOP}'", fix="choose another name")


@dataclass
class Branch:
    """A label of a level, the number of its records, and the labels under it."""

    label: str
    level: int
    count: int = 0
    children: dict[str, Branch] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the branch as JSON values, with the most frequent children."""
        ranked = sorted(self.children.values(), key=lambda child: -child.count)
        children = [child.to_dict() for child in ranked[:MAX_LISTED_CHILDREN]]
        more = max(len(ranked) - MAX_LISTED_CHILDREN, 0)
        return {"label": self.label, "level": self.level, "count": self.count, "children": children, "more": more}


def build_label_tree(labels: Sequence[Sequence[str]], counts: Mapping[str, int]) -> Branch:
    """Return a hierarchy as a tree from the top down, with the number of records of each label.

    >>> build_label_tree([("flu", "lung", "*"), ("ulcer", "stomach", "*")], {"flu": 2}).children["lung"].count
    2
    """
    height = len(labels[0]) - 1 if len(labels) else 0
    top = Branch(TOP, height)
    for row in labels:
        branch, records = top, counts.get(row[0], 0)
        branch.count += records
        for level in range(height - 1, -1, -1):
            branch = branch.children.setdefault(row[level], Branch(row[level], level))
            branch.count += records
    return top

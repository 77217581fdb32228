"""A hierarchy: for each value of a column, ever coarser statements about it, up to one that says nothing.

A row of labels a value: the value itself (level 0), its generalizations, and on top `*`, which all share: suppression
is the last step of every hierarchy. The height counts the steps (Sweeney 2002: Race has 2, ZIP has 3).

What must hold, and is checked when a hierarchy is made: every row has the same length, no value stands twice, and
values that share a label at one level share all labels above it: it is a tree. A label may stand at two levels only if
it covers the same values at both (a value that is not generalized at first simply repeats).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Problem, plural

TOP = "*"

Names: TypeAlias = NDArray[Any]
Ints: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Labels of each value at each level: `labels[value, level]`, in an order that keeps every subtree together."""

    labels: Names

    @classmethod
    def of(cls, rows: Iterable[Sequence[str]], where: str = "the hierarchy") -> Hierarchy:
        """Check the rows, put the top on where it is missing, and order the values by their subtrees.

        >>> Hierarchy.of([("02138", "0213*"), ("02139", "0213*")]).height
        2
        """
        table = [tuple(row) for row in rows]
        problems = _shape_problems(table, where)
        if problems:
            raise PolicyError(problems)
        labels = np.array(table, dtype=object)
        if len(set(labels[:, -1])) > 1 or labels[0, -1] != TOP:
            labels = np.column_stack([labels, np.full(len(labels), TOP, object)])
        problems = _tree_problems(labels, where)
        if problems:
            raise PolicyError(problems)
        return cls(labels[_subtree_order(labels)])

    @property
    def height(self) -> int:
        """How many steps lead from a value to the top."""
        return int(self.labels.shape[1]) - 1

    @property
    def values(self) -> Names:
        """The values that can be generalized (level 0)."""
        return self.labels[:, 0]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def paths(self) -> Ints:
        """The number of each value's label among the labels of its level, in order of appearance."""
        return np.column_stack([_numbered(self.labels[:, level]) for level in range(self.height + 1)])

    @cached_property
    def leaves(self) -> Ints:
        """How many values stand under each value's label at each level."""
        return np.column_stack([np.bincount(path)[path] for path in self.paths.T]).astype(np.int32)

    def index(self, values: Iterable[str]) -> Ints:
        """Row of each value, -1 where it is not there."""
        rows = {value: row for row, value in enumerate(self.values)}
        return np.array([rows.get(value, -1) for value in values], np.int32)


def _numbered(labels: Names) -> Ints:
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], np.int32)


def _subtree_order(labels: Names) -> NDArray[np.intp]:
    # Numbered by first appearance, so that the order of the rows as given is kept within and between subtrees.
    keys = [_numbered(labels[:, level]) for level in range(labels.shape[1])]
    return np.lexsort(keys)


def _shape_problems(table: list[tuple[str, ...]], where: str) -> list[Problem]:
    if not any(table):
        return [Problem(f"{where} is empty", "give at least one value with its generalizations")]
    problems = []
    depth = max(len(row) for row in table)
    if ragged := sum(len(row) != depth for row in table):
        problems.append(
            Problem(f"{where}: {ragged} of {len(table)} rows have fewer than {depth} levels", "fill them up")
        )
    rows = Counter(row[0] if row else "" for row in table)
    if twice := tuple(sorted(value for value, count in rows.items() if count > 1)):
        problems.append(
            Problem(
                f"{where}: {plural(len(twice), 'value stands', 'values stand')} in more than one row",
                "keep one row a value",
                twice,
            )
        )
    return problems


def _tree_problems(labels: Names, where: str) -> list[Problem]:
    problems = []
    for level in range(1, labels.shape[1] - 1):
        parents: dict[str, set[str]] = {}
        for label, parent in zip(labels[:, level], labels[:, level + 1], strict=True):
            parents.setdefault(label, set()).add(parent)
        if torn := tuple(sorted(label for label, above in parents.items() if len(above) > 1)):
            have = "has" if len(torn) == 1 else "have"
            what = f"{where}: {plural(len(torn), 'label')} of level {level} {have} more than one parent"
            problems.append(Problem(what, "give each label one parent", torn))
    return problems or _level_problems(labels, where)


def _level_problems(labels: Names, where: str) -> list[Problem]:
    cover: dict[str, frozenset[int]] = {}
    clashes: set[str] = set()
    for level in range(labels.shape[1]):
        under: dict[str, list[int]] = {}
        for row, label in enumerate(labels[:, level]):
            under.setdefault(label, []).append(row)
        for label, rows in under.items():
            if cover.setdefault(label, frozenset(rows)) != frozenset(rows):
                clashes.add(label)
    if not clashes:
        return []
    stand, mean = ("label stands", "means") if len(clashes) == 1 else ("labels stand", "mean")
    what = f"{where}: {len(clashes):,} {stand} at two levels and {mean} different things there"
    return [Problem(what, "name each group of values differently", tuple(sorted(clashes)))]

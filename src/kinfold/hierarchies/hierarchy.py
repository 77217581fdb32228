"""A hierarchy: for each value of a column, increasingly general labels, up to `*`.

Each value has a row of labels: the value itself (level 0), its generalizations, and `*` at the top, which all values
share. Suppression is therefore the last step of every hierarchy. The height is the number of steps (Sweeney 2002: Race
has 2, ZIP has 3).

A new hierarchy is checked: every row has the same length, no value occurs twice, and values that share a label at one
level share all labels above it, so it is a tree. A label may occur at two levels only if it covers the same values at
both (a value that is not generalized at first repeats).

ARX's hierarchy files have no header and `;` between labels: the value first, then increasingly general, `*` last.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Problem, plural, require_regular_file

TOP = "*"

LabelArray: TypeAlias = NDArray[Any]
Ints: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The label of each value at each level, `labels[value, level]`; values of one subtree are adjacent."""

    labels: LabelArray

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[str]], where: str = "the hierarchy") -> Hierarchy:
        """Check the rows, add the top if it is missing, and order the values by subtree.

        >>> Hierarchy.from_rows([("02138", "0213*"), ("02139", "0213*")]).height
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
        # Labels are numbered by first appearance, which keeps the given order of rows within and between subtrees.
        return cls(labels[np.lexsort([_number_labels(level) for level in labels.T])])

    @property
    def height(self) -> int:
        """The number of steps from a value to the top."""
        return int(self.labels.shape[1]) - 1

    @property
    def values(self) -> LabelArray:
        """The values that can be generalized (level 0)."""
        return self.labels[:, 0]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def paths(self) -> Ints:
        """For each value and level, the number of its label within the level, in order of appearance."""
        return np.column_stack([_number_labels(level) for level in self.labels.T])

    @cached_property
    def leaves(self) -> Ints:
        """For each value and level, the number of values under its label."""
        return np.column_stack([np.bincount(path)[path] for path in self.paths.T]).astype(np.int32)

    def index(self, values: Iterable[str]) -> Ints:
        """Return the row of each value, -1 if it is absent."""
        rows = {value: row for row, value in enumerate(self.values)}
        return np.array([rows.get(value, -1) for value in values], np.int32)


def _number_labels(labels: LabelArray) -> Ints:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int32)


def _shape_problems(table: list[tuple[str, ...]], where: str) -> list[Problem]:
    if not any(table):
        return [Problem(f"{where} is empty", "give at least one value with its generalizations")]
    problems = []
    depth = max(len(row) for row in table)
    if ragged := sum(len(row) != depth for row in table):
        what = f"{where}: {ragged} of {len(table)} rows have fewer than {depth} levels"
        problems.append(Problem(what, "add their labels"))
    rows = Counter(row[0] if row else "" for row in table)
    if duplicates := tuple(sorted(value for value, count in rows.items() if count > 1)):
        what = f"{where}: {plural(len(duplicates), 'value is', 'values are')} in more than one row"
        problems.append(Problem(what, "keep one row for each value", duplicates))
    return problems


def _tree_problems(labels: LabelArray, where: str) -> list[Problem]:
    problems = []
    for level in range(1, labels.shape[1] - 1):
        parents: dict[str, set[str]] = {}
        for label, parent in zip(labels[:, level], labels[:, level + 1], strict=True):
            parents.setdefault(label, set()).add(parent)
        if split := tuple(sorted(label for label, names in parents.items() if len(names) > 1)):
            have = "has" if len(split) == 1 else "have"
            what = f"{where}: {plural(len(split), 'label')} of level {level} {have} more than one parent"
            problems.append(Problem(what, "give each label one parent", split))
    return problems or _level_problems(labels, where)


def _level_problems(labels: LabelArray, where: str) -> list[Problem]:
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
    occur = "label occurs" if len(clashes) == 1 else "labels occur"
    what = f"{where}: {len(clashes):,} {occur} at two levels with different values under them"
    return [Problem(what, "give each group of values its own name", tuple(sorted(clashes)))]


def read_arx(path: Path) -> Hierarchy:
    """Read a hierarchy file of ARX; the separator is `;`, or `,` if the first line has no `;`."""
    require_regular_file(path, DataError(f"hierarchy file '{path}' is not a regular file", fix="name a CSV file"))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            separator = ";" if ";" in first or "," not in first else ","
            rows = [row for row in csv.reader(file, delimiter=separator) if row]
    except OSError as error:
        what = f"hierarchy file '{path}': {error.strerror}"
        raise DataError(what, fix="check the path and its permissions") from error
    except (ValueError, csv.Error) as error:
        raise DataError(f"hierarchy file '{path}' is not CSV text in UTF-8", fix="save it as UTF-8") from error
    return Hierarchy.from_rows(rows, f"hierarchy file '{path.name}'")


def write_arx(hierarchy: Hierarchy, path: Path) -> None:
    """Write a hierarchy file of ARX."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows(hierarchy.labels.tolist())

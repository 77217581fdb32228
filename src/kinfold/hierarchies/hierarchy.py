"""A hierarchy: for each value of a column, increasingly general labels, up to `*`.

Each value has a row of labels: the value itself (level 0), its generalizations, and `*` at the top, which all values
share. Suppression is therefore the last step of every hierarchy. The height is the number of steps (Sweeney 2002: Race
has 2, ZIP has 3).

A new hierarchy is checked: every row has the same length, no value occurs twice, and values that share a label at one
level share all labels above it, so it is a tree. A label may occur at two levels only if it covers the same values at
both (a value that is not generalized at first repeats).

ARX's hierarchy files have no header and `;` between labels: the value first, then increasingly general, `*` last.

A builder takes the values of a column, as text, and the keys of the policy, and returns a hierarchy: from masks,
intervals, calendar units, rows of labels, or a tree.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import count, pairwise
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


MAX_DIGITS = 1000  # of a number in an interval: more would fill the memory as a fraction
EXACT_CONTEXT = Context(prec=2 * MAX_DIGITS)


def build_from_mask(
    values: Iterable[str], characters: int, where: str = "the hierarchy", sparse: Iterable[str] = ()
) -> Hierarchy:
    """Replace the last characters by stars, one more at each level.

    `sparse` are prefixes of areas with too few people (HIPAA's ZIP codes): a level that would show no more than such a
    prefix shows zeros instead, so that all these areas are one.

    >>> build_from_mask(["02138", "02139"], 2).labels.tolist()
    [['02138', '0213*', '021**', '*'], ['02139', '0213*', '021**', '*']]
    >>> build_from_mask(["03601", "05901"], 4, sparse=["036", "059"]).labels[1].tolist()
    ['05901', '0590*', '000**', '00***', '0****', '*']
    """
    if characters < 1:
        raise PolicyError(f"{where}: mask is {characters}", fix="mask at least one character")
    ordered = sorted(set(values))
    longest = max(map(len, ordered), default=0)
    steps = range(1, min(characters, longest) + 1)
    prefixes = tuple(sparse)
    rows = [[value, *(_mask_value(value, hidden, longest, prefixes) for hidden in steps)] for value in ordered]
    return Hierarchy.from_rows(rows, where)


def _mask_value(value: str, hidden: int, longest: int, sparse: tuple[str, ...]) -> str:
    """Hide the last characters; a short value shows its first one until the longest value shows none."""
    if hidden >= longest:
        return TOP
    if any(value.startswith(prefix) and len(value) - hidden <= len(prefix) for prefix in sparse):
        value = "0" * len(value)
    visible = max(len(value) - hidden, 1)
    return value[:visible] + TOP * (len(value) - visible)


def build_from_intervals(
    values: Iterable[str],
    widths: Sequence[float],
    origin: float = 0.0,
    where: str = "the hierarchy",
    ends: tuple[float | None, float | None] = (None, None),
) -> Hierarchy:
    """Assign numbers to intervals that start at `origin`; the width of each level is a multiple of the one below.

    `ends` are the bounds of the open intervals at every level: below the first number, and from the second up. The
    intervals between them end there.

    >>> build_from_intervals(["21", "24", "38"], [5, 20]).labels[0].tolist()
    ['21', '20-24', '20-39', '*']
    >>> build_from_intervals(["0.5"], [0.25]).labels[0].tolist()
    ['0.5', '[0.5, 0.75)', '*']
    >>> build_from_intervals(["84", "85", "97"], [5, 20], ends=(None, 85)).labels.tolist()
    [['84', '80-84', '80-84', '*'], ['85', '85+', '85+', '*'], ['97', '85+', '85+', '*']]
    >>> build_from_intervals(["12", "18", "21"], [10], ends=(18, None)).labels.tolist()
    [['12', 'under 18', '*'], ['18', '18-19', '*'], ['21', '20-29', '*']]
    """
    if not widths or any(width <= 0 for width in widths):
        what = f"{where}: the width of an interval is not above 0"
        raise PolicyError(what, fix="set widths above 0, for example [5, 10, 20]")
    exact = [Fraction(str(width)) for width in widths]  # 0.3 is exactly three times 0.1
    if any((wide / small).denominator != 1 for small, wide in pairwise(exact)):
        raise PolicyError(f"{where}: the intervals do not nest", fix="make each width a multiple of the previous one")
    numbers = {value: _parse_exact(value, where) - Fraction(str(origin)) for value in values}
    ordered = sorted(numbers, key=lambda value: (numbers[value], value))
    start = Fraction(str(origin))
    bottom, top = (None if end is None else Fraction(str(end)) for end in ends)
    if bottom is not None and top is not None and bottom >= top:
        raise PolicyError(f"{where}: the open intervals overlap", fix="set bottom below top")
    whole = all(n.denominator == 1 for n in (*numbers.values(), *exact, start, top or start, bottom or start))

    def get_label(number: Fraction, width: Fraction) -> str:
        low = start + number // width * width
        if top is not None and start + number >= top:
            return f"{_format_bound(top)}+"
        if bottom is not None and start + number < bottom:
            return f"under {_format_bound(bottom)}"
        high = low + width if top is None else min(low + width, top)
        low = low if bottom is None else max(low, bottom)
        if not whole:
            return f"[{_format_bound(low)}, {_format_bound(high)})"
        first, last = int(low), int(high) - 1
        return str(first) if first == last else f"{first}-{last}"

    rows = [[value, *(get_label(numbers[value], width) for width in exact)] for value in ordered]
    return Hierarchy.from_rows(rows, where)


def _parse_exact(value: str, where: str) -> Fraction:
    exponent = value.lower().partition("e")[2].lstrip("+-")  # 1e-999999999 as a fraction would fill the memory
    if len(value) > MAX_DIGITS or (exponent.isdigit() and int(exponent) > MAX_DIGITS):
        what = f"{where}: a number has more than {MAX_DIGITS:,} digits"
        raise DataError(what, fix="correct or empty that cell, or remove the intervals")
    return Fraction(value)


def _format_bound(end: Fraction) -> str:
    """Write a bound, which is a finite decimal, with as many digits as it needs to be exact.

    >>> [_format_bound(Fraction(bound)) for bound in ("1/4", "-1234567890123.25", 10**15)]
    ['0.25', '-1234567890123.25', '1e+15']
    """
    short = f"{float(end):.12g}"
    if Fraction(short) == end:
        return short
    decimals = next(n for n in count() if (end * 10**n).denominator == 1)
    return f"{Decimal(int(end * 10**decimals)).scaleb(-decimals, EXACT_CONTEXT):f}"


def _name_years(year: int, width: int) -> str:
    first = year // width * width
    return f"{first:04}-{first + width - 1:04}"


CALENDAR_UNITS: dict[str, Callable[[date], str]] = {  # the label of a day in each, the finest first
    "day": lambda day: day.isoformat(),
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
    "5 years": lambda day: _name_years(day.year, 5),
    "decade": lambda day: f"{day.year // 10 * 10:04}s",
    "20 years": lambda day: _name_years(day.year, 20),
    "40 years": lambda day: _name_years(day.year, 40),
}


def build_from_dates(
    values: Iterable[str],
    units: Sequence[str],
    where: str = "the hierarchy",
    read: Callable[[str], datetime] = datetime.fromisoformat,
) -> Hierarchy:
    """Coarsen dates by the calendar: day, month, quarter, year, 5 years, decade, 20 years, 40 years.

    >>> build_from_dates(["2024-03-09"], ["quarter", "year", "5 years", "decade", "20 years"]).labels[0].tolist()
    ['2024-03-09', '2024-Q1', '2024', '2020-2024', '2020s', '2020-2039', '*']
    """
    known = [[*CALENDAR_UNITS].index(unit) for unit in units if unit in CALENDAR_UNITS]
    if len(known) < len(units) or not known or known != sorted(set(known)):
        what = f"{where}: the date units are unknown or in the wrong order"
        raise PolicyError(what, fix=f"name some of {', '.join(CALENDAR_UNITS)}, in this order")
    days = {value: read(value).date() for value in sorted(set(values))}
    coarsen = [CALENDAR_UNITS[unit] for unit in units]
    rows = [[value, *(label(day) for label in coarsen)] for value, day in days.items()]
    return Hierarchy.from_rows(rows, where)


def build_from_rows(rows: Iterable[Sequence[str]], where: str = "the hierarchy") -> Hierarchy:
    """Take the labels as they are: one row for each value, the value first, then increasingly general.

    >>> build_from_rows([["flu", "lung"], ["gastritis", "stomach"]]).height
    2
    """
    return Hierarchy.from_rows([[str(label) for label in row] for row in rows], where)


def build_from_tree(tree: Mapping[str, Any], where: str = "the hierarchy") -> Hierarchy:
    """Take a tree of names with lists of values; a value with fewer levels than others repeats up to its parent.

    >>> build_from_tree({"lung": ["flu", "asthma"], "stomach": {"ulcers": ["gastric"]}}).labels[0].tolist()
    ['flu', 'flu', 'lung', '*']
    """
    try:
        branches = list(_iterate_branches(tree, ()))
    except RecursionError:
        raise PolicyError(f"{where} is nested too deeply", fix="reduce the nesting") from None
    depth = max((len(branch) for branch in branches), default=0)
    return Hierarchy.from_rows([[branch[0]] * (depth - len(branch)) + list(branch) for branch in branches], where)


def _iterate_branches(node: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(node, Mapping):
        for name, child in node.items():
            yield from _iterate_branches(child, (str(name), *above))
    else:
        for value in node if isinstance(node, Sequence) and not isinstance(node, str) else [node]:
            yield (str(value), *above)

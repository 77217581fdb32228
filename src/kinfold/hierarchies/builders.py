"""Builders of hierarchies: from masks, intervals, calendar units, rows of labels, or a tree.

A builder takes the values of the column, as text, and the keys of the policy, and returns a `Hierarchy`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from fractions import Fraction
from itertools import count, pairwise
from typing import Any

from kinfold.errors import DataError, PolicyError
from kinfold.hierarchies.hierarchy import TOP, Hierarchy

MAX_DIGITS = 1000  # of a number in an interval: more would fill the memory as a fraction
EXACT_CONTEXT = Context(prec=2 * MAX_DIGITS)
CALENDAR_UNITS = ("day", "month", "quarter", "year", "decade")


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
    intervals = _Intervals(start, bottom, top, whole)
    rows = [[value, *(intervals.get_label(numbers[value], width) for width in exact)] for value in ordered]
    return Hierarchy.from_rows(rows, where)


def _parse_exact(value: str, where: str) -> Fraction:
    exponent = value.lower().partition("e")[2].lstrip("+-")  # 1e-999999999 as a fraction would fill the memory
    if len(value) > MAX_DIGITS or (exponent.isdigit() and int(exponent) > MAX_DIGITS):
        what = f"{where}: a number has more than {MAX_DIGITS:,} digits"
        raise DataError(what, fix="correct or empty that cell, or remove the intervals")
    return Fraction(value)


@dataclass(frozen=True)
class _Intervals:
    """The origin of intervals, the bounds of the open ones, and whether all bounds are whole numbers."""

    origin: Fraction
    bottom: Fraction | None
    top: Fraction | None
    whole: bool

    def get_label(self, number: Fraction, width: Fraction) -> str:
        """Return the label of the interval of a number, which is relative to the origin."""
        low = self.origin + number // width * width
        if self.top is not None and self.origin + number >= self.top:
            return f"{_format_bound(self.top)}+"
        if self.bottom is not None and self.origin + number < self.bottom:
            return f"under {_format_bound(self.bottom)}"
        high = low + width if self.top is None else min(low + width, self.top)
        low = low if self.bottom is None else max(low, self.bottom)
        if not self.whole:
            return f"[{_format_bound(low)}, {_format_bound(high)})"
        first, last = int(low), int(high) - 1
        return str(first) if first == last else f"{first}-{last}"


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


def build_from_dates(values: Iterable[str], units: Sequence[str], where: str = "the hierarchy") -> Hierarchy:
    """Coarsen ISO dates by the calendar: day, month, quarter, year, decade.

    >>> build_from_dates(["2024-03-09"], ["month", "quarter", "year", "decade"]).labels[0].tolist()
    ['2024-03-09', '2024-03', '2024-Q1', '2024', '2020s', '*']
    """
    known = [CALENDAR_UNITS.index(unit) for unit in units if unit in CALENDAR_UNITS]
    if len(known) < len(units) or not known or known != sorted(set(known)):
        what = f"{where}: the date units are unknown or in the wrong order"
        raise PolicyError(what, fix=f"name some of {', '.join(CALENDAR_UNITS)}, in this order")
    return Hierarchy.from_rows(
        [[value, *(_coarsen_date(value, unit) for unit in units)] for value in sorted(set(values))], where
    )


def _coarsen_date(value: str, unit: str) -> str:
    day = datetime.fromisoformat(value).date()
    return {
        "day": day.isoformat(),
        "month": f"{day.year:04}-{day.month:02}",
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04}",
        "decade": f"{day.year // 10 * 10:04}s",
    }[unit]


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

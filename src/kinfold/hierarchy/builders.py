"""Builders of hierarchies: by masking characters, by intervals, by calendar, by rows of labels, by a tree.

A builder takes the values that the column holds, as text, and what the policy says, and returns a `Hierarchy`.
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
from kinfold.hierarchy.hierarchy import TOP, Hierarchy

MOST_DIGITS = 1000  # of a number that is put into intervals
EVERY_DIGIT = Context(prec=2 * MOST_DIGITS)
CALENDAR = ("day", "month", "quarter", "year", "decade")


def by_mask(
    values: Iterable[str], characters: int, where: str = "the hierarchy", sparse: Iterable[str] = ()
) -> Hierarchy:
    """Replace the last characters by stars, one more at each level.

    `sparse` are beginnings that stand for too few people to be shown: where no more than that is left of a value, zeros
    are, so that all such areas are one.

    >>> by_mask(["02138", "02139"], 2).labels.tolist()
    [['02138', '0213*', '021**', '*'], ['02139', '0213*', '021**', '*']]
    >>> by_mask(["03601", "05901"], 4, sparse=["036", "059"]).labels[1].tolist()
    ['05901', '0590*', '000**', '00***', '0****', '*']
    """
    if characters < 1:
        raise PolicyError(f"{where}: mask is {characters}", fix="mask at least one character")
    ordered = sorted(set(values))
    longest = max(map(len, ordered), default=0)
    steps = range(1, min(characters, longest) + 1)
    few = tuple(sparse)
    rows = [
        [value, *(_masked(_or_zeros(value, few, hidden), hidden, longest) for hidden in steps)] for value in ordered
    ]
    return Hierarchy.of(rows, where)


def _or_zeros(value: str, sparse: tuple[str, ...], hidden: int) -> str:
    """Return a value, or zeros where no more than a sparse beginning of it would be shown."""
    few = any(value.startswith(part) and len(value) - hidden <= len(part) for part in sparse)
    return "0" * len(value) if few else value


def _masked(value: str, hidden: int, longest: int) -> str:
    """Hide the last characters; a short value shows its first one until nothing is shown of any."""
    if hidden >= longest:
        return TOP
    shown = max(len(value) - hidden, 1)
    return value[:shown] + TOP * (len(value) - shown)


def by_intervals(
    values: Iterable[str],
    widths: Sequence[float],
    origin: float = 0.0,
    where: str = "the hierarchy",
    ends: tuple[float | None, float | None] = (None, None),
) -> Hierarchy:
    """Put numbers into intervals that start at `origin`, each level's width a multiple of the one below.

    `ends` are where the open intervals lie, at every level: all below the first number, all from the second up. Those
    between them end there.

    >>> by_intervals(["21", "24", "38"], [5, 20]).labels[0].tolist()
    ['21', '20-24', '20-39', '*']
    >>> by_intervals(["0.5"], [0.25]).labels[0].tolist()
    ['0.5', '[0.5, 0.75)', '*']
    >>> by_intervals(["84", "85", "97"], [5, 20], ends=(None, 85)).labels.tolist()
    [['84', '80-84', '80-84', '*'], ['85', '85+', '85+', '*'], ['97', '85+', '85+', '*']]
    >>> by_intervals(["12", "18", "21"], [10], ends=(18, None)).labels.tolist()
    [['12', 'under 18', '*'], ['18', '18-19', '*'], ['21', '20-29', '*']]
    """
    if not widths or any(width <= 0 for width in widths):
        raise PolicyError(f"{where}: an interval has no width", fix="give widths above 0, for example [5, 10, 20]")
    exact = [Fraction(str(width)) for width in widths]  # 0.3 is three times 0.1, and no less
    if any((wide / small).denominator != 1 for small, wide in pairwise(exact)):
        raise PolicyError(f"{where}: the intervals do not nest", fix="make each width a multiple of the one before")
    numbers = {value: _exactly(value, where) - Fraction(str(origin)) for value in values}
    ordered = sorted(numbers, key=lambda value: (numbers[value], value))
    start = Fraction(str(origin))
    bottom, top = (None if end is None else Fraction(str(end)) for end in ends)
    if bottom is not None and top is not None and bottom >= top:
        raise PolicyError(f"{where}: the open intervals meet", fix="let bottom be less than top")
    whole = all(n.denominator == 1 for n in (*numbers.values(), *exact, start, top or start, bottom or start))
    bands = _Bands(start, bottom, top, whole)
    return Hierarchy.of([[value, *(bands.of(numbers[value], width) for width in exact)] for value in ordered], where)


def _exactly(value: str, where: str) -> Fraction:
    exponent = value.lower().partition("e")[2].lstrip("+-")  # 1e-999999999 as a fraction fills the memory
    if len(value) > MOST_DIGITS or (exponent.isdigit() and int(exponent) > MOST_DIGITS):
        what = f"{where}: a number has more than {MOST_DIGITS:,} digits"
        raise DataError(what, fix="correct or empty that cell, or leave out the intervals")
    return Fraction(value)


@dataclass(frozen=True)
class _Bands:
    """Where intervals start, where the open ones lie, and whether they are of whole numbers."""

    origin: Fraction
    bottom: Fraction | None
    top: Fraction | None
    whole: bool

    def of(self, number: Fraction, width: Fraction) -> str:
        """Return the interval of a number, counted from the origin."""
        low = self.origin + number // width * width
        if self.top is not None and self.origin + number >= self.top:
            return f"{_written(self.top)}+"
        if self.bottom is not None and self.origin + number < self.bottom:
            return f"under {_written(self.bottom)}"
        high = low + width if self.top is None else min(low + width, self.top)
        low = low if self.bottom is None else max(low, self.bottom)
        if not self.whole:
            return f"[{_written(low)}, {_written(high)})"
        first, last = int(low), int(high) - 1
        return str(first) if first == last else f"{first}-{last}"


def _written(end: Fraction) -> str:
    """Write an end of an interval with as many digits as it takes to be exact; it is a finite decimal.

    >>> _written(Fraction(1, 4)), _written(Fraction("-1234567890123.25")), _written(Fraction(10**15))
    ('0.25', '-1234567890123.25', '1e+15')
    """
    short = f"{float(end):.12g}"
    if Fraction(short) == end:
        return short
    decimals = next(n for n in count() if (end * 10**n).denominator == 1)
    return f"{Decimal(int(end * 10**decimals)).scaleb(-decimals, EVERY_DIGIT):f}"


def by_dates(values: Iterable[str], units: Sequence[str], where: str = "the hierarchy") -> Hierarchy:
    """Coarsen ISO dates by the calendar: day, month, quarter, year, decade.

    >>> by_dates(["2024-03-09"], ["month", "quarter", "year", "decade"]).labels[0].tolist()
    ['2024-03-09', '2024-03', '2024-Q1', '2024', '2020s', '*']
    """
    known = [CALENDAR.index(unit) for unit in units if unit in CALENDAR]
    if len(known) < len(units) or not known or known != sorted(set(known)):
        raise PolicyError(
            f"{where}: dates are coarsened by other units", fix=f"name some of {', '.join(CALENDAR)}, in this order"
        )
    return Hierarchy.of([[value, *(_calendar(value, unit) for unit in units)] for value in sorted(set(values))], where)


def _calendar(value: str, unit: str) -> str:
    day = datetime.fromisoformat(value).date()
    return {
        "day": day.isoformat(),
        "month": f"{day.year:04}-{day.month:02}",
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04}",
        "decade": f"{day.year // 10 * 10:04}s",
    }[unit]


def by_rows(rows: Iterable[Sequence[str]], where: str = "the hierarchy") -> Hierarchy:
    """Take the labels as given: a row a value, the value first, then ever coarser.

    >>> by_rows([["flu", "lung"], ["gastritis", "stomach"]]).height
    2
    """
    return Hierarchy.of([[str(label) for label in row] for row in rows], where)


def by_tree(tree: Mapping[str, Any], where: str = "the hierarchy") -> Hierarchy:
    """Take a tree of names, its values in lists; a value that sits higher than others repeats up to its parent's level.

    >>> by_tree({"lung": ["flu", "asthma"], "stomach": {"ulcers": ["gastric"]}}).labels[0].tolist()
    ['flu', 'flu', 'lung', '*']
    """
    try:
        branches = list(_branches(tree, ()))
    except RecursionError:
        raise PolicyError(f"{where} nests too deeply", fix="write fewer levels into one another") from None
    depth = max((len(branch) for branch in branches), default=0)
    return Hierarchy.of([[branch[0]] * (depth - len(branch)) + list(branch) for branch in branches], where)


def _branches(node: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(node, Mapping):
        for name, child in node.items():
            yield from _branches(child, (str(name), *above))
    else:
        for value in node if isinstance(node, Sequence) and not isinstance(node, str) else [node]:
            yield (str(value), *above)

"""Builders of hierarchies: by masking characters, by intervals, by calendar, by rows of labels, by a tree.

A builder takes the values that the column holds, as text, and what the policy says, and returns a `Hierarchy`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from kinfold.errors import PolicyError
from kinfold.hierarchy.hierarchy import TOP, Hierarchy

CALENDAR = ("day", "month", "quarter", "year", "decade")


def by_mask(values: Iterable[str], characters: int, where: str = "the hierarchy") -> Hierarchy:
    """Replace the last characters by stars, one more at each level.

    >>> by_mask(["02138", "02139"], 2).labels.tolist()
    [['02138', '0213*', '021**', '*'], ['02139', '0213*', '021**', '*']]
    """
    if characters < 1:
        raise PolicyError(f"{where}: mask is {characters}", fix="mask at least one character")
    rows = [[value, *(_masked(value, hidden) for hidden in range(1, characters + 1))] for value in sorted(set(values))]
    return Hierarchy.of(rows, where)


def _masked(value: str, hidden: int) -> str:
    return TOP if hidden >= len(value) else value[:-hidden] + TOP * hidden


def by_intervals(
    values: Iterable[str], widths: Sequence[float], origin: float = 0.0, where: str = "the hierarchy"
) -> Hierarchy:
    """Put numbers into intervals that start at `origin`, each level's width a multiple of the one below.

    >>> by_intervals(["21", "24", "38"], [5, 20]).labels[0].tolist()
    ['21', '20-24', '20-39', '*']
    >>> by_intervals(["0.5"], [0.25]).labels[0].tolist()
    ['0.5', '[0.5, 0.75)', '*']
    """
    if not widths or any(width <= 0 for width in widths):
        raise PolicyError(f"{where}: an interval has no width", fix="give widths above 0, for example [5, 10, 20]")
    if any(not math.isclose(wide / small, round(wide / small)) for small, wide in pairwise(widths)):
        raise PolicyError(f"{where}: the intervals do not nest", fix="make each width a multiple of the one before")
    ordered = sorted(set(values), key=float)
    whole = all(_whole(value) for value in ordered) and all(_whole(number) for number in (*widths, origin))
    return Hierarchy.of(
        [[value, *(_interval(value, width, origin, whole) for width in widths)] for value in ordered], where
    )


def _whole(number: str | float) -> bool:
    return float(number).is_integer()


def _interval(value: str, width: float, origin: float, whole: bool) -> str:
    low = origin + math.floor((float(value) - origin) / width) * width
    if not whole:
        return f"[{low:.12g}, {low + width:.12g})"
    first, last = round(low), round(low + width) - 1
    return str(first) if first == last else f"{first}-{last}"


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
    day = date.fromisoformat(value[:10])
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
    branches = list(_branches(tree, ()))
    depth = max((len(branch) for branch in branches), default=0)
    return Hierarchy.of([[branch[0]] * (depth - len(branch)) + list(branch) for branch in branches], where)


def _branches(node: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(node, Mapping):
        for name, child in node.items():
            yield from _branches(child, (str(name), *above))
    else:
        for value in node if isinstance(node, Sequence) and not isinstance(node, str) else [node]:
            yield (str(value), *above)

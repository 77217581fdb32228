"""From the sizes of the classes to the values of their chart: one bar a size, or a range of sizes where they are many.

Up to 13 sizes in a row get a bar each. Beyond, sizes are put together: in steps of equal width while the largest class
is no more than twenty times the smallest, else in ranges that double and more (1, 2, 5, 10, 20, 50, ...), the last one
up to the largest class. A bar never holds sizes on both sides of k.
"""

from __future__ import annotations

from collections.abc import Sequence

from kinfold.release.report.chart import Picture
from kinfold.release.report.wording import count, plural

MOST_BARS = 13  # and one more where k falls inside a bar
FEW_BARS = 9  # so many have room for numbers of four digits
STEPS = [digit * 10**power for power in range(19) for digit in (1, 2, 5)]


def picture(sizes: Sequence[tuple[int, int]], k: int) -> Picture | None:
    """Return the chart of (size, number of classes); bars of sizes below `k` stand out."""
    if not sizes:
        return None
    bars = ranges(sizes, k)
    exact = 10_000 if len(bars) <= FEW_BARS else 1000
    values = [
        {"bar": bar, "label": _label(low, high), "classes": n, "shown": _short(n, exact) if n else "", "kept": low >= k}
        for bar, (low, high, n) in enumerate(bars)
    ]
    smallest, largest = min(size for size, _ in sizes), max(size for size, _ in sizes)
    total = plural(sum(classes for _, classes in sizes), "class", "classes")
    description = f"{total}, the smallest of {plural(smallest, 'record')}, the largest of {plural(largest, 'record')}."
    lines = 2 if any("\n" in str(row["label"]) for row in values) else 1
    settings = {"encoding.x.axis.titlePadding": 10 + 13 * lines, "padding.bottom": 30 + 13 * lines}
    return Picture("class_sizes", values, "How many classes there are of each size", description, settings)


def ranges(sizes: Sequence[tuple[int, int]], k: int) -> list[tuple[int, int, int]]:
    """Return (from, to, number of classes) in bars without a gap between them.

    >>> ranges([(5, 90), (7, 3)], 5)
    [(5, 5, 90), (6, 6, 0), (7, 7, 3)]
    >>> ranges([(2, 8), (6, 3), (4000, 1)], 3)[:2]
    [(2, 2, 8), (3, 4, 0)]
    """
    first, last = min(size for size, _ in sizes), max(size for size, _ in sizes)
    inner = {start for start in (*_starts(first, last), k) if first < start <= last}
    starts = [first, *sorted(inner)]
    ends = [*(start - 1 for start in starts[1:]), last]
    return [
        (low, high, sum(classes for size, classes in sizes if low <= size <= high))
        for low, high in zip(starts, ends, strict=True)
    ]


def _starts(first: int, last: int) -> Sequence[int]:
    most = MOST_BARS if last < 1000 else FEW_BARS
    if last - first < most:
        return range(first, last + 1)
    if last <= 20 * max(first, 1):
        width = next(step for step in STEPS if (last - first) / step <= most - 2)
        return range(first - first % width, last + 1, width)
    return [step for step in STEPS if first < step <= last][: MOST_BARS - 1]


def _label(low: int, high: int) -> str:
    """Return one size, or the two ends of a range on two lines: there are many of them beside each other."""
    if low == high:
        return count(low)
    exact = 1000 if high - low > 0.04 * high else high + 1  # in short only where the ends can still be told apart
    return f"{_short(low, exact)}\N{EN DASH}\n{_short(high, exact)}"


def _short(number: int, exact: int) -> str:
    """Return a number short enough for a narrow bar: in full below `exact`, else with three digits.

    >>> [_short(n, 10_000) for n in (999, 1234, 56_789, 1_500_000)], _short(1999, 1000)
    (['999', '1,234', '56.8k', '1.5M'], '2k')
    """
    if number < exact:
        return count(number)
    for unit, letter in ((10**9, "B"), (10**6, "M")):
        if number >= unit:
            return f"{_three_digits(number / unit)}{letter}"
    return f"{_three_digits(number / 1000)}k"


def _three_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}".removesuffix(".0")

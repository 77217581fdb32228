"""From the sizes of the classes to the values of their chart: one bar a size, or a range of sizes where they are many.

Up to 14 sizes in a row get a bar each. Beyond, sizes are put together: in steps of equal width while the largest class
is no more than twenty times the smallest, else in ranges that double and more (1, 2, 5, 10, 20, 50, ...).
"""

from __future__ import annotations

from collections.abc import Sequence

from kinfold.report.chart import Picture
from kinfold.report.wording import count, plural

MOST_BARS = 14
STEPS = [digit * 10**power for power in range(19) for digit in (1, 2, 5)]


def picture(sizes: Sequence[tuple[int, int]], k: int) -> Picture | None:
    """Return the chart of (size, number of classes); bars of sizes below `k` stand out."""
    if not sizes:
        return None
    values = [
        {"label": _label(low, high), "classes": classes, "shown": _short(classes) if classes else "", "kept": low >= k}
        for low, high, classes in ranges(sizes)
    ]
    smallest, largest = min(size for size, _ in sizes), max(size for size, _ in sizes)
    total = plural(sum(classes for _, classes in sizes), "class", "classes")
    description = f"{total}, the smallest of {plural(smallest, 'record')}, the largest of {plural(largest, 'record')}."
    lines = 2 if any("\n" in str(row["label"]) for row in values) else 1
    settings = {"encoding.x.axis.titlePadding": 10 + 13 * lines, "padding.bottom": 30 + 13 * lines}
    return Picture("class_sizes", values, "How many classes there are of each size", description, settings)


def ranges(sizes: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return (from, to, number of classes) in bars without a gap between them.

    >>> ranges([(5, 90), (7, 3)])
    [(5, 5, 90), (6, 6, 0), (7, 7, 3)]
    >>> ranges([(5, 90), (6, 3), (4000, 1)])[-1]
    (2000, 4000, 1)
    """
    first, last = min(size for size, _ in sizes), max(size for size, _ in sizes)
    starts = [first, *(start for start in _starts(first, last) if first < start <= last)]
    ends = [*(start - 1 for start in starts[1:]), last]
    return [
        (low, high, sum(classes for size, classes in sizes if low <= size <= high))
        for low, high in zip(starts, ends, strict=True)
    ]


def _starts(first: int, last: int) -> Sequence[int]:
    if last - first < MOST_BARS:
        return range(first, last + 1)
    if last <= 20 * max(first, 1):
        width = next(step for step in STEPS if (last - first) / step <= MOST_BARS - 2)
        return range(first - first % width, last + 1, width)
    return [step for step in STEPS if step <= last][-MOST_BARS + 1 :]


def _label(low: int, high: int) -> str:
    """Return one size, or two of them on two lines: there are up to 14 of them beside each other."""
    return _short(low) if low == high else f"{_short(low)}\N{EN DASH}\n{_short(high)}"


def _short(number: int) -> str:
    """Return a number short enough for a narrow bar.

    >>> [_short(n) for n in (999, 1234, 56_789, 1_500_000)]
    ['999', '1,234', '57k', '1.5M']
    """
    for unit, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= max(unit, 10_000):
            return f"{number / unit:.2g}{letter}" if number < 10 * unit else f"{number / unit:.0f}{letter}"
    return count(number)

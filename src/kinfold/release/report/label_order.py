"""The order of labels in a chart: bands by where they begin, labels of a hierarchy as they stand in it.

10-19 before 100-109, <18 before 18-24, 65-84 before 85+, [1, 2] before [3, 9], 2023-11 before 2024-02, * last
"""

from __future__ import annotations

import re
from collections.abc import Collection

from kinfold.errors import KinfoldError
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.request.binding import BoundColumn
from kinfold.request.column_hierarchies import hierarchy_of
from kinfold.rows.schema import Kind

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
BELOW, ABOVE = ("<", "≤", "up to", "under"), (">", "≥", "over")


def order_of(bound: BoundColumn, labels: Collection[str]) -> tuple[str, ...] | None:
    """Return the labels of a column in their own order, None where they have none: then the frequent ones come first.

    A declared order is kept whole, with the labels that it lacks after it.
    """
    told = _told(bound)
    if told is not None:
        place = {label: i for i, label in enumerate(told)}
        return (*told, *sorted({label for label in labels if label not in place}, key=beginning))
    spec = bound.request.hierarchy
    if bound.kind.measured or (spec is not None and (spec.intervals or spec.dates)):
        return tuple(sorted(set(labels), key=beginning))
    return tuple(sorted(set(labels), key=lambda label: (label == TOP, label))) if spec is not None else None


def _told(bound: BoundColumn) -> tuple[str, ...] | None:
    """Return the order that the policy tells: that of an ordinal column, or of a hierarchy written out."""
    spec = bound.request.hierarchy
    if bound.kind is Kind.ORDINAL and bound.request.order:
        return tuple(bound.request.order)
    if spec is None or (spec.levels, spec.tree, spec.file) == (None, None, None):
        return None
    try:
        return in_hierarchy(hierarchy_of(bound, ()))
    except KinfoldError:  # of a hierarchy that nothing was released by: a chart is no reason to stop
        return None


def in_hierarchy(hierarchy: Hierarchy) -> tuple[str, ...]:
    """Return every label of a hierarchy by the first value that it covers, a value before what stands above it.

    >>> in_hierarchy(Hierarchy.of([("b", "low"), ("a", "low"), ("z", "high")]))
    ('b', 'low', 'a', 'z', 'high', '*')
    """
    first: dict[str, tuple[int, int]] = {}
    for level in range(hierarchy.height + 1):
        for row, label in enumerate(hierarchy.labels[:, level]):
            first.setdefault(str(label), (row, level))
    return tuple(sorted(first, key=lambda label: (label == TOP, *first[label])))


def beginning(label: str) -> tuple[object, ...]:
    """Return by what a band is put in order: the number or date that it begins with; what has none comes last.

    >>> sorted(["100-109", "*", "10-19", "<10", "85+", "[20, 30]", "unknown"], key=beginning)
    ['<10', '10-19', '[20, 30]', '85+', '100-109', 'unknown', '*']
    """
    numbers = [float(number) for number in NUMBER.findall(re.sub(r"(?<=\d)-(?=\d)", " ", label))]
    if label == TOP or not numbers:
        return (1 + (label == TOP), (), 0, label)
    open_end = -1 if label.startswith(BELOW) else 1 if label.startswith(ABOVE) or label.endswith("+") else 0
    return (0, (numbers[0],), open_end, tuple(numbers[1:]), label)

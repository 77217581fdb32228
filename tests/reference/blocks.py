"""Cutting into blocks as it is defined, with sorted lists: slow and plain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kinfold.tables.points import Points


def spread_plain(points: Points, rows: Sequence[int]) -> list[float]:
    """Half the mean squared distance of two rows, attribute by attribute, over all pairs."""
    pairs = [(column[:, None] - column) ** 2 for column in points.numbers[list(rows)].T]
    for scale, codes in zip(points.scales, points.codes[list(rows)].T, strict=True):
        pairs.append(np.array([scale.squared_distances(int(code))[codes] for code in codes]))
    return [float(each.mean() / 2) for each in pairs]


def value(points: Points, row: int, attribute: int) -> float:
    width = points.numbers.shape[1]
    return float(points.numbers[row, attribute] if attribute < width else points.codes[row, attribute - width])


def lowest_plain(points: Points, rows: list[int], many: int, attributes: list[int]) -> list[int]:
    """The first so many rows in the order of these attributes, the first one first, then of their numbers."""
    return sorted(rows, key=lambda row: (*(value(points, row, each) for each in attributes), row))[:many]


def shares_plain(sizes: list[int], many: int) -> list[int]:
    """How many of so many come from each stratum: below any of them their part of all, rounded down."""
    whole, upto, before, found = sum(sizes), 0, 0, []
    for size in sizes:
        upto += size
        found.append(upto * many // whole - before)
        before += found[-1]
    return found

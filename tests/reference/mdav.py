"""MDAV-generic the slow way: lists, sorting, `math.fsum`. What the fast ways are held against."""

from __future__ import annotations

import math

import numpy as np

from kinfold.tables.points import NominalScale, OrdinalScale, Points


def gap(scale: OrdinalScale | NominalScale, a: int, b: int) -> float:
    if isinstance(scale, OrdinalScale):
        step = float(a != b) if scale.size in (a, b) else abs(a - b) / scale.size
    else:
        level = sum(p != q for p, q in zip(scale.paths[a].tolist(), scale.paths[b].tolist(), strict=True))
        step = level / scale.height
    return scale.weight * step * step


def distance(points: Points, place: tuple[list[float], list[int]], row: int) -> float:
    numbers, codes = place
    total = 0.0
    for a, b in zip(points.numbers[row].tolist(), numbers, strict=True):
        total += (a - b) * (a - b)
    for scale, a, b in zip(points.scales, points.codes[row].tolist(), codes, strict=True):
        total += gap(scale, a, b)
    return total


def centre(points: Points, rows: list[int]) -> tuple[list[float], list[int]]:
    numbers = [math.fsum(column) / len(rows) for column in points.numbers[rows].T.tolist()]
    codes = []
    for scale, column in zip(points.scales, points.codes[rows].T.tolist(), strict=True):
        if isinstance(scale, OrdinalScale):
            codes.append(sorted(column)[(len(column) - 1) // 2])
        else:
            codes.append(max(sorted(set(column)), key=column.count))
    return numbers, codes


def mdav(x: object, k: int) -> np.ndarray:
    points = Points.from_array(x)
    left = list(range(len(points)))
    clusters: list[list[int]] = []

    def at(row: int) -> tuple[list[float], list[int]]:
        return points.numbers[row].tolist(), points.codes[row].tolist()

    def farthest(place: tuple[list[float], list[int]]) -> int:
        return max(left, key=lambda row: (distance(points, place, row), -row))

    def cluster(around: int) -> None:
        near = sorted(left, key=lambda row: (distance(points, at(around), row), row))[:k]
        clusters.append(near)
        for row in near:
            left.remove(row)

    while len(left) >= 3 * k:
        r = farthest(centre(points, left))
        cluster(r)
        cluster(farthest(at(r)))
    if len(left) >= 2 * k:
        cluster(farthest(centre(points, left)))
    clusters.append(list(left))
    labels = np.empty(len(points), np.int32)
    for label, rows in enumerate(clusters):
        labels[rows] = label
    return labels

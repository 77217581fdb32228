"""Distances and centres of mixed records, one record at a time."""

import math

import numpy as np

from kinfold.tables.points import OrdinalScale, Points


def gap(scale, one, other):
    if isinstance(scale, OrdinalScale):
        null = scale.size
        step = float(one != other) if null in (one, other) else abs(one - other) / scale.size
    else:
        step = sum(a != b for a, b in zip(scale.paths[one], scale.paths[other], strict=True)) / scale.height
    return scale.weight * step * step


def distance(points, i, others, j):
    total = 0.0
    for a, b in zip(points.numbers[i].tolist(), others.numbers[j].tolist(), strict=True):
        total += (a - b) * (a - b)
    for scale, a, b in zip(points.scales, points.codes[i].tolist(), others.codes[j].tolist(), strict=True):
        total += gap(scale, a, b)
    return total


def centre(points, rows):
    means = [math.fsum(points.numbers[rows, column]) / len(rows) for column in range(points.numbers.shape[1])]
    codes = []
    for column, scale in enumerate(points.scales):
        held = sorted(points.codes[rows, column].tolist())
        codes.append(held[(len(held) - 1) // 2] if isinstance(scale, OrdinalScale) else max(held, key=held.count))
    return Points(np.array([means]), np.array([codes], np.int32).reshape(1, -1), points.scales)

"""t-closeness-first over given strata, with numpy scans: the plain twin of the kernel."""

from __future__ import annotations

import numpy as np

from kinfold.methods.partition.mdav import ExactCentre, Place, RemainingRecords, get_place
from kinfold.tables.points import Points


def t_first_plain(points: Points, layers: list[np.ndarray]) -> np.ndarray:
    """Return the labels by the steps of the algorithm."""
    labels = np.full(len(points), -1, np.int32)
    centre = ExactCentre(points)
    left = [RemainingRecords(points, np.sort(rows)) for rows in layers]
    clusters = min(map(len, left))
    seed = -1
    for label in range(clusters):
        place = centre.place() if label % 2 == 0 else get_place(points, seed)
        seed = find_farthest(left, place)
        cluster = _take_cluster(left, get_place(points, seed), clusters - label - 1)
        labels[cluster] = label
        centre.remove(np.array(cluster))
    return labels


def _take_cluster(left: list[RemainingRecords], place: Place, to_come: int) -> list[int]:
    """Take the nearest record of each stratum, and one more of the first that has more than it will need."""
    rows: list[int] = []
    for i, stratum in enumerate(left):
        rows.append(int(stratum.take(place, 1)[0]))
        if len(stratum) > to_come and len(rows) == i + 1:
            rows.append(int(stratum.take(place, 1)[0]))
    return rows


def find_farthest(layers: list[RemainingRecords], place: Place) -> int:
    """Return the row of the record of any layer that is farthest from a place. Ties: the lowest row."""
    farthest = [layer.find_farthest(place) for layer in layers if len(layer)]
    best = max(distance for distance, _ in farthest)
    return min(row for distance, row in farthest if distance == best)

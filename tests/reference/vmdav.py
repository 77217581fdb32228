"""V-MDAV as it is written down, one record at a time; and its groups by numpy, for larger tables."""

import math

import numpy as np

from kinfold.methods.partition.geometry import compute_centre, distances_to
from reference.plain_space import centre, distance


def vmdav(points, k, gamma):
    middle = centre(points, list(range(len(points))))
    left = list(range(len(points)))
    groups = []
    while len(left) >= k:
        seed = max(left, key=lambda row: (distance(points, row, middle, 0), -row))
        others = sorted(
            (row for row in left if row != seed), key=lambda row: (distance(points, row, points, seed), row)
        )
        group = [seed, *others[: k - 1]]
        left = [row for row in left if row not in group]
        while left and len(group) < 2 * k - 1:
            d_in, row = min((distance(points, row, points, member), row) for row in left for member in group)
            d_out = min((distance(points, row, points, other) for other in left if other != row), default=math.inf)
            if gamma == 0 or not math.sqrt(d_in) < gamma * math.sqrt(d_out):
                break
            group.append(row)
            left.remove(row)
        groups.append(group)
    centres = [centre(points, sorted(group)) for group in groups]
    labels = {row: label for label, group in enumerate(groups) for row in group}
    for row in left:
        labels[row] = min(range(len(groups)), key=lambda label: (distance(points, row, centres[label], 0), label))
    return [labels[row] for row in range(len(points))]


def form_groups(points, k, gamma):
    """Form the groups with numpy; the label of a remaining record is -1."""
    labels = np.full(len(points), -1, np.int32)
    left = np.arange(len(points))
    label = 0
    for seed in np.argsort(-distances_to(points, compute_centre(points), 0), kind="stable"):
        if labels[seed] >= 0:
            continue
        if len(left) < k:
            break
        distances = distances_to(points.take(left), points, seed)
        distances[np.searchsorted(left, seed)] = -1.0  # the seed is in its own group, whatever ties with it
        labels[left[np.argsort(distances, kind="stable")[:k]]] = label
        left = left[labels[left] < 0]
        if gamma > 0.0:
            left = _extend(points, labels, left, label, gamma)
        label += 1
    return labels


def _extend(points, labels, left, label, gamma):
    """Add records to the group while they are near enough, and return the remaining rows."""
    members = np.flatnonzero(labels == label)
    near = np.full(len(left), np.inf)
    for member in members:
        np.minimum(near, distances_to(points.take(left), points, member), out=near)
    for _ in range(len(members) - 1):
        if not len(left):
            break
        at = int(np.argmin(near))
        distances = distances_to(points.take(left), points, left[at])
        outside = np.delete(distances, at)
        d_out = math.sqrt(outside.min()) if len(outside) else math.inf
        if not math.sqrt(near[at]) < gamma * d_out:
            break
        labels[left[at]] = label
        near = np.delete(np.minimum(near, distances), at)
        left = np.delete(left, at)
    return left

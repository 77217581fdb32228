"""Algorithm 2 of Sun et al. 2012 on a projection that is given, one record at a time, and by numpy."""

import numpy as np

from kinfold.methods.partition.geometry import compute_centre, distances_to
from reference.plain_space import centre, distance


def pairs_of_groups(points, k):
    left = list(range(len(points)))
    groups = []

    def form(seed):
        others = sorted(
            (row for row in left if row != seed), key=lambda row: (distance(points, row, points, seed), row)
        )
        groups.append([seed, *others[: k - 1]])
        left[:] = [row for row in left if row not in groups[-1]]

    while len(left) >= 2 * k:
        middle = centre(points, left)
        one = max(left, key=lambda row: (distance(points, row, middle, 0), -row))
        form(one)
        form(max(left, key=lambda row: (distance(points, row, points, one), -row)))
    if len(left) >= k:
        groups.append(list(left))
    elif left:
        rest = centre(points, left)
        centres = [centre(points, sorted(group)) for group in groups]
        nearest = min(range(len(groups)), key=lambda label: (distance(centres[label], 0, rest, 0), label))
        groups[nearest].extend(left)
    labels = {row: label for label, group in enumerate(groups) for row in group}
    return [labels[row] for row in range(len(points))]


def form_groups(points, k):
    """Form pairs of groups with numpy; the label of a remaining record is -1."""
    labels = np.full(len(points), -1, np.int32)
    left = np.arange(len(points))
    label = 0
    while len(left) >= 2 * k:
        remaining = points.take(left)
        one = left[np.argmax(distances_to(remaining, compute_centre(remaining), 0))]
        left = _form_group(points, labels, left, one, k, label)
        other = left[np.argmax(distances_to(points.take(left), points, one))]
        left = _form_group(points, labels, left, other, k, label + 1)
        label += 2
    return labels


def _form_group(points, labels, left, seed, k, label):
    """Form a group of the seed and its k-1 nearest records, and return the remaining rows."""
    distances = distances_to(points.take(left), points, seed)
    distances[np.searchsorted(left, seed)] = -1.0  # the seed is in its own group, whatever ties with it
    labels[left[np.argsort(distances, kind="stable")[:k]]] = label
    return left[labels[left] < 0]

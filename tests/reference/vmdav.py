"""V-MDAV as it is written down, one record at a time."""

import math

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

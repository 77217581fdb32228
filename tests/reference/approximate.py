"""Algorithm 2 of Sun et al. 2012 on a projection that is given, one record at a time."""

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

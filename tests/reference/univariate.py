"""Every partition of sorted values into groups of at least k neighbours, and its exact cost in fractions."""

from fractions import Fraction


def compositions(n, k):
    """Yield the sizes of the groups of every partition."""
    if n == 0:
        yield []
    for size in range(k, n + 1):
        for rest in compositions(n - size, k):
            yield [size, *rest]


def group_cost(group, cost):
    if cost == "sse":
        mean = sum(group) / Fraction(len(group))
        return sum((value - mean) ** 2 for value in group)
    centre = sum(group) / Fraction(len(group)) if cost == "absolute" else sorted(group)[len(group) // 2]
    return sum(abs(value - centre) for value in group)


def cost_of_sizes(ordered, sizes, cost):
    total, begin = Fraction(0), 0
    for size in sizes:
        total += group_cost(ordered[begin : begin + size], cost)
        begin += size
    return total


def least_cost(values, k, cost):
    ordered = sorted(Fraction(value) for value in values)
    return min(cost_of_sizes(ordered, sizes, cost) for sizes in compositions(len(ordered), k))


def cost_of_labels(values, labels, cost):
    groups = {}
    for value, label in zip(values, labels, strict=True):
        groups.setdefault(int(label), []).append(Fraction(value))
    return sum(group_cost(group, cost) for group in groups.values())

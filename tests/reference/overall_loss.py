"""Slow twin of the loss of a column: one cell at a time, in exact fractions, straight from docs/measures/overall.md.

A released cell is None (null), GONE (its record was left out), "*", or a value or statement of its column. A column is
described by what its cells can be; statements come as the set of the values that they cover.
"""

from fractions import Fraction

GONE = object()


def mean(values):
    return sum(values, Fraction(0)) / len(values)


def variance(values):
    centre = mean(values)
    return mean([(value - centre) ** 2 for value in values])


def of_number(before, after, spread):
    if spread:
        return (before - after) ** 2 / spread
    return Fraction(before != after)


def numbers(original, released):
    """Loss of a column of numbers, some of them missing: min(1, SSE / SST)."""
    known = [Fraction(x) for x in original if x is not None]
    spread = variance(known) if known else Fraction(0)
    lost = []
    for before, after in zip(original, released, strict=True):
        if before is None and after is None:
            continue
        if after is GONE or before is None or after is None:
            lost.append(Fraction(1))
        else:
            lost.append(of_number(Fraction(before), Fraction(after), spread))
    return min(Fraction(1), mean(lost)) if lost else Fraction(0)


def statement(covered, values, before):
    """Loss of a statement, true or not."""
    if before not in covered:
        return Fraction(1)
    return Fraction(len(covered) - 1, len(values) - 1) if len(values) > 1 else Fraction(0)


def cells(original, released, distance, covers, values):
    """Loss of a column of categories or statements.

    `distance(a, b)` is that of two categories, `covers(label)` the values under a label that is no category.
    """
    lost = []
    for before, after in zip(original, released, strict=True):
        if after is GONE or after == "*" or (before is None) != (after is None):
            lost.append(Fraction(1))
        elif before is None:
            lost.append(Fraction(0))
        elif after in values:
            lost.append(distance(before, after))
        else:
            lost.append(statement(covers(after), values, before))
    return min(Fraction(1), mean(lost))


def nominal(one, other):
    return Fraction(one != other)


def ordinal(order):
    return lambda one, other: Fraction(abs(order.index(one) - order.index(other)), len(order))


def nested(paths):
    """Distance in a hierarchy: `paths[value]` are its labels from itself up to the top."""

    def distance(one, other):
        a, b = paths[one], paths[other]
        return Fraction(sum(x != y for x, y in zip(a, b, strict=True)), len(a) - 1)

    return distance


def changed(original, released):
    return mean([Fraction(before != after) for before, after in zip(original, released, strict=True)])

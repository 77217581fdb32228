"""Slow twins of the measures: one cell, one record, one pair at a time, straight from the formulas."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np

NAN = float("nan")


def known(column):
    return [v for v in column if not math.isnan(v)]


def mean(values):
    return math.fsum(values) / len(values)


def columns(table):
    return [list(column) for column in np.asarray(table).T]


def filled_pairs(table, release):
    """Column by column, the pairs with a known original; a missing released value is the original mean."""
    for x, y in zip(columns(table), columns(release), strict=True):
        if known(x):
            centre = mean(known(x))
            yield [(a, centre if math.isnan(b) else b) for a, b in zip(x, y, strict=True) if not math.isnan(a)]


def sse(table, release):
    return math.fsum((a - b) ** 2 for pairs in filled_pairs(table, release) for a, b in pairs)


def sst(table):
    return sse(table, np.full(np.shape(table), NAN))


def normalized_sse(table, release):
    gaps = []
    for x, y in zip(columns(table), columns(release), strict=True):
        if not known(x):
            continue
        spread = max(known(x)) - min(known(x))
        for a, b in zip(x, y, strict=True):
            if math.isnan(a):
                continue
            if math.isnan(b):
                gaps.append(1.0)
            elif spread:
                gaps.append(((a - b) / spread) ** 2)
            else:
                gaps.append(float(a != b))
    return mean(gaps)


def il1(table, release):
    return mean([abs(a - b) / abs(a) for pairs in filled_pairs(table, release) for a, b in pairs if a])


def il1s(table, release):
    gaps = []
    for pairs in filled_pairs(table, release):
        values = [a for a, _ in pairs]
        deviation = math.sqrt(mean([(a - mean(values)) ** 2 for a in values]))
        if max(values) > min(values):
            gaps += [abs(a - b) / (math.sqrt(2) * deviation) for a, b in pairs]
    return mean(gaps)


def complete(table):
    """The columns of the complete records; statistics need two of them."""
    rows = [row for row in np.asarray(table) if not np.isnan(row).any()]
    if len(rows) < 2:
        raise ValueError("fewer than two complete records")
    return columns(rows)


def central(x, y, p, q):
    mx, my = mean(x), mean(y)
    return mean([(a - mx) ** p * (b - my) ** q for a, b in zip(x, y, strict=True)])


def relative(before, after):
    """Cells are multiples of 1/4: a statistic below 1e-9 is 0, off by rounding."""
    return mean([abs(a - b) / abs(a) for a, b in zip(before, after, strict=True) if abs(a) > 1e-9])


def il2(table, release):
    return relative([mean(c) for c in complete(table)], [mean(c) for c in complete(release)])


def il3(table, release):
    return relative([central(c, c, 1, 1) for c in complete(table)], [central(c, c, 1, 1) for c in complete(release)])


def pairs_of(table):
    return list(combinations(complete(table), 2))


def il4(table, release):
    before = [central(x, y, 1, 1) for x, y in pairs_of(table)]
    return relative(before, [central(x, y, 1, 1) for x, y in pairs_of(release)])


def correlation(x, y):
    if min(x) == max(x) or min(y) == max(y):
        return 0.0
    return central(x, y, 1, 1) / math.sqrt(central(x, y, 2, 0) * central(x, y, 0, 2))


def il5(table, release):
    gaps = []
    for (x, y), (u, v) in zip(pairs_of(table), pairs_of(release), strict=True):
        if min(x) < max(x) and min(y) < max(y):
            gaps.append(abs(correlation(x, y) - correlation(u, v)))
    return mean(gaps)


def probability(gap, error):
    return math.erf(abs(gap) / (error * math.sqrt(2)))


def pil_pairs(table, release):
    """PIL of covariances and of correlations, by the moment formulas as printed, on columns that vary."""
    covariances, correlations = [], []
    n = len(complete(table)[0])
    for (x, y), (u, v) in zip(pairs_of(table), pairs_of(release), strict=True):
        m11, m20, m02 = central(x, y, 1, 1), central(x, y, 2, 0), central(x, y, 0, 2)
        m22, m40, m04 = central(x, y, 2, 2), central(x, y, 4, 0), central(x, y, 0, 4)
        m31, m13 = central(x, y, 3, 1), central(x, y, 1, 3)
        covariances.append(probability(m11 - central(u, v, 1, 1), math.sqrt((m22 - m11**2) / n)))
        r = correlation(x, y)
        inside = m22 / m11**2 + (m40 / m20**2 + m04 / m02**2 + 2 * m22 / (m20 * m02)) / 4
        inside -= m31 / (m11 * m20) + m13 / (m11 * m02)
        correlations.append(probability(r - correlation(u, v), math.sqrt(r * r / n * inside)))
    return mean(covariances), mean(correlations)


def classification(initial, masked):
    """Algorithm 1: a dictionary of the cells of the matrix."""
    matrix = Counter()
    for before, after in zip(initial, masked, strict=True):
        if after >= 0:
            matrix[list(masked).count(after), list(initial).count(before)] += 1
    return matrix


def dr(matrix, weight):
    n = sum(matrix.values())
    return sum(weight(i, j) * c / i for (i, j), c in matrix.items() if j <= i) / (n * weight(1, 1))


def dist(table, release, scales):
    total = 0
    for x, y, scale in zip(columns(table), columns(release), scales, strict=True):
        for a, b in zip(x, y, strict=True):
            if (a < 0) != (b < 0):
                total += max(scale - 1, 1)
            else:
                total += abs(a - b) if scale else int(a != b)
    return total


def contingency(table, release, sizes, dimension, empty):
    """CTBIL' and the number of cells of its tables."""
    x, y = columns(table), columns(release)
    loss, cells = 0.0, 0
    wide = [size + int(-1 in a or -1 in b) for size, a, b in zip(sizes, x, y, strict=True)]
    for count in range(1, dimension + 1):
        for chosen in combinations(range(len(x)), count):
            before = Counter(zip(*(x[j] for j in chosen), strict=True))
            after = Counter(zip(*(y[j] for j in chosen), strict=True))
            cells += math.prod(wide[j] for j in chosen)
            for cell in before | after:
                if before[cell] or empty == "one":
                    loss += abs(before[cell] - after[cell]) / max(before[cell], 1)
    return loss, cells


def ebil(table, release):
    total = 0.0
    for x, y in zip(columns(table), columns(release), strict=True):
        for given in y:
            held = Counter(a for a, b in zip(x, y, strict=True) if b == given)
            whole = sum(held.values())
            total -= sum(c / whole * math.log2(c / whole) for c in held.values())
    return total


def inference(classes, values):
    rows = [(c, v) for c, v in zip(classes, values, strict=True) if c >= 0]
    blind = max(Counter(v for _, v in rows).values())
    hits = sum(max(Counter(v for c, v in rows if c == label).values()) for label in {c for c, _ in rows})
    return (hits - blind) / (len(rows) - blind)


def inference_numbers(classes, values):
    rows = [(c, v) for c, v in zip(classes, values, strict=True) if c >= 0 and not math.isnan(v)]
    centre = mean([v for _, v in rows])
    within = 0.0
    for label in {c for c, _ in rows}:
        members = [v for c, v in rows if c == label]
        within += math.fsum((v - mean(members)) ** 2 for v in members)
    return 1 - within / math.fsum((v - centre) ** 2 for _, v in rows)


def interval_by_rank(table, release, percents):
    inside = cells = 0
    for x, y in zip(columns(table), columns(release), strict=True):
        ranked = sorted(known(y))
        for a, b in zip(x, y, strict=True):
            for percent in percents:
                cells += 1
                if math.isnan(a) or math.isnan(b):
                    continue
                reach = int(percent * len(ranked) / 200)
                first, last = ranked.index(b), len(ranked) - 1 - ranked[::-1].index(b)
                inside += ranked[max(first - reach, 0)] <= a <= ranked[min(last + reach, len(ranked) - 1)]
    return inside / cells


def linkage_credit(original, released, gaps, plain):
    """Compare every record with every released one; the nearest share the credit."""
    shares = []
    for i, query in enumerate(original):
        distances = []
        for point in released:
            total = 0.0
            for j, (a, b) in enumerate(zip(query, point, strict=True)):
                total += (a - b) * (a - b) if j < plain else gaps[j - plain][int(a)][int(b)]
            distances.append(total)
        nearest = [p for p, d in enumerate(distances) if d == min(distances)]
        shares.append(1 / len(nearest) if i in nearest else 0.0)
    return shares


def dominated(classes, values, n, k):
    found = []
    for label in range(max(classes) + 1):
        ranked = ranked_class(classes, values, label)
        found.append(sum(ranked[:n]) > k / 100 * sum(ranked))
    return found


def within_percent(classes, values, p):
    found = []
    for label in range(max(classes) + 1):
        ranked = [*ranked_class(classes, values, label), 0.0]
        found.append(sum(ranked[2:]) < p / 100 * ranked[0])
    return found


def ranked_class(classes, values, label):
    members = [abs(v) for c, v in zip(classes, values, strict=True) if c == label and not math.isnan(v)]
    return sorted(members, reverse=True)


def moved_shares(before: list, after: list) -> list[tuple]:
    """(value, share before, share after) of each category that moved by more than a fifth, in exact fractions."""
    values = [*dict.fromkeys([*before, *after])]
    shares = {v: (Fraction(before.count(v), len(before)), Fraction(after.count(v), len(after))) for v in values}
    moved = [(v, p, q) for v, (p, q) in shares.items() if abs(q - p) > p / 5]
    return sorted(
        moved, key=lambda each: (-abs(each[2] - each[1]), -(abs(each[2] - each[1]) / each[1] if each[1] else math.inf))
    )

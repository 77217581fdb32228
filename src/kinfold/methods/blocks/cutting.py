"""Cutting: records into blocks of bounded size, again and again along the attribute that spreads most.

    a part of more records than a block may have is cut in two, in the proportion of the blocks that come of each side
    along the attribute with the largest variance in it, estimated on some of its records
    at the exact quantile; of records that tie there, along the attribute that spreads most among them; of records that
    are all equal, the lowest rows go to the lower side

Strata are numbered parts of the table, of which each block has its share: each is cut at its own quantile, and rounding
is carried from one to the next, so that below any stratum a block has too many or too few records by about one.

Cost: O(n log(n / size)) for n records.   Ties: the first attribute; the lowest row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.progress import silent
from kinfold.rows.points import Ordered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kinfold.progress import Progress
    from kinfold.rows.points import Floats, Labels, Nested, Points

    Rows = NDArray[np.intp]

LOOKED_AT = 10_000  # records of a part on which spreads are estimated


def cut(points: Points, rows: Rows, size: int, strata: Labels | None = None, progress: Progress = silent) -> list[Rows]:
    """Cut these rows, which are in order, into blocks of at most so many; they differ in size by a record or two.

    >>> from kinfold.rows.points import Points
    >>> line = Points.of([[0.0], [9.0], [1.0], [8.0], [2.0]])
    >>> [block.tolist() for block in cut(line, np.arange(5), 3)]
    [[0, 2], [1, 3, 4]]
    """
    parts, blocks = [(rows, -(-len(rows) // size))], []
    whole, done = len(rows) * max(1, int(np.ceil(np.log2(max(2, parts[0][1]))))), 0
    while parts:
        part, many = parts.pop()
        if many <= 1:
            blocks.append(part)
            continue
        low = many // 2
        below = _lower(points, part, len(part) * low // many, strata)
        parts += [(part[~below], many - low), (part[below], low)]
        done += len(part)
        progress(min(done, whole), whole)
    return blocks


def _lower(points: Points, part: Rows, many: int, strata: Labels | None) -> NDArray[np.bool_]:
    """Mark so many of these rows, the lower ones along the attribute that spreads most; of each stratum its share."""
    along = int(np.argmax(spreads(points, part)))
    if strata is None:
        return lowest(points, part, many, along)
    below = np.zeros(len(part), np.bool_)
    for places, share in _shares(strata[part], many):
        below[places] = lowest(points, part[places], share, along)
    return below


def _shares(strata: Labels, many: int) -> Iterator[tuple[Rows, int]]:
    """Yield the places of each stratum and its share of so many, rounding carried on to the next."""
    order = np.argsort(strata, kind="stable")
    ends = np.flatnonzero(np.append(strata[order][1:] != strata[order][:-1], True)) + 1
    upto = ends * many // len(strata)
    for places, share in zip(np.split(order, ends[:-1]), np.diff(upto, prepend=0), strict=True):
        yield places, int(share)


def lowest(points: Points, rows: Rows, many: int, along: int) -> NDArray[np.bool_]:
    """Mark so many of these rows, the lowest along an attribute; where they tie, along others in turn."""
    if many <= 0 or many >= len(rows):
        return np.full(len(rows), many > 0)
    values = column(points, rows, along)
    edge = np.partition(values, many - 1)[many - 1]
    below = values < edge
    tied = np.flatnonzero(values == edge)
    left = many - int(below.sum())
    if left < len(tied):
        spread = spreads(points, rows[tied])
        further = int(np.argmax(spread))
        tied = tied[lowest(points, rows[tied], left, further)] if spread[further] > 0 else tied[:left]
    below[tied] = True
    return below


def column(points: Points, rows: Rows, attribute: int) -> NDArray[np.float64] | Labels:
    """Return the numbers, or the codes, of one attribute."""
    width = points.numbers.shape[1]
    return points.numbers[rows, attribute] if attribute < width else points.codes[rows, attribute - width]


def spreads(points: Points, rows: Rows) -> Floats:
    """Return how much each attribute spreads among these rows: half the mean squared distance of two of them.

    Some rows may stand for all; an attribute that does not spread among them may still spread among all, so where none
    does all are asked.
    """
    step = max(1, len(rows) // LOOKED_AT)
    found = _spreads(points, rows[::step])
    return found if step == 1 or found.max() > 0 else _spreads(points, rows)


def _spreads(points: Points, rows: Rows) -> Floats:
    numbers, codes = points.numbers[rows], points.codes[rows]
    flat = numbers.max(axis=0) == numbers.min(axis=0)  # whose variance may still be a rounding error
    measured = np.where(flat, 0.0, numbers.var(axis=0))
    coded = [_spread(scale, column) for scale, column in zip(points.scales, codes.T, strict=True)]
    return np.concatenate([measured, coded])


def _spread(scale: Ordered | Nested, codes: Labels) -> float:
    if isinstance(scale, Ordered):
        return float(scale.weight * codes.var() / max(1, scale.size) ** 2)
    # two values differ at all levels below their lowest common ancestor: j levels differ makes j² = 1 + 3 + 5 ...
    total = 0.0
    for level in range(scale.height):
        share = np.unique(scale.paths[codes, level], return_counts=True)[1] / len(codes)
        total += (2 * level + 1) * (1.0 - float((share**2).sum()))
    return float(scale.weight * total / (2 * scale.height**2))

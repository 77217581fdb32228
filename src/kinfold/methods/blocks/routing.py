"""Routes: the cuts of a sample, by which every record finds its block wherever it is.

Where rows are not in one place nobody can sort them all. The cuts are found on a sample, as in `cutting`, and written
down: the attribute, and for each stratum the value at which it is cut. A record needs nothing but its own values and a
number of its own to go its way; so the blocks do not depend on who holds which rows.

    below the value      to the lower side
    at the value         some to either side, by a hash of the record's number: as many as were below in the sample
    above                to the upper side

Blocks are then as even as the sample is good. One that is too small joins its neighbour (`joined`); one that is too
large is cut exactly by whoever holds it (`cutting.cut`). No block is below k.

Cost: O(n log(blocks)).   Ties: by number, the same always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinfold.methods.blocks.cutting import column, lowest, spreads
from kinfold.rows.drawing import hashed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.rows.points import Floats, Labels, Points

    Rows = NDArray[np.intp]

UNIT = 2.0**-64


@dataclass(frozen=True, eq=False)
class Fork:
    """A cut: along an attribute, at a value for each stratum, and how many of those at the value go below."""

    attribute: int
    edge: Floats
    tied: Floats
    low: int  # the fork below, or, where there is none, -1 - the block
    high: int


@dataclass(frozen=True, eq=False)
class Routes:
    """The forks from the first on, and how many blocks they lead to; blocks beside each other have numbers that are."""

    forks: tuple[Fork, ...]
    blocks: int

    def block_of(self, points: Points, numbers: NDArray[np.integer], strata: Labels | None = None) -> Labels:
        """Return the block of each record; `numbers` tell records apart, and `strata` are as the cuts were made."""
        found = np.zeros(len(points), np.int32)
        ways = [(0, np.arange(len(points)))] if self.forks else []
        while ways:
            at, rows = ways.pop()
            fork = self.forks[at]
            below = self._below(at, column(points, rows, fork.attribute), numbers[rows], _of(strata, rows))
            for side, here in ((fork.low, rows[below]), (fork.high, rows[~below])):
                if side < 0:
                    found[here] = -1 - side
                elif len(here):
                    ways.append((side, here))
        return found

    def _below(
        self, at: int, values: Floats | Labels, numbers: NDArray[np.integer], strata: Labels
    ) -> NDArray[np.bool_]:
        edge, tied = self.forks[at].edge[strata], self.forks[at].tied[strata]
        drawn = hashed(numbers, at) * UNIT
        return np.asarray((values < edge) | ((values == edge) & (drawn < tied)))


def routes(sample: Points, blocks: int, strata: Labels | None = None, *, parts: int = 2) -> Routes:
    """Return the cuts of a sample into so many blocks, each stratum cut at its own value.

    Every cut leaves one of so many `parts` of the blocks below it: other parts make other cuts.

    >>> from kinfold.rows.points import Points
    >>> found = routes(Points.of([[0.0], [1.0], [8.0], [9.0]]), 2)
    >>> found.block_of(Points.of([[0.5], [8.5], [70.0]]), np.arange(3)).tolist()
    [0, 1, 1]
    """
    survey = _Survey(sample, _of(strata, np.arange(len(sample))), parts)
    survey.fork(np.arange(len(sample)), 0, blocks)
    return Routes(tuple(survey.forks), blocks)


class _Survey:
    """A sample, and the forks that were found on it so far."""

    def __init__(self, sample: Points, strata: Labels, parts: int) -> None:
        self.sample, self.strata, self.parts = sample, strata, parts
        self.kinds = int(strata.max(initial=0)) + 1
        self.forks: list[Fork] = []

    def fork(self, rows: Rows, first: int, many: int) -> int:
        """Part these rows of the sample into so many blocks, the first of this number; return the way to them."""
        if many == 1 or len(rows) < 2:
            return -1 - first
        at, low = len(self.forks), max(1, many // self.parts)
        along = int(np.argmax(spreads(self.sample, rows)))
        edge, tied, below = self._cut(rows, len(rows) * low // many, along)
        self.forks.append(Fork(along, edge, tied, -1, -1))  # its place, before those that follow from it
        ways = self.fork(rows[below], first, low), self.fork(rows[~below], first + low, many - low)
        self.forks[at] = Fork(along, edge, tied, *ways)
        return at

    def _cut(self, rows: Rows, many: int, along: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return where each stratum is cut, what share of its records there goes below, and the rows that do."""
        values, strata = column(self.sample, rows, along).astype(np.float64), self.strata[rows]
        edge, tied = (np.full(self.kinds, each) for each in _edge(values, many))
        below = np.zeros(len(rows), np.bool_)
        for stratum in np.unique(strata):
            places = np.flatnonzero(strata == stratum)
            share = round(len(places) * many / len(rows))
            edge[stratum], tied[stratum] = _edge(values[places], share)
            below[places] = lowest(self.sample, rows[places], share, along)
        return edge, tied, below


def _edge(values: Floats, many: int) -> tuple[float, float]:
    """Return the value at which so many lie below, and the share of those at the value that are counted among them."""
    edge = float(np.partition(values, max(many, 1) - 1)[max(many, 1) - 1])
    return edge, (many - float((values < edge).sum())) / float((values == edge).sum())


def joined(counts: Sequence[int] | NDArray[np.integer], least: int) -> Labels:
    """Number blocks anew so that each has at least so many records: one that has fewer joins those beside it.

    >>> joined([5, 1, 4, 9, 2], 5).tolist()
    [0, 1, 1, 2, 2]
    """
    found, number, held = np.zeros(len(counts), np.int32), 0, 0
    for block, count in enumerate(counts):
        found[block] = number
        held += int(count)
        if held >= least:
            number, held = number + 1, 0
    return np.minimum(found, max(number - 1, 0)) if held < least else found


def _of(strata: Labels | None, rows: Rows) -> Labels:
    return np.zeros(len(rows), np.int32) if strata is None else strata[rows]

"""t-closeness in a search of generalizations: which classes are too far from the others, and what each must lose.

A class is a row of counts, so that any distance is a sum over columns. With N records in all, T in a column, and c of
the s records of a class in it, the distance times s·N is the sum of abs(c·N - s·T) over

    equal, nested   a column for each label of each level, divided by 2 · height
    ordered         a column for each value that occurs: the records up to it, divided by the number of values - 1

`mark` suppresses in rounds: all classes too far from the table of the others, until none is. It is what
`mark_outliers` does, without a tally per round.

`find_losses` bounds what a class Y must lose in every table below, if at most S of the N records are suppressed. Take
at each level the labels that are more frequent in Y than in the table; f is a record's share of levels with such a
label. The kept part of Y is a union of t-close classes, so it is t-close as well. Two labels of a level differ by at
most 1 in f, so its mean over the kept part is at most

    u = t + mean of f in the table · N / (N - S)

At best the records with f = 1 are suppressed: at least s · (mean of f in Y - u) / (1 - u) of them. Ordered values have
no such bound, because their distance is divided by the number of values that are left.

Cost: a few operations per class and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.methods.generalize.domain import MAX_ROWS_WITHOUT_KERNEL, Floats, Mask
from kinfold.models import Model, TCloseness
from kinfold.tables.tally import Ints, Tally

MAX_COLUMNS = 256  # with more, most counts are 0, and a sparse spread is faster
MAX_EXACT = 2**53  # whole numbers below are exact as doubles, so a quotient is rounded once


@dataclass(frozen=True, eq=False)
class Closeness:
    """Promises of t-closeness, for the classes of the views of one table."""

    models: tuple[TCloseness, ...]
    labels: tuple[NDArray[np.int32], ...]  # of each value at each level; of ordered values the values themselves
    first: Ints  # the first column of each promise, and the end
    heights: Ints  # the levels of a nested distance; 0: ordered
    limits: Floats

    @classmethod
    def from_models(cls, models: Sequence[Model], tally: Tally) -> Closeness | None:
        """Return the promises; None if there are others, or if the tally is small, wide, or not of records."""
        chosen = tuple(model for model in models if isinstance(model, TCloseness))
        if not chosen or len(chosen) < len(models) or len(tally) <= MAX_ROWS_WITHOUT_KERNEL:
            return None
        labels = tuple(model.list_labels(tally.spreads[model.column].values) for model in chosen)
        widths = [int((paths.max(axis=0, initial=0) + 1).sum()) for paths in labels]
        steps = max(2 * paths.shape[1] for paths in labels) + max(widths)
        same = all((tally.spreads[m.column].class_totals(len(tally)) == tally.sizes).all() for m in chosen)
        if not same or sum(widths) > MAX_COLUMNS or steps * tally.records**2 >= MAX_EXACT:
            return None
        heights = [
            0 if model.distance == "ordered" else paths.shape[1] for model, paths in zip(chosen, labels, strict=True)
        ]
        first = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        return cls(chosen, labels, first, np.array(heights, np.int64), np.array([model.t for model in chosen]))

    def mark(self, tally: Tally, suppressed: Mask) -> Mask:
        """Mark more classes until every other one is close to the others."""
        marked = suppressed.astype(np.uint8)
        kernels.load("rollup").mark_distant(
            self._count(tally), tally.sizes, self.first, self.heights, self.limits, marked
        )
        return marked.astype(np.bool_)

    def find_losses(self, tally: Tally, most: int) -> Ints:
        """Return how many records each class must lose at least, if at most so many are suppressed in all."""
        lost = np.zeros(len(tally), np.int64)
        counts, kernel = self._count(tally), kernels.load("rollup")
        kernel.find_losses(counts, tally.sizes, self.first, self.heights, self.limits, most, lost)
        return lost

    def _count(self, tally: Tally) -> Ints:
        """Return the counts of each class."""
        counts = np.zeros((len(tally), int(self.first[-1])), np.int64)
        for model, paths, height, start in zip(self.models, self.labels, self.heights, self.first, strict=False):
            spread, place = tally.spreads[model.column], start
            for level in paths.T:
                width = int(level.max(initial=0)) + 1
                cells = np.bincount(spread.group * width + level[spread.code], spread.count, len(tally) * width)
                held = cells.reshape(-1, width).astype(np.int64)
                counts[:, place : place + width] = held if height else held.cumsum(axis=1)
                place += width
        return counts

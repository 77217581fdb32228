"""Merging at cell level: rows that say the same first, then every class that misses a promise with its nearest.

    in rounds, until no class misses a promise:
        each class that does looks for the class that costs least to merge with, so that both together keep them; a
        class that finds none waits, for two that miss it rarely make one that keeps it; if none is found for any
        class, each takes the nearest
        the cheapest merges are made first; a class takes part in one merge a round

Whether a merge would keep the promises is asked of the models themselves, all merges of a round in one tally. As
t-closeness compares with the whole of its tally, one more class is put beside them that makes up for records counted
twice, so that the whole has the distribution of the table.

Cost: a tree over the classes and a search in it a round; about as many rounds as log2 of the class sizes.
Ties: the cheapest, then the first class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinfold import kernels
from kinfold.errors import Unreachable
from kinfold.methods.generalize.cells import Trees
from kinfold.methods.generalize.domain import Codes, Floats, Mask
from kinfold.methods.generalize.outliers import Models, failing
from kinfold.progress import Progress, silent
from kinfold.rows.tally import Ints, Spread, Tally

WIDER = (16, 128, 1024)  # nearest classes asked whether a merge with them would do, as many as it takes


@dataclass(eq=False)
class Merged:
    """Classes: what each says, its tally, and the class of each row."""

    says: Codes
    tally: Tally
    into: Ints

    @classmethod
    def identical(cls, rows: Codes, tally: Tally) -> Merged:
        """Put rows that say the same together, in the order of their first rows."""
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        into = rank[inverse.ravel()]
        return cls(np.ascontiguousarray(rows[np.sort(first)]), tally.merge(into, {}), into)


def merge_until(classes: Merged, trees: Trees, models: Models, progress: Progress = silent) -> Merged:
    """Merge classes until each keeps every promise."""
    at_first = -1
    while (missing := failing(models, classes.tally)).any():
        bad = int(missing.sum())
        at_first = max(at_first, bad)
        progress(at_first - bad, at_first)
        if len(classes.tally) == 1:
            raise Unreachable(
                f"all {classes.tally.records} records as one class do not keep what was asked", fix="ask less"
            )
        classes = _round(classes, trees, models, missing)
    return classes


def _round(classes: Merged, trees: Trees, models: Models, missing: Mask) -> Merged:
    asked = np.flatnonzero(missing)
    if all(model.column is None for model in models):
        found, costs = nearest_classes(trees, classes.says, classes.tally.sizes, asked, 1)
        partner, cost = found[:, 0].astype(np.int64), costs[:, 0]
    else:
        partner, cost = _healing(classes, trees, models, asked)
    taken = np.zeros(len(classes.tally), np.bool_)
    into = np.arange(len(classes.tally))
    says = classes.says.copy()
    for i in np.lexsort((asked, cost)):
        g, h = int(asked[i]), int(partner[i])
        if h >= 0 and not taken[g] and not taken[h]:
            taken[[g, h]] = True
            into[g] = h
            _widen(trees, says, h, g)
    kept = np.flatnonzero(into == np.arange(len(into)))
    number = np.full(len(into), -1, np.int64)
    number[kept] = np.arange(len(kept))
    into = number[into]
    return Merged(np.ascontiguousarray(says[kept]), classes.tally.merge(into, {}), into[classes.into])


def _healing(classes: Merged, trees: Trees, models: Models, asked: Ints) -> tuple[Ints, Floats]:
    """The nearest class with which each would keep the promises; where no class has one, the nearest of all."""
    partner: Ints = np.full(len(asked), -1, np.int64)
    cost: Floats = np.full(len(asked), np.inf)
    left = np.arange(len(asked))
    for count in WIDER:
        found, costs = nearest_classes(trees, classes.says, classes.tally.sizes, asked[left], count)
        if count == WIDER[0]:
            fallback = found[:, 0].astype(np.int64), costs[:, 0]
        pair, rank = np.nonzero(found >= 0)
        missed = failing(models, _unions(classes.tally, asked[left][pair], found[pair, rank]))[:-1]
        heals = np.zeros(found.shape, np.bool_)
        heals[pair, rank] = ~missed
        done, first = heals.any(axis=1), np.argmax(heals, axis=1)
        rows = np.arange(len(left))[done]
        partner[left[done]], cost[left[done]] = found[rows, first[done]], costs[rows, first[done]]
        left = left[~done]
        if not len(left) or count >= len(classes.tally):
            break
    return (partner, cost) if (partner >= 0).any() else fallback


def nearest_classes(trees: Trees, says: Codes, sizes: Ints, asked: Ints, count: int) -> tuple[Codes, Floats]:
    """The classes that cost least to merge with each class asked for, cheapest first, -1 where there are no more."""
    partners = kernels.load("statement_tree").partners

    found = np.full((len(asked), count), -1, np.int32)
    costs = np.full((len(asked), count), np.inf)
    partners(_built(trees, says, sizes), trees.forest, asked.astype(np.int64), found, costs)
    return found, costs


def _built(trees: Trees, says: Codes, sizes: Ints) -> Any:
    kernel = kernels.load("statement_tree")
    count, q = says.shape
    room = 2 * count + 2
    starts, ends, children = (np.zeros(room, np.int32) for _ in range(3))
    lows, highs = (np.zeros((room, q), np.int32) for _ in range(2))
    order = np.arange(count, dtype=np.int32)
    tree = kernel.StatementTree(order, starts, ends, children, lows, highs, np.zeros(room), says, sizes)
    kernel.build(tree, trees.forest, count)
    return tree


def _widen(trees: Trees, says: Codes, into: int, other: int) -> None:
    widen = kernels.load("statements").widen

    widen(trees.forest, says[into], says[other])


def _unions(tally: Tally, one: Ints, other: Codes) -> Tally:
    """A tally of the union of each pair, and of one more class so that all together are spread like the table."""
    pairs = len(one)
    sizes = tally.sizes[one] + tally.sizes[other]
    spreads, turns = {}, 1
    for name, spread in tally.spreads.items():
        start = np.searchsorted(spread.group, np.arange(len(tally) + 1))
        parts = [_cells(spread, start, side) for side in (one, other)]
        code = np.concatenate([part[1] for part in parts])
        count = np.concatenate([part[2] for part in parts])
        pair = np.concatenate([part[0] for part in parts])
        spreads[name] = (pair, code, count)
        held = np.bincount(code, count, len(spread.values))
        whole = spread.totals()
        turns = max(turns, int(np.ceil(held[whole > 0] / whole[whole > 0]).max()) + 1)
    found = {}
    for name, (pair, code, count) in spreads.items():
        spread = tally.spreads[name]
        rest = turns * spread.totals() - np.bincount(code, count, len(spread.values)).astype(np.int64)
        width = len(spread.values)
        cell = np.concatenate([pair * width + code, pairs * width + np.arange(width)])
        cell, inverse = np.unique(cell, return_inverse=True)
        total = np.bincount(inverse, np.concatenate([count, rest])).astype(np.int64)
        found[name] = Spread(cell // width, cell % width, total, spread.values)
    balance = turns * tally.records - int(sizes.sum())
    return Tally({}, np.concatenate([sizes, [balance]]), found)


def _cells(spread: Spread, start: Ints, classes: Ints | Codes) -> tuple[Ints, Ints, Ints]:
    counts = start[classes + 1] - start[classes]
    pair = np.repeat(np.arange(len(classes)), counts)
    place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(start[classes], counts)
    return pair, spread.code[place], spread.count[place]

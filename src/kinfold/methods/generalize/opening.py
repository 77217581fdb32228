"""Opening: classes under cheaper patterns are opened and others closed, so that fewer cells are empty.

    records are laid out by every pattern by which at least k are alike, the cheapest patterns first, as many as fit;
    classes are opened, joined and closed (`kernels/opening`) until nothing is gained

Of a tuple that many records share only some take part: the others are a class by themselves, whatever happens. So the
time it takes goes with the distinct tuples, not with the records. It asks for k and nothing else.

Cost: about 0.1 s a sweep for 30,162 records of 18,109 tuples and all 256 patterns; two or three sweeps.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from kinfold import kernels
from kinfold.measures.grouping import group_rows
from kinfold.methods.generalize.domain import Codes, Domain, Floats, Mask
from kinfold.methods.generalize.patterns import alike, cheapest, end_to_end, keys_of
from kinfold.progress import Progress, silent
from kinfold.rows.tally import Ints

Patterns: TypeAlias = dict[tuple[int, ...], int]

CELLS = 8_000_000  # records times patterns that are laid out
SWEEPS = 20  # at most: one that gains nothing is the last; not tuned


def opened(domain: Domain, blank: Mask, k: int, weights: Floats, progress: Progress = silent) -> Ints:
    """Return better classes of records, given which cells are empty in each; every class has at least k records."""
    tuples, _ = group_rows(domain.codes)
    moving, resting = taking_part(tuples, k)  # rows that stand for many records are tuples, each alone: all take part
    groups = _laid_out(domain, blank, moving, weights, k)
    own = np.full(int(tuples.max()) + 1, -1, np.int64)
    own[tuples[moving]] = groups.group[0]  # the empty pattern is the first
    np.add.at(groups.size, own[tuples[resting]], 1)
    sweep = kernels.load("opening").sweep
    for done in range(SWEEPS):
        progress(done, SWEEPS)
        if sweep(groups, k) <= 0.0:
            break
    labels = own[tuples]
    labels[moving] = groups.at
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def taking_part(tuples: Ints, k: int) -> tuple[Ints, Ints]:
    """Return the records that take part, and those that rest, of a tuple at least k or none.

    >>> [rows.tolist() for rows in taking_part(np.array([0, 1] + [1] * 8), 2)]
    [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9]]
    """
    order = np.argsort(tuples, kind="stable")
    sizes = np.bincount(tuples)
    rank = np.empty(len(tuples), np.int64)
    rank[order] = np.arange(len(tuples)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rests = (rank >= 3 * k) & (sizes[tuples] >= 4 * k)
    return np.flatnonzero(~rests), np.flatnonzero(rests)


def _laid_out(domain: Domain, blank: Mask, rows: Ints, weights: Floats, k: int) -> Any:
    """Lay records out by pattern, and put each into the class that its empty cells say."""
    used = np.unique(blank[rows], axis=0)
    keys = keys_of(domain.codes[rows])
    cheap = alike(keys, domain.tally.sizes[rows], k, _cheapest(tuple(weights.tolist()), max(1, CELLS // len(rows))))
    every = dict.fromkeys([(), *cheap, *map(_columns, used)])  # those in use are classes, of whatever size
    patterns: Patterns = {columns: p for p, columns in enumerate(every)}
    hidden, first = end_to_end(patterns)
    counts, group = np.zeros(len(patterns), np.int64), np.empty((len(patterns), len(rows)), np.int32)
    groups = int(kernels.load("opening").group_alike(keys, hidden, first, group, counts))
    start, member = np.zeros(groups + 1, np.int64), np.empty(group.size, np.int32)
    kernels.load("opening").list_members(group, start, member)
    each = np.unique(blank[rows], axis=0, return_inverse=True)[1].ravel()
    here = np.array([patterns[_columns(cells)] for cells in used])[each]
    at = group[here, np.arange(len(rows))]
    price, kind = _prices(domain.codes[rows] == [len(path) - 1 for path in domain.paths], weights, patterns)
    count = domain.tally.sizes[rows].astype(np.int32)
    size = np.bincount(at, count, groups).astype(np.int32)
    seen, taken = (np.zeros(groups, np.int32) for _ in range(2))
    come, comes = (np.zeros(len(rows), np.int32) for _ in range(2))
    of_pattern = np.repeat(np.arange(len(patterns), dtype=np.int32), counts)
    return kernels.load("opening").PatternGroups(
        *(group, start, member, of_pattern, price, kind, count, at.copy(), size, seen, taken, come, comes)
    )


@lru_cache(maxsize=1)  # classes are opened twice, before and after they are rebuilt
def _cheapest(weights: tuple[float, ...], count: int) -> list[tuple[int, ...]]:
    return [columns for _, columns in islice(cheapest(np.array(weights)), count)]


def _columns(cells: Mask) -> tuple[int, ...]:
    return tuple(int(a) for a in np.flatnonzero(cells))


def _prices(missing: Mask, weights: Floats, patterns: Patterns) -> tuple[Floats, Codes]:
    """Return what each pattern costs a record of each kind, and the kind of each: what it lacks already."""
    kinds, kind = np.unique(missing, axis=0, return_inverse=True)
    empty = np.zeros((len(patterns), missing.shape[1]), np.bool_)
    for columns, p in patterns.items():
        empty[p, list(columns)] = True
    price = (empty[:, None, :] & ~kinds[None]) @ weights
    return np.ascontiguousarray(price, np.float64), kind.ravel().astype(np.int32)

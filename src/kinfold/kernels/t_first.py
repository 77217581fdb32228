"""Clusters of t-closeness-first from one tree for each stratum, some at a time.

The centre of the records that are left is exact (see `exact`), so that the clusters are those of the plain way to the
last record. Paper, ties and readings: see `partition.t_first`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import forest, mixed
from kinfold.kernels.compiling import Int, entry, inner
from kinfold.kernels.exact import DIGITS, LIMBS, add, rounded
from kinfold.kernels.forest import Forest, farthest, grow, nearest, take
from kinfold.kernels.mixed import Mixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

LABEL, LEFT, SEED = range(3)


class Layers(NamedTuple):
    """A run: the records, what its centre is computed from, and how far it is."""

    m: Mixed
    bits: NDArray[np.int64]  # (n, a) of the numbers
    sums: NDArray[np.int64]  # (a, LIMBS)
    digits: NDArray[np.int64]  # (DIGITS,) room
    counts: NDArray[np.int64]  # (b, codes) records left with each code
    numbers: NDArray[np.float64]  # (a,) the place that is searched from
    codes: NDArray[np.int32]  # (b,)
    labels: NDArray[np.int32]  # (n,) -1 where a record is left
    state: NDArray[np.int64]  # (3,) the next label, records left, the last seed


def begun(m: Mixed, codes: int) -> Layers:
    """Return a run before its first cluster; `codes` is the largest number of codes of a column."""
    n, wide = m.numbers.shape
    return Layers(
        m, m.numbers.view(np.int64), np.zeros((wide, LIMBS), np.int64), np.zeros(DIGITS, np.int64),
        np.zeros((m.codes.shape[1], codes), np.int64), np.zeros(wide), np.zeros(m.codes.shape[1], np.int32),
        np.full(n, -1, np.int32), np.array([0, n, -1]),
    )  # fmt: skip


@inner
def count(w: Layers, record: Int, times: Int) -> None:
    """Add a record to the centre (1) or take it away (-1)."""
    for j in range(w.bits.shape[1]):
        add(w.sums, j, w.bits[record, j], times)
    for j in range(w.codes.size):
        w.counts[j, w.m.codes[record, j]] += times


@inner
def to_centre(w: Layers) -> None:
    """Go to the centre: means, lower medians of ordered codes, most frequent nested codes."""
    for j in range(w.numbers.size):
        w.numbers[j] = rounded(w.sums, j, w.digits) / w.state[LEFT]
    for j in range(w.codes.size):
        code = 0
        if w.m.null[j] >= 0:
            seen = w.counts[j, 0]
            while 2 * seen < w.state[LEFT]:
                code += 1
                seen += w.counts[j, code]
        else:
            for other in range(w.counts.shape[1]):
                if w.counts[j, other] > w.counts[j, code]:
                    code = other
        w.codes[j] = code


@inner
def to_record(w: Layers, record: Int) -> None:
    """Go to a record."""
    for j in range(w.numbers.size):
        w.numbers[j] = w.m.numbers[record, j]
    for j in range(w.codes.size):
        w.codes[j] = w.m.codes[record, j]


@inner
def form(w: Layers, f: Forest, to_come: Int) -> None:
    """Form the cluster around the place: the nearest record of each stratum, and one that is over."""
    extra = 0
    for s in range(f.base.size):
        again = 1
        while again > 0:
            again -= 1
            nearest(f, w.m, s, w.numbers, w.codes)
            record = f.found[0]
            take(f, s)
            count(w, record, -1)
            w.labels[record] = w.state[LABEL]
            w.state[LEFT] -= 1
            if extra == 0 and f.left[f.base[s] + 1] > to_come:
                extra, again = 1, 1
    w.state[LABEL] += 1


@entry(begun(mixed.example(), 1), forest.example(), np.zeros(1))
def plant(w: Layers, f: Forest, key: NDArray[np.float64]) -> None:
    """Grow the trees around the centre; count the records for it first if none has left yet."""
    if w.state[LABEL] == 0:
        for record in range(w.labels.size):
            count(w, record, 1)
    to_centre(w)
    f.hub[:] = w.numbers
    for s in range(f.base.size):
        grow(f, w.m, s, key)


@entry(begun(mixed.example(), 1), forest.example(), 1, 1)
def advance(w: Layers, f: Forest, clusters: Int, many: Int) -> None:
    """Form at most so `many` of the `clusters`; stop where half of the trees' records are gone."""
    for _ in range(many):
        if w.state[LABEL] == clusters or 2 * w.state[LEFT] < f.record.size - 64:
            return
        if w.state[LABEL] % 2 == 0:
            to_centre(w)
        else:
            to_record(w, w.state[SEED])
        w.state[SEED] = farthest(f, w.m, w.numbers, w.codes)
        to_record(w, w.state[SEED])
        form(w, f, clusters - w.state[LABEL] - 1)

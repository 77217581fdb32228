"""Settling: records that are far from their groups change places with others, of their kind, that lie on the way.

Two records of one kind are the same to every promise, or nearly: kinds of many values are asked again. So nothing is
tried that would break a promise, and every swap made lowers the cost.

Cost: O(records listed) looks a record.   Ties: the first listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels import groups, mixed, promises
from kinfold.kernels.compiling import entry
from kinfold.kernels.groups import admits, join, leave
from kinfold.kernels.moves import swapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.kernels.groups import Groups, Ints
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises

LEAST = 1e-9  # a gain below this share of what a record costs on average is rounding

_LISTED = np.zeros((1, 1), np.int32)


@entry(mixed.example(), promises.example(), groups.example(), np.zeros(1, np.int64), _LISTED, 1.0)
def settle(d: Mixed, p: Promises, s: Groups, movers: Ints, listed: NDArray[np.int32], scale: float) -> float:
    """Let each of these records change places with the best of those listed for it; return the change of cost."""
    total = 0.0
    for t in range(movers.size):
        i, best, other = movers[t], -LEAST * scale, np.int64(-1)
        for u in range(listed.shape[1]):
            l = np.int64(listed[t, u])
            if l < 0:
                break
            if s.label[l] != s.label[i]:
                change = swapped(d, s, i, l)
                if change < best:
                    best, other = change, l
        if other < 0:
            continue
        kept = True
        for u in range(2):  # a loop, so that the compiler meets the promises once
            going, coming = (i, other) if u == 0 else (other, i)
            kept = kept and admits(p, s, s.label[going], going, coming)
        if kept:
            a, b = s.label[i], s.label[other]
            for u in range(2):
                leave(d, p, s, i if u == 0 else other)
            for u in range(2):
                join(d, p, s, i if u == 0 else other, b if u == 0 else a)
            total += best
    return total

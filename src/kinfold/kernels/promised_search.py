"""Search under promises: descents and perturbations over all distances (see `search`), and random moves.

    a random step: a record i, a record j near it (or any record, now and then), their groups a and b
        i goes to b, or swaps with j or another member of b
        unless the cost grows by more than the temperature of the step times a random exponential
        unless a or b would miss a promise or fall below k

If promises forbid most moves, many cheap trials reach more than a few thorough ones; a search uses both kinds of steps.
The cost is computed first, because it is cheap. Only the number of the step and the random stream matter, never a
clock.

Cost: O(d + group size) for a random step.
"""

from __future__ import annotations

import math

import numpy as np

from kinfold.kernels import promises
from kinfold.kernels.compiling import Floats, Rows, entry
from kinfold.kernels.draws import Stream, below, draw, make_stream
from kinfold.kernels.groups import Groups, example_groups, fits, recount
from kinfold.kernels.moves import (
    EXAMPLE_SEARCH,
    Curves,
    draw_member,
    draw_neighbour,
    is_allowed,
    move_change,
    swap_change,
    swap_records,
)
from kinfold.kernels.promises import Promises
from kinfold.kernels.records import Mixed
from kinfold.kernels.search import take_steps


@entry(promises.example_promises(), example_groups(), make_stream(0), np.zeros(1), np.zeros(1, np.int32))
def search(p: Promises, s: Groups, stream: Stream, temperatures: Floats, best: Rows) -> float:
    """Take a step at each temperature; write the labels of the lowest cost to `best`, and return that cost."""
    return take_steps(None, p, s, stream, temperatures, best)


MAX_REACH = 6  # the farthest neighbour tried is 2^6 places away along a curve
ANYWHERE_ODDS = 8  # once in so many times a partner is any record


@entry(*EXAMPLE_SEARCH, np.zeros(1))
def make_random_moves(d: Mixed, p: Promises, s: Groups, around: Curves, stream: Stream, temperatures: Floats) -> float:
    """Take a step at each temperature, from groups that keep their promises; return the cost after them."""
    total = recount(d, None, s)
    for t in range(temperatures.size):
        i = below(stream, s.label.size)
        j = draw_neighbour(around, stream, i, MAX_REACH, ANYWHERE_ODDS)
        b = s.label[j]
        limit = -temperatures[t] * math.log(draw(stream))
        if s.label[i] == b:
            continue
        kind = below(stream, 3)  # alone, if sizes allow it, or a swap with j or any member of its group
        l = np.int64(-1)
        if kind != 0 or not (fits(s, s.label[i], -1) and fits(s, b, 1)):
            l = np.int64(j if kind == 1 else draw_member(s, stream, b))
        change = move_change(d, s, i, b) if l < 0 else swap_change(d, s, i, l, limit)
        if change <= limit and is_allowed(p, s, i, l, b):
            total += change
            swap_records(d, p, s, i, l, b)
    return total

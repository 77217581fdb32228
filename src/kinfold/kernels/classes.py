"""Classes that change record by record, with what a move or a swap costs always at hand.

The cost of a class is the sum of the squared distances of its pairs over its size: its SSE for numbers (Huygens), the
same measure of spread for mixed records. For numbers a change is O(d), by the centres:

    i leaves a for b       -|x-a|²·m/(m-1) + |x-b|²·m'/(m'+1)
    i and l swap           |y-a|² - |x-a|² + |x-b|² - |y-b|² - |x-y|²·(1/m + 1/m')

For codes it is O(m), by the sums of distances to the members. Members are kept in the order of the first row of codes
that the promises read, so that a changed class is nearly sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels import mixed, promises
from kinfold.kernels.compiling import entry, inner
from kinfold.kernels.mixed import Mixed, code_gaps
from kinfold.kernels.promises import Promises, miss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int32]


class Classes(NamedTuple):
    """A partition, and what is kept about each class."""

    label: NDArray[np.int32]  # (n,)
    start: NDArray[np.int64]  # (g + 1,) where the room of each class starts in `members`
    size: NDArray[np.int64]  # (g,)
    members: NDArray[np.int32]
    sums: NDArray[np.float64]  # (g, a)
    pairs: NDArray[np.float64]  # (g,) sum of the distances of the pairs, over the codes
    missed: NDArray[np.float64]  # (g,)
    cost: NDArray[np.float64]  # (1,) of all classes


def example() -> Classes:
    """Return the smallest partition, to compile for."""
    whole, rows, real = np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1)
    return Classes(rows, whole, whole, rows, np.zeros((1, 1)), real, real, real)


@inner
def members_of(s: Classes, g: int) -> Rows:
    """The records of a class."""
    return s.members[s.start[g] : s.start[g] + s.size[g]]


@inner
def has_room(s: Classes, g: int) -> bool:
    """Tell whether one more record fits into the room of the class."""
    return s.start[g] + s.size[g] < s.start[g + 1]


@inner
def from_centre(m: Mixed, s: Classes, i: int, g: int) -> float:
    """Squared distance of record i to the mean of the class's numbers."""
    total = 0.0
    for j in range(m.numbers.shape[1]):
        step = m.numbers[i, j] - s.sums[g, j] / s.size[g]
        total += step * step
    return total


@inner
def toward(m: Mixed, s: Classes, i: int, g: int) -> float:
    """Sum of the distances of record i to the members of the class, over the codes."""
    total = 0.0
    for l in members_of(s, g):
        total += code_gaps(m, i, l)
    return total


@inner
def move_cost(m: Mixed, s: Classes, i: int, b: int) -> float:
    """Change of cost when record i goes to class b."""
    a = s.label[i]
    mine, other = s.size[a], s.size[b]
    change = from_centre(m, s, i, b) * other / (other + 1) - from_centre(m, s, i, a) * mine / (mine - 1)
    if m.codes.shape[1] > 0:
        change += (s.pairs[a] - toward(m, s, i, a)) / (mine - 1) - s.pairs[a] / mine
        change += (s.pairs[b] + toward(m, s, i, b)) / (other + 1) - s.pairs[b] / other
    return change


@inner
def swap_cost(m: Mixed, s: Classes, i: int, l: int) -> float:
    """Change of cost when records i and l of two classes change places."""
    a, b = s.label[i], s.label[l]
    change, apart = 0.0, 0.0
    for j in range(m.numbers.shape[1]):
        x, y = m.numbers[i, j], m.numbers[l, j]
        # |y-a|² - |x-a|² + |x-b|² - |y-b|² = 2 (y-x)(b-a)
        change += 2.0 * (y - x) * (s.sums[b, j] / s.size[b] - s.sums[a, j] / s.size[a])
        apart += (x - y) * (x - y)
    change -= apart / s.size[a] + apart / s.size[b]
    if m.codes.shape[1] > 0:
        gap = code_gaps(m, i, l)
        change += (toward(m, s, l, a) - gap - toward(m, s, i, a)) / s.size[a]
        change += (toward(m, s, i, b) - gap - toward(m, s, l, b)) / s.size[b]
    return change


@inner
def leave(m: Mixed, s: Classes, i: int) -> None:
    """Take record i out of its class."""
    g = s.label[i]
    if m.codes.shape[1] > 0:
        s.pairs[g] -= toward(m, s, i, g)
    for j in range(m.numbers.shape[1]):
        s.sums[g, j] -= m.numbers[i, j]
    members = members_of(s, g)
    s.size[g] -= 1
    gone = False
    for t in range(s.size[g]):
        gone = gone or members[t] == i
        if gone:
            members[t] = members[t + 1]
    s.label[i] = -1


@inner
def join(m: Mixed, p: Promises, s: Classes, i: int, g: int) -> None:
    """Put record i, which is in no class, into class g."""
    if m.codes.shape[1] > 0:
        s.pairs[g] += toward(m, s, i, g)
    for j in range(m.numbers.shape[1]):
        s.sums[g, j] += m.numbers[i, j]
    s.size[g] += 1
    members = members_of(s, g)
    at = s.size[g] - 1
    while at > 0 and p.codes[0, members[at - 1]] > p.codes[0, i]:
        members[at] = members[at - 1]
        at -= 1
    members[at] = i
    s.label[i] = g


@inner
def swap(m: Mixed, p: Promises, s: Classes, i: int, l: int) -> None:
    """Let records i and l change places."""
    a, b = s.label[i], s.label[l]
    leave(m, s, i)
    leave(m, s, l)
    join(m, p, s, i, b)
    join(m, p, s, l, a)


@entry(mixed.example(), promises.example(), example())
def recount(m: Mixed, p: Promises, s: Classes) -> None:
    """Compute sums, pairs, misses and the cost afresh, so that rounding does not add up."""
    total = 0.0
    for g in range(s.size.size):
        if s.size[g] == 0:
            continue
        members = members_of(s, g)
        for j in range(m.numbers.shape[1]):
            s.sums[g, j] = 0.0
            for i in members:
                s.sums[g, j] += m.numbers[i, j]
        s.pairs[g] = 0.0
        if m.codes.shape[1] > 0:
            for i in members:
                s.pairs[g] += 0.5 * toward(m, s, i, g)
        s.missed[g] = miss(p, members, -1, -1)
        total += s.pairs[g] / s.size[g]
        for i in members:
            total += from_centre(m, s, i, g)
    s.cost[0] = total

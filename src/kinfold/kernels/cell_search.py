"""Rebuilding: take a few neighbouring classes apart and merge their records again, at random; keep what costs less.

    a step  draws a record; its class and a few of the classes nearest to it are taken apart
            equal records become a part; then, while a part misses a promise, it is merged with another: the pair that
            costs least, times a random factor, and less if the union keeps the promises
            records that would lose less in another part that covers them move there, if both still keep the promises
            the parts replace the old classes if fewer records miss a promise, or as many and they cost no more than a
            random threshold around the temperature of the step
            before it single records are tried: one moves to the class of a near record; if its own class cannot spare
            it, it changes places with a member. Such moves take a fiftieth of the time, but lead nowhere alone

The make-up of a class is one number, the sum of its records' weights, and `holds` says for each number whether such a
class keeps the promises. For k-anonymity alone every weight is 1 and the number is the size. A record here may stand
for many equal ones that stay together: `stands` says for how many.

Only the steps and the random stream matter, never a clock.   Ties: the first candidate.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfold.kernels import statements
from kinfold.kernels.compiling import Floats, Ints, Rows, entry, inner, lean
from kinfold.kernels.draws import below, draw
from kinfold.kernels.statements import Forest, Nodes, cover, joint_loss, statement_loss

COST_ROUNDING = 1e-12  # a smaller difference of losses is rounding
MISS_PENALTY = 1e3  # for each record of a class that misses a promise: more than any statement can lose
MIN_CLASSES, EXTRA_CLASSES = 2, 3  # classes taken apart in one step: MIN_CLASSES, and fewer than EXTRA_CLASSES more
SKIP_PROBABILITY = 0.4  # of a near class, so that a record does not get the same ones each time
MIN_NOISE, NOISE_SPREAD = 0.5, 1.0  # the random factor of a merge lies between the first and the sum of both
KEPT_FACTOR = 0.8  # price of a merge whose class keeps the promises
MOVES_PER_STEP = 10  # of single records
SETTLE_ROUNDS = 3  # rounds of moves to better parts; most happen in the first

FREE_COUNTS = np.dtype([("classes", np.int64)], align=True)
POOL_COUNTS = np.dtype([("classes", np.int64), ("records", np.int64)], align=True)


# Truth is 0 or 1 here: numba cannot read a kernel back from disk whose types mix named tuples and booleans
class CellClasses(NamedTuple):
    """A partition of records that changes class by class."""

    records: Nodes  # (n, q) the statement of each record
    weight: Ints  # (n) share in the make-up of its class
    stands: Ints  # (n) the number of equal records that each stands for
    holds: NDArray[np.uint8]  # 1 if a class of this make-up keeps the promises, else 0
    label: Rows  # (n)
    after: Rows  # (n) the next record of the same class, -1 at the end
    head: Rows  # (g) the first record of a class, -1 if it is empty
    size: Ints  # (g)
    mass: Ints  # (g) records that it stands for
    statements: Nodes  # (g, q) the statement of each class
    near: Rows  # (n, t) records near each record
    free: Rows  # (n) the empty classes, the first `unused` of it
    unused: Any  # (1) number of empty classes
    stream: Ints  # the state of the random stream


class Parts(NamedTuple):
    """Workspace for the classes that are taken apart and the parts that they become."""

    pool: Ints  # the records
    part: Ints  # the part of each
    into: Ints
    size: Ints  # of each part
    mass: Ints  # of each part
    make_up: Ints  # the make-up of each part
    says: Nodes
    chosen: Ints  # the classes taken apart
    pooled: Any  # (1) number of classes and of their records


def make_classes(
    records: Nodes, weight: Ints, stands: Ints, holds: NDArray[Any], near: Rows, stream: Ints
) -> CellClasses:
    """Return room for a partition of these records; the caller fills the labels, `lay_out` the rest."""
    n, q = records.shape
    label, after, head, free = (np.zeros(n, np.int32) for _ in range(4))
    size, mass, statements = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, q), np.int32)
    unused, kept = np.zeros(1, FREE_COUNTS).view(np.recarray), holds.astype(np.uint8)
    held = (records, weight, stands, kept, label, after, head)
    return CellClasses(*held, size, mass, statements, near, free, unused, stream)


def make_parts(pool: int, attributes: int) -> Parts:
    """Return the workspace of a step that takes up to `pool` records apart."""
    records, part, into, size, mass, make_up = (np.zeros(pool, np.int64) for _ in range(6))
    says, chosen = np.zeros((pool, attributes), np.int32), np.zeros(MIN_CLASSES + EXTRA_CLASSES, np.int64)
    return Parts(records, part, into, size, mass, make_up, says, chosen, np.zeros(1, POOL_COUNTS).view(np.recarray))


_ONE = np.zeros((1, 1), np.int32)
_CLASSES = make_classes(_ONE, np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1), _ONE, np.ones(2, np.int64))
_PARTS = make_parts(1, 1)


@lean
def give_back(c: CellClasses, g: int) -> None:
    """Note that class g is empty."""
    c.free[c.unused[0].classes] = g
    c.unused[0].classes += 1


@entry(_CLASSES, statements.example_forest())
def lay_out(c: CellClasses, f: Forest) -> None:
    """Compute everything that follows from the labels."""
    n = c.label.size
    c.head[:] = -1
    c.size[:] = 0
    c.mass[:] = 0
    for record in range(n - 1, -1, -1):
        g = c.label[record]
        if c.size[g] == 0:
            c.statements[g] = c.records[record]
        else:
            cover(f, c.statements[g], c.records[record])
        c.after[record] = c.head[g]
        c.head[g] = record
        c.size[g] += 1
        c.mass[g] += c.stands[record]
    c.unused[0].classes = 0
    for g in range(n - 1, -1, -1):
        if c.size[g] == 0:
            give_back(c, g)


@lean
def class_cost(c: CellClasses, f: Forest, g: int) -> float:
    """Return the loss of a class, and MISS_PENALTY for each of its records if it misses a promise."""
    make_up, i = 0, c.head[g]
    while i >= 0:
        make_up += c.weight[i]
        i = c.after[i]
    return float(c.mass[g] * (statement_loss(f, c.statements[g]) + (0.0 if c.holds[make_up] else MISS_PENALTY)))


@lean
def _take(c: CellClasses, p: Parts, g: int) -> None:
    """Put the records of class g into the pool, unless they are there already or too many."""
    now = p.pooled[0]
    known = now.records + c.size[g] > p.pool.size
    for place in range(now.classes):
        known = known or p.chosen[place] == g
    if known:
        return
    p.chosen[now.classes] = g
    now.classes += 1
    i = c.head[g]
    while i >= 0:
        p.pool[now.records] = i
        now.records += 1
        i = c.after[i]


@lean
def _gather(c: CellClasses, p: Parts, record: int) -> None:
    """Put the records of the drawn record's class and of some near it into the pool."""
    want = MIN_CLASSES + below(c.stream, EXTRA_CLASSES)
    now = p.pooled[0]
    now.records, now.classes = 0, 0
    _take(c, p, c.label[record])
    for turn in range(c.near.shape[1]):
        if now.classes == want:
            return
        if c.near[record, turn] >= 0 and draw(c.stream) >= SKIP_PROBABILITY:
            _take(c, p, c.label[c.near[record, turn]])


@lean
def _same(one: Nodes, other: Nodes) -> int:
    for a in range(one.size):
        if one[a] != other[a]:
            return 0
    return 1


@inner
def _join_equal_records(c: CellClasses, p: Parts) -> int:
    """Make a part of equal records, and return the number of parts."""
    parts = 0
    for i in range(p.pooled[0].records):
        p.part[i] = -1
        for other in range(parts):
            if _same(p.says[other], c.records[p.pool[i]]):
                p.part[i] = other
                break
        if p.part[i] < 0:
            p.part[i] = parts
            p.size[parts], p.mass[parts], p.make_up[parts] = 0, 0, 0
            p.says[parts] = c.records[p.pool[i]]
            parts += 1
        p.size[p.part[i]] += 1
        p.mass[p.part[i]] += c.stands[p.pool[i]]
        p.make_up[p.part[i]] += c.weight[p.pool[i]]
    return parts


@lean
def _price(c: CellClasses, f: Forest, p: Parts, one: int, other: int) -> float:
    both = joint_loss(f, p.says[one], p.says[other])
    lost = p.mass[one] * statement_loss(f, p.says[one]) + p.mass[other] * statement_loss(f, p.says[other])
    change = (p.mass[one] + p.mass[other]) * both - lost
    noise = MIN_NOISE + NOISE_SPREAD * draw(c.stream)
    return float(change * (KEPT_FACTOR * noise if c.holds[p.make_up[one] + p.make_up[other]] else noise))


@inner
def _merge_parts(c: CellClasses, f: Forest, p: Parts, parts: int) -> None:
    """Merge parts until each keeps the promises or one is left; into[x] is where the records of part x are."""
    price = np.full((parts, parts), np.inf)
    for x in range(parts):
        p.into[x] = x
        for y in range(x):
            price[x, y] = price[y, x] = _price(c, f, p, x, y)
    while True:
        best, one, other = np.inf, -1, -1
        for x in range(parts):
            if p.size[x] > 0 and not c.holds[p.make_up[x]]:
                for y in range(parts):
                    if price[x, y] < best:
                        best, one, other = price[x, y], x, y
        if one < 0:
            break
        cover(f, p.says[other], p.says[one])
        p.size[other] += p.size[one]
        p.mass[other] += p.mass[one]
        p.make_up[other] += p.make_up[one]
        p.size[one] = 0
        for x in range(parts):
            if p.into[x] == one:
                p.into[x] = other
            price[x, one] = price[one, x] = np.inf
        for x in range(parts):
            if p.size[x] > 0 and x != other:
                price[x, other] = price[other, x] = _price(c, f, p, x, other)


@inner
def _restate(c: CellClasses, f: Forest, p: Parts) -> None:
    """Give each part the narrowest statement that covers its records."""
    p.size[:] = 0
    p.mass[:] = 0
    p.make_up[:] = 0
    for i in range(p.pooled[0].records):
        x = p.part[i]
        if p.size[x] == 0:
            p.says[x] = c.records[p.pool[i]]
        else:
            cover(f, p.says[x], c.records[p.pool[i]])
        p.size[x] += 1
        p.mass[x] += c.stands[p.pool[i]]
        p.make_up[x] += c.weight[p.pool[i]]


@lean
def _covers(f: Forest, one: Nodes, other: Nodes) -> int:
    for a in range(one.size):
        if f.low[one[a]] > f.low[other[a]] or f.high[one[a]] < f.high[other[a]]:
            return 0
    return 1


@lean
def _settle_records(c: CellClasses, f: Forest, p: Parts) -> int:
    """Move records to parts that cover them and lose less; return the number of moves."""
    moved = 0
    for i in range(p.pooled[0].records):
        own, weight = p.part[i], c.weight[p.pool[i]]
        if p.size[own] < 2 or not c.holds[p.make_up[own] - weight]:
            continue
        best, least = -1, statement_loss(f, p.says[own]) - COST_ROUNDING
        for x in range(p.pooled[0].records):
            if x != own and p.size[x] > 0 and _covers(f, p.says[x], c.records[p.pool[i]]):
                lost = statement_loss(f, p.says[x])
                if lost < least and c.holds[p.make_up[x] + weight]:
                    best, least = x, lost
        if best >= 0:
            p.part[i] = best
            p.size[own] -= 1
            p.size[best] += 1
            p.make_up[own] -= weight
            p.make_up[best] += weight
            moved += 1
    return moved


@lean
def _cost(c: CellClasses, f: Forest, p: Parts) -> float:
    total = 0.0
    for x in range(p.pooled[0].records):
        if p.size[x] > 0:
            total += p.mass[x] * statement_loss(f, p.says[x])
            if not c.holds[p.make_up[x]]:
                total += MISS_PENALTY * p.mass[x]
    return total


@entry(_CLASSES, statements.example_forest(), _PARTS)
def cost(c: CellClasses, f: Forest, p: Parts) -> float:
    """Return the cost of all classes; those too large to be taken apart were merged until they kept the promises."""
    total = 0.0
    for g in range(c.size.size):
        if 0 < c.size[g] <= p.pool.size:
            total += class_cost(c, f, g)
        elif c.size[g] > 0:
            total += c.mass[g] * statement_loss(f, c.statements[g])
    return total


@inner
def _replace_classes(c: CellClasses, p: Parts) -> None:
    """Give the new parts the numbers of the old classes, then free ones; the other numbers become free."""
    for place in range(p.pooled[0].classes - 1, -1, -1):
        g = p.chosen[place]
        c.size[g], c.head[g] = 0, -1
        give_back(c, g)
    p.into[:] = -1
    for i in range(p.pooled[0].records - 1, -1, -1):
        x, record = p.part[i], p.pool[i]
        if p.into[x] < 0:
            c.unused[0].classes -= 1
            p.into[x] = c.free[c.unused[0].classes]
            c.size[p.into[x]], c.mass[p.into[x]] = p.size[x], p.mass[x]
            c.statements[p.into[x]] = p.says[x]
        c.label[record] = p.into[x]
        c.after[record] = c.head[p.into[x]]
        c.head[p.into[x]] = record


@lean
def _include(c: CellClasses, f: Forest, says: Nodes, others: int, i: int) -> None:
    """Make the statement of some other records cover one more."""
    if others > 0:
        cover(f, says, c.records[i])
    else:
        for a in range(says.size):
            says[a] = c.records[i, a]


@lean
def _state_without(c: CellClasses, f: Forest, g: int, left_out: int, says: Nodes) -> int:
    """Write the statement of a class without a record (-1: of all) to `says`, and return its make-up."""
    make_up, others, i = 0, 0, c.head[g]
    while i >= 0:
        if i != left_out:
            _include(c, f, says, others, i)
            make_up += c.weight[i]
            others += 1
        i = c.after[i]
    return make_up


@lean
def _transfer(c: CellClasses, i: int, to: int) -> None:
    """Move a record to another class."""
    g = c.label[i]
    if c.head[g] == i:
        c.head[g] = c.after[i]
    else:
        before = c.head[g]
        while c.after[before] != i:
            before = c.after[before]
        c.after[before] = c.after[i]
    c.label[i], c.after[i], c.head[to] = to, c.head[to], i
    c.size[g] -= 1
    c.size[to] += 1
    c.mass[g] -= c.stands[i]
    c.mass[to] += c.stands[i]


@lean
def _draw_member(c: CellClasses, g: int) -> int:
    i = c.head[g]
    for _ in range(below(c.stream, c.size[g])):
        i = c.after[i]
    return int(i)


@lean
def _move(c: CellClasses, f: Forest, p: Parts, temperature: float) -> float:
    """Move a random record to the class of a near one, or exchange it; return the change of cost."""
    i = below(c.stream, c.label.size)
    near = c.near[i, below(c.stream, c.near.shape[1])]
    one = c.label[i]
    other = c.label[near] if near >= 0 else one
    if one == other or max(c.size[one], c.size[other] + 1) > p.pool.size:
        return 0.0
    make_up = _state_without(c, f, one, i, p.says[0])
    back = -1 if c.size[one] > 1 and c.holds[make_up] else _draw_member(c, other)
    other_up, given = _state_without(c, f, other, back, p.says[1]), c.weight[back] if back >= 0 else 0
    kept = c.holds[make_up + c.weight[i]] and c.holds[other_up + given]  # so far; else the cost has a penalty
    if not (kept and c.holds[make_up + given] and c.holds[other_up + c.weight[i]]):
        return 0.0
    moved = c.stands[i]
    if back >= 0:
        moved -= c.stands[back]
        _include(c, f, p.says[0], c.size[one] - 1, back)
    _include(c, f, p.says[1], c.size[other] - 1 if back >= 0 else c.size[other], i)
    change = (c.mass[one] - moved) * statement_loss(f, p.says[0]) - c.mass[one] * statement_loss(f, c.statements[one])
    change += (c.mass[other] + moved) * statement_loss(f, p.says[1])
    change -= c.mass[other] * statement_loss(f, c.statements[other])
    if change > -temperature * math.log(draw(c.stream)):
        return 0.0
    _transfer(c, i, other)
    if back >= 0:
        _transfer(c, back, one)
    for a in range(c.statements.shape[1]):
        c.statements[one, a], c.statements[other, a] = p.says[0, a], p.says[1, a]
    return float(change)


@entry(_CLASSES, statements.example_forest(), _PARTS, np.zeros(1))
def rebuild(c: CellClasses, f: Forest, p: Parts, temperatures: Floats) -> float:
    """Take a step at each temperature and return the change of cost; at a high one a step may cost more, at random."""
    change = 0.0
    for t in range(temperatures.size):
        for _ in range(MOVES_PER_STEP):
            change += _move(c, f, p, temperatures[t])
        _gather(c, p, below(c.stream, c.label.size))
        if p.pooled[0].classes == 0:
            continue
        before = 0.0
        for place in range(p.pooled[0].classes):
            before += class_cost(c, f, p.chosen[place])
        _merge_parts(c, f, p, _join_equal_records(c, p))
        for i in range(p.pooled[0].records):
            p.part[i] = p.into[p.part[i]]
        for _ in range(SETTLE_ROUNDS):
            _restate(c, f, p)
            if _settle_records(c, f, p) == 0:
                break
        _restate(c, f, p)
        after = _cost(c, f, p)
        if after <= before - temperatures[t] * math.log(draw(c.stream)) + COST_ROUNDING:
            change += after - before
            _replace_classes(c, p)
    return change

"""Rebuilding: take a few neighbouring classes apart and merge their records anew, at random; keep what costs less.

    a step  draws a record; its class and a few of the classes nearest to it are taken apart
            equal records go together; then, while a part misses a promise, the pair that costs least (times a random
            factor, and half if the union keeps the promises) of which one misses it is merged
            records that would lose less in another part that covers them go there, if both still keep the promises
            the parts replace the old classes if fewer records miss a promise, or as many and they cost no more than
            a random threshold around the heat of the step

What a class is made of is one number, the sum of its records' weights, and `holds` says for each number whether such
a class keeps the promises. For k-anonymity alone every weight is 1 and the number is the size.
A record here may stand for many that are equal and stay together: `stands` says for how many.

Only the steps and the random stream decide, never a clock.   Ties: the first found.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfold.kernels import statements
from kinfold.kernels.compiling import entry, inner
from kinfold.kernels.draws import below, draw
from kinfold.kernels.statements import Forest, joined, said, widen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Nodes = NDArray[np.int32]
    Rows = NDArray[np.int32]
    Ints = NDArray[np.int64]


ROUNDING = 1e-12
MISSED = 1e3  # for each record in a class that misses a promise: more than any statement can lose
FEWEST, MORE = 2, 3  # classes taken apart in one step: FEWEST, and fewer than MORE besides
SKIPPED = 0.4  # how often a near class is passed over, so that a record does not meet the same ones each time
LOWEST, SPREAD = 0.7, 0.6  # the random factor of a merge is between the first and both together
HALF = 0.5  # of its price for a merge that makes a class which keeps the promises
TURNS = 3  # times records are looked at for a better part; most have found it after the first

FREE = np.dtype([("classes", np.int64)], align=True)
POOLED = np.dtype([("classes", np.int64), ("records", np.int64)], align=True)


# Truth is 0 or 1 here: numba cannot read a kernel back from disk whose types mix named tuples and booleans
class CellClasses(NamedTuple):
    """A partition of records that can be changed class by class."""

    records: Nodes  # (n, q) what each record says
    weight: Ints  # (n) what each adds to the make-up of its class
    stands: Ints  # (n) for how many each stands
    holds: NDArray[np.uint8]  # 1 if a class of this make-up keeps the promises, else 0
    label: Rows  # (n)
    after: Rows  # (n) the next record of the same class, -1 at the end
    head: Rows  # (g) the first record of a class, -1 if it is empty
    size: Ints  # (g)
    mass: Ints  # (g) how many records it stands for
    said: Nodes  # (g, q) what each class says
    near: Rows  # (n, t) records near each record
    free: Rows  # (n) the empty classes, as many of it as `unused` says
    unused: Any  # (1) how many classes are empty
    stream: Ints  # the state of the random stream


class Parts(NamedTuple):
    """Room for the classes that are taken apart and what becomes of them."""

    pool: Ints  # the records
    part: Ints  # the part of each
    into: Ints
    size: Ints  # of each part
    mass: Ints  # of each part
    made: Ints  # the make-up of each part
    says: Nodes
    chosen: Ints  # the classes taken apart
    pooled: Any  # (1) how many classes, and how many records they have


def classes_of(
    records: Nodes, weight: Ints, stands: Ints, holds: NDArray[Any], near: Rows, stream: Ints
) -> CellClasses:
    """Return room for a partition of these records; the labels are for the caller to fill, the rest for `lay_out`."""
    n, q = records.shape
    label, after, head, free = (np.zeros(n, np.int32) for _ in range(4))
    size, mass, said = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, q), np.int32)
    unused, kept = np.zeros(1, FREE).view(np.recarray), holds.astype(np.uint8)
    held = (records, weight, stands, kept, label, after, head)
    return CellClasses(*held, size, mass, said, near, free, unused, stream)


def parts_of(pool: int, attributes: int) -> Parts:
    """Return room for a step that takes up to so many records apart."""
    records, part, into, size, mass, made = (np.zeros(pool, np.int64) for _ in range(6))
    says, chosen = np.zeros((pool, attributes), np.int32), np.zeros(FEWEST + MORE, np.int64)
    return Parts(records, part, into, size, mass, made, says, chosen, np.zeros(1, POOLED).view(np.recarray))


_ONE = np.zeros((1, 1), np.int32)
_CLASSES = classes_of(_ONE, np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1), _ONE, np.ones(2, np.int64))
_PARTS = parts_of(1, 1)


@inner
def give_back(c: CellClasses, g: int) -> None:
    """Note that class g is empty."""
    c.free[c.unused[0].classes] = g
    c.unused[0].classes += 1


@entry(_CLASSES, statements.example())
def lay_out(c: CellClasses, f: Forest) -> None:
    """Fill everything that follows from the labels."""
    n = c.label.size
    c.head[:] = -1
    c.size[:] = 0
    c.mass[:] = 0
    for record in range(n - 1, -1, -1):
        g = c.label[record]
        if c.size[g] == 0:
            c.said[g] = c.records[record]
        else:
            widen(f, c.said[g], c.records[record])
        c.after[record] = c.head[g]
        c.head[g] = record
        c.size[g] += 1
        c.mass[g] += c.stands[record]
    c.unused[0].classes = 0
    for g in range(n - 1, -1, -1):
        if c.size[g] == 0:
            give_back(c, g)


@inner
def class_cost(c: CellClasses, f: Forest, g: int) -> float:
    """Return what a class loses, and MISSED for each of its records if it misses a promise."""
    made, i = 0, c.head[g]
    while i >= 0:
        made += c.weight[i]
        i = c.after[i]
    return float(c.mass[g] * (said(f, c.said[g]) + (0.0 if c.holds[made] else MISSED)))


@inner
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


@inner
def _gather(c: CellClasses, p: Parts, record: int) -> None:
    """Put the records of the drawn record's class and of some near it into the pool."""
    want = FEWEST + below(c.stream, MORE)
    now = p.pooled[0]
    now.records, now.classes = 0, 0
    _take(c, p, c.label[record])
    for turn in range(c.near.shape[1]):
        if now.classes == want:
            return
        if c.near[record, turn] >= 0 and draw(c.stream) >= SKIPPED:
            _take(c, p, c.label[c.near[record, turn]])


@inner
def _same(one: Nodes, other: Nodes) -> int:
    for a in range(one.size):
        if one[a] != other[a]:
            return 0
    return 1


@inner
def _distinct(c: CellClasses, p: Parts) -> int:
    """Put equal records together and return how many parts there are."""
    parts = 0
    for i in range(p.pooled[0].records):
        p.part[i] = -1
        for other in range(parts):
            if _same(p.says[other], c.records[p.pool[i]]):
                p.part[i] = other
                break
        if p.part[i] < 0:
            p.part[i] = parts
            p.size[parts], p.mass[parts], p.made[parts] = 0, 0, 0
            p.says[parts] = c.records[p.pool[i]]
            parts += 1
        p.size[p.part[i]] += 1
        p.mass[p.part[i]] += c.stands[p.pool[i]]
        p.made[p.part[i]] += c.weight[p.pool[i]]
    return parts


@inner
def _price(c: CellClasses, f: Forest, p: Parts, one: int, other: int) -> float:
    both = joined(f, p.says[one], p.says[other])
    lost = p.mass[one] * said(f, p.says[one]) + p.mass[other] * said(f, p.says[other])
    change = (p.mass[one] + p.mass[other]) * both - lost
    noise = LOWEST + SPREAD * draw(c.stream)
    return float(change * (HALF * noise if c.holds[p.made[one] + p.made[other]] else noise))


@inner
def _merged(c: CellClasses, f: Forest, p: Parts, parts: int) -> None:
    """Merge parts until each keeps the promises or one is left; into[x] is where the records of part x went."""
    price = np.full((parts, parts), np.inf)
    for x in range(parts):
        p.into[x] = x
        for y in range(x):
            price[x, y] = price[y, x] = _price(c, f, p, x, y)
    while True:
        best, one, other = np.inf, -1, -1
        for x in range(parts):
            if p.size[x] > 0 and not c.holds[p.made[x]]:
                for y in range(parts):
                    if price[x, y] < best:
                        best, one, other = price[x, y], x, y
        if one < 0:
            break
        widen(f, p.says[other], p.says[one])
        p.size[other] += p.size[one]
        p.mass[other] += p.mass[one]
        p.made[other] += p.made[one]
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
    """Say of each part no more than covers its records."""
    p.size[:] = 0
    p.mass[:] = 0
    p.made[:] = 0
    for i in range(p.pooled[0].records):
        x = p.part[i]
        if p.size[x] == 0:
            p.says[x] = c.records[p.pool[i]]
        else:
            widen(f, p.says[x], c.records[p.pool[i]])
        p.size[x] += 1
        p.mass[x] += c.stands[p.pool[i]]
        p.made[x] += c.weight[p.pool[i]]


@inner
def _covers(f: Forest, one: Nodes, other: Nodes) -> int:
    for a in range(one.size):
        if f.low[one[a]] > f.low[other[a]] or f.high[one[a]] < f.high[other[a]]:
            return 0
    return 1


@inner
def _settled(c: CellClasses, f: Forest, p: Parts) -> int:
    """Move records to parts that cover them already and say more; return how many moved."""
    moved = 0
    for i in range(p.pooled[0].records):
        own, weight = p.part[i], c.weight[p.pool[i]]
        if p.size[own] < 2 or not c.holds[p.made[own] - weight]:
            continue
        best, least = -1, said(f, p.says[own]) - ROUNDING
        for x in range(p.pooled[0].records):
            if x != own and p.size[x] > 0 and _covers(f, p.says[x], c.records[p.pool[i]]):
                lost = said(f, p.says[x])
                if lost < least and c.holds[p.made[x] + weight]:
                    best, least = x, lost
        if best >= 0:
            p.part[i] = best
            p.size[own] -= 1
            p.size[best] += 1
            p.made[own] -= weight
            p.made[best] += weight
            moved += 1
    return moved


@inner
def _cost(c: CellClasses, f: Forest, p: Parts) -> float:
    total = 0.0
    for x in range(p.pooled[0].records):
        if p.size[x] > 0:
            total += p.mass[x] * said(f, p.says[x])
            if not c.holds[p.made[x]]:
                total += MISSED * p.mass[x]
    return total


@inner
def _cost_before(c: CellClasses, f: Forest, p: Parts) -> float:
    total = 0.0
    for place in range(p.pooled[0].classes):
        total += class_cost(c, f, p.chosen[place])
    return total


@entry(_CLASSES, statements.example(), _PARTS)
def cost(c: CellClasses, f: Forest, p: Parts) -> float:
    """Return what all classes cost; those too large to be taken apart were merged until they kept promises."""
    total = 0.0
    for g in range(c.size.size):
        if 0 < c.size[g] <= p.pool.size:
            total += class_cost(c, f, g)
        elif c.size[g] > 0:
            total += c.mass[g] * said(f, c.said[g])
    return total


@inner
def _replace(c: CellClasses, p: Parts) -> None:
    """Give the new parts the numbers of the old classes, then free ones; numbers left over become free."""
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
            c.said[p.into[x]] = p.says[x]
        c.label[record] = p.into[x]
        c.after[record] = c.head[p.into[x]]
        c.head[p.into[x]] = record


@entry(_CLASSES, statements.example(), _PARTS, np.zeros(1))
def rebuild(c: CellClasses, f: Forest, p: Parts, heats: NDArray[np.float64]) -> float:
    """Take a step for each heat and return the change of cost; a hot step may cost more, at random."""
    change = 0.0
    for t in range(heats.size):
        _gather(c, p, below(c.stream, c.label.size))
        if p.pooled[0].classes == 0:
            continue
        before = _cost_before(c, f, p)
        _merged(c, f, p, _distinct(c, p))
        for i in range(p.pooled[0].records):
            p.part[i] = p.into[p.part[i]]
        for _ in range(TURNS):
            _restate(c, f, p)
            if _settled(c, f, p) == 0:
                break
        _restate(c, f, p)
        after = _cost(c, f, p)
        if after <= before - heats[t] * math.log(draw(c.stream)) + ROUNDING:
            change += after - before
            _replace(c, p)
    return change

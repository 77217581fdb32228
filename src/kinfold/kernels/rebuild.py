"""Rebuilding: take a few neighbouring classes apart and merge their records anew, at random; keep what costs less.

    a step  draws a record; its class and a few of the classes nearest to it are taken apart
            equal records go together; then, while a part misses a promise, the pair that costs least (times a random
            factor, and half if the union keeps the promises) of which one misses it is merged
            records that would lose less in another part that covers them go there, if both still keep the promises
            the parts replace the old classes if fewer records miss a promise, or as many and they cost no more than
            a random threshold around the heat of the step

What a class is made of is one number, the sum of its records' weights, and `holds` says for each number whether such
a class keeps the promises. For k-anonymity alone every weight is 1 and the number is the size.

Only the steps and the random stream decide, never a clock.   Ties: the first found.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from kinfold.kernels.draws import draw
from kinfold.kernels.statements import FOREST, STATEMENT, Forest, joined, said, widen


# Truth is 0 or 1 here: numba cannot read a kernel back from disk whose types mix named tuples and booleans
class Classes(NamedTuple):
    """A partition of records that can be changed class by class."""

    records: np.ndarray  # (n, q) what each record says
    weight: np.ndarray  # (n) what each adds to the make-up of its class
    holds: np.ndarray  # 1 if a class of this make-up keeps the promises, else 0
    label: np.ndarray  # (n)
    after: np.ndarray  # (n) the next record of the same class, -1 at the end
    head: np.ndarray  # (g) the first record of a class, -1 if it is empty
    size: np.ndarray  # (g)
    said: np.ndarray  # (g, q) what each class says
    near: np.ndarray  # (n, t) records near each record
    free: np.ndarray  # empty classes; free[-1] is how many there are
    stream: np.ndarray  # the state of the random stream


CLASSES = numba.types.NamedTuple(  # type: ignore[no-untyped-call]
    [
        numba.int32[:, ::1],
        numba.int64[::1],
        numba.uint8[::1],
        numba.int32[::1],
        numba.int32[::1],
        numba.int32[::1],
        numba.int64[::1],
        numba.int32[:, ::1],
        numba.int32[:, ::1],
        numba.int32[::1],
        numba.int64[::1],
    ],
    Classes,
)


class Parts(NamedTuple):
    """Room for the classes that are taken apart and what becomes of them."""

    pool: np.ndarray  # the records
    part: np.ndarray  # the part of each
    into: np.ndarray
    size: np.ndarray  # of each part
    made: np.ndarray  # the make-up of each part
    says: np.ndarray
    chosen: np.ndarray  # how many classes, and which
    many: np.ndarray  # how many records


PARTS = numba.types.NamedTuple(  # type: ignore[no-untyped-call]
    [
        numba.int64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.int32[:, ::1],
        numba.int64[::1],
        numba.int64[::1],
    ],
    Parts,
)
ROUNDING = 1e-12
MISSED = 1e3  # for each record in a class that misses a promise: more than any statement can lose
_int = numba.int64
_float = numba.float64
_ints = numba.int64[::1]


@numba.njit(numba.void(CLASSES, FOREST), cache=True)
def lay_out(c: Classes, f: Forest) -> None:
    """Fill everything that follows from the labels."""
    n = c.label.size
    c.head[:] = -1
    c.size[:] = 0
    for record in range(n - 1, -1, -1):
        g = c.label[record]
        if c.size[g] == 0:
            c.said[g] = c.records[record]
        else:
            widen(f, c.said[g], c.records[record])
        c.after[record] = c.head[g]
        c.head[g] = record
        c.size[g] += 1
    c.free[n] = 0
    for g in range(n - 1, -1, -1):
        if c.size[g] == 0:
            c.free[c.free[n]] = g
            c.free[n] += 1


@numba.njit(_float(CLASSES, FOREST, _int), cache=True)
def class_cost(c: Classes, f: Forest, g: int) -> float:
    """Return what a class loses, and MISSED for each of its records if it misses a promise."""
    made, i = 0, c.head[g]
    while i >= 0:
        made += c.weight[i]
        i = c.after[i]
    return float(c.size[g] * (said(f, c.said[g]) + (0.0 if c.holds[made] else MISSED)))


@numba.njit(_int(CLASSES, _int, _ints, _ints), cache=True)
def _pooled(c: Classes, record: int, pool: np.ndarray, chosen: np.ndarray) -> int:
    """Gather the records of the drawn record's class and of some near it; chosen[0] counts the classes."""
    want = 2 + int(draw(c.stream) * 3)
    count, chosen[0] = 0, 0
    for turn in range(-1, c.near.shape[1]):
        if turn >= 0 and (c.near[record, turn] < 0 or draw(c.stream) < 0.4):
            continue
        g = c.label[record] if turn < 0 else c.label[c.near[record, turn]]
        known = count + c.size[g] > pool.size
        for place in range(1, chosen[0] + 1):
            known = known or chosen[place] == g
        if known:
            continue
        chosen[0] += 1
        chosen[chosen[0]] = g
        i = c.head[g]
        while i >= 0:
            pool[count] = i
            count += 1
            i = c.after[i]
        if chosen[0] == want:
            break
    return count


@numba.njit(numba.int64(STATEMENT, STATEMENT), cache=True)
def _same(one: np.ndarray, other: np.ndarray) -> int:
    for a in range(one.size):
        if one[a] != other[a]:
            return 0
    return 1


@numba.njit(_int(CLASSES, PARTS), cache=True)
def _distinct(c: Classes, p: Parts) -> int:
    """Put equal records together and return how many parts there are."""
    parts = 0
    for i in range(p.many[0]):
        p.part[i] = -1
        for other in range(parts):
            if _same(p.says[other], c.records[p.pool[i]]):
                p.part[i] = other
                break
        if p.part[i] < 0:
            p.part[i] = parts
            p.size[parts], p.made[parts] = 0, 0
            p.says[parts] = c.records[p.pool[i]]
            parts += 1
        p.size[p.part[i]] += 1
        p.made[p.part[i]] += c.weight[p.pool[i]]
    return parts


@numba.njit(_float(CLASSES, FOREST, PARTS, _int, _int), cache=True)
def _price(c: Classes, f: Forest, p: Parts, one: int, other: int) -> float:
    both = joined(f, p.says[one], p.says[other])
    lost = p.size[one] * said(f, p.says[one]) + p.size[other] * said(f, p.says[other])
    change = (p.size[one] + p.size[other]) * both - lost
    noise = 0.7 + 0.6 * draw(c.stream)
    return float(change * (0.5 * noise if c.holds[p.made[one] + p.made[other]] else noise))


@numba.njit(numba.void(CLASSES, FOREST, PARTS, _int), cache=True)
def _merged(c: Classes, f: Forest, p: Parts, parts: int) -> None:
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
        p.made[other] += p.made[one]
        p.size[one] = 0
        for x in range(parts):
            if p.into[x] == one:
                p.into[x] = other
            price[x, one] = price[one, x] = np.inf
        for x in range(parts):
            if p.size[x] > 0 and x != other:
                price[x, other] = price[other, x] = _price(c, f, p, x, other)


@numba.njit(numba.void(CLASSES, FOREST, PARTS), cache=True)
def _restate(c: Classes, f: Forest, p: Parts) -> None:
    """Say of each part no more than covers its records."""
    p.size[:] = 0
    p.made[:] = 0
    for i in range(p.many[0]):
        x = p.part[i]
        if p.size[x] == 0:
            p.says[x] = c.records[p.pool[i]]
        else:
            widen(f, p.says[x], c.records[p.pool[i]])
        p.size[x] += 1
        p.made[x] += c.weight[p.pool[i]]


@numba.njit(numba.int64(FOREST, STATEMENT, STATEMENT), cache=True)
def _covers(f: Forest, one: np.ndarray, other: np.ndarray) -> int:
    for a in range(one.size):
        if f.low[one[a]] > f.low[other[a]] or f.high[one[a]] < f.high[other[a]]:
            return 0
    return 1


@numba.njit(_int(CLASSES, FOREST, PARTS), cache=True)
def _settled(c: Classes, f: Forest, p: Parts) -> int:
    """Move records to parts that cover them already and say more; return how many moved."""
    moved = 0
    for i in range(p.many[0]):
        own, weight = p.part[i], c.weight[p.pool[i]]
        if p.size[own] < 2 or not c.holds[p.made[own] - weight]:
            continue
        best, least = -1, said(f, p.says[own]) - 1e-12
        for x in range(p.many[0]):
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


@numba.njit(_float(CLASSES, FOREST, PARTS), cache=True)
def _cost(c: Classes, f: Forest, p: Parts) -> float:
    total = 0.0
    for x in range(p.many[0]):
        if p.size[x] > 0:
            total += p.size[x] * said(f, p.says[x])
            if not c.holds[p.made[x]]:
                total += MISSED * p.size[x]
    return total


@numba.njit(_float(CLASSES, FOREST, PARTS), cache=True)
def _cost_before(c: Classes, f: Forest, p: Parts) -> float:
    total = 0.0
    for place in range(1, p.chosen[0] + 1):
        total += class_cost(c, f, p.chosen[place])
    return total


@numba.njit(_float(CLASSES, FOREST, PARTS), cache=True)
def cost(c: Classes, f: Forest, p: Parts) -> float:
    """Return what all classes cost; those too large to be taken apart were merged until they kept promises."""
    total = 0.0
    for g in range(c.size.size):
        if 0 < c.size[g] <= p.pool.size:
            total += class_cost(c, f, g)
        elif c.size[g] > 0:
            total += c.size[g] * said(f, c.said[g])
    return total


@numba.njit(numba.void(CLASSES, PARTS), cache=True)
def _replace(c: Classes, p: Parts) -> None:
    """Give the new parts the numbers of the old classes, then free ones; numbers left over become free."""
    last = c.free.size - 1
    for place in range(p.chosen[0], 0, -1):
        g = p.chosen[place]
        c.size[g], c.head[g] = 0, -1
        c.free[c.free[last]] = g
        c.free[last] += 1
    p.into[:] = -1
    for i in range(p.many[0] - 1, -1, -1):
        x, record = p.part[i], p.pool[i]
        if p.into[x] < 0:
            c.free[last] -= 1
            p.into[x] = c.free[c.free[last]]
            c.size[p.into[x]] = p.size[x]
            c.said[p.into[x]] = p.says[x]
        c.label[record] = p.into[x]
        c.after[record] = c.head[p.into[x]]
        c.head[p.into[x]] = record


@numba.njit(_float(CLASSES, FOREST, PARTS, _float[::1]), cache=True)
def rebuild(c: Classes, f: Forest, p: Parts, heats: np.ndarray) -> float:
    """Take a step for each heat and return the change of cost; a hot step may cost more, at random."""
    change = 0.0
    for t in range(heats.size):
        p.many[0] = _pooled(c, int(draw(c.stream) * c.label.size), p.pool, p.chosen)
        if p.chosen[0] == 0:
            continue
        before = _cost_before(c, f, p)
        _merged(c, f, p, _distinct(c, p))
        for i in range(p.many[0]):
            p.part[i] = p.into[p.part[i]]
        for _turn in range(3):
            _restate(c, f, p)
            if _settled(c, f, p) == 0:
                break
        _restate(c, f, p)
        after = _cost(c, f, p)
        if after <= before - heats[t] * math.log(draw(c.stream)) + ROUNDING:
            change += after - before
            _replace(c, p)
    return change

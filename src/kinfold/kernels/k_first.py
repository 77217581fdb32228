"""Completing a cluster: the next records replace members until the cluster keeps its promises.

    while the cluster misses its promises and records are left:
        y = the nearest remaining record;  y' = the member that y replaces best
        exchange them if that brings the cluster closer to the table

`complete` judges an exchange by how much all promises together are missed, and tries one record after the other.

`advance` is for one distance over ordered values, which is lowered as much as possible, as in the paper. The effect of
an exchange depends on the value of the record alone. The work of a value v that joins k - 1 others, B(u) of which are
at most u, is, with N(u) of the n records of the table at most u:

    Σ_{u below v} |B(u)·n - k·N(u)| + Σ_{u from v on} |(B(u) + 1)·n - k·N(u)|

From one value to the next it grows by |B·n - k·N| - |(B + 1)·n - k·N|, which rises with N: between two of the others it
is convex, and least where k·N passes (B + 1/2)·n. So the values that lower the distance are at most k² spans, whose
ends are found by halving. The next record is the nearest one that comes after the last exchange with a value in a
span. The records are in one box tree for each stratum of the values: strata outside the spans are not searched.

Paper: Soria-Comas et al. 2015, Algorithm 2 (GenerateCluster).   Cost of e exchanges: `advance` e (k² log m + the strata
in the spans) for m values, `complete` O(n log n + n k²).
Ties: the nearest record of the lowest row; the member of the lowest row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfold.kernels import box_tree, clustering
from kinfold.kernels.box_tree import NO_RECORD, Tree
from kinfold.kernels.clustering import Run, take
from kinfold.kernels.compiling import Flag, Floats, Int, Ints, Real, Rows, entry, inner, lean
from kinfold.kernels.promises import Promises, example_promises, find_crossing, measure_miss, ordered_work
from kinfold.kernels.queries import Query, find_farthest, find_nearest, locate, search_after, shrink_around
from kinfold.kernels.records import to_centre, to_record


@inner
def sift(distances: Floats, heap: Ints, at: int, size: int) -> None:
    """Let the element at this place of the heap sink. Ties: the lower position."""
    item = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and is_nearer(distances, heap[child + 1], heap[child]):
            child += 1
        if not is_nearer(distances, heap[child], item):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item


@inner
def is_nearer(distances: Floats, a: int, b: int) -> bool:
    """Whether position a comes before position b."""
    return distances[a] < distances[b] or (distances[a] == distances[b] and a < b)


@inner
def gather_nearest(distances: Floats, heap: Ints, k: int) -> Ints:
    """Take the k nearest positions from a heap; the rest stays a heap."""
    size = heap.size
    for at in range(size // 2 - 1, -1, -1):
        sift(distances, heap, at, size)
    nearest = np.empty(k, np.int64)
    for t in range(k):
        nearest[t] = heap[0]
        size -= 1
        heap[0] = heap[size]
        sift(distances, heap, 0, size)
    return nearest


@entry(example_promises(), np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int32))
def complete(limits: Promises, rows: Ints, distances: Floats, members: Rows) -> None:
    """Choose the records of a cluster, from `rows` (ascending) and their distances to the seed, for any promises.

    An exchange is judged by how much the promises are missed.
    """
    heap = np.arange(rows.size)
    k = members.size
    members[:] = np.sort(rows[gather_nearest(distances, heap, k)])
    size = rows.size - k
    now = measure_miss(limits, members, -1, -1, np.inf)
    while size > 0 and now > 0.0:
        candidate = rows[heap[0]]
        size -= 1
        heap[0] = heap[size]
        sift(distances, heap, 0, size)
        best, place = now, -1
        for t in range(k):
            after = measure_miss(limits, members, members[t], candidate, best)
            if after < best:
                best, place = after, t
        if place >= 0:
            now = best
            members[place] = candidate
            members.sort()


class Exchange(NamedTuple):
    """The cluster that is being formed, and the values that would bring it closer to the table."""

    members: Rows  # (k,) ascending
    held: Ints  # (k,) their codes, ascending
    others: Ints  # (k + 1,) 0, the codes of the members but one, and the last code of the table
    before: Floats  # (k + 1,) work below each of the others, if the code comes later
    after: Floats  # (k + 1,) work from each of the others on, if the code came earlier
    span: Ints  # (k², 2) first and last code of each span, apart
    low: Ints  # (strata,) lowest code of each
    high: Ints  # (strata,)


def make_exchange(k: int, low: Ints, high: Ints) -> Exchange:
    """Return room for clusters of k records from strata with these codes."""
    held, others, span = (np.zeros(shape, np.int64) for shape in (k, k + 1, (k * k, 2)))
    return Exchange(np.zeros(k, np.int32), held, others, np.zeros(k + 1), np.zeros(k + 1), span, low, high)


@lean
def _sum_between(p: Promises, k: Int, level: Int, first: Int, past: Int) -> Real:
    """Return the work of the codes from `first` to before `past`, at which a class of k has `level` records so far."""
    area = p.area
    turn = min(max(find_crossing(p, 0, k, level), first), past)
    height = level * p.below[p.start[1] - 1]
    less = height * (turn - first) - k * (area[turn] - area[first])
    return less + k * (area[past] - area[turn]) - height * (past - turn)


@lean
def _leave_out(p: Promises, e: Exchange, t: Int) -> None:
    """List the codes of all members but one, and sum the work between them."""
    k, count, code = e.members.size, 1, p.codes[0, e.members[t]]
    left_out = False
    for i in range(k):
        if e.held[i] == code and not left_out:
            left_out = True
            continue
        e.others[count] = e.held[i]
        count += 1
    e.others[k] = p.start[1] - 1
    e.before[0] = e.after[k] = 0.0
    for i in range(k):
        e.before[i + 1] = e.before[i] + _sum_between(p, k, i, e.others[i], e.others[i + 1])
    for i in range(k - 1, -1, -1):
        e.after[i] = e.after[i + 1] + _sum_between(p, k, i + 1, e.others[i], e.others[i + 1])


@lean
def _measure_work(p: Promises, e: Exchange, level: Int, code: Int) -> Real:
    """Return the work of the others and this code, which `level` of them come before."""
    k = e.members.size
    below = e.before[level] + _sum_between(p, k, level, e.others[level], code)
    return below + _sum_between(p, k, level + 1, code, e.others[level + 1]) + e.after[level + 1]


@lean
def _halve_to(p: Promises, e: Exchange, level: Int, inside: Int, outside: Int, limit: Real) -> Int:
    """Return the last code from `inside` towards `outside` whose work is below the limit."""
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if _measure_work(p, e, level, middle) < limit:
            inside = middle
        else:
            outside = middle
    return inside


@lean
def _find_least(p: Promises, k: Int, level: Int, low: Int, high: Int) -> Int:
    """Return the code of least work from low to high, where `level` of the k - 1 others are below all but the first."""
    n = p.below[p.start[1] - 1]
    while low < high:
        middle = (low + high) // 2
        if 2.0 * k * p.below[middle] >= (2 * level + 1) * n:
            high = middle
        else:
            low = middle + 1
    return low


@lean
def _add_span(span: Ints, count: Int, first: Int, last: Int) -> Int:
    """Add a span, joined with those it touches; return the number of spans."""
    kept = 0
    for i in range(count):
        if span[i, 1] < first - 1 or span[i, 0] > last + 1:
            span[kept, 0], span[kept, 1] = span[i, 0], span[i, 1]
            kept += 1
        else:
            first, last = min(first, span[i, 0]), max(last, span[i, 1])
    span[kept, 0], span[kept, 1] = first, last
    return kept + 1


@lean
def _is_covered(span: Ints, count: Int, first: Int, last: Int) -> Flag:
    """Whether all these codes are in one span already; for large k most are after the first members."""
    covered = False
    for i in range(count):
        covered |= span[i, 0] <= first and last <= span[i, 1]
    return covered


@lean
def _find_spans(p: Promises, e: Exchange, limit: Real) -> Int:
    """Find the codes that lower the work of the cluster below the limit, in some member's place; return how many."""
    k, count = e.members.size, 0
    for t in range(k):
        _leave_out(p, e, t)
        for level in range(k):
            low, high = e.others[level], e.others[level + 1]
            if _is_covered(e.span, count, low, high):
                continue
            least = _find_least(p, k, level, low, high)
            if _measure_work(p, e, level, least) < limit:
                first = _halve_to(p, e, level, least, low - 1, limit)
                count = _add_span(e.span, count, first, _halve_to(p, e, level, least, high + 1, limit))
    return count


@lean
def _find_place(p: Promises, e: Exchange, code: Int) -> Int:
    """Return the member that a record with this code replaces best."""
    place, best = 0, np.inf
    for t in range(e.members.size):
        _leave_out(p, e, t)
        level = 0
        while level + 1 < e.members.size and e.others[level + 1] <= code:
            level += 1
        work = _measure_work(p, e, level, code)
        if work < best:
            place, best = t, work
    return place


@lean
def _put(members: Rows, place: Int, record: Int) -> None:
    """Put a record in the place of a member, and keep the members in order."""
    while place > 0 and members[place - 1] > record:
        members[place] = members[place - 1]
        place -= 1
    while place + 1 < members.size and members[place + 1] < record:
        members[place] = members[place + 1]
        place += 1
    members[place] = record


@lean
def _find_next(
    tree: Tree, query: Query, p: Promises, e: Exchange, spans: Int, last: Real, record: Int
) -> tuple[Real, Int]:
    """Return the nearest record in the spans that comes after this distance and record, and its distance."""
    best, first = np.inf, np.int64(NO_RECORD)
    for s in range(e.low.size):
        for i in range(spans):
            if e.span[i, 0] <= e.high[s] and e.low[s] <= e.span[i, 1]:
                best, first = search_after(tree, query, s, p.codes[0], e.span[:spans], (last, record), (best, first))
                break
    return best, first


@lean
def _form(tree: Tree, run: Run, p: Promises, e: Exchange) -> None:
    """Choose the records of the cluster around the place, and take them."""
    query, k = run.query, e.members.size
    request = query.request[0]
    request.count, request.wanted = 0, k
    for s in range(e.low.size):
        find_nearest(tree, run.folded, query, s)
    for t in range(k):
        e.members[t] = query.nearest[t].record
        _put(e.members[: t + 1], t, query.nearest[t].record)
    last, record = query.nearest[k - 1].distance, np.int64(query.nearest[k - 1].record)
    while measure_miss(p, e.members, -1, -1, np.inf) > 0.0:
        for t in range(k):
            e.held[t] = p.codes_held[t]  # gathered just now
        spans = _find_spans(p, e, ordered_work(p, 0, k))
        last, record = _find_next(tree, query, p, e, spans, last, record)
        if record == NO_RECORD:
            break
        _put(e.members, _find_place(p, e, p.codes[0, record]), record)
    for t in range(k):
        locate(tree, run.folded, query, t, e.members[t])
    take(tree, run, k)
    shrink_around(tree, query, k)


@entry(
    clustering.example_run(), box_tree.example_tree(), example_promises(),
    make_exchange(1, np.zeros(1, np.int64), np.zeros(1, np.int64)), 1,
)  # fmt: skip
def advance(run: Run, tree: Tree, p: Promises, e: Exchange, clusters: Int) -> None:
    """Form at most this many clusters, while there are records for two of them and the trees are worth it."""
    state = run.state[0]
    for _ in range(clusters):
        if state.records < 2 * state.k or state.points < state.enough:
            return
        if state.label % 2 == 0:
            to_centre(state.records, run.m.scales, run.centroid, run.query.place)
        to_record(run.m, run.query.place, find_farthest(tree, run.query))
        _form(tree, run, p, e)
        state.label += 1

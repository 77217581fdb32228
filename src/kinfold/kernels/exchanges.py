"""Exchanges: who may change places with whom, drawn at random, and the change itself.

A neighbour is drawn along curves through the table (see `partition.curves`). Records that tie are at one place of a
curve: so a step leads to other values, however many records have the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinfold.kernels.compiling import inlined
from kinfold.kernels.draws import below
from kinfold.kernels.groups import Groups, admits, join, leave

if TYPE_CHECKING:
    from kinfold.kernels.draws import Stream
    from kinfold.kernels.groups import Rows
    from kinfold.kernels.mixed import Mixed
    from kinfold.kernels.promises import Promises


class Curves(NamedTuple):
    """Orders of the places where records are, that keep neighbours together, and the records at each place."""

    order: Rows  # (curves, places)
    turn: Rows  # (curves, places) where each place stands in the order
    place: Rows  # (n) of each record
    start: Rows  # (places + 1) where the records of a place start in `there`
    there: Rows  # (n) the records of one place after the other


def example() -> Curves:
    """Return the smallest curve, to compile for."""
    row, table = np.zeros(1, np.int32), np.zeros((1, 1), np.int32)
    return Curves(table, table, row, row, row)


@inlined
def neighbour(around: Curves, stream: Stream, i: int, widest: int, anywhere: int) -> int:
    """Draw a record at most 2^widest places from i along some curve, or, once in `anywhere` times, any record."""
    if below(stream, anywhere) == 0:
        return below(stream, around.place.size)
    c = below(stream, around.order.shape[0])
    reach = 1 << (1 + below(stream, widest))
    at = around.turn[c, around.place[i]] + below(stream, 2 * reach + 1) - reach
    there = around.order[c, min(max(at, 0), around.order.shape[1] - 1)]
    first, many = around.start[there], around.start[there + 1] - around.start[there]
    return around.there[first + below(stream, many) if many > 1 else first]


@inlined
def any_member(s: Groups, stream: Stream, g: int) -> int:
    """Draw a member of group g."""
    return s.members[s.start[g] + below(stream, s.size[g])]


@inlined
def alike(p: Promises, i: int, l: int) -> bool:
    """Tell whether no promise can tell these records apart."""
    for row in range(p.codes.shape[0]):  # noqa: SIM110  kernels have no generators
        if p.codes[row, i] != p.codes[row, l]:
            return False
    return True


@inlined
def allowed(p: Promises, s: Groups, i: int, l: int, b: int) -> bool:
    """Tell whether both groups keep their promises when i goes to b, and l (-1: nobody) takes its place."""
    a = s.label[i]
    if l >= 0 and alike(p, i, l):
        return True
    for t in range(2):  # noqa: SIM110  a loop, so that the compiler meets the promises once
        if not admits(p, s, a if t == 0 else b, i if t == 0 else l, l if t == 0 else i):
            return False
    return True


@inlined
def make(d: Mixed, p: Promises, s: Groups, i: int, l: int, b: int) -> None:
    """Send i to b, and l (-1: nobody) to where i was."""
    a = s.label[i]
    for t in range(2):
        record = i if t == 0 else l
        if record >= 0:
            leave(d, p, s, record)
    for t in range(2):
        record = i if t == 0 else l
        if record >= 0:
            join(d, p, s, record, b if t == 0 else a)

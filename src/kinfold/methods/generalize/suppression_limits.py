"""Limits: of some columns no more than a share of the cells may go.

    find the fewest cells; if a limit is broken, see that it can be kept at all: with its column next to untouchable
    then let each column that breaks its limit count for a little more, and find again, until none does

A column of which nothing may go is next to untouchable from the start. The rounds go without rebuilding; what is found
last is rebuilt if the limits hold after it as well. That a limit cannot be kept is found out by search, not proved.

Cost: up to about 25 searches, most of them stop after a few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kinfold.errors import Problem, Unreachable
from kinfold.methods.generalize.domain import Floats
from kinfold.methods.generalize.loss import CellLoss

if TYPE_CHECKING:
    from kinfold.methods.generalize.local_suppression import Suppressed

Find: TypeAlias = "Callable[[CellLoss, bool], Suppressed]"  # by what cells cost, and whether to go as far as it goes

STRICTER = 1.3  # times as much counts a column, round after round, of which too many cells go
MUCH = 100.0  # beyond it a column is as good as untouchable
UNTOUCHABLE = 1e6


def within(loss: CellLoss, limits: Mapping[str, float], find: Find) -> Suppressed:
    """Return the fewest cells by which every column keeps its limit, or say how near the nearest was."""
    allowed = np.array([limits.get(name, 1.0) for name in loss.domain.names])
    if (allowed == 1).all():
        return find(loss, True)
    plain = find(loss, False)
    if (plain.shares > allowed).any():
        loss, plain = _stricter(loss, allowed, find)
    thorough = find(loss, True)
    return thorough if (thorough.shares <= allowed).all() else plain


def _stricter(loss: CellLoss, allowed: Floats, find: Find) -> tuple[CellLoss, Suppressed]:
    """Return what cells have to cost so that the limits hold, and what is found then."""
    strictest = _counting(loss, np.where(allowed < 1, UNTOUCHABLE, 1.0))
    nearest = find(strictest, False)
    _require(nearest, allowed)
    factors = np.where(allowed == 0, UNTOUCHABLE, 1.0)
    while True:
        priced = _counting(loss, factors)
        found = find(priced, False)
        over = found.shares > allowed
        if not over.any():
            return priced, found
        if (factors[over] >= UNTOUCHABLE).all():
            return strictest, nearest
        factors[over] = np.where(factors[over] * STRICTER > MUCH, UNTOUCHABLE, factors[over] * STRICTER)


def _counting(loss: CellLoss, factors: Floats) -> CellLoss:
    weights = loss.weights * factors
    return replace(loss, weights=weights / weights.sum())


def _require(best: Suppressed, allowed: Floats) -> None:
    shares = best.shares
    missed = [
        Problem(
            f"method.limit: of the cells of '{name}' {allowed[a]:.1%} may go, and {shares[a]:.1%} is the best found",
            "raise the limit, ask for less, or recode the column first",
        )
        for a, name in enumerate(best.generalization.domain.names)
        if shares[a] > allowed[a]
    ]
    if missed:
        raise Unreachable(missed)

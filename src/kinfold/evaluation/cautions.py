"""Cautions: what may go wrong beside a promise that holds.

    protected by k alone    a class that shares one confidential value tells it of everybody in it
    dominance               the average of a class gives away its largest record
    singling                a column that is released as it is sets records apart from the rest of their class

k-anonymity says nothing of what a class has in common, of how unequal its members are, nor of columns that are
released as they are. Rules and sources: `measures.dominance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kinfold.errors import plural
from kinfold.evaluation.pairing import Pair, PairedColumn, Tables
from kinfold.measures.arrays import Floats
from kinfold.measures.dominance import Sorted, amounts, given_away
from kinfold.request.binding import BoundPolicy
from kinfold.request.encoding import Measured
from kinfold.request.terms import reading_of
from kinfold.rows.engines import Engine
from kinfold.rows.name_hints import YEAR, Hint, hints, mentions
from kinfold.rows.schema import Kind, Role

DOMINANT = 75.0  # percent of a class's total that one record may make: (1,75), as Hundepool et al. have it
EACH = 3  # columns that are named one by one
NEAR = 10.0  # percent to within which the second may tell the first: usual values are 10 to 15


def dominance(pair: Pair) -> Iterator[str]:
    """Say of each quasi-identifier of amounts that is averaged in how many classes that gives away the largest."""
    found = amounts_of(pair)
    if found and pair.kept.any():
        classes = Sorted.of(pair.masked)
        for name, values in found.items():
            shown, told = (int(marked.sum()) for marked in given_away(classes, values, DOMINANT, NEAR))
            yield from dominance_told(name, shown, told)


def amounts_of(pair: Pair) -> dict[str, Floats]:
    """Return the columns that are averaged and hold amounts, by their name and their values no age or year."""
    averaged = {
        column.name: column.attribute.numbers
        for column in pair.columns
        if isinstance(column.attribute, Measured) and _averaged(column)
    }
    return {name: values for name, values in averaged.items() if _adds_up(name) and amounts(values)}


def _adds_up(name: str) -> bool:
    return not (hints(name) & {Hint.AGE, Hint.BIRTH} or mentions(name, YEAR))


def dominance_told(name: str, shown: int, told: int) -> Iterator[str]:
    """Say in how many classes the average of a column gives away the largest record, by either rule."""
    if shown:
        yield (
            f"'{name}': one record makes more than {DOMINANT:g}% of the total in "
            f"{plural(shown, 'class', 'classes')}, "
            "so that the average shows it ((n,k) rule)"
        )
    if told:
        yield (
            f"'{name}': in {plural(told, 'class', 'classes')} the second largest record can tell the "
            f"largest to within {NEAR:g}% (p% rule)"
        )


def protected_by_k_alone(engine: Engine, released: Any, policy: BoundPolicy) -> Iterator[str]:
    """Say of each confidential column that nothing is promised about whom its class gives away."""
    privacy, quasi = policy.request.privacy, [column.name for column in policy.of(Role.QUASI)]
    if any(asked is not None for asked in (privacy.t, privacy.l, privacy.p, privacy.alpha)):
        return
    for column in policy.of(Role.CONFIDENTIAL):
        if column.request.t is None and column.request.l is None:
            tally = engine.tally(released, quasi, {column.name: reading_of(column)})
            values = np.bincount(tally.spreads[column.name].group, minlength=len(tally))
            share = tally.sizes[values == 1].sum() / max(tally.records, 1)
            yield (
                f"'{column.name}' is confidential and protected by k alone: {share:.1%} of the records are in classes "
                "where everybody shares one value of it, which is then known of each of them; ask for t or l"
            )


def singling(tables: Tables, quasi: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Say of the columns that are released as they are how many records they set apart from the rest of their class."""
    alone = dict(_set_apart(tables, quasi, names))
    rows = tables.engine.tally(tables.released, quasi, {}).records if alone else 0
    if len(alone) <= EACH:
        for name, number in alone.items():
            yield (
                f"'{name}' is released as it is and sets {number:,} of {rows:,} records apart from all others of their "
                "class"
            )
        return
    worst = sorted(alone.items(), key=lambda pair: -pair[1])[:EACH]
    most = ", ".join(f"'{name}' {number:,}" for name, number in worst)
    yield (
        f"{len(alone)} columns are released as they are and set some of the {rows:,} records apart from all others of "
        f"their class, most of all {most}"
    )


def _set_apart(tables: Tables, quasi: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        if alone := tables.engine.alone(tables.released, [*quasi, name]):
            yield name, alone


def _averaged(column: PairedColumn) -> bool:
    numbers = isinstance(column.attribute, Measured) and column.numbers is not None
    return numbers and column.attribute.bound.kind is Kind.CONTINUOUS and not column.generalized

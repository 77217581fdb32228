"""Cautions: what may go wrong beside a promise that holds.

    protected by k alone    a class that shares one confidential value tells it of everybody in it
    dominance               the average of a class gives away its largest record
    singling                a column that is released as it is sets records apart from the rest of their class

k-anonymity says nothing of what a class has in common, of how unequal its members are, nor of columns that are
released as they are. Rules and sources: `measures.dominance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.evaluation.pairing import Pair, PairedColumn, Tables
from kinfold.measures.dominance import dominated, singled_out, within_percent
from kinfold.request.binding import BoundPolicy
from kinfold.request.encoding import Measured
from kinfold.rows.engines import Engine
from kinfold.rows.schema import AS_TEXT, Kind, Role

DOMINANT = 75.0  # percent of a class's total that one record may make: (1,75), as Hundepool et al. have it
EACH = 3  # columns that are named one by one
NEAR = 10.0  # percent to within which the second may tell the first: usual values are 10 to 15


def dominance(pair: Pair) -> Iterator[str]:
    """Say of each continuous quasi-identifier that is averaged in how many classes that gives away the largest."""
    for column in pair.columns:
        if _averaged(column):
            values = column.attribute.numbers  # type: ignore[union-attr]
            shown = int(dominated(pair.masked, values, 1, DOMINANT).sum())
            told = int(within_percent(pair.masked, values, NEAR).sum())
            if shown:
                classes = plural(shown, "class", "classes")
                yield (
                    f"'{column.name}': one record makes more than {DOMINANT:g}% of the total in {classes}, "
                    "so that the average shows it ((n,k) rule)"
                )
            if told:
                classes = plural(told, "class", "classes")
                yield (
                    f"'{column.name}': in {classes} the second largest record can tell the largest to within "
                    f"{NEAR:g}% (p% rule)"
                )


def protected_by_k_alone(engine: Engine, released: Any, policy: BoundPolicy) -> Iterator[str]:
    """Say of each confidential column that nothing is promised about whom its class gives away."""
    privacy, quasi = policy.request.privacy, [column.name for column in policy.of(Role.QUASI)]
    if any(asked is not None for asked in (privacy.t, privacy.l, privacy.p, privacy.alpha)):
        return
    for column in policy.of(Role.CONFIDENTIAL):
        if column.request.t is None and column.request.l is None:
            tally = engine.tally(released, quasi, {column.name: AS_TEXT})
            values = np.bincount(tally.spreads[column.name].group, minlength=len(tally))
            share = tally.sizes[values == 1].sum() / max(tally.records, 1)
            yield (
                f"'{column.name}' is confidential and protected by k alone: {share:.1%} of the records are in classes "
                "where everybody shares one value of it, which is then known of each of them; ask for t or l"
            )


def singling(tables: Tables, classes: Callable[[], NDArray[np.int64]], names: Sequence[str]) -> Iterator[str]:
    """Say of the columns that are released as they are how many records they set apart from the rest of their class."""
    alone = dict(_set_apart(tables, classes, names))
    rows = len(classes()) if alone else 0
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


def _set_apart(
    tables: Tables, classes: Callable[[], NDArray[np.int64]], names: Sequence[str]
) -> Iterator[tuple[str, int]]:
    for name in names:
        values = tables.engine.collect(tables.released, {name: None}).column(0).combine_chunks().dictionary_encode()
        codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        alone = int(singled_out(classes(), codes))
        if alone:
            yield name, alone


def _averaged(column: PairedColumn) -> bool:
    numbers = isinstance(column.attribute, Measured) and column.numbers is not None
    return numbers and column.attribute.bound.kind is Kind.CONTINUOUS and not column.generalized

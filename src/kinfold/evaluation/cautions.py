"""Cautions: classes whose average gives away their largest record, and columns that single records out of their class.

Both may stand beside a promise that holds: k-anonymity says nothing of how unequal the members of a class are, nor of
columns that are released as they are. Rules and sources: `measures.dominance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.evaluation.pairing import Pair, PairedColumn, Tables
from kinfold.measures.dominance import dominated, singled_out, within_percent
from kinfold.request.encoding import Measured
from kinfold.rows.schema import Kind

DOMINANT = 75.0  # percent of a class's total that one record may make: (1,75), as Hundepool et al. have it
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


def singling(tables: Tables, classes: Callable[[], NDArray[np.int64]], names: Sequence[str]) -> Iterator[str]:
    """Say of each column that is released as it is how many records it sets apart from the rest of their class."""
    for name in names:
        values = tables.engine.collect(tables.released, {name: None}).column(0).combine_chunks().dictionary_encode()
        codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        alone = singled_out(classes(), codes)
        if alone:
            yield (
                f"'{name}' is released as it is and sets {alone:,} of {len(codes):,} records apart from all others of "
                "their class"
            )


def _averaged(column: PairedColumn) -> bool:
    numbers = isinstance(column.attribute, Measured) and column.numbers is not None
    return numbers and column.attribute.bound.kind is Kind.CONTINUOUS and not column.generalized

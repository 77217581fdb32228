"""Proposed hierarchies: the hierarchy that a column could be generalized by, ready to be edited.

ages and years    bands, each twice the one below or more; the oldest together, for few reach so far
amounts           bands of a round width
dates             month, quarter, year
post codes        one character less at each step
scales            neighbours together
diagnoses         category, block, chapter
countries         part of the continent, continent
other codes       rare values together
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor, log10
from typing import Any

from kinfold.errors import PolicyError
from kinfold.hierarchy import by_rows
from kinfold.hierarchy.grouped_values import Rows, by_country, by_diagnosis, by_frequency, by_runs
from kinfold.profiling.ordered_texts import scale_of
from kinfold.profiling.shapes import Shape
from kinfold.rows.appearance import Appearance
from kinfold.rows.name_hints import Hint

FEW = 5  # values that need no step between themselves and nothing
OPEN = 0.01  # share of the records that the open top holds at least
WRITTEN = 30  # values up to which a table of labels stands in the policy itself


@dataclass(frozen=True)
class ProposedHierarchy:
    """A hierarchy to start from: what it is in words, the keys of the policy, or a table of labels."""

    told: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows = field(default_factory=list)

    @property
    def long(self) -> bool:
        """Whether its table is better kept in a file of its own."""
        return len(self.rows) > WRITTEN


def proposed_hierarchy(shape: Shape, look: Appearance, hints: frozenset[Hint]) -> ProposedHierarchy | None:
    """Return a hierarchy for the values of a column, or nothing where they need none."""
    if shape in (Shape.AGE, Shape.YEAR):
        return _bands(look, open_top=shape is Shape.AGE)
    if shape is Shape.AMOUNT:
        return _amounts(look)
    if shape is Shape.MOMENT:
        return ProposedHierarchy("by month, quarter and year", {"dates": ["month", "quarter", "year"]})
    if shape is Shape.POST_CODE:
        return ProposedHierarchy("one character less at each step", {"mask": max(map(len, look.values))})
    return _table(shape, look, hints) if look.complete else None


def _table(shape: Shape, look: Appearance, hints: frozenset[Hint]) -> ProposedHierarchy | None:
    """Return a hierarchy that has a row of labels for each value."""
    counts = dict(sorted(zip(look.values, look.counts, strict=True)))
    if shape is Shape.SCALE:
        return _filled("neighbours together", by_runs(scale_of(look.values)))
    if shape is Shape.DIAGNOSIS:
        return _filled("by category and chapter of ICD-10", by_diagnosis(list(counts)))
    if look.distinct <= FEW:
        return None
    countries = Hint.COUNTRY in hints or all(len(value) > 3 and not value.isdigit() for value in counts)
    regions = _filled("by part of the world", by_country(counts)) if countries else None
    return regions or _filled("rare values together", by_frequency(counts))


def _filled(told: str, rows: Rows) -> ProposedHierarchy | None:
    """Return a table of labels, unless a value of the table is called as one of its labels is and means less."""
    try:
        by_rows(rows)
    except PolicyError:
        return None
    return ProposedHierarchy(told, rows=rows)


def _bands(look: Appearance, *, open_top: bool) -> ProposedHierarchy:
    """Return bands of 5, 10 and 20, above the age that one in a hundred reaches one open band."""
    keys: dict[str, Any] = {"intervals": [5, 10, 20]}
    top = _open_at(look) if open_top else None
    if top is not None:
        keys["top"] = top
    return ProposedHierarchy("in bands" if top is None else f"in bands, {top} and above together", keys)


def _open_at(look: Appearance) -> int | None:
    """Return the highest multiple of five that one record in a hundred reaches, and more than a few."""
    counts = {float(value): n for value, n in zip(look.values, look.counts, strict=True)}
    wanted = max(OPEN * look.filled, 10)
    for top in range(int(look.high) // 5 * 5, int(look.low), -5):
        if sum(n for value, n in counts.items() if value >= top) >= wanted:
            return top
    return None


def _amounts(look: Appearance) -> ProposedHierarchy | None:
    """Return bands of a round width, some fifty of them, then wider ones."""
    span = look.high - look.low
    if not 0 < span < 1e15 or span < 1e-9:
        return None
    step = 10.0 ** floor(log10(span / 25))
    width: float = int(step) if step >= 1 else step
    return ProposedHierarchy("in bands of a round width", {"intervals": [width, width * 5, width * 10]})

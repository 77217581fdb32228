"""Hierarchy proposals: how a column could be generalized, ready to edit.

ages and years    bands, each at least twice as wide as the one below; the oldest in one open band
amounts           bands of a round width
dates             month, quarter, year; dates of birth: year, 5 years, decade, 20 and 40 years;
                  months of birth with a name, Jan 1950: year, decade
post codes        one character fewer at each level; so are codes of digits and of one length
other numbers     of codes: bands
scales            neighbours merged
diagnoses         category, block, chapter
countries         part of the continent, continent
other codes       rare values merged
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, log10
from typing import Any

from kinfold.errors import PolicyError
from kinfold.hierarchies import build_from_rows
from kinfold.hierarchies.grouping import (
    Rows,
    group_by_country,
    group_by_diagnosis,
    group_by_frequency,
    group_neighbours,
)
from kinfold.profiling.shapes import Shape, find_scale
from kinfold.tables.column_names import Hint
from kinfold.tables.schema import ValueStats

MAX_UNGROUPED_VALUES = 5  # so few values need no level between themselves and *
MIN_OPEN_SHARE = 0.01  # of the records in the open top band
WHOLE_CODE = re.compile(r"[0-9]{1,12}(\.0+)?")
MAX_CODE_LENGTH = 12  # characters of a code that is generalized by its first characters
MAX_INLINE_ROWS = 30  # a longer table of labels is written to a file


@dataclass(frozen=True)
class ProposedHierarchy:
    """A hierarchy to start from: a description, and the keys of the policy or a table of labels."""

    description: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows = field(default_factory=list)

    @property
    def needs_file(self) -> bool:
        """Whether its table is too long for the policy."""
        return len(self.rows) > MAX_INLINE_ROWS


def propose_hierarchy(shape: Shape, stats: ValueStats, hints: frozenset[Hint]) -> ProposedHierarchy | None:
    """Return a hierarchy for the values of a column, or None if they need none."""
    if shape in (Shape.AGE, Shape.YEAR):
        top = _find_open_top(stats) if shape is Shape.AGE else None
        keys = {"intervals": [5, 10, 20]} | ({} if top is None else {"top": top})
        return ProposedHierarchy("in bands" if top is None else f"in bands, {top} and above together", keys)
    if shape is Shape.AMOUNT:
        return _propose_amounts(stats)
    if shape is Shape.MOMENT and Hint.BIRTH in hints:
        units = ["year", "5 years", "decade", "20 years", "40 years"]
        return ProposedHierarchy("by year, five years and decades", {"dates": units})
    if shape is Shape.MOMENT:
        return ProposedHierarchy("by month, quarter and year", {"dates": ["month", "quarter", "year"]})
    if shape is Shape.POST_CODE:
        return ProposedHierarchy("one character fewer at each level", {"mask": max(map(len, stats.values))})
    return _propose_table(shape, stats, hints) if stats.complete else None


def _propose_table(shape: Shape, stats: ValueStats, hints: frozenset[Hint]) -> ProposedHierarchy | None:
    """Return a hierarchy with a row of labels for each value."""
    counts = dict(sorted(zip(stats.values, stats.counts, strict=True)))
    if shape is Shape.SCALE:
        return _propose_rows("neighbours merged", group_neighbours(find_scale(stats.values)))
    if shape is Shape.DIAGNOSIS:
        return _propose_rows("by category and chapter of ICD-10", group_by_diagnosis(list(counts)))
    if stats.distinct <= MAX_UNGROUPED_VALUES:
        return None
    if Hint.BIRTH in hints and all(re.search(r"\b[12][0-9]{3}$", value) for value in counts):
        return _propose_rows("by year and decade", [(value, value[-4:], f"{value[-4:-1]}0s") for value in counts])
    countries = Hint.COUNTRY in hints or all(len(value) > 3 and not value.isdigit() for value in counts)
    regions = _propose_rows("by part of the world", group_by_country(counts)) if countries else None
    if regions is None and shape is Shape.MANY_CODES and _have_one_length(stats.values):
        return ProposedHierarchy("one character fewer at each level", {"mask": len(stats.values[0])})
    if regions is None and shape is Shape.MANY_CODES and (widths := _choose_code_bands(stats.values)):
        return ProposedHierarchy(
            "by number: codes often number related things one after the other", {"intervals": widths}
        )
    return regions or _propose_rows("rare values merged", group_by_frequency(counts))


def _choose_code_bands(values: Sequence[str]) -> list[int]:
    """Return widths of bands for codes that are whole numbers, at least two bands of each; none for other codes.

    >>> _choose_code_bands(["7", "12", "113"]), _choose_code_bands(["7", "B12"])
    ([5, 10, 50], [])
    """
    if not all(map(WHOLE_CODE.fullmatch, values)):
        return []
    numbers = [int(value.partition(".")[0]) for value in values]
    span = max(numbers) - min(numbers)
    return [half * 10**power for power in range(len(str(span))) for half in (5, 10) if 2 * half * 10**power <= span]


def _have_one_length(values: Sequence[str]) -> bool:
    """Whether codes of letters and digits have one length, at most 12, and most characters are digits."""
    digits = sum(character.isdigit() for value in values for character in value)
    lengths = {*map(len, values)}
    written = all(value.isalnum() for value in values) and 2 * digits >= sum(map(len, values))
    return written and len(lengths) == 1 and 2 <= min(lengths) <= MAX_CODE_LENGTH


def _propose_rows(description: str, rows: Rows) -> ProposedHierarchy | None:
    """Return a table of labels, or None if a value is also a label with another meaning."""
    try:
        build_from_rows(rows)
    except PolicyError:
        return None
    return ProposedHierarchy(description, rows=rows)


def _find_open_top(stats: ValueStats) -> int | None:
    """Return the highest multiple of five that at least 1 % and at least 10 records reach."""
    counts = {float(value): n for value, n in zip(stats.values, stats.counts, strict=True)}
    minimum = max(MIN_OPEN_SHARE * stats.filled, 10)
    for top in range(int(stats.high) // 5 * 5, int(stats.low), -5):
        if sum(n for value, n in counts.items() if value >= top) >= minimum:
            return top
    return None


def _propose_amounts(stats: ValueStats) -> ProposedHierarchy | None:
    """Return about fifty bands of a round width, then wider ones."""
    span = stats.high - stats.low
    if not 0 < span < 1e15 or span < 1e-9:
        return None
    step = 10.0 ** floor(log10(span / 25))
    width: float = int(step) if step >= 1 else step
    return ProposedHierarchy("in bands of a round width", {"intervals": [width, width * 5, width * 10]})

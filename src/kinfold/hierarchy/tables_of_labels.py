"""Which tables of labels can be made of the values of a column: diagnoses, countries, rare values, neighbours.

One is offered where it has rows and is a hierarchy: a value may be called as one of its labels is, and mean less.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kinfold.errors import PolicyError
from kinfold.hierarchy.builders import by_rows
from kinfold.hierarchy.grouped_values import Rows, by_country, by_diagnosis, by_frequency, by_runs

DIAGNOSIS = re.compile(r"[A-Z][0-9][0-9A-Z](\.?[0-9A-Z-]{1,4})?")
MOST_VALUES = 20_000  # of a column for which a table is made

TOLD = {
    "levels": "each value by itself, to be grouped by hand",
    "icd": "by category and chapter of ICD-10",
    "region": "by part of the world",
    "frequency": "rare values together",
    "neighbours": "neighbours together, two and four at a time",
}


def tables_of_labels(counts: Mapping[str, int], order: Sequence[str] = ()) -> dict[str, Rows]:
    """Return the tables that fit these values, by their names; `order` is that of a scale.

    >>> sorted(tables_of_labels({"E11.9": 5, "I10": 4}))
    ['icd', 'levels']
    """
    if not counts or len(counts) > MOST_VALUES:
        return {}
    found: dict[str, Rows] = {"levels": [(value,) for value in counts]}
    if all(DIAGNOSIS.fullmatch(value) for value in counts):
        found["icd"] = by_diagnosis(list(counts))
    found["region"] = by_country(counts)
    found["frequency"] = by_frequency(counts)
    found["neighbours"] = by_runs(order) if order else []
    return {name: rows for name, rows in found.items() if rows and _holds(rows)}


def _holds(rows: Rows) -> bool:
    try:
        by_rows(rows)
    except PolicyError:
        return False
    return True

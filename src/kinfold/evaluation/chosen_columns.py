"""What some columns of a table do before anything is done: how large their classes are, whom they single out.

Nothing but counts leaves the engine, so that it is quick on a large table and can be asked whenever a role changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from kinfold.measures.attacker import prosecutor_max, prosecutor_mean
from kinfold.rows.engines import Engine

MOST_COMBINED = 8  # columns whose pairs and triples are looked at
SMALL = 100_000  # rows up to which combinations are looked at: of more the profile has told those that matter
SHOWN = 10  # combinations, those that single out the most first
MOST_SIZES = 100  # of classes that are listed


def risk_of_columns(engine: Engine, frame: Any, quasi: Sequence[str], k: int) -> dict[str, Any]:
    """Return the risk if these columns were released as they are: shares of the records, and class sizes."""
    sizes = engine.sizes(frame, quasi)  # of no column at all: one class
    rows = sum(size * many for size, many in sizes)
    classes = np.repeat([size for size, _ in sizes], [many for _, many in sizes])
    return {
        "quasi": list(quasi),
        "records": rows,
        "classes": len(classes),
        "k": k,
        "unique": _share(sizes, 2, rows),
        "below_k": _share(sizes, k, rows),
        "smallest": sizes[0][0] if sizes else None,
        "prosecutor_max": prosecutor_max(classes) if rows else None,
        "prosecutor_mean": prosecutor_mean(classes) if rows else None,
        "sizes": sizes[:MOST_SIZES],
        "combinations": _combinations(engine, frame, quasi, rows),
    }


def _share(sizes: Sequence[tuple[int, int]], below: int, rows: int) -> float:
    return sum(size * many for size, many in sizes if size < below) / max(rows, 1)


def _combinations(engine: Engine, frame: Any, quasi: Sequence[str], rows: int) -> list[dict[str, Any]]:
    few = quasi[:MOST_COMBINED] if rows <= SMALL else ()
    sets = [*combinations(few, 2), *combinations(few, 3)]
    found = [(engine.alone(frame, names) / max(rows, 1), names) for names in sets]
    found.sort(key=lambda each: (-each[0], len(each[1])))
    return [{"columns": list(names), "unique": unique} for unique, names in found[:SHOWN]]

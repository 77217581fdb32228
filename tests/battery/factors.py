"""The factors of the battery: everything that may meet in one request. A new method joins by being registered.

The long form has further random cases, and KINFOLD_TRUST_SCALE multiplies all of them, up to three times.
"""

import os
from functools import cache
from typing import Any

from battery.covering import Choice, covering
from kinfold.policy import registry as methods

SEED = 11
LONGER = min(float(os.environ.get("KINFOLD_TRUST_SCALE", "1")), 3.0)  # times the cases; more cost minutes
MORE = 100 if LONGER > 1 else 0  # random rows beside those that cover every pair

OFTEN = ("as they come",) * 4  # a value that stands more than once is drawn more often: what can be met at all

MODELS = (
    "k alone",
    "t ordered",
    "t equal",
    "t hierarchical",
    "l distinct",
    "l entropy",
    "l recursive",
    "p",
    "alpha",
    "beta basic",
    "beta enhanced",
    "delta",
    "average risk",
    "risk share",
    "joint",
    "unit",
)
FACTORS: dict[str, tuple[Any, ...]] = {
    "method": methods.list_method_names(),
    "first": MODELS,
    "second": MODELS,
    "further": (  # not with unit or joint, which they refuse
        *("nothing",) * 4,
        "combinations",
        "population",
        *("population table",) * 2,
        *("presence",) * 2,
        "population uniques",
        "individual risk",
    ),
    "columns": (
        "all continuous",
        "all nominal",
        "all ordinal",
        "all dates",
        "mixed",
        "one continuous",
        "one nominal",
        "one ordinal",
        "one date",
    ),
    "values": (
        *OFTEN,
        "ties",
        "constant",
        "one constant",
        "distinct",
        "far apart",
        "some null",
        "one null",
        "all null",
    ),
    "confidential": (*OFTEN, "ties", "constant", "distinct", "some null", "all null"),
    "missing": ("separate", "mean", "drop"),
    "hierarchies": ("as needed", "as needed", "as needed", "everywhere", "nowhere"),
    "average": ("default", "default", "median", "convex-median", "mode", "generalize", "suppress"),
    "asked": ("little", "little", "little", "much"),
    "k": (2, 3, 5),
    "records": (0, 1, 2, 5, 5, 5, 12, 12, 12),  # times k, and fewer than k over
    "size": ("small", "large"),  # the way that a table of this size takes, or that of thousands of records
    "refine_steps": (0, 40, 700, None),
    "prove": (0.0, 0.0, 0.01),
    "objective": ("granularity", "granularity", "prec", "prec", "discernibility"),
    "suppression": (0, 3, 0.5),
    "suppressed": ("drop", "star"),
    "preserve": ("means", "variance"),
    "round": (True, False),
    "source": ("pandas", "polars", "pyarrow", "csv", "parquet"),
    "order": ("sorted", "kept"),
    "saved": (None, None, "csv", "parquet"),
    "declared": (True, False),
}


@cache
def choices() -> list[Choice]:
    """Return the choices of this run, numbered."""
    rows = covering(FACTORS, SEED, MORE)
    rows += covering(FACTORS, SEED + 1, round((LONGER - 1) * len(rows))) if LONGER > 1 else []
    return [{**row, "number": number} for number, row in enumerate(rows)]

"""Small tables that count as large, because the limits on records in memory are lowered. For tests on either engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kinfold.measures import pairing
from kinfold.methods.blocks import routing

MISSING = ("drop", "mean", "separate")


def lower_memory_limits(patch: pytest.MonkeyPatch, *, region: int = 700, sample: int = 400) -> None:
    """Make tables of more than `region` records count as large, split into regions of about that size."""
    patch.setattr(routing, "MAX_RECORDS_IN_MEMORY", region)
    patch.setattr(routing, "REGION_RECORDS", region)
    patch.setattr(routing, "SAMPLE_RECORDS", sample)
    patch.setattr(routing, "SAMPLE_RECORDS_PER_REGION", sample // 10)
    patch.setattr(pairing, "SAMPLE_RECORDS", sample)


def people(kind: str, records: int = 2_000, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    age, pay = random.integers(18, 90, records).astype(float), np.round(random.normal(2_000, 500, records), 2)
    area = random.choice(["north", "south", "east", None], records, p=[0.7, 0.1, 0.1, 0.1])
    if "equal" in kind:
        age, pay, area = np.full(records, 30.0), np.full(records, 9.5), np.full(records, "north")
    elif "ties" in kind:
        age, pay = random.integers(0, 2, records).astype(float), random.integers(0, 3, records).astype(float)
    elif "skewed" in kind:
        pay = np.round(np.exp(3 * random.normal(size=records)), 3)
    if any(word in kind for word in MISSING):
        age[random.random(records) < 0.1] = np.nan
        pay[random.random(records) < 0.1] = np.nan
    return pa.table(
        {
            "age": pa.array(age, from_pandas=True),
            "pay": pa.array(pay, from_pandas=True),
            "area": area,
            "ill": random.choice(["flu", "cold", "none"], records),
            "grade": random.integers(0, 20, records),
            "note": [f"n{i}" for i in range(records)],
        }
    )


def policy(kind: str = "plain", method: str = "mdav", **more: Any) -> dict[str, Any]:
    missing = {"missing": kind} if kind in MISSING else {}
    columns: dict[str, Any] = {name: {"role": "quasi", "type": "continuous", **missing} for name in ("age", "pay")}
    columns["area"] = {"role": "quasi", "type": "nominal"}
    columns["ill"] = {"role": "confidential", "type": "nominal"}
    columns["grade"] = {"role": "confidential", "type": "continuous"}
    columns["note"] = {"role": "other"}
    return {"privacy": {"k": 5}, "method": {"name": method}, "columns": columns} | more

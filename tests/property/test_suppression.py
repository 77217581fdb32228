"""Suppression: every method that generalizes keeps to `method.suppression`, and both pages say how many are gone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kinfold
from everyday import first


def table(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(20, 60, 80),
            "zip": random.choice(["0211", "0212", "0310", "0320"], 80),
            "sex": random.choice(["f", "m"], 80),
            "job": random.choice(list("abcd"), 80),
        }
    )


COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [5, 20]}},
    "zip": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 4}},
    "sex": {"role": "quasi"},
    "job": {"role": "quasi"},
}


def released(seed: int, method: str, suppression: float | None, suppressed: str = "drop") -> kinfold.Release:
    asked = {"name": method} | ({} if suppression is None else {"suppression": suppression})
    policy = {"privacy": {"k": 4}, "method": asked, "output": {"suppressed": suppressed}, "columns": COLUMNS}
    return kinfold.anonymize(table(seed), policy)


def gone(release: kinfold.Release) -> int:
    """How many records are suppressed: left out, or nothing but stars."""
    return int(release.measures["suppressed"]) + int((release.frame.astype(str) == "*").all(axis=1).sum())


@pytest.mark.parametrize("suppression", first([3, 0, 0.1]))
@pytest.mark.parametrize("method", ["mu-argus", "lattice"])
def test_no_more_records_are_suppressed_than_the_policy_allows(method: str, suppression: float) -> None:
    allowed = suppression if isinstance(suppression, int) else int(suppression * 80)
    for seed in range(3):
        for how in ("drop", "star")[: 1 + (method == "mu-argus")]:  # others star more, until those are a class
            try:
                release = released(seed, method, suppression, how)
            except kinfold.Unreachable:
                assert method != "mu-argus"  # which can always go up to the top
                continue
            assert gone(release) <= allowed
            assert release.verdict.holds


def test_mu_argus_suppresses_what_it_takes_where_the_policy_is_silent() -> None:
    free, none = released(0, "mu-argus", None), released(0, "mu-argus", 0)
    assert gone(free) > 0
    assert gone(none) == 0
    assert free.plan.notes != none.plan.notes
    assert any("of generalization more" in note for note in none.plan.notes)
    assert released(0, "mu-argus", 1.0).measures["loss"] == free.measures["loss"]


@pytest.mark.parametrize("how", ["drop", "star"])
def test_both_pages_say_how_many_records_are_suppressed(tmp_path: Path, how: str) -> None:
    release = released(0, "mu-argus", None, how)
    release.save(tmp_path / "out")
    title = "Suppressed" if how == "drop" else "Starred"
    for page in ("public", "internal"):
        html = (tmp_path / "out" / page / "report.html").read_text("utf-8")
        assert re.search(rf"<dt>{title}</dt><dd>{gone(release)}</dd>", html)

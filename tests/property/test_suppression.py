"""Suppression: every method that generalizes keeps to `method.suppression`, and both pages say how many are gone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.methods.planning import running
from kinfold.request.methods import registry

RECORDS = 60
METHODS = ["lattice", "levels", "datafly", "mu-argus", "mingen", "mingen-cell", "local-suppression", "t-first"]
PROMISES: list[dict[str, Any]] = [
    {"k": 4},
    {"k": 3, "l": 2},
    {"k": 3, "t": 0.4},
    {"k": 2, "l": 1.5, "l_kind": "entropy"},
]
COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [5, 20]}},
    "zip": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 4}},
    "sex": {"role": "quasi"},
    "job": {"role": "quasi"},
    "ill": {"role": "confidential", "type": "nominal"},
}
QUASI = ["age", "zip", "sex", "job"]


def table(seed: int, missing: float = 0.0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    ages = random.integers(20, 60, RECORDS).astype(float)
    ages[random.random(RECORDS) < missing] = np.nan
    return pd.DataFrame(
        {
            "age": ages,
            "zip": random.choice(["0211", "0212", "0310", "0320"], RECORDS),
            "sex": random.choice(["f", "m"], RECORDS),
            "job": random.choice(list("abcd"), RECORDS),
            "ill": random.choice(list("xyz"), RECORDS, p=[0.5, 0.3, 0.2]),
        }
    )


def policy(
    method: str, suppression: float | None, how: str = "drop", privacy: Any = None, **age: str
) -> dict[str, Any]:
    columns = {name: dict(column) for name, column in COLUMNS.items()}
    columns["age"] |= age
    asked: dict[str, Any] = {"name": method} | ({} if suppression is None else {"suppression": suppression})
    if method in ("local-suppression", "t-first"):
        del columns["age"]["hierarchy"], columns["zip"]["hierarchy"]
    if method == "levels":
        asked |= {"name": "lattice", "levels": {"age": 2, "zip": 4, "sex": 1, "job": 0}}
    output = {"suppressed": how}
    return {"privacy": privacy or {"k": 4}, "method": asked, "output": output, "columns": columns}


def released(seed: int, method: str, suppression: float | None, suppressed: str = "drop") -> kinfold.Release:
    return kinfold.anonymize(table(seed), policy(method, suppression, suppressed))


def gone(release: kinfold.Release) -> int:
    """How many records are suppressed: left out, or nothing but stars or empty cells while others have more."""
    shown = release.frame[QUASI].astype(str)
    starred = shown.isin(["*", "None", "nan", "<NA>"]).all(axis=1)
    return RECORDS - len(shown) + (0 if starred.all() and len(shown) == RECORDS else int(starred.sum()))


@pytest.mark.parametrize("method", METHODS)
@given(
    seed=st.integers(0, 10**6),
    suppression=st.sampled_from([0, 1, 4, 9, 0.05, 0.29, 1.0]),
    how=st.sampled_from(["drop", "star"]),
    privacy=st.sampled_from(PROMISES),
    missing=st.sampled_from([0.0, 0.0, 0.05]),
)
@settings(max_examples=6, deadline=None)
def test_no_more_records_are_suppressed_than_the_policy_allows(
    method: str, seed: int, suppression: float, how: str, privacy: dict[str, Any], missing: float
) -> None:
    allowed = suppression if isinstance(suppression, int) else int(suppression * RECORDS + 1e-9)
    if method == "t-first":
        privacy = {"k": 3, "t": 0.3}
    asked = policy(method, suppression, how, privacy, missing="drop")
    source = table(seed, missing)
    try:
        release = kinfold.anonymize(source, asked)
    except kinfold.Unreachable:
        lacking = int(source["age"].isna().sum())
        # the top of every hierarchy, and a single class, suppress nothing
        assert lacking > allowed or method in ("levels", "mingen-cell", "local-suppression")
        return
    assert gone(release) <= allowed
    assert release.verdict.holds


@pytest.mark.parametrize("how", ["drop", "star"])
@pytest.mark.parametrize(("method", "seed"), [("lattice", 1), ("datafly", 1), ("mu-argus", 1), ("levels", 0)])
def test_the_records_that_fill_a_class_are_within_the_limit(method: str, seed: int, how: str) -> None:
    for suppression in range(1, 13, 4):
        asked = policy(method, suppression, how, {"k": 5})
        if method == "levels" and suppression < {"drop": 3, "star": 8}[how]:  # 3 are left over, 5 more fill their class
            with pytest.raises(kinfold.Unreachable, match=f"at most {suppression} may be"):
                kinfold.anonymize(table(seed), asked)
        else:
            assert gone(kinfold.anonymize(table(seed), asked)) <= suppression


def test_records_left_out_for_a_missing_value_count() -> None:
    source = table(0, 0.1)
    lacking = int(source["age"].isna().sum())
    assert lacking > 2
    for method in ("lattice", "mdav"):
        asked = policy(method, lacking, missing="drop")
        if method == "mdav":
            del asked["columns"]["age"]["hierarchy"], asked["columns"]["zip"]["hierarchy"]
        assert gone(kinfold.anonymize(source, asked)) == lacking
        asked["method"]["suppression"] = lacking - 1
        with pytest.raises(kinfold.Unreachable, match=f"{lacking} of 60 records .* at most {lacking - 1} may be"):
            kinfold.anonymize(source, asked)
        del asked["method"]["suppression"]  # no limit is set: the policy decides by `missing` alone
        assert gone(kinfold.anonymize(source, asked)) == lacking


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


@pytest.mark.parametrize("method", [name for name in registry() if name != "univariate"])
def test_every_method_says_its_expected_time_before_it_starts(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LONG", 0.0)
    heard: list[str] = []
    asked = policy(method, None, privacy={"k": 3, "t": 0.4} if "t" in registry()[method].needs else {"k": 3})
    if registry()[method].family == "partition":
        for column in asked["columns"].values():
            column.pop("hierarchy", None)
    kinfold.anonymize(table(0), asked, progress=lambda stage, _done, _total: heard.append(stage))
    stages = list(dict.fromkeys(heard))
    assert any(re.fullmatch(rf"plan by {method}, about \d+ s", stage) for stage in stages[: stages.index("apply")])

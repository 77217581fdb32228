"""Suppression: every method that generalizes keeps to `method.suppression`, and both pages say how many are gone."""

import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.errors import Unreachable
from kinfold.hierarchies import TOP, Hierarchy
from kinfold.methods import plan as running
from kinfold.methods.generalize import local_suppression as module
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.local_suppression import (
    DistinctTuples,
    SearchOptions,
    local_suppression,
    make_cell_loss,
)
from kinfold.methods.generalize.mingen_cell import generalize_classes
from kinfold.methods.generalize.patterns import iterate_patterns
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.policy.registry import list_methods
from kinfold.tables.tally import tally_labels
from reference.suppressed_cells import fewest
from uncompiled import PLAIN

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert any("of generalization keep" in note for note in none.plan.notes)
    assert released(0, "mu-argus", 1.0).measures["loss"] == free.measures["loss"]


@pytest.mark.parametrize("how", ["drop", "star"])
def test_both_pages_say_how_many_records_are_suppressed(tmp_path: Path, how: str) -> None:
    release = released(0, "mu-argus", None, how)
    release.save(tmp_path / "out")
    title = "Suppressed" if how == "drop" else "Starred"
    for page in ("public", "internal"):
        html = (tmp_path / "out" / page / "report.html").read_text("utf-8")
        assert re.search(rf"<dt>{title}</dt><dd>{gone(release)}</dd>", html)


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in list_methods() if name != "univariate"])
def test_every_method_says_its_expected_time_before_it_starts(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MIN_ANNOUNCED_SECONDS", 0.0)
    heard: list[str] = []
    asked = policy(method, None, privacy={"k": 3, "t": 0.4} if "t" in list_methods()[method].needs else {"k": 3})
    if list_methods()[method].family == "partition":
        for column in asked["columns"].values():
            column.pop("hierarchy", None)
    kinfold.anonymize(table(0), asked, progress=lambda stage, _done, _total: heard.append(stage))
    stages = list(dict.fromkeys(heard))
    assert any(re.fullmatch(rf"plan by {method}, about \d+ s", stage) for stage in stages[: stages.index("apply")])


# Local suppression: the fewest cells of small tables, and tables of any size that keep what was asked


seeds = st.integers(0, 10**6)
NAMES = [*"abcdefgh", *(f"q{a}" for a in range(8, 70))]
BRIEF = SearchOptions((20, None)) if PLAIN else SearchOptions()
MODELS = {
    "k": [KAnonymity(3)],
    "l": [KAnonymity(3), LDiversity(2, "disease")],
    "t": [KAnonymity(3), TCloseness(0.4, "disease", "equal")],
}


def domain_table(seed: int, rows: int, columns: int = 3, values: int = 3, nulls: float = 0.1) -> Domain:
    """Make records with some values missing, and a disease for each."""
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, values, (rows, columns))
    codes[chance.random(codes.shape) < nulls] = values
    flat = Hierarchy.from_rows([(str(i), TOP) for i in range(values)])
    held = {"disease": np.array([*"xyz"], object)[chance.integers(0, 3, rows)]}
    return Domain(
        tuple(NAMES[:columns]), (flat,) * columns, codes.astype(np.int32), tally_labels(np.arange(rows), held)
    )


def rows_of(domain: Domain, blank: np.ndarray | None = None) -> list[tuple[int | None, ...]]:
    empty = domain.codes == [len(hierarchy) for hierarchy in domain.hierarchies]
    empty = empty if blank is None else empty | blank
    return [
        tuple(None if gone else int(code) for code, gone in zip(*row, strict=True))
        for row in zip(domain.codes, empty, strict=True)
    ]


def written(found: module.SuppressionResult) -> list[tuple[int | None, ...]]:
    return rows_of(found.generalization.domain, found.generalization.levels > 0)


@pytest.mark.compiled
@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(seed=seeds, rows=st.integers(20, 200))
@settings(max_examples=10, deadline=None)
def test_tuples_that_stand_for_several_records_keep_the_promises_of_these(models, seed, rows):
    records = domain_table(seed, rows)
    tuples = DistinctTuples.from_domain(records)
    try:
        found = local_suppression(tuples.domain, models, options=BRIEF)
    except Unreachable:
        assume(False)
        raise
    each = generalize_classes(records, found.labels[tuples.labels])  # the same classes, record by record
    assert each.holds(models)
    missing = records.codes == [len(hierarchy) for hierarchy in records.hierarchies]
    assert found.cells_by_column.tolist() == ((each.levels > 0) & ~missing).sum(axis=0).tolist()
    apart = local_suppression(records, models, options=BRIEF)
    assert found.cells_by_column.sum() <= 2 * apart.cells_by_column.sum() + rows // 4


@given(seeds, st.integers(4, 7), st.integers(2, 3), st.sampled_from([(1.0, 1.0, 1.0), (1.0, 2.5, 0.5)]))
@settings(max_examples=60, deadline=None)
def test_a_few_records_lose_as_few_cells_as_by_exhaustion(seed, rows, k, weights):
    domain = domain_table(seed, rows, values=2, nulls=0.2)
    found = local_suppression(domain, [KAnonymity(k)], dict(zip(NAMES, weights, strict=False)))
    assert found.exact
    assert found.cells_by_column @ weights == pytest.approx(fewest(rows_of(domain), k, weights))
    assert min(Counter(written(found)).values()) >= k


@pytest.mark.slow
def test_the_search_finds_the_fewest_cells_of_most_small_tables():
    """It was the optimum for 177 of 200 such tables, and 1.6 % above it in all."""
    best = total = least = 0
    for seed in range(4 if PLAIN else 40):
        domain = domain_table(seed, 8 + seed % 7, columns=2 + seed % 3, values=2 + seed % 2, nulls=0.1 * (seed % 2))
        exact = local_suppression(domain, MODELS["k"]).cells_by_column.sum()
        searched = (
            DistinctTuples.from_domain(domain).search(make_cell_loss(domain), MODELS["k"], BRIEF).cells_by_column.sum()
        )
        assert searched >= exact
        best, total, least = best + (searched == exact), total + searched, least + exact
    assert PLAIN or best >= 30
    assert total <= (2 if PLAIN else 1.05) * least


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(seed=seeds, rows=st.integers(17, 80), values=st.integers(2, 6))
@settings(max_examples=12, deadline=None)
def test_promises_hold_on_the_tuples_as_written(models, seed, rows, values):
    domain = domain_table(seed, rows, columns=4, values=values)
    found = local_suppression(domain, models, options=BRIEF)
    numbers = np.unique([hash(row) for row in written(found)], return_inverse=True)[1]
    tally = domain.tally.merge(numbers.astype(np.int64), {})
    assert not any(model.failing(tally).any() for model in models)
    again = local_suppression(domain, models, options=BRIEF)
    assert again.labels.tolist() == found.labels.tolist()


@given(seed=seeds, rows=st.integers(30, 120))
@settings(max_examples=10, deadline=None)
def test_tuples_that_many_share_stay_whole_and_lend_records_at_most(seed, rows):
    domain = domain_table(seed, rows, columns=3, values=2, nulls=0.05)
    found = local_suppression(domain, [KAnonymity(2)], options=BRIEF)
    counts = Counter(rows_of(domain))
    kept = Counter(row for row, now in zip(rows_of(domain), written(found), strict=True) if row == now)
    assert all(kept[row] >= 2 for row, many in counts.items() if many >= 8)


def test_a_column_that_counts_for_more_is_kept_rather():
    domain = domain_table(3, 200, columns=4, values=5, nulls=0.0)
    plain, weighted = (
        local_suppression(domain, MODELS["k"], {"a": w}, options=BRIEF).cells_by_column for w in (1.0, 5.0)
    )
    assert weighted[0] < plain[0] / 2
    assert weighted.sum() >= plain.sum()


@pytest.mark.parametrize("rows", [14, 300])
@pytest.mark.parametrize("limit", [0.0, 0.05, 0.2])
def test_limits_hold_or_the_best_reached_is_told(rows, limit):
    domain = domain_table(5, rows, columns=3, values=2 if rows < 20 else 4, nulls=0.0)
    found = local_suppression(domain, MODELS["k"], limits={"b": limit}, options=BRIEF)
    assert found.share_by_column[1] <= limit
    assert min(Counter(written(found)).values()) >= 3
    with pytest.raises(Unreachable, match=r"'a' may lose 0.0% of its cells, and the best result loses \d+\.\d%"):
        local_suppression(domain, MODELS["k"], limits={"a": 0.0, "b": 0.0, "c": 0.0})


def test_a_limit_is_missed_by_no_more_cells_than_are_rare():
    """A value that fewer than k records hold has to go, and no other."""
    domain = domain_table(7, 400, columns=3, values=3, nulls=0.0)
    codes = domain.codes.copy()
    codes[:2, 0] = 2
    codes[2:, 0] %= 2
    rare = Domain(domain.names, domain.hierarchies, codes, domain.tally)
    with pytest.raises(Unreachable, match=r"'a' may lose 0.0% of its cells, and the best result loses 0.8%"):
        local_suppression(rare, MODELS["k"], limits={"a": 0.0})
    assert local_suppression(rare, MODELS["k"], limits={"a": 0.0075}, options=BRIEF).cells_by_column[0] == 3


@given(st.lists(st.floats(0.1, 9.0), min_size=1, max_size=6))
def test_patterns_come_by_their_cost_and_each_once(weights):
    found = [*iterate_patterns(np.array(weights))]
    costs = [cost for cost, _ in found]
    assert costs == pytest.approx([sum(weights[a] for a in columns) for _, columns in found])
    assert np.diff(costs).min(initial=0.0) >= -1e-9
    assert len({columns for _, columns in found}) == len(found) == 2 ** len(weights)


def test_no_records_or_fewer_than_k_cannot_be_released():
    for rows in (0, 2):
        with pytest.raises(Unreachable):
            local_suppression(domain_table(1, rows), MODELS["k"])


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("columns", "models", "cells"), [(20, "k", 3015), (20, "l", 3230), (70, "k", 11859)])
def test_wide_tables_take_seconds_and_lose_no_more(columns, models, cells):
    wide = domain_table(0, 200, columns, 6)
    since = time.process_time()
    found = local_suppression(wide, MODELS[models])
    assert time.process_time() - since < 6  # it took 16 to 75 when every pattern was looked at in Python
    assert found.cells_by_column.sum() <= cells
    assert found.generalization.holds(MODELS[models])


@pytest.mark.parametrize("average", ["generalize", "suppress"])
def test_records_that_a_partition_leaves_without_quasi_identifiers_count_as_suppressed(average: str) -> None:
    random = np.random.default_rng(3)
    frame = pd.DataFrame({name: random.choice(list("abcdef"), RECORDS) for name in ("job", "town")})
    groups = {"tree": {"first": ["a", "b"], "second": ["c", "d"], "third": ["e", "f"]}}
    column = {"role": "quasi", "average": average, **({"hierarchy": groups} if average == "generalize" else {})}
    asked: dict[str, Any] = {"privacy": {"k": 3}, "columns": dict.fromkeys(frame, column), "method": {"name": "mdav"}}
    release = kinfold.anonymize(frame, asked)
    empty = release.frame.isna() | (release.frame == TOP)
    emptied = int(empty.all(axis=1).sum())
    assert 0 < emptied < RECORDS
    assert any(note.startswith(f"{emptied} records keep no quasi-identifier") for note in release.plan.public_notes)
    with pytest.raises(
        Unreachable, match=f"{emptied} records would keep no quasi-identifier, but at most {emptied - 1}"
    ):
        kinfold.anonymize(frame, {**asked, "method": {"name": "mdav", "suppression": emptied - 1}})
    kinfold.anonymize(frame, {**asked, "method": {"name": "mdav", "suppression": emptied}})

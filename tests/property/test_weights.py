"""Sampling weights: weighted averages are those of repeated records; released weights identify nobody."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.errors import DataError, PolicyError, Unreachable
from kinfold.methods import aggregation
from kinfold.methods.weights import calibrate
from ledger import cases
from reference import weights as plain

DATA = Path(os.environ.get("KINFOLD_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_data = pytest.mark.skipif(not (DATA / "free1.csv").exists(), reason="free1.csv is not here (KINFOLD_DATA)")
NULL = 5
RECORDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, NULL), st.integers(1, 9)), min_size=1, max_size=25)


@given(RECORDS)
def test_a_weighted_average_is_the_average_of_repeated_records(records: list[tuple[int, int, int]]) -> None:
    labels, codes, weights = (np.array(column) for column in zip(*records, strict=True))
    labels = np.unique(labels, return_inverse=True)[1]
    many = [np.array(plain.repeat(column, weights)) for column in (labels, codes)]
    for operator in (aggregation.ordinal_median, aggregation.convex_median):
        given = operator(codes, labels, NULL, weights)
        assert given.tolist() == operator(many[1], many[0], NULL).tolist()
    assert aggregation.mode(codes, labels, weights=weights).tolist() == [
        plain.most_frequent(codes[labels == c], weights[labels == c]) for c in range(labels.max() + 1)
    ]
    numbers, exact = codes.astype(float), codes.astype(object)
    means = [np.average(codes[labels == c], weights=weights[labels == c]) for c in range(labels.max() + 1)]
    assert aggregation.mean(numbers, labels, weights) == pytest.approx(means)
    assert aggregation.exact_mean(exact, labels, weights).tolist() == [round(each) for each in map(_halve, means)]
    medians = [plain.lower_median(codes[labels == c], weights[labels == c]) for c in range(labels.max() + 1)]
    assert aggregation.median(numbers, labels, weights).tolist() == medians
    assert aggregation.exact_median(exact, labels, weights).tolist() == medians


def _halve(mean: float) -> float:
    """Return a half as it is, although a sum of doubles may miss it."""
    return round(mean, 9)


def test_averages_are_weighted_where_values_are_missing_too() -> None:
    random, places = np.random.default_rng(0), np.arange(40)
    table = pd.DataFrame({"y": random.integers(0, 100, 40).astype(float), "w": random.integers(1, 50, 40)})
    table["x"] = np.where(places % 2, np.nan, random.integers(0, 50, 40))
    keys = {"role": "quasi-identifier", "type": "continuous"}
    columns = {"y": keys, "x": {**keys, "missing": "separate"}, "w": {"role": "weight"}}
    output = {"weighted": True, "round": False, "order": "kept"}
    release = kinfold.anonymize(table, {"privacy": {"k": 4}, "columns": columns, "output": output})
    for label in set(release.labels):
        own = release.labels == label
        mean = np.average(table.y[own], weights=table.w[own])
        assert release.frame.y[own].tolist() == pytest.approx([mean] * own.sum())


@settings(max_examples=cases(40, 400), deadline=None)
@given(
    columns=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), min_size=4, max_size=12),
    before=st.data(),
)
def test_calibrated_weights_are_those_of_raking(columns: list[tuple[str, str]], before: Any) -> None:
    start = np.array(before.draw(st.lists(st.integers(1, 50), min_size=len(columns), max_size=len(columns))), float)
    shifts = before.draw(st.lists(st.floats(0.8, 1.25), min_size=len(columns), max_size=len(columns)))
    target = start * shifts  # totals that some weights have
    sides = [*zip(*columns, strict=True)]
    names = [sorted({*side}) for side in sides]
    shown = [
        np.array([[value == name for name in known] for value in side], float)
        for side, known in zip(sides, names, strict=True)
    ]
    goals = [target @ each for each in shown]
    raked = plain.rake(
        start, sides, [dict(zip(known, goal, strict=True)) for known, goal in zip(names, goals, strict=True)]
    )
    assume(raked is not None)
    found = calibrate(start, np.ones(len(start), int), np.column_stack(shown), np.concatenate(goals))
    assert found == pytest.approx(raked, rel=1e-6)


def survey(seed: int, n: int = 120) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": chance.integers(18, 90, n),
            "work": chance.choice(["job", "school", "none"], n, p=[0.5, 0.3, 0.2]),
            "town": chance.choice(["a", "b", "c"], n),
            "ill": chance.choice(["no", "yes"], n),
            "w": chance.uniform(10, 200, n).round(1),
        }
    )


def ask(weight: dict[str, Any], method: str = "mdav", **sections: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {name: {"role": "quasi"} for name in ("age", "work", "town")}
    if method == "lattice":
        columns["age"] = {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40, 80]}}
    columns |= {"ill": {"role": "confidential"}, "w": {"role": "weight", **weight}}
    return {"privacy": {"k": 4}, "method": {"name": method}, "columns": columns, **sections}


QUASI = ["age", "work", "town"]


@pytest.mark.parametrize("seed", range(cases(3, 30)))
def test_regrouped_weights_identify_nobody_and_keep_totals(seed: int) -> None:
    table = survey(seed)
    release = kinfold.anonymize(table, ask({"calibrate": ["work", "town", "age", "ill"]}, output={"weighted": True}))
    released = release.frame
    assert released.groupby(QUASI).w.nunique().max() == 1  # so k holds for who knows weights, too
    for name in ("work", "town", "ill"):
        goal = table.groupby(name).w.sum()
        assert released.groupby(name).w.sum().reindex(goal.index).to_numpy() == pytest.approx(goal.to_numpy(), rel=1e-3)
    assert (released.age * released.w).sum() == pytest.approx((table.age * table.w).sum(), rel=1e-3)
    assert any("within 0.100% of the original" in note for note in release.plan.public_notes)


def test_mean_weights_keep_weighted_means() -> None:
    table = survey(7)
    asked = ask({"average": "mean"}, output={"weighted": True, "round": False})
    released = kinfold.anonymize(table, asked).frame
    assert released.w.sum() == pytest.approx(table.w.sum(), rel=1e-5)
    assert np.average(released.age, weights=released.w) == pytest.approx(np.average(table.age, weights=table.w))
    equal = kinfold.anonymize(table.assign(w=7.5), asked).frame
    unweighted = kinfold.anonymize(table.assign(w=7.5), ask({"average": "mean"}, output={"round": False})).frame
    pd.testing.assert_frame_equal(equal, unweighted)  # equal weights change nothing


def test_a_generalized_column_has_totals_of_its_labels(tmp_path: Path) -> None:
    table = survey(3)
    asked = ask({"calibrate": ["age", "town"], "round_to": 0.5, "tolerance": 0.02}, "lattice")
    asked["method"]["suppression"] = 0.1
    release = kinfold.anonymize(table, asked)
    released = release.frame
    assert release.plan.recoding.labels.min() < 0 or len(released) == len(table)
    assert released.w.sum() == pytest.approx(table.w.sum(), rel=0.02)
    assert (released.w % 0.5 == 0).all()
    folder = release.save(tmp_path / "out")
    verdict = kinfold.verify(folder / "public", asked, twice=True)
    assert verdict.holds, verdict.problems


@pytest.mark.parametrize(
    ("weight", "change", "error", "words"),
    [
        ({"calibrate": "wrok"}, {}, PolicyError, "did you mean 'work'"),
        ({"calibrate": "w"}, {}, PolicyError, "not released, or is a weight"),
        ({"calibrate": "age", "round_to": 1000}, {}, Unreachable, "rounded to 0"),
        ({"calibrate": "work", "round_to": 30}, {}, Unreachable, "miss a total by"),
        ({"average": "mean"}, {"w": 0.0}, DataError, "120 records have no sampling weight above 0"),
        ({"average": "median"}, {}, PolicyError, "'average' and 'missing' are for"),
        (
            {"calibrate": "work"},
            {"work": ["a", "b", *"c" * 118]},
            Unreachable,
            "no released record has 2 categories",
        ),
    ],
)
def test_weights_that_cannot_be_kept_are_refused(
    weight: dict[str, Any], change: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        kinfold.anonymize(survey(1).assign(**change), ask(weight))


def test_what_weighted_averages_cannot_do_is_refused() -> None:
    asked = ask({}, output={"weighted": True, "preserve": "variance"})
    asked["columns"]["work"]["average"] = "shares"
    with pytest.raises(PolicyError) as refused:
        kinfold.anonymize(survey(1), asked)
    assert "variance of weighted averages" in str(refused.value)
    assert "shares count records" in str(refused.value)
    none = ask({}, output={"weighted": True})
    none["columns"]["w"] = {"role": "other"}
    with pytest.raises(PolicyError, match="no column has the role weight"):
        kinfold.anonymize(survey(1), none)


@needs_data
def test_the_labour_force_file_keeps_its_totals() -> None:
    names = {"REGION": "nominal", "SEX": "nominal", "AGE": "continuous", "MARSTAT": "nominal"}
    table = pd.read_csv(DATA / "free1.csv", usecols=[*names, "WEIGHT"]).head(1000)
    columns = {name: {"role": "quasi", "type": kind} for name, kind in names.items()}
    columns["WEIGHT"] = {"role": "weight", "calibrate": ["SEX", "MARSTAT", "AGE"], "tolerance": 1e-4}
    released = kinfold.anonymize(table, {"privacy": {"k": 5}, "method": {"name": "mdav"}, "columns": columns}).frame
    for name in ("SEX", "MARSTAT"):
        before, after = (each.groupby(name).WEIGHT.sum() for each in (table, released))
        assert after.to_numpy() == pytest.approx(before.to_numpy(), rel=1e-4)
    assert (released.AGE * released.WEIGHT).sum() == pytest.approx((table.AGE * table.WEIGHT).sum(), rel=1e-4)
    assert released.groupby([*names]).WEIGHT.nunique().max() == 1


@needs_data
def test_the_tiny_file_by_hand() -> None:
    table = pd.read_csv(DATA / "francdat.csv")[["Num1", "Key1", "w"]]
    columns = {"Num1": {"role": "quasi"}, "Key1": {"role": "confidential"}, "w": {"role": "weight", "average": "mean"}}
    asked = {"privacy": {"k": 4}, "method": {"name": "univariate"}, "columns": columns}
    released = kinfold.anonymize(table, {**asked, "output": {"weighted": True, "round": False}}).frame
    order = np.argsort(table.Num1.to_numpy(), kind="stable")
    for start, stop in pairwise([0, 4, 8]):  # two classes of four
        part, after = table.iloc[order[start:stop]], released.iloc[order[start:stop]]
        assert after.Num1.to_numpy() == pytest.approx((part.Num1 * part.w).sum() / part.w.sum())
        assert after.w.to_numpy() == pytest.approx(part.w.mean(), rel=1e-5)


def sampled(n: int = 120, seed: int = 5) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    columns = {"a": chance.choice(list("abcdef"), n), "b": chance.choice(list("uvwxyz"), n)}
    return pd.DataFrame(columns).assign(
        ill=chance.choice(["flu", "hiv", "cold"], n), w=chance.choice([1.5, 20.0, 120.0], n)
    )


def ask_by_weight(method: str, **privacy: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {name: {"role": "quasi", "type": "nominal"} for name in "ab"}
    columns |= {"ill": {"role": "confidential"}, "w": {"role": "weight"}}
    return {"privacy": {"k": 2, **privacy}, "method": {"name": method}, "columns": columns}


def test_a_risk_above_the_threshold_empties_cells(tmp_path: Path) -> None:
    table = sampled()
    plainly = kinfold.anonymize(table, ask_by_weight("local-suppression"))
    release = kinfold.anonymize(table, ask_by_weight("local-suppression", individual_risk=0.01))
    found = [kinfold.risk.individual(each.frame.fillna("?"), ["a", "b"], table.w).max() for each in (plainly, release)]
    assert found[1] <= 0.01 < found[0]
    assert release.frame.isna().sum().sum() > plainly.frame.isna().sum().sum()
    public = release.save(tmp_path / "out") / "public"
    stated = json.loads((public / "certificate.json").read_text("utf-8"))["release"]["population"]
    assert stated["checked"] == "by the data holder, whose statement it is"
    assert [each["found"] for each in stated["promises"]] == pytest.approx([found[1]])
    assert "no people or weights of the population" in " ".join(kinfold.verify(public).notes)
    assert "w" not in pd.read_csv(public / "release.csv").columns


def test_weights_of_a_country_count_with_the_decimals_that_fit() -> None:
    table = sampled(400).assign(w=lambda t: (t.w * 4_000 / 3).round(6))  # 25 million people
    release = kinfold.anonymize(table, ask_by_weight("mdav", weighted=True, alpha=0.8))
    (found,) = [each.found for each in release.verdict.statements if each.promise.endswith("by its weight")]
    shares = [part.groupby(table.ill).w.sum().max() / part.w.sum() for _, part in table.groupby(release.labels)]
    assert found == pytest.approx(max(shares), rel=1e-6)
    assert found <= 0.8
    assert "'w': promises count weights rounded to 1 decimal" in release.plan.notes


def test_promises_by_weight_that_mean_nothing_are_refused() -> None:
    table = sampled()
    for change, message in (
        ({"weighted": True}, "no column has the role weight"),
        ({"individual_risk": 0.1}, "no column has the role weight"),
    ):
        asked = ask_by_weight("mdav", **change)
        asked["columns"]["w"] = {"role": "other"}
        with pytest.raises(PolicyError, match=message):
            kinfold.anonymize(table, asked)
    with pytest.raises(DataError, match="a sampling weight is below 1"):
        kinfold.anonymize(table.assign(w=0.5), ask_by_weight("mdav", individual_risk=0.1))
    with pytest.raises(DataError, match="add up to more than"):
        kinfold.anonymize(table.assign(w=1e9), ask_by_weight("mdav", weighted=True, l=2))
    with pytest.raises(Unreachable, match="even with all records in one class"):
        kinfold.anonymize(table, ask_by_weight("local-suppression", individual_risk=0.00001))
    with pytest.raises(PolicyError, match="cannot merge classes"):
        kinfold.anonymize(table, ask_by_weight("lattice", individual_risk=0.1))

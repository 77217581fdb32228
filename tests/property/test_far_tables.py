"""Far tables on the embedded engine: classes of regions are classes of the table, whatever the table is like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from everyday import first
from far_tables import nothing_is_near, people, policy
from kinfold.methods.planning import region_routes
from kinfold.rows.drawing import drawn

KINDS = ("separate", "ties", "plain", "equal", "skewed", "drop", "mean")

PROMISES: dict[str, dict[str, Any]] = {"t-first": {"t": 0.3}, "k-first": {"t": 0.3, "l": 2}, "mdav": {"l": 3}}


@pytest.fixture(autouse=True)
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_is_near(monkeypatch)


@pytest.mark.parametrize("kind", first(KINDS, 2))
def test_every_class_has_k_records_and_their_averages(kind: str) -> None:
    table = people(kind)
    asked = policy(kind, output={"round": False})
    release = kinfold.anonymize(table, asked)
    assert release.plan.regions > 1
    assert release.verdict.k >= 5
    again = kinfold.anonymize(table, {**asked, "engine": {"threads": 1}})
    assert release.labels.tolist() == again.labels.tolist()
    kept = release.recoding.kept
    if kind == "drop":
        gone = np.isnan(table.column("age").to_numpy()) | np.isnan(table.column("pay").to_numpy())
        assert kept.tolist() == (~gone).tolist()
        assert any("left out because a value is missing" in note for note in release.plan.notes)
    else:
        assert kept.all()
    _averages_are_right(table, release, kind)


def _averages_are_right(table: pa.Table, release: Any, kind: str) -> None:
    """What is released of the pay is the mean over the class, as numpy finds it on all records."""
    labels = release.recoding.labels
    pay = table.column("pay").to_numpy()
    if kind == "mean":
        pay = np.where(np.isnan(pay), np.nanmean(pay), pay)
    kept = labels >= 0
    sums = np.bincount(labels[kept], pay[kept]) / np.bincount(labels[kept])
    wanted = sums[labels[kept]]
    found = release.frame.column("pay").to_numpy()
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    assert np.nanmax(np.abs(found - wanted)) < 1e-6  # of an imputed mean ten digits are known


@pytest.mark.parametrize("method", first(PROMISES))
def test_promises_hold_against_the_whole_table(method: str) -> None:
    asked = policy("drop", method)
    asked["privacy"] |= PROMISES[method]
    release = kinfold.anonymize(people("drop"), asked)
    assert release.plan.regions > 1
    assert kinfold.verify(release.frame, asked).holds  # compares with what is released, not with what came


@pytest.mark.slow
def test_regions_and_seams_lose_hardly_more_than_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    middle, wide = random.normal(size=(20, 6)) * 3, random.uniform(0.3, 1.5, (20, 6))
    group = random.integers(0, 20, 20_000)
    x = middle[group] + random.normal(size=(20_000, 6)) * wide[group]
    table = pa.table({f"x{i}": column for i, column in enumerate(x.T)})
    asked = {"privacy": {"k": 10}, "method": {"name": "mdav", "block": 2_000}}
    asked["columns"] = {name: {"role": "quasi"} for name in table.column_names}
    nothing_is_near(monkeypatch, region=8_000, sample=4_000)
    apart = _lost(table, kinfold.anonymize(table, asked))
    monkeypatch.setattr(region_routes, "FAR", 10**9)
    assert apart < 1.01 * _lost(table, kinfold.anonymize(table, asked))


def _lost(table: pa.Table, release: Any) -> float:
    both = [np.column_stack([t.column(n).to_numpy() for n in table.column_names]) for t in (table, release.frame)]
    return float((((both[0] - both[1]) / both[0].std(axis=0)) ** 2).sum())


def test_refinement_is_by_steps_and_its_steps_repeat_it() -> None:
    table = people("plain")
    asked = {**policy(), "method": {"name": "mdav", "refine": 3}}
    release = kinfold.anonymize(table, asked)
    assert any("not seconds" in note for note in release.plan.notes)
    again = kinfold.anonymize(table, {**asked, "method": {"name": "mdav", "refine_steps": release.plan.steps}})
    assert release.labels.tolist() == again.labels.tolist()


def test_figures_are_about_those_of_every_record() -> None:
    table, asked = people("plain", 4_000), policy()
    release = kinfold.anonymize(table, asked)
    estimated, exact = release.measures, kinfold.measure(table, release.frame, asked)
    for section in ("risk", "loss"):
        assert estimated[section].keys() == exact[section].keys()
    for key in ("prosecutor_max", "prosecutor_mean", "uniques", "inference"):
        assert estimated["risk"][key] == pytest.approx(exact["risk"][key])
    for key in ("sse", "sst", "sse_ratio", "sse_by_column", "discernibility"):
        assert estimated["loss"][key] == pytest.approx(exact["loss"][key], rel=1e-8)
    for section, key in (("loss", "il1s"), ("loss", "overall"), ("risk", "dr_max"), ("risk", "linkage")):
        assert estimated[section][key] == pytest.approx(exact[section][key], rel=0.25), key
    assert estimated["risk_before"]["uniques"] == exact["risk_before"]["uniques"]
    assert any("loss.overall" in note and "of 4,000 records" in note for note in estimated["notes"])
    assert not any("loss.sse" in note for note in estimated["notes"])
    assert release.measures.risk_by_record is None


def test_what_one_record_dominates_and_what_is_gone_is_counted_on_all_records() -> None:
    table, asked = people("skewed"), policy()
    counted = kinfold.anonymize(table, asked)
    exact = kinfold.measure(table, counted.frame, asked)
    assert any("p% rule" in warning for warning in counted.measures.warnings)
    assert counted.measures.warnings == exact.warnings
    assert counted.measures["plausibility"]["vanished"] == exact["plausibility"]["vanished"]


WHY = {
    "method.block": {"method": {"name": "mdav", "block": 0}},
    "rescales": {"output": {"preserve": "variance"}},
    "edit rules": {"rules": [{"check": "age >= 0", "repair": True}]},
    "people": {"privacy": {"k": 5, "unit": "note"}},
    "a region alone": {"privacy": {"k": 5, "t": 0.0001}},
}


@pytest.mark.parametrize("why", first(WHY))
def test_what_takes_every_record_says_so(why: str) -> None:
    asked = {**policy(), **WHY[why]}
    if why == "people":
        asked["columns"]["note"] = {"role": "identifier"}
    release = kinfold.anonymize(people("plain"), asked)
    assert release.plan.regions == 0
    told = [note for note in release.plan.notes if "gathered in one place" in note]
    assert len(told) == 1
    assert why in told[0]


def test_patterns_of_missing_values_that_are_rare_are_settled_over_the_whole_table() -> None:
    table = people("separate")
    age = table.column("age").to_numpy().copy()
    age[:] = 40.0
    age[:3] = np.nan
    table = table.set_column(0, "age", pa.array(age, from_pandas=True))
    release = kinfold.anonymize(table, policy("separate"))
    assert release.verdict.k >= 5
    assert any("too few records lack the same values" in note for note in release.plan.notes)


class Shelf:
    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.taken = 0

    def begin(self, _: Any) -> list[str]:
        return []

    def get(self, name: str) -> Any:
        self.taken += name in self.held
        return self.held.get(name)

    def put(self, name: str, **arrays: Any) -> None:
        self.held[name] = arrays

    resume = False


def test_a_stopped_run_goes_on_with_the_regions_that_were_done(tmp_path: Any) -> None:
    from pyarrow import parquet

    parquet.write_table(people("plain"), tmp_path / "people.parquet")
    shelf: Any = Shelf()
    first = kinfold.anonymize(tmp_path / "people.parquet", policy(), saved=shelf)
    assert not shelf.taken
    shelf.held = dict(list(shelf.held.items())[:2])  # stopped after two regions
    second = kinfold.anonymize(tmp_path / "people.parquet", policy(), saved=shelf)
    assert shelf.taken == 2
    assert first.labels.tolist() == second.labels.tolist()
    assert first.frame.equals(second.frame)


def test_records_are_drawn_by_their_places_alone() -> None:
    few, many = drawn(10_000, 1_000), drawn(10_000, 3_000)
    assert set(few) <= set(many)
    assert abs(len(few) - 1_000) < 150
    assert drawn(50, 60).tolist() == list(range(50))

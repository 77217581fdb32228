"""Far tables on the embedded engine: classes of regions are classes of the table, whatever the table is like."""

import csv
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kinfold
from everyday import first, pairwise
from kinfold import checker
from kinfold.errors import DataError, PolicyError
from kinfold.methods.blocks import routing
from kinfold.tables.queries import sample_positions
from kinfold.tables.schema import normalize_category
from large_tables import lower_memory_limits, people, policy
from ledger import cases
from reference import definitions

KINDS = ("separate", "ties", "plain", "equal", "skewed", "drop", "mean")

PROMISES: dict[str, dict[str, Any]] = {"t-first": {"t": 0.3}, "k-first": {"t": 0.3, "l": 2}, "mdav": {"l": 3}}


@pytest.fixture(autouse=True)
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    lower_memory_limits(monkeypatch)


@pytest.mark.slow
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
    lower_memory_limits(monkeypatch, region=8_000, sample=4_000)
    apart = _lost(table, kinfold.anonymize(table, asked))
    monkeypatch.setattr(routing, "MAX_RECORDS_IN_MEMORY", 10**9)
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
    assert counted.measures["loss"]["shift"] == exact["loss"]["shift"]


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
    told = [note for note in release.plan.notes if "collected in one place" in note]
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
    few, many = sample_positions(10_000, 1_000), sample_positions(10_000, 3_000)
    assert set(few) <= set(many)
    assert abs(len(few) - 1_000) < 150
    assert sample_positions(50, 60).tolist() == list(range(50))


# Equal numbers are one value, however they are written: what is certified equals a count over exact fractions


SPELLINGS = {
    Fraction(0): ("0", "-0", "0.0", "-0.0", "+0", "0e0", ".0", "-0e5"),
    Fraction(1): ("1", "1.0", "+1", "1e0", "1.", "10e-1", "1.000", " 1", "\u00a01"),
    Fraction(5, 2): ("2.5", "2.50", "+2.5", "25e-1", "0.25e1", "2.5\u3000"),
    Fraction(-3): ("-3", "-3.0", "-3e0"),
    Fraction(10**30): ("1e30", "1E+30", "1" + "0" * 30, "1" + "0" * 30 + ".0"),
    Fraction(1, 10**500): ("1e-500", "0.1e-499"),
}
PRIVACY: tuple[dict[str, Any], ...] = (
    {"l": 2},
    {"l": 1.3, "l_kind": "entropy"},
    {"l": 2, "l_kind": "recursive", "c": 4.0},
    {"p": 2},
    {"alpha": 0.85},
    {"t": 0.6},
)


def spelled(chance: np.random.Generator, few: int, n: int = 36) -> list[str]:
    """Draw numbers, each written in any of its ways."""
    numbers = [list(SPELLINGS)[i] for i in chance.choice(len(SPELLINGS), few, replace=False)]
    weights = np.array([3.0] + [1.0] * (few - 1))
    drawn = [numbers[i] for i in chance.choice(few, n, p=weights / weights.sum())]
    return [SPELLINGS[number][int(chance.integers(len(SPELLINGS[number])))] for number in drawn]


def number(text: str | None) -> Fraction | None:
    return None if not text else Fraction(Decimal(text.strip()))


def by_definition(rows: list[dict[str, Any]], asked: dict[str, Any], *, ordered: bool) -> float:
    """What a promise has on some rows, by exact fractions."""
    held = definitions.classes([row["zip"] for row in rows], [row["x"] for row in rows])
    whole = sum(held[1:], held[0])
    if "alpha" in asked:
        return definitions.farthest(held, definitions.alpha)
    if "t" in asked and ordered:
        order = sorted(whole, key=lambda value: (value is not None, value))
        return definitions.farthest(held, lambda each: definitions.ordered_emd(each, whole, order))
    if "t" in asked:
        return definitions.farthest(held, lambda each: definitions.equal_emd(each, whole))
    if asked.get("l_kind") == "entropy":
        return min(map(definitions.entropy, held))
    if asked.get("l_kind") == "recursive":
        return min(definitions.recursive(each, asked["c"]) for each in held)
    return min(map(len, held))


def table(x: Any) -> dict[str, Any]:
    return {"zip": [f"{i // 3:02}z" for i in range(len(x))], "x": x}


def released(source: Any, column: dict[str, Any], privacy: dict[str, Any], folder: Path, **output: Any) -> Path | None:
    columns = {"zip": {"role": "quasi", "type": "nominal"}, "x": {"role": "confidential", **column}}
    policy = {"privacy": {"k": 3, **privacy}, "method": {"name": "mdav"}, "columns": columns, "output": output}
    try:
        kinfold.anonymize(source, policy).save(folder)
    except kinfold.Unreachable:
        return None
    return folder / "public"


@pytest.mark.slow
@pytest.mark.parametrize("privacy", PRIVACY, ids=str)
@pytest.mark.parametrize("kind", [None, "nominal", "order", "hierarchy"])
def test_numbers_of_a_csv_file_are_told_apart_as_numbers(
    privacy: dict[str, Any], kind: str | None, tmp_path: Path
) -> None:
    made = 0
    for seed in range(cases(1, 20)):
        chance = np.random.default_rng(seed)
        x = spelled(chance, 2 if kind is None else 3)
        source = tmp_path / f"{seed}.csv"
        pd.DataFrame(table(x)).to_csv(source, index=False)
        texts = sorted({normalize_category(text) for text in x}, key=Fraction)
        column: dict[str, Any] = {} if kind is None else {"type": "nominal"}
        if kind == "order":
            column = {"type": "ordinal", "order": texts}
        if kind == "hierarchy":
            column |= {"hierarchy": {"levels": [[text, text] for text in texts]}}
        public = released(source, column, privacy, tmp_path / f"out{seed}")
        if public is None:
            continue
        made += 1
        told = json.loads((public / "certificate.json").read_text())
        with (public / "release.csv").open() as file:
            rows = [{**row, "x": number(row["x"])} for row in csv.DictReader(file)]
        ordered = next(c for c in told["columns"] if c["name"] == "x")["distance"] == "ordered"
        assert told["promises"][1]["found"] == pytest.approx(by_definition(rows, privacy, ordered=ordered))
        assert told["found"]["l"]["x"] == by_definition(rows, {}, ordered=False)
        assert kinfold.verify(public, twice=True).holds
        assert checker.check_release(public)["holds"]
    assert made


SOURCES = {
    "pandas": pd.DataFrame,
    "categorical": lambda data: pd.DataFrame(data).astype({"x": "category"}),
    "object": lambda data: pd.DataFrame({**data, "x": pd.array(list(data["x"]), object)}),
    "float32": lambda data: pd.DataFrame(data).astype({"x": np.float32}),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "decimal": lambda data: pa.table(data | {"x": pa.array([Decimal(v).quantize(Decimal("1.00")) for v in data["x"]])}),
    "strings": lambda data: pa.table(data | {"x": [str(v) for v in data["x"]]}),
}


@pytest.mark.slow
@pairwise(source=[*SOURCES, "parquet"], kind=[None, "nominal"], form=["csv", "parquet"])
def test_the_two_zeros_of_a_frame_are_one_value(source: str, kind: str | None, form: str, tmp_path: Path) -> None:
    x = np.random.default_rng(7).choice([0.0, -0.0, 1.0], 60, p=[0.4, 0.4, 0.2])
    data = table(x)
    if source == "parquet":
        pq.write_table(pa.table(data), tmp_path / "t.parquet")
    frame = SOURCES[source](data) if source in SOURCES else tmp_path / "t.parquet"
    column = {} if kind is None else {"type": kind}
    public = released(frame, column, {"l": 2}, tmp_path / "out", format=form)
    assert public is not None
    rows = pd.read_csv(public / "release.csv") if form == "csv" else pd.read_parquet(public / "release.parquet")
    fewest = rows.assign(x=rows.x.astype(float)).groupby("zip").x.nunique().min()
    assert fewest == 2 == json.loads((public / "certificate.json").read_text())["found"]["l"]["x"]


def test_numbers_among_words_are_numbers(tmp_path: Path) -> None:
    pd.DataFrame(table(["1", "1.0", "a"] * 8)).to_csv(tmp_path / "t.csv", index=False)
    public = released(tmp_path / "t.csv", {"type": "nominal"}, {"l": 2}, tmp_path / "out")
    assert public is not None
    assert json.loads((public / "certificate.json").read_text())["found"]["l"]["x"] == 2


def test_codes_with_leading_zeros_are_no_numbers(tmp_path: Path) -> None:
    pd.DataFrame(table(["01", "1", "001"] * 8)).to_csv(tmp_path / "t.csv", index=False)
    public = released(tmp_path / "t.csv", {"type": "nominal"}, {"l": 3}, tmp_path / "out")
    assert public is not None
    assert checker.check_release(public)["found"]["l"] == {"x": 3}


def test_whoever_is_numbered_in_two_ways_is_one_person(tmp_path: Path) -> None:
    pid = [f"{i // 2}" if i % 2 else f"{i // 2}.0" for i in range(24)]
    pd.DataFrame({**table(["a", "b", "c"] * 8), "pid": pid}).to_csv(tmp_path / "t.csv", index=False)
    columns = {"zip": {"role": "quasi"}, "x": {"role": "confidential"}, "pid": {"role": "identifier"}}
    policy = {"privacy": {"k": 3, "unit": "pid"}, "method": {"name": "mdav"}, "columns": columns}
    release = kinfold.anonymize(tmp_path / "t.csv", policy)
    people = pd.DataFrame({"class": release.labels, "pid": [int(float(each)) for each in pid]})
    assert release.verdict.people[0].found == people.groupby("class").pid.nunique().min() >= 3


@pytest.mark.parametrize(
    "column",
    [
        {"type": "ordinal", "order": ["1", "2", "1.0"]},
        {"type": "nominal", "hierarchy": {"levels": [["1", "a"], ["1.0", "b"], ["2", "b"]]}},
    ],
)
def test_a_number_with_two_places_is_refused(column: dict[str, Any]) -> None:
    source = pa.table(table(["1", "1.0", "2"] * 8))
    columns = {"zip": {"role": "quasi"}, "x": {"role": "confidential", **column}}
    with pytest.raises(PolicyError, match="two places"):
        kinfold.anonymize(source, {"privacy": {"k": 3}, "columns": columns})


@pytest.mark.parametrize("kind", [None, "nominal"])
def test_what_is_not_a_number_is_no_value_of_a_column_of_numbers(kind: str | None) -> None:
    source = pa.table(table(pa.array([0.0, float("nan"), None] * 8)))
    columns = {"zip": {"role": "quasi"}, "x": {"role": "confidential", **({"type": kind} if kind else {})}}
    with pytest.raises(DataError, match="8 values that are infinite or not a number"):
        kinfold.anonymize(source, {"privacy": {"k": 3, "l": 2}, "columns": columns})

"""Promises about a population: people counted by hand, the recorded decisions, what a recipient is told."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinfold
from kinfold import checker, risk
from kinfold.measures.singling_out import PopulationUniques
from kinfold.models import DeltaPresence, EstimatedKMap, KMap
from kinfold.models.population import find_k_map_size
from kinfold.tables.tally import Tally
from reference import parity

LADDERS = {
    "zip": [["a1", "a", "*"], ["a2", "a", "*"], ["b1", "b", "*"], ["b2", "b", "*"], ["c1", "c", "*"]],
    "age": [[str(age), f"{age // 10}.", "*"] for age in range(20, 40, 3)],
}
COLUMNS = {name: {"role": "quasi", "type": "nominal", "hierarchy": {"levels": rows}} for name, rows in LADDERS.items()}


def people(seed: int, n: int = 120) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    drawn = {name: chance.choice([row[0] for row in rows], n).astype(object) for name, rows in LADDERS.items()}
    drawn["zip"][chance.random(n) < 0.05] = None
    return pd.DataFrame(drawn)


def fits(person: Any, row: Any) -> bool:
    """Whether a person may be in the class of a released row."""

    def one(name: str) -> bool:
        value, label = getattr(person, name), getattr(row, name)
        if pd.isna(value) or pd.isna(label):
            return label == "*" or (pd.isna(value) and pd.isna(label))
        return label in next(each for each in LADDERS[name] if each[0] == value)

    return all(one(name) for name in LADDERS)


def anonymize(table: pd.DataFrame, known: pd.DataFrame, asked: dict[str, Any], method: str, **keys: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        known.to_csv(Path(folder) / "people.csv", index=False)
        population = {"table": str(Path(folder) / "people.csv"), **asked}
        policy = {"privacy": {"k": 2, "population": population}, "method": {"name": method, **keys}, "columns": COLUMNS}
        return kinfold.anonymize(table, policy)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(["lattice", "mingen", "datafly", "mingen-cell", "mu-argus"]))
def test_the_people_of_each_class_are_those_who_fit_it(seed: int, method: str) -> None:
    known = people(seed)
    asked: dict[str, Any] = {"k": 6} | ({"presence": [0.0, 0.9]} if method in ("lattice", "mingen") else {})
    try:
        release = anonymize(known.iloc[:60], known, asked, method)
    except kinfold.Unreachable:
        return
    rows = release.frame.groupby([*LADDERS], dropna=False).size().reset_index(name="size")
    counts = [sum(fits(person, row) for person in known.itertuples()) for row in rows.itertuples()]
    values = {each.model: each.found for each in release.verdict.statements}
    assert values["kmap"] == min(counts) >= 6
    risk = release.measures["risk"]
    assert (risk["journalist_max"], risk["prosecutor_max"]) == (1 / min(counts), 1 / min(rows["size"]))
    share = sum(size / count for size, count in zip(rows["size"], counts, strict=True)) / rows["size"].sum()
    assert risk["marketer"] == risk["journalist"]["mean"] == pytest.approx(share)
    if "presence" in asked:
        assert values["presence"] == max(size / count for size, count in zip(rows["size"], counts, strict=True)) <= 0.9


def test_it_loses_less_than_the_same_k_in_the_table() -> None:
    known = people(1, 400)
    sample = known.iloc[:80]
    by_population = anonymize(sample, known, {"k": 8}, "lattice", suppression=0.1).measures["loss"]["granularity"]
    policy = {"privacy": {"k": 8}, "method": {"name": "lattice", "suppression": 0.1}, "columns": COLUMNS}
    assert by_population > kinfold.anonymize(sample, policy).measures["loss"]["granularity"] + 0.1


def test_a_class_may_have_fewer_records_than_the_people_it_needs() -> None:
    known = people(7)
    (finding,) = anonymize(known.iloc[:4], known, {"k": 50}, "lattice").verdict.statements
    assert finding.found >= 50


def test_a_recipient_is_told_that_it_is_a_statement(tmp_path: Path) -> None:
    known = people(2)
    release = anonymize(known.iloc[:60], known, {"k": 5, "presence": [0.0, 0.9]}, "lattice", suppression=0.2)
    release.save(tmp_path / "out")
    verdict = kinfold.verify(tmp_path / "out", twice=True)
    assert verdict.holds
    assert sum("statement of the data holder" in note for note in verdict.notes) == 2
    entry = json.loads((tmp_path / "out/public/certificate.json").read_text("utf-8"))["release"]["population"]
    assert entry["checked"] == "by the data holder, whose statement it is"
    assert [each["found"] for each in entry["promises"]] == [each.found for each in release.verdict.statements]
    assert "people.csv" not in (tmp_path / "out/public/certificate.json").read_text("utf-8")
    assert "statement of the data holder" in (tmp_path / "out/public/report.html").read_text("utf-8")


def test_people_outside_of_the_population_break_it() -> None:
    known = people(3)
    with pytest.raises(kinfold.Unreachable, match="keeps the promises"):
        anonymize(known.iloc[:60], known.iloc[100:103], {"k": 5}, "lattice")
    with pytest.raises(kinfold.VerifyError, match="k-map"):
        anonymize(known.iloc[:60], known.iloc[100:103], {"k": 5}, "datafly")


@pytest.mark.parametrize("method", ["mdav", "local-suppression"])
def test_methods_without_labels_refuse_a_table_of_the_population(method: str) -> None:
    known = people(4)
    columns = {name: {"role": "quasi", "type": "nominal"} for name in LADDERS}
    with tempfile.TemporaryDirectory() as folder:
        known.to_csv(Path(folder) / "people.csv", index=False)
        privacy = {"k": 2, "population": {"table": str(Path(folder) / "people.csv"), "k": 5}}
        with pytest.raises(kinfold.PolicyError, match="cannot be compared"):
            kinfold.anonymize(known, {"privacy": privacy, "method": {"name": method}, "columns": columns})
    with pytest.raises(kinfold.PolicyError, match="no class size keeps a presence"):
        anonymize(known, known, {"presence": [0.1, 0.5]}, "datafly")


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({}, "either a table or a size"),
        ({"size": 100}, "promises nothing"),
        ({"size": 100, "k": 5}, "k and alpha"),
        ({"size": 100, "k": 5, "alpha": 0.1, "presence": [0.1, 0.2]}, "presence is for a population with a table"),
        ({"table": "p.csv", "k": 5, "alpha": 0.1}, "alpha is for a population with a size"),
        ({"table": "p.csv", "presence": [0.5, 0.2]}, "above the second"),
        ({"table": "nowhere.csv", "k": 5}, "privacy.population.table"),
        ({"size": 10, "k": 5, "alpha": 0.1}, "but 60 records"),
    ],
)
def test_wrong_keys_are_named(asked: dict[str, Any], text: str) -> None:
    policy = {"privacy": {"k": 2, "population": asked}, "method": {"name": "lattice"}, "columns": COLUMNS}
    with pytest.raises(kinfold.KinfoldError, match=text):
        kinfold.anonymize(people(5).iloc[:60], policy)


def test_a_population_without_a_column_is_named() -> None:
    known = people(6)
    with pytest.raises(kinfold.DataError, match=r"privacy.population.table: no column 'age'"):
        anonymize(known, known[["zip"]], {"k": 3}, "lattice")


def test_categories_of_the_population_that_a_hierarchy_lacks_are_kept_for_who_asks() -> None:
    known = people(1)
    known.loc[0, "zip"] = "x9"
    with pytest.raises(kinfold.DataError, match=r"privacy.population.table: the hierarchy of 'zip' misses 1") as error:
        anonymize(people(1), known, {"k": 2}, "lattice")
    assert error.value.problems[0].values == ("x9",)
    assert "x9" not in str(error.value)


@pytest.mark.parametrize("case", [each for each in parity.cases("kmap_estimators") if "Zero" in str(each.id)])
def test_both_checkers_need_the_class_of_the_parity_file(case: dict[str, Any]) -> None:
    given_, needed = case["input"], case["expect"]["k_needed"]
    n, keys = given_["n"], {"k": given_["k"], "population": given_["N"], "alpha": given_["significance"]}
    assert find_k_map_size(n, given_["N"], given_["k"], given_["significance"]) == needed
    assert checker.find_needed_size(n, keys) == needed
    assert EstimatedKMap(**keys).check(Tally({}, np.array([needed, n - needed]))).holds
    assert needed == 1 or not EstimatedKMap(**keys).check(Tally({}, np.array([needed - 1, n - needed + 1]))).holds


@pytest.mark.slow
@pytest.mark.parametrize("case", parity.cases("population_models"))
def test_nodes_of_adult_decide_as_recorded(case: dict[str, Any]) -> None:
    levels = case["input"]["levels"]
    whole = parity.generalized_adult(levels)[[*levels]]
    counts = pd.concat([whole.iloc[::3].value_counts(), whole.value_counts()], axis=1, keys=["n", "N"]).dropna()
    tally = Tally({}, counts.n.to_numpy(np.int64), people=counts.N.to_numpy(np.int64))
    for key, holds in case["arx_holds"].items():
        model, _, limits = key.split("|")
        values = [float(each) for each in limits.split(",")]
        if model == "kmap_population":
            assert KMap(int(values[0])).check(tally).holds is holds
        elif model == "delta_presence":
            assert DeltaPresence(*values).check(tally).holds is holds
    assert KMap(1).check(tally).found == case["expect"]["kmap_population_min"]
    assert DeltaPresence(0, 1).check(tally).found == pytest.approx(case["expect"]["presence_max"], rel=1e-12)


@pytest.mark.parametrize("estimator", ["dankar", "zayatz", "pitman", "snb"])
def test_uniques_are_those_of_the_risk_function(estimator: str) -> None:
    sizes = np.array([1] * 40 + [2] * 20 + [3] * 10 + [8] * 5)
    table = {"age": np.repeat(np.arange(len(sizes)), sizes).tolist()}
    expected = risk.population_uniques(table, "age", 3000, estimator)
    assert expected is not None
    finding = PopulationUniques(expected / 3000 * 0.99, 3000, estimator).check(Tally({}, sizes))
    assert finding.found == pytest.approx(expected / 3000)
    assert not finding.holds
    assert PopulationUniques(expected / 3000 * 1.01, 3000, estimator).check(Tally({}, sizes)).holds
    rest = Tally({}, sizes).drop(PopulationUniques(1e-9, 3000, estimator).failing(Tally({}, sizes)))
    assert PopulationUniques(1e-9, 3000, estimator).check(rest).holds


def test_an_estimate_that_does_not_exist_fails_with_its_reason() -> None:
    finding = PopulationUniques(0.1, 300, "pitman").check(Tally({}, np.ones(30, np.int64)))
    assert (finding.holds, finding.figure) == (False, None)
    assert "every record is unique" in finding.promise


def test_uniques_are_bounded_where_combinations_allow_classes_of_one() -> None:
    chance = np.random.default_rng(0)
    table = pd.DataFrame({name: chance.choice(list("abc"), 300, p=[0.6, 0.3, 0.1]) for name in "uvwxyz"})
    columns = {name: {"role": "quasi", "type": "nominal"} for name in table}
    privacy = {"k": 5, "combinations": {"size": 2}, "population": {"size": 3000, "uniques": 0.005}}
    release = kinfold.anonymize(table, {"privacy": privacy, "method": {"name": "lattice"}, "columns": columns})
    (finding,) = release.verdict.statements
    assert finding.holds
    assert 0 <= finding.found <= 0.005


@pytest.mark.parametrize(("population", "k", "needed"), [(10, 10**12, 10**12), (10**12, 10**12, 49)])
def test_a_k_map_of_any_k_is_computed_at_once(population: int, k: int, needed: int) -> None:
    """A certificate can hold any k: neither checker counts up to it."""
    assert find_k_map_size(40, population, k, 0.1) == needed
    assert checker.find_needed_size(40, {"k": k, "population": population, "alpha": 0.1}) == needed


@pytest.mark.parametrize(
    ("values", "column", "source"),
    [
        (["01.02.2020", "03.04.2021"], {"type": "date", "hierarchy": {"dates": ["year"]}}, {"dates": "%d.%m.%Y"}),
        (["2020-02-01T06:30:00", "2020-02-02T06:30:00"], {"type": "date", "hierarchy": {"dates": ["day"]}}, {}),
        (
            ["2020-02-01 06:30:00.000000", "2021-02-01 06:30:00.250000"],
            {"type": "date", "hierarchy": {"dates": ["year"]}},
            {},
        ),
        (["5 kg", "999 kg"], {"unit": "kg", "na": "999", "missing": "separate", "hierarchy": {"intervals": [10]}}, {}),
    ],
    ids=["days of a format", "moments", "moments with zeros", "units and codes"],
)
def test_people_fit_values_in_the_notation_of_the_source(
    values: list[str], column: dict[str, Any], source: dict[str, str], tmp_path: Path
) -> None:
    """At level 0 a release keeps this notation, and the table of the population has it, too."""
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["x,y", *(f"{value},a" for value in values * 3)]) + "\n", "utf-8")
    columns = {"x": {"role": "quasi", "average": "generalize", **column}, "y": {"role": "other"}}
    privacy = {"k": 2, "population": {"table": str(path), "k": 3}}
    policy = {"source": source, "privacy": privacy, "method": {"name": "lattice"}, "columns": columns}
    (finding,) = kinfold.anonymize(path, policy).verdict.statements
    assert finding.found == 3

"""`kinfold.risk` against the truths of peers and definitions, for every form of a table, and with bad input."""

import math
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinfold
from kinfold import DataError, PolicyError, risk
from kinfold.measures.formulas import special_uniques
from kinfold.measures.formulas.attribute_disclosure import interval_by_deviation
from reference.parity import cases, generalized_adult, table
from reference.suda_plain import minimal_sample_uniques

FREE = ["REGION", "SEX", "AGE", "MARSTAT"]


def approximate(f: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The approximation that sdcMicro uses by default: closed forms for f = 1 and 2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log, q = np.log(p), 1 - p
        small = [-log * p / q, p * (p * log + q) / q**2]
        return np.where(f == 1, small[0], np.where(f == 2, small[1], p / (f - q)))


@pytest.mark.parametrize("case", [c for c in cases("individual_risk") if c.id != "sdcMicro#350_printed"])
def test_individual_risk(case):
    given_, expect = case["input"], case["expect"]
    frame, keys, weights = table(given_["table"]), given_["keys"], given_["weights"]
    found = risk.individual(frame, keys, weights, missing="any")
    if "approx" in case["id"]:
        size = risk.counts(frame, keys, weights, missing="any")
        found = approximate(size.f, size.f / size.F)
    known = [float(each) for each in expect.get("rk", expect.get("first", []))]
    assert found.sum() == pytest.approx(float(expect["sum"]), rel=1e-12)
    assert found.max() == pytest.approx(float(expect["max"]), rel=1e-12)
    assert found[: len(known)] == pytest.approx(known, rel=1e-12)


@pytest.mark.parametrize("case", [c for c in cases("individual_risk") if c.id == "sdcMicro#350_printed"])
def test_individual_risk_of_the_practice_guide(case):
    people = [[people / size] * size for size, people in zip(case["input"]["f"], case["input"]["F"], strict=True)]
    rows = [(number, weight) for number, weights in enumerate(people) for weight in weights]
    found = risk.individual({"class": [row[0] for row in rows]}, "class", [row[1] for row in rows])
    first = [next(i for i, row in enumerate(rows) if row[0] == number) for number in range(len(people))]
    assert found[first] == pytest.approx(case["expect"]["exact"], rel=1e-12)


@pytest.mark.parametrize("case", cases("counts"))
def test_counts_where_a_missing_value_may_be_any(case):
    given_, expect = case["input"], case["expect"]
    found = risk.counts(table(given_["table"]), given_["keys"], given_["weights"], "any", given_["alpha"])
    assert (found.f == 1).sum() == expect["n1"]
    assert [found.f.sum(), found.F.sum(), found.f.max()] == pytest.approx(
        [expect["sum_fk"], expect["sum_Fk"], expect["max_fk"]], rel=1e-9
    )
    assert [len(found.f), (found.f == 2).sum()] == [expect["n"], expect["n2"]]
    assert (1 / found.f).sum() == pytest.approx(expect["sum_1_over_fk"], rel=1e-9)
    for name, values in (("fk", found.f), ("Fk", found.F)):
        assert values[: len(expect.get(name, []))] == pytest.approx(expect.get(name, []), rel=1e-9)
    for size, records in expect.get("fk_histogram", {}).items():
        assert np.isclose(found.f, float(size), atol=1e-9).sum() == records
    for row in expect.get("first", []):
        assert (found.f[row["record"] - 1], found.F[row["record"] - 1]) == pytest.approx((row["fk"], row["Fk"]))


@pytest.mark.parametrize("case", cases("household_risk"))
def test_household_risk(case):
    given_, expect = case["input"], case["expect"]
    if "risks" in given_:
        assert risk.household(given_["risks"], given_["household"]) == pytest.approx(expect["household"], rel=1e-12)
        return
    frame = table(given_["table"])
    size = risk.counts(frame, given_["keys"], given_["weights"])
    own = approximate(size.f, size.f / size.F)
    found = risk.household(own, frame[given_["household"]])
    assert own.sum() == pytest.approx(expect["individual_ER"], rel=1e-12)
    assert found.sum() == pytest.approx(expect["ER"], rel=1e-12)
    assert found[: len(expect["first"])] == pytest.approx(expect["first"], rel=1e-12)


COMPLETE = ("francdat_approx", "testdata_exact", "testdata_age_exact", "testdata_age_nosurvey", "free1_exact")


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in cases("individual_risk") if c.id in COMPLETE])
def test_the_measures_of_a_release_have_the_individual_risk(case):
    given_, expect = case["input"], case["expect"]
    frame, options = table(given_["table"]), {"quasi": given_["keys"], "k": 2, "others": "release"}
    risks = kinfold.measure(frame, frame, sampling_weights=given_.get("weights"), **options)["risk"]
    plain = {"mean": risks["prosecutor_mean"], "max": risks["prosecutor_max"]}
    found = risks["individual"] if given_.get("weights") else plain
    assert found["mean"] == pytest.approx(float(expect["sum"]) / len(frame), rel=1e-12)
    assert found["max"] == pytest.approx(float(expect["max"]), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in cases("household_risk") if c.id == "testdata_approx"])
def test_the_measures_of_a_release_have_the_household_risk(case):
    """By the exact individual risk; the one of sdcMicro, by its approximation, is near."""
    given_, expect = case["input"], case["expect"]
    frame, keys, household = table(given_["table"]), given_["keys"], given_["household"]
    columns = {key: {"role": "quasi", "household": False} for key in keys}
    columns |= {household: {"role": "identifier"}, given_["weights"]: {"role": "weight"}}
    policy = {"privacy": {"k": 2, "household": household}, "columns": columns, "output": {"others": "release"}}
    released = frame.drop(columns=[household, given_["weights"]])
    found = kinfold.measure(frame, released, policy)["risk"]["household_max"]
    exact = risk.household(risk.individual(frame, keys, given_["weights"]), frame[household])
    assert found == pytest.approx(exact.max(), rel=1e-12)
    assert exact.sum() == pytest.approx(expect["ER"], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in cases("population_uniques") if "simulated" not in c.id])
def test_population_uniques(case):
    people, expect = case["input"]["N"], case["expect"]
    tolerance = {"zayatz": 1e-9, "pitman": 1e-6, "snb": 1e-4, "dankar": 1e-4}
    for estimator, within in tolerance.items():
        found = risk.population_uniques(table("adult"), case["input"]["qi"], people, estimator)
        assert found == pytest.approx(expect[estimator], rel=within)


@pytest.mark.parametrize("case", [c for c in cases("population_uniques") if "simulated" in c.id])
def test_population_uniques_of_a_simulated_population(case):
    """Zayatz and SNB of another draw of the same population are near the estimates of the truth."""
    given_, expect = case["input"], case["expect"]
    rng = np.random.default_rng(7)
    people = 1 + rng.negative_binomial(given_["alpha"], given_["beta"], given_["K"])
    classes = np.repeat(np.arange(given_["K"]), people)
    sample = classes[rng.random(len(classes)) < given_["f"]]
    for estimator in ("zayatz", "snb", "pitman"):
        found = risk.population_uniques({"class": sample}, "class", round(len(sample) / given_["f"]), estimator)
        assert found == pytest.approx(expect["estimates"][estimator], rel=0.25)


def test_population_uniques_without_a_root_are_none_with_a_reason():
    with pytest.warns(UserWarning, match="no root"):
        assert risk.population_uniques({"a": [1, 2, 3, 3, 3]}, "a", 10, "snb") is None
    with pytest.warns(UserWarning, match="every record is unique"):
        assert risk.population_uniques({"a": [1, 2, 3]}, "a", 1000) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert risk.population_uniques({"a": [1, 2, 3, 3, 3]}, "a", 10) > 0  # Dankar's rule: Zayatz is left
        assert risk.population_uniques({"a": [1, 2, 3, 3]}, "a", 4, "snb") == 2  # everybody is in the sample
        assert risk.population_uniques({"a": [1, 2, 3, 3]}, "a", {"a": [0] * 4}, "snb") == 2


@pytest.mark.parametrize("case", cases("kmap_estimators"))
def test_k_map_size(case):
    given_ = case["input"]
    truncated = given_["estimator"].startswith("Zero")
    found = risk.k_map_size(given_["n"], given_["N"], given_["k"], given_["significance"], truncated=truncated)
    assert found == case["expect"]["k_needed"]


@pytest.mark.slow
@pytest.mark.parametrize("case", cases("likeness"))
def test_likeness(case):
    expect, levels = case["expect"], case["input"]["levels"]
    for column in ("occupation", "salary-class"):
        found = risk.likeness(generalized_adult(levels), list(levels), column)
        assert found.beta == pytest.approx(expect[f"basic_beta|{column}"], rel=1e-12)
        excess = expect[f"enhanced_excess_over_minus_ln_p|{column}"]
        assert found.enhanced_excess == pytest.approx(excess, rel=1e-12, abs=1e-12)
        assert math.isinf(found.enhanced_beta) == (excess > 0)
        for beta, holds in expect[f"enhanced_holds|{column}"].items():
            assert (found.enhanced_beta <= float(beta)) == holds
        present = expect[f"delta_disclosure_present_values|{column}"]
        assert found.delta_present == pytest.approx(present, rel=1e-12)
        assert found.value_is_absent == expect[f"a_value_is_absent_somewhere|{column}"]
        assert found.delta == (math.inf if found.value_is_absent else found.delta_present)


@pytest.mark.parametrize("case", cases("population_models"))
def test_presence(case):
    expect, levels = case["expect"], case["input"]["levels"]
    people = generalized_adult(levels)
    found = risk.presence(people.iloc[::3], list(levels), people)
    for key in ("presence_min", "presence_max", "presence_min_all_population_classes", "kmap_population_min"):
        assert found[key] == pytest.approx(expect[key], rel=1e-12)


@pytest.mark.parametrize("case", cases("lkc"))
def test_combinations(case):
    given_, expect = case["input"], case["expect"]
    frame = table("adult")
    if "decades" in given_["table"]:
        frame = frame.assign(age=frame["age"] // 10)
    column = "occupation" if "max_confidence_occupation" in expect else "salary-class"
    found = risk.combinations(frame, given_["qi"], given_["L"], column)
    assert found.least_class == expect["min_support"]
    if "max_confidence_occupation" in expect:
        assert found.confidence == expect["max_confidence_occupation"]
        return
    assert found.combinations == expect["combinations_of_values"]
    assert [found.count_below(int(k)) for k in expect["below"]] == [*expect["below"].values()]
    assert found.by_value[">50K"] == pytest.approx(expect["max_confidence_over_50K"], rel=1e-12)


@pytest.mark.parametrize("case", [c for c in cases("l_diversity") if "multi" in c.id])
def test_multi_entropy(case):
    given_, expect = case["input"], case["expect"]
    frame = table(given_["table"])
    if "incq" in given_["sensitive"]:
        frame = frame.assign(incq=pd.qcut(frame["income"], 10, labels=False, duplicates="drop"))
    found = risk.multi_entropy(frame, given_["keys"], given_["sensitive"])
    assert found.min() == pytest.approx(expect["min"], abs=1e-9)
    assert found.mean() == pytest.approx(expect["mean"], rel=1e-9)
    assert found[: len(expect["first"])] == pytest.approx(expect["first"], rel=1e-9)


@pytest.mark.parametrize("case", [c for c in cases("suda2") if c.id != "td5_standardized"])
def test_suda2(case):
    """Not `td5_standardized`: the other scores of sdcMicro have no published definition."""
    given_, expect = case["input"], case["expect"]
    frame = given_["rows"] if "rows" in given_ else table(given_["table"])
    keys = given_.get("keys") or list(frame[0])
    found = risk.suda2(frame, keys, given_.get("delta", 0.01))
    if "score" in expect:
        assert found.score.tolist() == expect["score"]
        assert found.contributions == pytest.approx({c["variable"]: c["contribution"] for c in expect["contributions"]})
        assert found.dis == pytest.approx(expect.get("dis", found.dis), rel=1e-6)  # the peer computes in 32 bits
        return
    assert (found.score.sum(), found.score.max()) == (expect["sum_score"], expect["max_score"])
    assert (found.dis.sum(), found.dis.max()) == pytest.approx((expect["sum_dis"], expect["max_dis"]), rel=1e-9)
    for row in expect["first"]:
        assert found.score[row["record"] - 1] == row["score"]
        assert found.dis[row["record"] - 1] == pytest.approx(row["dis"], abs=1e-11)
    assert found.msu_by_size == {int(size): number for size, number in expect["msu_by_size"].items()}
    assert (found.uniques, found.records_in_pairs) == (expect["uniques"], expect["records_in_pairs"])
    assert found.match_probability == pytest.approx(expect["DIS"], rel=1e-12)
    assert found.contributions == pytest.approx(expect["attribute_contribution_percent"], rel=1e-12)


@pytest.mark.parametrize("case", [c for c in cases("log_linear") if "textbook" in c.id])
def test_log_linear_risk_is_the_textbooks(case):
    """Not the others: sdcMicro takes the sample's mean for the population's, and integer columns for numbers."""
    given_, expect = case["input"], case["expect"]
    keys = ["sex", "water", "roof"] if "sex:water" in given_["formula"] else ["sex", "water", "roof", "relat"]
    interactions = [("sex", "water")] if "sex:water" in given_["formula"] else []
    found = risk.log_linear(table("testdata"), keys, given_["weights"], interactions, given_["pi"])
    for key in ("tau1", "tau2", "deviance"):
        assert found[key] == pytest.approx(expect[key], rel=1e-9)
    assert (found.sample_uniques, found.cells) == (expect["sample_uniques"], expect["cells"])


@pytest.mark.parametrize("case", [c for c in cases("interval_sd") if "rmd" not in c.id])
def test_interval_by_deviations(case):
    """Not RMD, which has a random start."""
    given_ = case["input"]
    original = table(given_["original"])
    if given_["released"].startswith("data/"):
        released = table(given_["released"].removeprefix("data/").removesuffix(".csv"))
        shared = [name for name in original.columns if name in released.columns]
        original, released = original[shared], released[shared]
    else:
        released = original.round(-3)
    found = risk.interval(original.to_numpy(float), released.to_numpy(float), given_["k"])
    assert found == pytest.approx(case["expect"], rel=1e-12)


ROWS = st.integers(1, 6).flatmap(
    lambda width: st.lists(st.tuples(*[st.sampled_from([0, 1, 2, None])] * width), min_size=1, max_size=10)
)


@pytest.mark.parametrize("most", [0, special_uniques.MAX_CELLS_WITHOUT_KERNEL], ids=["kernel", "every set"])
@given(rows=ROWS)
def test_suda2_is_its_definition(most, rows):
    table_ = {str(j): [row[j] for row in rows] for j in range(len(rows[0]))}
    sets = minimal_sample_uniques(rows)
    with mock.patch.object(special_uniques, "MAX_CELLS_WITHOUT_KERNEL", most):
        found = risk.suda2(table_, list(table_))
    weights = [[(each, math.factorial(len(table_) - len(each))) for each in own] for own in sets]
    assert found.score.tolist() == [sum(weight for _, weight in own) for own in weights]
    total = max(1, found.score.sum())
    for j, name in enumerate(table_):
        by_record = [sum(weight for each, weight in own if j in each) for own in weights]
        assert found.contributions[name] == pytest.approx(100 * sum(by_record) / total)
        assert found.by_record[:, j] == pytest.approx(100 * np.array(by_record) / np.maximum(found.score, 1))
    assert sum(found.msu_by_size.values()) == sum(map(len, sets))
    assert ((found.dis > 0) == (found.score > 0)).all()


def test_suda2_in_parts_is_the_same(monkeypatch):
    codes = np.random.default_rng(1).integers(-1, 4, (400, 8))
    every_set = special_uniques.score_special_uniques(codes, [*"abcdefgh"])
    monkeypatch.setattr(special_uniques, "MAX_CELLS_WITHOUT_KERNEL", 0)
    whole = special_uniques.score_special_uniques(codes, [*"abcdefgh"])
    monkeypatch.setattr(special_uniques, "MAX_WORDS", 40)
    parts = special_uniques.score_special_uniques(codes, [*"abcdefgh"])
    for other in (parts, every_set):
        assert whole.score.tolist() == other.score.tolist()
        assert whole.by_record.tolist() == other.by_record.tolist()
        assert whole.msu_by_size == other.msu_by_size


def test_suda2_of_degenerate_tables():
    one = risk.suda2({"a": ["x"], "b": [None], "c": [1]}, ["a", "b", "c"])
    assert one.score.tolist() == [4]  # two sets of one column: 2! each
    assert one.dis.tolist() == [1.0]
    assert "no class has two records" in one.note
    same = risk.suda2({"a": [1, 1, 1], "b": [2, 2, 2]}, ["a", "b"])
    assert (same.score.tolist(), same.dis.tolist(), same.contributions) == ([0] * 3, [0.0] * 3, {"a": 0.0, "b": 0.0})
    assert same.match_probability is None
    assert same.note is None
    empty = risk.suda2({"a": [None, None, None]}, "a")
    assert empty.score.tolist() == [0, 0, 0]
    twenty = risk.suda2(np.eye(20, dtype=int), [*range(20)])
    assert twenty.score.tolist() == [math.factorial(19) + 1] * 20  # the others are the only zeros, too


def test_log_linear_risk_with_every_interaction_is_that_of_the_cells():
    people = {"a": [1, 1, 2, 2, 3], "b": [1, 1, 1, 2, 2]}
    found = risk.log_linear(people, ["a", "b"], [5] * 5, [("a", "b")])
    assert found.fitted.tolist() == pytest.approx([2, 2, 1, 1, 1])
    assert found.tau1 == pytest.approx(3 * math.exp(-4))
    assert found.deviance == pytest.approx(0, abs=1e-9)
    everyone = risk.log_linear(people, ["a", "b"], [1] * 5)
    assert (everyone.tau1, everyone.tau2) == (3, 3)  # a sample unique is a population unique if all are sampled
    assert risk.log_linear(people, "a", [2, 2, 2, 2, 9]).tau1 == pytest.approx(math.exp(-8))
    assert risk.log_linear(people, "a", [2, 2, 2, 2, 7], pi="overall").tau1 == pytest.approx(math.exp(-2))


PEOPLE = {
    "age": [30, 30, None, 41],
    "sex": ["f", "f", "m", None],
    "ill": ["no", "yes", "no", "no"],
    "w": [2.0, 3, 4, 1],
}
FORMS = {
    "dict": PEOPLE,
    "rows": [dict(zip(PEOPLE, row, strict=True)) for row in zip(*PEOPLE.values(), strict=True)],
    "pandas": pd.DataFrame(PEOPLE),
    "pandas with an index": pd.DataFrame(PEOPLE, index=[3, 1, 1, 7]).astype({"sex": "category"}),
    "polars": pl.DataFrame(PEOPLE, strict=False),
    "pyarrow": pa.table(PEOPLE),
    "array": np.array([*zip(*PEOPLE.values(), strict=True)], dtype=object),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_has_the_same_risks(form):
    people, keys, column, weights = FORMS[form], ["age", "sex"], "ill", "w"
    if form == "array":
        keys, column, weights = [0, 1], 2, PEOPLE["w"]
    assert risk.individual(people, keys, weights).tolist() == risk.individual(PEOPLE, ["age", "sex"], "w").tolist()
    assert risk.counts(people, keys).f.tolist() == [2, 2, 1, 1]
    assert risk.likeness(people, keys, column).beta == pytest.approx(1.0)
    assert risk.combinations(people, keys, 2, column).by_value == {"no": 1.0, "yes": 0.5}
    assert risk.presence(people, keys, people).presence.tolist() == [1, 1, 1, 1]
    assert risk.population_uniques(people, keys, people, "zayatz") == 2
    assert dict(risk.presence(people, keys, people)).keys() == {
        *("presence", "presence_min", "presence_max", "presence_min_all_population_classes", "kmap_population_min"),
        "people",
    }


BAD = {
    "no such column": (PolicyError, "'town'", lambda: risk.individual(PEOPLE, ["age", "town"])),
    "no keys": (PolicyError, "no key column", lambda: risk.individual(PEOPLE, [])),
    "a key twice": (PolicyError, "twice", lambda: risk.individual(PEOPLE, ["age", "age"])),
    "no records": (DataError, "no records", lambda: risk.individual({"age": []}, "age")),
    "mixed values": (DataError, "mixed", lambda: risk.individual({"age": [1, "x"]}, "age")),
    "lists": (DataError, "lists", lambda: risk.individual({"age": [[1], [2]]}, "age")),
    "lengths": (DataError, "length", lambda: risk.individual({"age": [1], "sex": [1, 2]}, ["age", "sex"])),
    "a lazy frame": (DataError, "collect", lambda: risk.individual(pl.LazyFrame(PEOPLE, strict=False), "age")),
    "no table": (DataError, "not a table", lambda: risk.individual("people.csv", "age")),
    "a cube": (DataError, "3 dimensions", lambda: risk.individual(np.zeros((2, 2, 2)), 0)),
    "weight 0": (DataError, "1 of 4 are below 1", lambda: risk.individual(PEOPLE, "age", [0, 1, 1, 1])),
    "weight below 1": (DataError, "below 1", lambda: risk.individual(PEOPLE, "age", [0.5, 1, 1, 1])),
    "weight missing": (DataError, "1 of 4 are missing", lambda: risk.individual(PEOPLE, "age", [None, 1, 1, 1])),
    "weights of text": (DataError, "numbers", lambda: risk.individual(PEOPLE, "age", "sex")),
    "too few weights": (DataError, "per record", lambda: risk.individual(PEOPLE, "age", [1, 1])),
    "reading of missing": (PolicyError, "missing", lambda: risk.counts(PEOPLE, "age", missing="none")),
    "alpha of missing": (PolicyError, "alpha", lambda: risk.counts(PEOPLE, "age", missing="any", alpha=2)),
    "risk above 1": (DataError, "0 to 1", lambda: risk.household([0.1, 2.0], ["a", "b"])),
    "risk missing": (DataError, "missing", lambda: risk.household([0.1, None], ["a", "b"])),
    "household missing": (DataError, "1 of 2", lambda: risk.household([0.1, 0.2], ["a", None])),
    "households": (DataError, "pair up", lambda: risk.household([0.1, 0.2], ["a"])),
    "estimator": (PolicyError, "estimator", lambda: risk.population_uniques(PEOPLE, "age", 10, "arx")),
    "few people": (DataError, "smaller", lambda: risk.population_uniques(PEOPLE, "age", 3)),
    "half a person": (PolicyError, "whole number", lambda: risk.population_uniques(PEOPLE, "age", 9.5)),
    "nobody": (PolicyError, "population", lambda: risk.k_map_size(5, 3, 2, 0.1)),
    "alpha 0": (PolicyError, "alpha", lambda: risk.k_map_size(5, 30, 2, 0)),
    "alpha is NaN": (PolicyError, "alpha", lambda: risk.k_map_size(5, 30, 2, math.nan)),
    "not of the population": (DataError, "population", lambda: risk.presence({"a": [1]}, "a", {"a": [2]})),
    "types": (DataError, "different types", lambda: risk.presence({"a": [1]}, "a", {"a": ["1"]})),
    "dis 0": (PolicyError, "dis", lambda: risk.suda2(PEOPLE, "age", 0)),
    "dis 2": (PolicyError, "dis", lambda: risk.suda2(PEOPLE, "age", 2)),
    "21 columns": (PolicyError, "at most 20", lambda: risk.suda2(np.zeros((2, 21)), [*range(21)])),
    "pi": (PolicyError, "pi", lambda: risk.log_linear(PEOPLE, "age", "w", pi="row")),
    "interaction": (PolicyError, "town", lambda: risk.log_linear(PEOPLE, "age", "w", [("age", "town")])),
    "interaction twice": (PolicyError, "once", lambda: risk.log_linear(PEOPLE, "age", "w", [("age", "age")])),
    "no weights": (DataError, "missing", lambda: risk.log_linear(PEOPLE, "age", [None, 1, 1, 1])),
    "interval below 0": (PolicyError, "k is below 0", lambda: risk.interval([[1.0]], [[1.0]], -1)),
    "interval of pairs": (DataError, "shape", lambda: risk.interval([[1.0]], [[1.0], [2.0]])),
    "interval of one": (DataError, "fewer than two", lambda: risk.interval([[1.0]], [[1.0]])),
    "interval of text": (DataError, "not numbers", lambda: risk.interval([["x"]], [["y"]])),
    "size 0": (PolicyError, "size is 0", lambda: risk.combinations(PEOPLE, "age", 0)),
    "size 1.5": (PolicyError, "size is given as float", lambda: risk.combinations(PEOPLE, "age", 1.5)),
    "dis of text": (PolicyError, "dis", lambda: risk.suda2(PEOPLE, "age", "few")),
    "k 2.5": (PolicyError, "k is given as float", lambda: risk.k_map_size(5, 30, 2.5, 0.1)),
    "no weights at all": (PolicyError, "no sampling weights", lambda: risk.log_linear(PEOPLE, "age", None)),
    "no households": (DataError, "no record", lambda: risk.household([], [])),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_refused(bad):
    error, message, call = BAD[bad]
    with pytest.raises(error, match=message):
        call()


def test_interval_with_numbers_of_records_is_that_of_repeated_rows():
    chance = np.random.default_rng(0)
    x, weight = chance.normal(size=(40, 2)), chance.integers(1, 4, 40)
    y = np.where(chance.random((40, 2)) < 0.1, np.nan, x + chance.normal(0, 0.1, (40, 2)))
    repeated = interval_by_deviation(np.repeat(x, weight, axis=0), np.repeat(y, weight, axis=0), 0.1)
    assert 0 < interval_by_deviation(x, y, 0.1, weight) == pytest.approx(repeated, abs=1e-12)


@pytest.mark.parametrize("weight", [1.5, 17.0, 1e7, 1e12])
def test_the_individual_risk_of_one_record_has_all_its_digits(weight):
    found = risk.individual({"a": [1]}, "a", [weight])[0]
    assert found == pytest.approx(math.log(weight) / (weight - 1), rel=1e-13)


def test_one_record_and_constant_columns():
    one = {"a": ["x"], "b": [None], "c": [1]}
    with pytest.warns(UserWarning, match="every record is unique"):
        assert risk.population_uniques(one, "a", 100, "pitman") is None
    assert risk.individual(one, ["a", "b"]).tolist() == [1.0]
    assert risk.individual(one, ["a", "b"], [1]).tolist() == [1.0]
    found = risk.likeness(one, "a", "c")
    assert (found.beta, found.enhanced_beta, found.delta) == (0, 0, 0)
    assert risk.combinations(one, ["a", "b"], 5, "c").confidence == 1
    assert risk.multi_entropy(one, "a", ["b", "c"]).tolist() == [1.0]
    same = {"a": ["x"] * 4, "c": [1, 1, 2, None]}
    found = risk.likeness(same, "a", "c")
    assert (found.beta, found.enhanced_beta, found.delta) == (0, 0, 0)  # one class is the whole table


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from([1, 2, None]), st.integers(0, 2)), min_size=1, max_size=12
    )
)
def test_likeness_and_combinations_are_those_of_their_definitions(rows):
    people = {name: [row[j] for row in rows] for j, name in enumerate("xyc")}
    found, classes = risk.likeness(people, ["x", "y"], "c"), {}
    for row in rows:
        classes.setdefault(row[:2], []).append(row[2])
    shares = {c: sum(row[2] == c for row in rows) / len(rows) for c in {row[2] for row in rows}}
    ratios = [(v.count(c) / len(v) / p, p) for v in classes.values() for c, p in shares.items()]
    gains = [(q - 1, p) for q, p in ratios if q]
    assert found.beta == pytest.approx(max(0, *(gain for gain, _ in gains)), abs=1e-12)
    assert found.enhanced_excess == pytest.approx(max(gain + math.log(p) for gain, p in gains), abs=1e-12)
    deltas = [abs(math.log2(q)) if q else math.inf for q, _ in ratios]
    assert found.delta == pytest.approx(max(deltas), abs=1e-12)
    supports = {}
    for j in (0, 1):
        for row in rows:
            supports.setdefault((j, row[j]), []).append(row[2])
    found = risk.combinations(people, ["x", "y"], 1, "c")
    assert sorted(found.sizes.tolist()) == sorted(len(values) for values in supports.values())
    assert found.confidence == max(max(map(v.count, v)) / len(v) for v in supports.values())

"""What else `kinfold measure` can be asked: weights, populations, thresholds, subsets, untouched columns, tasks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kinfold
from command import run, text
from kinfold.measures import risk as attack

POLICY = {
    "privacy": {"k": 2},
    "columns": {
        "age": {"role": "quasi", "type": "continuous"},
        "area": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 1}, "average": "generalize"},
        "disease": {"role": "confidential"},
        "note": {"role": "other"},
    },
}
ORIGINAL = pd.DataFrame(
    {
        "age": [20, 22, 30, 34, 60, 64],
        "area": ["a1", "a1", "a1", "a2", "b1", "b2"],
        "disease": ["flu", "flu", "cold", "flu", "cold", "cold"],
        "note": [1, 2, 1, 1, 3, 4],
    }
)
RELEASED = ORIGINAL.assign(age=[21.0, 21.0, 32.0, 32.0, 62.0, 62.0], area=["a1", "a1", "a*", "a*", "b*", "b*"])


def asked(**questions: object) -> Any:
    return kinfold.measure(ORIGINAL, RELEASED, POLICY, **questions)


def test_all_measures_are_computed_where_they_are_asked_for_and_the_result_says_which_were() -> None:
    standard, every = asked(), asked(measures="all")
    assert (standard["measures"], every["measures"]) == ("standard", "all")
    assert set(every["loss"]) - set(standard["loss"]) == {"propensity_mse"}
    assert every["loss"]["propensity_mse"] > 0
    assert every["risk"] == standard["risk"]
    by_policy = kinfold.measure(ORIGINAL, RELEASED, POLICY | {"report": {"measures": "all"}})
    assert by_policy.to_dict() == every.to_dict()
    with pytest.raises(kinfold.PolicyError, match="measures 'most' is not known"):
        asked(measures="most")


def test_with_all_measures_every_record_of_a_large_table_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = asked()["risk"]["linkage"]
    monkeypatch.setattr(attack, "MAX_ATTACKERS", 4)
    monkeypatch.setattr(attack, "ATTACKER_SAMPLE", 1)
    drawn, every = asked(), asked(measures="all")
    assert any("drawn at random" in note for note in drawn["notes"])
    assert not any("drawn at random" in note for note in every["notes"])
    assert every["risk"]["linkage"] == exact


def test_weights_may_be_a_matrix_or_a_file(tmp_path: Path) -> None:
    matrix = [[3.0, 0.0], [2.0, 1.0]]
    file = text(tmp_path, "weights.csv", "3\n2,1\n")
    by_matrix, by_file = (asked(weights=given)["risk"]["dr_weighted"] for given in (matrix, file))
    assert by_matrix == by_file
    # c_21 = 4 and c_22 = 2, by hand; 1/(6 * 3) * 1/2 * (2 * 4 + 1 * 2)
    before = ORIGINAL.groupby(["age", "area"]).size()
    assert (before == 1).all()
    assert by_matrix == pytest.approx((2 * 6 / 2) / (6 * 3))
    assert asked()["risk"]["dr_weighted"] == 0.0


def test_each_broken_condition_of_the_weights_is_told(tmp_path: Path) -> None:
    with pytest.raises(kinfold.PolicyError) as error:
        asked(weights=[[1.0, 5.0], [2.0, 3.0]])
    told = " ".join(problem.what for problem in error.value.problems)
    for part in ("above the diagonal", "down a column", "along a row", "down a diagonal", "sum to"):
        assert part in told
    with pytest.raises(kinfold.PolicyError, match="not a matrix"):
        asked(weights=text(tmp_path, "weights.csv", "high,low\n"))
    with pytest.raises(kinfold.PolicyError, match="No such file"):
        asked(weights=tmp_path / "nowhere.csv")


def test_a_journalist_finds_one_of_all_who_look_alike() -> None:
    people = pd.DataFrame(
        {
            "age": [20, 21, 22, 25, 30, 34, 35, 60, 64, 63, 62, 99],
            "area": ["a1", "a1", "a1", "a1", "a1", "a2", "a2", "b1", "b2", "b2", "b3", "c9"],
        }
    )
    risk = asked(population=people, threshold=0.26)["risk"]
    # nearest to (21, a1): 20, 21, 22, 25; to (32, a*): 30, 34, 35; to (62, b*): the other five
    assert risk["journalist"] == {"max": pytest.approx(1 / 3), "mean": pytest.approx((1 / 4 + 1 / 3 + 1 / 5) / 3)}
    assert risk["above_threshold"] == {"threshold": 0.26, "prosecutor": 1.0, "journalist": pytest.approx(1 / 3)}
    assert risk["uniques"]["sample"] == 0
    assert {name: risk["uniques"][name] for name in ("dankar", "zayatz", "snb")} == dict.fromkeys(
        ["dankar", "zayatz", "snb"], 0.0
    )


def test_the_population_of_a_generalized_release_is_counted_by_what_labels_cover() -> None:
    table = pd.DataFrame({"age": [21, 24, 38, 52], "zip": ["11", "12", "21", "22"]})
    released = pd.DataFrame({"age": ["20-39", "20-39", "*", "*"], "zip": ["1*", "1*", "2*", "2*"]})
    columns = {
        "age": {"role": "quasi", "average": "generalize", "hierarchy": {"intervals": [20]}},
        "zip": {"role": "quasi", "type": "nominal", "average": "generalize", "hierarchy": {"mask": 1}},
    }
    people = pd.DataFrame({"age": [21, 24, 38, 38, 52, 24], "zip": ["11", "12", "11", "21", "22", "22"]})
    found = kinfold.measure(table, released, {"privacy": {"k": 2}, "columns": columns}, population=people)
    assert found["risk"]["journalist"] == {"max": pytest.approx(1 / 3), "mean": pytest.approx(1 / 3)}


def test_a_population_without_a_quasi_identifier_is_an_error() -> None:
    with pytest.raises(kinfold.DataError, match="'area'"):
        asked(population=pd.DataFrame({"age": [20]}))
    with pytest.raises(kinfold.PolicyError, match="population and sampling weights"):
        asked(population=ORIGINAL, sampling_weights="note")


def test_sampling_weights_give_the_individual_risk() -> None:
    risk = asked(sampling_weights="note", threshold=0.2)["risk"]
    # by the recurrence r_2 = q (1 + q ln p), q = p / (1 - p): p = 2/3 in the first class, 2/7 in the third
    by_hand = [q * (1 + q * np.log(p)) for p, q in ((2 / 3, 2.0), (2 / 7, 0.4))]
    assert risk["individual"]["max"] == pytest.approx(0.5)  # the second class stands for itself
    assert risk["individual"]["mean"] == pytest.approx((0.5 + sum(by_hand)) / 3)
    assert risk["above_threshold"]["individual"] == pytest.approx((1 + sum(r > 0.2 for r in by_hand)) / 3)
    assert risk["above_threshold"]["prosecutor"] == 1.0
    with pytest.raises(kinfold.DataError, match="'weight'"):
        asked(sampling_weights="weight")
    with pytest.raises(kinfold.DataError, match="not all numbers"):
        asked(sampling_weights="disease")


def test_the_attack_on_subsets_stands_beside_one_in_k() -> None:
    subsets = asked(linkage_subsets=True)["risk"]["linkage_subsets"]
    assert [tuple(subset["columns"]) for subset in subsets][:1] == [("age",)]
    for subset in subsets:
        assert subset["bound"] == 0.5
        assert 0 <= subset["linkage"] <= subset["bound"]


def test_the_attack_with_untouched_columns_is_not_bounded_by_one_in_k() -> None:
    found = asked(linkage_untouched=True)["risk"]
    # disease and note part every class but none of the second: only its two can be told by disease
    assert found["linkage_untouched"]["columns"] == ["age", "area", "disease", "note"]
    assert found["linkage_untouched"]["linkage"] == 1.0
    assert found["linkage"] <= 0.5
    same = RELEASED.assign(note=0, disease="flu")
    none = kinfold.measure(ORIGINAL, same, POLICY, linkage_untouched=True)
    assert none["risk"]["linkage_untouched"] is None
    assert any("untouched" in note for note in none["notes"])


def test_a_regression_is_fitted_on_both_tables_and_judged_on_the_original() -> None:
    random = np.random.default_rng(5)
    x = random.normal(0, 1, 200)
    table = pd.DataFrame({"x": x, "income": 3 * x + random.normal(0, 0.5, 200)})
    release = kinfold.anonymize(table, quasi=["x"], confidential=["income"], k=10, method="mdav", order="kept")
    rules = {"privacy": {"k": 10}, "columns": {"x": {"role": "quasi"}, "income": {"role": "confidential"}}}
    task = kinfold.measure(table, release.frame, rules, task="regression:income")["loss"]["task"]
    slope, start = np.polyfit(release.frame["x"], release.frame["income"], 1)
    error = ((table["income"] - slope * x - start) ** 2).sum()
    assert task["released"] == pytest.approx(1 - error / ((table["income"] - table["income"].mean()) ** 2).sum())
    assert task["original"] >= task["released"]
    assert task["loss"] == pytest.approx(task["original"] - task["released"])


def test_a_classification_counts_what_is_told_right() -> None:
    table = pd.DataFrame({"x": [1.0, 2, 3, 4, 11, 12, 13, 14], "kind": list("aaaabbbb")})
    rules = {"privacy": {"k": 4}, "columns": {"x": {"role": "quasi"}, "kind": {"role": "confidential"}}}
    good = kinfold.measure(table, table.assign(x=[2.5] * 4 + [12.5] * 4), rules, task="classification:kind")
    assert good["loss"]["task"] == {"task": "classification:kind", "original": 1.0, "released": 1.0, "loss": 0.0}
    useless = kinfold.measure(table, table.assign(x=7.5), rules, task="classification:kind")
    assert useless["loss"]["task"]["loss"] == 0.5


@pytest.mark.parametrize(
    ("task", "what"),
    [
        ("regression:wage", "no column 'wage'"),
        ("regression:disease", "'disease' is nominal"),
        ("classification:age", "'age' is continuous"),
        ("cluster:age", "not known"),
    ],
)
def test_a_task_that_cannot_be_is_an_error_that_says_why(task: str, what: str) -> None:
    with pytest.raises(kinfold.PolicyError, match=what):
        asked(task=task)


def test_statistics_are_those_of_either_table() -> None:
    found = asked().statistics.to_dict()
    before, after = found["numbers"]["age"]["before"], found["numbers"]["age"]["after"]
    assert before["mean"] == pytest.approx(ORIGINAL["age"].mean())
    assert before["variance"] == pytest.approx(ORIGINAL["age"].var(ddof=0))
    assert after["quantiles"]["0.5"] == pytest.approx(RELEASED["age"].median())
    assert found["correlations"]["columns"] == ["age", "note"]
    expected = np.corrcoef(RELEASED["age"], RELEASED["note"])[0, 1]
    assert found["correlations"]["after"][0][1] == pytest.approx(expected)
    assert found["frequencies"]["area"]["values"][:2] == ["a1", "a*"]
    assert found["frequencies"]["area"]["before"][:2] == [3, 0]
    assert found["frequencies"]["area"]["after"][:2] == [2, 2]
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("name", "values", "amount"),
    [
        ("age", [1, 80, 81, 2, 79, 3], False),
        ("age_months", [1.5, 960, 970, 2, 950, 3], False),
        ("born", [1923, 2004, 1950, 2019, 1999, 1980], False),
        ("Geburtsjahr", [1.0, 1923.5, 1950, 2019, 1999, 1980], False),
        ("hours", [1, 60, 40, 2, 55, 3], False),
        ("balance", [-100.0, 5000, 20, 30, 1, 2], False),
        ("turnover", [100.5, 5000, 20, 30, 1, 2], True),
        ("employees", [1, 5000, 20, 30, 1, 2], True),
    ],
)
def test_the_rules_of_dominance_speak_of_amounts_alone(name: str, values: list[float], amount: bool) -> None:
    release = kinfold.anonymize(pd.DataFrame({name: values}), quasi=[name], k=2, method="mdav")
    assert any("rule)" in told for told in release.measures.warnings) == amount


def test_giants_and_columns_that_single_out_are_warned_of() -> None:
    table = pd.DataFrame({"turnover": [1000.0, 100, 90, 50, 51, 52], "weight": [1, 1, 7, 2, 2, 2]})
    release = kinfold.anonymize(table, quasi=["turnover"], k=3, method="mdav", others="release", order="kept")
    told = " / ".join(release.measures.warnings)
    assert "'turnover': one record makes more than 75% of the total in 1 class" in told
    assert "within 10% (p% rule)" in told
    assert "'weight' is released unchanged and makes 1 of 6 records unique in their class" in told
    assert set(release.measures.warnings) <= set(release.measures["notes"])


def test_the_command_takes_every_question(tmp_path: Path) -> None:
    ORIGINAL.to_csv(tmp_path / "table.csv", index=False)
    RELEASED.to_csv(tmp_path / "released.csv", index=False)
    rules = kinfold.Policy.of(POLICY).toml()
    files = (tmp_path / "table.csv", tmp_path / "released.csv", "--policy", text(tmp_path, "policy.toml", rules))
    weights = text(tmp_path, "weights.csv", "3\n2,1\n")
    options = ("--weights", weights, "--population", files[0], "--threshold", 0.1, "--linkage-subsets")
    more = ("--linkage-untouched", "--task", "regression:age", "--columns", "all")
    found = run("measure", *files, *options, *more, "--json").json
    assert set(found["risk"]) >= {"journalist", "above_threshold", "linkage_subsets", "linkage_untouched", "uniques"}
    assert found["loss"]["task"]["task"] == "regression:age"
    assert set(found["statistics"]) == {"numbers", "correlations", "frequencies"}
    told = run("measure", *files, *options, *more).ok()
    assert "linkage_subsets on age" in told.out
    assert "deviation" in told.out
    assert run("measure", *files, "--columns", "some").code == 2
    assert run("measure", *files, "--threshold", 2).code == 2
    assert run("measure", *files, "--sampling-weights", "note", "--json").json["risk"]["individual"]["max"] == 0.5


def test_records_that_are_drawn_find_what_they_find_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    every = asked()
    exact = every["risk"]
    monkeypatch.setattr(attack, "MAX_ATTACKERS", 0)
    monkeypatch.setattr(attack, "ATTACKER_SAMPLE", every["released"])  # all of them
    drawn = asked()
    assert drawn["risk"]["linkage"] == pytest.approx(exact["linkage"])
    assert drawn["risk"]["interval"] == pytest.approx(exact["interval"])
    assert any("standard error" in note for note in drawn["notes"])


# What the data is still good for, in the files of a release: the audit and the internal page, never the public one


ROWS = "".join(
    f"{1000 if i == 0 else i % 9},{i % 5 * 10 + i % 3},2024-0{1 + i % 6}-1{i % 9},{'ab'[i % 2]},{i}\n"
    for i in range(30)
)
ROLES = ["--quasi", "turnover,staff,opened,kind", "-k", "3", "--method", "mdav", "--others", "release"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("statistics")
    table = text(folder, "table.csv", "turnover,staff,opened,kind,weight\n" + ROWS)
    ran = run("anonymize", table, *ROLES, "--keep-order", "--out", folder / "out").ok()
    assert "'turnover': one record makes more than 75% of the total" in ran.out
    return folder / "out"


def test_the_audit_has_numbers_before_and_after(released: Path) -> None:
    audit = json.loads((released / "internal" / "audit.json").read_text())
    found = audit["statistics"]
    original = np.array([line.split(",") for line in ROWS.splitlines()])
    shown = np.array([line.split(",") for line in (released / "public" / "release.csv").read_text().splitlines()[1:]])
    for side, table in (("before", original), ("after", shown)):
        for j, name in ((0, "turnover"), (1, "staff"), (4, "weight")):
            values = table[:, j].astype(float)
            assert found["numbers"][name][side]["mean"] == pytest.approx(values.mean())
            assert found["numbers"][name][side]["variance"] == pytest.approx(values.var())
            assert list(found["numbers"][name][side]["quantiles"].values()) == pytest.approx(
                np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
            )
        matrix = np.corrcoef(table[:, [0, 1]].astype(float).T)
        assert found["correlations"][side][0][1] == pytest.approx(matrix[0, 1])
        kinds = dict(zip(found["frequencies"]["kind"]["values"], found["frequencies"]["kind"][side], strict=True))
        assert kinds == {kind: int((table[:, 3] == kind).sum()) for kind in "ab"}
    assert found["correlations"]["columns"] == ["turnover", "staff", "opened", "weight"]
    assert found["numbers"]["opened"]["after"]["mean"].startswith("2024-0")


def test_the_internal_page_warns_and_the_public_one_is_silent(released: Path) -> None:
    internal, public = ((released / part / "report.html").read_text() for part in ("internal", "public"))
    audit = json.loads((released / "internal" / "audit.json").read_text())
    assert any("(n,k) rule" in warning for warning in audit["warnings"])
    assert any("'weight' is released unchanged" in warning for warning in audit["warnings"])
    for part in ("Statistics before and after", "(n,k) rule", "of their class"):
        assert part in internal
        assert part not in public
    assert "statistics" not in (released / "public" / "certificate.json").read_text()


def test_the_risks_from_outside_are_beside_those_of_the_prosecutor() -> None:
    alone = asked()["risk"]
    assert (alone["journalist_max"], alone["marketer"]) == (alone["prosecutor_max"], alone["prosecutor_mean"])
    assert [*alone].index("journalist_max") == [*alone].index("prosecutor_max") + 4  # the mean, inference, uniques
    people = pd.concat([ORIGINAL[["age", "area"]]] * 3)
    known = asked(population=people)["risk"]
    assert (known["journalist_max"], known["marketer"]) == (known["journalist"]["max"], known["journalist"]["mean"])
    weighted = asked(sampling_weights="note")["risk"]
    assert weighted["journalist_max"] == weighted["individual"]["max"]
    assert weighted["marketer"] == weighted["individual"]["mean"]


def test_special_uniques_are_measured_before_and_after() -> None:
    measures = asked(sampling_weights="note")
    keys = ["age", "area"]
    scores = kinfold.risk.suda2(ORIGINAL, keys)
    before, after = measures["risk_before"]["suda"], measures["risk"]["suda"]
    assert before["records"] == (scores.score > 0).sum() == len(ORIGINAL)
    assert before["score_max"] == scores.score.max()
    assert before["contributions"] == dict(scores.contributions)
    assert before["dis_max"] is None  # no two records are equal
    assert (after["records"], after["score_max"], after["dis_max"]) == (0, 0, 0.0)
    worst = measures.worst_records
    assert [each["score"] for each in worst] == sorted(scores.score.tolist(), reverse=True)[:10]
    assert all(scores.score[each["record"] - 1] == each["score"] for each in worst)


def test_the_log_linear_model_needs_sampling_weights() -> None:
    assert "tau1" not in asked()["risk"]
    measures = asked(sampling_weights="note")
    assert (measures["risk"]["tau1"], measures["risk"]["tau2"]) == (0, 0)  # no record of the release is unique
    result = kinfold.risk.log_linear(ORIGINAL, ["age", "area"], "note")
    assert measures["risk_before"]["tau1"] == pytest.approx(result.tau1)
    assert measures["risk_before"]["tau2"] == pytest.approx(result.tau2)

"""Promises about people with several rows, joint promises, discarding, and the advice on a looser t."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import kinfold
from kinfold.errors import PolicyError, Unreachable
from kinfold.release.inspection import check_folder

ROLES = {
    "pid": {"role": "identifier"},
    "age": {"role": "quasi"},
    "zip": {"role": "quasi"},
    "disease": {"role": "confidential"},
    "wage": {"role": "confidential", "type": "continuous"},
}


def visits(n=240, people=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "pid": rng.integers(0, people, n).astype(str),
            "age": rng.integers(20, 80, n),
            "zip": rng.choice(list("abcd"), n),
            "disease": rng.choice(["flu", "hiv", "cold"], n),
            "wage": rng.integers(1, 9, n),
        }
    )


def policy(method="mdav", **privacy):
    return {"privacy": {"k": 5, **privacy}, "method": {"name": method}, "columns": ROLES}


def test_k_rows_can_be_fewer_than_k_people_unless_people_are_counted():
    table = visits(people=20)
    plain = kinfold.anonymize(table, policy())
    counted = kinfold.anonymize(table, policy(unit="pid"))

    def people(release):
        return int(release.frame.assign(pid=table.pid).groupby(["age", "zip"]).pid.nunique().min())

    assert people(plain) < 5 <= people(counted)
    assert counted.verdict.people[0].found == people(counted)
    assert "pid" not in counted.frame


def test_t_holds_with_each_person_counted_once():
    table = visits()
    release = kinfold.anonymize(table, policy(unit="pid", t=0.35))
    rows = release.frame.assign(pid=table.pid)
    share = rows.drop_duplicates(["age", "zip", "pid", "disease"]).groupby(["age", "zip"]).disease
    whole = rows.drop_duplicates(["age", "zip", "pid", "disease"]).disease.value_counts(normalize=True)
    farthest = max(
        0.5 * (part.value_counts(normalize=True).reindex(whole.index, fill_value=0) - whole).abs().sum()
        for _, part in share
    )
    found = next(f for f in release.verdict.people if f.column == "disease")
    assert found.found == pytest.approx(farthest)
    assert farthest <= 0.35 + 1e-12


@pytest.mark.slow
def test_the_certificate_says_that_people_were_counted_before_their_column_left(tmp_path):
    kinfold.anonymize(visits(), policy(unit="pid")).save(tmp_path / "out")
    told = json.loads((tmp_path / "out/public/certificate.json").read_text())["release"]["people"]
    assert told["counted_by"] == "pid"
    assert told["promises"][0]["found"] >= 5
    assert check_folder(tmp_path / "out", rows_only=True).holds
    unchecked = check_folder(tmp_path / "out")
    assert unchecked.holds
    assert "it has no column 'pid'" in unchecked.notes[0]
    assert not check_folder(tmp_path / "out", require_people=True).holds


@pytest.mark.parametrize(
    ("people", "asked", "error", "said"),
    [
        (3, policy(unit="pid"), Unreachable, "names only 3 people"),
        (60, policy(unit="pdi"), PolicyError, "did you mean 'pid'"),
        (60, policy(l=9), Unreachable, ""),  # more values than there are
        *((60, policy(method), PolicyError, "needs a level of t") for method in ("t-merge", "k-first", "t-first")),
    ],
)
def test_what_cannot_be_promised_is_refused(people, asked, error, said):
    with pytest.raises(error, match=said or "fix"):
        kinfold.anonymize(visits(people=people), asked)


@pytest.mark.parametrize("role", ["quasi", "confidential", "other", None])
def test_a_unit_that_would_be_released_is_refused(role):
    columns = {name: column for name, column in ROLES.items() if name != "pid"} | (
        {"pid": {"role": role}} if role else {}
    )
    asked = {"privacy": {"k": 5, "unit": "pid"}, "columns": columns, "output": {"others": "release"}}
    with pytest.raises(PolicyError, match="'pid' identifies people, and would be released"):
        kinfold.anonymize(visits(), asked)


def test_no_entropy_exceeds_the_number_of_values():
    table = visits(n=60, people=8).assign(age=30, zip="a")  # one class, where people hold several values each
    release = kinfold.anonymize(table, policy(unit="pid", l=2.0, l_kind="entropy"))
    pairs = table.drop_duplicates(["pid", "disease"]).disease.value_counts(normalize=True)
    found = next(f for f in release.verdict.people if f.column == "disease")
    assert found.found == pytest.approx(np.exp(-(pairs * np.log(pairs)).sum()))
    assert found.found <= table.disease.nunique()


@pytest.mark.slow
def test_a_joint_promise_holds_for_whoever_knows_the_other_column(tmp_path):
    release = kinfold.anonymize(visits(n=400), policy(joint=True, l=2))
    rows = release.frame
    assert rows.groupby(["age", "zip", "wage"]).disease.nunique().min() >= 2
    assert rows.groupby(["age", "zip", "disease"]).wage.nunique().min() >= 2
    release.save(tmp_path / "out")
    assert check_folder(tmp_path / "out").holds


def test_a_joint_promise_that_even_one_class_misses_is_unreachable():
    table = visits(n=60).assign(disease=lambda t: np.where(t.wage == 1, "flu", t.disease))
    with pytest.raises(Unreachable, match="one class"):
        kinfold.anonymize(table, policy(joint=True, l=3))


@pytest.mark.parametrize("method", ["lattice", "datafly"])
def test_generalizing_methods_refuse_what_they_cannot_promise(method):
    columns = {**ROLES, "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}}
    with pytest.raises(PolicyError, match="people"):
        kinfold.anonymize(visits(), {**policy(method, unit="pid"), "columns": columns})


def test_records_are_discarded_only_where_the_policy_allows_it():
    asked = {"quasi": ["age"], "confidential": ["wage"], "k": 7, "t": 0.3, "method": "t-first", "others": "drop"}
    table = visits(n=241)
    assert len(kinfold.anonymize(table, **asked).frame) == 241
    allowed = kinfold.anonymize(table, **asked, suppression=10)
    assert len(allowed.frame) == 238
    assert any("discarded" in note for note in allowed.plan.notes)
    assert len(kinfold.anonymize(table, **asked, suppression=1).frame) == 241


def test_where_t_leaves_few_classes_the_plan_says_so_and_if_asked_what_a_looser_t_would_keep():
    table = visits(n=200)
    table["wage"] = table.age.rank(method="first")
    asked = {"quasi": ["age"], "confidential": ["wage"], "k": 2, "method": "t-merge", "others": "drop"}
    strict = kinfold.anonymize(table, **asked, t=0.05)
    (note,) = strict.plan.notes
    assert re.fullmatch(r"t-closeness leaves only \d+ class(es)? of 200 records; report\.measures = .*", note)
    (note,) = kinfold.anonymize(table, **asked, t=0.05, measures="all").plan.notes
    assert re.search(r"a looser t would keep \d+ at 1\.5 times t, \d+ at 2 times t, \d+ at 3 times t", note)
    assert not kinfold.anonymize(table, **asked, t=0.9).plan.notes


def test_a_promise_without_a_confidential_column_is_a_policy_error():
    with pytest.raises(PolicyError, match="no column is confidential"):
        kinfold.anonymize(visits(), quasi=["age"], k=5, t=0.2, others="drop")


@pytest.mark.parametrize("values", ["x", None])
def test_a_constant_or_missing_confidential_column_is_t_close_by_itself(values):
    release = kinfold.anonymize(visits().assign(disease=pd.array([values] * 240, "string")), policy(t=0.4))
    assert release.verdict.t["disease"] == 0

"""People together: classes of people, all rows of a person recoded alike; everything is counted on the file alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from battery.cases import get_needs
from kinfold.policy.registry import generalizes
from kinfold.policy.registry import list_method_names as methods
from ledger import cases
from reference import promises

PARTITIONERS = [name for name in methods() if not generalizes(name) and not get_needs(name)]
GENERALIZERS = [name for name in methods() if generalizes(name)]
KINDS = {"group": "equal", "ill": "equal", "wage": "ordered"}
ASKED: list[dict[str, Any]] = [
    {},
    {"l": 2},
    {"t": 0.7, "alpha": 0.9},
    {"l": 1.5, "l_kind": "entropy", "joint": True},
    {"l": 2, "l_kind": "recursive", "c": 3.0},
    {"p": 2, "t": 0.8, "joint": True},
]
PERSON = ["age", "town", "group"]


def visits(seed: int, people: int = 30) -> pd.DataFrame:
    """Rows in any order of people with 1 to 30 rows each; age, town and group are theirs, the rest is of the visit."""
    chance = np.random.default_rng(seed)
    person = chance.permutation(np.repeat(np.arange(people), chance.integers(1, 31, people)))
    own = {"age": chance.integers(20, 60, people), "town": chance.choice(["a", "b", None], people)}
    own["group"] = chance.choice(list("xyz"), people)
    table = {"pid": np.char.add("MRN-", person.astype(str))} | {name: values[person] for name, values in own.items()}
    table["ill"] = chance.choice(["flu", "hiv", None], len(person))
    return pd.DataFrame(table).assign(wage=chance.integers(1, 4, len(person)), cost=chance.integers(0, 99, len(person)))


def policy(asked: dict[str, Any], method: str = "mdav", **more: Any) -> dict[str, Any]:
    steps = {"hierarchy": {"intervals": [10, 20, 40]}} if generalizes(method) and method != "local-suppression" else {}
    columns: dict[str, Any] = {
        "pid": {"role": "identifier"},
        "age": {"role": "quasi", **steps},
        "town": {"role": "quasi"},
    }
    columns |= {"group": {"role": "confidential"}, "ill": {"role": "confidential"}, "cost": {"role": "other"}}
    columns["wage"] = {"role": "confidential", "type": "continuous"}
    return {
        "privacy": {"k": 3, "unit": "pid", **asked},
        "method": {"name": method, "people": "together"},
        "columns": columns | more.pop("columns", {}),
        "output": {"surrogate": True},
        **more,
    }


def read(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "public/release.csv", dtype=str, keep_default_na=False)


@pytest.mark.slow
@pytest.mark.timeout(3000)  # with KINFOLD_TRUST_SCALE
@settings(max_examples=cases(14, 20), deadline=None)
@given(seed=st.integers(0, 10**6), asked=st.sampled_from(ASKED), method=st.sampled_from([*PARTITIONERS, *GENERALIZERS]))
def test_every_promise_about_people_is_confirmed_by_the_file_alone(
    tmp_path_factory: Any, seed: int, asked: dict[str, Any], method: str
) -> None:
    table, folder = visits(seed), tmp_path_factory.mktemp("together") / "out"
    request = policy(asked, "mdav" if method == "univariate" else method)
    try:
        kinfold.anonymize(table, request).save(folder)
    except kinfold.Unreachable:
        return
    except kinfold.PolicyError:
        assert "rows" in get_needs(method)  # which cannot keep promises of rows, people and events
        assert asked
        return
    verdict, rows = kinfold.verify(folder, require_people=True, twice=True), read(folder)
    assert (verdict.holds, verdict.notes) == (True, ())
    assert rows.groupby("pid")[["age", "town", "group"]].nunique().max().max() == 1  # the same in all rows
    plain = promises.found(rows.to_dict("records"), ["age", "town"], KINDS, {**asked, "unit": "pid"})
    words = ("", promises.PEOPLE, promises.KNOWING)
    certified = {
        (each.model, each.column, next(w for w in reversed(words) if each.promise.endswith(w))): each.found
        for each in (*verdict.findings, *verdict.people)
    }
    assert certified == pytest.approx(plain)


def test_each_person_keeps_their_rows_and_the_attributes_of_their_events() -> None:
    table = visits(4)
    released = kinfold.anonymize(table, policy({"l": 2})).frame
    assert len(released) == len(table)
    assert table.pid.nunique() == released.groupby([table.pid, released.pid]).ngroups == released.pid.nunique()
    for name in ("group", "ill", "wage", "cost"):
        assert released[name].fillna("").tolist() == table[name].fillna("").tolist()


def test_classes_do_not_depend_on_the_number_of_rows_of_a_person() -> None:
    table = visits(5)
    people = table.drop_duplicates("pid")
    one = kinfold.anonymize(people.reset_index(drop=True), policy({}, output={})).frame
    every = kinfold.anonymize(table, policy({}, output={})).frame.loc[people.index].reset_index(drop=True)
    assert every[["age", "town"]].equals(one[["age", "town"]])


def test_attributes_are_told_apart_by_the_rows_or_stated() -> None:
    release = kinfold.anonymize(visits(6), policy({"l": 2}))
    public = " ".join(release.plan.public_notes)
    assert "attributes of the person: 'age', 'town', 'group'; attributes of the event: 'ill', 'wage'" in public
    of = release.policy.record_choices("mdav", 0).columns
    assert {name: of[name].of for name in (*PERSON, "ill", "cost")} == {
        **dict.fromkeys(PERSON, "person"),
        "ill": "event",
        "cost": None,
    }
    stated = policy({}, columns={"group": {"role": "confidential", "of": "event"}})
    assert "attributes of the event: 'group', 'ill', 'wage'" in " ".join(
        kinfold.anonymize(visits(6), stated).plan.public_notes
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": {"ill": {"role": "confidential", "of": "person"}}}, "have several values"),
        (
            {"columns": {"pid": {"role": "identifier"}, "cost": {"role": "quasi"}}},
            "differs between the rows of a person",
        ),
        ({"privacy": {"k": 3}, "output": {}}, "no column identifies people"),
        ({"rules": [{"check": "age >= 20", "repair": True}]}, "rules cannot be repaired"),
        ({"output": {"weighted": True}}, "weight"),
    ],
)
def test_a_request_without_a_meaning_is_refused(change: dict[str, Any], message: str) -> None:
    change = dict(change)
    columns = change.pop("columns", {})
    with pytest.raises((kinfold.PolicyError, kinfold.DataError), match=message):
        kinfold.anonymize(visits(0), policy({}, columns=columns) | change)


def test_rows_without_a_person_are_refused() -> None:
    with pytest.raises(kinfold.DataError, match="could belong to one person"):
        kinfold.anonymize(visits(0).assign(pid=lambda t: t.pid.where(t.index > 2)), policy({}))


def test_too_few_people_are_refused_however_many_rows_they_have() -> None:
    with pytest.raises(kinfold.Unreachable, match="only 2 people"):
        kinfold.anonymize(visits(0, 2), policy({}))


def test_the_limit_on_suppression_counts_rows() -> None:
    request = policy({}, "mu-argus")
    release = kinfold.anonymize(visits(1, 60), request)
    dropped = len(visits(1, 60)) - len(release.frame)
    request["method"]["suppression"] = max(dropped - 1, 0)
    if dropped:
        with pytest.raises(kinfold.KinfoldError):
            kinfold.anonymize(visits(1, 60), request)


def test_without_a_surrogate_the_certificate_is_the_statement_of_the_holder(tmp_path: Path) -> None:
    kinfold.anonymize(visits(3), policy({"l": 2}) | {"output": {}}).save(tmp_path / "out")
    assert "pid" not in read(tmp_path / "out")
    people = json.loads((tmp_path / "out/public/certificate.json").read_text())["release"]["people"]
    assert people["promises"][0]["found"] >= 3
    assert kinfold.verify(tmp_path / "out").notes
    assert not kinfold.verify(tmp_path / "out", require_people=True).holds

"""Surrogates: a recipient can follow and count people, from the file alone, and cannot learn who they are."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from command import run, text
from ledger import cases
from reference import promises

KINDS = {"ill": "equal", "wage": "ordered"}
ASKED = [
    {"l": 2},
    {"t": 0.7, "alpha": 0.9},
    {"l": 1.5, "l_kind": "entropy", "joint": True},
    {"p": 2, "t": 0.8, "joint": True},
]


def visits(seed: int, n: int = 60) -> pd.DataFrame:
    """Rows of people with 1 to 30 each, some without a number."""
    chance = np.random.default_rng(seed)
    person = np.repeat(np.arange(n // 3), chance.integers(1, 31, n // 3))[:n]
    ill, wage = chance.choice(["flu", "hiv", "cold"], len(person)), chance.integers(1, 3, len(person))
    number = np.where(chance.random(len(person)) < 0.05, None, np.char.add("MRN-", person.astype(str)))
    age = chance.integers(20, 60, len(person))
    return pd.DataFrame(
        {"pid": number, "age": age, "town": chance.choice(["a", "b"], len(person)), "ill": ill, "wage": wage}
    )


def policy(asked: dict[str, Any], **output: Any) -> dict[str, Any]:
    columns = {"pid": {"role": "identifier"}, "age": {"role": "quasi"}, "town": {"role": "quasi"}}
    columns |= {"ill": {"role": "confidential"}, "wage": {"role": "confidential", "type": "continuous"}}
    return {
        "privacy": {"k": 2, "unit": "pid", **asked},
        "method": {"name": "mdav"},
        "columns": columns,
        "output": {"surrogate": True, **output},
    }


@pytest.mark.slow
@settings(max_examples=cases(6, 20), deadline=None)
@given(seed=st.integers(0, 10**6), asked=st.sampled_from(ASKED))
def test_every_promise_about_people_is_found_by_counting_the_file(tmp_path_factory: Any, seed: int, asked: Any) -> None:
    table, folder = visits(seed), tmp_path_factory.mktemp("surrogates") / "out"
    try:
        kinfold.anonymize(table, policy(asked)).save(folder)
    except kinfold.Unreachable:
        return
    verdict = kinfold.verify(folder, require_people=True, twice=True)
    rows = pd.read_csv(folder / "public/release.csv", dtype=str, keep_default_na=False)
    plain = promises.found(rows.to_dict("records"), ["age", "town"], KINDS, {**asked, "unit": "pid"})
    people = {place: value for place, value in plain.items() if place[2]}
    certified = json.loads((folder / "public/certificate.json").read_text())["release"]["people"]
    assert [each["found"] for each in certified["promises"]] == [each.found for each in verdict.people]
    words = (promises.KNOWING, promises.PEOPLE)
    assert {
        (each.model, each.column, next(w for w in words if each.promise.endswith(w))): each.found
        for each in verdict.people
    } == pytest.approx(people)
    assert verdict.holds
    assert verdict.notes == ()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("followed")
    visits(1).to_csv(folder / "t.csv", index=False)
    (folder / "secret").write_bytes(b"x" * 40)
    for name, output in {"one": {}, "two": {}, "keyed": {"surrogate_secret": str(folder / "secret")}}.items():
        kinfold.anonymize(folder / "t.csv", policy({"l": 2}, **output)).save(folder / name)
    kinfold.anonymize(visits(1).iloc[::-1], policy({"l": 2}, surrogate_secret=str(folder / "secret"))).save(
        folder / "later"
    )
    return folder


def read(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "public/release.csv")


@pytest.mark.slow
def test_a_surrogate_is_fresh_in_each_release_and_says_only_which_rows_are_of_one_person(made: Path) -> None:
    source, one, two = pd.read_csv(made / "t.csv"), read(made / "one"), read(made / "two")
    assert not {*one.pid.dropna()} & {*two.pid.dropna()}
    rows = Counter(source.pid.value_counts().tolist())
    assert rows == Counter(one.pid.value_counts().tolist())
    assert one.pid.isna().sum() == source.pid.isna().sum() > 0
    # order: by the keys, which are drawn in no order of the source
    assert one.pid.dropna().is_monotonic_increasing
    assert "random" in (made / "one/public/certificate.json").read_text()


@pytest.mark.slow
def test_keys_of_one_secret_link_releases_and_nothing_else_does(made: Path, tmp_path: Path) -> None:
    keyed, later = read(made / "keyed"), read(made / "later")
    assert keyed.pid.value_counts().to_dict() == later.pid.value_counts().to_dict()
    (tmp_path / "other").write_bytes(b"y" * 40)
    kinfold.anonymize(made / "t.csv", policy({}, surrogate_secret=str(tmp_path / "other"))).save(tmp_path / "out")
    assert not {*read(tmp_path / "out").pid.dropna()} & {*keyed.pid.dropna()}


def test_a_person_and_a_household_with_one_number_have_other_keys(made: Path) -> None:
    table = visits(3).dropna(subset="pid").assign(hid=lambda rows: rows.pid).reset_index(drop=True)
    asked = policy({"household": "hid"}, surrogate_secret=str(made / "secret"))
    asked["columns"]["hid"] = {"role": "identifier"}
    frame = kinfold.anonymize(table, asked).frame
    assert frame.hid.nunique() == frame.pid.nunique()
    assert not (frame.hid.str[1:] == frame.pid.str[1:]).any()


def test_nothing_secret_is_in_the_public_folder(made: Path) -> None:
    for folder in ("one", "keyed", "later"):
        for file in (made / folder / "public").iterdir():
            assert not {word for word in ("MRN-", "xxxxxx") if word in file.read_text()}, (folder, file.name)


def test_numbers_that_are_equal_are_one_person() -> None:
    table = visits(2).assign(pid=lambda t: [f"{i // 4}{'.0' * (i % 2)}" for i in range(len(t))])
    assert kinfold.anonymize(table, policy({})).frame.pid.nunique() == -(-len(table) // 4)


def test_the_command_counts_people_from_the_file(made: Path, tmp_path: Path) -> None:
    ran = run("verify", made / "one", "--require-people", "--twice").ok()
    assert "each person counted once" in " ".join(ran.out.split())
    assert "cannot be checked" not in ran.out
    assert "person" not in run("verify", made / "one", "--rows-only").ok().out
    asked = text(tmp_path, "p.toml", kinfold.Policy.parse(policy({"l": 2})).toml())
    assert run("verify", made / "one", "--policy", asked, "--require-people").code == 0
    assert run("verify", made / "one/public/release.csv", "--policy", asked, "--require-people", "--twice").code == 0
    assert run("verify", made / "one", "--policy", asked, "--set", "privacy.k=40").code == 5  # of 20 people
    assert run("verify", made / "one", "--set", "privacy.l=2", "--require-people").code == 0
    assert (
        run("verify", made / "one/public/release.csv", "--policy", asked, "--set", "output.surrogate=false").code == 5
    )


def test_a_certificate_that_claims_other_figures_about_people_fails(made: Path, tmp_path: Path) -> None:
    from kinfold import checker
    from kinfold.release.certificate import Certificate

    for place, change in enumerate(("found", "counted_by")):
        public = tmp_path / str(place)
        public.mkdir()
        for file in (made / "one/public").iterdir():
            (public / file.name).write_bytes(file.read_bytes())
        content = json.loads((public / "certificate.json").read_text())
        del content["checksum"]
        if change == "found":
            content["release"]["people"]["promises"][0]["found"] += 1
        else:
            content["release"]["people"]["counted_by"] = "age"
        (public / "certificate.json").write_text(Certificate(content).text())
        assert run("verify", public).code == 5
        assert change != "found" or not checker.check_release(public)["holds"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"output": {"surrogate": True, "order": "kept"}}, "who has which surrogate"),
        ({"privacy": {"k": 2}}, "no column identifies people"),
        ({"output": {"surrogate_secret": "secret"}}, "output.surrogate is not"),
        ({"output": {"surrogate": True, "surrogate_secret": "nowhere"}}, "cannot be read"),
        ({"rules": [{"check": "pid >= 3"}]}, "column 'pid' is removed"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(kinfold.PolicyError, match=message):
        kinfold.anonymize(visits(0), policy({}) | keys)


def test_a_short_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password")
    with pytest.raises(kinfold.PolicyError, match="fewer than 32 bytes"):
        kinfold.anonymize(visits(0), policy({}, surrogate_secret=str(tmp_path / "secret")))


def test_rows_in_several_classes_that_a_key_links_get_a_warning(made: Path) -> None:
    warning = "rows in several classes, and their key in 'pid' links them"
    assert warning in json.dumps(json.loads((made / "one/internal/audit.json").read_text())["warnings"])
    assert "rows in several classes" in (made / "one/public/report.html").read_text()

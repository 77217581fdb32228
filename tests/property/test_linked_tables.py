"""Several tables of the same people: released as files with one surrogate, and checked on all of them together."""

from __future__ import annotations

import csv
import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from command import run
from kinfold import checker
from ledger import cases
from reference import longitudinal, promises

KINDS = {"group": "equal", "ill": "equal"}
OF_PEOPLE, OF_VISITS = ["sex", "age", "group"], ["day", "code", "ill", "cost"]


def write(folder: Path, seed: int, people: int = 40) -> Path:
    """Write people, a further table of the same people, and visits: 0 to 9 a person, in any order."""
    folder.mkdir(exist_ok=True)
    chance = np.random.default_rng(seed)
    number = np.char.add("MRN-", np.arange(people).astype(str))
    table = pd.DataFrame({"number": number, "sex": chance.choice(["f", "m"], people)})
    table = table.assign(age=chance.integers(20, 60, people), group=chance.choice(list("xyz"), people))
    table.sample(frac=1, random_state=seed).to_csv(folder / "people.csv", index=False)
    towns = pd.DataFrame({"pid": number, "town": chance.choice(["a", "b", None], people)})
    towns.to_csv(folder / "towns.csv", index=False)
    own = chance.permutation(np.repeat(np.arange(people), chance.integers(0, 10, people)))
    visits = pd.DataFrame({"pid": number[own], "day": pd.Timestamp("2019-01-01")})
    visits["day"] += pd.to_timedelta(chance.integers(0, 900, len(own)), unit="D")
    visits = visits.assign(code=chance.choice(["C1", "J1", None], len(own)), ill=chance.choice(list("vw"), len(own)))
    visits.assign(cost=chance.integers(0, 99, len(own))).to_csv(folder / "visits.csv", index=False)
    return folder / "visits.csv"


def policy(folder: Path, towns: bool = False, **more: Any) -> dict[str, Any]:
    columns = {name: {"role": "quasi"} for name in ("sex", "age", "code", *(["town"] if towns else []))}
    columns |= {name: {"role": "confidential"} for name in KINDS} | {"cost": {"role": "other"}}
    tables: dict[str, Any] = {"patients": {"file": folder / "people.csv", "link": "number"}}
    return {
        "privacy": {"k": 3, "unit": "pid", "events_known": 1, "days_known": 365, **more.pop("privacy", {})},
        "method": {"name": "mdav", "people": "together"},
        "columns": columns | {"pid": {"role": "identifier"}, "day": {"role": "quasi"}} | more.pop("columns", {}),
        "tables": tables | ({"towns": {"file": folder / "towns.csv"}} if towns else {}),
        "output": {"surrogate": True, **more.pop("output", {})},
        **more,
    }


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as rows:
        return [*csv.DictReader(rows)]


def join(public: Path, *others: str) -> list[dict[str, str]]:
    """The rows that a recipient has who joins the files, with people who have no visit."""
    visits, tables = read(public / "release.csv"), [read(public / f"{name}.csv") for name in others]
    by_person: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in visits:
        by_person[row["pid"]].append(row)
    rows = []
    for each in zip(*(sorted(table, key=lambda row: row["pid"]) for table in tables), strict=True):
        assert len({row["pid"] for row in each}) == 1
        person: dict[str, str] = {name: value for row in each for name, value in row.items()}
        rows += [{**person, **visit} for visit in by_person.pop(person["pid"], [dict.fromkeys(OF_VISITS, "")])]
    assert not by_person
    return rows


@pytest.mark.slow
@pytest.mark.timeout(3000)  # with KINFOLD_TRUST_SCALE
@settings(max_examples=cases(5, 10), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    towns=st.booleans(),
    asked=st.sampled_from([{}, {"l": 2}, {"t": 0.7}, {"l": 1.5, "l_kind": "entropy", "joint": True}]),
)
def test_what_all_files_show_together_keeps_every_promise(
    tmp_path_factory: Any, seed: int, towns: bool, asked: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    try:
        kinfold.anonymize(write(folder, seed), policy(folder, towns, privacy=asked)).save(folder / "out")
    except kinfold.Unreachable:
        return
    public = folder / "out/public"
    verdict = kinfold.verify(public, require_people=True, twice=True)
    assert (verdict.holds, verdict.notes) == (True, ())
    rows = join(public, "patients", *(["towns"] if towns else []))
    quasi = ["sex", "age", *(["town"] if towns else [])]
    plain = promises.found(rows, quasi, KINDS, {"k": 3, **asked, "unit": "pid"})
    words = ("", promises.PEOPLE, promises.KNOWING)
    found = {
        (each.model, each.column, next(w for w in reversed(words) if each.promise.endswith(w))): each.found
        for each in (*verdict.findings, *verdict.people)
        if "event" not in each.model
    }
    assert found == pytest.approx(plain)
    assert longitudinal.least_match(rows, "pid", quasi, ["code"], ["day"], 1, 365) >= 3


@pytest.fixture(scope="module")
def released(tmp_path_factory: Any) -> Path:
    folder = tmp_path_factory.mktemp("released")
    kinfold.anonymize(write(folder, 3), policy(folder, towns=True, privacy={"l": 2})).save(folder / "out")
    return folder


@pytest.mark.slow
def test_each_file_has_its_rows_and_columns_and_the_surrogate(released: Path) -> None:
    public = released / "out/public"
    visits, people, towns = (read(public / f"{name}.csv") for name in ("release", "patients", "towns"))
    assert ([*visits[0]], [*people[0]], [*towns[0]]) == (["pid", *OF_VISITS], ["pid", *OF_PEOPLE], ["pid", "town"])
    before = read(released / "visits.csv")
    assert (len(visits), len(people), len(towns)) == (len(before), 40, 40)
    for name in ("ill", "cost"):
        assert sorted(row[name] for row in visits) == sorted(row[name] for row in before)
    assert {row["pid"] for row in people} == {row["pid"] for row in towns} > {row["pid"] for row in visits}
    assert not any("MRN" in file.read_text("utf-8") for file in public.iterdir())
    package = json.loads((public / "datapackage.json").read_text("utf-8"))
    assert [each["path"] for each in package["resources"]] == ["release.csv", "patients.csv", "towns.csv"]


@pytest.mark.slow
def test_classes_are_those_of_the_joined_table(released: Path) -> None:
    one = kinfold.anonymize(released / "visits.csv", policy(released)).frame.to_pandas()
    people = pd.read_csv(released / "people.csv").rename(columns={"number": "pid"})
    whole = pd.read_csv(released / "visits.csv").merge(people, on="pid", how="outer", sort=False)
    stated = {"day": {"role": "quasi", "type": "date", "of": "event"}, "code": {"role": "quasi", "of": "event"}}
    request = policy(released, columns=stated)
    del request["tables"]
    other = kinfold.anonymize(whole, request).frame
    assert sorted(zip(one.sex, one.age, strict=True)) == sorted(zip(other.sex, other.age, strict=True))


def spoil(file: Path, how: str) -> None:
    lines = file.read_text("utf-8").splitlines()
    changed = {
        "a person left out": [*lines[:1], *lines[2:]],
        "a person twice": [*lines, lines[1]],
    }[how]
    file.write_text("\n".join([*changed, ""]), "utf-8")


@pytest.mark.parametrize("how", ["a person left out", "a person twice"])
def test_a_changed_table_of_people_fails_both_checks(released: Path, tmp_path: Path, how: str) -> None:
    public = shutil.copytree(released / "out/public", tmp_path / "public")
    spoil(public / "patients.csv", how)
    assert run("verify", public).code == 5
    assert not checker.check_release(public)["holds"]
    certificate = json.loads((public / "certificate.json").read_text("utf-8"))
    assert "not linked" in checker.check_table(public / "release.csv", certificate)["problems"][0]


def test_a_file_that_is_not_there_is_named(released: Path, tmp_path: Path) -> None:
    public = shutil.copytree(released / "out/public", tmp_path / "public")
    (public / "towns.csv").unlink()
    assert "'towns.csv' is not in" in run("verify", public).err
    assert not checker.check_release(public)["holds"]


def refused(file: Path, request: dict[str, Any]) -> str:
    with pytest.raises(kinfold.KinfoldError) as error:
        kinfold.anonymize(file, request)
    return str(error.value)


def test_tables_that_are_not_linked_are_refused_with_counts_and_without_values(tmp_path: Path) -> None:
    file = write(tmp_path, 5)
    people = pd.read_csv(tmp_path / "people.csv")
    request = policy(tmp_path)
    for changed, said in (
        (pd.concat([people, people[:2]]), "several rows of some people (2 too many)"),
        (people[people.number != pd.read_csv(file).pid[0]], "of people who are not in"),
        (people.assign(number=people.number.where(people.index > 1)), "2 rows have no number"),
        (people.assign(cost=1), "column 'cost' is in"),
        (people.drop(columns="number"), "has no column 'number'"),
    ):
        changed.to_csv(tmp_path / "people.csv", index=False)
        message = refused(file, request)
        assert said in message
        assert "MRN" not in message
    people.to_csv(tmp_path / "people.csv", index=False)
    pd.read_csv(tmp_path / "towns.csv")[1:].to_csv(tmp_path / "towns.csv", index=False)
    assert "not in 'towns.csv'" in refused(file, policy(tmp_path, towns=True))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"output": {"surrogate": False}}, "linked by the surrogates"),
        ({"method": {"name": "mdav"}}, "linked by the surrogates"),
        ({"source": {"parts": True}}, "a single file"),
        ({"engine": {"name": "spark"}}, "a single file"),
        ({"tables": {"release": {"file": "people.csv"}}}, "which becomes a file"),
    ],
)
def test_requests_without_a_meaning_for_tables_are_refused(tmp_path: Path, change: Any, said: str) -> None:
    assert said in refused(
        write(tmp_path, 6), policy(tmp_path, **change) | {k: v for k, v in change.items() if k != "output"}
    )


def test_frames_and_single_files_are_refused_for_several_tables(released: Path) -> None:
    request = policy(released)
    with pytest.raises(kinfold.PolicyError, match="a single file"):
        kinfold.anonymize(pd.read_csv(released / "visits.csv"), request)
    with pytest.raises(kinfold.PolicyError, match="not the whole release"):
        kinfold.verify(released / "out/public/release.csv", request)
    with pytest.raises(kinfold.PolicyError, match="not paired"):
        kinfold.measure(released / "visits.csv", released / "out/public/release.csv", request)


def test_tables_in_parquet_are_released_in_parquet(tmp_path: Path) -> None:
    write(tmp_path, 7)
    for name in ("visits", "people"):
        pd.read_csv(tmp_path / f"{name}.csv").to_parquet(tmp_path / f"{name}.parquet", index=False)
    request = policy(tmp_path, output={"format": "parquet"}, columns={"day": {"role": "remove"}})
    request["tables"] = {"patients": {"file": tmp_path / "people.parquet", "link": "number"}}
    kinfold.anonymize(tmp_path / "visits.parquet", request).save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", require_people=True, twice=True).holds
    assert len(pd.read_parquet(tmp_path / "out/public/patients.parquet")) == 40

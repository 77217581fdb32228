"""Several releases of the same people: what they disclose together, and releases that keep earlier ones protected."""

import json
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import kinfold
from command import run
from kinfold.release.several_releases import PeopleInClasses, compare_releases, find_candidates, list_value_sets
from ledger import cases
from reference import parity

ILL = ["flu", "cold", "hiv", "ulcer"]


@dataclass(frozen=True)
class Invariance:
    """Whether releases are m-invariant, why not, and the fewest values that remain for a person."""

    holds: bool
    reason: str
    smallest_intersection: int


def check_invariance(releases: Sequence[PeopleInClasses], name: str, m: int) -> Invariance:
    """Check m-invariance of a confidential column (Xiao & Tao, SIGMOD 2007)."""
    sizes = [np.bincount(release.label) for release in releases]
    distinct = [[len(values) for values in release.list_value_sets(name)] for release in releases]
    people = list_value_sets(releases, name).values()
    reason = ""
    if any(((each > 0) & (each < m)).any() for each in sizes):
        reason = "a class has fewer than m records"
    elif any((each > values).any() for each, values in zip(sizes, distinct, strict=True)):
        reason = "a class holds a value twice"
    elif any(len({*sets}) > 1 for sets in people):
        reason = "the class of a person has another set of values"
    return Invariance(not reason, reason, min((len(frozenset.intersection(*sets)) for sets in people), default=0))


def number_rows(release: dict[str, Any], people: dict[str, int], values: dict[str, int]) -> PeopleInClasses:
    labels: dict[Any, int] = {}
    rows = [
        (people.setdefault(p, len(people)), labels.setdefault(c, len(labels)), values.setdefault(v, len(values)))
        for p, (c, v) in release.items()
    ]
    person, label, value = (np.array(column) for column in zip(*rows, strict=True))
    return PeopleInClasses(person, label, {"ill": value})


@pytest.mark.parametrize("case", parity.cases("m_invariance"))
def test_m_invariance_is_that_of_its_definition(case: dict[str, Any]) -> None:
    people: dict[str, int] = {}
    values: dict[str, int] = {}
    releases = [number_rows(release, people, values) for release in case["input"]["releases"]]
    found, expected = check_invariance(releases, "ill", case["input"]["m"]), case["expect"]
    assert (found.holds, found.smallest_intersection) == (expected["holds"], expected["smallest_intersection"])
    assert found.reason == expected["reason"]


def test_another_set_or_a_value_twice_is_no_invariance() -> None:
    march = PeopleInClasses(np.array([1, 2]), np.array([0, 0]), {"ill": np.array([7, 8])})
    april = PeopleInClasses(np.array([1, 3]), np.array([0, 0]), {"ill": np.array([7, 9])})
    twice = PeopleInClasses(np.array([1, 2]), np.array([0, 0]), {"ill": np.array([7, 7])})
    assert check_invariance([march, april], "ill", 2).reason == "the class of a person has another set of values"
    assert check_invariance([twice], "ill", 2).reason == "a class holds a value twice"


def test_candidates_of_people_with_several_classes() -> None:
    first = PeopleInClasses(np.array([1, 1, 2, 2, 3]), np.array([0, 1, 0, 1, 0]))
    second = PeopleInClasses(np.array([1, 2, 3]), np.array([0, 0, 0]))
    found = find_candidates([first, second])
    assert found == {1: {1, 2}, 2: {1, 2}, 3: {1, 2, 3}}  # only 1 and 2 are in both classes of the first


def clinic(seed: int, n: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    columns = {"age": chance.integers(20, 90, n), "zip": chance.integers(0, 9, n), "ill": chance.choice(ILL, n)}
    return pd.DataFrame({"pid": [f"p{i}" for i in range(n)], **columns, "pay": chance.integers(1, 9, n)})


def policy(method: str = "mdav", **keys: Any) -> dict[str, Any]:
    roles = {"pid": "identifier", "age": "quasi", "zip": "quasi", "ill": "confidential", "pay": "confidential"}
    privacy = {"k": 3, "unit": "pid"}
    columns: dict[str, Any] = {name: {"role": role} for name, role in roles.items()}
    columns["ill"]["l"] = 2
    return {"privacy": privacy, "method": {"name": method}, "columns": columns, "output": keys}


def rows_of(release: kinfold.Release, table: pd.DataFrame) -> list[tuple[str, Any, str]]:
    """Who is in which class, with the illness of each: by the released text, as a recipient groups it."""
    frame, people = release.frame, table.pid[release.recoding.kept]
    return list(zip(people, zip(frame.age, frame.zip, strict=True), frame.ill, strict=True))


def plain_disclosure(
    releases: list[list[tuple[str, Any, str]]],
) -> tuple[dict[str, int], dict[str, set[frozenset[str]]], dict[str, set[str]]]:
    """The number of candidates, the sets of values, and the values of candidates of each person in all releases."""
    classes = [defaultdict(set) for _ in releases]
    values = [defaultdict(set) for _ in releases]
    place: list[dict[str, Any]] = [{} for _ in releases]
    for number, rows in enumerate(releases):
        for person, key, ill in rows:
            classes[number][key].add(person)
            values[number][key].add(ill)
            place[number][person] = key
    both = set.intersection(*({*each} for each in place))
    candidates = {p: set.intersection(*(classes[n][place[n][p]] for n in range(len(releases)))) for p in both}
    sets = {p: {frozenset(values[n][place[n][p]]) for n in range(len(releases))} for p in both}
    shown = {p: {ill for rows in releases for person, _, ill in rows if person in candidates[p]} for p in both}
    return {p: len(each) for p, each in candidates.items()}, sets, shown


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(cases(4, 10)))
def test_a_release_after_an_earlier_one_keeps_the_values_of_each_class(seed: int, tmp_path: Path) -> None:
    everyone = clinic(seed, 120)
    method = ("mdav", "v-mdav", "k-first", "auto")[seed % 4]
    asked = policy("mdav" if method == "k-first" else method)
    march = everyone.iloc[:80].reset_index(drop=True)
    april = pd.concat([everyone.iloc[25:80], everyone.iloc[80:]]).sample(frac=1, random_state=seed)
    april = april.reset_index(drop=True)
    april.loc[0, "ill"] = "measles"  # someone's value changed: the person cannot be placed
    first = kinfold.anonymize(march, asked)
    first.save(tmp_path / "march")
    second = kinfold.anonymize(april, asked, after=[tmp_path / "march"])
    second.save(tmp_path / "april")
    candidates, sets, _ = plain_disclosure([rows_of(first, march), rows_of(second, april)])
    assert sets
    assert all(len(each) == 1 for each in sets.values())
    joint = second.verdict.disclosure
    assert joint is not None
    assert (joint.people, joint.candidates) == (len(candidates), min(candidates.values()))
    assert second.verdict.holds
    assert second.verdict.k >= 3
    assert second.measures["suppressed"] == len(april) - len(second.frame)
    certificate = json.loads((tmp_path / "april" / "public" / "certificate.json").read_text())
    earlier = json.loads((tmp_path / "march" / "public" / "certificate.json").read_text())
    assert certificate["earlier"] == [earlier["release"]["sha256"]]
    assert kinfold.verify(tmp_path / "april", together_with=[tmp_path / "march"]).disclosure == joint
    third = kinfold.anonymize(april, asked, after=[tmp_path / "march", tmp_path / "april"])
    assert all(len(each) == 1 for each in plain_disclosure([rows_of(second, april), rows_of(third, april)])[1].values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(cases(2, 10)))
def test_what_two_releases_disclose_is_what_its_definition_says(seed: int, tmp_path: Path) -> None:
    everyone, secret = clinic(seed, 60), tmp_path / "secret"
    secret.write_text("0123456789abcdef" * 4)
    tables = [everyone.iloc[:45], everyone.iloc[15:].sample(frac=1, random_state=seed).reset_index(drop=True)]
    releases = [kinfold.anonymize(t, policy(surrogate=True, surrogate_secret=secret)) for t in tables]
    for name, release in zip(("march", "april"), releases, strict=True):
        release.save(tmp_path / name)
        shutil.copytree(tmp_path / name / "public", tmp_path / f"{name}-public")
    candidates, sets, shown = plain_disclosure([rows_of(r, t) for r, t in zip(releases, tables, strict=True)])
    remaining = [len(frozenset.intersection(*each) & shown[person]) for person, each in sets.items()]
    assert sum(remaining) < sum(len(frozenset.intersection(*each)) for each in sets.values())  # the keys tell more
    for ending in ("", "-public"):  # the holder's file, and the surrogates that a recipient has
        joint = compare_releases(tmp_path / f"april{ending}", [tmp_path / f"march{ending}"])
        assert (joint.people, joint.candidates) == (len(candidates), min(candidates.values()))
        assert joint.small == {n: [*candidates.values()].count(n) for n in (1, 2) if n in candidates.values()}
        ill = joint.values["ill"]
        assert (ill["smallest"], ill["one_left"]) == (min(remaining), remaining.count(1))
        assert ill["same_set"] == sum(len(each) == 1 for each in sets.values())
    public = b"".join(file.read_bytes() for file in (tmp_path / "april-public").iterdir())
    assert not any(f"{quote}{pid}{quote}".encode() in public for pid, quote in product(everyone.pid, ('"', ",")))


@pytest.mark.slow
def test_without_people_the_nearest_classes_are_an_estimate(tmp_path: Path) -> None:
    table = clinic(0, 60)
    for name, rows in {"march": table[:50], "april": table[10:].reset_index(drop=True)}.items():
        asked = policy()
        del asked["privacy"]["unit"]
        kinfold.anonymize(rows, asked).save(tmp_path / name)
    joint = compare_releases(tmp_path / "april", [tmp_path / "march"])
    assert joint.estimated
    assert joint.sentences[0].startswith("together with 'march': estimated from the nearest classes")
    with pytest.raises(kinfold.PolicyError, match="only two of them"):
        compare_releases(tmp_path / "april", [tmp_path / "march", tmp_path / "march"])
    itself = compare_releases(tmp_path / "april", [tmp_path / "april"])
    assert (itself.people, itself.candidates) == (50, 3)


def test_the_command_compares_and_follows_releases(tmp_path: Path) -> None:
    table, options = tmp_path / "t.csv", ("--quasi", "age,zip", "--confidential", "ill", "--identifier", "pid", "-k", 3)
    clinic(1, 40).drop(columns="pay").to_csv(table, index=False)
    unit = ("--set", "privacy.unit=pid")
    run("anonymize", table, *options, *unit, "--out", tmp_path / "march").ok()
    made = run("anonymize", table, *options, *unit, "--after", tmp_path / "march", "--out", tmp_path / "april").ok()
    assert "together with 'march': 40 people are in several releases" in made.out
    ran = run("verify", tmp_path / "april", "--with", tmp_path / "march").ok()
    assert "anyone who combines them finds at least 3 candidates for each" in ran.out
    assert run("verify", tmp_path / "april", "--with", tmp_path / "march", "--json").json["disclosure"]["people"] == 40
    out, after = ("--out", tmp_path / "other"), ("--after", tmp_path / "march")
    run("anonymize", table, *options, *after, *out).fails(2, "privacy.unit")
    run("anonymize", table, *options, *unit, "--after", tmp_path / "none", *out).fails(2, "who is in which class")
    run("anonymize", table, *options, *unit, *after, "--method", "lattice", *out).fails(2, "cannot keep")
    people = ("--set", "method.people=together")
    run("anonymize", table, *options, *unit, *after, *people, *out).fails(2, "cannot keep")
    run("anonymize", table, *options, *unit, *after, "--engine", "spark", *out).fails(2, "in one place")
    run("verify", tmp_path / "april", "--with", tmp_path / "none").fails(3, "no certificate")
    run("verify", table, "--set", "privacy.k=3", "--with", tmp_path / "march").fails(2)


WRONG = {
    "types": {"person": [1, 2], "class": ["a", "b"]},
    "a missing class": {"person": ["a", None], "class": [1, None]},
    "fractions": {"person": ["a", "b"], "class": [0.5, 1.0]},
    "values": {"person": ["a", "b"], "class": [0, 1], "value of ill": [1, 2]},
    "no class": {"person": ["a", "b"]},
}


def test_files_of_an_earlier_release_that_were_changed_are_refused(tmp_path: Path) -> None:
    for name in ("march", "april"):
        kinfold.anonymize(clinic(1, 40), policy()).save(tmp_path / name)
    for columns in WRONG.values():
        parquet.write_table(pa.table(columns), tmp_path / "march" / "internal" / "people.parquet")
        with pytest.raises(kinfold.DataError, match="cannot be read"):
            kinfold.anonymize(clinic(1, 40), policy(), after=[tmp_path / "march"])
    shutil.rmtree(tmp_path / "march" / "internal")
    (tmp_path / "march" / "public" / "release.csv").write_text("a\n1\n", "utf-8")
    run("verify", tmp_path / "april", "--with", tmp_path / "march").fails(5, "was changed after its certificate")


def test_too_few_people_who_can_be_placed_are_refused(tmp_path: Path) -> None:
    table = clinic(2, 12)
    kinfold.anonymize(table, policy()).save(tmp_path / "march")
    with pytest.raises(kinfold.Unreachable, match="too few people can be placed"):
        kinfold.anonymize(table.assign(ill="measles"), policy(), after=[tmp_path / "march"])
    limited = policy()
    limited["method"]["suppression"] = 0
    changed = table.assign(ill=[*table.ill[:-1], "measles"])
    with pytest.raises(kinfold.Unreachable, match="would be suppressed"):
        kinfold.anonymize(changed, limited, after=[tmp_path / "march"])

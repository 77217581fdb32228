"""Households: members show the same, judged by brute force on the file alone; what cannot be kept is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kinfold
from battery.cases import get_needs
from command import run
from kinfold import checker
from kinfold.errors import DataError, PolicyError
from kinfold.methods.households import connect_classes
from kinfold.policy.registry import generalizes
from kinfold.policy.registry import list_method_names as methods
from ledger import cases, tally_up
from reference import households as plain

SHARED = ["region", "size", "income"]
QUASI = [*SHARED, "age", "work"]
LEVELS = {"size": [2, 4], "income": [2000, 4000, 8000], "age": [20, 40, 80]}


def survey(seed: int, count: int = 40, missing: float = 0.0) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    size = chance.integers(1, 5, count)
    number = np.repeat(np.arange(count), size)
    n = len(number)
    table = pd.DataFrame(
        {
            "hid": [f"H{each}" for each in number],
            "region": chance.choice(["n", "e", "s"], count)[number],
            "size": size[number],
            "income": chance.integers(10, 90, count)[number] * 100,
            "age": chance.integers(0, 95, n),
            "work": chance.choice(["job", "school", "none"], n),
            "ill": chance.choice(["a", "b", "c"], n),
            "w": chance.uniform(10, 90, count).round(1)[number],
        }
    )
    table.loc[chance.random(n) < missing, "region"] = None
    return table


def ask(method: str = "mdav", output: dict[str, Any] | None = None, **privacy: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {"hid": {"role": "identifier"}, "ill": {"role": "confidential"}, "w": {"role": "weight"}}
    columns |= {name: {"role": "quasi"} for name in QUASI}
    if generalizes(method) and method != "local-suppression":
        for name, widths in LEVELS.items():
            columns[name]["hierarchy"] = {"intervals": widths}
    return {
        "privacy": {"k": 3, "household": "hid", **privacy},
        "method": {"name": method},
        "columns": columns,
        "output": output or {},
    }


def judge(public: Path, k: int, household_k: int | None = None) -> None:
    """Check a release by brute force, and both checkers with it."""
    rows, certificate = plain.read_release(public)
    entry = certificate["release"]["households"]
    attributes = entry["attributes"]
    assert entry["counted_by"] == "hid"
    assert entry["checked"] == "on the file"
    assert plain.split_households(rows, "hid", attributes) == 0
    quasi = [column["name"] for column in certificate["columns"] if column["role"] == "quasi-identifier"]
    revealed = plain.reveal(rows, "hid", attributes)
    assert plain.smallest_class(revealed, quasi) >= k
    if household_k is not None:
        found = plain.fewest_households(revealed, quasi, "hid")
        assert found >= household_k
        assert [promise["found"] for promise in entry["promises"]] == [found]
    assert kinfold.verify(public, twice=True).holds
    tally_up("releases of households judged", 1)


@pytest.mark.slow
@settings(max_examples=cases(4, 15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**31),
    missing=st.sampled_from([0.0, 0.2]),
    privacy=st.sampled_from([{}, {"household_k": 2}, {"household_k": 4}, {"l": 2}, {"t": 0.4}, {"unit": "hid"}]),
    average=st.sampled_from([None, "generalize", "suppress"]),
)
def test_members_show_the_same_and_every_promise_holds_on_the_file(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    missing: float,
    privacy: dict[str, Any],
    average: str | None,
) -> None:
    asked = ask(output={"surrogate": True}, **privacy)
    for name in QUASI if average else ():
        asked["columns"][name]["average"] = average
    public = kinfold.anonymize(survey(seed, 24, missing), asked).save(tmp_path_factory.mktemp("r") / "out") / "public"
    judge(public, 3, privacy.get("household_k"))


@pytest.mark.parametrize("shared", [[], SHARED])
def test_a_promise_that_one_class_misses_is_refused_before_anything_is_made(shared: list[str]) -> None:
    asked = ask(l=4)
    asked["columns"] |= {name: {"role": "other"} for name in SHARED if name not in shared}
    with pytest.raises(kinfold.Unreachable, match="4 distinct values are required, there are 3"):
        kinfold.anonymize(survey(1), asked)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "frame"])
def test_gaps_of_numbers_and_dates_are_filled_from_other_members(form: str, tmp_path: Path) -> None:
    chance, table = np.random.default_rng(8), survey(8)
    home = table.hid.str[1:].astype(int)
    table["moved"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(chance.integers(0, 900, 40)[home], unit="D")
    shown = ~home.duplicated()
    for name in ("income", "moved"):
        table[name] = table[name].where(shown | (chance.random(len(table)) < 0.5))
    asked = ask(output={"surrogate": True})
    asked["columns"]["moved"] = {"role": "quasi"}
    table.to_csv(tmp_path / "t.csv", index=False)
    release = kinfold.anonymize(tmp_path / "t.csv" if form == "csv" else table, asked)
    public = release.save(tmp_path / "out") / "public"
    judge(public, 3)
    assert pd.read_csv(public / "release.csv")[["income", "moved"]].notna().all(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [name for name in methods() if name not in ("auto", "univariate", "mingen-cell", "mu-argus")]
)
def test_every_method_keeps_households_together(method: str, tmp_path: Path) -> None:
    t = {"t": 0.5} if "t" in get_needs(method) else {}
    asked = ask(method, {"surrogate": True}, **t)
    asked["method"]["suppression"] = 0.5 if method == "datafly" else 0
    release = kinfold.anonymize(survey(3, missing=0.1), asked)
    judge(release.save(tmp_path / "out") / "public", 3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lattice", "datafly", "mingen", "local-suppression"])
def test_generalized_members_show_the_same_without_surrogates(method: str) -> None:
    table = survey(7).assign(income=1000, place=lambda t: t.index)  # fewer tuples than records
    asked = ask(method)
    asked["columns"]["place"] = {"role": "other"}
    asked["method"]["suppression"] = 0.5
    asked["columns"]["age"]["hierarchy"] = {"intervals": [50]}
    release = kinfold.anonymize(table, asked)
    assert release.verdict.holds
    released = release.frame.assign(hid=table.hid[release.frame.place].to_numpy())
    assert released.groupby("hid")[["region", "size"]].nunique(dropna=False).max().max() == 1


def test_without_surrogates_the_certificate_is_a_statement_of_the_holder(tmp_path: Path) -> None:
    table = survey(5)
    release = kinfold.anonymize(table, ask(household_k=3))
    assert [each.promise for each in release.verdict.people] == ["3-anonymity, each household counted once"]
    released = release.frame.assign(hid=table.hid)
    assert released.groupby("hid")[SHARED].nunique(dropna=False).to_numpy().max() == 1
    assert released.groupby(QUASI).hid.nunique().min() == release.verdict.people[0].found
    public = release.save(tmp_path / "out") / "public"
    entry = json.loads((public / "certificate.json").read_text())["release"]["households"]
    assert entry["checked"] == "before that column was removed"
    assert any("no column 'hid'" in note for note in kinfold.verify(public).notes)
    run("verify", public, "--require-people").fails(5)


def test_a_cell_that_another_member_shows_fails_both_checks(tmp_path: Path) -> None:
    public = kinfold.anonymize(survey(1), ask("local-suppression", {"surrogate": True})).save(tmp_path / "a") / "public"
    rows, certificate = plain.read_release(public)
    shown = next(row for row in rows if row["region"] and sum(each["hid"] == row["hid"] for each in rows) > 1)
    shown["region"] = ""
    broken = tmp_path / "broken.csv"
    pd.DataFrame(rows).to_csv(broken, index=False)
    judged = checker.check_table(broken, certificate)
    assert not judged["holds"]
    assert judged["problems"] == ["the members of a household differ in 'region', an attribute of households"]
    asked = ask("local-suppression", {"surrogate": True})
    for name in SHARED:
        asked["columns"][name]["household"] = True
    problems = kinfold.verify(broken, asked).problems
    assert any("differ in 'region'" in problem.what for problem in problems)


def test_a_household_does_not_stand_alone() -> None:
    """Four members of one household are a class of four records, and its values are those of k households."""
    table = pd.DataFrame({"hid": np.repeat(np.arange(6), 4), "income": np.repeat(np.arange(6) * 100, 4)})
    columns = {"hid": {"role": "identifier"}, "income": {"role": "quasi"}, "age": {"role": "quasi"}}
    asked = {"privacy": {"k": 3, "household": "hid"}, "method": {"name": "mdav"}, "columns": columns}
    released = kinfold.anonymize(table.assign(age=np.repeat(np.arange(6) * 10, 4)), asked).frame
    assert released.assign(hid=table.hid).groupby("income").hid.nunique().min() >= 3


def test_an_attribute_can_be_stated(tmp_path: Path) -> None:
    table = survey(2)
    asked = ask()
    asked["columns"]["region"]["household"] = False
    assert kinfold.anonymize(table, asked).terms.household.attributes == ("size", "income")
    asked["columns"]["age"]["household"] = True
    with pytest.raises(DataError, match="not every household has one value"):
        kinfold.anonymize(table, asked)
    with pytest.raises(DataError, match="2 records have no household number"):
        kinfold.anonymize(table.assign(hid=[None, None, *table.hid[2:]]), ask())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"privacy": {"household": "hdi"}}, "did you mean 'hid'"),
        ({"privacy": {"household": None, "household_k": 3}}, "household_k is set"),
        ({"method": {"name": "mingen-cell"}}, "generalizes a value of a household in each class"),
        ({"method": {"name": "mu-argus"}}, "suppresses cells of single members"),
        ({"method": {"name": "lattice"}, "output": {"suppressed": "star"}}, "shows what is starred"),
        ({"method": {"name": "lattice"}, "privacy": {"household_k": 3}}, "cannot count households"),
        ({"method": {"name": "local-suppression"}, "privacy": {"l": 2}}, "keeps only k"),
        ({"method": {"people": "together"}, "privacy": {"unit": "hid"}}, "cannot both stay together"),
        ({"columns": {"age": {"role": "quasi", "perturb": {"noise": 0.1}}}}, "members are perturbed one by one"),
        (
            {"method": {"refine": "exact"}},
            "it needs one table, but households and members are partitioned apart",
        ),
        ({"columns": {"age": {"role": "quasi", "missing": "drop"}}}, "could treat members of a household differently"),
        ({"rules": [{"check": "age >= 0", "repair": True}]}, "could treat members of a household differently"),
        ({"columns": {"hid": {"role": "other"}}}, "would be released"),
        ({"columns": {"w": {"role": "weight", "household": True}}}, "for quasi-identifiers"),
    ],
)
@pytest.mark.parametrize("default", ["mdav", "auto"])  # auto finds no method for some of them
def test_what_cannot_be_kept_together_is_refused(change: dict[str, Any], words: str, default: str) -> None:
    asked = ask(change.get("method", {}).get("name", default))
    for section, values in change.items():
        asked[section] = values if isinstance(values, list) else {**asked[section], **values}
    asked["privacy"] = {key: value for key, value in asked["privacy"].items() if value is not None}
    with pytest.raises(PolicyError, match=words):
        kinfold.anonymize(survey(1), asked)


@pytest.mark.parametrize("form", ["csv", "frame"])
def test_a_household_is_one_however_its_number_is_written(form: str, tmp_path: Path) -> None:
    """Two rows of each household are nearest to each other, and number it 1 and 1.0."""
    homes = [spelling for number in range(1, 13) for spelling in (f"{number}", f"{number}.0")]
    table = pd.DataFrame({"hid": homes, "region": [number // 2 for number in range(24)]})
    table.to_csv(tmp_path / "t.csv", index=False)
    columns = {"hid": {"role": "identifier"}, "region": {"role": "quasi", "type": "continuous"}}
    asked = {"privacy": {"k": 2, "household": "hid", "household_k": 2}, "method": {"name": "mdav"}, "columns": columns}
    release = kinfold.anonymize(tmp_path / "t.csv" if form == "csv" else table, asked)
    rows = release.frame.to_pandas() if form == "csv" else release.frame
    assert rows.assign(home=[float(home) for home in homes]).groupby("region").home.nunique().min() >= 2
    assert release.verdict.k == 4


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=15))
def test_connected_classes_are_the_components_of_a_graph(pairs: list[tuple[int, int]]) -> None:
    labels, numbers = (np.unique(side, return_inverse=True)[1] for side in zip(*pairs, strict=True))
    groups = [{int(label)} for label in range(labels.max() + 1)]
    for number in range(numbers.max() + 1):
        joined = set().union(*(group for group in groups if group & {*labels[numbers == number].tolist()}))
        groups = [group for group in groups if not group & joined] + [joined]
    found = connect_classes(labels, numbers)
    assert sorted(map(sorted, groups)) == sorted(
        np.flatnonzero(found == group).tolist() for group in range(found.max() + 1)
    )


def test_a_key_of_households_has_a_warning_of_its_own() -> None:
    release = kinfold.anonymize(survey(1), ask(output={"surrogate": True}))
    (warning,) = [each for each in release.measures.warnings if "the key in 'hid'" in each]
    assert "how many members a household has" in warning
    assert "method.people" not in " ".join(release.measures.warnings)

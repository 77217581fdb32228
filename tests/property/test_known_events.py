"""Known events of people: k people match whatever m of them an attacker knows; intervals stay, nothing links back."""

from __future__ import annotations

import json
from datetime import date, timedelta
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
from kinfold.methods import people
from kinfold.models.known_events import choose_rare, count_matches, find_least_match, number_events
from ledger import cases
from reference import longitudinal

ASKED: list[dict[str, Any]] = [
    {},
    {"l": 2, "joint": True},
    {"l": 1.3, "l_kind": "entropy"},
    {"l": 2, "l_kind": "recursive", "c": 3.0},
    {"t": 0.4, "p": 2},
    {"alpha": 0.9},
]


def visits(seed: int, people: int = 40, most: int = 30) -> pd.DataFrame:
    """Rows in any order of people with 1 to 30 visits each: sex and age are theirs; day, code and dose of the visit."""
    chance = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), chance.integers(1, most + 1, people))
    start, own = chance.integers(0, 900, people), {"sex": chance.choice(["f", "m"], people)}
    own["age"] = chance.integers(20, 60, people)
    day = start[person] + chance.integers(0, 400, len(person))
    table = {"pid": np.char.add("MRN-", person.astype(str))} | {name: values[person] for name, values in own.items()}
    table["day"] = [(date(2015, 1, 1) + timedelta(int(each))).isoformat() for each in day]
    table["code"] = chance.choice(["C1", "C2", "J1", "J2", None], len(person), p=[0.5, 0.2, 0.1, 0.1, 0.1])
    frame = pd.DataFrame(table).assign(
        dose=chance.integers(1, 9, len(person)), ill=chance.choice(["x", "y"], len(person))
    )
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True).rename_axis(None)


def policy(known: int = 1, days: int = 30, columns: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    of_events = {
        "day": {"role": "quasi", "type": "date"},
        "code": {"role": "quasi", "hierarchy": {"mask": 2}},
        "dose": {"role": "other"},
    }
    person = {"pid": {"role": "identifier"}, "sex": {"role": "quasi"}, "age": {"role": "quasi"}}
    return {
        "privacy": {"k": 3, "unit": "pid", "events_known": known, "days_known": days, **more.pop("privacy", {})},
        "method": {"name": "mdav", "people": "together", **more.pop("method", {})},
        "columns": person | of_events | {"ill": {"role": "confidential"}} | (columns or {}),
        "output": {"surrogate": True, **more.pop("output", {})},
        **more,
    }


def read(folder: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = pd.read_csv(folder / "public/release.csv", dtype=str, keep_default_na=False).to_dict(
        "records"
    )
    return rows


@pytest.mark.slow
@settings(max_examples=cases(4, 15), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    known=st.integers(1, 3),
    days=st.sampled_from([0, 1, 30, 365]),
    dates=st.booleans(),
    asked=st.sampled_from(ASKED),
    method=st.sampled_from(["mdav", "local-suppression"]),
)
def test_the_file_alone_confirms_that_known_events_match_k_people(
    tmp_path_factory: Any, seed: int, known: int, days: int, dates: bool, asked: dict[str, Any], method: str
) -> None:
    table, folder = visits(seed, 14, 30 if known < 2 else 9), tmp_path_factory.mktemp("events") / "out"
    columns = {} if dates else {"day": {"role": "remove"}}
    kinfold.anonymize(table, policy(known, days, columns, privacy=asked, method={"name": method})).save(folder)
    rows, verdict = read(folder), kinfold.verify(folder, require_people=True, twice=True)
    assert (verdict.holds, verdict.notes) == (True, ())
    found = {each.model: each.found for each in verdict.people}
    moments = ["day"] if dates else []
    plain = longitudinal.least_match(rows, "pid", ["sex", "age"], ["code"], moments, known, days)
    assert found["events"] == plain >= 3
    for members in longitudinal.classes(rows, "pid", ["sex", "age"]) if dates else ():
        first = [day for own in members if (day := longitudinal.first_day(own, ["day"]))]
        assert not first or (max(first) - min(first)).days <= found["first events"] <= 60


@pytest.mark.slow
def test_the_days_between_the_events_of_a_person_are_kept_exactly_and_nothing_else_of_dates() -> None:
    table = visits(1, 200)
    last = table.groupby("pid").day.transform("max")
    table["died"] = last.where(table.age > 40)
    died = {"died": {"role": "quasi", "of": "event", "type": "date"}}  # the same in all rows of a person
    released = [kinfold.anonymize(table, policy(1, 0, died)).frame for _ in range(2)]
    moved_alike = (pd.to_datetime(released[0].died) - pd.to_datetime(released[0].day)).dropna()
    original = (pd.to_datetime(table.died) - pd.to_datetime(table.day))[moved_alike.index]
    assert len(moved_alike) > 0
    assert moved_alike.equals(original)
    moved = [pd.to_datetime(each.day) - pd.to_datetime(table.day) for each in released]
    for shift in moved:
        assert shift.notna().mean() > 0.5
        assert shift.groupby(table.pid).nunique().max() == 1  # one offset for all dates of a person
        assert shift.dropna().nunique() > 30  # of their own
    assert (moved[0] != moved[1]).groupby(table.pid).all().mean() > 0.8  # and drawn anew
    shown = released[0].code.notna() | released[0].day.notna()
    assert released[0].day.notna().equals(shown)
    for name in ("dose", "ill"):  # other attributes of events stay, of empty events too
        assert released[0][name].tolist() == table[name].tolist()


def test_classes_are_large_enough_that_people_with_equal_events_meet() -> None:
    release = kinfold.anonymize(visits(1, 200, 5), policy(1, 0))
    assert release.frame.groupby(["sex", "age"]).pid.nunique().min() >= 30  # ten times k


def test_classes_grow_as_long_as_events_gain_more_than_people_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    table = visits(1, 900, 3)
    shown, classes = [], []
    for sizes in (people.PEOPLE_PER_KNOWN, (10,)):
        monkeypatch.setattr(people, "PEOPLE_PER_KNOWN", sizes)
        frame = kinfold.anonymize(table, policy(1, 7)).frame
        shown.append(int(frame.day.notna().sum()))
        classes.append(frame.groupby(["sex", "age"]).ngroups)
    assert classes[0] < classes[1]
    assert shown[0] > 1.2 * shown[1]


def test_codes_are_true_of_their_event_and_generalized_alike() -> None:
    table = visits(2)
    frame = kinfold.anonymize(table, policy(1, 30)).frame
    for old, new in zip(table.code, frame.code, strict=True):
        assert pd.isna(new) or new in (old, f"{old[0]}*", "*")
    assert len({str(new).count("*") for new in frame.code.dropna()}) == 1


@pytest.mark.slow
def test_no_secret_and_no_offset_is_public(tmp_path: Path) -> None:
    """A second run draws other offsets; of the release it changes the digest and the measured days, nothing else."""
    table, contents = visits(3), []
    for out in (tmp_path / "first", tmp_path / "second"):
        release = kinfold.anonymize(table, policy(2, 0))
        release.save(out)
        texts = {file.name: file.read_text() for file in (out / "public").iterdir()}
        assert not any("MRN-" in text for text in texts.values())
        assert "offset" not in texts["certificate.json"]
        content = json.loads(texts["certificate.json"])["release"]
        assert content["people"]["events"] == {"known": 2, "days": 0, "shift": 30}
        assert content["people"]["promises"].pop()["promise"] == "first events of a class within 60 days"
        contents.append((content.pop("sha256"), content))
    first, second = contents
    assert first[0] != second[0]
    assert first[1] == second[1]


def test_both_checkers_find_a_single_event_that_stands_out(tmp_path: Path) -> None:
    kinfold.anonymize(visits(4), policy(1, 0)).save(tmp_path / "out")
    public = tmp_path / "out/public"
    certificate = json.loads((public / "certificate.json").read_text())
    lines = (public / "release.csv").read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if i and line.split(",")[4])
    cells = lines[place].split(",")
    cells[4] = "Z9"
    (public / "release.csv").write_text("\n".join([*lines[:place], ",".join(cells), *lines[place + 1 :], ""]))
    plain = checker.check_table(public / "release.csv", certificate)
    assert [each["found"] for each in plain["people"] if "known event" in each["promise"]] == [1]
    asked = policy(1, 0)
    verdict = kinfold.verify(public / "release.csv", asked, twice=True)
    assert {each.model: each.found for each in verdict.people}["events"] == 1
    assert run("verify", tmp_path / "out").code == 5


@settings(max_examples=cases(60, 600), deadline=None)
@given(
    events=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=14),
    known=st.integers(1, 3),
    period=st.integers(0, 3),
)
def test_matches_are_counted_by_the_definition(events: list[tuple[int, int, int]], known: int, period: int) -> None:
    person, day, code = (np.array(column) for column in zip(*events, strict=True))
    owner = np.unique(person, return_inverse=True)[1]
    numbered = number_events(np.zeros(len(owner), np.int64), owner, [day], [code], period)
    names = [
        {"pid": str(p), "q": "a", "day": (date(2020, 1, 1) + timedelta(int(d))).isoformat(), "code": f"c{c}"}
        for p, d, c in events
    ]
    expected = longitudinal.least_match(names, "pid", ["q"], ["code"], ["day"], known, period)
    assert find_least_match(numbered, known, len(set(owner))) == expected
    rare = choose_rare(numbered, 2, known)
    assert bool(len(rare)) == any((count < 2).any() for _, count in count_matches(numbered, known))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"privacy": {"events_known": None}}, "set privacy.events_known"),
        ({"output": {"surrogate": False}}, "counted only by a surrogate"),
        ({"output": {"format": "parquet"}}, "is a CSV file"),
        ({"method": {"people": None}}, "events_known needs method.people"),
        ({"columns": {"dose": {"role": "quasi", "type": "continuous"}}}, "needs a hierarchy"),
        ({"columns": {"later": {"role": "other", "type": "date"}}}, "later: a released date shows how far"),
        ({"columns": {"later": {"role": "other", "type": "nominal"}}}, "later: a released date shows how far"),
        ({"columns": {"died": {"role": "confidential"}}}, "died: a released date shows how far"),
        ({"columns": {"died": {"role": "other", "type": "nominal"}}}, "died: a released date shows how far"),
        ({"columns": {"day": {"role": "remove"}, "code": {"role": "other"}}}, "no quasi-identifier differs"),
    ],
)
def test_what_would_not_protect_events_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = visits(0)
    if "later" in change.get("columns", {}):
        table["later"] = table.day
    if "died" in change.get("columns", {}):  # the same in all rows of a person, and the day of the last event
        table["died"] = table.groupby("pid").day.transform("max")
    table.to_csv(tmp_path / "visits.csv", index=False)
    with pytest.raises(kinfold.PolicyError, match=message):
        kinfold.anonymize(tmp_path / "visits.csv", policy(**change))


MOMENT: dict[str, Any] = {
    "year": lambda d: d.dt.year,
    "weekday": lambda d: d.dt.day_name(),
    "stamp": lambda d: (d - pd.Timestamp(0)) // pd.Timedelta("1s") + np.arange(len(d)) % 86_400,
    "number": lambda d: d.rank(method="first").astype(int).map("E{:06d}".format),  # given one after another
}


@pytest.mark.slow
@pytest.mark.parametrize("role", ["other", "confidential"])
@pytest.mark.parametrize("name", MOMENT)
def test_a_column_that_tells_when_an_event_was_is_refused(name: str, role: str) -> None:
    table = visits(7)
    table[name] = MOMENT[name](pd.to_datetime(table.day))
    kinfold.anonymize(table, policy(1, 0, {name: {"role": "remove"}}))
    with pytest.raises(kinfold.PolicyError, match=f"columns.{name}: its values show when"):
        kinfold.anonymize(table, policy(1, 0, {name: {"role": role}}))


def test_a_column_that_tells_when_the_first_event_of_a_person_was_is_refused() -> None:
    table = visits(8, 400, 3)
    first = pd.to_datetime(table.day).groupby(table.pid).transform("min")
    table["entered"] = first.dt.strftime("%Y")
    with pytest.raises(kinfold.PolicyError, match="its values show when"):
        kinfold.anonymize(table, policy(1, 0, {"entered": {"role": "other"}}))


@pytest.mark.parametrize("role", ["quasi", "other"])
def test_texts_that_look_like_dates_are_not_moved_and_refused(role: str) -> None:
    table = visits(0).assign(seen=lambda t: pd.to_datetime(t.day).dt.strftime("%d.%m.%Y"))
    with pytest.raises(kinfold.PolicyError, match="seen: its texts look like dates"):
        kinfold.anonymize(table, policy(columns={"seen": {"role": role}}))


def test_dates_with_a_time_are_refused() -> None:
    table = visits(0).assign(day=lambda t: pd.to_datetime(t.day) + pd.Timedelta("3h"))
    with pytest.raises(kinfold.DataError, match="have a time"):
        kinfold.anonymize(table, policy())

"""Relations between rows and columns: who a person is, what tells a protected column, what is asked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import kinfold
from command import run
from kinfold.policy.model import Policy
from kinfold.profiling.frameworks import fit_framework, get_framework
from kinfold.profiling.people import Unit
from kinfold.profiling.profile import ColumnProfile, Profile
from kinfold.profiling.questions import OpenQuestion
from kinfold.profiling.starter_policy import write_starter_policy
from proposals.tables import ages, codes, days, household, stays, visits

PEOPLE = 150


def draw(seed: int = 0) -> np.random.Generator:
    """Random numbers."""
    return np.random.default_rng(seed)


def visits_of(rows: int = 600, seed: int = 1, **more: Any) -> pl.DataFrame:
    """Several rows of each person: a number, sex and year of birth."""
    rng = draw(seed)
    who = rng.integers(0, PEOPLE, rows)
    facts = {
        "id": who + 1001,
        "sex": rng.choice(["f", "m"], PEOPLE)[who],
        "born": rng.integers(1930, 2005, PEOPLE)[who],
    }
    return pl.DataFrame(facts | {"lab": np.round(rng.normal(5, 1, rows), 2)} | more)


def column(profile: Profile, name: str) -> ColumnProfile:
    """One column of a profile."""
    return next(each for each in profile.columns if each.name == name)


@pytest.mark.parametrize("key", ["id", "subject", "Versichertennummer", "kx", "token"])
def test_constant_facts_make_a_person(key: str) -> None:
    table = visits_of().rename({"id": key, "born": "birth_year"})
    if key == "token":
        table = table.with_columns(pl.col(key).hash(3).cast(pl.String).str.replace_all("1", "x-") + "a")
    profile = kinfold.profile(table)
    assert (profile.unit, profile.questions) == (Unit(key, people=True), ())
    assert column(profile, key).role == "identifier"
    assert tomllib.loads(write_starter_policy(profile))["privacy"]["unit"] == key


def test_few_people_with_many_rows_each() -> None:
    table = visits_of(80).with_columns(pl.col("id") % 8, (pl.col("id") % 8 * 7 + 1950).alias("birth_year")).drop("born")
    table = table.with_columns(sex=pl.when(pl.col("id") < 4).then(pl.lit("f")).otherwise(pl.lit("m")))
    assert kinfold.profile(table).unit == Unit("id", people=True)


def list_units(profile: Profile) -> list[OpenQuestion]:
    """The questions whose rows they are."""
    return [question for question in profile.questions if question.name == "unit"]


def traces(key: str, people: int = 60) -> pl.DataFrame:
    """Rows of people without sex or birth."""
    rng = draw(11)
    who = np.repeat(np.arange(people), rng.integers(8, 15, people))
    return pl.DataFrame({key: who + 1, "mode": rng.choice(["car", "bike"], len(who))}).with_columns(
        speed=pl.Series(rng.gamma(2, 10, len(who)).round(1))
    )


@pytest.mark.parametrize(
    ("key", "people", "asked"),
    [("patient_id", 9, 0), ("subject", 5, 0), ("id", 9, 1), ("uid", 60, 1), ("owner", 60, 1)],
)
def test_a_number_that_repeats_is_the_unit_without_other_facts(key: str, people: int, asked: int) -> None:
    profile = kinfold.profile(traces(key, people))
    assert profile.unit == Unit(key, people=True)
    assert column(profile, key).role == "identifier"
    assert [question.sets for question in profile.questions] == ["privacy.unit"] * asked


@pytest.mark.parametrize("key", ["user_type", "client_segment", "region"])
def test_a_kind_of_people_is_no_unit(key: str) -> None:
    assert kinfold.profile(traces(key, 6)).unit is None


def waves(household: str, member: str) -> pl.DataFrame:
    """Four waves of 100 households of three."""
    rng = draw(12)
    who = np.repeat(np.arange(300), 4)
    facts = {"sex": rng.choice([1, 2], 300)[who], "age": rng.integers(5, 90, 300)[who]}
    numbers = {household: who // 3, member: who % 3 + 1, "wave": np.tile([1, 2, 3, 4], 300)}
    return pl.DataFrame(numbers | facts | {"inc": rng.lognormal(8, 0.5, 1200).round()})


@pytest.mark.parametrize("household", ["idhous", "hhid", "hhserial", "zz"])
def test_a_panel_of_households_is_asked_about(household: str) -> None:
    profile = kinfold.profile(waves(household, "persno"))
    assert profile.unit == Unit(household, people=True)
    assert [question.name for question in profile.questions] == ["unit", "codes"]  # the wave is an unknown code


def records(rows: tuple[int, int] = (3, 6), people: int = 120) -> tuple[np.ndarray[Any, Any], pl.DataFrame]:
    """The person of each row, and rows without a number of the person."""
    rng = draw(13)
    who = np.repeat(np.arange(people), rng.integers(*rows, people))
    facts = {"sex": rng.choice(["m", "f"], people)[who], "yob": rng.integers(1940, 2005, people)[who]}
    return who, pl.DataFrame(facts | {"ldl": rng.normal(3, 0.7, len(who)).round(2)})


def count_fewest_people(table: pl.DataFrame, who: np.ndarray[Any, Any]) -> int:
    """Accept the proposals, and return the number of people in the smallest class of the release."""
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table)))
    policy["review"]["accept_proposal"] = True
    policy["output"] = {"order": "kept", **policy.get("output", {})}
    release = kinfold.anonymize(table, policy | {"method": {"name": "mdav"}})
    quasi = [name for name, each in policy["columns"].items() if each["role"] == "quasi-identifier"]
    classes = release.frame.select(quasi).with_columns(who=pl.Series(who)).group_by(quasi).n_unique()
    return int(classes["who"].min())


def number_rows(who: np.ndarray[Any, Any]) -> list[str]:
    """P0001-1, P0001-2."""
    first = {person: int(np.flatnonzero(who == person)[0]) for person in np.unique(who)}
    return [f"P{person:04}-{at - first[person] + 1}" for at, person in enumerate(who)]


@pytest.mark.parametrize("dropped", [[], ["sex", "yob"]])
def test_numbers_of_records_that_start_with_a_person_are_a_question(dropped: list[str]) -> None:
    who, table = records()
    profile = kinfold.profile(table.drop(dropped).with_columns(sample=pl.Series(number_rows(who))))
    (question,) = list_units(profile)
    assert (question.name, question.sets, question.answers) == ("unit", "privacy.k", ("25", "5"))
    assert profile.rows_of_person == 5


def test_k_counts_all_rows_of_a_person() -> None:
    who, table = records()
    table = table.with_columns(sample=pl.Series(number_rows(who)))
    assert count_fewest_people(table, who) >= 5
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table), k=3))
    assert (policy["privacy"]["k"], policy["review"]["unit"]["answers"]) == (15, ["15", "3"])


@pytest.mark.parametrize(("answer", "k"), [("25", 25), ("no", 5), ("yes", 25)])
def test_the_answer_about_rows_of_a_person_sets_k(answer: str, k: int) -> None:
    who, table = records()
    text = write_starter_policy(kinfold.profile(table.with_columns(sample=pl.Series(number_rows(who)))))
    values = tomllib.loads(text)
    values["review"]["unit"]["answer"] = answer
    assert Policy.of(values).privacy.k == k


@pytest.mark.parametrize(("framework", "asked"), [("hipaa", False), ("gdpr", True)])
def test_a_framework_that_counts_rows_does_not_ask_for_k(framework: str, asked: bool) -> None:
    who, table = records()
    profile = kinfold.profile(table.with_columns(sample=pl.Series(number_rows(who))))
    policy = tomllib.loads(fit_framework(get_framework(framework), profile))
    assert ("unit" in policy["review"]) == asked
    assert (policy["privacy"]["k"] % profile.rows_of_person == 0) == asked


@pytest.mark.parametrize("form", ["{house}-{member}", "ZH-{row:05}", "{row:04}-{digit}", "a{row}@x.ch"])
def test_other_numbers_of_one_row_are_no_question(form: str) -> None:
    rng = draw(14)
    ids = [form.format(house=row // 3, member=row % 3, row=row, digit=row * 7 % 10) for row in range(600)]
    table = pl.DataFrame({"id": ids, "sex": rng.choice(["f", "m"], 600), "age": ages(rng, 600)})
    assert kinfold.profile(table).questions == ()


def centres(group: str, member: str, *, people: bool = True) -> pl.DataFrame:
    """Four rows of each of 40 subjects in five centres, or rows of as many people."""
    rng = draw(15)
    centre, subject = np.repeat(np.arange(5), 160), np.tile(np.repeat(np.arange(40), 4), 5)
    who = centre * 40 + subject if people else np.arange(800)
    facts = {"sex": rng.choice(["m", "f"], 800)[who], "age": rng.integers(18, 80, 800)[who]}
    return pl.DataFrame({group: centre, member: subject} | facts | {"score": rng.normal(20, 5, 800).round(1)})


@pytest.mark.parametrize(
    ("table", "removed"),
    [
        (centres("centre", "subject"), "subject"),
        (centres("site", "nr").drop("age"), "nr"),
        (centres("x", "y"), "y"),
    ],
)
def test_two_columns_that_number_people_together_are_a_question(table: pl.DataFrame, removed: str) -> None:
    profile = kinfold.profile(table)
    (question,) = list_units(profile)
    assert (question.name, question.sets, question.answers) == ("unit", "privacy.k", ("20", "5"))
    assert column(profile, removed).role == "identifier"


@pytest.mark.parametrize("names", [("centre", "subject"), ("x", "y")])
def test_two_columns_of_other_people_are_no_question(names: tuple[str, str]) -> None:
    assert list_units(kinfold.profile(centres(*names, people=False))) == []


def test_columns_that_tell_sex_and_age_do_not_number_people() -> None:
    rng = draw(16)
    age, sex = ages(rng, 900), rng.integers(0, 2, 900)
    copies = {"q1": sex + 1, "q2": np.digitize(age, range(5, 95, 5)), "q3": rng.integers(1, 9, 900)}
    table = pl.DataFrame({"age": age, "sex": np.where(sex, "m", "f")} | copies)
    assert list_units(kinfold.profile(table)) == []


def visits_without_number(birth: str = "yob") -> tuple[np.ndarray[Any, Any], pl.DataFrame]:
    """Visits whose number of the patient was deleted."""
    who, table = records((4, 9), 150)
    place = np.array([f"80{place:02}" for place in draw(17).integers(0, 20, 150)])[who]
    day = [days(draw(18), 150)[person] for person in who]
    born = {"yob": pl.col("yob"), "age": (2024 - pl.col("yob")).alias("age"), "dob": pl.Series("dob", day)}
    return who, table.select(born[birth], pl.col("sex", "ldl"), pl.Series("zip", place))


@pytest.mark.parametrize(("birth", "dropped"), [("yob", []), ("age", []), ("dob", []), ("dob", ["sex"])])
def test_facts_that_repeat_more_than_by_chance_are_a_question(birth: str, dropped: list[str]) -> None:
    _, table = visits_without_number(birth)
    profile = kinfold.profile(table.drop(dropped))
    (question,) = list_units(profile)
    assert (question.name, question.sets) == ("unit", "privacy.k")
    assert (int(question.proposed), question.answers[-1]) == (5 * profile.rows_of_person, "5")
    assert 8 <= profile.rows_of_person <= 24


def test_the_proposed_k_protects_people_without_a_number() -> None:
    who, table = visits_without_number()
    assert count_fewest_people(table, who) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("rows", [60, 500, 5000])
@pytest.mark.parametrize("kind", ["people", "pupils", "birthdays", "members"])
def test_facts_that_repeat_by_chance_are_no_question(rows: int, kind: str) -> None:
    rng = draw(19)
    place = rng.integers(0, 20, rows)
    born = 2005 + place % 9 if kind == "pupils" else rng.integers(1930, 2005, rows)  # a school has pupils of one year
    facts: dict[str, Any] = {"yob": born} if kind != "birthdays" else {"dob": days(rng, rows)}
    if kind == "members":
        facts |= {"hhid": np.arange(rows) // 3 + 5000}
    facts |= {"sex": rng.choice(["f", "m"], rows, p=[0.7, 0.3]), "zip": [f"80{each:02}" for each in place]}
    assert kinfold.profile(pl.DataFrame(facts | {"cost": rng.lognormal(5, 1, rows).round(2)})).questions == ()


def test_facts_that_contradict_each_other_are_a_question() -> None:
    table = visits_of().with_columns(birth_year=pl.Series(draw(3).integers(1930, 2005, 600)))
    profile = kinfold.profile(table)
    (question,) = profile.questions
    assert (question.sets, question.proposed, question.answers) == ("privacy.unit", "id", ("id", "none"))
    assert "'sex' and 'born' do not change within a value; 'birth_year' changes within a value" in question.seen


def test_a_group_of_many_people_is_no_unit() -> None:
    rng = draw(4)
    table = pl.DataFrame(
        {"doctor_id": rng.integers(1, 20, 600), "sex": rng.choice(["f", "m"], 600), "age": ages(rng, 600)}
    )
    assert kinfold.profile(table).unit is None


def test_a_blood_pressure_is_no_age() -> None:
    table = visits_of(dbp=np.clip(draw(5).normal(70, 18, 600).astype(int), 20, 119)).rename({"born": "birth_year"})
    assert kinfold.profile(table).unit == Unit("id", people=True)


def test_uniqueness_counts_people() -> None:
    rng = draw(6)
    who = np.repeat(np.arange(100), 5)
    towns = np.where(np.arange(100) < 40, np.arange(100), 99)[who]  # 40 people live where nobody else does
    table = pl.DataFrame(
        {"patient": who + 5001, "sex": rng.choice(["f", "m"], 100)[who], "dob_year": rng.integers(1930, 2005, 100)[who]}
        | {"town": [f"t{town}" for town in towns], "visit": days(rng, 500)}
    )
    profile = kinfold.profile(table)
    assert profile.unit == Unit("patient", people=True)
    assert column(profile, "town").unique == pytest.approx(0.4)
    assert column(profile, "patient").unique == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mean"), [("WTFINAL", 400.0), ("rb050", 40.0), ("poids", 1.0), ("z", 1.0)])
def test_weights_are_never_released_exactly(name: str, mean: float) -> None:
    rng = draw(7)
    drawn = rng.gamma(8, 1, 500)
    weight = np.round(drawn / drawn.mean() * mean + (5 if mean > 1 else 0), 5)
    table = pl.DataFrame({"age": ages(rng, 500), "sex": rng.choice(["f", "m"], 500), name: weight})
    release = kinfold.anonymize(table, tomllib.loads(write_starter_policy(kinfold.profile(table))))
    assert name not in release.frame.columns
    assert column(kinfold.profile(table), name).role == "weight"


def dependents(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Columns that tell the age, the place or each other."""
    age = ages(rng, rows)
    zips = rng.permutation(90_000)[:80] + 10_000
    place = rng.integers(0, 80, rows)
    height, weight = rng.normal(170, 10, rows).round(0), rng.normal(75, 12, rows).round(1)
    return {
        "age": age,
        "zip": zips[place].astype(str),
        "sex": rng.choice(["f", "m"], rows),
        "group": np.digitize(age, [20, 40, 60]),
        "wrong_group": np.where(rng.random(rows) < 0.01, 1, np.digitize(age, [15, 35, 55, 75])),
        "logage": np.round(np.log(age + 1), 4),
        "sign": [f"S{p % 16}" for p in place],
        "height": height,
        "weight_kg": weight,
    }


def test_columns_that_tell_a_quasi_identifier_are_treated_like_it() -> None:
    profile = kinfold.profile(pl.DataFrame(dependents(draw(8), 1500)))
    told = {each.name: each.depends_on for each in profile.columns if each.depends_on}
    assert {name: told.get(name) for name in ("group", "wrong_group", "logage", "sign")} == {
        **dict.fromkeys(("group", "wrong_group", "logage"), ("age",)),
        "sign": ("zip",),
    }
    assert {column(profile, name).role for name in told} == {"quasi-identifier"}
    assert not {"height", "weight_kg", "sex"} & {*told}


def test_a_function_of_two_columns_is_found() -> None:
    rng = draw(9)
    age, years = ages(rng, 900) + 20, rng.integers(0, 30, 900)
    table = pl.DataFrame(
        {"age": age, "sex": rng.choice(["f", "m"], 900), "tenure_w": years * 52, "joined_at": age * 52 - years * 52}
    )
    assert column(kinfold.profile(table), "joined_at").depends_on == ("age", "tenure_w")


def test_columns_that_tell_only_each_other_are_no_dependency() -> None:
    rng = draw(16)
    one, other = np.round(rng.lognormal(0, 0.5, 800), 3), np.round(rng.lognormal(0, 0.5, 800), 3)
    table = pl.DataFrame({"age": ages(rng, 800), "sex": rng.choice(["f", "m"], 800), "x": one, "y": other})
    table = table.with_columns(bins=pl.Series(np.digitize(one + other, [1.5, 2.0, 2.5, 3.0])))
    assert [each.name for each in kinfold.profile(table).columns if each.depends_on] == []


def test_rows_of_a_person_are_no_dependency() -> None:
    rng = draw(10)
    group = rng.choice(list("abc"), PEOPLE)
    table = visits_of().rename({"born": "birth_year"})
    table = table.with_columns(group=pl.Series([group[each - 1001] for each in table["id"]]))
    assert [each.name for each in kinfold.profile(table).columns if each.depends_on] == []


def test_the_dependencies_of_a_long_table_are_found_in_all_its_rows() -> None:
    rng = draw(11)
    rows, places = 60_000, 25_000  # two or three rows a street: the sample has almost no pair
    street = rng.integers(0, places, rows)
    town = rng.integers(0, 300, places)
    table = pl.DataFrame(
        {"town": [f"town {t}" for t in town[street]], "age": ages(rng, rows), "sex": rng.choice(["f", "m"], rows)}
        | {"street_code": (street * 7 + 100_003).tolist()}
    )
    assert column(kinfold.profile(table[rng.permutation(rows)]), "street_code").role not in ("other", "confidential")


def test_an_income_of_the_household_links_its_members() -> None:
    profile = kinfold.profile(household("household").frame)
    income = column(profile, "eqIncome")
    assert (income.role, income.depends_on) == ("remove", ("hid",))
    (question,) = [each.question for each in profile.questions if each.sets == "columns.eqIncome.role"]
    same = "Everyone in a household ('hid') has the same 'eqIncome'"
    assert question == f"{same}, so it shows who lives together. Leave it out?"


@pytest.mark.parametrize(
    ("answer", "promises"), [("confidential", ["0.3-closeness of eqIncome"]), ("remove", []), ("yes", [])]
)
def test_an_answer_that_makes_a_column_confidential_promises_about_it(answer: str, promises: list[str]) -> None:
    table = household("household").frame
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table))) | {"method": {"name": "mdav"}}
    release = kinfold.anonymize(table, policy, answers={"eqIncome": answer}, accept_proposal=True)
    assert [each.promise for each in release.verdict.findings if "eqIncome" in each.promise] == promises
    assert ("eqIncome" in release.frame.columns) == bool(promises)


def test_more_than_five_confidential_columns_are_all_protected() -> None:
    rng = draw(12)
    amounts = {f"cost{i}": np.round(rng.lognormal(5, 1, 200), 2) for i in range(8)}
    profile = kinfold.profile(pl.DataFrame({"age": ages(rng, 200), "sex": rng.choice(["f", "m"], 200)} | amounts))
    assert {(column(profile, name).role, column(profile, name).t) for name in amounts} == {("confidential", 0.3)}


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["drop", "release", "yes", "no"])
def test_unknown_codes_are_released_only_if_the_steward_says_so(answer: str) -> None:
    rng = draw(13)
    unknown = {f"q{i}": codes(rng, 300, [1, 2, 3, 4]) for i in range(5)}
    table = pl.DataFrame({"age": ages(rng, 300), "sex": rng.choice(["f", "m"], 300)} | unknown)
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table)))
    with pytest.raises(kinfold.PolicyError, match="these 5 columns of codes"):
        kinfold.anonymize(table, policy)
    released = kinfold.anonymize(table, policy, answers={"codes": answer}).frame.columns
    assert {*unknown} & {*released} == ({*unknown} if answer in ("release", "no") else set())


def test_a_part_of_the_unknown_codes_can_be_released() -> None:
    rng = draw(13)
    table = pl.DataFrame({"age": ages(rng, 300), "sex": rng.choice(["f", "m"], 300)})
    table = table.with_columns(**{f"q{i}": pl.Series(codes(rng, 300, [1, 2, 3, 4])) for i in range(5)})
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table)))
    assert "such as [columns.q0]" in policy["review"]["codes"]["question"]
    policy["columns"]["q0"] = {"role": "confidential"}
    released = kinfold.anonymize(table, policy, answers={"codes": "yes"}).frame.columns
    assert {*released} == {"age", "sex", "q0"}


def test_the_command_prints_the_questions(tmp_path: Path) -> None:
    rng = draw(13)
    table = pl.DataFrame({"age": ages(rng, 300), "sex": rng.choice(["f", "m"], 300)})
    table = table.with_columns(pl.Series(f"q{i}", codes(rng, 300, [1, 2, 3, 4])) for i in range(5))
    table.write_csv(tmp_path / "t.csv")
    printed = run("profile", tmp_path / "t.csv").ok().out
    assert "  codes: Shall these 5 columns of codes be left out: q0, q1, q2, q3, q4?" in printed
    assert "    proposed: drop; answers: drop, release" in printed
    assert "q4      nominal          4        0    0.0%  undecided" in printed


def test_post_codes_and_dates_of_birth_are_released_as_true_labels() -> None:
    rng = draw(14)
    zips = [f"{z}-{z % 9000 + 1000}" for z in rng.integers(60_000, 63_000, 120)]
    table = pl.DataFrame(
        {"birth_date": days(rng, 400), "zip": rng.choice(zips, 400), "sex": rng.choice(["f", "m"], 400)}
        | {"income": np.round(rng.lognormal(8, 0.5, 400), 2)}
    )
    profile = kinfold.profile(table)
    for text in (write_starter_policy(profile), *(fit_framework(get_framework(name), profile) for name in ("gdpr",))):
        policy = tomllib.loads(text)
        assert {policy["columns"][name]["average"] for name in ("birth_date", "zip")} == {"generalize"}
    frame = kinfold.anonymize(table, tomllib.loads(write_starter_policy(profile))).frame
    whole = frame.filter(~pl.col("zip").str.contains(r"\*"))
    assert whole.group_by("zip", "birth_date").len()["len"].min() in (None, *range(5, 400))
    assert frame["birth_date"].str.contains(r"^\d{4}-\d\d-\d\d$").sum() == 0


def test_rules_that_hold_are_comments_that_can_be_switched_on() -> None:
    table = stays("stays").frame.rename({"los": "length of stay"})
    text = write_starter_policy(kinfold.profile(table))
    assert "rules" not in tomllib.loads(text)
    policy = tomllib.loads(re.sub(r"^# (?=\[\[rules|check|repair)", "", text, flags=re.MULTILINE))
    checks = [rule["check"] for rule in policy["rules"]]
    assert checks[:2] == ["`length of stay` = discharge - admission", "admission <= discharge"]
    release = kinfold.anonymize(table, policy)
    assert (release.frame["discharge"] < release.frame["admission"]).sum() == 0


def test_functions_and_implications_are_proposed_with_their_support_and_the_release_keeps_them() -> None:
    rng = draw(18)
    town, alive = rng.choice(["Bern", "Chur", "Genf", "Thun"], 600), rng.random(600) < 0.8
    death = np.where(alive, None, rng.choice(["heart", "lung", "fall"], 600))
    table = pl.DataFrame(
        {"age": ages(rng, 600), "town": town, "postcode": [f"{3000 + 7 * len(t) + ord(t[0])}" for t in town]}
        | {"alive": np.where(alive, "yes", "no"), "cause_of_death": death.tolist()}
    )
    profile = kinfold.profile(table)
    assert '"yes"' not in str(profile.to_dict()["rules"])
    text = write_starter_policy(profile)
    checks = {rule.check: rule.rows for rule in profile.rules}
    assert checks["postcode <-> town"] == 600
    assert checks['alive = "yes" implies cause_of_death is missing'] == int(alive.sum())
    assert f"# [[rules]] # holds in {alive.sum()} of {alive.sum()} records; by chance in about " in text
    policy = tomllib.loads(re.sub(r"^# (?=\[\[rules|check|repair)", "", text, flags=re.MULTILINE))
    policy["columns"] |= {name: {"role": "quasi"} for name in ("town", "alive")}
    policy["columns"] |= {name: {"role": "other"} for name in ("postcode", "cause_of_death")}
    broken = []
    for rules in ([], policy["rules"]):
        changed = {"privacy": {"k": 60}, "rules": rules, "method": {"name": "mdav"}, "review": {}, "output": {}}
        structure = kinfold.anonymize(table, {**policy, **changed}).measures["structure"]
        broken.append({each["check"] for each in structure["broken"]} & {*checks})
    assert broken == [{"postcode <-> town", 'alive = "yes" implies cause_of_death is missing', *broken[0]}, set()]


def test_numbers_without_a_relation_have_no_rule() -> None:
    rng = draw(17)
    table = pl.DataFrame(
        {"age": ages(rng, 300), "seen": days(rng, 300), "born": days(rng, 300), "sum": rng.random(300)}
    )
    assert kinfold.profile(table).rules == ()


def test_free_text_is_removed_with_its_reason() -> None:
    rng = draw(15)
    words = ["seen", "after", "a", "fall", "at", "home", "with", "pain", "stable"]
    texts = [" ".join(rng.choice(words, 7)) for _ in range(200)]
    table = pl.DataFrame({"age": ages(rng, 200), "sex": rng.choice(["f", "m"], 200), "remark": texts})
    keys = tomllib.loads(write_starter_policy(kinfold.profile(table)))["columns"]["remark"]
    assert keys == {"role": "remove", "reason": "free text may contain anything about a person"}


def test_a_question_has_its_proposed_answer_first() -> None:
    with pytest.raises(ValueError, match="the first answer is not the proposed one"):
        OpenQuestion("unit", "?", "", "privacy.unit", "id", ("none", "id"))


def test_a_profile_with_questions_as_json() -> None:
    facts = kinfold.profile(visits("visits").frame).to_dict()
    assert facts["questions"] == ()
    assert facts["unit"] == {"column": "patient_id", "people": True}

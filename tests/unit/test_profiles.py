"""Profiles and starter policies: what is proposed can be run as it is written."""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kinfold
from command import run, text
from kinfold.demo import make_patients
from kinfold.policy.model import Policy
from kinfold.profiling.people import Unit
from kinfold.profiling.starter_policy import write_starter_policy
from kinfold.tables.schema import Role
from reference.public_data import found


def mixed(values: Sequence[Any], seed: int = 0) -> list[Any]:
    """The values in an order of their own: columns that follow each other's order depend on each other."""
    return [values[i] for i in np.random.default_rng(seed).permutation(len(values))]


FEW, MANY = mixed(["a", "b", "c"] * 40, 1), mixed([f"{i % 40}x" for i in range(120)], 2)
AGES, AMOUNTS = mixed([18 + i % 60 for i in range(120)], 3), mixed([round(900 + 37.7 * i, 2) for i in range(60)] * 2, 4)
SEXES = mixed(["f", "m"] * 60, 5)


def role(name: str, values: Sequence[Any]) -> str:
    """The role of one column, beside others that are known well."""
    others = {"sex": SEXES[: len(values)], "age": AGES[: len(values)], "city": mixed(FEW, 6)[: len(values)]}
    others.pop(name, None)
    return next(c.role for c in kinfold.profile(pa.table({name: values, **others})).columns if c.name == name)


IDENTIFIERS = ["name", "Name", "NAME", "patient_id", "PatientId", "SSN", "e-mail", "EMail", "Phone", "home address"]
IDENTIFIERS += ["uuid", "Vorname", "Kundennummer", "Prénom", "apellidos", "氏名", "患者番号", "e_mail_address"]
SENSITIVE = ["Nettoeinkommen", "maladie", "Religion", "salario_bruto", "年収", "病名", "диагноз"]
QUASI = ["zip", "Alter", "Familienstand", "sexo", "pays", "都道府県", "marital-status"]
QUASI += ["region_name", "state_id", "Postleitzahl_Nummer", "郵便番号"]  # a number or name of a place is a place


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [(name, Role.IDENTIFIER) for name in IDENTIFIERS]
    + [(name, Role.CONFIDENTIAL) for name in SENSITIVE]
    + [(name, Role.QUASI) for name in QUASI],
)
def test_names_that_tell_a_role_in_any_language(name: str, expected: Role) -> None:
    assert role(name, FEW) == expected
    assert role("age", AGES) == Role.QUASI


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Disease", "diagnosis_code", "income", "MonthlySalary", "hiv_status", "charge", "total_cost"]
)
def test_names_that_are_sensitive(name: str) -> None:
    assert role(name, MANY) == Role.CONFIDENTIAL
    assert role(name, AMOUNTS) == Role.CONFIDENTIAL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["discharge", "archive_box", "width", "valid", "idea", "renamed", "solid", "x"])
def test_names_that_say_nothing(name: str) -> None:
    assert role(name, FEW) == Role.OTHER  # with a question: see below
    assert role(name, mixed(AGES)) == Role.QUASI


@pytest.mark.parametrize(
    "unknown",
    [
        {"n": ["Koch", "Bauer", "Wolf", "Fuchs", "Vogel", "Hahn"], "v": ["Ahorn", "Birke", "Esche", "Linde"]},
        {"x1": list(range(1, 13))},
        {"v17": ["a"] * 59 + ["b"]},
    ],
)
def test_unknown_codes_are_asked_about_however_few_they_are(unknown: dict[str, list[Any]]) -> None:
    codes = {name: mixed(values * (120 // len(values)), 7) for name, values in unknown.items()}
    profile = kinfold.profile(pa.table({"age": AGES, "sex": SEXES, **codes}))
    assert {column.name for column in profile.columns if column.undecided} == {*unknown}
    assert [(question.name, question.proposed) for question in profile.questions] == [("codes", "drop")]
    assert {*tomllib.loads(write_starter_policy(profile))["columns"]} == {"age", "sex"}


@pytest.mark.parametrize("name", ["household_size", "canton", "family_size"])
def test_a_known_column_past_the_eighth_quasi_identifier_is_removed(name: str) -> None:
    codes = ["zip", "marital_status", "education", "nationality", "occupation", "birth_country", "sex", name]
    table = {code: mixed(["a", "b", "c", "d"] * 60, seed) for seed, code in enumerate(codes)}
    profile = kinfold.profile(pa.table({"age": mixed([18 + i % 60 for i in range(240)], 9), **table}))
    assert [column.role for column in profile.columns].count("quasi-identifier") == 8
    assert {column.role for column in profile.columns} == {"quasi-identifier", "remove"}
    (removed,) = [column for column in profile.columns if column.role == "remove"]
    assert "role quasi-identifier keeps it" in removed.reason


def test_values_that_identify_or_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    assert role("x", [f"person {i}" for i in range(120)]) == Role.IDENTIFIER
    assert role("x", list(range(1, 121))) == Role.IDENTIFIER
    assert role("x", rng.permutation(120) + 4_000_000) == Role.IDENTIFIER
    assert role("x", [f"K-{i // 3:04}" for i in range(120)]) == Role.IDENTIFIER
    assert role("x", [float(i) ** 2.5 for i in range(120)]) == Role.CONFIDENTIAL
    assert role("x", mixed([1e300, -1e300, 3.5] * 40)) == Role.REMOVE  # which cannot be averaged
    assert role("x", ["a"] * 120) == Role.OTHER
    assert role("x", pa.nulls(120, pa.string())) == Role.OTHER


def draw(center: float, spread: float, decimals: int, seed: int = 0) -> list[float]:
    return np.random.default_rng(seed).normal(center, spread, 120).round(decimals).tolist()


METRES, DEGREES, SCORES = draw(2_683_000, 4000, 1), draw(47.4, 0.2, 6), draw(0, 1, 6)


@pytest.mark.slow
@pytest.mark.parametrize("values", [METRES, DEGREES], ids=["metres", "degrees"])
@pytest.mark.parametrize("name", ["breitengrad", "Längengrad", "easting", "xkoord", "coord_x", "utm_n", "latitud"])
def test_coordinates_by_their_name(name: str, values: list[float]) -> None:
    assert role(name, values) == Role.REMOVE


@pytest.mark.parametrize(
    ("columns", "removed"),
    [
        ({"x": METRES, "y": draw(1_247_000, 4000, 1, 1)}, True),
        ({"y": METRES}, True),
        ({"p1": METRES, "p2": draw(1_247_000, 4000, 1, 1)}, True),
        ({"p1": draw(8.5, 0.2, 4, 1), "p2": draw(47.4, 0.2, 4)}, True),
        ({"p1": draw(-33.9, 0.2, 5), "p2": draw(151.2, 0.2, 5, 1)}, True),
        ({"p1": DEGREES}, True),
        ({"laenge": draw(8.5, 0.2, 6)}, True),
        ({"x": SCORES, "y": draw(0, 1, 6, 1)}, False),
        ({"x": draw(50, 9, 1), "y": draw(20, 3, 1, 1)}, False),
        ({"laenge": draw(54, 3, 1)}, False),
        ({"f1": draw(50, 3, 15), "f2": draw(0, 1, 15)}, False),
        ({"p1": METRES}, False),  # one column of large numbers is no place
        ({"p1": draw(3000, 800, 2), "p2": draw(45_000, 9000, 2, 1)}, False),
        ({"price": METRES, "rent": draw(1_247_000, 4000, 1, 1)}, False),
    ],
)
def test_coordinates_by_their_values(columns: dict[str, list[float]], removed: bool) -> None:
    profile = kinfold.profile(pa.table({**columns, "sex": SEXES, "age": AGES}))
    assert {c.name: c.role == Role.REMOVE for c in profile.columns[: len(columns)]} == dict.fromkeys(columns, removed)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Maier", "Schulz", "Weber", "Koch", "Wolf"], Role.IDENTIFIER),
        (["Anna", "Ben", "Carla", "David", "Eva"], Role.IDENTIFIER),
        (["Dr. Meier", "Dr. Koch", "Prof. Dr. Hoffmann", "Frau Vogt"], Role.IDENTIFIER),
        (["García", "López", "Ruiz", "Sanz"], Role.IDENTIFIER),
        (["Smith", "Jones", *(f"{first}{rest}" for first in "BCDFGHKLMNPRST" for rest in ("arrow", "ellby"))] * 2 +
         ["Evans", "Hughes", "Patel", "Nguyen", "Murphy", "Campbell"], Role.IDENTIFIER),
        (["Koch", "Bauer", "Schneider", "Fischer", "Richter"], Role.OTHER),  # also trades: a question
        (["Wolf", "Fuchs", "Vogel", "Hahn"], Role.OTHER),
        (["Paris", "Charlotte", "Victoria", "Sofia"], Role.OTHER),
        (["Ford", "Opel", "Ferrari", "Fiat"], Role.OTHER),
        (["Christian", "Muslim", "Jewish"], Role.CONFIDENTIAL),
    ],
)  # fmt: skip
def test_names_of_people_under_a_name_that_says_nothing(names: list[str], expected: Role) -> None:
    assert role("v", mixed((names * 40)[:120], 7)) == expected


BIRTHS = [(1940 + i % 60, i % 12 + 1, i * 7 % 28 + 1) for i in mixed([*range(120)], 8)]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("ym", [100 * year + month for year, month, _ in BIRTHS], "nominal"),
        ("gebym", [100 * year + month for year, month, _ in BIRTHS], "nominal"),
        ("dob", [10_000 * year + 100 * month + day for year, month, day in BIRTHS], "nominal"),
        ("v", [f"{year}{month:02}{day:02}" for year, month, day in BIRTHS], "nominal"),
        ("v", [f"{MONTHS[month - 1]} {year}" for year, month, _ in BIRTHS], "nominal"),
        *((name, [i % 12 + 1 for i in range(120)], "nominal") for name in ("month", "bmonth", "gebmonat", "mob")),
        *((name, [i % 13 + 1 for i in range(120)], "nominal") for name in ("AGEG5YR", "agegrp", "altersgruppe")),
        ("yob", [year for year, _, _ in BIRTHS], "continuous"),
    ],
)
def test_births_and_ages_are_quasi_identifiers(name: str, values: list[Any], kind: str) -> None:
    table = pa.table({name: mixed(values, 9), "sex": SEXES, "city": mixed(FEW, 6), "dose": AMOUNTS})
    column = kinfold.profile(table).columns[0]
    assert (column.role, column.kind) == (Role.QUASI, kind), column.reason


FULL_CODES = mixed([*range(120)], 10)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("v", [f"SW{1 + i % 9} {i % 8 + 1}{'ABCDEF'[i % 6]}{'LNPQRST'[i % 7]}" for i in FULL_CODES], Role.QUASI),
        ("pc", [f"{10_000 + 371 * i}-{1000 + 7 * i}" for i in FULL_CODES], Role.QUASI),
        ("case_no", [f"{10_000 + 371 * i}-{1000 + 7 * i}" for i in FULL_CODES], Role.IDENTIFIER),
        ("HRSWORK", mixed([5 + i % 55 for i in range(120)], 11), Role.CONFIDENTIAL),
        ("PHYSHLTH", mixed([*range(31)] * 2 + [88] * 40 + [77] * 9 + [99] * 9, 12), Role.CONFIDENTIAL),
        ("phq9", mixed([i % 28 for i in range(120)], 13), Role.CONFIDENTIAL),
        ("gad7", mixed([i % 22 for i in range(120)], 13), Role.CONFIDENTIAL),
        ("audit", mixed([i % 41 for i in range(120)], 13), Role.CONFIDENTIAL),
        ("logpopul", mixed([round(float(np.log(1000 + 900 * (i % 9))), 4) for i in range(120)], 14), Role.QUASI),
    ],
)
def test_columns_that_are_useful_are_not_removed(name: str, values: list[Any], expected: Role) -> None:
    assert role(name, values) == expected


@pytest.mark.parametrize("written", [int, float])
def test_few_whole_numbers_are_codes_however_they_are_written(written: type) -> None:
    table = pa.table({"v": [written(i % 7) for i in range(140)], "age": AGES + AGES[:20]})
    assert kinfold.profile(table).columns[0].kind == "nominal"


def test_many_whole_numbers_are_codes_unless_neighbours_are_held_as_often() -> None:
    rng = np.random.default_rng(1)
    regions = rng.choice(np.arange(1, 91), 2000, p=rng.dirichlet(np.ones(90)))
    ages = np.clip(rng.normal(45, 17, 2000).astype(int), 0, 98)
    kinds = [column.kind for column in kinfold.profile(pa.table({"v1": regions, "v2": ages})).columns]
    assert kinds == ["nominal", "continuous"]


@pytest.mark.parametrize("name", ["weight", "Gewicht", "wgt_final", "sampling_weight", "poids", "AFNLWGT", "w"])
def test_weights_by_their_name(name: str) -> None:
    table = pa.table({name: mixed([112.7, 118.3, 420.0, 221.4] * 30), "age": AGES, "sex": SEXES})
    profile = kinfold.profile(table)
    assert profile.sampling_weights == name
    assert profile.columns[0].role == Role.WEIGHT


SURVEY_WEIGHTS = ["hochrechn", "Hochrechnungsfaktor", "pw", "hrf", "gewichtung", "expansion", "facteur", "ponderacion"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SURVEY_WEIGHTS, "peso", "fexp", "factor_expansion", "coef_pond"])
def test_weights_by_words_of_other_languages(name: str) -> None:
    assert role(name, draw(400, 60, 3)) == Role.WEIGHT


@pytest.mark.parametrize("name", ["peso", "poids", "Gewicht", "weight"])
def test_weights_in_kilograms_are_of_bodies(name: str) -> None:
    assert role(name, draw(75, 10, 1)) == Role.CONFIDENTIAL


def test_weights_by_their_values() -> None:
    region = [i % 12 + 1 for i in range(600)]
    weight = [round(80 + 31.37 * ((r * 7) % 5), 2) for r in region]
    assert kinfold.profile(pa.table({"r": region, "v": weight, "s": ["f", "m"] * 300})).sampling_weights == "v"


def test_replicate_weights_are_weights_and_means_of_schools_are_not() -> None:
    rng = np.random.default_rng(3)
    weights, school = rng.integers(10, 300, 600), rng.integers(0, 24, 600)
    replicates = {f"PWGTP{i}": (weights * rng.normal(1, 0.3, 600)).clip(0).astype(int) for i in (1, 2)}
    means = np.round(500 + 3.17 * school, 2)
    table = pd.DataFrame({"age": rng.integers(0, 90, 600), "PWGTP": weights, "school": school, "mean": means})
    roles = {column.name: column.role for column in kinfold.profile(table.assign(**replicates)).columns}
    assert [roles[name] for name in ("PWGTP", "PWGTP1", "PWGTP2")] == ["weight"] * 3
    assert roles["mean"] != "weight"


@pytest.mark.parametrize(
    "write",
    [
        lambda i: f"3528 {i:04d} {i * 7 % 1000:04d} 1190",
        lambda i: base64.b64encode(str(i * 7919 + 13).encode()).decode(),
        lambda i: f"0x{(i + 3) * 2654435761**5 % 2**160:040x}",
    ],
    ids=["digits and blanks", "base64", "hash"],
)
def test_numbers_of_people_that_look_like_text(write: Callable[[int], str]) -> None:
    rng = np.random.default_rng(4)
    who = rng.integers(0, 90, 400)
    times = [f"{minute // 60}:{minute % 60:02d}" for minute in rng.integers(300, 1440, 400)]
    profile = kinfold.profile(
        pd.DataFrame({"key": list(map(write, who.tolist())), "time": times, "fare": rng.gamma(2, 3, 400)})
    )
    assert profile.unit is not None
    assert (profile.unit.column, profile.columns[0].role) == ("key", "identifier")


@pytest.mark.slow
@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d.%m.%Y"])
def test_dates_as_text_in_a_frame_are_dates(written: str) -> None:
    days = pd.to_datetime("1960-01-01") + pd.to_timedelta(np.random.default_rng(5).integers(0, 9000, 200), "D")
    table = pd.DataFrame({"seen": days.strftime(written), "dob": days[::-1].strftime(written), "age": range(200)})
    columns = {column.name: column for column in kinfold.profile(table).columns}
    assert [columns[name].role for name in ("seen", "dob")] == ["quasi-identifier"] * 2
    assert columns["dob"].average == "generalize"
    assert kinfold.anonymize(table, tomllib.loads(write_starter_policy(kinfold.profile(table)))).verdict.holds


def test_the_weight_of_a_body_is_none_of_a_sample() -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"weight": np.round(rng.normal(75, 12, 400), 1), "age": rng.integers(18, 90, 400)})
    assert kinfold.profile(table).sampling_weights is None
    assert kinfold.profile(table.rename_columns(["Körpergewicht", "age"])).sampling_weights is None


def test_weights_are_not_released_and_still_used() -> None:
    table = pa.table({"weight": [1000.5 + 13 * i for i in range(120)], "age": AGES, "sex": SEXES})
    profile = kinfold.profile(table)
    assert (profile.columns[0].role, profile.sampling_weights) == (Role.WEIGHT, "weight")
    policy = tomllib.loads(write_starter_policy(profile))
    policy["method"] = {"name": "mdav"}
    assert kinfold.anonymize(table, policy).measures["risk"]["individual"]["max"] < 1 / 5


def test_a_household_and_a_person_with_several_rows() -> None:
    house = [i // 3 + 1 for i in range(600)]
    sex = ["f", "m", "m"] * 200
    assert kinfold.profile(pa.table({"h": house, "sex": sex})).unit == Unit("h", people=False)
    one = [sex[(h * 7) % 3] for h in house]
    assert kinfold.profile(pa.table({"h": house, "sex": one})).unit == Unit("h", people=True)
    text = write_starter_policy(kinfold.profile(pa.table({"h": house, "sex": sex})))
    assert "unit" not in tomllib.loads(text)["privacy"]
    assert tomllib.loads(text)["privacy"]["household"] == "h"
    unnumbered = write_starter_policy(kinfold.profile(pa.table({"h": [None, *house[1:]], "sex": sex})))
    assert "household" not in tomllib.loads(unnumbered)["privacy"]
    assert '# household = "h"' in unnumbered


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("age", AGES, {"intervals": [5, 10, 20], "top": 70}),
        ("seen", [date(1950 + i % 40, i % 12 + 1, 11) for i in range(120)], {"dates": ["month", "quarter", "year"]}),
        ("plz", [f"{10_000 + 371 * (i % 50)}" for i in range(120)], {"mask": 5}),
        (
            "mood",
            ["bad", "good", "very good"] * 40,
            {"levels": [["bad", "bad to good"], ["good", "bad to good"], ["very good", "very good"]]},
        ),
        (
            "city",
            ["a"] * 60 + ["b"] * 50 + ["c", "d", "e", "f", "g"] * 2,
            {"levels": [["a", "a"], ["b", "b"], *([value, "other"] for value in "cdefg")]},
        ),
    ],
)
def test_hierarchies_are_written_out(name: str, values: list[Any], wanted: dict[str, Any]) -> None:
    policy = tomllib.loads(write_starter_policy(kinfold.profile(pa.table({name: values}))))
    assert policy["columns"][name]["hierarchy"] == wanted


def test_countries_and_diagnoses_have_their_own_hierarchies() -> None:
    pytest.importorskip("countryinfo")
    countries = mixed(["Germany", "France", "Japan", "China", "Brazil", "Kenya"] * 20, 1)
    codes = mixed(["E11.9", "E11", "J45.0", "C50.1", "F32.1", "K35.8"] * 20, 2)
    table = pa.table({"country": countries, "x": codes})
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table)))["columns"]
    by_country = {row[0]: row[1:] for row in policy["country"]["hierarchy"]["levels"]}
    assert by_country["Japan"] == ["Eastern Asia", "Asia"]
    assert policy["x"]["role"] == "confidential"
    by_code = {row[0]: row for row in policy["x"]["hierarchy"]["levels"]}
    assert by_code["E11.9"][1] == "E11.-"
    assert by_code["E11.9"][-1] == "E00-E90"


@pytest.mark.parametrize("label", ["other", "rare", "*", "Asia"])
def test_a_value_called_like_a_label_does_not_break_the_policy(label: str) -> None:
    values = ["Japan", "China", "India", "Nepal", "Kenya", label] * 20 + ["Chad", "Peru"]
    table = pa.table({"country": values, "age": [*AGES, 20, 30]})
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table)))
    policy["method"] = {"name": "mdav"}
    assert set(kinfold.anonymize(table, policy).frame["country"].to_pylist()) <= set(values)


def test_the_hierarchies_of_a_starter_policy_serve_methods_that_generalize() -> None:
    table = make_patients(300)
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table)))
    policy["method"] = {"name": "datafly", "suppression": 0.1}
    assert kinfold.anonymize(table, policy).verdict.k >= 5


@pytest.mark.slow
@pytest.mark.compiled
def test_long_hierarchies_are_files_beside_the_policy(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [f"town{code},{age}" for code, age in zip(rng.zipf(1.5, 900) % 60, rng.integers(18, 90, 900), strict=True)]
    data = text(tmp_path, "t.csv", "town,age\n" + "\n".join(rows) + "\n")
    assert run("profile", data, "--write-policy", tmp_path / "p.toml").code == 0
    policy = tomllib.loads((tmp_path / "p.toml").read_text())
    assert policy["columns"]["town"]["hierarchy"] == {"file": "p-hierarchies/town.csv"}
    assert run("anonymize", data, "--policy", tmp_path / "p.toml", "--out", tmp_path / "out").code == 0
    (tmp_path / "p.toml").unlink()
    again = run("profile", data, "--write-policy", tmp_path / "p.toml")
    assert (again.code, "exists already" in again.err) == (2, True)
    assert run("profile", data, "--write-policy", tmp_path / "p.toml", "--force").code == 0


def test_confidential_columns_are_protected_by_what_fits_them() -> None:
    columns = kinfold.profile(pa.table({"disease": MANY, "hiv": FEW, "income": AMOUNTS, "age": AGES})).columns
    assert {c.role for c in columns[:3]} == {"confidential"}
    assert [(c.t, c.l) for c in columns[:3]] == [(None, 3), (None, 2), (0.3, None)]


def test_a_profile_as_json_has_reasons_and_no_value_of_the_table() -> None:
    found = kinfold.profile(pa.table({"town": ["Secretville", "Otherham", "Elsewhere"] * 40, "age": AGES})).to_dict()
    assert all(column["reason"] for column in found["columns"])
    assert "Secretville" not in repr(found)


def test_a_profile_tells_how_much_columns_single_out() -> None:
    table = pa.table({"a": [1, 1, 2, 3, None], "b": ["x", "y", "x", "x", "x"], "c": ["p", "p", "q", "q", "q"]})
    profile = kinfold.profile(table)
    columns = [(c.name, c.distinct, c.missing, c.unique) for c in profile.columns]
    assert columns == [("a", 3, 1, 3 / 5), ("b", 2, 0, 1 / 5), ("c", 2, 0, 0.0)]
    unique = {"".join(c.columns): c.unique for c in profile.combinations}
    assert unique == {"ab": 1.0, "ac": 3 / 5, "bc": 2 / 5, "abc": 1.0}
    assert any("'a' is continuous and misses 1 value" in warning for warning in profile.warnings)


def test_a_table_of_nothing_but_identifiers_is_a_warning() -> None:
    warnings = kinfold.profile(pa.table({"name": ["ann", "bob", "eve"]})).warnings
    assert any("no column can be a quasi-identifier" in warning for warning in warnings)


def test_an_identifier_that_repeats_is_a_warning() -> None:
    profile = kinfold.profile(pa.table({"patient_id": ["a", "a", "b"], "age": [1, 2, 3]}))
    assert "repeats: 3 rows, 2 values" in profile.warnings[0]


@pytest.mark.slow
def test_the_starter_policy_of_the_demo_table_runs_as_written(tmp_path: Path) -> None:
    from pyarrow import csv

    csv.write_csv(make_patients(300), tmp_path / "t.csv")
    ran = run("profile", tmp_path / "t.csv", "--write-policy", tmp_path / "p.toml")
    assert ran.code == 0
    assert "age + zip + admission" in ran.out
    written = (tmp_path / "p.toml").read_text()
    assert "# A starter policy" in written
    assert run("profile", tmp_path / "t.csv", "--write-policy", tmp_path / "p.toml").code == 2
    release = kinfold.anonymize(tmp_path / "t.csv", tmp_path / "p.toml")
    assert release.verdict.k >= 5
    assert {c.role for c in release.policy.columns} >= {Role.IDENTIFIER, Role.QUASI, Role.CONFIDENTIAL}


@pytest.mark.parametrize("missing", [1, 3, 5, 40])
def test_a_starter_policy_runs_however_many_values_are_missing(missing: int) -> None:
    table = pa.table({"age": [None] * missing + list(range(60 - missing)), "sex": ["f", "m", None] * 20})
    policy = tomllib.loads(write_starter_policy(kinfold.profile(table)))
    policy["method"]["name"] = "mdav"  # the same roles and kinds, without a search
    assert kinfold.anonymize(table, policy).verdict.k >= 5


def test_a_starter_policy_with_strange_names_is_toml() -> None:
    table = pa.table({name: [1, 2, 3, 4, 5, 6] for name in ('a"b', "a.b", "ünï", "new\nline", "a b", "[x]", "#")})
    policy = Policy.parse(tomllib.loads(write_starter_policy(kinfold.profile(table), k=2)))
    assert set(policy.columns) == set(table.column_names)


def test_census_is_profiled_as_numbers() -> None:
    profile = kinfold.profile(found("census.csv"))
    assert profile.rows == 1080
    assert {c.kind for c in profile.columns} == {"continuous"}


def test_a_profile_as_json(tmp_path: Path) -> None:
    ran = run("profile", text(tmp_path, "t.csv", "a,b\n1,x\n2,\n3,[red]\n"), "--json")
    assert [c["name"] for c in ran.json["columns"]] == ["a", "b"]


def test_the_labels_of_columns_count_as_names(tmp_path: Path) -> None:
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    table = {"V1": rng.integers(18, 90, 200), "V2": rng.integers(1, 6, 200), "V3": rng.integers(1, 3, 200)}
    labels = [
        "Age in years",
        "Religion",
        "A question of many words, in which a wage, a party or an age may be mentioned",
    ]
    pyreadstat.write_sav(pandas.DataFrame(table), tmp_path / "t.sav", column_labels=labels)
    columns = {column.name: column for column in kinfold.profile(tmp_path / "t.sav").columns}
    assert [columns[name].role for name in ("V1", "V2")] == ["quasi-identifier", "confidential"]
    assert "its label hints at religion" in columns["V2"].reason
    assert "label" not in columns["V3"].reason

"""What a single column is: special categories by name and by value, quantities, ages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from kinfold.profiling.profile import ColumnProfile
from kinfold.tables.column_names import SPECIAL_HINTS, Hint, find_hints
from kinfold.tables.schema import Role

ROWS = 400
KEYS = {
    "age": [18 + i % 60 for i in range(ROWS)],
    "sex": ["f", "m"] * (ROWS // 2),
    "city": ["a", "b", "c", "d"] * (ROWS // 4),
}


def judge(name: str, values: Any) -> ColumnProfile:
    """The profile of one column beside three that everybody knows."""
    columns = kinfold.profile(pa.table({name: values, **KEYS})).columns
    return next(column for column in columns if column.name == name)


def draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


SPECIAL_NAMES = """
    RELIG religion Konfession Religionszugehörigkeit confession religión religione geloof religiao SEXORIENT
    sexual_orientation sexuelleOrientierung orientation_sexuelle orientacion_sexual union_member Gewerkschaft syndicat
    sindicato sindacato vakbond party_vote Parteipräferenz political_views opinion_politique ideologia partido
    prio priors_count Vorstrafen convictions criminal_record casier_judiciaire antecedentes_penales condanne icd icd10
    dx Diagnose diagnostic diagnóstico diagnosi diagnose_code cause_of_death Todesursache cause_deces causa_muerte
    medication Medikament médicament medicamento disability Behinderung handicap discapacidad smoker Raucher genotype
    BRCA1 fingerprint biometrics hiv_status pregnant Schwangerschaft
"""


@pytest.mark.parametrize("name", SPECIAL_NAMES.split())
def test_a_name_hints_at_a_special_category(name: str) -> None:
    assert find_hints(name) & {*SPECIAL_HINTS}, find_hints(name)
    assert find_hints(name).isdisjoint({Hint.SEX, Hint.PLACE, Hint.NUMBER})


@pytest.mark.parametrize("name", ["RELIG", "prio", "dx", "konfession", "SEXORIENT"])
def test_codes_of_a_special_category_are_confidential(name: str) -> None:
    assert judge(name, draw(1).integers(0, 6, ROWS)).role == Role.CONFIDENTIAL


VALUE_LISTS = {
    "religions": ["Catholic", "Protestant", "Muslim", "none", "other"],
    "religions in German": ["römisch-katholisch", "evangelisch", "konfessionslos", "sonstige"],
    "religions in Spanish": ["católico", "musulmán", "ateo", "judío"],
    "parties": ["CDU", "SPD", "Grüne", "FDP", "AfD"],
    "parties in the USA": ["Democrat", "Republican", "independent"],
    "orientations": ["heterosexual", "gay", "bisexual"],
    "diseases": ["Diabetes mellitus", "asthma bronchiale", "Hypertension", "healthy"],
    "chapters": ["Circulatory", "Neoplasms", "Respiratory", "Digestive", "External Causes"],
    "drugs": ["simvastatin", "Metformin 500", "ramipril", "aspirin"],
    "offences": ["theft", "burglary", "fraud", "assault"],
    "blood groups": ["A+", "B-", "0+", "AB+"],
    "genotypes": ["A/A", "A/G", "G/G"],
    "codes of drugs": ["C10AA01", "A10BA02", "N02BE01"],
}


@pytest.mark.slow
@pytest.mark.parametrize("values", VALUE_LISTS.values(), ids=[*VALUE_LISTS])
def test_values_hint_at_a_special_category_whatever_the_name(values: list[str]) -> None:
    column = judge("v12", draw(2).choice(values, ROWS))
    assert column.role == Role.CONFIDENTIAL
    assert "its values hint at" in column.reason


def test_chapters_of_diagnoses_in_roman_numbers() -> None:
    chapters = draw(3).choice(["I", "II", "IV", "IX", "XI", "XX"], ROWS)
    assert judge("chapter", chapters).role == Role.CONFIDENTIAL
    assert "hint at" not in judge("volume", chapters).reason


@pytest.mark.parametrize(
    "values",
    [["red", "white", "black", "blue"], ["small", "large"], ["Berlin", "Hamburg", "Köln"], ["AA", "AB", "BB"]],
    ids=str,
)
def test_other_words_are_of_no_special_category(values: list[str]) -> None:
    assert "hint at" not in judge("v12", draw(4).choice(values, ROWS)).reason


def test_ethnic_groups_are_visible_to_others() -> None:
    groups = draw(5).choice(["White", "Black", "Asian", "Hispanic"], ROWS)
    assert judge("v12", groups).role == Role.QUASI


QUANTITIES = {
    "bwt": lambda rng: rng.normal(2900, 700, ROWS).astype(int),
    "Pulse": lambda rng: rng.normal(74, 11, ROWS).astype(int),
    "week": lambda rng: rng.integers(1, 53, ROWS),
    "rent": lambda rng: rng.permutation(np.arange(ROWS) * 37 + 10_011),
    "dbp": lambda rng: np.clip(rng.normal(82, 10, ROWS), 60, 110).astype(int),
    "Blutdruck_dia": lambda rng: np.clip(rng.normal(82, 10, ROWS), 60, 110).astype(int),
    "bmi": lambda rng: np.clip(rng.normal(26, 4, ROWS), 16, 50).astype(int),
    "hours_per_week": lambda rng: np.clip(rng.normal(40, 12, ROWS), 1, 99).astype(int),
    "Wochenstunden": lambda rng: np.clip(rng.normal(38, 12, ROWS), 1, 80).astype(int),
    "salaire": lambda rng: rng.permutation(ROWS) * 3 + 20_000,
    "taille": lambda rng: rng.normal(170, 10, ROWS).astype(int),
}


@pytest.mark.parametrize("name", QUANTITIES)
def test_quantities_are_neither_numbers_of_people_nor_ages(name: str) -> None:
    column = judge(name, QUANTITIES[name](draw(6)))
    assert (column.kind, column.role) == ("continuous", Role.CONFIDENTIAL), column.reason


def test_a_measured_column_without_a_telling_name_is_no_number_of_a_person() -> None:
    bell = np.sort(draw(7).normal(50_000, 8_000, ROWS).astype(int))
    assert judge("x", bell).kind == "continuous"
    assert judge("x", np.arange(ROWS) + 50_000).role == Role.IDENTIFIER


@pytest.mark.parametrize(
    ("low", "high", "quasi"), [(0, 98, True), (18, 90, True), (60, 110, False), (40, 120, False), (1, 52, False)]
)
def test_numbers_without_a_telling_name_are_ages_if_they_span_lives(low: int, high: int, quasi: bool) -> None:
    values = draw(8).integers(low, high + 1, ROWS)
    column = judge("x", values)
    assert ("like ages" in column.reason) == quasi
    assert judge("Alter", values).role == Role.QUASI


def test_groups_of_ages_are_codes() -> None:
    assert judge("age_group", draw(9).integers(1, 8, ROWS)).kind == "nominal"


ROLE_NAMES = {
    Hint.BIRTH: "Geburtsdatum GebDat geb_jahr date_de_naissance dateNaissance fecha_nacimiento FechaNac fec_nac dob",
    Hint.PLACE: "PLZ Wohnort code_postal codePostal codigo_postal CódigoPostal Landkreis localidad ville cod_post",
    Hint.SEX: "Geschlecht geschl sexe sexo sesso gndr male",
    Hint.WORK: "Beruf profession profesión ocupacion Tätigkeit CSP occ",
    Hint.MONEY: "Gehalt salaire salario Nettolohn sueldo ingresos revenu_mensuel rent loyer",
    Hint.HEALTH: "Diagnose diagnostic diagnostico Krankheit maladie enfermedad",
    Hint.MARITAL: "Familienstand famst situation_familiale estado_civil estadoCivil statoCivile",
    Hint.WEIGHT: "WTFINAL rb050 pweight PERWT wtssall Hochrechnungsfaktor",
    Hint.NUMBER: "db030 PatientId Matrikelnr subjid",
}


@pytest.mark.parametrize(("hint", "names"), ROLE_NAMES.items(), ids=[*ROLE_NAMES])
def test_names_in_other_languages_and_abbreviations(hint: Hint, names: str) -> None:
    assert [name for name in names.split() if hint not in find_hints(name)] == []


@pytest.mark.parametrize("name", ["bwt", "birth_weight", "lwt"])
def test_the_weight_of_a_newborn_is_measured(name: str) -> None:
    assert find_hints(name).isdisjoint({Hint.WEIGHT, Hint.BIRTH})


@pytest.mark.parametrize("name", ["agency", "country_count", "yes_no", "priority", "unionize", "stage", "partner"])
def test_parts_of_other_words_say_nothing(name: str) -> None:
    assert find_hints(name).isdisjoint({Hint.AGE, Hint.NUMBER, Hint.OFFENCE, Hint.UNION, Hint.BELIEF})


@pytest.mark.parametrize("name", ["PLZ", "code_postal", "CodigoPostal", "zip"])
@pytest.mark.parametrize("written", [int, str])
def test_post_codes_of_few_records_are_places(name: str, written: type) -> None:
    codes = [written(code) for code in draw(23).choice(np.arange(10_115, 99_998), ROWS, replace=False)]
    column = judge(name, codes)
    assert column.role == Role.QUASI
    assert "postal codes" in column.reason


def test_a_measurement_with_mean_one_is_no_weight() -> None:
    table = pa.table({"creatinine": np.round(np.clip(draw(24).normal(1, 0.2, ROWS), 0.3, 2), 1), **KEYS})
    assert kinfold.profile(table).sampling_weights is None

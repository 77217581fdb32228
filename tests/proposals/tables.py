"""Generated tables with a known truth: who a person is, which role each column has, which columns tell others.

Each table is small, and differs from the others of its kind by names, language, order of rows, size or notation. The
seed of a table is its name.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from kinfold.tables.schema import Role

ID, QUASI, CONFIDENTIAL, OTHER, WEIGHT, REMOVE = map(
    str, (Role.IDENTIFIER, Role.QUASI, Role.CONFIDENTIAL, Role.OTHER, Role.WEIGHT, Role.REMOVE)
)
Columns = dict[str, Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Truth:
    """What is true of a table: the role of each column, whose rows they are, and what depends on what."""

    roles: Mapping[str, str]
    unit: str | None = None  # the number of a person with several rows
    household: str | None = None  # the number of a household of several rows
    dependent: frozenset[str] = frozenset()  # columns that tell a quasi-identifier or a removed column
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # codes for missing values


@dataclass(frozen=True)
class ProposalTable:
    """A table and its truth."""

    name: str
    frame: pl.DataFrame
    truth: Truth


def build(
    name: str, columns: Columns, roles: Mapping[str, str], *, shuffle: Rng | None = None, **truth: Any
) -> ProposalTable:
    """Make a table; `shuffle` mixes its rows."""
    frame = pl.DataFrame(columns)
    if shuffle is not None:
        frame = frame[shuffle.permutation(len(frame))]
    return ProposalTable(name, frame, Truth({**roles}, **truth))


def seed(name: str) -> Rng:
    """The random numbers of a table."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def days(rng: Rng, size: int, first: date = date(1930, 1, 1), span: int = 27_000) -> list[date]:
    """Random dates."""
    return [first + timedelta(days=int(day)) for day in rng.integers(0, span, size)]


def ages(rng: Rng, size: int) -> np.ndarray[Any, Any]:
    """Ages of adults and children."""
    drawn = rng.normal(42, 21, 3 * size).astype(int)
    return drawn[(drawn >= 0) & (drawn <= 96)][:size]


def codes(rng: Rng, size: int, values: list[Any]) -> list[Any]:
    """Values with uneven frequencies."""
    shares = rng.dirichlet(np.full(len(values), 4.0))
    return [values[i] for i in rng.choice(len(values), size, p=shares)]


VISIT_NAMES = {
    "visits": ("patient_id", "sex", "birth_date", "visit", "dbp", "diagnosis", "cost"),
    "visits in German": ("Patientennr", "Geschlecht", "Geburtsdatum", "Besuch", "dbp", "Diagnose", "Kosten"),
    "visits in Spanish": ("id_paciente", "sexo", "fecha_nacimiento", "visita", "presion", "diagnostico", "gasto"),
    "visits, shuffled": ("subject", "gender", "dob", "seen_on", "dbp", "icd", "charge"),
    "visits, long": ("MRN", "SEX", "BIRTHDATE", "VISITDT", "DIABP", "DIAG", "CHARGE"),
}


def visits(name: str) -> ProposalTable:
    """Visits of patients: sex and date of birth are constant, a blood pressure looks like an age."""
    rng, names = seed(name), VISIT_NAMES[name]
    rows = 1500 if "long" in name else 600
    people = rows // 3
    who = np.sort(np.concatenate([np.arange(people), rng.integers(0, people, rows - people)]))
    sex, born = rng.choice(["f", "m"], people), days(rng, people)
    key: list[Any] = [f"P{10_000 + w}" for w in who]
    if "shuffled" in name:
        key = (rng.permutation(90_000)[who] + 10_000).tolist()
    values = (
        key,
        sex[who].tolist(),
        [born[w] for w in who],
        days(rng, rows, date(2021, 1, 1), 900),
        rng.normal(80, 11, rows).astype(int).tolist(),
        codes(rng, rows, ["E11.9", "I10", "J45.0", "C50.1", "F32.1", "K35.8", "N18.3"]),
        np.round(rng.lognormal(6, 1, rows), 2).tolist(),
    )
    roles = dict(zip(names, (ID, QUASI, QUASI, QUASI, CONFIDENTIAL, CONFIDENTIAL, CONFIDENTIAL), strict=True))
    mixed = rng if "shuffled" in name else None
    return build(name, dict(zip(names, values, strict=True)), roles, shuffle=mixed, unit=names[0])


HOUSEHOLD_NAMES = {
    "household": ("hid", "sex", "age", "region", "income"),
    "household of EU-SILC": ("db030", "rb090", "age", "db040", "py010n_income"),
    "household serials": ("SERIAL", "SEX", "AGE", "REGION", "INCTOT"),
    "household in German": ("Haushaltsnummer", "Geschlecht", "Alter", "Bundesland", "Einkommen"),
    "household, shuffled": ("hhid", "sexe", "age", "departement", "revenu"),
}


def household(name: str) -> ProposalTable:
    """Members of households: sexes and ages differ; some ages are -1; a one-household income links members."""
    rng, names = seed(name), HOUSEHOLD_NAMES[name]
    homes = 300
    sizes = rng.choice([1, 2, 3, 4, 5], homes, p=[0.25, 0.3, 0.2, 0.15, 0.1])
    home = np.repeat(np.arange(homes), sizes)
    rows = len(home)
    age = ages(rng, rows)
    age[rng.random(rows) < 0.04] = -1
    income = np.round(rng.lognormal(9.8, 0.6, homes), 2)[home]
    values = (
        home * 7 + 1001,
        rng.choice([1, 2], rows),
        age,
        np.array(codes(rng, homes, [11, 12, 21, 22, 31, 41]))[home],
        np.round(rng.lognormal(9.5, 0.7, rows), 2),
    )
    columns = dict(zip(names, values, strict=True)) | {"eqIncome": income}
    roles = dict(zip(names, (ID, QUASI, QUASI, QUASI, CONFIDENTIAL), strict=True)) | {"eqIncome": REMOVE}
    mixed = rng if "shuffled" in name else None
    truth = {"household": names[0], "dependent": frozenset({"eqIncome"}), "missing": {names[2]: ("-1",)}}
    return build(name, columns, roles, shuffle=mixed, **truth)


def panel(name: str) -> ProposalTable:
    """Members of households in several years: no single column numbers the people."""
    rng = seed(name)
    homes, waves = 120, 4
    sizes = rng.choice([1, 2, 3, 4], homes)
    home = np.repeat(np.arange(homes), sizes)
    member = np.concatenate([np.arange(size) + 1 for size in sizes])
    sex, born = rng.choice(["f", "m"], len(home)), rng.integers(1935, 2005, len(home))
    person = np.tile(np.arange(len(home)), waves)
    wave = np.repeat(np.arange(waves) + 1, len(home))
    order = np.lexsort((wave, person)) if name == "panel" else np.arange(len(person))
    person, wave = person[order], wave[order]
    columns = {
        "hhid": home[person] + 5000,
        "pnr": member[person],
        "wave": wave,
        "sex": sex[person],
        "birth_year": born[person],
        "region": np.array(codes(rng, homes, ["north", "south", "east", "west"]))[home[person]],
        "income": np.round(rng.lognormal(9.5, 0.6, len(person)), 2),
    }
    roles = {"hhid": ID, "pnr": OTHER, "wave": OTHER, "sex": QUASI, "birth_year": QUASI, "region": QUASI}
    return build(name, columns, roles | {"income": CONFIDENTIAL}, unit="hhid")


def single_rows(rng: Rng, rows: int, names: tuple[str, str, str] = ("age", "sex", "region")) -> Columns:
    """Age, sex and region of people with one row each."""
    age, sex, region = names
    return {
        age: ages(rng, rows),
        sex: rng.choice(["f", "m"], rows),
        region: codes(rng, rows, ["north", "south", "east", "west", "centre"]),
    }


SINGLE_ROLES = {"age": QUASI, "sex": QUASI, "region": QUASI}
WEIGHT_NAMES = ("WTFINAL", "rb050", "pweight", "gewicht", "poids", "factor_expansion", "w_norm")


def weights(name: str) -> ProposalTable:
    """A survey with sampling weights, by person or by stratum."""
    rng = seed(name)
    rows = 700
    columns = single_rows(rng, rows)
    drawn = np.round(rng.gamma(6, 1, rows) * 130 + 50, 4)
    if name == "w_norm":
        drawn = drawn / drawn.mean()
    if name in ("gewicht", "poids"):
        strata = {region: drawn[i] for i, region in enumerate(sorted({*columns["region"]}))}
        drawn = np.array([strata[region] for region in columns["region"]])
    columns |= {name: drawn, "income": np.round(rng.lognormal(8, 0.7, rows), 2)}
    return build(f"weights {name}", columns, SINGLE_ROLES | {name: WEIGHT, "income": CONFIDENTIAL})


def depend_on_age(rng: Rng, columns: Columns, kind: str) -> Columns:
    """A column that tells the age."""
    age = np.asarray(columns["age"])
    bands = np.array(["0-17", "18-39", "40-64", "65+"])[np.digitize(age, [18, 40, 65])]
    wrong = np.where(rng.random(len(age)) < 0.01, rng.permutation(bands), bands)
    numbers = {
        "age group": ("agegrp", np.digitize(age, [18, 30, 45, 60, 75])),
        "age band with errors": ("band", wrong),
        "year of birth": ("yob", 2023 - age - rng.integers(0, 2, len(age))),
        "logarithm": ("x1", np.round(np.log(age + 1.0), 5)),
        "months": ("agemonths", age * 12 + rng.integers(0, 12, len(age))),
        "copy": ("v7", age.astype(str)),
    }
    column, values = numbers[kind]
    return columns | {column: values}


def of_age(kind: str) -> ProposalTable:
    """A table with a column that tells the age."""
    name = f"depends: {kind}"
    rng = seed(name)
    rows = 800
    columns = depend_on_age(rng, single_rows(rng, rows), kind)
    added = [*columns][-1]
    columns |= {"income": np.round(rng.lognormal(8, 0.7, rows), 2)}
    roles = SINGLE_ROLES | {added: QUASI, "income": CONFIDENTIAL}
    return build(name, columns, roles, dependent=frozenset({added}))


AGE_KINDS = ("age group", "age band with errors", "year of birth", "logarithm", "months", "copy")


def towns(name: str) -> ProposalTable:
    """A post code, its town, and a code of the town that no name tells."""
    rng = seed(name)
    rows, places = 900, 60
    where = rng.choice(places, rows, p=rng.dirichlet(np.full(places, 3.0)))
    zips = rng.permutation(80_000)[:places] + 10_000
    town = where // 2
    columns = single_rows(rng, rows)
    del columns["region"]
    key, label = ("zip", "town") if name == "town and zip" else ("PLZ", "kennz")
    columns |= {
        key: [f"{zips[i]}-{1000 + zips[i] % 8999}" if key == "zip" else str(zips[i]) for i in where],
        label: [f"town {t}" if label == "town" else f"K{t % 19}" for t in town],
        "spend": np.round(rng.lognormal(5, 1, rows), 2),
    }
    roles = {"age": QUASI, "sex": QUASI, key: QUASI, label: QUASI, "spend": CONFIDENTIAL}
    dependent = frozenset() if label == "town" else frozenset({label})
    return build(name, columns, roles, dependent=dependent)


def populations(name: str) -> ProposalTable:
    """The population of the municipality and its logarithm, as in a file of municipalities' residents."""
    rng = seed(name)
    rows, places = 800, 150
    where = rng.integers(0, places, rows)
    popul = np.round(rng.lognormal(9, 1.2, places)).astype(int)[where]
    columns = single_rows(rng, rows) | {"municipality": [f"Mun {w}" for w in where], "popul": popul}
    columns |= {"logpopul": np.round(np.log(popul), 6), "income": np.round(rng.lognormal(8, 0.7, rows), 2)}
    roles = SINGLE_ROLES | {"municipality": QUASI, "popul": QUASI, "logpopul": QUASI, "income": CONFIDENTIAL}
    return build(name, columns, roles, dependent=frozenset({"popul", "logpopul"}))


def stays(name: str) -> ProposalTable:
    """Stays in hospital: the length of stay is the difference of two dates."""
    rng = seed(name)
    rows = 600
    admission = days(rng, rows, date(2022, 1, 1), 700)
    stay = np.round(rng.gamma(2, 20, rows)).astype(int)
    columns = single_rows(rng, rows) | {
        "admission": admission,
        "discharge": [day + timedelta(days=int(n)) for day, n in zip(admission, stay, strict=True)],
        "los": stay,
        "disease": codes(rng, rows, ["flu", "asthma", "diabetes", "cancer", "stroke"]),
    }
    roles = SINGLE_ROLES | {"admission": QUASI, "discharge": QUASI, "los": QUASI, "disease": CONFIDENTIAL}
    return build(name, columns, roles, dependent=frozenset({"los"}))


def light_chains(name: str) -> ProposalTable:
    """Two measurements that others may know, and a group that is a bin of their sum."""
    rng = seed(name)
    rows = 900
    kappa, lam = np.round(rng.lognormal(0.3, 0.5, rows), 3), np.round(rng.lognormal(0.5, 0.5, rows), 3)
    edges = np.quantile(kappa + lam, np.linspace(0.1, 0.9, 9))
    columns = {"kappa": kappa, "lambda": lam, "flc_grp": np.digitize(kappa + lam, edges) + 1}
    roles = {"kappa": QUASI, "lambda": QUASI, "flc_grp": QUASI}
    return build(name, columns, roles, dependent=frozenset({"flc_grp", "kappa", "lambda"}))


def coded(name: str) -> ProposalTable:
    """A code of the occupation beside its label, and a copy of the sex."""
    rng = seed(name)
    rows = 700
    jobs = [f"job {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    job = codes(rng, rows, jobs)
    columns = single_rows(rng, rows)
    columns |= {
        "occupation": job,
        "q12": [jobs.index(each) * 3 + 11 for each in job],
        "q13": np.where(columns["sex"] == "f", 2, 1),
        "salary": np.round(rng.lognormal(8, 0.5, rows), 2),
    }
    roles = SINGLE_ROLES | {"occupation": QUASI, "q12": QUASI, "q13": QUASI, "salary": CONFIDENTIAL}
    return build(name, columns, roles, dependent=frozenset({"q12", "q13"}))


SPECIAL_NAMES = {
    "special": {"RELIG": ["none", "catholic", "protestant", "muslim"], "SEXORIENT": ["hetero", "gay", "bi"]},
    "special codes": {"religion": [1, 2, 3, 4], "hiv_status": ["neg", "pos"]},
    "special in German": {"Konfession": ["keine", "rk", "ev"], "Diagnose": ["E11.9", "I10", "J45.0", "C50.1"]},
    "special in French": {"religion": ["aucune", "catholique", "islam"], "maladie": ["grippe", "asthme", "cancer"]},
}


def special(name: str) -> ProposalTable:
    """Special categories of the GDPR."""
    rng = seed(name)
    rows = 500
    columns = single_rows(rng, rows)
    columns |= {key: codes(rng, rows, values) for key, values in SPECIAL_NAMES[name].items()}
    return build(name, columns, SINGLE_ROLES | dict.fromkeys(SPECIAL_NAMES[name], CONFIDENTIAL))


def many_amounts(name: str) -> ProposalTable:
    """Nine amounts: none may be dropped silently."""
    rng = seed(name)
    rows = 400
    amounts = {f"{word}_cost": np.round(rng.lognormal(5, 1, rows), 2) for word in ("food", "rent", "fuel", "care")}
    amounts |= {f"m{i}": np.round(rng.lognormal(3, 0.5, rows), 3) for i in range(5)}
    return build(name, single_rows(rng, rows) | amounts, SINGLE_ROLES | dict.fromkeys(amounts, CONFIDENTIAL))


def many_codes(name: str) -> ProposalTable:
    """Twelve codes of unknown meaning: never released as they are without a question."""
    rng = seed(name)
    rows = 500
    unknown = {f"q{i}": codes(rng, rows, list(range(1, 4 + i % 5))) for i in range(12)}
    return build(name, single_rows(rng, rows) | unknown, SINGLE_ROLES | dict.fromkeys(unknown, CONFIDENTIAL))


MISSING_CODES = {"-9": (-9,), "99": (97, 98, 99), "999999": (999_999,)}


def missing_codes(code: str) -> ProposalTable:
    """Numbers with codes for missing values."""
    name = f"missing {code}"
    rng = seed(name)
    rows = 800
    columns = single_rows(rng, rows)
    columns["age"] = np.clip(columns["age"], 16, 90)
    column, values = {
        "-9": ("children", rng.poisson(1.2, rows)),
        "99": ("hours", np.clip(rng.normal(38, 9, rows).astype(int), 1, 80)),
        "999999": ("income", (rng.lognormal(9.5, 0.5, rows) // 10 * 10).astype(int)),
    }[code]
    absent = rng.random(rows) < 0.06
    columns[column] = np.where(absent, rng.choice(MISSING_CODES[code], rows), values)
    roles = SINGLE_ROLES | {column: QUASI if column == "children" else CONFIDENTIAL}
    return build(name, columns, roles, missing={column: tuple(map(str, MISSING_CODES[code]))})


def ordinary(name: str) -> ProposalTable:
    """Everyday tables: staff, pupils, customers."""
    rng = seed(name)
    rows = 400
    age = rng.integers(18, 66, rows)
    tables: dict[str, tuple[Columns, dict[str, str]]] = {
        "staff": (
            {"staff_no": np.arange(rows) + 1001, "birth": days(rng, rows, date(1958, 1, 1), 16_000)}
            | {"gender": rng.choice(["F", "M"], rows), "postcode": rng.integers(10_000, 10_400, rows).astype(str)}
            | {"salary": np.round(rng.lognormal(8, 0.4, rows), 2), "sick_days": rng.poisson(6, rows)},
            {"staff_no": ID, "birth": QUASI, "gender": QUASI, "postcode": QUASI, "salary": CONFIDENTIAL},
        ),
        "customers": (
            {"name": [f"N{i} {rng.integers(1e9)}" for i in range(rows)], "age": age}
            | {"sex": rng.choice(["m", "w"], rows), "city": codes(rng, rows, ["Bern", "Basel", "Genf", "Chur"])}
            | {"turnover": np.round(rng.lognormal(5, 1, rows), 2)},
            {"name": ID, "age": QUASI, "sex": QUASI, "city": QUASI, "turnover": CONFIDENTIAL},
        ),
        "small": (
            {"age": age[:60], "sex": rng.choice(["m", "w"], 60), "income": np.round(rng.lognormal(7, 0.5, 60), 1)},
            {"age": QUASI, "sex": QUASI, "income": CONFIDENTIAL},
        ),
        "Italian": (
            {"codice_fiscale": [f"RSS{rng.integers(1e9):09}" for _ in range(rows)], "eta": age}
            | {"sesso": rng.choice(["M", "F"], rows), "comune": codes(rng, rows, ["Roma", "Bari", "Pisa", "Asti"])}
            | {"reddito": np.round(rng.lognormal(9, 0.6, rows), 2), "malattia": codes(rng, rows, list("abcd"))},
            {"codice_fiscale": ID, "eta": QUASI, "sesso": QUASI, "comune": QUASI, "reddito": CONFIDENTIAL}
            | {"malattia": CONFIDENTIAL},
        ),
    }
    columns, roles = tables[name]
    return build(f"ordinary: {name}", columns, roles)


def list_makers() -> Iterator[Callable[[], ProposalTable]]:
    """Yield a function for each table."""
    from proposals.examined import FAMILIES  # it uses this module

    families: list[tuple[Callable[[str], ProposalTable], Any]] = [
        (visits, VISIT_NAMES),
        (household, HOUSEHOLD_NAMES),
        (panel, ("panel", "panel by year")),
        (weights, WEIGHT_NAMES),
        (of_age, AGE_KINDS),
        (towns, ("town and zip", "post code and sign")),
        (populations, ("populations",)),
        (stays, ("stays",)),
        (light_chains, ("light chains",)),
        (coded, ("codes and labels",)),
        (special, SPECIAL_NAMES),
        (many_amounts, ("many amounts",)),
        (many_codes, ("many codes",)),
        (missing_codes, MISSING_CODES),
        (ordinary, ("staff", "customers", "small", "Italian")),
        *FAMILIES,
    ]
    for maker, names in families:
        for name in names:
            yield lambda maker=maker, name=name: maker(name)


def make_tables() -> list[ProposalTable]:
    """Make every table."""
    return [make() for make in list_makers()]

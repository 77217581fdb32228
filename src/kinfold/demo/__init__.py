"""The demo: a generated table of patients, its policy and its release, in one folder that is rewritten each time.

The table is generated from a seed. It has mixed types, correlations (age with marital status, education with income,
disease with age, charge with both), some missing values and rare categories.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kinfold.disk import folders
from kinfold.errors import PolicyError, report_failed_write
from kinfold.pipeline import anonymize
from kinfold.policy.model import Policy
from kinfold.progress import StageProgress
from kinfold.release.release import Release

FIRST_NAMES = (
    "Ada Amir Ana Ben Chen Clara Daan Dilan Elif Emma Femi Greta Hana Ivan Jana Kofi Lea Luca Mara Milo Nadia "
    "Noor Omar Paul Rosa Sami Sofia Tomas Uma Vera Wim Yara Zoe"
)
LAST_NAMES = (
    "Adler Bauer Castro Diaz Eriksen Fischer Garcia Haddad Ito Jansen Kaya Lopez Mensah Novak Okafor Petrov "
    "Quinn Rossi Silva Tanaka Ueda Vargas Weber Xu Yilmaz Zhang"
)
EDUCATION = ("primary", "secondary", "vocational", "bachelor", "master", "doctorate")
DISEASES = (
    *("hypertension", "diabetes", "asthma", "influenza", "fracture"),
    *("depression", "angina", "cancer", "Huntington"),
)
AREAS = ("02138", "02139", "02141", "02142", "02144", "02145", "01960", "01970", "04530")


def make_patients(records: int = 1000, seed: int = 1) -> pa.Table:
    """Return the demo table as Arrow."""
    random = np.random.default_rng(seed)
    age = np.clip(random.normal(np.where(random.random(records) < 0.6, 64, 35), 13).round(), 0, 99).astype(int)
    education = _draw_education(random, age)
    income = np.exp(random.normal(9.7 + 0.16 * education + 0.004 * np.minimum(age, 60), 0.45)).round(-2)
    disease = [DISEASES[_draw_disease(random, years)] for years in age]
    charge = np.exp(random.normal(7.2 + 0.01 * age, 0.6) + np.isin(disease, ("cancer", "angina")) * 0.8).round(2)
    admission = [date(2025, 1, 1) + timedelta(days=int(day)) for day in random.integers(0, 365, records)]
    columns: dict[str, Any] = {
        "name": _draw_names(random, records),
        "age": age,
        "sex": random.choice(["female", "male", "other"], records, p=[0.52, 0.47, 0.01]),
        "zip": random.choice(AREAS, records, p=[0.2, 0.2, 0.14, 0.1, 0.12, 0.1, 0.08, 0.05, 0.01]),
        "education": [EDUCATION[level] if random.random() > 0.02 else None for level in education],
        "marital_status": [_draw_marital_status(random, years) for years in age],
        "income": [
            None if years < 16 or random.random() < 0.03 else int(i) for years, i in zip(age, income, strict=True)
        ],
        "admission": admission,
        "disease": disease,
        "charge": charge,
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _draw_names(random: np.random.Generator, records: int) -> list[str]:
    initials = "ABCDEFGHIJKLMNOPRSTUVWYZ"
    first_names, last_names = FIRST_NAMES.split(), LAST_NAMES.split()
    each = random.choice(len(first_names) * len(initials) * len(last_names), records, replace=False)
    first, rest = np.divmod(each, len(initials) * len(last_names))
    initial, last = np.divmod(rest, len(last_names))
    return [f"{first_names[f]} {initials[i]}. {last_names[l]}" for f, i, l in zip(first, initial, last, strict=True)]


def _draw_education(random: np.random.Generator, age: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    level = random.choice(len(EDUCATION), len(age), p=[0.1, 0.32, 0.22, 0.2, 0.13, 0.03])
    reached = np.select([age < 12, age < 18, age < 22, age < 25], [0, 1, 2, 3], 5)
    return np.asarray(np.minimum(level, reached))


def _draw_marital_status(random: np.random.Generator, age: int) -> str:
    if age < 18:
        return "single"
    widowed, divorced = max(0.0, (age - 55) / 100), 0.12
    single = max(0.08, 0.9 - (age - 18) / 30)
    weights = np.array([single, 1.0, divorced, widowed])
    return str(random.choice(["single", "married", "divorced", "widowed"], p=weights / weights.sum()))


def _draw_disease(random: np.random.Generator, age: int) -> int:
    old = age / 100
    weights = np.array([old, 0.7 * old, 0.3 - 0.2 * old, 0.35, 0.25, 0.3, 0.6 * old * old, 0.5 * old, 0.006])
    return int(random.choice(len(DISEASES), p=weights / weights.sum()))


DEMO_FILES = {"patients.csv", "policy.toml", "release"}


def run_demo(folder: Path, progress: StageProgress | None = None) -> Release:
    """Write the demo table and its policy, anonymize the table, and save the release."""
    if folder.exists() and not {entry.name for entry in folder.iterdir()} <= DEMO_FILES:
        raise PolicyError(
            f"'{folder}' holds files that do not belong to the demo", fix="name another folder: --out DIR"
        )
    table, policy = folder / "patients.csv", folder / "policy.toml"
    with report_failed_write(folder, "name another folder: --out DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        folders.record_event("kept", f"'{folder}' has been overwritten in part")
        write_demo_table(table)
        policy.write_text(read_demo_policy(), encoding="utf-8")
    release = anonymize(table, Policy.load(policy), progress=progress)
    release.save(folder / "release", force=True)
    return release


def read_demo_policy() -> str:
    """Return the policy of the demo table."""
    return Path(__file__).with_name("policy.toml").read_text("utf-8")


def write_demo_table(path: Path) -> None:
    """Write the demo table."""
    from pyarrow import csv

    csv.write_csv(make_patients(), path)

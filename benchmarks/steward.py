"""A steward's first hour on a large table: processor seconds of `profile`, and of `anonymize` with its unedited policy.

    python -m benchmarks.steward register 300000 FOLDER      one table, written to the folder as CSV

Two tables of 25 columns: a register with a row for each person, and claims with several rows of a person (`unit`).
Each command has a process of its own. Kernels are compiled before, as `kinfold warmup` does.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.measuring import Row

TABLES = ("register", "claims")
FIRST_DAY = np.datetime64("1930-01-01")
DRUGS = ("metformin", "ibuprofen", "amoxicillin", "insulin", "warfarin", "none")
ICD = ("E11.9", "I10", "J45.0", "C50.1", "F32.1", "K35.8", "N18.3", "M54.5", "G43.9", "L40.0", "H25.1", "S72.0")


def make_table(kind: str, records: int, seed: int = 0) -> pl.DataFrame:
    """Return a register or a table of claims with dependent columns, codes for missing values and several rows."""
    random = np.random.default_rng(seed)
    people = records if kind == "register" else records // 4
    who = np.arange(people) if kind == "register" else np.sort(random.integers(0, people, records))
    facts = {name: values[who] for name, values in _make_people(random, people).items()}
    rows = _make_rows(random, len(who))
    if kind == "claims":
        facts["patient_id"] = np.char.add("P", (who + 100_000).astype(str))
    return pl.DataFrame(facts | rows)


def _make_people(random: np.random.Generator, people: int) -> dict[str, np.ndarray]:
    """Return what does not change: twelve columns, some of which tell others."""
    age = np.clip(random.normal(45, 20, people).astype(int), 0, 99)
    place = random.choice(800, people, p=random.dirichlet(np.full(800, 2.0)))
    job = random.choice(60, people, p=random.dirichlet(np.full(60, 1.0)))
    income = np.round(random.lognormal(10, 0.6, people), 2)
    return {
        "patient_id": np.char.add("P", random.permutation(people * 3)[:people].astype(str)),
        "birth_date": np.datetime64("2024-06-30") - (age * 365 + random.integers(0, 365, people)).astype("m8[D]"),
        "age_group": np.array(["0-17", "18-39", "40-64", "65+"])[np.digitize(age, [18, 40, 65])],
        "sex": random.choice(["f", "m"], people),
        "zip": np.char.zfill((place * 97 + 10_000).astype(str), 5),
        "town": np.char.add("Town ", (place // 2).astype(str)),
        "nationality": random.choice(["CH", "DE", "IT", "FR", "PT"], people, p=[0.75, 0.1, 0.06, 0.05, 0.04]),
        "occupation": np.char.add("job ", job.astype(str)),
        "education": random.choice(["primary", "secondary", "bachelor", "master"], people),
        "marital_status": random.choice(["single", "married", "divorced", "widowed"], people),
        "income": income,
        "tax": np.round(0.2 * income, 2),
    }


def _make_rows(random: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    """Return what differs between the rows of a person: thirteen columns."""
    admission = np.datetime64("2021-01-01") + random.integers(0, 1000, rows).astype("m8[D]")
    stay = random.gamma(2, 4, rows).astype(int)
    charge, fee = np.round(random.lognormal(7, 1, rows), 2), np.round(random.lognormal(4, 1, rows), 2)
    score = random.integers(0, 40, rows)
    return {
        "admission": admission,
        "discharge": admission + stay.astype("m8[D]"),
        "stay": stay,
        "diagnosis": random.choice(ICD, rows),
        "drug": random.choice(DRUGS, rows),
        "charge": charge,
        "fee": fee,
        "total": np.round(charge + fee, 2),
        "systolic": random.normal(125, 15, rows).astype(int),
        "bmi": np.round(random.normal(26, 4, rows), 1),
        "score": np.where(random.random(rows) < 0.03, 999, score),
        "hospital": np.char.add("H", random.integers(1, 80, rows).astype(str)),
        "followup": random.choice(["yes", "no"], rows),
    }


def measure(kind: str, records: int, folder: Path) -> Iterator[Row]:
    """Yield the processor seconds and the seconds by the clock of both commands."""
    table, policy = folder / f"{kind}{records}.csv", folder / f"{kind}{records}.toml"
    make_table(kind, records).write_csv(table)
    profile = ("profile", table, "--write-policy", policy)
    anonymize = ("anonymize", table, "--policy", policy, "--accept-proposal", "--out", folder / kind)
    for command in (profile, anonymize):
        processor, clock = _run(*map(str, command))
        yield {"table": kind, "records": records, "command": command[0], "cpu_seconds": processor, "wall": clock}


def _run(*arguments: str) -> tuple[float, float]:
    """Run a command in a process of its own; return its seconds of user and system, and by the clock."""
    call = [sys.executable, "-c", "from kinfold.cli import main; main()", *arguments]
    before = os.times()
    if os.waitstatus_to_exitcode(os.waitpid(os.spawnv(os.P_NOWAIT, sys.executable, call), 0)[1]):
        raise SystemExit(f"failed: {' '.join(arguments)}")
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return round(processor, 1), round(after.elapsed - before.elapsed, 1)


def run(*, quick: bool = False) -> Iterator[Row]:
    """Yield the rows of both tables."""
    with tempfile.TemporaryDirectory() as made:
        for kind in TABLES:
            yield from measure(kind, 30_000 if quick else 300_000, Path(made))


if __name__ == "__main__":
    kind, records, folder = sys.argv[1:]
    make_table(kind, int(float(records))).write_csv(Path(folder) / f"{kind}{records}.csv")

"""Tables that nobody prepared, as stewards have them: made here, so that what each column is is known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import polars as pl

LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def hospital(rows: int = 600, seed: int = 1) -> pl.DataFrame:
    """Stays of patients who come more than once."""
    rng = np.random.default_rng(seed)
    patients = rows // 2
    who = rng.integers(0, patients, rows)
    born = [date(1930, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 30_000, patients)]
    sex = rng.choice(["f", "m"], patients)
    zips = rng.choice([f"{code:05}" for code in rng.integers(1000, 9999, 40)], patients)
    came = [date(2023, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 700, rows)]
    codes = ["E11.9", "I10", "J45.0", "C50.1", "F32.1", "K35.8", "S72.0", "I21.4", "N18.3", "J18.9", "E78.0", "M54.5"]
    return pl.DataFrame(
        {
            "patient_id": [f"P{100_000 + w}" for w in who],
            "birth_date": [born[w] for w in who],
            "sex": [str(sex[w]) for w in who],
            "zip": [str(zips[w]) for w in who],
            "admission": came,
            "discharge": [
                day + timedelta(days=int(stay)) for day, stay in zip(came, rng.integers(1, 30, rows), strict=True)
            ],
            "ward": rng.choice(["surgery", "medicine", "paediatrics", "oncology"], rows),
            "icd": rng.choice(codes, rows),
            "cost": np.round(rng.lognormal(8, 1, rows), 2),
            "remark": [_sentence(rng) for _ in range(rows)],
        }
    )


def _sentence(rng: np.random.Generator) -> str:
    words = ["seen", "after", "a", "fall", "at", "home", "with", "pain", "daughter", "called", "stable", "review", "in"]
    return " ".join(rng.choice(words, rng.integers(4, 12)))


def german_survey(rows: int = 500, seed: int = 2) -> pl.DataFrame:
    """People of households, with weights, in German."""
    rng = np.random.default_rng(seed)
    household = np.sort(rng.integers(0, rows // 3, rows))
    land = rng.integers(1, 17, rows // 3)
    weight = np.round(rng.uniform(80, 400, 17), 3)
    return pl.DataFrame(
        {
            "Haushaltsnummer": household + 1000,
            "Personennummer": np.arange(rows) + 1,
            "Geschlecht": rng.choice(["männlich", "weiblich"], rows),
            "Alter": np.clip(rng.normal(45, 18, rows).astype(int), 0, 97),
            "Bundesland": land[household],
            "Familienstand": rng.choice([1, 2, 3, 4], rows, p=[0.4, 0.4, 0.1, 0.1]),
            "Schulabschluss": rng.choice(["Haupt", "Real", "Abitur", "keiner"], rows),
            "Zufriedenheit": rng.choice(["sehr schlecht", "schlecht", "mittel", "gut", "sehr gut"], rows),
            "Nettoeinkommen": np.round(rng.lognormal(7.5, 0.5, rows), 2),
            "Hochrechnungsfaktor": weight[land[household]],
        }
    )


def japanese(rows: int = 400, seed: int = 3) -> pl.DataFrame:
    """Patients, in Japanese."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "患者番号": rng.permutation(rows) + 50_000,
            "氏名": [f"山田{LETTERS[i % 26]}{i}" for i in range(rows)],
            "年齢": np.clip(rng.normal(50, 20, rows).astype(int), 0, 99),
            "性別": rng.choice(["男", "女"], rows),
            "都道府県": rng.choice(["東京", "大阪", "北海道", "福岡", "愛知", "京都"], rows),
            "病名": rng.choice(["糖尿病", "高血圧", "喘息", "肺炎"], rows),
            "年収": rng.integers(200, 2_000, rows) * 10_000,
        }
    )


def unnamed(rows: int = 800, seed: int = 4) -> pl.DataFrame:
    """A survey whose columns are called v1, v2, ...: only the values speak."""
    table = german_survey(rows, seed)
    return table.rename({name: f"v{at}" for at, name in enumerate(table.columns, 1)})


def measurements(rows: int = 300, seed: int = 5) -> pl.DataFrame:
    """Nothing but numbers without a name."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame({f"x{at}": np.round(rng.normal(at * 100, 30, rows), 3) for at in range(6)})


def constants(rows: int = 60) -> pl.DataFrame:
    """One value in each column, or none."""
    return pl.DataFrame({"year": [2024] * rows, "country": ["DE"] * rows, "empty": [None] * rows}, strict=False)


def booleans(rows: int = 120, seed: int = 6) -> pl.DataFrame:
    """Yes and no, and duplicate rows."""
    rng = np.random.default_rng(seed)
    half = pl.DataFrame({f"q{at}": rng.random(rows // 2) < 0.3 for at in range(5)})
    return pl.concat([half, half])


def wide(rows: int = 150, seed: int = 7) -> pl.DataFrame:
    """Sixty columns."""
    rng = np.random.default_rng(seed)
    codes = {f"c{at}": rng.integers(1, 6, rows) for at in range(40)}
    numbers = {f"n{at}": np.round(rng.lognormal(5, 1, rows), 2) for at in range(20)}
    return pl.DataFrame({**codes, **numbers})


def one_column(rows: int = 80, seed: int = 8) -> pl.DataFrame:
    """Ages, and nothing else."""
    return pl.DataFrame({"age": np.random.default_rng(seed).integers(18, 90, rows)})


def three_rows() -> pl.DataFrame:
    """Too few records for any but the smallest k."""
    return pl.DataFrame({"age": [31, 45, 52], "sex": ["f", "m", "f"], "income": [1200.5, 2300.0, 1850.25]})


TABLES: dict[str, Callable[[], pl.DataFrame]] = {
    "hospital": hospital,
    "german survey": german_survey,
    "japanese": japanese,
    "unnamed": unnamed,
    "measurements": measurements,
    "constants": constants,
    "booleans": booleans,
    "wide": wide,
    "one column": one_column,
    "three rows": three_rows,
}


def with_nulls(table: pl.DataFrame, share: float = 0.04, seed: int = 0) -> pl.DataFrame:
    """The table with a share of its values missing, in every column."""
    rng = np.random.default_rng(seed)
    gone = {name: rng.random(len(table)) < share for name in table.columns}
    return table.with_columns(
        pl.when(pl.Series(gone[name])).then(None).otherwise(pl.col(name)).alias(name) for name in table.columns
    )

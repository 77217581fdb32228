"""Data of the papers: public files, and seeded stand-ins for extracts that are not available.

Stand-ins have the sizes and correlations that a paper states. They show whether the claims of a paper hold on similar
data; they do not reproduce its numbers.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError
from kinfold.measures.formulas.arrays import group_rows
from kinfold.papers.exhibits import PrintedValues

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

# records and numeric columns
EXPECTED_SHAPES = {"census.csv": (1080, 13), "tarragona.csv": (834, 13), "eia.csv": (4092, 11)}
TEXT_COLUMNS = ("UTILNAME", "STATE", "YEAR", "MONTH")  # of EIA; the literature omits them


@dataclass(frozen=True)
class PaperData:
    """What an exhibit computes its values from: the folder of public files, and whether long exhibits are skipped."""

    data: Path | None = None
    quick: bool = False

    def find_missing(self, needs: tuple[str, ...]) -> list[str]:
        """Return the needed files that do not exist."""
        return [name for name in needs if self.data is None or not (self.data / name).is_file()]

    def columns(self, name: str) -> dict[str, Floats]:
        """Return the numeric columns of a public file."""
        return read_number_file(Path(self.data or ".") / name)

    def array(self, name: str) -> Floats:
        """Return a public file as an array of records by attributes."""
        return np.column_stack(list(self.columns(name).values()))


@cache
def read_number_file(path: Path) -> dict[str, Floats]:
    """Return the numeric columns of a CSV file, without the texts and dates of EIA."""
    fix = "name the folder of the published files, see docs/reproduce.md"
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        names = [name for name in rows[0] if name not in TEXT_COLUMNS]
        columns = {name: np.array([float(row[name]) for row in rows]) for name in names}
    except (OSError, ValueError, IndexError, TypeError) as error:
        raise DataError(f"'{path.name}' is not a CSV file of numbers", fix=fix) from error
    shape = (len(rows), len(columns))
    if (expected := EXPECTED_SHAPES.get(path.name, shape)) != shape:
        shapes = [f"{records:,} records with {width} numeric columns" for records, width in (shape, expected)]
        raise DataError(f"'{path.name}' has {shapes[0]}, and the published file has {shapes[1]}", fix=fix)
    return columns


def standardize(x: Floats) -> Floats:
    """Return the columns with mean 0 and standard deviation 1."""
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def smallest_class(rows: NDArray[Any]) -> int:
    """Return k of a table: the smallest number of equal rows."""
    return int(np.bincount(group_rows(rows)[0]).min())


def class_means(x: Floats, labels: NDArray[Any]) -> Floats:
    """Return the records replaced by the means of their classes."""
    sizes = np.bincount(labels)
    means = np.column_stack([np.bincount(labels, column) / sizes for column in x.T])
    return np.asarray(means[labels])


def loss_ratio(x: Floats, labels: NDArray[Any]) -> float:
    """Return SSE/SST of a partition of standardized records."""
    return float(((x - class_means(x, labels)) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum())


ORDINAL_SIZES = (25, 21, 8)  # of the housing survey; they fit the printed ACTBIL' of Tables 6 and 7
NOMINAL_SIZES = (4, 5, 6, 3, 7, 2, 5, 4)
# values of age, sex, area, day of admission, days of stay, ward and payer
DISCHARGE_SIZES = (100, 2, 900, 365, 60, 12, 5)


def generate_census(records: int = 500_000, noise: float = 1.0, seed: int = 1) -> Floats:
    """Return a census as in paper 001: nine attributes of codes, with the cardinalities of Table 4.

    Two latent factors determine all attributes; `noise` is the weight of the independent noise of each attribute.
    All codes of an attribute are equally frequent.
    """
    sizes = [int(row["Number of distinct values"]) for row in PrintedValues("001").read_table("table_4")]
    random = np.random.default_rng(seed)
    factors = random.normal(size=(records, 2))
    columns = []
    for size in sizes:
        angle = random.uniform(0, np.pi)
        common = factors @ np.array([np.cos(angle), np.sin(angle)])
        columns.append(_cut_into_codes(common + noise * random.normal(size=records), size))
    return np.column_stack(columns)


def _cut_into_codes(numbers: Floats, size: int) -> Floats:
    """Return equally frequent codes 0 to size - 1 in the order of the numbers."""
    ranks = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    return np.asarray(ranks * size // len(numbers), np.float64)


@cache
def generate_discharges(seed: int = 2010) -> tuple[Floats, Floats]:
    """Return discharges as in paper 004: seven attributes, and a charge with the stated correlation.

    The attributes are weakly correlated integers; the charges are skewed.
    """
    random = np.random.default_rng(seed)
    printed = PrintedValues("004")
    records = int(printed.read_value("Section 8.2", "records"))
    latent = random.normal(size=(records, 7)) @ random.normal(size=(7, 7)) / 3 + random.normal(size=(records, 7))
    quasi = np.column_stack(
        [_cut_into_codes(column, size) for column, size in zip(latent.T, DISCHARGE_SIZES, strict=True)]
    )
    design = np.column_stack([np.ones(records), quasi])
    direction = standardize(quasi @ random.normal(size=7))
    skewed = np.exp(1.2 * random.normal(size=records))
    residual = standardize(skewed - design @ np.linalg.lstsq(design, skewed, rcond=None)[0])
    share = printed.read_value("Section 8.2", "multiple correlation of the quasi-identifiers with the charge")
    charge = share * direction + np.sqrt(1 - share**2) * residual
    return quasi, np.round(30_000 + 20_000 * charge, 2)


def generate_survey(records: int = 1000, seed: int = 1993) -> tuple[Codes, tuple[int, ...]]:
    """Return a survey as in paper 000, with three ordinal and eight nominal attributes, and their numbers of values.

    There are forty kinds of households. Most answers are typical of the kind; one in twelve is shifted on the scale.
    """
    random = np.random.default_rng(seed)
    kinds = np.floor(40 * random.random(records) ** 2).astype(np.int64)
    sizes = (*ORDINAL_SIZES, *NOMINAL_SIZES)

    def generate_answers(size: int) -> Floats:
        typical = np.floor(random.uniform(0, size, 40))[kinds]
        shift = np.where(random.random(records) < 1 / 12, np.round(random.normal(0, 0.1 * size + 1, records)), 0)
        return np.asarray((typical + shift).clip(0, size - 1), np.float64)

    return np.column_stack([generate_answers(size) for size in sizes]).astype(np.int32), sizes

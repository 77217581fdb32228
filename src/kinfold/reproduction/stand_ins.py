"""Stand-ins for extracts that are not available here: seeded, of the sizes and correlations that are stated.

They show whether what a paper says of its data holds on data like it; they do not give its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinfold.reproduction.printed import table, value

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

SCALES = (25, 21, 8)  # ordinal attributes of the housing survey: what the printed ACTBIL' of Tables 6 and 7 fits
NOMINAL = (4, 5, 6, 3, 7, 2, 5, 4)


def census_extract(records: int = 500_000, noise: float = 1.0, seed: int = 1) -> Floats:
    """Return a census as paper 001 describes it: nine attributes of codes, with the cardinalities of its Table 4.

    Two latent factors stand behind all attributes; `noise` is how many times as much each has of its own. Without any,
    two factors determine everything. Codes are equally frequent.
    """
    sizes = [int(row["Number of distinct values"]) for row in table("001", "table_4")]
    random = np.random.default_rng(seed)
    factors = random.normal(size=(records, 2))
    columns = []
    for size in sizes:
        angle = random.uniform(0, np.pi)
        common = factors @ np.array([np.cos(angle), np.sin(angle)])
        columns.append(_cut(common + noise * random.normal(size=records), size))
    return np.column_stack(columns)


def _cut(numbers: Floats, size: int) -> Floats:
    """Return numbers as codes 0 to size - 1, all equally frequent."""
    ranks = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    return np.asarray(ranks * size // len(numbers), np.float64)


def patients(seed: int = 2010) -> tuple[Floats, Floats]:
    """Return discharges as paper 004 describes them: seven attributes, and a charge with the stated correlation.

    Attributes are whole numbers that hang together loosely; charges are skewed, as sums of money are.
    """
    random = np.random.default_rng(seed)
    records = int(value("004", "Section 8.2", "records"))
    latent = random.normal(size=(records, 7)) @ random.normal(size=(7, 7)) / 3 + random.normal(size=(records, 7))
    quasi = np.column_stack([_cut(column, size) for column, size in zip(latent.T, SIZES, strict=True)])
    inside = np.column_stack([np.ones(records), quasi])
    direction = _unit(quasi @ random.normal(size=7))
    skewed = np.exp(1.2 * random.normal(size=records))
    apart = _unit(skewed - inside @ np.linalg.lstsq(inside, skewed, rcond=None)[0])
    share = value("004", "Section 8.2", "multiple correlation of the quasi-identifiers with the charge")
    charge = share * direction + np.sqrt(1 - share**2) * apart
    return quasi, np.round(30_000 + 20_000 * charge, 2)


SIZES = (100, 2, 900, 365, 60, 12, 5)  # values of age, sex, area, day of admission, days of stay, ward and payer


def _unit(column: Floats) -> Floats:
    return np.asarray((column - column.mean()) / column.std())


def housing_survey(records: int = 1000, seed: int = 1993) -> tuple[Codes, tuple[int, ...]]:
    """Return a survey as paper 000 describes it, three ordinal attributes and eight nominal ones, and their sizes.

    Most answers are those of the household's kind, of forty; one in twelve is a neighbour of it on the scale.
    """
    random = np.random.default_rng(seed)
    kinds = np.floor(40 * random.random(records) ** 2).astype(np.int64)
    sizes = (*SCALES, *NOMINAL)
    return np.column_stack([_answers(random, kinds, size) for size in sizes]).astype(np.int32), sizes


def _answers(random: np.random.Generator, kinds: NDArray[np.int64], size: int) -> Floats:
    usual = np.floor(random.uniform(0, size, 40))[kinds]
    moved = np.where(random.random(len(kinds)) < 1 / 12, np.round(random.normal(0, 0.1 * size + 1, len(kinds))), 0)
    return np.asarray((usual + moved).clip(0, size - 1), np.float64)


def shares(records: int, parts: Sequence[int]) -> dict[int, int]:
    """Return how many records each percentage is.

    >>> shares(500, [20, 100])
    {20: 100, 100: 500}
    """
    return {part: records * part // 100 for part in parts}

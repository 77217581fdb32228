"""Seeded tables to measure with."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from kinfold.tables.points import NominalScale, OrdinalScale, Points

DATA = Path(os.environ.get("KINFOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))
CARDINALITIES = (78, 2, 17, 6, 9, 8, 83, 50, 50)  # paper 001's census extract


def standardized(x: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1 in every column."""
    return np.ascontiguousarray((x - x.mean(axis=0)) / x.std(axis=0))


def mixture(n: int, width: int, seed: int = 0) -> np.ndarray:
    """Twenty gaussians of different size, the same in every direction: hard for boxes."""
    random = np.random.default_rng(seed)
    means, deviations = random.normal(0, 3, (20, width)), random.uniform(0.3, 1.2, 20)
    which = random.integers(0, 20, n)
    return standardized(means[which] + random.normal(size=(n, width)) * deviations[which, None])


def replicated_census(n: int, width: int, seed: int = 0) -> np.ndarray:
    """Records of the Census file, drawn with replacement, with a tenth of a deviation of noise."""
    random = np.random.default_rng(seed)
    census = standardized(np.loadtxt(DATA / "census.csv", delimiter=",", skiprows=1))[:, :width]
    return standardized(census[random.integers(0, len(census), n)] + 0.1 * random.normal(size=(n, width)))


def latent_classes(n: int, seed: int = 0) -> np.ndarray:
    """Discrete columns with the cardinalities of paper 001, correlated through twelve hidden classes."""
    random = np.random.default_rng(seed)
    which = random.choice(12, n, p=random.dirichlet(np.full(12, 2.0)))
    columns = []
    for size in CARDINALITIES:
        chances = np.array([random.dirichlet(np.full(size, 0.3)) for _ in range(12)]).cumsum(axis=1)
        chosen = (random.random((n, 1)) > chances[which]).sum(axis=1)
        columns.append(np.minimum(chosen, size - 1))
    return np.column_stack(columns).astype(float)


def adult() -> Points:
    """UCI Adult: age a number, education ordered, the other six nominal with their hierarchies."""
    with (DATA / "adult" / "adult.csv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    age = np.array([[float(row["age"])] for row in rows])
    codes, scales = [], []
    for column in rows[0]:
        if column in ("age", "salary-class"):
            continue
        levels = _levels(column)
        paths = np.array(
            [[[*{row[level] for row in levels}].index(row[level]) for level in range(len(row))] for row in levels]
        )
        order = {row[0]: code for code, row in enumerate(levels)}
        codes.append([order[row[column]] for row in rows])
        scales.append(OrdinalScale(len(levels)) if column == "education" else NominalScale(paths.astype(np.int32)))
    return Points(standardized(age), np.array(codes, np.int32).T.copy(), tuple(scales))


def _levels(column: str) -> list[list[str]]:
    """The lines of a hierarchy, sorted from the top down, so that codes under one ancestor stand side by side."""
    with (DATA / "adult" / f"adult_hierarchy_{column}.csv").open(newline="") as file:
        lines = [line for line in csv.reader(file, delimiter=";") if line]
    return sorted(lines, key=lambda line: line[::-1])

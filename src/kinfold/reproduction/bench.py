"""The bench that a reproduction works at: the folder of the public files, and what was read from it once."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError

SHAPES = {"census.csv": (1080, 13), "tarragona.csv": (834, 13), "eia.csv": (4092, 11)}  # records, columns of numbers
NOT_NUMBERS = ("UTILNAME", "STATE", "YEAR", "MONTH")  # of EIA; the literature leaves them out


@dataclass(frozen=True)
class Bench:
    """Where the public files are, and whether there is time for the long exhibits."""

    data: Path | None = None
    quick: bool = False
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def missing(self, needs: tuple[str, ...]) -> list[str]:
        """Return the files that are needed and not there."""
        return [name for name in needs if self.data is None or not (self.data / name).is_file()]

    def columns(self, name: str) -> dict[str, NDArray[np.float64]]:
        """Return a public file of numbers by its columns."""
        if name not in self._kept:
            self._kept[name] = read_columns(Path(self.data or ".") / name)
        found: dict[str, NDArray[np.float64]] = self._kept[name]
        return found

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a public file of numbers as records by attributes."""
        return np.column_stack(list(self.columns(name).values()))

    def once(self, name: str, make: Any) -> Any:
        """Return what several exhibits share, made the first time."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]


def read_columns(path: Path) -> dict[str, NDArray[np.float64]]:
    """Return a file of numbers by its columns; names and dates of EIA are left out."""
    fix = "name the folder of the files as they are published, see docs/reproduce.md"
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        names = [name for name in rows[0] if name not in NOT_NUMBERS]
        found = {name: np.array([float(row[name]) for row in rows]) for name in names}
    except (OSError, ValueError, IndexError, TypeError) as error:
        raise DataError(f"'{path.name}' cannot be read as a file of numbers", fix=fix) from error
    if (shape := (len(rows), len(found))) != SHAPES.get(path.name, shape):
        raise DataError(
            f"'{path.name}' has {shape[0]:,} records of {shape[1]} columns of numbers, not those meant", fix=fix
        )
    return found


def standardized(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the columns with mean 0 and deviation 1."""
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def class_means(x: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return every record at the mean of its class."""
    sizes = np.bincount(labels)
    means = np.column_stack([np.bincount(labels, column) / sizes for column in x.T])
    return np.asarray(means[labels])


def lost(x: NDArray[np.float64], labels: NDArray[Any]) -> float:
    """Return SSE/SST of a partition of standardized records."""
    return float(((x - class_means(x, labels)) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum())

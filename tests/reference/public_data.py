"""The public reference files, found through KINFOLD_DATA, else beside the project; a test without them is skipped."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(os.environ.get("KINFOLD_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))


def census() -> np.ndarray:
    """The 1,080 records and 13 columns of the CASC Census file."""
    return np.loadtxt(found("census.csv"), delimiter=",", skiprows=1)


def adult() -> tuple[list[str], list[list[str]]]:
    """The column names and the rows of the Adult file."""
    with found("adult/adult.csv").open(newline="") as lines:
        names, *rows = csv.reader(lines, delimiter=";")
    return names, rows


def found(name: str) -> Path:
    """The file of this name, or the test is skipped."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not there: set KINFOLD_DATA to the folder of the public reference files")
    return path

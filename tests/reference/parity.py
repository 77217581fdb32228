"""Truths computed from peers and by definition, beside the benchmark files; a test without them is skipped."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reference.public_data import FOLDER, found

PARITY = FOLDER.parent / "parity"


def cases(name: str) -> list[Any]:
    """The cases of a file as parameters of a test, by their names; one that skips without the file."""
    file = PARITY / f"{name}.json"
    if not file.exists():
        reason = f"{file.name} is not beside the benchmark files: set KINFOLD_DATA"
        return [pytest.param({}, id="absent", marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(case, id=case["id"]) for case in json.loads(file.read_text("utf-8"))["cases"]]


@cache
def table(name: str) -> pd.DataFrame:
    """The table that a case names."""
    if name == "adult":
        return pd.read_csv(found("adult/adult.csv"), sep=";")
    if name in ("testdata", "testdata_age"):
        return pd.read_csv(found("sdcmicro_testdata.csv"))
    if name.startswith("testdata with relat missing"):
        return _blank(
            table("testdata"), [(j, range(s - 1, 4580, s)) for j, s in zip(BLANKED, (7, 11, 101), strict=True)]
        )
    if name.startswith("francdat with Key1"):
        return _blank(table("francdat"), zip(["Key1", "Key3", "Key4", "Key1", "Key4"], [1, 4, 3, 6, 6], strict=True))
    if name.startswith("francdat with all four"):
        return _blank(table("francdat"), [(key, [2]) for key in ("Key1", "Key2", "Key3", "Key4")])
    if name.startswith("a="):
        return pd.DataFrame({"a": [1, 1, 2, np.nan, 2, 2, np.nan, 3], "w": range(10, 90, 10)})
    own = PARITY / "data" / f"{name}.csv"
    return pd.read_csv(own if own.exists() else found(f"{name}.csv"))


BLANKED = ("relat", "water", "sex")


def _blank(frame: pd.DataFrame, cells: Any) -> pd.DataFrame:
    blanked = frame.astype(float)
    for column, rows in cells:
        blanked.loc[rows, column] = np.nan
    return blanked


@cache
def _levels(column: str) -> dict[str, tuple[str, ...]]:
    lines = Path(found(f"adult/adult_hierarchy_{column}.csv")).read_text("utf-8").splitlines()
    return {line.split(";")[0]: tuple(line.split(";")) for line in lines if line}


@cache
def _column(name: str, level: int) -> pd.Series:
    values = table("adult")[name].astype(str)
    return values.map({value: row[level] for value, row in _levels(name).items()})


def generalized_adult(levels: dict[str, int]) -> pd.DataFrame:
    """The Adult table with these levels of its hierarchies."""
    return table("adult").assign(**{name: _column(name, level) for name, level in levels.items()})

"""Each model on Adult beside ARX: the table of docs/comparing.md.

python -m benchmarks.adult_models            Adult, ARX's hierarchies and its recorded decisions, from KINFOLD_DATA

ARX's decisions are those of `likeness.json` and `population_models.json`, beside the data: for each recorded node of
the lattice, whether ARX 3.9.2 accepts it. A row: the promise, the least granularity loss of the nodes that ARX accepts,
the loss of the release that `lattice` makes, and its levels. Nothing is suppressed. ARX asks for no k beside these
promises; kinfold needs one, so k is 2 for each single quasi-identifier. k-map and presence are about every third
record, with all records as the population.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

import kinfold
from benchmarks.promises import ADULT

QUASI = ("sex", "age", "race", "marital-status")
SAMPLED = ("kmap_population", "delta_presence")
Levels: TypeAlias = tuple[int, ...]


@cache
def read_adult() -> pd.DataFrame:
    """Return Adult as text."""
    return pd.read_csv(ADULT, sep=";", dtype=str)


@cache
def read_hierarchy(name: str) -> Mapping[str, list[str]]:
    """Return the labels of each value of a column, from the value itself up."""
    lines = (ADULT.parent / f"adult_hierarchy_{name}.csv").read_text("utf-8").splitlines()
    return {line.partition(";")[0]: line.split(";") for line in lines}


@cache
def read_losses(name: str, level: int) -> Mapping[str, float]:
    """Return the granularity loss of each value of a column at a level: how many of the other leaves it covers."""
    labels = {value: row[level] for value, row in read_hierarchy(name).items()}
    covered = Counter(labels.values())
    return {value: (covered[label] - 1) / (len(labels) - 1) for value, label in labels.items()}


def lose(table: pd.DataFrame, levels: Levels) -> float:
    """Return the granularity loss of a table at these levels."""
    columns = zip(QUASI, levels, strict=True)
    return float(np.mean([table[name].map(read_losses(name, level)).mean() for name, level in columns]))


def find_promise(model: str, column: str, limits: list[float]) -> tuple[dict[str, Any], str | None]:
    """Return the keys of a promise of ARX, and its confidential column."""
    if model == "kmap_population":
        return {"population": {"k": int(limits[0])}}, None
    if model == "delta_presence":
        return {"population": {"presence": limits}}, None
    if model == "delta_disclosure":
        return {"delta": limits[0]}, column
    if model.endswith("_beta"):
        return {"beta": limits[0], "beta_kind": model.removesuffix("_beta")}, column
    share = {"risk_share": {"above": limits[1], "most": limits[2]}} if model == "strict_average_risk" else {}
    return {"average_risk": limits[0], **share}, None


def release_by_lattice(model: str, column: str, limits: list[float], people: Path) -> kinfold.Release:
    """Return the release of least loss that keeps a promise."""
    promise, confidential = find_promise(model, column, limits)
    table = read_adult()
    if model in SAMPLED:
        promise["population"]["table"] = str(people)
        table = table.iloc[::3]
    columns: dict[str, Any] = {
        name: {
            "role": "quasi",
            "type": "nominal",
            "hierarchy": {"file": str(ADULT.parent / f"adult_hierarchy_{name}.csv")},
        }
        for name in QUASI
    }
    columns |= {confidential: {"role": "confidential"}} if confidential else {}
    policy = {
        "privacy": {"k": 2, "combinations": {"size": 1}, **promise},
        "method": {"name": "lattice"},
        "output": {"others": "drop"},
    }
    return kinfold.anonymize(table, {**policy, "columns": columns})


def read_decisions() -> Iterator[tuple[str, dict[Levels, bool]]]:
    """Yield each promise, and whether ARX accepts each recorded node."""
    for name in ("likeness", "population_models"):
        cases = json.loads((ADULT.parents[2] / "parity" / f"{name}.json").read_text("utf-8"))["cases"]
        for key in cases[0]["arx_holds"]:
            yield key, {tuple(case["input"]["levels"].values()): case["arx_holds"][key] for case in cases}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        people = Path(folder) / "people.csv"
        read_adult().to_csv(people, index=False)
        for key, accepted in read_decisions():
            model, column, text = key.split("|")
            if model == "population_uniqueness":  # the size of the population is not recorded
                continue
            release = release_by_lattice(model, column, [float(each) for each in text.split(",")], people)
            table = read_adult().iloc[::3] if model in SAMPLED else read_adult()
            arx = min((lose(table, levels) for levels, holds in accepted.items() if holds), default=1.0)
            levels = tuple(
                read_hierarchy(name)[table[name].iloc[0]].index(release.frame[name].iloc[0]) for name in QUASI
            )
            print(f"{key:42} ARX {arx:.4f}  kinfold {lose(table, levels):.4f}  levels {levels}", flush=True)


if __name__ == "__main__":
    main()

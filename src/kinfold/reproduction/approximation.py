"""Approximate microaggregation measured: time, key attributes and loss beside MDAV, and loss against dependence.

MA is MDAV on all attributes, AMA groups on the key attributes of the dependency tree (paper 001). Times are processor
seconds of this run. Both are measured on a generated census (`stand_ins.census_extract`). How much its attributes
depend on each other decides what AMA loses, so that it is varied too: from attributes that two factors determine to
attributes that have hardly anything in common.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.partition.approximate import approximate
from kinfold.methods.partition.dependency import dependency
from kinfold.methods.partition.mdav import mdav
from kinfold.reproduction.bench import Bench, lost, standardized
from kinfold.reproduction.expectation import Plot
from kinfold.reproduction.stand_ins import census_extract, shares

Floats = NDArray[np.float64]
Row = dict[str, Any]

PARTITIONS: dict[str, Callable[[Floats, int], NDArray[Any]]] = {"MA": mdav, "AMA": approximate}
OURS = "AMA, normalized (ours)"
PERCENT = (20, 40, 60, 80, 100)
SIZES = (5, 10, 20, 50)
WIDTHS = (5, 6, 7, 8, 9)
NOISES = (0.0, 0.2, 0.5, 1.0, 2.0, 3.0)
K = 20
SAMPLE = 20_000  # records on which the dependence is varied


def normalized(x: Floats, k: int) -> NDArray[Any]:
    """Return the groups of AMA where the distance of attributes is a share of their joint entropy: ours."""
    return approximate(x, k, normalized=True)


def trial(method: str, x: Floats, k: int, at: float) -> Row:
    """Return time and loss of a method at one place of a figure's axis."""
    began = time.process_time()
    labels = PARTITIONS.get(method, normalized)(x, k)
    return {"series": method, "x": at, "seconds": time.process_time() - began, "loss": lost(x, labels)}


def trials(bench: Bench) -> dict[str, list[Row]]:
    """Return the runs behind Figures 4 to 6, by what is varied; made once."""
    made: dict[str, list[Row]] = bench.once("census extract", _trials)
    return made


def _trials() -> dict[str, list[Row]]:
    whole = census_extract()
    x = standardized(whole)
    for method in PARTITIONS:
        trial(method, x[:4000], K, 0)  # what is compiled first is not timed
    order = np.random.default_rng(2).permutation(len(x))
    parts = {percent: x[order[:number]] for percent, number in shares(len(x), PERCENT).items()}
    full = [trial(method, x, K, 0) for method in PARTITIONS]  # all records, all attributes, k = 20: in every figure
    return {
        "records": _runs(((part, K, percent) for percent, part in parts.items() if percent < 100), full, 100),
        "k": _runs(((x, k, k) for k in SIZES if k != K), full, K),
        "attributes": _runs(((x[:, :width], K, width) for width in WIDTHS if width < 9), full, 9),
    }


def _runs(settings: Iterable[tuple[Floats, int, float]], full: Sequence[Row], at: float) -> list[Row]:
    found = [trial(method, x, k, place) for x, k, place in settings for method in PARTITIONS]
    return sorted([*found, *({**row, "x": at} for row in full)], key=lambda row: row["x"])


def key_counts() -> dict[int, int]:
    """Return how many key attributes the first 5 to 9 attributes have."""
    x = census_extract(SAMPLE)
    return {width: len(dependency(x[:, :width]).keys) for width in WIDTHS}


def against_dependence(bench: Bench) -> list[Row]:
    """Return the loss by noise, of MA, of AMA, and of AMA with our distance."""

    def make() -> list[Row]:
        found = []
        for noise in NOISES:
            x = standardized(census_extract(SAMPLE, noise))
            found += [trial(method, x, K, noise) for method in (*PARTITIONS, OURS)]
        return found

    made: list[Row] = bench.once("dependence", make)
    return made


def by_place(rows: Sequence[Row], value: str, series: Sequence[str] = tuple(PARTITIONS)) -> list[tuple[float, ...]]:
    """Return the values of MA and AMA, or other series, side by side, from the left of the axis to the right."""
    places = sorted({row["x"] for row in rows})
    held = {(row["series"], row["x"]): row[value] for row in rows}
    return [tuple(held[name, at] for name in series) for at in places]


def plot(title: str, panels: dict[str, list[Row]], value: str, axes: tuple[str, str]) -> Plot:
    """Return the runs as a figure, a panel for each thing varied."""
    points = [
        {"x": row["x"], "y": row[value], "series": row["series"], "panel": panel}
        for panel, rows in panels.items()
        for row in rows
    ]
    return Plot(title, *axes, points)

"""The README's figures: kinfold on the tasks that other tools were measured on, with what those took and lost.

Theirs were measured once on two shared cores (processor seconds of the call): sdcMicro 5.8.1, ARX 3.9.2,
µ-ANT at ecd98ab, pycanon 1.3.6, anjana 1.2.3. IL is 100 SSE/SST of standardized columns, NCP the mean over cells of
(leaves - 1)/(all leaves - 1), both recomputed from the output. Ours are measured here, in this run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import kinfold
from benchmarks.generalize import records
from benchmarks.measuring import Row, seconds
from benchmarks.tables import DATA, standardized
from kinfold import partition
from kinfold.methods.generalize.mingen_cell import mingen_cell
from kinfold.models import KAnonymity

QUASI = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]


def gaussians(n: int = 100_000, width: int = 8) -> np.ndarray:
    """The mixture that the others were given: twenty components, seed 12345, in this order of draws."""
    random = np.random.default_rng(12345)
    means, deviations = random.uniform(-10, 10, (20, width)), random.uniform(0.5, 2, (20, width))
    weights = random.dirichlet(np.full(20, 5.0))
    which = random.choice(20, n, p=weights)
    return standardized(means[which] + random.normal(size=(n, width)) * deviations[which])


def lost(x: np.ndarray, labels: np.ndarray) -> float:
    """Return 100 SSE/SST."""
    sizes = np.bincount(labels)
    means = np.column_stack([np.bincount(labels, column) / sizes for column in x.T])
    return float(100 * ((x - means[labels]) ** 2).sum() / (x**2).sum())


def row(task: str, measure: str, ours: tuple[float, float], theirs: str) -> Row:
    took, loss = ours
    return {"task": task, "measure": measure, "kinfold": round(loss, 4), "seconds": round(took, 2), "others": theirs}


def census(steps: int) -> tuple[float, float]:
    """Return seconds and loss of MDAV on Census at k = 3, refined by so many steps."""
    x = standardized(np.loadtxt(DATA / "census.csv", delimiter=",", skiprows=1))
    began = time.process_time()
    labels = partition.mdav(x, 3)
    if steps:
        labels = partition.refine(x, labels, 3, steps=steps)
    return time.process_time() - began, lost(x, labels)


def mixture() -> tuple[float, float]:
    """Return seconds and loss of MDAV on 100,000 records at k = 10."""
    x = gaussians()
    kept: list[np.ndarray] = []
    took = seconds(lambda: kept.append(partition.mdav(x, 10)))
    return took, lost(x, kept[-1])


def cells(steps: int) -> tuple[float, float]:
    """Return seconds and NCP of Adult generalized cell by cell."""
    table = records()
    began = time.process_time()
    found = mingen_cell(table, [KAnonymity(5)], steps=steps)
    return time.process_time() - began, 1 - found.generalization.granularity()


def checked() -> tuple[float, float]:
    """Return seconds of checking k, l and t of Adult as it is, and the t found."""
    policy = {
        "privacy": {"k": 2},
        "columns": {
            **{name: {"role": "quasi-identifier", "type": "nominal"} for name in QUASI},
            "salary-class": {"role": "confidential", "type": "nominal", "t": 0.2, "l": 2},
        },
    }
    began = time.process_time()
    verdict = kinfold.verify(DATA / "adult" / "adult.csv", policy)
    return time.process_time() - began, float(verdict.t["salary-class"])


def run(*, quick: bool) -> Iterator[Row]:
    """Yield the rows of the README's table."""
    mixture(), census(10), cells(1), checked()  # what is compiled first is not timed
    yield row("Census 1,080 x 13, k = 3: MDAV", "IL", census(0), "sdcMicro 5.692 in 0.02 s; µ-ANT 26.35 in 0.90 s")
    yield row("the same, refined 20,000 steps", "IL", census(1_000 if quick else 20_000), "nobody")
    yield row("100,000 x 8, k = 10: MDAV", "IL", mixture(), "sdcMicro 1.2587 in 33.6 s")
    yield row("Adult, k = 5, cell level", "NCP", cells(1000 if quick else 30_000), "ARX 0.0569 in 3.37 s")
    yield row("Adult: k, l and t checked", "t", checked(), "pycanon 0.7511 in 10.8 s")

"""Time to quality of the refinement: how the loss falls with the seconds, against MDAV and against lower bounds.

    python -m benchmarks.refine [seconds [seconds of the exact end [file ...]]]     the literature's files, k = 3, 5, 10

`run_large` refines starts of large tables that the caller has made (MDAV of a million records is not plain work).

Losses are 100 SSE/SST on standardized columns. Kernels are compiled before any clock starts.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.methods.partition.exact import exact
from kinfold.methods.partition.geometry import compute_cost
from kinfold.methods.partition.refine import improve
from kinfold.tables.points import Points

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("KINFOLD_DATA", ROOT.parent / "shared" / "data"))
RESULTS = Path(__file__).resolve().parent / "results"
FILES = {"Census": "census.csv", "Tarragona": "tarragona.csv", "EIA": "eia.csv"}
AT = (0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0)  # seconds at which the curves are read


def standardized(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((x - x.mean(axis=0)) / x.std(axis=0))


def load(name: str) -> np.ndarray:
    """The standardized columns of a file; of EIA, those that the literature uses."""
    with (DATA / FILES[name]).open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = list(rows[0]) if name != "EIA" else ["UTILITYID", *list(rows[0])[5:]]
    return standardized(np.array([[float(row[column]) for column in columns] for row in rows]))


def start(x: np.ndarray, k: int) -> np.ndarray:
    """MDAV's groups, in plain numpy: the benchmark of the refinement must not depend on how fast the start is made."""
    sys.path.insert(0, str(ROOT / "tests"))
    from reference.mdav_plain import mdav_plain

    return mdav_plain(x, k)


def curve(x: np.ndarray, k: int, seconds: float, exact_seconds: float) -> dict[str, Any]:
    """Refine from MDAV for so long and read the curve; then, if there is time for it, choose and bound."""
    sst = float((x**2).sum())
    first = start(x, k)
    found = improve(x, first, k, seconds=seconds)
    reached = {at: min((m.cost for m in found.history if m.seconds <= at), default=None) for at in AT if at <= seconds}
    end = exact(x, k, found.labels, seconds=exact_seconds) if exact_seconds else None
    return {
        "k": k,
        "mdav": 100 * compute_cost(Points.from_array(x), first) / sst,
        "reached": {f"{at:g}": 100 * value / sst for at, value in reached.items() if value is not None},
        "refined": 100 * found.cost / sst,
        "end": 100 * (end.cost if end else found.cost) / sst,
        "seconds": seconds + exact_seconds,
        "steps": found.steps,
        "bound": 100 * end.bound / sst if end else None,
        "curve": [[mark.steps, round(mark.seconds, 3), 100 * mark.cost / sst] for mark in found.history],
    }


def run(*, quick: bool = False) -> list[dict[str, Any]]:
    """Return a row a cell: the loss of MDAV and after some seconds."""
    kept = cells(1.0 if quick else 10.0)
    return [{"data": r["data"], "k": r["k"], "mdav": r["mdav"], "end": r["end"]} for r in kept]


def cells(
    seconds: float = 10.0, exact_seconds: float = 0.0, files: Sequence[str] = tuple(FILES)
) -> list[dict[str, Any]]:
    """Measure these files, print a line for each cell, and keep each as JSON."""
    improve(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 10, 3, steps=1)  # compiles
    results = []
    for name in files:
        x = load(name)
        for k in (3, 5, 10):
            result = {"data": name, "records": len(x), **curve(x, k, seconds, exact_seconds)}
            results.append(result)
            _keep(f"curve_{name}_{k}.json", result)
            reached = "  ".join(f"{at} s {value:.3f}" for at, value in result["reached"].items())
            bound = f"  bound {result['bound']:.3f}" if result["bound"] else ""
            print(f"{name:9} k={k:2}  MDAV {result['mdav']:.3f}  {reached}  end {result['end']:.4f}{bound}", flush=True)
    return results


def mixture(n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres, spread = rng.normal(0, 3, (20, d)), rng.uniform(0.3, 1.2, 20)
    of = rng.integers(0, 20, n)
    return standardized(centres[of] + rng.normal(size=(n, d)) * spread[of, None])


def replicated(n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    census = load("Census")[:, :d]
    return standardized(census[rng.integers(0, len(census), n)] + 0.1 * rng.normal(size=(n, d)))


def run_large(first: dict[str, np.ndarray], seconds: float = 60.0, k: int = 10) -> list[dict[str, Any]]:
    """Refine these starts (labels by the name of the table, `mixture` or `replicated`) and print what is gained."""
    results = []
    for name, labels in first.items():
        x = {"mixture": mixture, "replicated": replicated}[name](len(labels), 8)
        before, since = compute_cost(Points.from_array(x), labels), time.monotonic()
        found = improve(x, labels, k, seconds=seconds)
        gained = 100 * (1 - found.cost / before)
        print(f"{name} {len(x)} x 8, k={k}: {gained:.2f} % below the start after {time.monotonic() - since:.0f} s")
        sst = float((x**2).sum())
        marks = [[mark.steps, round(mark.seconds, 2), 100 * mark.cost / sst] for mark in found.history]
        results.append({"data": name, "records": len(x), "start": 100 * before / sst, "curve": marks})
    _keep("refine_large.json", results)
    return results


def _keep(name: str, results: object) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    cells(*map(float, sys.argv[1:3]), sys.argv[3:] or tuple(FILES))

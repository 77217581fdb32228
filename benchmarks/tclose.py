"""How long the methods of paper 004 take, the exponent that fits, and what refinement gains on Census."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from kinfold import kernels
from kinfold.methods.partition.requirement import Requirement
from kinfold.partition import k_first, refine_under, repair, t_first, t_merge

DATA = Path(os.environ.get("KINFOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))


def run(*, quick: bool) -> list[dict[str, object]]:
    """Return one row a measurement; `quick` leaves out what takes more than some seconds."""
    kernels.warmup()
    rows = _t_first(large=not quick)
    rows += _quadratic("k-first", k_first, quick=quick) + _quadratic("t-merge", _merge_pairs, quick=quick)
    return rows + (_census(1.0 if quick else 10.0) if (DATA / "census.csv").exists() else [])


def mixture(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Records around 20 centres, and a confidential column that goes with the first attribute."""
    chance = np.random.default_rng(0)
    x = 3 * chance.normal(size=(20, d))[chance.integers(0, 20, n)] + chance.normal(size=(n, d))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return x, 0.5 * x[:, 0] + chance.normal(size=n)


def _t_first(*, large: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for d, sizes in ((2, (10_000, 100_000, *((1_000_000,) if large else ()))), (8, (10_000, 100_000))):
        for t in (0.05, 0.13, 0.25):
            spent = [_timed(t_first, n, d, t) for n in sizes]
            rows += [_row("t-first", n, d, t, seconds) for n, seconds in zip(sizes, spent, strict=True)]
            rows[-1]["exponent"] = _exponent(sizes, spent)
    return rows


def _quadratic(name: str, method, *, quick: bool) -> list[dict[str, object]]:
    sizes = (2_500, 5_000) if quick else (2_500, 5_000, 10_000, 20_000)
    spent = [_timed(method, n, 2, 0.1) for n in sizes]
    rows = [_row(name, n, 2, 0.1, seconds) for n, seconds in zip(sizes, spent, strict=True)]
    rows[-1]["exponent"] = _exponent(sizes, spent)
    return rows


def _merge_pairs(x: np.ndarray, k: int, *, confidential: np.ndarray, t: float) -> np.ndarray:
    """The merge alone, from pairs of neighbours along the first attribute."""
    pairs = np.argsort(np.argsort(x[:, 0], kind="stable")) // k
    return t_merge(x, k, confidential=confidential, t=t, start=np.minimum(pairs, len(x) // k - 1))


def _timed(method, n: int, d: int, t: float) -> float:
    x, column = mixture(n, d)
    began = time.process_time()
    method(x, 2, confidential=column, t=t)
    return time.process_time() - began


def _exponent(sizes, spent) -> float:
    return round(float(np.polyfit(np.log(sizes), np.log(spent), 1)[0]), 2)


def _row(method: str, n: int, d: int, t: float, seconds: float) -> dict[str, object]:
    return {"method": method, "records": n, "attributes": d, "t": t, "k": 2, "cpu_seconds": round(seconds, 2)}


def _census(seconds: float) -> list[dict[str, object]]:
    census = np.genfromtxt(DATA / "census.csv", delimiter=",", names=True)
    x = np.column_stack([census["TAXINC"], census["POTHVAL"]])
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    rows = []
    for name in ("FEDTAX", "FICA"):
        for t in (0.05, 0.13, 0.25):
            wanted = [Requirement.close(census[name], t)]
            start = repair(x, t_first(x, 2, confidential=census[name], t=t), 2, wanted)
            better = refine_under(x, start.labels, 2, wanted, seconds=seconds)
            rows.append(
                {
                    "method": "refine under t",
                    "table": f"Census, {name}",
                    "t": t,
                    "before": round(100 * better.history[0].cost / x.size, 2),
                    "after": round(100 * better.cost / x.size, 2),
                    "steps": better.steps,
                    "repaired": start.repaired,
                }
            )
    return rows

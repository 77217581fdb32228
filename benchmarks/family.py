"""Time and loss of V-MDAV, univariate and approximate: `python -m benchmarks.family [share of the records]`.

Approximate is set against MDAV as in section 4 of Sun et al. 2012: 20 % to 100 % of the records, k and the number of
attributes varied, on a generated census with the paper's cardinalities. Times are processor seconds after a first call
that loads the kernels; loss is SSE / SST over all attributes, standardized.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

CARDINALITIES = (78, 2, 17, 6, 9, 8, 83, 50, 50)
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
Row = dict[str, Any]


def latent_census(records: int, seed: int = 1) -> np.ndarray:
    """Make discrete attributes, numbered codes, that depend on each other through 12 latent classes.

    Each class prefers a stretch of each attribute's codes; one record in five draws an attribute freely.
    """
    rng = np.random.default_rng(seed)
    latent = rng.integers(0, 12, records)
    columns = []
    for size in CARDINALITIES:
        middles = rng.uniform(0, size, 12)[latent]
        near = np.floor(middles + rng.normal(0, max(size / 10, 0.4), records)).clip(0, size - 1)
        free = np.floor(size * rng.random(records) ** 2)
        columns.append(np.where(rng.random(records) < 0.2, free, near))
    return np.column_stack(columns)


def mixture(records: int, attributes: int, seed: int = 1) -> np.ndarray:
    """Make records from 20 gaussians."""
    rng = np.random.default_rng(seed)
    centres = 5 * rng.normal(size=(20, attributes))
    return standardized(centres[rng.integers(0, 20, records)] + rng.normal(size=(records, attributes)))


def standardized(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def loss(x: np.ndarray, labels: np.ndarray) -> float:
    """Return SSE / SST."""
    sizes = np.bincount(labels)
    means = np.column_stack([np.bincount(labels, column) / sizes for column in x.T])
    return float(((x - means[labels]) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum())


def timed(method: str, x: np.ndarray, k: int, run: Callable[[np.ndarray, int], np.ndarray]) -> Row:
    begin = time.process_time()
    labels = run(x, k)
    seconds = time.process_time() - begin
    row = {"method": method, "records": len(x), "attributes": x.shape[1], "k": k, "seconds": round(seconds, 3)}
    row |= {"loss": round(loss(x, labels), 6), "smallest": int(np.bincount(labels).min())}
    print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    return row


def univariate_rows(records: int) -> list[Row]:
    from kinfold.methods.partition.univariate import COSTS, univariate

    x = np.random.default_rng(1).normal(size=(records, 1))
    rows = []
    for k in (3, 10, 1000):
        for cost in COSTS:
            univariate(x[:5_000], k, cost=cost)
            rows.append(timed(f"univariate {cost}", x, k, partial(univariate, cost=cost)))
    return rows


def vmdav_rows(records: int) -> list[Row]:
    from kinfold.methods.partition.vmdav import vmdav

    vmdav(mixture(4_000, 2), 10)
    rows = []
    for attributes in (2, 4, 8):
        x = mixture(records, attributes)
        rows += [
            timed("v-mdav 0.2", x, 10, vmdav),
            timed("v-mdav 1.1", x, 10, lambda x, k: vmdav(x, k, gamma=1.1)),
        ]
    return rows


def approximate_rows(records: int) -> list[Row]:
    from kinfold.methods.partition.approximate import approximate
    from kinfold.methods.partition.mdav import mdav

    census = standardized(latent_census(records))
    tables = [(census[: int(share * records)], 20) for share in SHARES]
    tables += [(census, k) for k in (5, 10, 50)]
    tables += [(census[:, :attributes], 20) for attributes in (5, 6, 7, 8)]
    approximate(census[:4_000], 20)
    mdav(census[:4_000], 20)
    return [timed(name, x, k, run) for x, k in tables for name, run in (("approximate", approximate), ("mdav", mdav))]


def run(*, quick: bool = False) -> list[Row]:
    """Return every row; quickly with a twentieth of the records."""
    share = 0.05 if quick else 1.0
    rows = univariate_rows(int(1_000_000 * share)) + vmdav_rows(int(100_000 * share))
    return rows + approximate_rows(int(500_000 * share))


if __name__ == "__main__":
    run(quick="--quick" in sys.argv)

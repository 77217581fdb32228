"""The benchmark files of the field: losses to reach within one cycle, and bounds that no result may undercut.

Bounds: column generation with exact pricing, as computed by this project (`benchmarks/refine.py`): 100 SSE/SST of
4.646 for Census and 13.857 for Tarragona at k = 3, 7.19 and 20.04 at k = 5; stars at k = 10.
"""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np
import pytest

from kinfold.methods.partition.exact import exact, lower_bound, nearest_bound
from kinfold.methods.partition.refine import improve
from kinfold.tables.points import Points
from reference.mdav_plain import mdav_plain
from reference.partitions import sse_plain

DATA = Path(os.environ.get("KINFOLD_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the benchmark files are not there: set KINFOLD_DATA")
LONG = (pytest.mark.long, pytest.mark.trust("golden figures"))


def load(name: str) -> np.ndarray:
    with (DATA / f"{name}.csv").open(newline="") as file:
        x = np.array([[float(v) for v in row] for row in list(csv.reader(file))[1:]])
    return (x - x.mean(axis=0)) / x.std(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "k", "mdav", "reached", "bound"),
    [
        ("census", 3, 5.692, 4.72, 4.646),
        pytest.param("census", 5, 9.088, 7.32, 7.19, marks=LONG),
        pytest.param("census", 10, 14.156, 11.50, 8.7, marks=LONG),
        pytest.param("tarragona", 3, 16.933, 14.50, 13.857, marks=LONG),
        ("tarragona", 5, 22.462, 20.20, 20.04),
    ],
)
def test_refinement_reaches_the_loss_that_it_is_known_for(name, k, mdav, reached, bound):
    x = load(name)
    sst = float((x**2).sum())
    start = mdav_plain(x, k)
    found = improve(x, start, k)
    assert 100 * sse_plain(x, start) / sst == pytest.approx(mdav, abs=5e-4)
    assert bound <= 100 * found.cost / sst <= reached
    assert found.cost == pytest.approx(sse_plain(x, found.labels))
    assert np.bincount(found.labels).min() >= k


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.trust("golden figures")
@pytest.mark.parametrize(("name", "bound"), [("census", 4.645), ("tarragona", 13.853)])
def test_the_bound_at_k_3_is_within_a_thousandth_of_its_best(name, bound):
    x = load(name)
    found = lower_bound(x, 3, seconds=math.inf)
    value = 100 * found.value / float((x**2).sum())
    assert found.method == "columns"
    assert bound <= value <= bound + 0.006


@pytest.mark.slow
def test_at_k_10_stars_bound_census_better_than_nearest_records():
    x = load("census")[:300]
    found = lower_bound(x, 10, seconds=math.inf)
    assert found.method == "stars"
    assert found.value > 1.1 * nearest_bound(Points.from_array(x), 10)


@pytest.mark.slow
def test_the_exact_end_betters_a_refined_partition_and_tells_its_gap():
    x = load("tarragona")[:250]
    refined = improve(x, mdav_plain(x, 3), 3, steps=50)
    found = exact(x, 3, refined.labels, steps=6)
    assert found.cost < refined.cost
    assert found.cost == pytest.approx(sse_plain(x, found.labels))
    assert 0.0 < found.gap < 0.002

"""V-MDAV, univariate and approximate: bad requests, listening, and what a small table must not load."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kinfold
from kinfold.errors import Cancelled, DataError, PolicyError, Unreachable
from kinfold.methods.partition.approximate import approximate
from kinfold.methods.partition.dependency import dependency
from kinfold.methods.partition.univariate import univariate
from kinfold.methods.partition.vmdav import vmdav
from kinfold.rows.points import Nested, Ordered, Points

METHODS = [vmdav, univariate, approximate]
LINE = np.arange(12.0).reshape(-1, 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("x", "k", "error", "words"),
    [
        (LINE, 1, PolicyError, "k is 1"),
        (LINE, 2.5, PolicyError, "k is 2.5"),
        (LINE, 13, Unreachable, "only 12 records"),
        (LINE.ravel(), 3, DataError, "shape"),
        (np.array([["a"], ["b"]], object), 2, DataError, "not numbers"),
        (np.array([[1.0], [np.nan]]), 2, DataError, "missing or infinite"),
        (np.array([[1.0], [1e151]]), 2, DataError, "beyond"),
    ],
)
def test_bad_input_is_refused_before_any_work(method, x, k, error, words):
    with pytest.raises(error, match=words):
        method(x, k)


@pytest.mark.parametrize("gamma", [-0.1, float("nan"), float("inf"), "0.2"])
def test_vmdav_wants_a_gain_factor_from_zero_up(gamma):
    with pytest.raises(PolicyError, match="gamma"):
        vmdav(LINE, 3, gamma=gamma)


def test_univariate_wants_one_column_of_numbers():
    with pytest.raises(PolicyError, match="not 2 attributes"):
        univariate(np.zeros((4, 2)), 2)
    with pytest.raises(PolicyError, match="codes"):
        univariate(Points(np.empty((4, 0)), np.zeros((4, 1), np.int32), (Ordered(3),)), 2)
    with pytest.raises(PolicyError, match="cost"):
        univariate(LINE, 2, cost="mean")


@pytest.mark.parametrize("bins", [1, 2.5, True])
def test_approximate_wants_at_least_two_bins(bins):
    with pytest.raises(PolicyError, match="bins"):
        approximate(LINE, 3, bins=bins)


def test_a_group_grows_by_a_record_that_is_nearer_to_it_than_gamma_times_to_the_others():
    """2.1 is 0.1 from the group of 0, 1 and 2, and 1.0 from the rest."""
    line = np.array([[0.0], [1.0], [2.0], [2.1], [3.1], [3.2], [3.3], [20.0], [21.0], [22.0]])
    assert vmdav(line, 3, gamma=0.2).tolist() == [1, 1, 1, 1, 2, 2, 2, 0, 0, 0]
    assert vmdav(line, 3, gamma=0.05).tolist() == [1, 1, 1, 2, 2, 2, 2, 0, 0, 0]


def test_the_last_few_records_join_the_nearest_centre_each_on_its_own():
    line = np.array([[-10.0], [-11.0], [-12.0], [10.0], [11.0], [12.0], [-4.0], [4.1]])
    assert vmdav(line, 3, gamma=0.0).tolist() == [0, 0, 0, 1, 1, 1, 0, 1]


@pytest.mark.parametrize("count", [20, 20_000])
def test_identical_records_are_grouped_in_the_order_of_their_rows(count):
    """The one too many is the only one left for V-MDAV's last group, and at no distance from approximate's first."""
    x = np.full((count + 1, 3), 0.1)
    groups = np.arange(count) // 5
    assert vmdav(x, 5).tolist() == [*groups, groups[-1]]
    assert approximate(x, 5).tolist() == [*groups, 0]


@pytest.mark.parametrize("records", [3, 5])
def test_fewer_than_2k_records_are_one_group(records):
    x = np.arange(float(records)).reshape(-1, 1)
    assert set(approximate(x, 3).tolist()) == {0}
    assert set(univariate(x, 3).tolist()) == {0}
    assert set(vmdav(x, 3, gamma=0.0).tolist()) == {0}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("records", [90, 4_000])
def test_progress_rises_to_the_end_and_a_listener_can_cancel(method, records):
    x = np.random.default_rng(0).normal(size=(records, 1))
    heard = []
    method(x, 3, progress=lambda done, total: heard.append((done, total)))
    done = [step for step, _ in heard]
    assert done == sorted(done)
    assert done[-1] > records - 6
    assert {total for _, total in heard} == {records}

    def stop(done, total):
        raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        method(x, 3, progress=stop)


def test_a_continuous_column_is_cut_into_bins_of_equal_frequency_and_equal_values_stay_together():
    rng = np.random.default_rng(0)
    found = dependency(
        np.column_stack([rng.normal(size=1000), rng.integers(0, 3, 1000), rng.normal(size=1000)]), bins=8
    )
    assert found.binned == (True, False, True)
    assert found.symbols == (8, 3, 8)
    assert found.entropies[0] == pytest.approx(3.0)
    tied = np.append(np.zeros(900), np.arange(100.0)).reshape(-1, 1)
    assert dependency(tied, bins=10).symbols == (2,)


def test_codes_are_their_own_symbols_and_come_after_the_numbers():
    numbers = np.array([[0.0], [0.0], [1.0], [1.0]])
    codes = np.array([[0, 3], [0, 3], [2, 3], [2, 3]], np.int32)
    points = Points(numbers, codes, (Ordered(3), Nested.flat(4)))
    found = dependency(points)
    assert found.matrix.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert found.entropies == (1, 1, 0)
    assert found.keys == (0, 1)
    # the centre's code is the lower median, 0: the last two records are farthest from it
    assert approximate(points, 2).tolist() == [1, 1, 0, 0]


def test_one_attribute_is_its_own_key():
    assert dependency(LINE).keys == (0,)
    assert np.bincount(approximate(LINE, 3)).tolist() == [3, 3, 3, 3]


def test_small_tables_never_load_the_compiler():
    lines = [
        "import sys, numpy as np",
        "from kinfold.methods.partition.vmdav import vmdav",
        "from kinfold.methods.partition.univariate import univariate",
        "from kinfold.methods.partition.approximate import approximate",
        "x = np.random.default_rng(0).normal(size=(500, 1))",
        "vmdav(x, 3), univariate(x, 3), univariate(x, 60), approximate(x, 3)",
        "sys.exit('numba' in sys.modules)",
    ]
    source = Path(kinfold.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env={**os.environ, "PYTHONPATH": str(source)}, check=False
    )
    assert ran.returncode == 0

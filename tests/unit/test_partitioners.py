"""The partitioners: bad requests, ties, progress, refinement, and what small tables must not load."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kinfold import kernels
from kinfold.errors import Cancelled, DataError, PolicyError, Unreachable
from kinfold.methods.annealing import Annealer, Budget, Cycle
from kinfold.methods.partition.approximate import dependency
from kinfold.methods.partition.refine import improve, refine
from kinfold.partition import approximate, mdav, univariate, vmdav
from kinfold.tables.points import NominalScale, OrdinalScale, Points
from reference.mdav_plain import mdav_plain
from reference.partitions import sse_plain
from uncompiled import PLAIN

compiles = pytest.mark.skipif(PLAIN, reason="the compiler is off")
METHODS = [mdav, vmdav, univariate, approximate]
LINE = np.arange(12.0).reshape(-1, 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("x", "k", "error", "words"),
    [
        (LINE, 1, PolicyError, "k is 1"),
        (LINE, 2.5, PolicyError, "k is given as float"),
        (LINE, 2.0, PolicyError, "k is 2.0"),
        (LINE, True, PolicyError, "k is True"),
        (LINE, 13, Unreachable, "only 12 records"),
        (LINE.ravel(), 3, DataError, "shape"),
        (np.ones((4, 0)), 2, DataError, "fix"),
        (np.array([["a"], ["b"]]), 2, DataError, "not numbers"),
        (np.array([["a"], ["b"]], object), 2, DataError, "not numbers"),
        (np.array([[None], [1]], object), 2, DataError, "fix"),
        (np.ones((4, 1), complex), 2, DataError, "fix"),
        (np.array([[1.0], [np.nan]]), 2, DataError, "missing or infinite"),
        (np.array([[1.0], [np.inf]]), 2, DataError, "missing or infinite"),
        (np.array([[1.0], [1e151]]), 2, DataError, "beyond"),
    ],
)
def test_bad_input_is_refused_before_any_work(method, x, k, error, words):
    with pytest.raises(error, match=words):
        method(x, k)


@pytest.mark.parametrize("n", range(3, 12))
def test_sizes_are_k_but_for_the_last_cluster(n):
    sizes = np.bincount(mdav(np.arange(n, dtype=float)[:, None] ** 2, 3)).tolist()
    assert sizes[:-1] == [3] * (len(sizes) - 1)
    assert 3 <= sizes[-1] <= 5


def test_equal_distances_go_to_the_lowest_row():
    assert mdav(np.zeros((9, 2)), 3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Points(np.zeros((2, 1)), np.zeros((3, 0), np.int32)),
        lambda: Points(np.zeros((2, 0)), np.zeros((2, 0), np.int32)),
        lambda: Points(np.zeros((2, 1)), np.zeros((2, 1), np.int32)),
        lambda: Points(np.zeros((2, 0)), np.array([[0], [4]], np.int32), (NominalScale.flat(4),)),
        lambda: Points(np.zeros((2, 0)), np.array([[0], [-1]], np.int32), (OrdinalScale(3),)),
        lambda: Points(np.array([[np.nan], [0.0]]), np.zeros((2, 0), np.int32)),
        lambda: NominalScale(np.array([[0, 0, 0], [1, 1, 0], [2, 0, 0]], np.int32)),
        lambda: NominalScale(np.array([[0, 0], [1, 1]], np.int32)),
        lambda: NominalScale(np.array([[0, 0], [0, 0]], np.int32)),
    ],
)
def test_points_that_no_kernel_could_search_are_refused(make):
    with pytest.raises(DataError):
        make()


def test_mdav_of_a_small_table_never_loads_the_compiler():
    code = (
        "import sys, numpy as np, kinfold.partition as p; x = np.random.default_rng(0).normal(size=(900, 4));"
        "p.mdav(x, 3); sys.exit('numba' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)})
    assert ran.returncode == 0


def test_warmup_loads_every_kernel_and_says_how_far_it_is():
    heard = []
    kernels.warmup(lambda done, total: heard.append((done, total)))
    assert heard == [(done, len(kernels.MODULES)) for done in range(len(kernels.MODULES) + 1)]
    assert all(f"kinfold.kernels.{name}" in sys.modules for name in kernels.MODULES)


def count_as_python(n):
    return n + 1


@pytest.fixture
def uncached(tmp_path, monkeypatch):
    """A new kernel without machine code."""
    from kinfold.kernels import compiling

    monkeypatch.setattr(compiling, "machine_code", lambda: tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return compiling.entry(1)(count_as_python)


@compiles
def test_a_first_call_compiles_and_says_so(uncached, caplog):
    assert (uncached.is_ready(), len(uncached.overloads)) == (False, 0)
    with caplog.at_level(logging.DEBUG, "kinfold"):
        assert [uncached(1), uncached(2)] == [2, 3]
    assert caplog.text.count("compiling count_as_python") == 1
    assert (uncached.is_ready(), len(uncached.overloads)) == (True, 1)


@compiles
def test_threads_that_call_a_kernel_first_compile_it_once(uncached):
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(uncached, range(4))) == [1, 2, 3, 4]


@pytest.mark.slow
@compiles
def test_loading_a_module_compiles_none_of_its_kernels():
    code = (
        "import kinfold.kernels as k; each = k.load('mdav');"
        "assert not each.advance.overloads and not k.is_loaded('mdav');"
        "k.prepare('box_tree'); assert k.is_loaded('box_tree') and k.is_ready('box_tree')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})


@compiles
def test_numpy_forms_the_clusters_where_the_wait_for_the_compiler_is_longer(monkeypatch):
    formed = []
    for name in ("mdav_plain", "mdav_compiled"):
        monkeypatch.setattr(f"kinfold.methods.partition.mdav.{name}", lambda *_, name=name: formed.append(name))
    for loaded, ready in ((False, False), (False, True), (True, True)):
        monkeypatch.setattr(kernels, "is_loaded", lambda _name, loaded=loaded: loaded)
        monkeypatch.setattr(kernels, "is_ready", lambda _name, ready=ready: ready)
        for n in (500, 12_000, 60_000):
            mdav(np.zeros((n, 4)), 3)
    expected = ["plain", "plain", "compiled"] + ["plain", "compiled", "compiled"] + ["compiled"] * 3
    assert formed == [f"mdav_{name}" for name in expected]


@compiles
def test_machine_code_older_than_a_source_is_thrown_away(tmp_path):

    old, new = tmp_path / "mdav.advance_flat-1.py311.nbi", tmp_path / "mdav.advance-1.py311.nbi"
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (1, 1))
    assert kernels._remove_stale(tmp_path) == tmp_path
    assert new.exists()
    assert not old.exists()


@compiles
def test_a_kernel_that_does_not_compile_leaves_the_collector_on(uncached, monkeypatch):
    import gc

    def broken(_self, _signature):
        assert not gc.isenabled()
        raise RuntimeError("no compiler")

    monkeypatch.setattr(type(uncached), "compile", broken)
    with pytest.raises(RuntimeError, match="no compiler"):
        uncached(1)
    assert gc.isenabled()
    assert not kernels.is_compiling()


@compiles
def test_an_inner_kernel_called_from_python_runs_as_plain_python():
    from kinfold.kernels import records as exact

    assert type(exact.add_to_sum).__name__ == "_Inner"
    sums, digits = np.zeros((1, exact.LIMBS), np.int64), np.zeros(exact.DIGITS, np.int64)
    exact.add_to_sum(sums, 0, int(np.float64(1.5).view(np.int64)), 1)
    assert exact.round_sum(sums, 0, digits) == 1.5


# V-MDAV, univariate and approximate


@pytest.mark.parametrize("gamma", [-0.1, float("nan"), float("inf"), "0.2"])
def test_vmdav_wants_a_gain_factor_from_zero_up(gamma):
    with pytest.raises(PolicyError, match="gamma"):
        vmdav(LINE, 3, gamma=gamma)


def test_univariate_wants_one_column_of_numbers():
    with pytest.raises(PolicyError, match="not 2 attributes"):
        univariate(np.zeros((4, 2)), 2)
    with pytest.raises(PolicyError, match="codes"):
        univariate(Points(np.empty((4, 0)), np.zeros((4, 1), np.int32), (OrdinalScale(3),)), 2)
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
    assert method is not mdav or done[-1] == records

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
    points = Points(numbers, codes, (OrdinalScale(3), NominalScale.flat(4)))
    found = dependency(points)
    assert found.matrix.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert found.entropies == (1, 1, 0)
    assert found.keys == (0, 1)
    # the centre's code is the lower median, 0: the last two records are farthest from it
    assert approximate(points, 2).tolist() == [1, 1, 0, 0]


def test_one_attribute_is_its_own_key():
    assert dependency(LINE).keys == (0,)
    assert np.bincount(approximate(LINE, 3)).tolist() == [3, 3, 3, 3]


X = np.random.default_rng(0).normal(size=(40, 3))


def test_a_run_of_seconds_is_repeated_by_its_steps():
    start = mdav_plain(X, 3)
    timed = improve(X, start, 3, seconds=0.2)
    again = improve(X, start, 3, steps=timed.steps)
    assert (timed.labels == again.labels).all()


def test_a_start_with_a_small_group_is_refused():
    with pytest.raises(PolicyError, match="a group of the partition to refine has 1 record"):
        refine(X, np.r_[0, np.ones(39, int)], 2, steps=1)


@pytest.mark.parametrize("labels", [np.zeros(39, int), np.zeros(40)])
def test_labels_of_another_shape_or_kind_are_refused(labels):
    with pytest.raises(PolicyError, match="labels"):
        refine(X, labels, 2, steps=1)


def test_large_groups_of_a_start_are_split():
    labels = refine(X, np.zeros(40, int), 2, steps=400)
    assert np.bincount(labels).max() <= 4


def test_seconds_of_nothing_still_descend():
    start = mdav_plain(X, 4)
    assert sse_plain(X, refine(X, start, 4, seconds=0.0)) < sse_plain(X, start)


def test_equal_records_cost_nothing_and_end_at_once():
    found = improve(np.ones((10, 2)), np.repeat([0, 1], 5), 5, steps=10_000_000)
    assert (found.cost, found.steps) == (0.0, 0)


def test_a_listener_can_stop_the_search():
    def stop(done: int, total: int) -> None:
        raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        improve(X, mdav_plain(X, 3), 3, steps=1000, progress=stop)


def test_another_seed_takes_another_way():
    x = np.random.default_rng(3).normal(size=(300, 4))
    start = mdav_plain(x, 3)
    ways = {tuple(improve(x, start, 3, steps=20, seed=seed).labels) for seed in range(4)}
    assert len(ways) > 1


# The annealer, on a search space so plain that every step can be followed


class Downhill:
    """A partition is one number and costs as much; every step takes one off, down to the floor."""

    chunk = 10

    def __init__(self, floor: int) -> None:
        self.floor, self.begun, self.heats = floor, [], []

    def begin(self, labels):
        self.at = int(labels[0])
        self.begun.append(self.at)

    def take_steps(self, heats):
        self.heats += heats.tolist()
        self.at = max(self.floor, self.at - len(heats))

    def improve(self, labels, cost):
        return (np.array([self.at]), float(self.at)) if self.at < cost else (labels, cost)


def anneal(budget: Budget, floor: int = -(10**9), start: int = 1000, first: int = 25):
    space = Downhill(floor)
    annealer = Annealer(space, np.array([start]), float(start))
    return annealer.run(annealer.plan_doubling_cycles(first, 4.0), budget), space


@pytest.mark.parametrize("steps", [1, 9, 10, 11, 25, 26, 75, 333])
def test_as_many_steps_are_taken_as_the_budget_has(steps):
    found, space = anneal(Budget(steps, None))
    assert (found.steps, len(space.heats), found.cost) == (steps, steps, 1000 - steps)


def test_cycles_begin_from_the_best_double_and_start_hot_and_end_cold():
    _, space = anneal(Budget(375, None))
    assert space.begun == [1000, 975, 925, 825]
    assert space.heats == pytest.approx([4.0 * (1 - t / n) ** 2 for n in (25, 50, 100, 200) for t in range(n)])


def test_seconds_of_nothing_take_no_step():
    found, space = anneal(Budget(None, 0.0))
    assert (found.steps, space.begun) == (0, [])


def test_a_partition_that_costs_nothing_ends_the_walk():
    found, _ = anneal(Budget(10**6, None), floor=0, start=100)
    assert (found.cost, found.steps) == (0.0, 175)


def test_the_history_falls_and_ends_at_the_cost():
    found, _ = anneal(Budget(60, None))
    costs = [mark.cost for mark in found.history]
    assert costs == sorted(costs, reverse=True)
    assert (costs[0], costs[-1]) == (1000.0, found.cost)


def test_a_plan_may_hold_cycles_of_any_kind():
    space = Downhill(0)
    annealer = Annealer(space, np.array([50]), 50.0)
    plan = iter([Cycle(np.array([40]), 5, 0.0), Cycle(np.array([90]), 5, 1.0)])
    found = annealer.run(plan, Budget(None, None))
    assert (space.begun, found.cost, found.steps) == ([40, 90], 35.0, 10)

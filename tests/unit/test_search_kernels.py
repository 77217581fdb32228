"""The kernels of the search against the definition of the cost, and uncompiled against compiled."""

from __future__ import annotations

import numpy as np
import pytest

from kinfold.kernels import descent, distances, draws, groups, moves, paths, plain_search
from kinfold.methods.partition.gaps import Gaps
from kinfold.methods.partition.oracle import Oracle
from kinfold.rows.points import Nested, Ordered, Points
from reference.mdav_plain import mdav_plain
from uncompiled import uncompiled


def state_of(seed: int, k: int, n: int = 60) -> tuple[Gaps, groups.Groups]:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    gaps = Gaps.of(Points.of(x))
    labels = mdav_plain(x, k)
    state = Oracle.tabled(gaps).arranged(labels, k, free=n // k)
    state.state[0].wide, state.state[0].deep, state.state[0].reach = 6, 4, 5
    groups.recount(None, None, state)
    return gaps, state


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_every_move_changes_the_cost_by_what_it_says(seed, k):
    gaps, state = state_of(seed, k)
    made = set()
    for i in list(range(60)) * 3:
        before = gaps.cost(state.label)
        change = moves.best_move(None, None, state, i)
        length = int(state.state[0].links)
        if length:
            moves.carry_out(None, None, state)
            made.add(length)
            assert gaps.cost(state.label) == pytest.approx(before + change, rel=1e-9)
        else:
            assert change == 0.0
    assert made >= {2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [200])
def test_a_step_taken_back_leaves_the_partition_as_it_was(rounds):
    gaps, state = state_of(1, 3)
    plain_search.descend(state, 100)
    before, cost = state.label.copy(), gaps.cost(state.label)
    stream = draws.stream_of(0)
    for _ in range(rounds):
        change = descent.shake(None, None, state, stream, 0.0)
        assert change <= 1e-12
        now = gaps.cost(state.label)
        assert now == pytest.approx(cost + change, rel=1e-9)
        if change == 0.0:
            same = state.label[:, None] == state.label
            assert (same == (before[:, None] == before)).all()
        before, cost = state.label.copy(), now


def test_what_is_kept_equals_what_is_recounted():
    _, state = state_of(2, 4)
    plain_search.search(state, draws.stream_of(3), np.full(100, 0.01), np.empty(60, np.int32))
    own, pairs = state.own.copy(), state.pairs.copy()
    groups.recount(None, None, state)
    assert own == pytest.approx(state.own, abs=1e-9)
    assert pairs == pytest.approx(state.pairs, abs=1e-9)


def test_a_chain_visits_the_nearest_record_first():
    gaps = Gaps.of(Points.of([[0.0], [5.0], [1.0], [4.0], [2.0]]))
    path = np.empty(5, np.int32)
    paths.chain(gaps.pairs, path, 0)
    assert path.tolist() == [0, 2, 4, 3, 1]


@pytest.mark.parametrize("seed", range(5))
def test_shortening_never_lengthens_a_path_and_keeps_every_record(seed):
    x = np.random.default_rng(seed).normal(size=(80, 2))
    gaps = Gaps.of(Points.of(x))
    path = np.random.default_rng(seed).permutation(80).astype(np.int32)
    length = gaps.pairs[path[:-1], path[1:]].sum()
    while paths.shorten(gaps.pairs, gaps.near, path, 12):
        shorter = gaps.pairs[path[:-1], path[1:]].sum()
        assert shorter < length
        length = shorter
    assert sorted(path.tolist()) == list(range(80))


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_cut_of_a_path_is_the_best_of_all_and_tells_its_cost(k):
    x = np.random.default_rng(k).normal(size=(50, 3))
    gaps = Gaps.of(Points.of(x))
    path = np.random.default_rng(k).permutation(50).astype(np.int32)
    one = np.empty(50, np.int32)
    cost = paths.cut_by_gaps(gaps.pairs, path, k, one)
    assert cost == pytest.approx(least_cut(x[path], k))
    assert gaps.cost(one) == pytest.approx(cost)
    assert k <= np.bincount(one).min() <= np.bincount(one).max() < 2 * k


def least_cut(x: np.ndarray, k: int) -> float:
    """The least SSE of a cut of these rows into stretches of k to 2k-1, straight from the definition."""
    least = [0.0] + [np.inf] * len(x)
    for end in range(k, len(x) + 1):
        for start in range(max(0, end - 2 * k + 1), end - k + 1):
            sse = float(((x[start:end] - x[start:end].mean(axis=0)) ** 2).sum())
            least[end] = min(least[end], least[start] + sse)
    return least[len(x)]


def test_draws_are_the_same_uncompiled():
    one, two = draws.stream_of(5), draws.stream_of(5)
    drawn = [draws.draw(one) for _ in range(100)]
    assert drawn == [uncompiled(draws.draw)(two) for _ in range(100)]
    assert 0.0 < min(drawn) < max(drawn) < 1.0


def test_nearest_records_are_the_same_uncompiled():
    gaps, _ = state_of(0, 3)
    near = np.empty((60, 7), np.int32)
    uncompiled(distances.nearest)(gaps.pairs, near)
    assert (near == gaps.near[:, :7]).all()
    order = np.argsort(gaps.pairs + np.diag(np.full(60, np.inf)), axis=1, kind="stable")
    assert (near == order[:, :7]).all()


def test_a_table_of_distances_asks_a_scale_for_the_codes_that_are_there_alone():
    class Long(Nested):
        def gaps(self, _):
            raise AssertionError("the distances to every code of a scale take as long as the scale is")

    leaves = np.arange(40)
    paths = np.column_stack([leaves, leaves // 5, leaves // 20, np.zeros(40)]).astype(np.int32)
    scales = (Long(paths, weight=0.5), Ordered(7, weight=2.0))
    codes = np.array([[0, 7], [4, 0], [39, 6], [20, 7], [0, 3]], np.int32)
    points = Points(np.arange(5.0).reshape(-1, 1), codes, scales)
    slow = [Nested(paths, weight=0.5), scales[1]]
    expected = (points.numbers - points.numbers.T) ** 2
    for i in range(5):
        expected[i] += sum(
            scale.gaps(int(code))[column] for scale, code, column in zip(slow, codes[i], codes.T, strict=True)
        )
    assert (Gaps.of(points).pairs == expected).all()

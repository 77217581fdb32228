from __future__ import annotations

import numpy as np
import pytest

from kinfold.errors import Cancelled, PolicyError
from kinfold.methods.partition.refine import improve, refine
from reference.mdav_plain import mdav_plain
from reference.partitions import sse_plain

X = np.random.default_rng(0).normal(size=(40, 3))


def test_a_run_of_seconds_is_repeated_by_its_steps():
    start = mdav_plain(X, 3)
    timed = improve(X, start, 3, seconds=0.2)
    again = improve(X, start, 3, steps=timed.steps)
    assert (timed.labels == again.labels).all()


def test_a_start_with_a_small_group_is_refused():
    with pytest.raises(PolicyError, match="a group of the start has 1 record"):
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

"""t-merge, k-first and t-first against their plain twins, and what holds for all three."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kinfold.partition.k_first import clustered, k_first
from kinfold.partition.points import Points
from kinfold.partition.requirement import Requirement
from kinfold.partition.t_first import t_first
from kinfold.partition.t_merge import t_merge
from point_tables import any_points
from reference import tclose as twin

LEVELS = (0.02, 0.05, 0.13, 0.25, 0.4)


def column_for(seed: int, n: int) -> np.ndarray:
    chance = np.random.default_rng(seed)
    return chance.integers(0, int(chance.integers(1, 2 * n + 1)), n)


@pytest.mark.parametrize("start", range(0, 120, 20))
def test_t_first_gives_the_same_labels_as_its_twin(start):
    for seed in range(start, start + 20):
        points, k = any_points(seed)
        column, t = column_for(seed, len(points)), LEVELS[seed % 5]
        assert (
            t_first(points, k, confidential=column, t=t).tolist() == twin.t_first(points, k, list(column), t).tolist()
        )


@pytest.mark.parametrize("start", range(0, 40, 20))
def test_k_first_gives_the_same_labels_as_its_twin_before_the_merge(start):
    for seed in range(start, start + 20):
        points, k = any_points(seed, most=24)
        column, t = column_for(seed, len(points)), LEVELS[seed % 5]
        labels = clustered(points, k, [Requirement.close(column, t)])
        assert labels.tolist() == twin.k_first(points, k, list(column), t).tolist()


def test_k_first_with_two_columns_exchanges_until_neither_is_missed():
    chance = np.random.default_rng(3)
    x, one, two = chance.normal(size=(60, 2)), chance.permutation(60), chance.permutation(60)
    labels = k_first(x, 4, confidential=[one, two], t=[0.2, 0.3])
    for column, t in ((one, 0.2), (two, 0.3)):
        assert max(twin.emd(list(column), np.flatnonzero(labels == g).tolist()) for g in range(labels.max() + 1)) <= t
    assert labels.max() > 2


@pytest.mark.parametrize("start", range(0, 40, 20))
def test_merging_gives_the_same_labels_as_its_twin(start):
    for seed in range(start, start + 20):
        chance = np.random.default_rng(seed)
        n = int(chance.integers(4, 40))
        x = chance.normal(size=(n, 2))
        labels = np.sort(np.arange(n) // 2 % max(1, n // 3))
        labels = np.unique(chance.permutation(labels), return_inverse=True)[1].astype(np.int32)
        column, t = column_for(seed, n), LEVELS[seed % 5]
        ours = t_merge(x, 2, confidential=column, t=t, start=labels)
        assert ours.tolist() == twin.merged(x, labels, list(column), t).tolist()


@pytest.mark.parametrize("method", [t_merge, k_first])
def test_every_class_of_the_finished_methods_is_close_and_large_enough(method):
    for seed in range(25):
        points, k = any_points(seed)
        column, t = column_for(seed, len(points)), LEVELS[seed % 5]
        labels = method(points, k, confidential=column, t=t)
        assert np.bincount(labels).min() >= k
        rows = [np.flatnonzero(labels == g).tolist() for g in range(labels.max() + 1)]
        assert max(twin.emd(list(column), members) for members in rows) <= Fraction(str(t))


def test_t_first_takes_one_record_from_each_stratum_where_k_divides_n():
    chance = np.random.default_rng(0)
    column = chance.permutation(60)
    labels = t_first(chance.normal(size=(60, 3)), 5, confidential=column, t=0.25)
    for g in range(12):
        assert sorted(column[labels == g] // 12) == [0, 1, 2, 3, 4]


def test_null_in_the_confidential_column_sorts_first():
    x = np.arange(8.0)[:, None]
    column = np.array([np.nan, 5.0, 3.0, np.nan, 1.0, 2.0, 9.0, 4.0])
    filled = np.where(np.isnan(column), -1.0, column)
    nulled = t_first(Points.of(x), 2, confidential=column, t=0.3)
    assert nulled.tolist() == t_first(x, 2, confidential=filled, t=0.3).tolist()

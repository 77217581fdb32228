"""t-merge, k-first and t-first against their plain twins, and what holds for all three."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from kinfold.errors import DataError, PolicyError, Unreachable
from kinfold.methods.partition.k_first import form_clusters, k_first
from kinfold.methods.partition.requirement import Requirement, find_least_closeness
from kinfold.methods.partition.t_first import cluster_size, cut_strata, form_by_strata, t_first
from kinfold.methods.partition.t_merge import t_merge
from kinfold.models import TCloseness
from kinfold.progress import no_progress
from kinfold.tables.points import Points
from ledger import cases
from point_tables import any_points
from reference import tclose as twin
from reference.t_first_plain import t_first_plain

GAUSSIAN = np.random.default_rng(0).normal(size=(500, 2))
LEVELS = (0.02, 0.05, 0.13, 0.25, 0.4)


def column_for(seed: int, n: int) -> np.ndarray:
    chance = np.random.default_rng(seed)
    return chance.integers(0, int(chance.integers(1, 2 * n + 1)), n)


@pytest.mark.parametrize("start", range(0, cases(60, 12), 20))
def test_t_first_gives_the_same_labels_as_its_twin(start):
    for seed in range(start, start + 20):
        points, k = any_points(seed)
        column, t = column_for(seed, len(points)), LEVELS[seed % 5]
        assert (
            t_first(points, k, confidential=column, t=t).tolist() == twin.t_first(points, k, list(column), t).tolist()
        )


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, cases(100, 30), 50))
def test_t_first_from_trees_gives_the_same_labels_as_the_plain_way(start):
    for seed in range(start, start + 50):
        points, k = any_points(seed, most=400)
        layers = cut_strata(column_for(seed, len(points)), cluster_size(len(points), k, LEVELS[seed % 5]))
        plain = t_first_plain(points, layers)
        assert form_by_strata(points, layers, no_progress).tolist() == plain.tolist()


@pytest.mark.slow
def test_t_first_from_trees_gives_the_same_labels_on_a_table_that_grows_them_anew():
    chance = np.random.default_rng(8)
    x = chance.normal(size=(4001, 3)).round(1)
    column = chance.integers(0, 50, 4001)
    for t in (0.05, 0.25):
        layers = cut_strata(column, cluster_size(4001, 2, t))
        plain = t_first_plain(Points.from_array(x), layers)
        assert t_first(x, 2, confidential=column, t=t).tolist() == plain.tolist()


def test_of_several_columns_the_one_with_the_smallest_t_is_cut_into_strata():
    chance = np.random.default_rng(9)
    x, one, two = chance.normal(size=(60, 2)), chance.permutation(60), chance.permutation(60)
    both = t_first(x, 2, confidential=[one, two], t=[0.3, 0.1])
    assert both.tolist() == t_first(x, 2, confidential=two, t=0.1).tolist()


@pytest.mark.parametrize("method", [t_merge, k_first, t_first])
def test_what_cannot_be_asked_is_refused_with_a_fix(method):
    x, column = np.eye(6), np.arange(6)
    with pytest.raises(PolicyError, match="t is 0"):
        method(x, 2, confidential=column, t=0)
    with pytest.raises(PolicyError, match="k is 1"):
        method(x, 1, confidential=column, t=0.2)
    with pytest.raises(DataError, match="one array of 6 values"):
        method(x, 2, confidential=[[1, 2]], t=0.2)
    with pytest.raises(Unreachable):
        method(x, 7, confidential=column, t=0.2)


def test_a_constant_column_asks_for_nothing():
    x = np.random.default_rng(1).normal(size=(30, 2))
    assert np.bincount(t_merge(x, 3, confidential=np.ones(30), t=0.01)).tolist() == [3] * 10


@pytest.mark.parametrize("start", range(0, 40, 20))
def test_k_first_gives_the_same_labels_as_its_twin_before_the_merge(start):
    for seed in range(start, start + 20):
        points, k = any_points(seed, most=24)
        column, t = column_for(seed, len(points)), LEVELS[seed % 5]
        labels = form_clusters(points, k, [Requirement.close(column, t)])
        assert labels.tolist() == twin.k_first(points, k, list(column), t).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("records", "seeds"), [(90, range(12)), (500, [0])])
def test_k_first_from_trees_gives_the_labels_of_one_record_after_the_other(records, seeds):
    for seed in seeds:
        points, k = any_points(seed, most=records) if records < 500 else (Points.from_array(GAUSSIAN), 3)
        required = Requirement.close(column_for(seed, len(points)), LEVELS[seed % 5])
        plain = twin.k_first_in_whole_numbers(points, k, required.codes, LEVELS[seed % 5])
        assert form_clusters(points, k, [required]).tolist() == plain.tolist()


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
    nulled = t_first(Points.from_array(x), 2, confidential=column, t=0.3)
    assert nulled.tolist() == t_first(x, 2, confidential=filled, t=0.3).tolist()


# The least t of several classes, against every class that there is


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ground", ["ordered", "equal"])
def test_no_class_of_several_is_nearer_and_one_is_as_near(seed: int, ground: str) -> None:
    chance = np.random.default_rng(seed)
    n, k = int(chance.integers(4, 10)), int(chance.integers(1, 3))
    column = chance.integers(0, chance.integers(2, 6), n)
    column = np.unique(column, return_inverse=True)[1]
    every = [
        max(apart(column[list(rows)], column, ground), apart(np.delete(column, rows), column, ground))
        for size in range(k, n // 2 + 1)
        for rows in combinations(range(n), size)
    ]
    found = find_least_closeness(Requirement.of(TCloseness(0.01, "x", ground), column), k)
    assert found == pytest.approx(min(every), abs=1e-12)


def apart(part: np.ndarray, whole: np.ndarray, ground: str) -> float:
    values = int(whole.max()) + 1
    gaps = [np.mean(part == v) - np.mean(whole == v) for v in range(values)]
    if ground == "equal":
        return sum(map(abs, gaps)) / 2
    return sum(abs(sum(gaps[: v + 1])) for v in range(values)) / max(1, values - 1)


@pytest.mark.parametrize("t", [0.0001, 0.3])
def test_a_t_that_one_class_alone_keeps_is_answered_with_it_and_with_the_least_that_more_can_keep(t: float) -> None:
    table = {"age": [20 + i % 40 for i in range(101)], "ill": ["flu" if i % 10 == 3 else "cold" for i in range(101)]}
    asked = {"quasi": ["age"], "confidential": ["ill"], "k": 5, "t": t}
    made = kinfold.anonymize(pa.table(table), **asked)
    only = [note for note in made.plan.notes if "single class of all records" in note]
    assert bool(only) == (t < 0.01)
    assert (made.verdict.classes == 1) == (t < 0.01)

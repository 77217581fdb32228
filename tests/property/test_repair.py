"""Repair and refinement under every kind of promise: what comes out keeps them, by the models' own word."""

from __future__ import annotations

import numpy as np
import pytest

from kinfold.errors import PolicyError, Unreachable
from kinfold.hierarchy import Hierarchy
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.refine_under import refine_under
from kinfold.methods.partition.repair import repair
from kinfold.methods.partition.requirement import Requirement, missed
from kinfold.methods.partition.t_merge import t_merge
from kinfold.models import AlphaK, LDiversity, PSensitive, TCloseness
from kinfold.rows.tally import of_labels
from point_tables import any_points
from uncompiled import PLAIN

TREE = Hierarchy.of([(str(leaf), f"b{leaf // 2}") for leaf in range(8)])
MODELS = [
    TCloseness(0.15, "x"),
    TCloseness(0.3, "x", "equal"),
    TCloseness(0.25, "x", "hierarchical", TREE),
    LDiversity(3, "x"),
    LDiversity(2.2, "x", "entropy"),
    LDiversity(2, "x", "recursive", 2.0),
    PSensitive(2, "x"),
    AlphaK(0.6, "x"),
]


def spread(x: np.ndarray, labels: np.ndarray) -> float:
    return sum(float(((x[labels == g] - x[labels == g].mean(axis=0)) ** 2).sum()) for g in range(labels.max() + 1))


def table(seed: int, most: int = 60):
    points, k = any_points(seed, most)
    column = np.random.default_rng(seed).permutation(np.arange(len(points)) % 8)
    return points, k, column


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_after_repair_every_class_keeps_the_promise_or_nothing_could(model):
    mended = 0
    for seed in range(25):
        points, k, column = table(seed)
        labels = mdav(points, k)
        wanted = [Requirement.of(model, column)]
        if model.failing(of_labels(np.zeros(len(points), np.int64), {"x": column})).any():
            with pytest.raises(Unreachable, match="all records in one class"):
                repair(points, labels, k, wanted)
            continue
        before = model.failing(of_labels(labels.astype(np.int64), {"x": column}))
        result = repair(points, labels, k, wanted)
        assert not model.failing(of_labels(result.labels.astype(np.int64), {"x": column})).any()
        assert np.bincount(result.labels).min() >= k
        assert result.repaired == before.sum()
        mended += result.repaired
        if not before.any():
            assert result.labels.tolist() == labels.tolist()
    assert mended > 5


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_refinement_never_costs_more_and_keeps_the_promise(model):
    gained = 0
    for seed in range(12):
        points, k, column = table(seed, most=40)
        wanted = [Requirement.of(model, column)]
        if missed(wanted, np.zeros(len(points), np.int32))[0] > 0:
            continue
        start = repair(points, mdav(points, k), k, wanted).labels
        result = refine_under(points, start, k, wanted, steps=3000)
        assert result.cost <= result.history[0].cost
        gained += result.cost < result.history[0].cost
        assert not model.failing(of_labels(result.labels.astype(np.int64), {"x": column})).any()
        assert np.bincount(result.labels).min() >= k
    assert gained > 3


def test_several_promises_hold_together():
    chance = np.random.default_rng(5)
    x, wage, ill = chance.normal(size=(300, 2)), chance.normal(size=300), chance.integers(0, 5, 300)
    models = [TCloseness(0.2, "wage"), LDiversity(3, "ill"), AlphaK(0.5, "ill")]
    wanted = [Requirement.of(model, wage if model.column == "wage" else ill) for model in models]
    start = repair(x, mdav(x, 5), 5, wanted).labels
    labels = refine_under(x, start, 5, wanted, steps=50_000).labels
    for each in (start, labels):
        tally = of_labels(each.astype(np.int64), {"wage": wage, "ill": ill})
        assert not any(model.failing(tally).any() for model in models)
        assert len(tally) > 20


def test_the_same_steps_and_seed_give_the_same_labels_and_a_longer_run_begins_with_them():
    points, k, column = table(3)
    wanted = [Requirement.of(TCloseness(0.3, "x"), column)]
    start = repair(points, mdav(points, k), k, wanted).labels
    one, same, longer = (refine_under(points, start, k, wanted, steps=s, seed=4) for s in (5000, 5000, 45_000))
    assert one.labels.tolist() == same.labels.tolist()
    short, long = ([(mark.steps, mark.cost) for mark in run.history] for run in (one, longer))
    assert [mark for mark in long if mark[0] < 5000] == [mark for mark in short if mark[0] < 5000]
    assert longer.cost <= one.cost


def test_a_run_by_the_clock_is_repeated_by_its_steps():
    chance = np.random.default_rng(6)
    x, column = chance.normal(size=(200, 2)), chance.normal(size=200)
    wanted = [Requirement.close(column, 0.2)]
    start = repair(x, mdav(x, 3), 3, wanted).labels
    timed = refine_under(x, start, 3, wanted, seconds=5 if PLAIN else 0.3)
    again = refine_under(x, start, 3, wanted, steps=timed.steps)
    assert timed.steps > 0
    assert timed.labels.tolist() == again.labels.tolist()


def test_a_partition_that_misses_a_promise_is_not_refined():
    with pytest.raises(PolicyError, match="misses a promise already"):
        refine_under(np.eye(4), np.array([0, 0, 1, 1]), 2, [Requirement.close([1, 2, 3, 4], 0.1)], steps=10)


def test_mending_costs_less_than_merging():
    chance = np.random.default_rng(7)
    x = chance.normal(size=(400, 2))
    column = x[:, 0] + chance.normal(size=400)
    wanted = [Requirement.close(column, 0.15)]
    start = mdav(x, 5)
    mended = repair(x, start, 5, wanted).labels
    alone = t_merge(x, 5, confidential=column, t=0.15, start=start)
    assert spread(x, mended) < 0.8 * spread(x, alone)

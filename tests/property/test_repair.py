"""Repair and refinement under every kind of promise: what comes out keeps them, by the models' own word."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numba import njit

from kinfold.errors import PolicyError, Unreachable
from kinfold.hierarchies import Hierarchy
from kinfold.methods.partition.geometry import PairDistances, compute_cost
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.refine import refine_under
from kinfold.methods.partition.repair import find_best_start, repair, settle_classes
from kinfold.methods.partition.requirement import Requirement, measure_misses
from kinfold.methods.partition.t_first import Quotas, cut_strata, form_by_shares, number_pools
from kinfold.methods.partition.t_merge import t_merge
from kinfold.models import AlphaK, LDiversity, PSensitive, TCloseness
from kinfold.progress import no_progress
from kinfold.tables.points import Points
from kinfold.tables.tally import tally_labels
from point_tables import any_points
from reference import by_shares as shares_twin
from reference import settle_plain as twin
from uncompiled import PLAIN

TREE = Hierarchy.from_rows([(str(leaf), f"b{leaf // 2}") for leaf in range(8)])
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
        if model.failing(tally_labels(np.zeros(len(points), np.int64), {"x": column})).any():
            with pytest.raises(Unreachable, match="all records in one class"):
                repair(points, labels, k, wanted)
            continue
        before = model.failing(tally_labels(labels.astype(np.int64), {"x": column}))
        result = repair(points, labels, k, wanted)
        assert not model.failing(tally_labels(result.labels.astype(np.int64), {"x": column})).any()
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
        if measure_misses(wanted, np.zeros(len(points), np.int32))[0] > 0:
            continue
        start = repair(points, mdav(points, k), k, wanted).labels
        result = refine_under(points, start, k, wanted, steps=3000)
        assert result.cost <= result.history[0].cost
        gained += result.cost < result.history[0].cost
        assert not model.failing(tally_labels(result.labels.astype(np.int64), {"x": column})).any()
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
        tally = tally_labels(each.astype(np.int64), {"wage": wage, "ill": ill})
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


# What the kernels ask of a class against what the models say, for every kind of promise


DEEP_TREE = Hierarchy.from_rows([(str(leaf), f"b{leaf // 2}", f"c{leaf // 4}") for leaf in range(9)])
ALL_MODELS = [
    TCloseness(0.2, "x"),
    TCloseness(0.3, "x", "equal"),
    TCloseness(0.3, "x", "hierarchical", DEEP_TREE),
    LDiversity(3, "x"),
    LDiversity(2.5, "x", "entropy"),
    LDiversity(3, "x", "recursive", 1.0),
    LDiversity(2, "x", "recursive", 0.5),
    PSensitive(2, "x"),
    AlphaK(0.5, "x"),
]


@pytest.mark.parametrize("model", ALL_MODELS, ids=str)
def test_a_class_misses_a_promise_in_the_kernels_where_it_fails_the_model(model):
    for seed in range(40):
        chance = np.random.default_rng(seed)
        n = int(chance.integers(1, 400))
        labels = np.unique(chance.integers(0, max(1, n // int(chance.integers(1, 200))), n), return_inverse=True)[1]
        column = chance.integers(0, int(chance.integers(1, 10)), n)
        found = measure_misses([Requirement.of(model, column)], labels.astype(np.int32))
        tally = tally_labels(labels, {"x": column})
        assert (found > 0).tolist() == model.failing(tally).tolist()
        if isinstance(model, TCloseness):
            assert found == pytest.approx(np.maximum(model.distances(tally) - model.t, 0), abs=1e-12)


def test_misses_of_several_promises_add_up():
    chance = np.random.default_rng(1)
    labels = np.arange(60, dtype=np.int32) % 20
    columns = chance.integers(0, 9, (len(ALL_MODELS), 60))
    each = [Requirement.of(model, column) for model, column in zip(ALL_MODELS, columns, strict=True)]
    assert measure_misses(each, labels) == pytest.approx(sum(measure_misses([one], labels) for one in each))


def test_a_sum_of_misses_is_not_completed_above_the_limit():
    from kinfold.kernels.promises import measure_miss
    from kinfold.methods.partition.requirement import pack_promises

    chance = np.random.default_rng(3)
    required = [Requirement.close(chance.integers(0, 9, 60), 0.05) for _ in range(4)]
    members, first = np.arange(5, dtype=np.int32), pack_promises(required[:1], 60)
    promises = pack_promises(required, 60)
    whole = measure_miss(promises, members, -1, -1, np.inf)
    for limit in (0.0, whole / 2, whole, np.inf):
        part = measure_miss(promises, members, -1, -1, limit)
        assert part == whole if whole <= limit else limit < part <= whole
    assert 0 < measure_miss(promises, members, -1, -1, 0.0) == measure_miss(first, members, -1, -1, np.inf) < whole


@cache
def callable_from_here():
    """The kernel has no way in from Python; this is one."""
    from kinfold.kernels.promises import measure_miss

    return njit(lambda promises, members, leaves, comes: measure_miss(promises, members, leaves, comes, np.inf))


@pytest.mark.slow
@pytest.mark.parametrize("model", ALL_MODELS, ids=str)
def test_a_class_with_one_record_changed_is_read_like_the_changed_class(model):
    from kinfold.methods.partition.requirement import pack_promises

    miss = callable_from_here()
    chance = np.random.default_rng(2)
    column = chance.integers(0, 9, 300)
    promises = pack_promises([Requirement.of(model, column)], 300)
    for size in (2, 5, 63, 64, 65, 120):
        members = chance.permutation(300)[: size + 1].astype(np.int32)
        stay, other = members[:size], members[size]
        swapped, joined, left = np.append(stay[1:], other), members, stay[1:]
        assert miss(promises, stay, stay[0], other) == miss(promises, swapped, -1, -1)
        assert miss(promises, stay, -1, other) == miss(promises, joined, -1, -1)
        assert miss(promises, stay, stay[0], -1) == miss(promises, left, -1, -1)


# Repair, settling, starts and clusters by shares beside their slow plain twins, on small tables of every kind


TWIN_MODELS = [TCloseness(0.3, "x", "equal"), TCloseness(0.2, "x"), LDiversity(2, "x")]


def promised_table(seed: int) -> tuple[Points, list[Requirement]]:
    chance = np.random.default_rng(seed)
    points = Points.from_array(chance.integers(0, 6, (18, 2)).astype(float))
    column = (points.numbers[:, 0] + chance.normal(size=18) > 3).astype(int) + (np.arange(18) % 9 == 0)
    return points, [Requirement.of(TWIN_MODELS[seed % 3], column)]


def misses(required: list[Requirement]) -> Callable[[list[int]], float]:
    """How far a class of the whole table misses its promises."""
    n = len(required[0].codes)

    @cache
    def known(members: tuple[int, ...]) -> float:
        labels = np.zeros(n, np.int32)
        labels[list(members)] = 1
        return float(measure_misses(required, labels)[1]) if 0 < len(members) < n else 0.0

    return lambda members: known(tuple(sorted(members)))


def classes_of(labels: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(labels == g).tolist() for g in range(labels.max() + 1)]


def test_repair_and_settling_come_near_to_what_trying_every_exchange_finds() -> None:
    near = [compared(seed) for seed in range(9)]
    assert np.exp(np.mean(np.log(near))) < 1.25


def compared(seed: int) -> float:
    """Check the classes of one table against the promises; return what they cost, as a share of what the twin's do."""
    points, required = promised_table(seed)
    gaps, miss = PairDistances.from_points(points).squared, misses(required)
    start = mdav(points, 3)
    fast = settle_classes(points, repair(points, start, 3, required).labels, 3, required, no_progress)
    plain = twin.settle(gaps, twin.repair(gaps, classes_of(start), 3, miss), 3, miss)
    assert measure_misses(required, fast).max() == 0
    assert not any(map(miss, plain))
    assert compute_cost(points, fast) == pytest.approx(twin.cost(gaps, classes_of(fast)))
    best = find_best_start(points, start, 3, required)
    assert measure_misses(required, best.labels).max() == 0
    assert compute_cost(points, best.labels) <= compute_cost(points, fast) + 1e-9
    return compute_cost(points, fast) / max(twin.cost(gaps, plain), 1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_clusters_by_shares_are_those_of_the_twin_and_keep_every_quota(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n, size = int(chance.integers(12, 90)), int(chance.integers(2, 7))
    points = Points.from_array(chance.integers(0, 7, (n, 2)).astype(float))
    kind = np.unique(chance.integers(0, 5, n) ** 2 // 3, return_inverse=True)[1].astype(np.int32)
    quotas = Quotas.from_kinds(kind, size)
    rows = [np.flatnonzero(kind == v) for v in range(int(kind.max()) + 1)]
    with np.errstate(invalid="ignore"):  # empty boxes, if nothing is compiled
        labels = form_by_shares(points, kind, size, no_progress)
    assert labels.tolist() == shares_twin.by_shares(points.numbers, kind.tolist(), size)
    held = np.zeros((quotas.classes, len(rows)), int)
    np.add.at(held, (labels, kind), 1)
    assert (held >= quotas.always).all()
    assert (held <= quotas.always + 1).all()
    assert np.ptp(held.sum(axis=1)) <= 1


def test_strata_in_a_row_that_hold_one_value_are_one_pool() -> None:
    codes = np.array([0, 0, 0, 0, 0, 0, 0, 1, 2, 3])
    pool = number_pools(cut_strata(codes, 5), codes)
    assert pool.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 2, 2]

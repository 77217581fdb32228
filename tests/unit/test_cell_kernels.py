"""Kernels of the cell level against slow twins, compiled and not."""

from itertools import combinations

import numpy as np
import pytest

from kinfold.kernels import opening, statements
from kinfold.kernels.rollup import divide
from kinfold.methods.generalize.cell_classes import (
    Compositions,
    MergedClasses,
    StatementSearch,
    Trees,
    _tally_unions,
    find_nearest_classes,
    merge_classes,
)
from kinfold.methods.generalize.levels import CellLoss
from kinfold.methods.generalize.mingen_cell import generalize_classes, subset_costs
from kinfold.methods.generalize.patterns import concatenate_patterns, hash_cells
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.tables.tally import Tally
from reference import cell_level, full_domain
from uncompiled import uncompiled


def made(seed: int, rows: int = 40):
    table = full_domain.random_domain(seed, rows=rows)
    loss = CellLoss.from_objective(table, "granularity")
    trees = Trees.from_loss(loss)
    return table, loss, trees, trees.encode_rows(table)


@pytest.mark.parametrize("seed", range(10))
def test_what_two_records_say_together_is_their_lowest_common_ancestor(seed):
    table, _, trees, rows = made(seed, 12)
    for one, other in combinations(range(12), 2):
        expected = cell_level.lost(table, [one, other]) / 2
        assert statements.joint_loss(trees.forest, rows[one], rows[other]) == pytest.approx(expected, abs=1e-12)
        widened = rows[one].copy()
        uncompiled(statements.widen)(trees.forest, widened, rows[other])
        assert uncompiled(statements.statement_loss)(trees.forest, widened) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_classes_are_those_that_a_look_at_all_finds(seed):
    _, _, trees, rows = made(seed, 80)
    sizes = np.random.default_rng(seed).integers(1, 6, size=80)
    found, costs = find_nearest_classes(trees, rows, sizes, np.arange(80), 5)
    said = trees.loss[rows].sum(axis=1)
    for g in range(80):
        every = []
        for h in range(80):
            if h != g:
                both = statements.joint_loss(trees.forest, rows[g], rows[h])
                every.append((sizes[g] + sizes[h]) * both - sizes[g] * said[g] - sizes[h] * said[h])
        assert costs[g] == pytest.approx(sorted(every)[:5], abs=1e-9)
        assert g not in found[g]


def test_fewer_classes_than_asked_for_leave_room():
    _, _, trees, rows = made(1, 3)
    found, _ = find_nearest_classes(trees, rows, np.ones(3, np.int64), np.array([0]), 5)
    assert (found[0] >= 0).sum() == 2


def test_the_cost_of_every_subset_is_that_of_its_twin():
    table, loss, _, _ = made(3, 7)
    costs = subset_costs(loss)
    for subset in range(1, 2**7):
        members = [i for i in range(7) if subset >> i & 1]
        assert costs[subset] == pytest.approx(cell_level.lost(table, members), abs=1e-12)


def test_the_division_is_the_same_compiled_or_not():
    costs = np.random.default_rng(0).random(2**7)
    costs[[1, 2, 4, 8]] = np.inf
    results = []
    for function in (divide, uncompiled(divide)):
        best, choice = np.empty(2**7), np.zeros(2**7, np.int64)
        function(costs, best, choice)
        results.append((best.tolist(), choice.tolist()))
    assert results[0] == results[1]


def test_a_merge_is_judged_as_the_models_judge_it_in_the_whole_table():
    table, _, _, _ = made(5, 30)
    models = [KAnonymity(2), TCloseness(0.35, "disease", "equal"), LDiversity(2, "disease", "entropy")]
    one, other = np.arange(0, 29), np.arange(1, 30)
    judged = _tally_unions(table.tally, one, other)
    for i in range(29):
        into = np.arange(30)
        into[other[i]] = one[i]
        into[into > other[i]] -= 1
        alone = table.tally.merge(into, {})
        for model in models:
            assert model.failing(judged)[i] == model.failing(alone)[one[i]]


@pytest.mark.parametrize("diseases", [2, 3])
def test_make_ups_say_of_a_class_what_the_models_say(diseases):
    table = full_domain.random_domain(9, rows=50, diseases=diseases)
    models = [KAnonymity(3), TCloseness(0.3, "disease", "equal")]
    ups = Compositions.from_tally(table.tally, models)
    labels = np.random.default_rng(1).integers(0, 8, size=50)
    _, labels = np.unique(labels, return_inverse=True)
    made_up = np.bincount(labels, ups.weight).astype(int)
    tally = table.tally.merge(labels, {})
    assert ups.holds[made_up].tolist() == (~(models[0].failing(tally) | models[1].failing(tally))).tolist()


def test_too_many_confidential_values_are_not_tabled():
    table = full_domain.random_domain(2, rows=60, diseases=12)
    assert Compositions.from_tally(table.tally, [KAnonymity(2), LDiversity(3, "disease")]) is None
    assert Compositions.from_tally(table.tally, [KAnonymity(2)]).holds.tolist()[:4] == [False, False, True, True]


def test_merging_ends_with_classes_that_keep_every_promise():
    table, loss, trees, rows = made(8, 60)
    models = [KAnonymity(3), TCloseness(0.3, "disease", "equal")]
    done = merge_classes(MergedClasses.from_rows(rows, table.tally), trees, models)
    assert not any(model.failing(done.tally).any() for model in models)
    lost = (trees.loss[done.statements].sum(axis=1) * done.tally.sizes).sum() / 60
    released = generalize_classes(table, done.labels)
    assert loss.mean_loss(released.levels, released.suppressed) == pytest.approx(lost, abs=1e-12)
    assert isinstance(done.tally, Tally)


def search(seed, models, draws=0):
    """A table of 60 rows, its merged classes, and a search that begins with them."""
    table, _, trees, rows = made(seed, 60)
    labels = merge_classes(MergedClasses.from_rows(rows, table.tally), trees, models).labels
    space = StatementSearch(trees, rows, Compositions.from_tally(table.tally, models), draws)
    space.begin(labels)
    return table, labels, space


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("heat", [0.0, 0.5])
def test_the_cost_that_the_search_keeps_is_that_of_its_classes(seed, heat):
    table, _, space = search(seed, [KAnonymity(3)] if seed % 2 else [KAnonymity(3), LDiversity(2, "disease")])
    for _ in range(5):
        before = space.cost
        space.take_steps(np.full(20, heat))
        if heat == 0.0:
            assert space.cost <= before + 1e-9
        assert space.cost == pytest.approx(lost_by(table, space.classes.label), abs=1e-9)


def lost_by(table, labels):
    return sum(cell_level.lost(table, np.flatnonzero(labels == g).tolist()) for g in np.unique(labels))


def test_what_the_search_gives_up_is_not_its_best():
    table, start, space = search(3, [KAnonymity(3)])
    labels, cost = space.improve(start, space.cost)
    assert labels is start
    space.take_steps(np.zeros(200))
    labels, cheaper = space.improve(start, cost)
    assert cheaper < cost
    assert cheaper == pytest.approx(lost_by(table, labels), abs=1e-9)
    space.take_steps(np.full(200, 50.0))  # so hot that it only gets worse
    assert lost_by(table, space.classes.label) > cheaper
    assert space.improve(labels, cheaper)[0] is labels


def test_the_seed_decides_what_the_search_finds():
    found = []
    for seed in (0, 0, 1):
        _, _, space = search(3, [KAnonymity(3)], seed)
        space.take_steps(np.full(50, 0.5))
        found.append(space.classes.label.tolist())
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_grouped_by_what_each_pattern_shows(seed):
    chance = np.random.default_rng(seed)
    codes, stands = chance.integers(0, 2, (20, 5)).astype(np.int32), chance.integers(1, 3, 20)
    patterns = [columns for hidden in range(6) for columns in combinations(range(5), hidden)]
    shown = [[tuple(np.delete(row, columns)) for row in codes] for columns in patterns]
    hidden, first = concatenate_patterns(patterns)
    for group_alike in (opening.group_alike, uncompiled(opening.group_alike)):
        group, counts = np.empty((len(patterns), 20), np.int32), np.zeros(len(patterns), np.int64)
        groups = group_alike(hash_cells(codes), hidden, first, group, counts)
        assert groups == counts.sum() == group.max() + 1
        for p, keys in enumerate(shown):
            number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
            assert counts[p] == len(number)
            assert (group[p] - counts[:p].sum()).tolist() == [number[key] for key in keys]
    for count_alike in (opening.count_alike, uncompiled(opening.count_alike)):
        records = np.zeros(len(patterns), np.int64)
        count_alike(hash_cells(codes), stands, 4, hidden, first, records)
        for p, keys in enumerate(shown):
            size = {key: sum(n for other, n in zip(keys, stands, strict=True) if other == key) for key in keys}
            assert records[p] == sum(n for n in size.values() if n >= 4)

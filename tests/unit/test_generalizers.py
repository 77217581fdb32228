"""Generalizers: weights, sets, choices, hierarchies of every shape, and requests that cannot be met."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest

from kinfold.errors import PolicyError, Unreachable
from kinfold.hierarchies import build_from_intervals, build_from_mask, build_from_rows, build_from_tree
from kinfold.methods.generalize.datafly import datafly
from kinfold.methods.generalize.domain import MAX_ROWS_WITHOUT_KERNEL, Domain, number_keys
from kinfold.methods.generalize.lattice import Lattice, lattice
from kinfold.methods.generalize.levels import (
    Generalization,
    complete_starred_class,
    count_generalizations,
    leaf_losses,
    suppression_limit,
)
from kinfold.methods.generalize.mingen import mingen, preferred
from kinfold.methods.generalize.mingen_cell import mingen_cell
from kinfold.methods.generalize.mu_argus import Ranks, count_outliers, mu_argus
from kinfold.models import KAnonymity, TCloseness
from kinfold.papers.paper_002 import figure_4, figure_7, make_domain
from kinfold.tables.tally import Tally, tally_labels
from reference import full_domain

K2 = [KAnonymity(2)]


def one_column(values, tree, sizes=None) -> Domain:
    sizes = np.ones(len(values), np.int64) if sizes is None else np.array(sizes)
    return Domain.from_tally(Tally({"q": np.array(values, object)}, sizes), {"q": tree})


# Hierarchies


def test_a_hierarchy_that_lacks_values_is_refused_with_their_number_and_without_them():
    with pytest.raises(PolicyError, match="2 values of column 'q' are not in its hierarchy") as caught:
        one_column(["a", "x", "y"], build_from_rows([["a"], ["b"]]))
    assert "x" not in str(caught.value).split("hierarchy")[0]
    assert caught.value.problems[0].values == ("x", "y")


def test_a_column_without_a_hierarchy_is_refused():
    with pytest.raises(PolicyError, match="'q' has no hierarchy"):
        Domain.from_tally(Tally({"q": np.array(["a"], object)}, np.ones(1, np.int64)), {})


def test_unequal_depth_repeats_a_value_until_its_parent_and_releases_the_same_class():
    tree = build_from_tree({"lung": ["flu", "cold"], "stomach": {"ulcers": ["gastric", "peptic"]}})
    table = one_column(["flu", "flu", "gastric", "peptic"], tree)
    at_cells = mingen_cell(table, K2).generalization
    assert at_cells.columns()["q"].tolist() == ["flu", "flu", "ulcers", "ulcers"]
    assert at_cells.levels[:, 0].tolist() == [0, 0, 1, 1]
    assert lattice(table, K2).best.levels == (1,)


def test_a_label_at_two_levels_that_means_the_same_is_one_class():
    tree = build_from_rows([["a", "a", "ab"], ["b", "b", "ab"], ["c", "cd", "cd"], ["d", "cd", "cd"]])
    table = one_column(["a", "a", "c", "d"], tree)
    mixed = Generalization(table, np.array([[0], [1], [1], [2]]), np.zeros(4, bool))
    assert mixed.k == 2
    assert mixed.columns()["q"].tolist() == ["a", "a", "cd", "cd"]


def test_a_hierarchy_of_one_level_has_only_the_top_above_it():
    table = one_column(["a", "b", "c"], build_from_rows([["a"], ["b"], ["c"]]))
    assert table.heights == (1,)
    assert lattice(table, K2).best.levels == (1,)


def test_null_is_a_leaf_that_joins_at_the_top_and_loses_nothing_below():
    tree = build_from_rows([["a", "ab"], ["b", "ab"]])
    table = one_column(["a", "b", None, None], tree)
    found = lattice(table, K2)
    assert found.best.levels == (1,)
    assert found.generalization().columns()["q"].tolist() == ["ab", "ab", None, None]
    assert leaf_losses(tree)[2].tolist() == [0.0, 0.0, 1.0]


# Requests that cannot be met


@pytest.mark.parametrize(
    "method",
    [lattice, datafly, partial(datafly, suppression=0), lambda table, _: mu_argus(table, 5), mingen, mingen_cell],
    ids=["lattice", "datafly", "datafly without suppression", "mu-argus", "mingen", "mingen-cell"],
)
def test_fewer_than_k_records_are_unreachable(method):
    with pytest.raises(Unreachable):
        method(one_column(["a", "b", "c"], build_from_rows([["a"], ["b"], ["c"]])), [KAnonymity(5)])


def test_nothing_to_prefer_is_unreachable():
    with pytest.raises(Unreachable):
        preferred([])


@pytest.mark.parametrize("suppression", [-1, -0.1, 1.5, float("nan")])
def test_a_threshold_is_a_count_or_a_share(suppression):
    with pytest.raises(PolicyError, match="suppression is"):
        suppression_limit(suppression, 100)


# Datafly


def test_datafly_generalizes_until_the_budget_given_is_kept():
    table = figure_7()
    found = datafly(table, K2, suppression=0)
    assert found.generalization.records_suppressed == 0
    assert found.generalization.holds(K2)
    assert all(step.outliers > 0 for step in found.steps[:-1])


def test_datafly_suppresses_the_smallest_class_too_while_fewer_than_k_are_suppressed():
    table = one_column(["a", "b", "c"], build_from_rows([["a"], ["b"], ["c"]]), [5, 4, 1])
    found = datafly(table, [KAnonymity(3)]).generalization
    assert found.suppressed.tolist() == [False, True, True]


def test_frequency_lists_are_those_of_the_released_labels():
    table = drawn_domain()
    steps = datafly(table, [KAnonymity(4)], suppression=0).steps
    assert len(steps) > 2
    for listed in steps:
        whole = Generalization.full_domain(table, listed.levels)
        sequences = list(zip(*whole.columns().values(), strict=True))
        counts: dict[tuple[str, ...], int] = {}
        for sequence in sequences:
            counts[sequence] = counts.get(sequence, 0) + 1
        assert dict(zip(zip(*listed.columns.values(), strict=True), listed.counts.tolist(), strict=True)) == counts
        assert [{sequences[row] for row in rows} for rows in listed.rows] == [{sequence} for sequence in counts]
        assert listed.distinct == {name: len(set(whole.columns()[name])) for name in table.names}
        assert listed.outliers == sum(count for count in counts.values() if count < 4)


@pytest.mark.parametrize(
    "method",
    [lambda table: datafly(table, K2, suppression=0), lambda table: mu_argus(table, 2)],
    ids=["datafly", "mu-argus"],
)
def test_a_search_holds_no_object_for_each_tuple(method):
    draw = np.random.default_rng(0)
    codes = np.unique(draw.integers(0, 100, (30_000, 4)), axis=0).astype(np.int32)
    tree = build_from_rows([[f"{v:02}", f"{v // 10}", "*"] for v in range(100)])
    table = Domain(("a", "b", "c", "d"), (tree,) * 4, codes, Tally({}, np.ones(len(codes), np.int64)))
    method(table)  # kernels and cached properties
    tracemalloc.start()
    try:
        result = method(table)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.generalization.suppressed is not None
    assert held < 50 * len(codes), "levels and numbers of patterns, but no list for each tuple"
    assert peak < 200 * len(codes), "some arrays of numbers"


# mu-Argus


def test_the_holder_can_generalize_more_by_a_list_or_when_asked():
    table, ranks = figure_7(), Ranks(("race",), ("gender", "zip"), ("birth",))
    listed = mu_argus(table, 2, ranks, holder=["zip", "birth"])
    asked = mu_argus(
        table, 2, ranks, holder=lambda levels, outliers: "zip" if levels[3] == 0 and any(outliers) else None
    )
    assert listed.levels == (0, 2, 0, 1)
    assert asked.levels == (0, 1, 0, 1)


def test_mu_argus_refuses_ranks_that_leave_a_column_out_and_a_step_above_the_top():
    with pytest.raises(PolicyError, match="each quasi-identifier once"):
        mu_argus(figure_4(), 2, Ranks(("race",)))
    with pytest.raises(PolicyError, match="at its top level"):
        mu_argus(figure_4(), 2, holder=["race"] * 3)
    with pytest.raises(PolicyError, match="is called 'zpi'"):
        mu_argus(figure_4(), 2, holder=["zpi"])


def test_the_combinations_of_figure_12_find_fewer_outliers():
    ranks = Ranks(("race",), ("gender", "zip"), ("birth",))
    every, some = (mu_argus(figure_7(), 2, ranks, tested=tested) for tested in ("all", "figure-12"))
    assert set(some.outliers[6]) == {("race", "birth", "zip")}
    assert set(some.outliers[7]) < set(every.outliers[7])


# Suppression


def test_starred_records_keep_the_promises_as_a_class_of_their_own():
    tally = tally_labels(np.repeat(np.arange(4), [1, 3, 4, 9]))
    gone = complete_starred_class([KAnonymity(3)], tally, np.array([True, False, False, False]))
    assert gone.tolist() == [True, True, False, False]


def test_completing_with_stars_counts_them_in_what_t_closeness_compares_with():
    table = full_domain.random_domain(11, rows=40)
    models = [KAnonymity(2), TCloseness(0.4, "disease", "equal")]
    done = Generalization.full_domain(table, (*table.heights[:-1], 0)).complete(models, starred=True)
    starred = done.domain.tally.merge(done.classes(), {})
    assert not any(model.failing(starred).any() for model in models)


def test_completing_raises_where_nothing_would_be_left():
    with pytest.raises(Unreachable, match="no class"):
        Generalization.full_domain(figure_7(), (0, 0, 0, 0)).complete(K2)


# Large and small inputs take different ways to the same end


def test_numbering_by_kernel_and_by_numpy_agree():
    random = np.random.default_rng(4)
    for space in (50, 10**6, 2**61):
        keys = random.integers(0, space, size=MAX_ROWS_WITHOUT_KERNEL + 500)
        seen: dict[int, int] = {}
        expected = [seen.setdefault(int(key), len(seen)) for key in keys]
        into, classes = number_keys(keys, space)
        assert into.tolist() == expected
        assert classes == len(seen)
        assert number_keys(keys[:MAX_ROWS_WITHOUT_KERNEL], space)[0].tolist() == expected[:MAX_ROWS_WITHOUT_KERNEL]


def test_views_rolled_up_from_views_below_are_those_of_the_rows():
    table = full_domain.random_domain(7, rows=MAX_ROWS_WITHOUT_KERNEL + 100, columns=4)
    middle = table.roll_up([min(1, height) for height in table.heights])
    for levels in (list(table.heights), [min(2, height) for height in table.heights]):
        direct, rolled = table.roll_up(levels), table.roll_up(levels, middle)
        assert direct.rows.tolist() == rolled.rows.tolist()
        assert direct.tally.sizes.tolist() == rolled.tally.sizes.tolist()
        one, other = direct.tally.spreads["disease"], rolled.tally.spreads["disease"]
        assert (one.group == other.group).all()
        assert (one.count == other.count).all()


def test_more_attributes_than_fit_into_one_number_are_grouped_in_turns():
    tree = build_from_rows([[f"v{v}"] for v in range(200)])
    random = np.random.default_rng(2)
    rows = random.integers(0, 200, size=(50, 12)).repeat(2, axis=0)
    table = make_domain(
        [[f"v{v}" for v in row] for row in rows], [f"q{a}" for a in range(12)], {f"q{a}": tree for a in range(12)}
    )
    assert table.roll_up((0,) * 12).tally.sizes.tolist() == [2] * 50


def test_a_lattice_can_be_searched_in_steps():
    table = full_domain.random_domain(8, rows=100, columns=4)
    search = Lattice(table, [KAnonymity(3)], 0.1)
    while not search.proved:
        search.search(steps=1)
    assert search.search().levels == lattice(table, [KAnonymity(3)], 0.1).best.levels
    assert search.size == count_generalizations(table.heights)


@pytest.mark.compiled
def test_a_cell_level_search_of_seconds_is_repeated_by_its_steps():
    table = full_domain.random_domain(5, rows=200)
    for seconds in (0.3, 3.0, 30.0):  # on a loaded machine the first one may end before a step is taken
        timed = mingen_cell(table, [KAnonymity(3)], seconds=seconds)
        if timed.steps:
            break
    again = mingen_cell(table, [KAnonymity(3)], steps=timed.steps)
    assert timed.steps > 0
    assert (timed.labels == again.labels).all()


def test_datafly_goes_on_where_it_would_suppress_every_record():
    values = ["021", "022", "131", "132"]
    table = one_column(values, build_from_rows([[value, value[0], "*"] for value in values]))
    assert datafly(table, [KAnonymity(2)], suppression=4).generalization.vector == (1,)
    with pytest.raises(Unreachable, match="with every column at its top level, 4 of 4 records"):
        datafly(table, [KAnonymity(5)], suppression=0)


# Where mu-Argus stands between its steps, against what it does when it is run.


def drawn_domain() -> Domain:
    draw = np.random.default_rng(3)
    zips = np.array([f"0{n}" for n in draw.integers(2100, 2140, 60)], object)
    ages = np.array([str(n) for n in draw.integers(20, 60, 60)], object)
    hierarchies = {
        "zip": build_from_mask(sorted(set(zips)), 3),
        "age": build_from_intervals(sorted(set(ages)), [5, 20]),
    }
    return Domain.from_tally(Tally({"zip": zips, "age": ages}, np.ones(60, np.int64)), hierarchies)


def test_each_choice_leads_where_it_was_said_to_lead() -> None:
    table, choices = drawn_domain(), []
    for _ in range(3):
        now = count_outliers(table, 3, choices)
        run = mu_argus(table, 3, holder=choices)
        assert tuple(now.levels.values()) == run.levels
        assert now.outliers == sum(1 for combos in run.outliers if combos)
        assert all(n <= now.outliers for n in now.combinations.values())
        if not now.next:
            return
        name = min(now.next, key=lambda each: now.next[each])
        choices.append(name)
        assert count_outliers(table, 3, choices).outliers == now.next[name]

"""Generalizers: weights, sets, choices, hierarchies of every shape, and requests that cannot be met."""

import numpy as np
import pytest

from kinfold.errors import PolicyError, Unreachable
from kinfold.hierarchy import by_rows, by_tree
from kinfold.methods.generalize.datafly import Weights, datafly
from kinfold.methods.generalize.domain import FEW, Domain, numbered
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.lattice import Lattice, lattice
from kinfold.methods.generalize.loss import generalizations, leaves_lost
from kinfold.methods.generalize.mingen import mingen, preferred
from kinfold.methods.generalize.mingen_cell import mingen_cell
from kinfold.methods.generalize.mu_argus import Ranks, mu_argus
from kinfold.methods.generalize.outliers import completed, threshold
from kinfold.models import KAnonymity, TCloseness
from kinfold.reproduction.paper_002 import domain, figure_4, figure_7
from kinfold.rows.tally import Tally, of_labels
from reference import full_domain

K2 = [KAnonymity(2)]


def one_column(values, tree, sizes=None) -> Domain:
    sizes = np.ones(len(values), np.int64) if sizes is None else np.array(sizes)
    return Domain.of_tally(Tally({"q": np.array(values, object)}, sizes), {"q": tree})


# Hierarchies


def test_a_hierarchy_that_lacks_values_is_refused_with_their_number_and_without_them():
    with pytest.raises(PolicyError, match="2 values of column 'q' are not in its hierarchy") as caught:
        one_column(["a", "x", "y"], by_rows([["a"], ["b"]]))
    assert "x" not in str(caught.value).split("hierarchy")[0]
    assert caught.value.problems[0].values == ("x", "y")


def test_a_column_without_a_hierarchy_is_refused():
    with pytest.raises(PolicyError, match="'q' has no hierarchy"):
        Domain.of_tally(Tally({"q": np.array(["a"], object)}, np.ones(1, np.int64)), {})


def test_a_hierarchy_that_is_no_tree_is_refused():
    with pytest.raises(PolicyError, match="more than one parent"):
        by_rows([["a", "ab", "x"], ["b", "ab", "y"]])


def test_unequal_depth_repeats_a_value_until_its_parent_and_releases_the_same_class():
    tree = by_tree({"lung": ["flu", "cold"], "stomach": {"ulcers": ["gastric", "peptic"]}})
    table = one_column(["flu", "flu", "gastric", "peptic"], tree)
    at_cells = mingen_cell(table, K2).generalization
    assert at_cells.columns()["q"].tolist() == ["flu", "flu", "ulcers", "ulcers"]
    assert at_cells.levels[:, 0].tolist() == [0, 0, 1, 1]
    assert lattice(table, K2).best.levels == (1,)


def test_a_label_at_two_levels_that_means_the_same_is_one_class():
    tree = by_rows([["a", "a", "ab"], ["b", "b", "ab"], ["c", "cd", "cd"], ["d", "cd", "cd"]])
    table = one_column(["a", "a", "c", "d"], tree)
    mixed = Generalization(table, np.array([[0], [1], [1], [2]]), np.zeros(4, bool))
    assert mixed.k == 2
    assert mixed.columns()["q"].tolist() == ["a", "a", "cd", "cd"]


def test_a_hierarchy_of_one_level_has_only_the_top_above_it():
    table = one_column(["a", "b", "c"], by_rows([["a"], ["b"], ["c"]]))
    assert table.heights == (1,)
    assert lattice(table, K2).best.levels == (1,)


def test_null_is_a_leaf_that_joins_at_the_top_and_loses_nothing_below():
    tree = by_rows([["a", "ab"], ["b", "ab"]])
    table = one_column(["a", "b", None, None], tree)
    found = lattice(table, K2)
    assert found.best.levels == (1,)
    assert found.generalization().columns()["q"].tolist() == ["ab", "ab", None, None]
    assert leaves_lost(tree)[2].tolist() == [0.0, 0.0, 1.0]


# Requests that cannot be met


@pytest.mark.parametrize(
    "method",
    [
        lambda table: lattice(table, [KAnonymity(5)]),
        lambda table: datafly(table, [KAnonymity(5)]),
        lambda table: datafly(table, [KAnonymity(5)], suppression=0),
        lambda table: mu_argus(table, 5),
        lambda table: mingen(table, [KAnonymity(5)]),
        lambda table: mingen_cell(table, [KAnonymity(5)]),
    ],
    ids=["lattice", "datafly", "datafly without suppression", "mu-argus", "mingen", "mingen-cell"],
)
def test_fewer_than_k_records_are_unreachable(method):
    with pytest.raises(Unreachable):
        method(one_column(["a", "b", "c"], by_rows([["a"], ["b"], ["c"]])))


def test_nothing_to_prefer_is_unreachable():
    with pytest.raises(Unreachable):
        preferred([])


@pytest.mark.parametrize("suppression", [-1, -0.1, 1.5, float("nan")])
def test_a_threshold_is_a_count_or_a_share(suppression):
    with pytest.raises(PolicyError, match="suppression is"):
        threshold(suppression, 100)


# Datafly


def test_datafly_generalizes_until_the_budget_given_is_kept():
    table = figure_7()
    found = datafly(table, K2, suppression=0)
    assert found.generalization.records_suppressed == 0
    assert found.generalization.holds(K2)
    assert all(step[0].outliers > 0 for step in found.steps[:-1])


def test_datafly_suppresses_the_smallest_class_too_while_fewer_than_k_are_suppressed():
    table = one_column(["a", "b", "c"], by_rows([["a"], ["b"], ["c"]]), [5, 4, 1])
    found = datafly(table, [KAnonymity(3)]).generalization
    assert found.suppressed.tolist() == [False, True, True]


def test_weights_decide_which_attribute_is_generalized():
    table = figure_4()
    assert datafly(table, K2, suppression=0).generalization.vector == (0, 1)
    spared = Weights(preference={"zip": 0.1})
    assert datafly(table, K2, suppression=0, weights=spared).generalization.vector == (1, 0)
    unlinked = Weights(linking={"zip": 0.0})
    assert datafly(table, K2, suppression=0, weights=unlinked).generalization.vector == (1, 0)


def test_each_set_of_a_quasi_identifier_keeps_k_by_itself():
    table = figure_7()
    sets = [("race", "gender"), ("birth", "zip")]
    found = datafly(table, K2, sets=sets).generalization
    for names in sets:
        assert found.tally(names).sizes.min() >= 2
    assert len(datafly(table, K2, sets=sets).steps[0]) == 2


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"sets": [("zpi",)]}, "zpi"),
        ({"weights": Weights(linking={"zip": 2.0})}, "between 0 and 1"),
        ({"sets": [()]}, "empty"),
    ],
)
def test_datafly_refuses_what_it_does_not_know(options, what):
    with pytest.raises(PolicyError, match=what):
        datafly(figure_4(), K2, **options)


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
    with pytest.raises(PolicyError, match="at the top"):
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
    tally = of_labels(np.repeat(np.arange(4), [1, 3, 4, 9]))
    gone = completed([KAnonymity(3)], tally, np.array([True, False, False, False]))
    assert gone.tolist() == [True, True, False, False]


def test_completing_with_stars_counts_them_in_what_t_closeness_compares_with():
    table = full_domain.random_domain(11, rows=40)
    models = [KAnonymity(2), TCloseness(0.4, "disease", "equal")]
    done = Generalization.full(table, (*table.heights[:-1], 0)).completed(models, starred=True)
    starred = done.domain.tally.merge(done.classes(), {})
    assert not any(model.failing(starred).any() for model in models)


def test_completing_raises_where_nothing_would_be_left():
    with pytest.raises(Unreachable, match="no class"):
        Generalization.full(figure_7(), (0, 0, 0, 0)).completed(K2)


# Large and small inputs take different ways to the same end


def test_numbering_by_kernel_and_by_numpy_agree():
    random = np.random.default_rng(4)
    for space in (50, 10**6, 2**61):
        keys = random.integers(0, space, size=FEW + 500)
        seen: dict[int, int] = {}
        expected = [seen.setdefault(int(key), len(seen)) for key in keys]
        into, classes = numbered(keys, space)
        assert into.tolist() == expected
        assert classes == len(seen)
        assert numbered(keys[:FEW], space)[0].tolist() == expected[:FEW]


def test_views_rolled_up_from_views_below_are_those_of_the_rows():
    table = full_domain.random_domain(7, rows=FEW + 100, columns=4)
    middle = table.at([min(1, height) for height in table.heights])
    for levels in (list(table.heights), [min(2, height) for height in table.heights]):
        direct, rolled = table.at(levels), table.at(levels, middle)
        assert direct.rows.tolist() == rolled.rows.tolist()
        assert direct.tally.sizes.tolist() == rolled.tally.sizes.tolist()
        one, other = direct.tally.spreads["disease"], rolled.tally.spreads["disease"]
        assert (one.group == other.group).all()
        assert (one.count == other.count).all()


def test_more_attributes_than_fit_into_one_number_are_grouped_in_turns():
    tree = by_rows([[f"v{v}"] for v in range(200)])
    random = np.random.default_rng(2)
    rows = random.integers(0, 200, size=(50, 12)).repeat(2, axis=0)
    table = domain(
        [[f"v{v}" for v in row] for row in rows], [f"q{a}" for a in range(12)], {f"q{a}": tree for a in range(12)}
    )
    assert table.at((0,) * 12).tally.sizes.tolist() == [2] * 50


def test_a_lattice_can_be_searched_in_steps():
    table = full_domain.random_domain(8, rows=100, columns=4)
    search = Lattice(table, [KAnonymity(3)], 0.1)
    while not search.proved:
        search.search(steps=1)
    assert search.search().levels == lattice(table, [KAnonymity(3)], 0.1).best.levels
    assert search.size == generalizations(table.heights)


@pytest.mark.compiled
def test_a_cell_level_search_of_seconds_is_repeated_by_its_steps():
    table = full_domain.random_domain(5, rows=200)
    timed = mingen_cell(table, [KAnonymity(3)], seconds=0.3)
    again = mingen_cell(table, [KAnonymity(3)], steps=timed.steps)
    assert timed.steps > 0
    assert (timed.labels == again.labels).all()


def test_datafly_goes_on_where_it_would_suppress_every_record():
    values = ["021", "022", "131", "132"]
    table = one_column(values, by_rows([[value, value[0], "*"] for value in values]))
    assert datafly(table, [KAnonymity(2)], suppression=4).generalization.vector == (1,)
    with pytest.raises(Unreachable, match="with every attribute at the top 4 of 4 records"):
        datafly(table, [KAnonymity(5)], suppression=0)

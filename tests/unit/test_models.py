"""What the models refuse, and the edges of what they answer."""

from __future__ import annotations

import numpy as np
import pytest

from kinfold.errors import DataError, PolicyError
from kinfold.hierarchy import Hierarchy
from kinfold.models import AlphaK, KAnonymity, LDiversity, PSensitive, TCloseness, emd
from kinfold.rows.tally import Spread, Tally, of_labels

TREE = Hierarchy.of([("flu", "lungs"), ("cold", "lungs"), ("ulcer", "stomach")])


@pytest.mark.parametrize(
    "make",
    [
        lambda: TCloseness(0.0, "x"),
        lambda: TCloseness(1.01, "x"),
        lambda: TCloseness(float("nan"), "x"),
        lambda: TCloseness(0.2, "x", "hierarchical"),
        lambda: TCloseness(0.2, "x", "equal", TREE),
        lambda: TCloseness(0.2, "x", "euclid"),
        lambda: LDiversity(0, "x"),
        lambda: LDiversity(2.5, "x"),
        lambda: LDiversity(float("nan"), "x", "entropy"),
        lambda: LDiversity(2, "x", "some"),
        lambda: LDiversity(2, "x", "recursive", 0.0),
        lambda: PSensitive(0, "x"),
        lambda: PSensitive(1.5, "x"),
        lambda: AlphaK(0.0, "x"),
        lambda: AlphaK(1.5, "x"),
    ],
)
def test_a_model_that_means_nothing_is_a_policy_error(make):
    with pytest.raises(PolicyError):
        make()


@pytest.mark.parametrize(
    "model",
    [
        KAnonymity(2),
        TCloseness(0.2, "x"),
        TCloseness(0.2, "x", "equal"),
        LDiversity(2, "x"),
        LDiversity(2, "x", "entropy"),
        LDiversity(2, "x", "recursive"),
        PSensitive(2, "x"),
        AlphaK(0.5, "x"),
    ],
)
def test_a_table_without_records_promises_nothing(model):
    none = np.zeros(0, np.int64)
    finding = model.check(Tally({}, none, {"x": Spread(none, none, none, np.zeros(0))}))
    assert not finding.holds
    assert (finding.failing, finding.found) == (0, 0)


def test_a_constant_column_is_close_everywhere_and_diverse_nowhere():
    tally = of_labels(np.array([0, 0, 1]), {"x": [7, 7, 7]})
    assert TCloseness(0.01, "x").check(tally).found == 0
    assert TCloseness(0.01, "x", "equal").check(tally).found == 0
    assert LDiversity(2, "x").check(tally).failing == 2


def test_null_is_one_more_value_and_sorts_first():
    tally = of_labels(np.array([0, 0, 1, 1]), {"x": np.array([np.nan, np.nan, 1.0, 2.0])})
    # null, 1, 2: the first class has to move half its weight by 1.5 steps of two on average
    assert TCloseness(0.1, "x").distances(tally).tolist() == [0.375, 0.375]
    assert LDiversity(2, "x").levels(tally).tolist() == [1.0, 2.0]


def test_null_stands_under_nothing_but_the_top_of_a_hierarchy():
    tally = of_labels(np.array([0, 1]), {"x": np.array([None, "flu"], object)})
    assert TCloseness(0.1, "x", "hierarchical", TREE).distances(tally).tolist() == [0.5, 0.5]


def test_a_value_outside_the_hierarchy_is_counted_and_not_named():
    tally = of_labels(np.array([0, 1]), {"x": np.array(["mumps", "flu"])})
    with pytest.raises(DataError, match="lacks 1 of its 2 values") as caught:
        TCloseness(0.1, "x", "hierarchical", TREE).check(tally)
    assert "mumps" not in caught.value.text()


def test_values_that_no_record_holds_any_more_do_not_lengthen_the_way():
    tally = of_labels(np.array([0, 0, 1, 1, 2]), {"x": [1, 3, 1, 3, 2]}).drop(np.array([False, False, True]))
    assert TCloseness(0.1, "x").distances(tally).tolist() == [0.0, 0.0]
    whole = of_labels(np.array([0, 1]), {"x": [1, 3]})
    assert TCloseness(0.1, "x").distances(whole).tolist() == [0.5, 0.5]


def test_classes_and_values_may_come_in_any_order():
    tally = of_labels(np.array([0, 0, 1, 1]), {"x": [1, 2, 3, 4]})
    spread = tally.spreads["x"]
    back = Spread(spread.group[::-1], spread.code[::-1], spread.count[::-1], spread.values)
    for distance in (emd.ordered, emd.equal):
        assert distance(back, tally.sizes).tolist() == distance(spread, tally.sizes).tolist()


def test_whole_numbers_and_floats_agree(monkeypatch):
    chance = np.random.default_rng(0)
    tally = of_labels(chance.integers(0, 9, 500), {"x": chance.integers(0, 90, 500)})
    exact = [distance(tally.spreads["x"], tally.sizes) for distance in (emd.ordered, emd.equal)]
    monkeypatch.setattr(emd, "SAFE", 0)
    rounded = [distance(tally.spreads["x"], tally.sizes) for distance in (emd.ordered, emd.equal)]
    assert np.allclose(exact, rounded, rtol=1e-12)


def test_a_class_at_the_limit_is_at_the_limit():
    tally = of_labels(np.array([0, 0, 1, 1]), {"x": [1, 2, 3, 4]})
    assert TCloseness(1 / 3, "x").check(tally).holds
    assert not TCloseness(1 / 3 - 1e-9, "x").check(tally).holds


def test_where_sums_are_floats_a_hair_is_forgiven(monkeypatch):
    tally = of_labels(np.array([0, 0, 1, 1]), {"x": [1, 2, 3, 4]})
    monkeypatch.setattr(emd, "SAFE", 0)
    assert TCloseness(1 / 3 - 1e-13, "x").check(tally).holds
    assert not TCloseness(1 / 3 - 1e-9, "x").check(tally).holds


def test_a_hair_above_the_limit_is_above_where_sums_are_whole():
    tally = of_labels(np.array([0, 0, 1, 1]), {"x": [1, 2, 3, 4]})
    assert not TCloseness(1 / 3 - 1e-13, "x").check(tally).holds
    tenth = of_labels(np.repeat([0, 1], 10), {"x": ["a"] * 6 + ["b"] * 4 + ["a"] * 4 + ["b"] * 6})
    assert TCloseness(0.1, "x", "equal").check(tenth).holds  # a tenth is 0.1, whatever binary makes of it


def test_only_distinct_values_are_never_lost_by_a_merge():
    assert [LDiversity(2, "x", kind).absorbing for kind in ("distinct", "entropy", "recursive")] == [True, False, False]


@pytest.mark.parametrize("k", [0, -1, 2.5, "5", True, None])
def test_k_is_a_whole_number_from_one_up(k):
    with pytest.raises(PolicyError, match="k is"):
        KAnonymity(k)

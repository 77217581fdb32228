"""The earth mover's distance against a linear program and against scipy."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from kinfold.hierarchies import Hierarchy
from kinfold.models import AlphaK, KAnonymity, LDiversity, PSensitive, TCloseness
from kinfold.models import t_closeness as emd
from kinfold.tables.tally import Spread, tally_labels
from reference import emd as twin

TREE = [
    ("flu", "lungs", "chest", "*"),
    ("cold", "lungs", "chest", "*"),
    ("angina", "heart", "chest", "*"),
    ("ulcer", "stomach", "belly", "*"),
    ("gastritis", "stomach", "belly", "*"),
    ("colitis", "colon", "belly", "*"),
]
NAMES = [row[0] for row in TREE]
few_records = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=20)


def tally_rows(rows: list[tuple[int, int]], names: list | None = None):
    labels = np.unique([label for label, _ in rows], return_inverse=True)[1]
    column = np.array([names[code] if names else code for _, code in rows])
    return tally_labels(labels, {"x": column}), labels, column


def by_program(labels: np.ndarray, column: np.ndarray, ground) -> list[float]:
    values, code = np.unique(column, return_inverse=True)
    whole = np.bincount(code) / len(code)
    distance = ground(values)
    shares = [np.bincount(code[labels == g], minlength=len(values)) for g in range(labels.max() + 1)]
    return [twin.emd(share / share.sum(), whole, distance) for share in shares]


@settings(max_examples=40, deadline=None)
@given(few_records)
def test_ordered_distance_is_the_least_work_over_distinct_values(rows):
    tally, labels, column = tally_rows(rows)
    expected = by_program(labels, column, lambda values: twin.steps(len(values)))
    assert TCloseness(0.5, "x").distances(tally) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(few_records)
def test_equal_distance_is_the_least_work_between_different_values(rows):
    tally, labels, column = tally_rows(rows)
    expected = by_program(labels, column, lambda values: twin.unequal(len(values)))
    assert TCloseness(0.5, "x", "equal").distances(tally) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(few_records)
def test_hierarchical_distance_is_the_least_work_over_lowest_common_ancestors(rows):
    tally, labels, column = tally_rows(rows, NAMES)
    labels_of = dict(zip(NAMES, TREE, strict=True))
    expected = by_program(labels, column, lambda values: twin.ancestors([labels_of[value] for value in values]))
    found = TCloseness(0.5, "x", "hierarchical", Hierarchy.from_rows(TREE)).distances(tally)
    assert found == pytest.approx(expected, abs=1e-9)


@given(few_records, st.integers(1, 1000))
def test_ordered_distance_is_scipys_over_ranks_divided_by_the_longest_way(rows, scale):
    tally, labels, column = tally_rows([(label, code * scale) for label, code in rows])
    ranks = np.unique(column, return_inverse=True)[1]
    longest = max(ranks.max(), 1)
    expected = [wasserstein_distance(ranks[labels == g], ranks) / longest for g in range(labels.max() + 1)]
    assert TCloseness(0.5, "x").distances(tally) == pytest.approx(expected, abs=1e-12)


@given(few_records, st.sampled_from(["ordered", "equal"]))
def test_merging_classes_never_takes_them_farther_from_the_table(rows, distance):
    tally, _, _ = tally_rows(rows)
    if len(tally) < 2:
        return
    into = np.maximum(np.arange(len(tally)) - 1, 0)
    merged = tally.merge(into, {})
    before, after = (TCloseness(0.5, "x", distance).distances(t) for t in (tally, merged))
    assert after[0] <= before[:2].max() + 1e-12
    assert after[1:] == pytest.approx(before[2:], abs=1e-15)


@given(few_records)
def test_one_class_of_everything_is_at_distance_zero(rows):
    tally, _, _ = tally_rows([(0, code) for _, code in rows])
    assert [TCloseness(0.5, "x", d).distances(tally).tolist() for d in ("ordered", "equal")] == [[0.0], [0.0]]


MODELS = [
    TCloseness(0.5, "x"),
    TCloseness(0.5, "x", "equal"),
    TCloseness(0.5, "x", "hierarchical", Hierarchy.from_rows(TREE)),
]


@settings(max_examples=40, deadline=None)
@given(few_records, st.integers(1, 4), st.randoms())
def test_classes_taken_some_at_a_time_in_any_order_are_as_far_as_all_at_once(rows, at_a_time, random):
    tally, _, _ = tally_rows(rows, NAMES)
    whole = [model.work(tally).work.tolist() for model in MODELS]
    spread = tally.spreads["x"]
    order = random.sample(range(len(spread.group)), len(spread.group))
    shuffled = Spread(spread.group[order], spread.code[order], spread.count[order], spread.values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emd, "CLASSES_PER_CHUNK", at_a_time)
        for held in (tally, replace(tally, spreads={"x": shuffled})):
            assert [model.work(held).work.tolist() for model in MODELS] == whole


@pytest.mark.parametrize("at_a_time", [1, 2, 9])
def test_classes_without_a_record_are_at_no_distance(at_a_time, monkeypatch):
    monkeypatch.setattr(emd, "CLASSES_PER_CHUNK", at_a_time)
    column = np.array(["cold", "flu", "flu"])
    empty, full = (tally_labels(np.array(labels), {"x": column}) for labels in ([1, 1, 4], [0, 0, 1]))
    empty = replace(empty, sizes=np.array([0, 2, 0, 0, 1, 0, 0]))
    for model in MODELS:
        expected = model.distances(full).tolist()
        assert model.distances(empty).tolist() == [0.0, expected[0], 0.0, 0.0, expected[1], 0.0, 0.0]


@pytest.mark.parametrize("order", [[1, 0, 2, 3], [0, 1, 3, 2], [2, 3, 0, 1], [0, 2, 1, 3], [3, 2, 1, 0]], ids=str)
def test_cells_may_stand_in_any_order(order):
    tally = tally_labels(np.array([0, 0, 0, 1, 1]), {"x": np.array(["cold", "flu", "flu", "angina", "ulcer"])})
    spread = tally.spreads["x"]
    moved = Spread(spread.group[order], spread.code[order], spread.count[order], spread.values)
    for model in MODELS:
        assert model.distances(replace(tally, spreads={"x": moved})).tolist() == model.distances(tally).tolist()


# The models of diversity against their definitions, written plainly


records = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30)
models = st.one_of(
    st.integers(1, 6).map(KAnonymity),
    st.integers(1, 4).map(lambda l: LDiversity(l, "x")),
    st.floats(1, 4).map(lambda l: LDiversity(l, "x", "entropy")),
    st.tuples(st.integers(1, 4), st.sampled_from([0.1, 0.5, 1.0, 2.0, 3.3])).map(
        lambda a: LDiversity(a[0], "x", "recursive", a[1])
    ),
    st.integers(1, 4).map(lambda p: PSensitive(p, "x")),
    st.floats(0.1, 1).map(lambda alpha: AlphaK(alpha, "x")),
    st.floats(0.01, 1).map(lambda t: TCloseness(t, "x")),
    st.floats(0.01, 1).map(lambda t: TCloseness(t, "x", "equal")),
)


def tallied(rows):
    labels = np.unique([label for label, _ in rows], return_inverse=True)[1]
    column = [code for _, code in rows]
    counts = [Counter(c for l, c in zip(labels, column, strict=True) if l == g) for g in range(labels.max() + 1)]
    return tally_labels(labels, {"x": column}), counts


@given(records, st.integers(1, 5))
def test_distinct_diversity_and_sensitivity_count_values(rows, l):
    tally, counts = tallied(rows)
    expected = [len(count) < l for count in counts]
    assert LDiversity(l, "x").failing(tally).tolist() == expected
    assert PSensitive(l, "x").failing(tally).tolist() == expected
    assert LDiversity(l, "x").check(tally).found == min(map(len, counts))


@given(records)
def test_entropy_diversity_is_the_exponential_of_the_entropy(rows):
    tally, counts = tallied(rows)
    expected = [
        math.exp(-sum(v / count.total() * math.log(v / count.total()) for v in count.values())) for count in counts
    ]
    assert LDiversity(2, "x", "entropy").levels(tally) == pytest.approx(expected)


@given(records, st.integers(1, 5), st.sampled_from(["0.1", "0.5", "1", "1.5", "3.3"]))
def test_recursive_diversity_compares_the_most_frequent_value_with_the_tail(rows, l, c):
    tally, counts = tallied(rows)
    expected = []
    for count in counts:
        r = sorted(count.values(), reverse=True)
        expected.append(not r[0] < Fraction(c) * sum(r[l - 1 :]))
    model = LDiversity(l, "x", "recursive", float(c))
    assert model.failing(tally).tolist() == expected
    assert (model.check(tally).found >= l) == (not any(expected))


@given(records, st.sampled_from(["0.1", "0.25", "0.3", "0.5", "0.6", "1"]))
def test_alpha_limits_the_share_of_every_value(rows, alpha):
    tally, counts = tallied(rows)
    expected = [Fraction(max(count.values()), count.total()) > Fraction(alpha) for count in counts]
    assert AlphaK(float(alpha), "x").failing(tally).tolist() == expected


@given(records, models)
def test_what_a_model_calls_monotone_stays_kept_when_classes_merge(rows, model):
    tally, _ = tallied(rows)
    assert model.monotone
    failing = model.failing(tally)
    into = np.arange(len(tally)) // 2
    merged = model.failing(tally.merge(into, {}))
    for union in range(into.max() + 1):
        if not failing[into == union].any():
            assert not merged[union]


@given(records, models)
def test_a_finding_says_what_the_mask_says(rows, model):
    tally, _ = tallied(rows)
    failing, finding = model.failing(tally), model.check(tally)
    assert finding.holds == (not failing.any())
    assert finding.failing == failing.sum()
    assert finding.smallest == (tally.sizes[failing].min() if failing.any() else 0)

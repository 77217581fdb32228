"""Bounded losses are best on an unchanged table and worst on one generalized to the top; risks the other way round."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.measures import attacker, categorical, continuous, generalized, inference, interval, variation
from kinfold.measures.catalogue import CATALOGUE
from kinfold.measures.disclosure import Classification, dr_max, dr_min, dr_weighted
from kinfold.measures.linkage import Located, linkage, linkage_credit
from kinfold.measures.probabilistic import pil
from kinfold.measures.propensity import propensity_mse
from kinfold.measures.weights import WeightMatrix

unhurried = settings(deadline=None, max_examples=40)


@st.composite
def varied(draw):
    """A table of two to four columns whose records all differ, in every column."""
    n, m = draw(st.integers(3, 12)), draw(st.integers(2, 4))
    return np.column_stack([draw(st.permutations(range(n))) for _ in range(m)]).astype(float) + 1.0


@unhurried
@given(x=varied())
def test_numeric_losses_of_an_unchanged_table_are_0(x):
    moments = variation.Moments.of(x)
    losses = [continuous.sse(x, x), continuous.sse_ratio(x, x), continuous.normalized_sse(x, x), variation.il1(x, x)]
    losses += [variation.il1s(x, x), variation.eigenvalue_shift(moments, moments)]
    losses += [part(moments, moments) for part in (variation.il2, variation.il3, variation.il5)]
    found = pil(x, x)
    losses += [found.quantiles, found.means, found.variances, found.covariances, found.correlations]
    assert losses == [0] * len(losses)
    assert propensity_mse(x, x) == pytest.approx(0, abs=1e-12)


@unhurried
@given(x=varied(), starred=st.booleans())
def test_numeric_losses_of_a_table_of_means_are_at_their_worst(x, starred):
    y = np.full_like(x, np.nan) if starred else np.broadcast_to(x.mean(axis=0), x.shape)
    assert continuous.sse_ratio(x, y) == pytest.approx(1)
    if starred:
        assert continuous.normalized_sse(x, y) == 1
    else:
        before, after = variation.Moments.of(x), variation.Moments.of(y)
        assert variation.eigenvalue_shift(before, after) == pytest.approx(1)
        assert variation.il3(before, after) == 1


@unhurried
@given(x=varied(), data=st.data())
def test_class_means_lose_a_share_between_0_and_1(x, data):
    labels = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x))))
    y = np.array([x[labels == label].mean(axis=0) for label in labels])
    assert -1e-12 <= continuous.sse_ratio(x, y) <= 1 + 1e-12
    assert 0 <= continuous.normalized_sse(x, y) <= 1


@unhurried
@given(x=varied())
def test_categorical_losses_are_0_unchanged_and_largest_at_the_top(x):
    codes, top = x.astype(int), np.full(x.shape, -1)
    n, m = codes.shape
    assert categorical.dist(codes, codes, [0] * m) == categorical.ebil(codes, codes) == 0
    assert categorical.contingency_loss(codes, codes, [n + 1] * m)[0] == 0
    assert categorical.dist(codes, top, [0] * m) == n * m
    assert categorical.ebil(codes, top) == pytest.approx(n * m * np.log2(n))  # every value held once: all bits are lost


@unhurried
@given(data=st.data())
def test_generalization_losses_are_best_at_the_bottom_and_worst_at_the_top(data):
    heights = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    levels = [data.draw(st.integers(0, height)) for height in heights]
    assert generalized.prec([[0] * len(heights)], heights) == 1
    assert generalized.prec([heights], heights) == 0
    assert 0 <= generalized.prec([levels], heights) <= 1
    leaves = [height + 1 for height in heights]
    assert generalized.granularity([[1] * len(leaves)], leaves) == 1
    assert generalized.granularity([leaves], leaves) == 0
    assert 0 <= generalized.granularity([[level + 1 for level in levels]], leaves) <= 1


@unhurried
@given(held=st.lists(st.integers(1, 5), min_size=2, max_size=6))
def test_non_uniform_entropy_is_0_unchanged_and_1_at_the_top(held):
    records = sum(held)
    cells = [[count] for count in held for _ in range(count)]
    assert generalized.non_uniform_entropy(cells, cells, records) == 0
    assert generalized.non_uniform_entropy(cells, np.full((records, 1), records), records) == pytest.approx(1)


@unhurried
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_class_losses_stay_in_their_range(sizes):
    n = sum(sizes)
    assert generalized.discernibility([1] * n) == n <= generalized.discernibility(sizes) <= n * n
    assert generalized.discernibility([n]) == n * n
    assert generalized.average_class_size([1] * n) == 1 <= generalized.average_class_size(sizes) <= n


@unhurried
@given(x=varied())
def test_risks_are_highest_unchanged_and_lowest_in_one_class(x):
    n = len(x)
    own, one = np.arange(n), np.zeros(n, int)
    everything = WeightMatrix.below(n + 1, n)
    unchanged, merged = Classification.of(own, own), Classification.of(own, one)
    assert dr_min(unchanged) == dr_max(unchanged) == dr_weighted(unchanged, everything) == 1
    assert dr_min(merged) == 0
    assert [dr_max(merged), dr_weighted(merged, everything)] == pytest.approx([1 / n, 1 / n])
    assert attacker.prosecutor_max([1] * n) == attacker.prosecutor_mean([1] * n) == 1
    assert attacker.prosecutor_max([n]) == attacker.prosecutor_mean([n]) == 1 / n
    means = np.broadcast_to(x.mean(axis=0), x.shape)
    assert linkage(linkage_credit(Located.of(x), Located.of(x))) == 1
    assert linkage(linkage_credit(Located.of(x), Located.of(means))) == pytest.approx(1 / n)
    assert interval.interval_by_rank(x, x) == 1
    assert interval.interval_by_rank(x, np.full_like(x, np.nan)) == 0
    assert inference.inference_gain(own, own) == inference.inference_gain_numbers(own, x[:, 0]) == 1
    assert inference.inference_gain(one, own) == 0
    assert inference.inference_gain_numbers(one, x[:, 0]) == pytest.approx(0, abs=1e-12)


@unhurried
@given(data=st.data(), k=st.integers(2, 4))
def test_linkage_of_a_k_anonymous_table_is_at_most_1_over_k(data, k):
    def rows(least: int, most: int) -> np.ndarray:
        record = st.lists(st.integers(0, 5), min_size=2, max_size=2)
        return np.array(data.draw(st.lists(record, min_size=least, max_size=most)), float)

    released = np.repeat(rows(1, 4), k, axis=0)  # every released record at least k times
    original = rows(len(released), len(released))
    assert linkage(linkage_credit(Located.of(original), Located.of(released))) <= 1 / k + 1e-12


def test_every_entry_of_the_catalogue_is_a_sentence_with_a_range():
    for name, entry in CATALOGUE.items():
        assert name.split(".")[0] in ("risk", "loss", "plausibility")
        assert entry.title[0].isupper()
        assert entry.meaning.endswith(".")
        assert entry.range
        assert entry.better in ("less", "more")

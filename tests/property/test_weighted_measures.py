"""Measures of rows that stand for many records say what the plain formulas say of all of them written out."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.measures import continuous, disclosure, generalized, inference, overall, variation
from kinfold.measures.dominance import Sorted, dominated, within_percent
from kinfold.measures.grouping import alike, group_rows
from kinfold.measures.interval import found_by_rank
from kinfold.measures.linkage import Located, linkage_credit
from kinfold.measures.probabilistic import pil
from kinfold.measures.quantiles import quantiles
from kinfold.measures.utility import summary
from kinfold.measures.variation import Moments
from ledger import tally_up

SEEDS = st.integers(0, 10_000)


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return an original, a release, how many records each row stands for, and the rows written out."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 12))
    x = random.normal(0, 3, (n, 3)).round(1)
    y = np.where(random.random((n, 3)) < 0.1, np.nan, x + random.normal(0, 0.5, (n, 3)).round(1))
    x[random.random((n, 3)) < 0.05] = np.nan
    weight = random.integers(1, 6, n)
    return x, y, weight, np.repeat(np.arange(n), weight)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_squared_errors_and_variations(seed: int) -> None:
    x, y, weight, rows = drawn(seed)
    for formula in (continuous.sse, continuous.normalized_sse, variation.il1, variation.il1s):
        assert formula(x, y, weight) == pytest.approx(formula(x[rows], y[rows]), rel=1e-9)
    assert continuous.sst(x, weight) == pytest.approx(continuous.sst(x[rows]), rel=1e-9)
    for one, other in zip(
        continuous.standardized(x, y, weight), continuous.standardized(x[rows], y[rows]), strict=True
    ):
        np.testing.assert_allclose(one[rows], other, rtol=1e-9, atol=1e-12)
    for j in range(3):
        kept = ~np.isnan(y[:, j])
        found = overall.lost_numbers(x[:, j], y[:, j], kept, weight)
        assert found == pytest.approx(overall.lost_numbers(x[rows, j], y[rows, j], kept[rows]), rel=1e-9)
    tally_up("weighted measures", 1)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_moments_quantiles_and_probabilistic_loss(seed: int) -> None:
    x, y, weight, rows = drawn(seed)
    x, y = np.nan_to_num(x), np.nan_to_num(y)
    one, other = Moments.of(x, weight), Moments.of(x[rows])
    for part in ("means", "covariances", "correlations"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=1e-9, atol=1e-9)
    shares = np.array([0.0, 0.05, 0.3, 0.5, 0.77, 1.0])
    order = np.argsort(x[:, 0], kind="stable")
    found = quantiles(x[order, 0], shares, weight[order])
    np.testing.assert_allclose(found, np.quantile(x[rows, 0], shares), rtol=1e-12, atol=1e-12)
    for key, value in asdict(pil(x, y, weight)).items():
        assert value == pytest.approx(asdict(pil(x[rows], y[rows]))[key], rel=1e-6, abs=1e-9)
    told, plain = summary(x[:, 1], weight=weight), summary(x[rows, 1])
    assert (told.count, told.missing) == (plain.count, plain.missing)
    assert told.variance == pytest.approx(plain.variance, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_risks(seed: int) -> None:
    x, y, weight, rows = drawn(seed)
    random = np.random.default_rng(seed)
    before, after = random.integers(0, 3, (2, len(x)))
    after = np.where(random.random(len(x)) < 0.2, -1, after)
    after[0] = 0
    one, other = (
        disclosure.Classification.of(before, after, weight),
        disclosure.Classification.of(before[rows], after[rows]),
    )
    for part in ("masked", "initial", "count"):
        assert getattr(one, part).tolist() == getattr(other, part).tolist()
    values = random.integers(0, 3, len(x))
    if len(np.unique(values[after >= 0])) > 1:
        found = inference.inference_gain(after, values, weight)
        assert found == pytest.approx(inference.inference_gain(after[rows], values[rows]))
    numbers = np.nan_to_num(x[:, 0])
    if len(np.unique(numbers[after >= 0])) > 1:
        found = inference.inference_gain_numbers(after, numbers, weight)
        assert found == pytest.approx(inference.inference_gain_numbers(after[rows], numbers[rows]), abs=1e-9)
    np.testing.assert_allclose(found_by_rank(x, y, weight=weight)[rows], found_by_rank(x[rows], y[rows]))
    x, y = np.nan_to_num(x), np.nan_to_num(y)
    credit = linkage_credit(Located.of(x), Located.of(y, weight=weight))
    np.testing.assert_allclose(credit[rows], linkage_credit(Located.of(x[rows]), Located.of(y[rows])))


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_rows_are_alike_as_they_are_one_by_one_and_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random.integers(-2, 3, (30, 3))
    group, first = group_rows(table)
    values, slow = np.unique(table, axis=0, return_inverse=True)
    assert group.tolist() == slow.ravel().tolist()
    assert table[first].tolist() == values.tolist()
    floats = np.where(table < 0, np.nan, table * 0.5)
    floats[0, 0] = -0.0
    found, heads = alike([*floats.T])
    texts = [tuple("nan" if np.isnan(v) else v + 0.0 for v in row) for row in floats]
    assert len(heads) == len({*texts})
    assert len({*zip(found.tolist(), texts, strict=True)}) == len({*texts})


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_dominance_by_one_sort_is_dominance_by_hand(seed: int) -> None:
    random = np.random.default_rng(seed)
    classes, values = random.integers(-1, 4, 25), random.normal(0, 5, 25).round()
    values[random.random(25) < 0.1] = np.nan
    classes[0] = 3
    here = Sorted.of(classes)
    for label in range(4):
        held = np.sort(np.abs(np.nan_to_num(values[classes == label])))[::-1]
        for n in (1, 2):
            expected = len(held) > 0 and held[:n].sum() > 0.75 * held.sum()
            assert dominated(here, values, n)[label] == expected
        expected = len(held) > 0 and held[2:].sum() < 0.1 * held[0]
        assert within_percent(here, values)[label] == expected


def test_entropy_of_counted_cells_is_that_of_all() -> None:
    held, under, weight = np.array([[1], [2]]), np.array([[4], [4]]), np.array([1, 3])
    rows = np.repeat([0, 1], weight)
    found = generalized.non_uniform_entropy(held, under, 4, weight)
    assert found == pytest.approx(generalized.non_uniform_entropy(held[rows], under[rows], 4))

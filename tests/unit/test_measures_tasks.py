"""Propensity, tasks and summaries: against an outside optimizer and cases done by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import gaussian_kde

from kinfold.measures import continuous, logistic, propensity, utility, variation
from kinfold.measures.probabilistic import gaussian_density, pil
from kinfold.measures.propensity import propensity_mse


def test_squared_errors_of_a_table_done_by_hand():
    x = np.array([[0.0, 10.0], [4.0, 10.0], [8.0, 40.0], [8.0, 60.0]])
    y = np.array([[2.0, 10.0], [2.0, 10.0], [8.0, 50.0], [8.0, 50.0]])
    assert continuous.sse(x, y) == 4 + 4 + 100 + 100
    assert continuous.sst(x) == (25 + 1 + 9 + 9) + (400 + 400 + 100 + 900)
    assert continuous.sse_ratio(x, y) == 208 / 1844
    # ranges 8 and 50: (2/8)² twice and (10/50)² twice, over 8 cells
    assert continuous.normalized_sse(x, y) == pytest.approx((2 * 0.0625 + 2 * 0.04) / 8)


def test_standardized_columns_weigh_the_same_and_a_constant_one_weighs_nothing():
    x = np.array([[1.0, 100.0, 0.1], [3.0, 300.0, 0.1], [5.0, 500.0, 0.1]])
    z, _ = continuous.standardized(x, x)
    assert z[:, 0] == pytest.approx(z[:, 1])
    assert (z[:, 2] == 0).all()
    assert continuous.sst(z) == pytest.approx(6)


def test_a_record_missing_from_the_release_loses_everything():
    x = np.array([[1.0], [3.0], [5.0]])
    y = np.array([[1.0], [3.0], [np.nan]])
    assert continuous.sse(x, y) == 4
    assert continuous.normalized_sse(x, y) == pytest.approx(1 / 3)


def test_the_logistic_fit_is_the_one_of_an_outside_optimizer():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    chosen = rng.random(300) < expit(x @ [1.0, -2.0, 0.0] + 0.5)
    design = logistic.Features.of(x, degree=2)(x)

    def cost(beta):
        z = design @ beta
        return (np.logaddexp(0, z) - chosen * z).sum() + logistic.RIDGE * 300 * beta @ beta / 2

    outside = minimize(cost, np.zeros(design.shape[1]), method="BFGS", options={"gtol": 1e-8}).x
    assert logistic.fit(design, chosen) == pytest.approx(outside, abs=1e-3)


def test_the_fit_reaches_the_top_where_a_whole_step_of_newton_would_overshoot():
    rng = np.random.default_rng(5)  # heavy tails, squared
    n = int(rng.integers(4, 30))
    x, chosen = rng.standard_cauchy((n, 2)), rng.random(n) < 0.3
    design = logistic.Features.of(x, degree=2)(x)
    beta = logistic.fit(design, chosen)
    slope = design.T @ (chosen - logistic.chances(design, beta)) - logistic.RIDGE * n * beta
    assert np.abs(slope).max() < 1e-6 * n
    nothing = np.zeros(len(beta))
    assert logistic.likelihood(design @ beta, chosen, beta) > logistic.likelihood(design @ nothing, chosen, nothing)


def test_a_table_that_a_plane_can_split_does_not_run_to_infinity():
    x = np.array([[1.0], [2.0], [30.0], [40.0]])
    design = logistic.Features.of(x)(x)
    beta = logistic.fit(design, np.array([False, False, True, True]))
    assert np.isfinite(beta).all()
    assert (design @ beta > 0).tolist() == [False, False, True, True]


def test_propensity_sees_a_shrunken_variance_only_through_squares():
    x = np.random.default_rng(1).normal(size=(2_000, 2))
    y = x * 0.5
    assert propensity_mse(x, y, degree=1) < 1e-3
    assert propensity_mse(x, y, degree=2) > 0.02


def test_propensity_of_a_large_table_is_that_of_evenly_spaced_records(monkeypatch):
    x = np.random.default_rng(6).normal(size=(4_000, 2))
    whole = propensity_mse(x, 0.7 * x)
    monkeypatch.setattr(propensity, "LARGE", 1_000)
    assert propensity_mse(x, 0.7 * x) == propensity_mse(x[::4], 0.7 * x[::4])
    assert propensity_mse(x, 0.7 * x) == pytest.approx(whole, rel=0.25)


def test_propensity_grows_with_the_change():
    x = np.random.default_rng(2).normal(size=(1_000, 2))
    found = [propensity_mse(x, x + shift) for shift in (0.0, 0.3, 1.0, 30.0)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(0.25, abs=1e-3)


def test_a_regression_on_class_means_loses_and_never_gains():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 3))
    x[:, 2] = x[:, 0] - x[:, 1] ** 2 + 0.1 * rng.normal(size=200)
    y = x[rng.permutation(200)]
    mixed = np.column_stack([x[:, :2], y[:, 2]])  # the target is shuffled: nothing is left to learn
    task = utility.regression_loss(x, mixed, target=2)
    assert 0 < task.original <= 1
    assert task.loss >= 0
    assert utility.regression_loss(x, x, target=2).loss == pytest.approx(0, abs=1e-12)


def test_a_classifier_of_three_categories_is_scored_on_the_original():
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    kinds = np.repeat([0, 1, 2], 40)
    x = centres[kinds] + np.random.default_rng(4).normal(size=(120, 2))
    task = utility.accuracy_loss(x, x, kinds, kinds)
    assert task.loss == 0
    assert task.original > 0.95
    assert utility.accuracy_loss(x, x, kinds, np.roll(kinds, 40)).loss > 0.5
    assert utility.accuracy_loss(x, x[:40], kinds, kinds[:40]).released == pytest.approx(1 / 3)


def test_correlations_are_those_of_numpy_and_a_constant_column_has_none():
    x = np.random.default_rng(5).normal(size=(50, 3))
    assert utility.correlations(x) == pytest.approx(np.corrcoef(x.T))
    x[:, 1] = 2.0
    found = utility.correlations(x)
    assert np.isnan(found[1]).all()
    assert found[0, 2] == pytest.approx(np.corrcoef(x[:, 0], x[:, 2])[0, 1])


def test_a_constant_column_that_moved_is_wholly_lost_and_one_that_did_not_is_not():
    x = np.array([[1.0, 0.1], [2.0, 0.1], [4.0, 0.1]])
    y = x + np.array([0.0, 1.0])
    assert pil(x, y).means == 0.5
    assert pil(x, y).quantiles == 0.5
    assert pil(x, x).variances == 0


def test_the_density_is_that_of_every_kernel_summed():
    values = np.sort(np.random.default_rng(7).exponential(size=500))
    at = np.quantile(values, [0.05, 0.5, 0.95])
    low, high = np.quantile(values, [0.25, 0.75])
    whole = gaussian_kde(values, 0.9 * min(values.std(), (high - low) / 1.34) * 500**-0.2 / values.std(ddof=1))
    assert gaussian_density(values, at) == pytest.approx(whole(at), rel=1e-12)


def test_one_column_has_no_pairs():
    found = pil([1.0, 2.0, 4.0], [1.0, 3.0, 3.0])
    assert (found.covariances, found.correlations) == (None, None)


def test_cells_that_are_0_are_left_out_of_il1():
    x, y = np.array([[0.0, 2.0], [4.0, np.nan]]), np.array([[9.0, 1.0], [4.0, 7.0]])
    assert variation.il1(x, y) == 0.25


def test_a_mean_that_is_0_but_for_rounding_has_no_relative_change():
    x = np.array([[0.1, 3.0], [0.2, 1.0], [-0.3, 2.0]])  # 0.1 + 0.2 - 0.3 is 5.6e-17
    assert variation.il2(variation.Moments.of(x), variation.Moments.of(x + 1.0)) == 0.5

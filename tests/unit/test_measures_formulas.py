"""Attackers, population estimators, propensity and tasks: against closed forms and outside optimizers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, gammaln, hyp2f1
from scipy.stats import gaussian_kde

from kinfold.measures.formulas import attackers as attacker
from kinfold.measures.formulas import numeric_loss as continuous
from kinfold.measures.formulas import numeric_loss as variation
from kinfold.measures.formulas import uniques, utility
from kinfold.measures.formulas import utility as logistic
from kinfold.measures.formulas import utility as propensity
from kinfold.measures.formulas.probabilistic_loss import gaussian_density, pil
from kinfold.measures.formulas.utility import propensity_mse


@pytest.mark.parametrize("rate", [1e-9, 1e-6, 0.01, 0.3, 0.5, 0.51, 0.9, 1.0])
def test_individual_risk_is_the_recurrence_of_benedetti_and_franconi(rate):
    sizes = np.arange(1, 60)
    exact, p = [], Fraction(rate)
    q, risk = (p / (1 - p), -Fraction(math.log(rate)) * p / (1 - p)) if rate < 1 else (None, Fraction(1))
    for size in sizes.tolist():  # r_1 = -q ln p, r_(f+1) = q (1/f - r_f), as printed
        exact.append(float(risk))
        risk = q * (Fraction(1, size) - risk) if q is not None else Fraction(1, size + 1)
    found = attacker.mean_reciprocal(sizes, np.full(len(sizes), rate))
    stable = slice(None) if rate <= 0.5 or rate == 1 else slice(0, 4)  # an error in the logarithm grows by q each time
    assert found[stable] == pytest.approx(exact[stable], rel=1e-9)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.9])
def test_the_risk_of_small_and_of_large_classes_comes_from_one_function(rate):
    sizes = np.array([attacker.MIN_SERIES_CLASS - 1, attacker.MIN_SERIES_CLASS])
    # Euler's transformation of p^f / f F(f, f; f+1; 1-p): stable where the printed form overflows
    assert attacker.mean_reciprocal(sizes, np.full(2, rate)) == pytest.approx(
        rate / sizes * hyp2f1(1, 1, sizes + 1, 1 - rate), rel=1e-12
    )


@pytest.mark.parametrize("rate", [0.001, 0.4, 0.8])
@pytest.mark.parametrize("size", [49, 200, 5_000])
def test_individual_risk_of_a_large_class_is_the_integral(size, rate):
    q = rate / (1 - rate)
    found = attacker.mean_reciprocal(np.array([size]), np.array([rate]))[0]
    # v^f = w spreads the mass, which is near v = 1, over the whole range
    whole = quad(lambda w: q / (q + w ** (1 / size)) / size, 0, 1, epsabs=0, epsrel=1e-10, limit=500)[0]
    assert found == pytest.approx(whole, rel=1e-7)


def test_individual_risk_is_the_mean_of_1_over_f_of_a_negative_binomial():
    size, rate = 3, 0.2
    draws = size + np.random.default_rng(0).negative_binomial(size, rate, 400_000)
    found = attacker.mean_reciprocal(np.array([size]), np.array([rate]))[0]
    assert found == pytest.approx((1 / draws).mean(), rel=0.005)


def test_individual_risk_without_sampling_is_the_prosecutors():
    classes = [0, 0, 0, 1, 1, -1]
    assert attacker.individual_risk(classes, np.ones(6)) == pytest.approx(attacker.prosecutor_risk(classes))


def test_risks_of_records_sum_up_to_those_of_classes():
    classes = np.array([0, 0, 0, 2, 2, 5])  # labels need not be dense
    risks = attacker.prosecutor_risk(classes)
    assert risks.max() == attacker.prosecutor_max([3, 2, 1]) == 1
    assert attacker.marketer_risk(risks) == pytest.approx(attacker.prosecutor_mean([3, 2, 1]))
    assert attacker.share_above(risks, 0.4) == 0.5


def test_a_journalist_is_no_better_off_than_a_prosecutor():
    classes = np.array([0, 0, 1])
    assert (attacker.journalist_risk(classes, [2, 10]) <= attacker.prosecutor_risk(classes)).all()


def zipf_population(rng, people: int) -> np.ndarray:
    """People with four attributes each, of long-tailed values: many alone, many in crowds."""
    parts = [np.minimum(rng.zipf(1.6, people), 12) for _ in range(4)]
    return np.unique(np.column_stack(parts), axis=0, return_inverse=True)[1].ravel()


def pitman_population(rng, people: int, theta: float, alpha: float) -> np.ndarray:
    """Seat people one by one: a new class with chance (theta + alpha classes) / (theta + seated)."""
    labels, sizes = np.empty(people, int), []
    for i in range(people):
        if rng.random() < (theta + alpha * len(sizes)) / (theta + i):
            labels[i] = len(sizes)
            sizes.append(1)
            continue
        while True:  # by size, thinned by alpha
            label = labels[rng.integers(i)]
            if rng.random() * sizes[label] < sizes[label] - alpha:
                break
        labels[i] = label
        sizes[label] += 1
    return labels


def sampled(rng, population: np.ndarray, share: float) -> tuple[np.ndarray, int]:
    """Class sizes of a sample, and the true number of population uniques."""
    chosen = rng.permutation(len(population))[: int(share * len(population))]
    sizes = np.bincount(population[chosen])
    return sizes[sizes > 0], int((np.bincount(population) == 1).sum())


@pytest.mark.parametrize(("theta", "alpha"), [(20.0, 0.6), (300.0, 0.0), (50.0, 0.8)])
def test_pitman_finds_the_uniques_of_a_population_of_its_own_kind(theta, alpha):
    rng = np.random.default_rng(1)
    sizes, truth = sampled(rng, pitman_population(rng, 20_000, theta, alpha), 0.2)
    assert uniques.pitman_uniques(sizes, 20_000) == pytest.approx(truth, rel=0.2)


@pytest.mark.parametrize("estimate", [uniques.zayatz_uniques, uniques.pitman_uniques])
def test_both_estimators_are_within_half_again_of_the_truth_and_better_than_scaling_up(estimate):
    rng = np.random.default_rng(2)
    sizes, truth = sampled(rng, zipf_population(rng, 40_000), 0.25)
    found, scaled = estimate(sizes, 40_000), 4 * uniques.sample_uniques(sizes)
    assert truth / 1.5 < found < truth * 1.5
    assert abs(found - truth) < abs(scaled - truth)


@pytest.mark.parametrize("sizes", [[1, 1, 1, 2, 5], [2, 2], [1] * 500 + [2], [300, 1], [1, 9, 9, 9]])
def test_a_fit_stays_where_the_partition_is_defined(sizes):
    theta, alpha = uniques.pitman_fit(sizes)
    assert 0 <= alpha < 1
    assert theta > -alpha
    assert 0 <= uniques.pitman_uniques(sizes, 10 * sum(sizes)) <= 10 * sum(sizes)


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1, 2, 2, 3, 5], [2, 2], [1, 9, 9, 9], [1] * 50 + [2]])
def test_on_the_edge_of_alpha_0_the_fit_expects_as_many_classes_as_there_are(sizes):
    theta, alpha = uniques.pitman_fit(sizes)
    assert alpha == 0
    # the maximum of Ewens' likelihood: Σ theta / (theta + i) = the number of classes
    assert (theta / (theta + np.arange(sum(sizes)))).sum() == pytest.approx(len(sizes), rel=1e-9)


@pytest.mark.parametrize("estimate", [uniques.zayatz_uniques, uniques.pitman_uniques])
def test_estimates_come_down_to_the_sample_uniques_when_everybody_is_sampled(estimate):
    rng = np.random.default_rng(3)
    sizes, truth = sampled(rng, zipf_population(rng, 5_000), 1.0)
    assert estimate(sizes, 5_000) == pytest.approx(truth, rel=0.1)
    assert uniques.sample_uniques(sizes) == truth


def test_there_are_no_uniques_in_one_class_or_where_the_sample_has_none():
    assert uniques.pitman_uniques([7], population=70) == 0
    assert uniques.zayatz_uniques([2, 3], population=50) == 0


@pytest.mark.parametrize("seed", range(4))
def test_the_fit_reaches_the_highest_likelihood(seed):
    rng = np.random.default_rng(seed)
    sizes, _ = sampled(rng, pitman_population(rng, 3_000, rng.uniform(1, 80), rng.uniform(0, 0.9)), 0.3)

    def cost(point):
        theta, alpha = np.exp(point[0]), 1 / (1 + np.exp(-point[1]))
        classes = np.log(theta + alpha * np.arange(1, len(sizes))).sum() - gammaln(theta + sizes.sum())
        return -(classes + gammaln(theta + 1) + (gammaln(sizes - alpha) - gammaln(1 - alpha)).sum())

    theta, alpha = uniques.pitman_fit(sizes)
    best = min(minimize(cost, start, method="Nelder-Mead").fun for start in ([1, 0], [4, 1], [4, -2]))
    found = cost([np.log(theta), np.log(alpha / (1 - alpha)) if alpha else -40.0])
    assert found <= best + 1e-4


# Propensity, tasks and summaries: against an outside optimizer and cases done by hand.


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
    z, _ = continuous.standardize(x, x)
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
    design = logistic.Features.from_table(x, degree=2)(x)

    def cost(beta):
        z = design @ beta
        return (np.logaddexp(0, z) - chosen * z).sum() + logistic.RIDGE * 300 * beta @ beta / 2

    outside = minimize(cost, np.zeros(design.shape[1]), method="BFGS", options={"gtol": 1e-8}).x
    assert logistic.fit_logistic(design, chosen) == pytest.approx(outside, abs=1e-3)


def likelihood(design, chosen, beta):
    """Return the log-likelihood of a fit, less its ridge."""
    z = design @ beta
    return z[chosen].sum() - np.logaddexp(0.0, z).sum() - logistic.RIDGE * len(z) * (beta @ beta) / 2.0


def test_the_fit_reaches_the_top_where_a_whole_step_of_newton_would_overshoot():
    rng = np.random.default_rng(5)  # heavy tails, squared
    n = int(rng.integers(4, 30))
    x, chosen = rng.standard_cauchy((n, 2)), rng.random(n) < 0.3
    design = logistic.Features.from_table(x, degree=2)(x)
    beta = logistic.fit_logistic(design, chosen)
    slope = design.T @ (chosen - logistic.predict_probability(design, beta)) - logistic.RIDGE * n * beta
    assert np.abs(slope).max() < 1e-6 * n
    nothing = np.zeros(len(beta))
    assert likelihood(design, chosen, beta) > likelihood(design, chosen, nothing)


def test_a_table_that_a_plane_can_split_does_not_run_to_infinity():
    x = np.array([[1.0], [2.0], [30.0], [40.0]])
    design = logistic.Features.from_table(x)(x)
    beta = logistic.fit_logistic(design, np.array([False, False, True, True]))
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
    monkeypatch.setattr(propensity, "MAX_PROPENSITY_RECORDS", 1_000)
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
    assert utility.correlate(50, np.cov(x.T, bias=True)) == pytest.approx(np.corrcoef(x.T))
    x[:, 1] = 2.0
    found = utility.correlate(50, np.cov(x.T, bias=True))
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

    found = pil([1.0, 2.0, 4.0], [1.0, 3.0, 3.0])
    assert (found.covariances, found.correlations) == (None, None)


def test_cells_and_means_that_are_0_have_no_relative_change():
    x, y = np.array([[0.0, 2.0], [4.0, np.nan]]), np.array([[9.0, 1.0], [4.0, 7.0]])
    assert variation.il1(x, y) == 0.25
    x = np.array([[0.1, 3.0], [0.2, 1.0], [-0.3, 2.0]])  # 0.1 + 0.2 - 0.3 is 5.6e-17
    assert variation.il2(variation.Moments.from_table(x), variation.Moments.from_table(x + 1.0)) == 0.5

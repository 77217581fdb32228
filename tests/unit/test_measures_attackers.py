"""Attackers and population estimators: against closed forms, an outside function and simulated populations."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln, hyp2f1

from kinfold.measures import attacker, uniques


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
    sizes = np.array([attacker.LARGE - 1, attacker.LARGE])
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


def test_one_class_alone_means_that_nobody_is_alone():
    assert uniques.pitman_uniques([7], population=70) == 0


@pytest.mark.parametrize("estimate", [uniques.zayatz_uniques, uniques.pitman_uniques])
def test_estimates_come_down_to_the_sample_uniques_when_everybody_is_sampled(estimate):
    rng = np.random.default_rng(3)
    sizes, truth = sampled(rng, zipf_population(rng, 5_000), 1.0)
    assert estimate(sizes, 5_000) == pytest.approx(truth, rel=0.1)
    assert uniques.sample_uniques(sizes) == truth


def test_zayatz_finds_no_uniques_where_the_sample_has_none():
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

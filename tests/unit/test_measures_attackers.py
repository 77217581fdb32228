"""Attackers and population estimators: against closed forms, an outside function and simulated populations."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln, hyp2f1

from kinfold.measures import attacker, uniques


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.3, 0.5, 0.51, 0.9, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 47, 48])
def test_individual_risk_is_the_hypergeometric_function_of_benedetti_and_franconi(size, rate):
    found = attacker.mean_reciprocal(np.array([size]), np.array([rate]))[0]
    # Euler's transformation of p^f / f F(f, f; f+1; 1-p): stable where the printed form overflows
    assert found == pytest.approx(rate / size * hyp2f1(1, 1, size + 1, 1 - rate), rel=1e-9)


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


def test_a_fit_cut_short_still_climbed(monkeypatch):
    monkeypatch.setattr(uniques, "STEPS", 1)
    theta, alpha = uniques.pitman_fit([1, 1, 1, 2, 5])
    assert theta > 0 <= alpha < 1


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

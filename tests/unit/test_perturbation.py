"""Perturbation of arrays: the truths of the peers and of the definitions, the plain twins, and bad input."""

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold import PolicyError, perturb
from kinfold.errors import DataError
from kinfold.measures.formulas.perturbation import (
    compute_count_deviations,
    measure_informed_links,
    measure_invariance_error,
    measure_rank_correlation,
    measure_rank_gap,
)
from kinfold.methods.perturbation import factorize, make_key, randomize_codes
from reference import perturbation as plain

EXAMPLES = settings(max_examples=50, deadline=None)
DATA = Path(os.environ.get("KINFOLD_DATA", Path(__file__).parents[3] / "shared" / "data"))
TRUTHS = DATA.parent / "parity"
needs_truths = pytest.mark.skipif(not TRUTHS.is_dir(), reason="the truths are not here: KINFOLD_DATA/../parity")


def truths(name: str) -> list[dict[str, Any]]:
    return json.loads((TRUTHS / f"{name}.json").read_text())["cases"] if TRUTHS.is_dir() else []


PRAM = [each for each in truths("pram") if "R_two_stage" in each["expect"]]


@needs_truths
@pytest.mark.parametrize("case", PRAM, ids=lambda case: case["id"])
def test_the_matrices_of_pram(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    counts = np.array(given["counts"], np.float64)
    even = perturb.even_matrix(len(counts), given["diagonal"])
    two_stage = perturb.make_invariant(even, counts, given["alpha"])
    gouweleeuw = perturb.gouweleeuw_matrix(counts, given["gouweleeuw_theta"])
    assert np.abs(two_stage - expect["R_two_stage"]).max() < 1e-12
    assert np.abs(gouweleeuw - expect["R_gouweleeuw"]).max() < 1e-12
    assert counts @ even == pytest.approx(expect["plain_expected_marginal"], abs=1e-9)
    assert counts @ (1 - np.diag(two_stage)) == pytest.approx(expect["expected_changed"], rel=1e-12)
    assert compute_count_deviations(two_stage, counts) ** 2 == pytest.approx(expect["covariance_diag"], rel=1e-12)
    for matrix in (two_stage, gouweleeuw, perturb.retention_matrix(counts, given["diagonal"])):
        assert measure_invariance_error(matrix, counts) < 1e-12
        values = np.repeat(np.array(given["levels"], object), counts.astype(int))
        drawn = perturb.pram(values, matrix=matrix, seed=3)
        new = np.array([(drawn == level).sum() for level in given["levels"]])
        deviations = compute_count_deviations(matrix, counts)
        assert (np.abs(new - counts) <= 4 * deviations + 1e-9).all()
        assert perturb.estimate_counts(matrix, counts @ matrix) == pytest.approx(counts)


@EXAMPLES
@given(st.data(), st.integers(1, 5))
def test_two_stages_are_those_of_the_definition(data: st.DataObject, size: int) -> None:
    counts = data.draw(st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(sum))
    parts = [data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(sum)) for _ in counts]
    stated = [[Fraction(part, sum(row)) for part in row] for row in parts]
    matrix = perturb.make_invariant([[float(p) for p in row] for row in stated], counts)
    assert matrix == pytest.approx(np.array([[float(p) for p in row] for row in plain.two_stages(stated, counts)]))
    assert measure_invariance_error(matrix, counts) < 1e-12


def test_a_value_of_probability_0_is_never_drawn_and_the_diagonal_is_kept() -> None:
    matrix = np.array([[0.5, 0.0, 0.5 - 1e-10], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    codes = np.repeat([0, 1, 2, -1], 20_000)
    new = randomize_codes(codes, matrix, b"key")
    assert not (new[:20_000] == 1).any()
    assert (new[20_000:40_000] == 1).all()
    assert (new[40_000:60_000] == 0).all()
    assert (new[60_000:] == -1).all()
    values = np.array(["a"] * 9_900 + ["b"] * 100, object)
    for seed in (1, 2):  # of the rare value 20 % and a bit may change, of the frequent one almost none
        kept = perturb.pram(values, retention=0.8, seed=seed) == values
        assert kept[9_900:].mean() == pytest.approx(0.802, abs=0.16)
        assert kept[:9_900].mean() == pytest.approx(0.998, abs=0.002)


@needs_truths
@pytest.mark.parametrize("case", truths("rank_swapping"), ids=lambda case: case["id"])
def test_ranks_are_swapped_within_their_range(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    x = pd.read_csv(DATA / f"{given['table']}.csv")[given["column"]].to_numpy(np.float64)
    y = perturb.swap_ranks(x, 100 * given["P"], seed=1)
    assert np.array_equal(np.sort(x), np.sort(y))
    assert measure_rank_gap(x, y) < given["P"] * len(x)
    if given["tails"] == "none":
        assert measure_rank_gap(x, y) <= expect["max_rank_gap_at_most"]
        assert measure_rank_correlation(x, y) == pytest.approx(expect["spearman_seen"], abs=0.01)
        assert (x == y).mean() <= expect["share_unchanged_seen"] + 0.01


@EXAMPLES
@given(st.lists(st.integers(0, 6).map(float), min_size=4, max_size=30), st.integers(0, 9), st.floats(30, 100))
def test_swapped_ranks_are_those_of_the_twin(values: list[float], seed: int, percent: float) -> None:
    if len({*values}) < 2:
        return
    x = np.array([*values, np.nan])
    y = perturb.swap_ranks(x, percent, seed=seed)
    assert np.isnan(y[-1])
    assert sorted(y[:-1].tolist()) == sorted(values)
    assert measure_rank_gap(x[:-1], y[:-1]) == plain.rank_gap(values, y[:-1].tolist()) < percent * len(values) / 100


@needs_truths
def test_noise_keeps_what_it_says() -> None:
    columns = ["AGI", "FEDTAX", "TAXINC"]
    x = pd.read_csv(DATA / "census.csv")[columns].to_numpy(np.float64)
    r = np.corrcoef(x, rowvar=False)[0, 1]
    for share in (0.2, 1.5):  # a share of the standard deviation
        drawn = [np.column_stack([perturb.add_noise(c, share, seed=s) for c in x.T]) for s in range(20)]
        error = np.sqrt(2 / len(x) / 20) * 4
        ratios = np.mean([y.var(axis=0) / x.var(axis=0) for y in drawn], axis=0)
        assert ratios == pytest.approx(1 + share**2, rel=2 * error)
        after = np.mean([np.corrcoef(y, rowvar=False)[0, 1] for y in drawn])
        assert after == pytest.approx(r / (1 + share**2), abs=0.03)
    drawn = [perturb.add_correlated_noise(x, 0.2, seed=s) for s in range(20)]  # a share of the covariances
    assert np.mean([y.var(axis=0) / x.var(axis=0) for y in drawn], axis=0) == pytest.approx(1.2, rel=0.03)
    assert np.mean([np.corrcoef(y, rowvar=False)[0, 1] for y in drawn]) == pytest.approx(r, abs=0.003)
    assert np.mean([y.mean(axis=0) - x.mean(axis=0) for y in drawn], axis=0) / x.std(axis=0) == pytest.approx(
        0, abs=0.02
    )


@EXAMPLES
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_a_triangle_of_covariances_gives_them_back(size: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(max(1, size - 1), size))  # of lower rank
    covariances = rows.T @ rows
    lower = factorize(covariances)
    assert np.allclose(lower @ lower.T, covariances, atol=1e-6 * covariances.max())
    assert np.array_equal(lower, np.tril(lower))


@EXAMPLES
@given(st.lists(st.integers(0, 40).map(float), min_size=4, max_size=40), st.integers(2, 4))
def test_micro_averages_are_shared_and_keep_the_mean(values: list[float], size: int) -> None:
    if len({*values}) < 2:
        return
    x = np.array([np.nan, *values])
    y = perturb.average_neighbours(x, size)
    assert np.isnan(y[0])
    assert np.unique(y[1:], return_counts=True)[1].min() >= size
    assert y[1:].mean() == pytest.approx(np.mean(values))
    order = np.argsort(values, kind="stable")
    assert (np.diff(y[1:][order]) >= -1e-9).all()


def test_draws_depend_on_the_seed_and_on_every_value() -> None:
    x = np.arange(50.0)
    again, other, longer = (perturb.add_noise(v, 0.1, seed=s) for v, s in ((x, 1), (x, 2), (np.append(x, 7.5), 1)))
    assert np.array_equal(perturb.add_noise(x, 0.1, seed=1), again)
    assert not np.isclose(again, other).any()
    assert not np.isclose(again - x, (longer[:-1] - x)).any()
    assert make_key(1, "a", x) != make_key(1, "b", x)


@EXAMPLES
@given(st.integers(1, 12), st.integers(0, 10**6))
def test_informed_links_are_those_of_the_twin(records: int, seed: int) -> None:
    scores = np.random.default_rng(seed).integers(-3, 1, (records, records)).astype(np.float64)
    found = measure_informed_links([lambda target: scores[target]], range(records))
    assert found == pytest.approx(plain.informed_links(scores.tolist()))


@needs_truths
@pytest.mark.parametrize("case", truths("record_swapping"), ids=lambda case: case["id"])
def test_households_are_swapped(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    table = pd.read_csv(TRUTHS / given["table"])
    levels = [table[name] for name in given["hierarchy"]]
    risk = [table[name] for name in given.get("risk_variables", ())]
    keys = {"similar": [table[name] for name in given["similar"]], "risk": risk, "k": given["k"]}
    swap = swap_checked(table, levels, keys, given["swaprate"])
    households = len(swap.partner)
    assert households == expect["households"]
    assert abs(swap.swapped - given["swaprate"] * households) <= 2 + 2 * swap.forced
    assert swap.unmatched == 0


def swap_checked(table: pd.DataFrame, levels: list[Any], keys: dict[str, Any], rate: float) -> Any:
    """Swap, and check what always holds."""
    swap = perturb.swap_households(table["hid"], levels, rate=rate, seed=1, **keys)
    again = perturb.swap_households(table["hid"], levels, rate=rate, seed=1, **keys)
    assert np.array_equal(swap.partner, again.partner)
    assert np.array_equal(swap.partner[swap.partner], np.arange(len(swap.partner)))
    new = [level.to_numpy()[swap.places] for level in levels]
    hid, old = table["hid"].to_numpy(), [level.to_numpy() for level in levels]
    homes = pd.DataFrame({"hid": hid, "new": new[-1], "old": old[-1]}).groupby("hid")
    assert (homes["new"].nunique() == 1).all()
    changed = homes["new"].first() != homes["old"].first()
    assert int(changed.sum()) == swap.swapped
    sizes = table.groupby("hid")["hsize"].first()
    before, after = (pd.crosstab(homes[side].first().rename("region"), sizes) for side in ("old", "new"))
    assert after.equals(before)
    return swap


def test_households_at_risk_swap_across_the_level_where_they_are_rare() -> None:
    hid = np.repeat(np.arange(40), 2)
    land, town = hid % 2, hid % 4
    rare = (hid == 7).astype(int)
    swap = perturb.swap_households(hid, [land, town], similar=[hid // 20], risk=[rare], rate=0.0, k=3, seed=5)
    assert (swap.forced, swap.swapped, swap.unmatched) == (1, 2, 0)
    other = swap.partner[7]
    assert (other % 2, other // 20) == (0, 0)
    none = perturb.swap_households(hid, [land, town], similar=[hid // 20], risk=[rare], rate=0.0, k=0)
    assert none.swapped == 0
    alone = perturb.swap_households(hid, [land], similar=[hid], risk=[rare], rate=0.5, k=3)
    assert (alone.swapped, alone.unmatched) == (0, 1)


@pytest.mark.parametrize(
    "run",
    [
        lambda: perturb.pram(["a", "b"], matrix=[[0.9, 0.2], [0, 1]]),
        lambda: perturb.pram(["a", "b"], matrix=[[1.1, -0.1], [0, 1]]),
        lambda: perturb.pram(["a", "b"], matrix=[[1.0]]),
        lambda: perturb.pram(["a", "b"], retention=1.5),
        lambda: perturb.pram([None, None], retention=0.5),
        lambda: perturb.swap_ranks(np.arange(10.0), 200),
        lambda: perturb.swap_ranks(np.arange(10.0), 0),
        lambda: perturb.swap_ranks(np.arange(10.0), -5),
        lambda: perturb.swap_ranks(["a", "b"], 10),
        lambda: perturb.swap_ranks(np.full(10, 5.0), 50),
        lambda: perturb.add_noise(np.arange(4.0), -1),
        lambda: perturb.add_noise(["x", "y"], 0.1),
        lambda: perturb.add_noise(np.full(4, 3.0), 0.1),
        lambda: perturb.add_noise(np.array([1.0, np.inf]), 0.1),
        lambda: perturb.average_neighbours(np.arange(4.0), 1),
        lambda: perturb.swap_households([1, 2], [[1, 2]], rate=2.0),
        lambda: perturb.pram(["a", 1], retention=0.5),
        lambda: perturb.pram([["a", "b"]], retention=0.5),
        lambda: perturb.pram(["a", "b"], retention="much"),
        lambda: perturb.add_noise([], 0.1),
        lambda: perturb.average_neighbours(np.arange(9.0), 2.5),
        lambda: perturb.retention_matrix([3, 1], 1.5),
        lambda: perturb.even_matrix(3, -0.1),
        lambda: perturb.gouweleeuw_matrix([3, 1], 2.0),
        lambda: perturb.gouweleeuw_matrix([3, 0], 0.5),
        lambda: perturb.make_invariant([[0.9, 0.2], [0, 1]], [3, 1]),
        lambda: perturb.make_invariant([[0.9, 0.1], [0, 1]], [0, 0]),
        lambda: perturb.estimate_counts([[0.5, 0.5], [0.5, 0.5]], [1, 2]),
    ],
)
def test_bad_input_is_refused(run: Any) -> None:
    with pytest.raises(PolicyError) as error:
        run()
    assert all(problem.fix for problem in error.value.problems)


def test_data_that_cannot_be_perturbed_are_refused() -> None:
    with pytest.raises(DataError, match="fewer than 5 values"):
        perturb.average_neighbours(np.array([1.0, 2.0, np.nan]), 5)
    with pytest.raises(DataError, match="differs within a household"):
        perturb.swap_households([1, 1], [["a", "b"]])
    with pytest.raises(DataError, match="1 of 2 households are missing"):
        perturb.swap_households([1, None], [["a", "b"]])
    with pytest.raises(DataError, match="different lengths"):
        perturb.swap_households([1, 2], [["a", "b"]], similar=[[1]])
    with pytest.raises(DataError, match="not numbers") as error:
        perturb.retention_matrix(["x"], 0.5)
    assert "x'" not in str(error.value)

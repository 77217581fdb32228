"""Every measure agrees with its slow twin on random tables with ties, missing values and constant columns."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kinfold.measures import NotApplicable, categorical, continuous, dominance, inference, interval, variation
from kinfold.measures.disclosure import Classification, dr_max, dr_min, dr_weighted, uncounted, unique_from_larger
from kinfold.measures.linkage import Located, linkage_credit
from kinfold.measures.probabilistic import pil
from kinfold.measures.weights import WeightMatrix
from reference import measures_plain as plain

# multiples of 1/4: sums are exact, so that a constant column is constant for both sides
CELL = st.integers(-8, 8).map(lambda v: v / 4)
HOLES = st.integers(-8, 10).map(lambda v: v / 4 if v <= 8 else float("nan"))


@st.composite
def tables(draw, cell=CELL, least=2, columns=1):
    """Two paired tables; some columns are constant, some cells tie, some are missing if the cells may be."""
    n, m = draw(st.integers(least, 9)), draw(st.integers(columns, 3))
    x, y = (np.array(draw(st.lists(st.lists(cell, min_size=m, max_size=m), min_size=n, max_size=n))) for _ in range(2))
    for j in range(m):
        if draw(st.integers(0, 4)) == 0:
            x[:, j] = draw(CELL)
    return x, y


@st.composite
def coded(draw):
    """Two paired tables of codes of up to four categories, with nulls."""
    n, m = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    cell = st.integers(-1, 3)
    x, y = (np.array(draw(st.lists(st.lists(cell, min_size=m, max_size=m), min_size=n, max_size=n))) for _ in range(2))
    return x, y


unhurried = settings(deadline=None, max_examples=60)  # on a loaded machine
LABELS = st.lists(st.integers(-1, 4), min_size=1, max_size=12)


def agree(fast, slow, *arguments):
    """Both give the same number, or the fast one has no answer where the slow one divides by nothing."""
    try:
        expected = slow(*arguments)
    except (ZeroDivisionError, ValueError, IndexError):
        with pytest.raises(NotApplicable):
            fast(*arguments)
    else:
        assert fast(*arguments) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["sse", "normalized_sse"])
@unhurried
@given(pair=tables(HOLES))
def test_squared_errors_agree(name, pair):
    agree(getattr(continuous, name), getattr(plain, name), *pair)


@unhurried
@given(pair=tables(HOLES))
def test_the_total_and_the_ratio_agree(pair):
    total = plain.sst(pair[0])
    assert continuous.sst(pair[0]) == pytest.approx(total)
    agree(continuous.sse_ratio, lambda x, y: plain.sse(x, y) / total, *pair)


@pytest.mark.parametrize("name", ["il1", "il1s"])
@unhurried
@given(pair=tables(HOLES))
def test_changes_of_values_agree(name, pair):
    agree(getattr(variation, name), getattr(plain, name), *pair)


@pytest.mark.parametrize("name", ["il2", "il3", "il4", "il5"])
@unhurried
@given(pair=tables(HOLES))
def test_changes_of_statistics_agree(name, pair):
    def fast(x, y):
        return getattr(variation, name)(variation.Moments.of(x), variation.Moments.of(y))

    agree(fast, getattr(plain, name), *pair)


@settings(unhurried, suppress_health_check=[HealthCheck.filter_too_much])
@given(pair=tables(least=5, columns=2))
def test_probabilistic_losses_of_pairs_agree(pair):
    x, y = pair
    assume((np.ptp(x, axis=0) > 0).all())
    covariances = np.cov(x.T, bias=True)[np.triu_indices(x.shape[1], 1)]
    assume((np.abs(covariances) > 1e-3).all())
    try:
        expected = plain.pil_pairs(x, y)
    except (ZeroDivisionError, ValueError):
        assume(False)  # no sampling error: the twin has no answer
    found = pil(x, y)
    assert (found.covariances, found.correlations) == pytest.approx(expected, abs=1e-6)


@unhurried
@given(before=LABELS, data=st.data())
def test_disclosure_risk_agrees(before, data):
    before = [label + 1 for label in before]
    after = data.draw(st.lists(st.integers(-1, 4), min_size=len(before), max_size=len(before)))
    assume(max(after) >= 0)
    k = data.draw(st.integers(2, 5))
    slow, fast = plain.classification(before, after), Classification.of(before, after)
    n = sum(slow.values())
    assert n == fast.released
    assert dict(zip(zip(fast.masked.tolist(), fast.initial.tolist(), strict=True), fast.count, strict=True)) == slow
    assert dr_min(fast) == slow[1, 1] / n
    assert dr_max(fast) == pytest.approx(plain.dr(slow, lambda _i, _j: 1))
    assert dr_weighted(fast, WeightMatrix.below(k, n)) == pytest.approx(plain.dr(slow, lambda i, _j: i < k))
    assert unique_from_larger(fast) == sum(c for (i, j), c in slow.items() if i == 1 < j)
    assert uncounted(fast) == sum(c for (i, j), c in slow.items() if j > i)


@unhurried
@given(pair=coded(), scales=st.lists(st.sampled_from([0, 4]), min_size=3, max_size=3))
def test_distances_of_categories_agree(pair, scales):
    x, y = pair
    assert categorical.dist(x, y, scales[: x.shape[1]]) == plain.dist(x, y, scales[: x.shape[1]])


@pytest.mark.parametrize("dense", [0, 10**6], ids=["sorted", "counted"])
@unhurried
@given(pair=coded(), dimension=st.integers(1, 3), empty=st.sampled_from(["one", "skip"]))
def test_contingency_losses_agree(dense, pair, dimension, empty):
    sizes = [4] * pair[0].shape[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(categorical, "DENSE", dense)
        found = categorical.contingency_loss(*pair, sizes, dimension, empty)
    loss, cells = plain.contingency(*pair, sizes, dimension, empty)
    assert found == (pytest.approx(loss), cells)


@unhurried
@given(pair=coded())
def test_entropy_losses_agree(pair):
    assert categorical.ebil(*pair) == pytest.approx(plain.ebil(*pair))


@unhurried
@given(classes=LABELS, data=st.data())
def test_inference_gains_agree(classes, data):
    n = len(classes)
    codes = data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    agree(inference.inference_gain, plain.inference, classes, codes)
    values = data.draw(st.lists(HOLES, min_size=n, max_size=n))
    agree(inference.inference_gain_numbers, plain.inference_numbers, classes, values)


@unhurried
@given(pair=tables(HOLES), percents=st.lists(st.integers(1, 60), min_size=1, max_size=3))
def test_interval_disclosures_agree(pair, percents):
    assert interval.interval_by_rank(*pair, percents) == pytest.approx(plain.interval_by_rank(*pair, percents))


@unhurried
@given(pair=tables(), codes=coded(), seed=st.integers(0, 9))
def test_linkage_agrees_and_shares_the_credit_of_ties(pair, codes, seed):
    n = min(len(pair[0]), len(codes[0]))
    (x, y), (c, d) = ([table[:n] for table in pair], [np.abs(table[:n]) for table in codes])
    gaps = [np.random.default_rng(seed + j).integers(0, 3, (4, 4)) / 2 for j in range(c.shape[1])]
    found = linkage_credit(Located.of(x, c), Located.of(y, d), gaps)
    slow = plain.linkage_credit(np.hstack([x, c]), np.hstack([y, d]), gaps, x.shape[1])
    assert found.tolist() == pytest.approx(slow)


@unhurried
@given(classes=LABELS, data=st.data())
def test_dominance_rules_agree(classes, data):
    assume(max(classes) >= 0)
    values = data.draw(st.lists(HOLES, min_size=len(classes), max_size=len(classes)))
    n, share = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([25.0, 50.0, 75.0]))
    assert dominance.dominated(classes, values, n, share).tolist() == plain.dominated(classes, values, n, share)
    assert dominance.within_percent(classes, values, share).tolist() == plain.within_percent(classes, values, share)


@unhurried
@given(classes=LABELS, data=st.data())
def test_singled_out_records_agree(classes, data):
    assume(max(classes) >= 0)
    column = data.draw(st.lists(st.integers(-1, 3), min_size=len(classes), max_size=len(classes)))
    rows = [(c, v) for c, v in zip(classes, column, strict=True) if c >= 0]
    assert dominance.singled_out(classes, column) == sum(rows.count(row) == 1 for row in rows)

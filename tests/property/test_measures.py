"""Every measure agrees with its slow twin on random tables with ties, missing values and constant columns."""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import kinfold
from everyday import first
from kinfold.measures.formulas import NotApplicable
from kinfold.measures.formulas import attackers as attacker
from kinfold.measures.formulas import attribute_disclosure as dominance
from kinfold.measures.formulas import attribute_disclosure as inference
from kinfold.measures.formulas import attribute_disclosure as interval
from kinfold.measures.formulas import categorical_loss as categorical
from kinfold.measures.formulas import categorical_loss as generalized
from kinfold.measures.formulas import numeric_loss as continuous
from kinfold.measures.formulas import numeric_loss as variation
from kinfold.measures.formulas.global_risk import (
    ClassificationMatrix,
    WeightMatrix,
    dr_max,
    dr_min,
    dr_weighted,
    uncounted,
    unique_from_larger,
)
from kinfold.measures.formulas.linkage import LinkageRecords, linkage, linkage_credit
from kinfold.measures.formulas.probabilistic_loss import pil
from kinfold.measures.formulas.utility import propensity_mse
from kinfold.measures.measure_table import CATALOGUE
from kinfold.measures.measurement import find_moved_shares
from pipeline_tables import Case, usable
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
        return getattr(variation, name)(variation.Moments.from_table(x), variation.Moments.from_table(y))

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
    slow, fast = plain.classification(before, after), ClassificationMatrix.from_classes(before, after)
    n = sum(slow.values())
    assert n == fast.released
    assert dict(zip(zip(fast.masked.tolist(), fast.initial.tolist(), strict=True), fast.count, strict=True)) == slow
    assert dr_min(fast) == slow[1, 1] / n
    assert dr_max(fast) == pytest.approx(plain.dr(slow, lambda _i, _j: 1))
    assert dr_weighted(fast, WeightMatrix.equal_below(k, n)) == pytest.approx(plain.dr(slow, lambda i, _j: i < k))
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
        patch.setattr(categorical, "MAX_DENSE_COUNTS", dense)
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
    assert interval.interval_credit(*pair, percents).mean() == pytest.approx(plain.interval_by_rank(*pair, percents))


@unhurried
@given(pair=tables(), codes=coded(), seed=st.integers(0, 9))
def test_linkage_agrees_and_shares_the_credit_of_ties(pair, codes, seed):
    n = min(len(pair[0]), len(codes[0]))
    (x, y), (c, d) = ([table[:n] for table in pair], [np.abs(table[:n]) for table in codes])
    gaps = [np.random.default_rng(seed + j).integers(0, 3, (4, 4)) / 2 for j in range(c.shape[1])]
    found = linkage_credit(LinkageRecords.from_arrays(x, c), LinkageRecords.from_arrays(y, d), gaps)
    slow = plain.linkage_credit(np.hstack([x, c]), np.hstack([y, d]), gaps, x.shape[1])
    assert found.tolist() == pytest.approx(slow)


@unhurried
@given(classes=LABELS, data=st.data())
def test_dominance_rules_agree(classes, data):
    assume(max(classes) >= 0)
    values = data.draw(st.lists(HOLES, min_size=len(classes), max_size=len(classes)))
    share = data.draw(st.sampled_from([25.0, 50.0, 75.0]))
    by_largest, within = dominance.find_revealing_classes(classes, values, share, share)
    assert by_largest.tolist() == plain.dominated(classes, values, 1, share)
    assert within.tolist() == plain.within_percent(classes, values, share)


# Bounded losses are best on an unchanged table and worst on one generalized to the top; risks the other way round


forty_tables = settings(deadline=None, max_examples=40)


@st.composite
def varied(draw):
    """A table of two to four columns whose records all differ, in every column."""
    n, m = draw(st.integers(3, 12)), draw(st.integers(2, 4))
    return np.column_stack([draw(st.permutations(range(n))) for _ in range(m)]).astype(float) + 1.0


@forty_tables
@given(x=varied())
def test_numeric_losses_of_an_unchanged_table_are_0(x):
    moments = variation.Moments.from_table(x)
    losses = [continuous.sse(x, x), continuous.sse_ratio(x, x), continuous.normalized_sse(x, x), variation.il1(x, x)]
    losses += [variation.il1s(x, x), variation.eigenvalue_shift(moments, moments)]
    losses += [part(moments, moments) for part in (variation.il2, variation.il3, variation.il5)]
    found = pil(x, x)
    losses += [found.quantiles, found.means, found.variances, found.covariances, found.correlations]
    assert losses == [0] * len(losses)
    assert propensity_mse(x, x) == pytest.approx(0, abs=1e-12)


@forty_tables
@given(x=varied(), starred=st.booleans())
def test_numeric_losses_of_a_table_of_means_are_at_their_worst(x, starred):
    y = np.full_like(x, np.nan) if starred else np.broadcast_to(x.mean(axis=0), x.shape)
    assert continuous.sse_ratio(x, y) == pytest.approx(1)
    if starred:
        assert continuous.normalized_sse(x, y) == 1
    else:
        before, after = variation.Moments.from_table(x), variation.Moments.from_table(y)
        assert variation.eigenvalue_shift(before, after) == pytest.approx(1)
        assert variation.il3(before, after) == 1


@forty_tables
@given(x=varied(), data=st.data())
def test_class_means_lose_a_share_between_0_and_1(x, data):
    labels = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x))))
    y = np.array([x[labels == label].mean(axis=0) for label in labels])
    assert -1e-12 <= continuous.sse_ratio(x, y) <= 1 + 1e-12
    assert 0 <= continuous.normalized_sse(x, y) <= 1


@forty_tables
@given(x=varied())
def test_categorical_losses_are_0_unchanged_and_largest_at_the_top(x):
    codes, top = x.astype(int), np.full(x.shape, -1)
    n, m = codes.shape
    assert categorical.dist(codes, codes, [0] * m) == categorical.ebil(codes, codes) == 0
    assert categorical.contingency_loss(codes, codes, [n + 1] * m)[0] == 0
    assert categorical.dist(codes, top, [0] * m) == n * m
    assert categorical.ebil(codes, top) == pytest.approx(n * m * np.log2(n))  # every value held once: all bits are lost


@forty_tables
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


@forty_tables
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_class_losses_stay_in_their_range(sizes):
    n = sum(sizes)
    assert generalized.discernibility([1] * n) == n <= generalized.discernibility(sizes) <= n * n
    assert generalized.discernibility([n]) == n * n
    assert generalized.average_class_size([1] * n) == 1 <= generalized.average_class_size(sizes) <= n


@forty_tables
@given(x=varied())
def test_risks_are_highest_unchanged_and_lowest_in_one_class(x):
    n = len(x)
    own, one = np.arange(n), np.zeros(n, int)
    everything = WeightMatrix.equal_below(n + 1, n)
    unchanged, merged = ClassificationMatrix.from_classes(own, own), ClassificationMatrix.from_classes(own, one)
    assert dr_min(unchanged) == dr_max(unchanged) == dr_weighted(unchanged, everything) == 1
    assert dr_min(merged) == 0
    assert [dr_max(merged), dr_weighted(merged, everything)] == pytest.approx([1 / n, 1 / n])
    assert attacker.prosecutor_max([1] * n) == attacker.prosecutor_mean([1] * n) == 1
    assert attacker.prosecutor_max([n]) == attacker.prosecutor_mean([n]) == 1 / n
    means = np.broadcast_to(x.mean(axis=0), x.shape)
    assert linkage(linkage_credit(LinkageRecords.from_arrays(x), LinkageRecords.from_arrays(x))) == 1
    assert linkage(linkage_credit(LinkageRecords.from_arrays(x), LinkageRecords.from_arrays(means))) == pytest.approx(
        1 / n
    )
    assert interval.interval_credit(x, x).mean() == 1
    assert interval.interval_credit(x, np.full_like(x, np.nan)).mean() == 0
    assert inference.inference_gain(own, own) == inference.inference_gain_numbers(own, x[:, 0]) == 1
    assert inference.inference_gain(one, own) == 0
    assert inference.inference_gain_numbers(one, x[:, 0]) == pytest.approx(0, abs=1e-12)


@forty_tables
@given(data=st.data(), k=st.integers(2, 4))
def test_linkage_of_a_k_anonymous_table_is_at_most_1_over_k(data, k):
    def rows(least: int, most: int) -> np.ndarray:
        record = st.lists(st.integers(0, 5), min_size=2, max_size=2)
        return np.array(data.draw(st.lists(record, min_size=least, max_size=most)), float)

    released = np.repeat(rows(1, 4), k, axis=0)  # every released record at least k times
    original = rows(len(released), len(released))
    assert (
        linkage(linkage_credit(LinkageRecords.from_arrays(original), LinkageRecords.from_arrays(released)))
        <= 1 / k + 1e-12
    )


@forty_tables
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_moved_shares_are_those_of_the_definition(before: list[int], after: list[int]) -> None:
    values = [*dict.fromkeys([*before, *after])]
    places = find_moved_shares([before.count(v) for v in values], [after.count(v) for v in values])
    assert [values[place] for place in places] == [value for value, _, _ in plain.moved_shares(before, after)]


def test_every_entry_of_the_catalogue_is_a_sentence_with_a_range():
    for name, entry in CATALOGUE.items():
        assert name.split(".")[0] in ("risk", "loss", "plausibility")
        assert entry.title[0].isupper()
        assert entry.meaning.endswith(".")
        assert entry.range
        assert entry.better in ("less", "more")


# Measurement of whole releases: random mixed tables, against plain twins and against itself


def leaves(values: Any, path: str = "") -> dict[str, Any]:
    if isinstance(values, list) and values and isinstance(values[0], dict):
        values = dict(enumerate(values))
    if not isinstance(values, dict):
        return {path: values}
    return {key: value for name, held in values.items() for key, value in leaves(held, f"{path}.{name}").items()}


def can_be_released(drawn: Case) -> bool:
    try:
        kinfold.anonymize(drawn.table, drawn.policy)
    except kinfold.Unreachable:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(range(10), 4))
def test_every_measure_of_a_release_is_a_finite_number_or_null_with_a_reason(seed: int) -> None:
    drawn = usable(seed, can_be_released)
    release = kinfold.anonymize(drawn.table, drawn.policy)
    found = release.measures.to_dict()
    notes = " ".join(found["notes"])
    for section in ("risk", "loss"):
        for key, value in found[section].items():
            assert value is not None or f"{section}.{key}" in notes
        numbers = [value for value in leaves(found[section]).values() if not isinstance(value, str | None)]
        assert all(math.isfinite(value) for value in numbers)
    assert "not true of its original" not in notes  # our own statements are
    for key in ("prec", "granularity", "sse_ratio"):
        assert found["loss"][key] is None or -1e-9 <= found["loss"][key] <= 1 + 1e-9, key
    assert found["risk"]["linkage"] <= 1 / found["k"] + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(range(5), 2))
def test_measuring_a_released_frame_gives_what_the_release_recorded(seed: int) -> None:
    drawn = usable(seed, lambda drawn: bool(drawn.kept.all()) and can_be_released(drawn), round=False)
    release = kinfold.anonymize(drawn.table, drawn.policy)
    assert release.measures["suppressed"] == 0  # rows that were dropped could not be paired afterwards
    again = leaves(kinfold.measure(drawn.table, release.frame, drawn.policy).to_dict())
    told = leaves(release.measures.to_dict())
    assert again.pop(".pairing").startswith("paired by position: ")
    again.pop(".notes"), told.pop(".notes")
    assert again.keys() == told.keys()
    for key, value in told.items():
        close = value if value is None or isinstance(value, str) else pytest.approx(value, rel=1e-9, abs=1e-12)
        assert again[key] == close, key


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_released_frame_without_the_dropped_rows_is_not_paired_with_its_original(seed: int) -> None:
    drawn = usable(seed, lambda drawn: not drawn.kept.all() and can_be_released(drawn), round=False)
    release = kinfold.anonymize(drawn.table, drawn.policy)
    again = kinfold.measure(drawn.table, release.frame, drawn.policy).to_dict()
    assert again["suppressed"] == release.measures["suppressed"] == int((~drawn.kept).sum()) > 0
    assert again["loss"]["sse"] is None
    assert again["risk"]["linkage"] is None
    assert any("cannot be paired" in note for note in again["notes"])


def released_tables(seed: int) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """A table with ties and a release of it in classes of two or three, with an untouched column."""
    random = np.random.default_rng(seed)
    n = int(random.integers(6, 20))
    table = pd.DataFrame({"x": random.integers(0, 6, n), "c": random.choice(list("abc"), n), "u": random.choice(3, n)})
    group = np.arange(n) // 3 if n % 3 != 1 else np.minimum(np.arange(n) // 3, n // 3 - 1)
    mode = table.groupby(group)["c"].agg(lambda values: values.mode()[0])
    released = table.assign(x=table.groupby(group)["x"].transform("mean"), c=mode.to_numpy()[group])
    columns = {
        "x": {"role": "quasi", "type": "continuous", "weight": 2.0},
        "c": {"role": "quasi", "type": "nominal"},
        "u": {"role": "other"},
    }
    return table, released, {"privacy": {"k": 2}, "columns": columns}


def gap(one: Any, other: Any, deviation: float) -> float:
    step = (one.x - other.x) / deviation if deviation else 0.0
    return round(2.0 * step**2 + (one.c != other.c), 9)


@pytest.mark.parametrize("seed", first(range(9), 4))
def test_the_attack_with_untouched_columns_is_that_of_its_twin(seed: int) -> None:
    table, released, policy = released_tables(seed)
    deviation = float(table["x"].std(ddof=0))
    credit = []
    for i, person in enumerate(table.itertuples()):
        alike = [(j, row) for j, row in enumerate(released.itertuples()) if row.u == person.u]
        near = min(gap(person, row, deviation) for _, row in alike)
        nearest = [j for j, row in alike if gap(person, row, deviation) == near]
        credit.append(1 / len(nearest) if i in nearest else 0.0)
    found = kinfold.measure(table, released, policy, linkage_untouched=True)["risk"]["linkage_untouched"]
    assert found["linkage"] == pytest.approx(np.mean(credit))


@pytest.mark.parametrize("seed", first(range(9), 4))
def test_the_journalist_is_his_twin(seed: int) -> None:
    table, released, policy = released_tables(seed)
    random = np.random.default_rng(seed + 100)
    people = pd.DataFrame({"x": random.integers(-2, 9, 25), "c": random.choice(list("abcd"), 25)})
    deviation = float(table["x"].std(ddof=0))
    shown = list(dict.fromkeys(zip(released["x"], released["c"], strict=True)))
    sizes = Counter(zip(released["x"], released["c"], strict=True))
    looks: Counter[Any] = Counter()
    for person in people.itertuples():
        near = {key: gap(person, pd.Series({"x": key[0], "c": key[1]}), deviation) for key in shown}
        looks.update(key for key in shown if near[key] == min(near.values()))
    risks = [1 / max(looks[key], sizes[key]) for key in itertools.chain(*([key] * sizes[key] for key in shown))]
    found = kinfold.measure(table, released, policy, population=people)["risk"]["journalist"]
    assert found == {"max": pytest.approx(max(risks)), "mean": pytest.approx(np.mean(risks))}

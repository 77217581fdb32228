"""The models of diversity against their definitions, written plainly."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.models import AlphaK, KAnonymity, LDiversity, PSensitive, TCloseness
from kinfold.rows.tally import of_labels

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
    return of_labels(labels, {"x": column}), counts


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

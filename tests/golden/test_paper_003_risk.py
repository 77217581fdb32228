"""Truta, Fotouhi & Barth-Jones: Figures 4 and 5, the matrices C1, C2 and C3, and Table 3."""

import numpy as np
import pytest

from kinfold.measures.disclosure import (
    Classification,
    SizeCounts,
    dr_max,
    dr_min,
    dr_weighted,
    uncounted,
    unique_from_larger,
)
from kinfold.measures.grouping import group_rows
from kinfold.measures.weights import WeightMatrix

SEX = [0, 0, 1, 1, 1, 1, 1, 1]
INITIAL = [8, 10, 19, 23, 37, 43, 68, 72]
MASKED = {
    "MM1": [9, 9, 21, 21, 40, 40, 70, 70],
    "MM2": [15, 15, 15, 15, 55, 55, 55, 55],
    "MM3": [35, 35, 35, 35, 35, 35, 35, 35],
}
WEIGHTS = {
    "W1": [[8]],
    "W2": np.tril(np.full((8, 8), 2 / 9)),  # printed 2/7; 2/9 sums to 8
    "W3": [[4, 0], [2, 2]],
}
TABLE_3 = {
    "MM1": {"W1": 0, "W2": 0.5, "W3": 0.25},
    "MM2": {"W1": 0, "W2": 0.375, "W3": 0.125},
    "MM3": {"W1": 0, "W2": 0.25, "W3": 0.0625},
}


def classes(ages: list[int]) -> np.ndarray:
    return group_rows(np.column_stack([ages, SEX]))[0]


def matrix(name: str) -> Classification:
    return Classification.of(classes(INITIAL), classes(MASKED[name]))


def test_figure_5_counts_the_clusters_of_the_initial_file():
    counts = SizeCounts.of(classes(INITIAL))
    assert (counts.sizes.tolist(), counts.classes.tolist(), counts.records.tolist()) == ([1], [8], [8])


@pytest.mark.parametrize(
    ("name", "sizes", "clusters", "records"),
    [("MM1", [2], [4], [8]), ("MM2", [2, 4], [2, 1], [4, 4]), ("MM3", [2, 6], [1, 1], [2, 6])],
)
def test_figure_5_counts_the_clusters_of_each_masked_file(name, sizes, clusters, records):
    counts = SizeCounts.of(classes(MASKED[name]))
    assert (counts.sizes.tolist(), counts.classes.tolist(), counts.records.tolist()) == (sizes, clusters, records)


@pytest.mark.parametrize(("name", "rows"), [("MM1", {2: 8}), ("MM2", {2: 4, 4: 4}), ("MM3", {2: 2, 6: 6})])
def test_the_classification_matrices_are_c1_c2_and_c3(name, rows):
    printed = np.zeros((8, 8), int)
    for size, count in rows.items():
        printed[size - 1, 0] = count
    found = matrix(name)
    shown = np.zeros((8, 8), int)
    shown[found.masked - 1, found.initial - 1] = found.count
    assert (shown == printed).all()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", MASKED)
def test_table_3_comes_out_in_all_nine_values(name, weights):
    assert dr_weighted(matrix(name), WeightMatrix.of(WEIGHTS[weights], 8)) == pytest.approx(
        TABLE_3[name][weights], abs=1e-12
    )


@pytest.mark.parametrize("name", MASKED)
def test_w1_is_the_minimal_and_w2_the_maximal_risk(name):
    assert dr_min(matrix(name)) == TABLE_3[name]["W1"]
    assert dr_max(matrix(name)) == pytest.approx(TABLE_3[name]["W2"], abs=1e-12)


def test_a_minimal_risk_of_0_does_not_make_a_file_2_anonymous():
    # two people share their original key, and noise splits them: both are unique in the release, and DRmin is 0
    split = Classification.of([0, 0, 1, 1], [0, 1, 2, 2])
    assert dr_min(split) == 0
    assert unique_from_larger(split) == 2
    assert uncounted(split) == 2
    assert SizeCounts.of([0, 1, 2, 2]).sizes.min() == 1


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("name", MASKED)
def test_the_rule_k_is_0_exactly_where_the_file_is_k_anonymous(name, k):
    smallest = SizeCounts.of(classes(MASKED[name])).sizes.min()
    assert (dr_weighted(matrix(name), WeightMatrix.below(k, 8)) == 0) == (smallest >= k)

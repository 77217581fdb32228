"""Truta, Fotouhi & Barth-Jones: Figures 3 to 5, the matrices, Tables 2 and 3, as kinfold reproduce prints them."""

import numpy as np
import pytest

from kinfold.measures.formulas.global_risk import (
    ClassificationMatrix,
    SizeCounts,
    WeightMatrix,
    dr_max,
    dr_min,
    dr_weighted,
    uncounted,
    unique_from_larger,
)
from kinfold.methods.generalize.lattice import Lattice
from kinfold.models import KAnonymity
from kinfold.papers.exhibits import PrintedValues
from kinfold.papers.paper_003 import MASKED, WEIGHTS, class_labels, classification_matrix, format_node, people

TABLE_3 = {key: float(printed) for key, printed in PrintedValues("003").read_cells("table_3", "{file}").items()}
MATRICES = {row["matrix"]: row["entries that are not 0"] for row in PrintedValues("003").read_table("matrices")}


def by_size(sizes: np.ndarray, counts: np.ndarray) -> str:
    return ", ".join(f"{size}: {count}" for size, count in zip(sizes.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize("row", PrintedValues("003").read_table("figure_5"), ids=lambda row: row["file"])
def test_figure_5_counts_the_clusters_of_each_file(row):
    counts = SizeCounts.from_classes(class_labels(row["file"]))
    assert counts.classes.sum() == int(row["clusters"])
    assert by_size(counts.sizes, counts.classes) == row["clusters of each size"]
    assert by_size(counts.sizes, counts.records) == row["records in clusters of each size"]


@pytest.mark.parametrize(("name", "printed"), list(zip(MASKED, MATRICES.values(), strict=True)))
def test_the_classification_matrices_are_c1_c2_and_c3(name, printed):
    found = classification_matrix(name)
    shown = np.zeros((8, 8), int)
    shown[found.masked - 1, found.initial - 1] = found.count
    entries = [f"c{i + 1}{j + 1} = {shown[i, j]}" for i, j in np.argwhere(shown)]
    assert ", ".join(entries) == printed


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", MASKED)
def test_table_3_comes_out_in_all_nine_values(name, weights):
    assert dr_weighted(classification_matrix(name), WeightMatrix.from_matrix(WEIGHTS[weights], 8)) == pytest.approx(
        TABLE_3[name, weights], abs=1e-12
    )


@pytest.mark.parametrize("name", MASKED)
def test_w1_is_the_minimal_and_w2_the_maximal_risk(name):
    assert dr_min(classification_matrix(name)) == TABLE_3[name, "W1"]
    assert dr_max(classification_matrix(name)) == pytest.approx(TABLE_3[name, "W2"], abs=1e-12)


def test_a_minimal_risk_of_0_does_not_make_a_file_2_anonymous():
    # two people share their original key, and noise splits them: both are unique in the release, and DRmin is 0
    split = ClassificationMatrix.from_classes([0, 0, 1, 1], [0, 1, 2, 2])
    assert dr_min(split) == 0
    assert unique_from_larger(split) == 2
    assert uncounted(split) == 2
    assert SizeCounts.from_classes([0, 1, 2, 2]).sizes.min() == 1


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("name", MASKED)
def test_the_rule_k_is_0_exactly_where_the_file_is_k_anonymous(name, k):
    smallest = SizeCounts.from_classes(class_labels(name)).sizes.min()
    assert (dr_weighted(classification_matrix(name), WeightMatrix.equal_below(k, 8)) == 0) == (smallest >= k)


# Truta, Fotouhi & Barth-Jones: Table 2, on a table made to have the outlier counts of Figure 3.


def test_the_table_has_the_counts_of_figure_3():
    found = {format_node(each.levels): each.outliers for each in Lattice(people(), [KAnonymity(5)])}
    assert found == {row["node"]: int(row["outliers"]) for row in PrintedValues("003").read_table("figure_3")}


@pytest.mark.parametrize("row", PrintedValues("003").read_table("table_2"), ids=lambda row: row["TS"])
def test_table_2_names_the_minimal_generalizations(row):
    found = Lattice(people(), [KAnonymity(5)], suppression=int(row["TS"])).minimal()
    assert " and ".join(format_node(each.levels) for each in found) == row["node"]

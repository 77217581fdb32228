"""A measure without an answer says why; a wrong call says what to do."""

import numpy as np
import pytest

from kinfold.errors import DataError, PolicyError
from kinfold.measures.formulas import (
    NotApplicable,
    attackers,
    attribute_disclosure,
    categorical_loss,
    numeric_loss,
    uniques,
    utility,
)
from kinfold.measures.formulas.global_risk import ClassificationMatrix, WeightMatrix, dr_weighted
from kinfold.measures.formulas.linkage import LinkageRecords, linkage, linkage_credit
from kinfold.measures.formulas.probabilistic_loss import pil
from kinfold.measures.formulas.utility import propensity_mse

NAN = np.nan
CONSTANT = np.array([[1.0, 0.1], [1.0, 0.1], [1.0, 0.1]])
NOBODY = np.array([-1, -1])

WITHOUT_ANSWER = {
    "no cells": lambda: numeric_loss.sse(np.empty((0, 2)), np.empty((0, 2))),
    "no cells to total": lambda: numeric_loss.sst(np.empty((0, 2))),
    "constant columns": lambda: numeric_loss.sse_ratio(CONSTANT, CONSTANT),
    "all missing": lambda: numeric_loss.normalized_sse([[NAN]], [[1.0]]),
    "all zero": lambda: numeric_loss.il1([[0.0]], [[1.0]]),
    "no deviation": lambda: numeric_loss.il1s(CONSTANT, CONSTANT),
    "no pair": lambda: numeric_loss.il5(
        numeric_loss.Moments.from_table([1.0, 2.0]), numeric_loss.Moments.from_table([1.0, 2.0])
    ),
    "no spectrum": lambda: numeric_loss.eigenvalue_shift(
        numeric_loss.Moments.from_table(CONSTANT), numeric_loss.Moments.from_table(CONSTANT)
    ),
    "one record": lambda: numeric_loss.Moments.from_table([[1.0, 2.0]]),
    "one complete record": lambda: pil([[1.0], [NAN]], [[1.0], [2.0]]),
    "nothing to tell apart by": lambda: propensity_mse(CONSTANT, CONSTANT),
    "nobody complete": lambda: propensity_mse([[NAN]], [[1.0]]),
    "no classes": lambda: categorical_loss.average_class_size(np.array([], int)),
    "no hierarchy": lambda: categorical_loss.prec([[0, 0]], heights=[0, 0]),
    "single values": lambda: categorical_loss.granularity([[1]], leaves=[1]),
    "no categories": lambda: categorical_loss.ebil(np.empty((0, 2), int), np.empty((0, 2), int)),
    "nobody released": lambda: ClassificationMatrix.from_classes([0, 1], NOBODY),
    "nobody to prosecute": lambda: attackers.prosecutor_risk(NOBODY),
    "an empty table": lambda: attackers.prosecutor_risk(np.array([], int)),
    "nobody to report on": lambda: attackers.journalist_risk(NOBODY, [3]),
    "nobody sampled": lambda: attackers.individual_risk(NOBODY, [1.0, 1.0]),
    "no risks": lambda: attackers.marketer_risk([]),
    "all unique": lambda: uniques.pitman_uniques([1, 1, 1], population=10),
    "nothing to guess": lambda: attribute_disclosure.inference_gain([0, 0], [3, 3]),
    "nobody to guess about": lambda: attribute_disclosure.inference_gain(NOBODY, [1, 2]),
    "no number to guess": lambda: attribute_disclosure.inference_gain_numbers([0, 0], [NAN, NAN]),
    "nobody to link": lambda: linkage(np.empty(0)),
    "nothing to link by": lambda: linkage_credit(
        LinkageRecords.from_arrays(np.empty((2, 0))), LinkageRecords.from_arrays(np.empty((2, 0)))
    ),
    "no values": lambda: utility.summarize([NAN]),
    "a constant target": lambda: utility.regression_loss(CONSTANT, CONSTANT, target=0),
    "too few records": lambda: utility.regression_loss([[1.0, 2.0]], [[1.0, 2.0]], target=0),
    "one category": lambda: utility.accuracy_loss([[1.0], [2.0]], [[1.0], [2.0]], [0, 0], [0, 0]),
    "nobody to dominate": lambda: attribute_disclosure.find_revealing_classes(NOBODY, [1.0, 2.0]),
}


@pytest.mark.parametrize("call", WITHOUT_ANSWER.values(), ids=WITHOUT_ANSWER)
def test_a_measure_that_does_not_apply_says_why(call):
    with pytest.raises(NotApplicable) as caught:
        call()
    assert len(caught.value.reason.split()) > 3


WRONG = {
    "shapes": lambda: numeric_loss.sse([1.0, 2.0], [1.0]),
    "sizes": lambda: categorical_loss.average_class_size([0, 1]),
    "labels": lambda: attackers.prosecutor_risk([0.5]),
    "codes": lambda: categorical_loss.ebil([0.5], [0.5]),
    "code shapes": lambda: categorical_loss.ebil([0, 1], [0]),
    "classes": lambda: ClassificationMatrix.from_classes([0, -1], [0, 0]),
    "levels": lambda: categorical_loss.prec([[3]], heights=[2]),
    "leaves": lambda: categorical_loss.granularity([[3]], leaves=[2]),
    "population": lambda: attackers.journalist_risk([0, 0], [1]),
    "weights": lambda: attackers.individual_risk([0], [0.5]),
    "sample": lambda: uniques.zayatz_uniques([1, 1], population=1),
    "columns": lambda: propensity_mse([[1.0, 2.0]], [[1.0]]),
    "gaps": lambda: linkage_credit(LinkageRecords.from_arrays(None, [[0]]), LinkageRecords.from_arrays(None, [[0]])),
    "missing numbers": lambda: LinkageRecords.from_arrays([[NAN]]),
    "values": lambda: attribute_disclosure.find_revealing_classes([0, 0], [1.0]),
    "records": lambda: dr_weighted(ClassificationMatrix.from_classes([0, 1], [0, 0]), WeightMatrix.equal_below(2, 3)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_wrong_call_says_what_to_do(call):
    with pytest.raises(DataError, match="fix:"):
        call()


@pytest.mark.parametrize(
    ("matrix", "records", "problem"),
    [
        ([[4, 1], [2, 2]], 9, "above the diagonal"),
        ([[2, 0], [4, 2]], 8, "down a column"),
        ([[4, 0], [1, 3]], 8, "along a row"),
        ([[4, 0], [1, 5]], 10, "down a diagonal"),
        ([[2, 0, 0], [2, 2, 0], [1, 1, 1]], 20, "sum to 9"),
        ([[1, 0], [1, 1]], 2, "sum to 3"),
        ([[1, 2, 3]], 6, "shape"),
        ([[1, 0], [1, 1]], 1, "2 rows for 1"),
        ([[1.0, 0.0], [-1.0, -1.0]], 3, "down a column"),
    ],
)
def test_each_condition_on_weights_has_its_own_error(matrix, records, problem):
    with pytest.raises(PolicyError, match=problem):
        WeightMatrix.from_matrix(matrix, records)


def test_conditions_that_fail_are_reported_together():
    with pytest.raises(PolicyError) as caught:
        WeightMatrix.from_matrix([[1, 0], [2, 3]], 5)
    found = [problem.what for problem in caught.value.problems]
    assert [what.split(" a ")[-1] for what in found[:3]] == ["column", "row", "diagonal"]
    assert found[3:] == ["the weights sum to 6, not to 5"]


def test_the_rule_k_needs_a_k_and_weights_are_not_negative():
    with pytest.raises(PolicyError, match="k is 1"):
        WeightMatrix.equal_below(1, 5)
    with pytest.raises(PolicyError, match="per attribute"):
        categorical_loss.prec([[1, 1]], heights=[2, 2], weights=[1, -1])

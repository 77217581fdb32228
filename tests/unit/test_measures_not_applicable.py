"""A measure without an answer says why; a wrong call says what to do."""

import numpy as np
import pytest

from kinfold.errors import DataError, PolicyError
from kinfold.measures import (
    NotApplicable,
    attacker,
    categorical,
    continuous,
    dominance,
    generalized,
    inference,
    uniques,
    utility,
    variation,
)
from kinfold.measures.disclosure import Classification, dr_weighted
from kinfold.measures.linkage import Located, linkage, linkage_credit
from kinfold.measures.probabilistic import pil
from kinfold.measures.propensity import propensity_mse
from kinfold.measures.weights import WeightMatrix

NAN = np.nan
CONSTANT = np.array([[1.0, 0.1], [1.0, 0.1], [1.0, 0.1]])
NOBODY = np.array([-1, -1])

WITHOUT_ANSWER = {
    "no cells": lambda: continuous.sse(np.empty((0, 2)), np.empty((0, 2))),
    "no cells to total": lambda: continuous.sst(np.empty((0, 2))),
    "constant columns": lambda: continuous.sse_ratio(CONSTANT, CONSTANT),
    "all missing": lambda: continuous.normalized_sse([[NAN]], [[1.0]]),
    "all zero": lambda: variation.il1([[0.0]], [[1.0]]),
    "no deviation": lambda: variation.il1s(CONSTANT, CONSTANT),
    "no pair": lambda: variation.il5(variation.Moments.of([1.0, 2.0]), variation.Moments.of([1.0, 2.0])),
    "no spectrum": lambda: variation.eigenvalue_shift(variation.Moments.of(CONSTANT), variation.Moments.of(CONSTANT)),
    "one record": lambda: variation.Moments.of([[1.0, 2.0]]),
    "one complete record": lambda: pil([[1.0], [NAN]], [[1.0], [2.0]]),
    "nothing to tell apart by": lambda: propensity_mse(CONSTANT, CONSTANT),
    "nobody complete": lambda: propensity_mse([[NAN]], [[1.0]]),
    "no classes": lambda: generalized.average_class_size(np.array([], int)),
    "no hierarchy": lambda: generalized.prec([[0, 0]], heights=[0, 0]),
    "single values": lambda: generalized.granularity([[1]], leaves=[1]),
    "nothing to lose": lambda: generalized.non_uniform_entropy([[2], [2]], [[2], [2]], records=2),
    "no categories": lambda: categorical.ebil(np.empty((0, 2), int), np.empty((0, 2), int)),
    "nobody released": lambda: Classification.of([0, 1], NOBODY),
    "nobody to prosecute": lambda: attacker.prosecutor_risk(NOBODY),
    "an empty table": lambda: attacker.prosecutor_risk(np.array([], int)),
    "nobody to report on": lambda: attacker.journalist_risk(NOBODY, [3]),
    "nobody sampled": lambda: attacker.individual_risk(NOBODY, [1.0, 1.0]),
    "no risks": lambda: attacker.marketer_risk([]),
    "all unique": lambda: uniques.pitman_uniques([1, 1, 1], population=10),
    "nothing to guess": lambda: inference.inference_gain([0, 0], [3, 3]),
    "nobody to guess about": lambda: inference.inference_gain(NOBODY, [1, 2]),
    "no number to guess": lambda: inference.inference_gain_numbers([0, 0], [NAN, NAN]),
    "nobody to link": lambda: linkage(np.empty(0)),
    "nothing to link by": lambda: linkage_credit(Located.of(np.empty((2, 0))), Located.of(np.empty((2, 0)))),
    "no values": lambda: utility.summary([NAN]),
    "a constant target": lambda: utility.regression_loss(CONSTANT, CONSTANT, target=0),
    "too few records": lambda: utility.regression_loss([[1.0, 2.0]], [[1.0, 2.0]], target=0),
    "one category": lambda: utility.accuracy_loss([[1.0], [2.0]], [[1.0], [2.0]], [0, 0], [0, 0]),
    "nobody to dominate": lambda: dominance.dominated(NOBODY, [1.0, 2.0]),
    "nobody to single out": lambda: dominance.singled_out(NOBODY, [1, 2]),
}


@pytest.mark.parametrize("call", WITHOUT_ANSWER.values(), ids=WITHOUT_ANSWER)
def test_a_measure_that_does_not_apply_says_why(call):
    with pytest.raises(NotApplicable) as caught:
        call()
    assert len(caught.value.reason.split()) > 3


WRONG = {
    "shapes": lambda: continuous.sse([1.0, 2.0], [1.0]),
    "sizes": lambda: generalized.average_class_size([0, 1]),
    "labels": lambda: attacker.prosecutor_risk([0.5]),
    "codes": lambda: categorical.ebil([0.5], [0.5]),
    "code shapes": lambda: categorical.ebil([0, 1], [0]),
    "classes": lambda: Classification.of([0, -1], [0, 0]),
    "levels": lambda: generalized.prec([[3]], heights=[2]),
    "leaves": lambda: generalized.granularity([[3]], leaves=[2]),
    "counts": lambda: generalized.non_uniform_entropy([[2]], [[1]], records=3),
    "population": lambda: attacker.journalist_risk([0, 0], [1]),
    "weights": lambda: attacker.individual_risk([0], [0.5]),
    "sample": lambda: uniques.zayatz_uniques([1, 1], population=1),
    "columns": lambda: propensity_mse([[1.0, 2.0]], [[1.0]]),
    "gaps": lambda: linkage_credit(Located.of(None, [[0]]), Located.of(None, [[0]])),
    "missing numbers": lambda: Located.of([[NAN]]),
    "values": lambda: dominance.dominated([0, 0], [1.0]),
    "column": lambda: dominance.singled_out([0, 0], [1]),
    "records": lambda: dr_weighted(Classification.of([0, 1], [0, 0]), WeightMatrix.below(2, 3)),
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
        WeightMatrix.of(matrix, records)


def test_conditions_that_fail_are_reported_together():
    with pytest.raises(PolicyError) as caught:
        WeightMatrix.of([[1, 0], [2, 3]], 5)
    found = [problem.what for problem in caught.value.problems]
    assert [what.split(" a ")[-1] for what in found[:3]] == ["column", "row", "diagonal"]
    assert found[3:] == ["the weights sum to 6, not to 5"]


def test_the_rule_k_needs_a_k():
    with pytest.raises(PolicyError, match="k is 1"):
        WeightMatrix.below(1, 5)


def test_weights_of_attributes_are_not_negative():
    with pytest.raises(PolicyError, match="per attribute"):
        generalized.prec([[1, 1]], heights=[2, 2], weights=[1, -1])

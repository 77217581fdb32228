"""Promises about the sizes of all classes: the definition, both checkers, what they imply, what is dropped for them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinfold
from kinfold import checker
from kinfold.models import AverageRisk, RiskShare, to_class_models
from kinfold.models.average_risk import size_for_risk
from kinfold.tables.tally import Tally
from reference import parity

class_sizes = st.lists(st.integers(1, 9), min_size=1, max_size=7)
risks = st.sampled_from([0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9])


def average(sizes: list[int]) -> float:
    return sum(size * (1 / size) for size in sizes) / sum(sizes)


def share(sizes: list[int], above: float) -> float:
    return sum(size for size in sizes if 1 / size > above) / sum(sizes)


@given(class_sizes, risks, st.sampled_from([0.0, 0.2, 0.5]))
def test_both_checkers_find_what_the_definition_says(sizes: list[int], risk: float, most: float) -> None:
    tally = Tally({}, np.array(sizes))
    models = {AverageRisk(risk): average(sizes), RiskShare(risk, most): share(sizes, risk)}
    for model, expected in models.items():
        finding, limit = model.check(tally), model.risk if isinstance(model, AverageRisk) else most
        assert finding.found == pytest.approx(expected, abs=1e-12)
        assert finding.holds is (finding.found <= limit)
        assert checker.measure_risk(sizes, vars(model)) == pytest.approx(expected, abs=1e-12)


@given(class_sizes, risks, st.sampled_from([0.0, 0.2, 0.5]))
def test_the_fewest_records_are_dropped_so_that_the_others_keep_it(sizes: list[int], risk: float, most: float) -> None:
    tally = Tally({}, np.array(sizes))
    failing = AverageRisk(risk).failing(tally)
    kept = [i for count in range(len(sizes) + 1) for i in combinations(range(len(sizes)), count)]
    holding = [sum(sizes[i] for i in each) for each in kept if each and average([sizes[i] for i in each]) <= risk]
    assert tally.sizes[~failing].sum() == max(holding, default=0)
    marked = RiskShare(risk, most).failing(tally)
    assert marked.all() or share([size for size, gone in zip(sizes, marked, strict=True) if not gone], risk) <= most


@given(class_sizes, risks)
def test_larger_classes_imply_it(sizes: list[int], risk: float) -> None:
    least = size_for_risk(risk)
    assert 1 / least <= risk
    assert least == 1 or 1 / (least - 1) > risk
    tally = Tally({}, np.array([size + least - 1 for size in sizes]))
    for model in (AverageRisk(risk), RiskShare(risk, 0.0)):
        assert not any(each.failing(tally).any() for each in to_class_models([model], tally.records))
        assert model.check(tally).holds


@pytest.mark.parametrize("risk", [0, -0.1, 1.5, float("nan")])
def test_a_risk_that_is_none_is_refused(risk: float) -> None:
    for make in (AverageRisk, lambda level: RiskShare(level, 0.1)):
        with pytest.raises(kinfold.PolicyError, match="above 0"):
            make(risk)


@pytest.mark.slow
@pytest.mark.parametrize("case", parity.cases("population_models"))
def test_nodes_of_adult_have_the_risks_of_the_parity_file(case: dict) -> None:
    levels = case["input"]["levels"]
    sizes = parity.generalized_adult(levels).groupby([*levels], sort=False).size().to_numpy()
    tally, expect = Tally({}, sizes), case["expect"]
    for key, holds in case["arx_holds"].items():
        model, _, limits = key.split("|")
        values = [float(each) for each in limits.split(",")]
        if model == "average_risk":
            assert AverageRisk(values[0]).check(tally).holds is holds
        if model == "strict_average_risk":
            promises = (AverageRisk(values[0]), RiskShare(values[1], values[2]))
            assert all(each.check(tally).holds for each in promises) is holds
    assert AverageRisk(1.0).check(tally).found == pytest.approx(expect["average_risk"], rel=1e-12)

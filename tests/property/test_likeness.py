"""Likeness and disclosure: the models, the plain checker and the definitions, and the values of other tools."""

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold import checker
from kinfold.methods.partition.requirement import Requirement, measure_misses
from kinfold.models import BetaLikeness, DeltaDisclosure
from kinfold.tables.tally import tally_labels
from reference import definitions, parity

LIMITS = (0.25, 0.5, 1.0, 1.5, 3.0)
rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=24)


def held_by(records: list[tuple[int, int]]) -> list[Counter[Any]]:
    return definitions.classes([label for label, _ in records], [value for _, value in records])


@given(rows, st.sampled_from(LIMITS), st.sampled_from(["basic", "enhanced"]))
def test_beta_is_the_definition_in_the_model_and_in_the_plain_checker(
    records: list[tuple[int, int]], beta: float, kind: str
) -> None:
    held, labels = held_by(records), np.unique([label for label, _ in records], return_inverse=True)[1]
    whole = sum(held, Counter())
    expected = max(definitions.gain(each, whole, enhanced=kind == "enhanced") for each in held)
    kept = [_keeps_beta(each, whole, beta, kind) for each in held]
    tally = tally_labels(labels, {"x": [value for _, value in records]})
    finding = BetaLikeness(beta, "x", kind).check(tally)
    assert finding.found == pytest.approx(max(expected, 0.0), abs=1e-12)
    assert (finding.holds, finding.failing) == (all(kept), kept.count(False))
    assert checker.compare_shares(held, beta, kind) == (pytest.approx(finding.figure, abs=1e-12), finding.holds)


def _keeps_beta(held: Counter[Any], whole: Counter[Any], beta: float, kind: str) -> bool:
    shares = {v: Fraction(n, whole.total()) for v, n in whole.items()}
    most = {v: min(beta, -math.log(p)) if kind == "enhanced" else beta for v, p in shares.items()}
    return all(Fraction(n, held.total()) <= shares[v] * (1 + Fraction(most[v])) for v, n in held.items())


@given(rows, st.sampled_from(LIMITS))
def test_delta_is_the_definition_in_the_model_and_in_the_plain_checker(
    records: list[tuple[int, int]], delta: float
) -> None:
    held, labels = held_by(records), np.unique([label for label, _ in records], return_inverse=True)[1]
    whole = sum(held, Counter())
    found = [definitions.disclosure(each, whole) for each in held]
    finding = DeltaDisclosure(delta, "x").check(tally_labels(labels, {"x": [value for _, value in records]}))
    assert finding.found == pytest.approx(max(found), abs=1e-12)
    assert (finding.holds, finding.failing) == (max(found) < delta, sum(each >= delta for each in found))
    assert checker.compare_shares(held, delta, "DeltaDisclosure")[1] is finding.holds


@given(rows, st.sampled_from(LIMITS))
def test_a_union_keeps_what_both_classes_keep(records: list[tuple[int, int]], limit: float) -> None:
    labels = np.unique([label for label, _ in records], return_inverse=True)[1]
    tally = tally_labels(labels, {"x": [value for _, value in records]})
    if len(tally) < 2:
        return
    union = tally.merge(np.maximum(np.arange(len(tally)) - 1, 0), {})
    for model in (BetaLikeness(limit, "x"), BetaLikeness(limit, "x", "enhanced"), DeltaDisclosure(limit, "x")):
        before = model.failing(tally)
        assert before[:2].any() or not model.failing(union)[0]


@given(st.integers(0, 10**6), st.sampled_from(LIMITS))
@settings(max_examples=40, deadline=None)
def test_a_search_sees_a_miss_where_the_model_does(seed: int, limit: float) -> None:
    """The kernel reads one class at a time, with the counts of the table."""
    chance = np.random.default_rng(seed)
    values = chance.choice(["a", "b", "c", "d"], 120, p=[0.5, 0.3, 0.15, 0.05])
    labels = np.unique(chance.integers(0, chance.integers(2, 20), 120), return_inverse=True)[1].astype(np.int32)
    tally = tally_labels(labels, {"x": values})
    for model in (BetaLikeness(limit, "x"), BetaLikeness(limit, "x", "enhanced"), DeltaDisclosure(limit, "x")):
        missed = measure_misses([Requirement.of(model, values)], labels) > 0
        assert missed.tolist() == model.failing(tally).tolist()


@pytest.mark.parametrize("method", ["mdav", "t-merge"])
@pytest.mark.parametrize("asked", [{"beta": 0.5}, {"beta": 0.4, "beta_kind": "enhanced"}, {"delta": 0.5}])
def test_classes_that_miss_a_likeness_are_merged_until_none_does(asked: dict[str, Any], method: str) -> None:
    chance = np.random.default_rng(0)  # exchanges alone do not repair these
    table = pd.DataFrame({"age": chance.integers(20, 60, 400), "ill": chance.choice(["flu", "hiv", "cold"], 400)})
    columns = {"age": {"role": "quasi"}, "ill": {"role": "confidential", **({"t": 0.5} if method == "t-merge" else {})}}
    policy = {"privacy": {"k": 3, **asked}, "method": {"name": method}, "columns": columns}
    release = kinfold.anonymize(table, policy)
    assert release.verdict.holds
    assert release.verdict.classes > 1


def test_limits_are_compared_exactly() -> None:
    """A share that doubles keeps beta = 1, and does not keep delta = 1: that limit is strict."""
    tally = tally_labels(np.array([0, 0, 1, 1]), {"x": ["a", "b", "a", "c"]})
    assert [BetaLikeness(1, "x").check(tally).holds, BetaLikeness(0.999, "x").check(tally).holds] == [True, False]
    pair = tally_labels(np.repeat([0, 1], [3, 6]), {"x": ["a", "a", "b", "a", "b", "b", "b", "b", "b"]})
    assert DeltaDisclosure(1, "x").check(pair).found == 1.0
    assert not DeltaDisclosure(1, "x").check(pair).holds
    constant = tally_labels(np.array([0, 0, 1]), {"x": ["a", "a", "a"]})
    assert BetaLikeness(1, "x", "enhanced").check(constant).found == 0.0
    assert BetaLikeness(1, "x", "enhanced").check(constant).holds


@pytest.mark.parametrize("model", [BetaLikeness, DeltaDisclosure])
@pytest.mark.parametrize("level", [0, -1.0, math.inf, math.nan])
def test_levels_without_a_meaning_are_refused(model: Any, level: float) -> None:
    with pytest.raises(kinfold.PolicyError, match="above 0"):
        model(level, "x")


def test_a_release_says_what_was_promised_and_both_checkers_agree(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    ill = chance.choice(["flu", "cold", "hiv"], 90, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame({"age": chance.integers(20, 60, 90), "ill": ill})
    asked = {"k": 3, "beta": 2.0, "beta_kind": "enhanced", "delta": 2.0}
    columns = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}, "ill": {"role": "confidential"}}
    release = kinfold.anonymize(frame, {"privacy": asked, "method": {"name": "lattice"}, "columns": columns})
    release.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).holds
    promises = [finding.promise for finding in release.verdict.findings]
    assert promises == ["3-anonymity", "2-likeness (enhanced) of ill", "2-disclosure (strict) of ill"]
    broken = kinfold.verify(frame, {"privacy": asked, "columns": columns})
    assert [entry["found"] for entry in broken.to_dict()["promises"][1:]] == [None, None]
    assert not broken.holds


@pytest.mark.slow
@pytest.mark.parametrize("case", parity.cases("likeness"))
def test_nodes_of_adult_have_the_values_of_the_parity_file(case: Any) -> None:
    """Where ARX looks at present values only, a lacking value makes delta infinite here."""
    levels, expect = case["input"]["levels"], case["expect"]
    frame = parity.generalized_adult(levels)
    labels = frame.groupby([*levels], sort=False).ngroup().to_numpy()
    for column in ("occupation", "salary-class"):
        tally = tally_labels(labels, {column: frame[column].to_numpy(str)})
        basic = BetaLikeness(1, column).check(tally)
        assert basic.found == pytest.approx(expect[f"basic_beta|{column}"], rel=1e-12)
        for level, holds in expect[f"enhanced_holds|{column}"].items():
            assert BetaLikeness(float(level), column, "enhanced").check(tally).holds is holds
        lacking = expect[f"a_value_is_absent_somewhere|{column}"]
        delta = math.inf if lacking else expect[f"delta_disclosure_present_values|{column}"]
        assert DeltaDisclosure(1, column).check(tally).found == pytest.approx(delta, rel=1e-12)
        for key, holds in case["arx_holds"].items():
            model, of, level = key.split("|")
            if of == column and model != "delta_disclosure":
                kind = model.removesuffix("_beta")
                assert BetaLikeness(float(level), column, kind).check(tally).holds is holds

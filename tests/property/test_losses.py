"""The one loss for every method: by hand as docs/measures/overall.md has it, against its exact twin, and its laws."""

from dataclasses import asdict
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.measures.formulas import attribute_disclosure as inference
from kinfold.measures.formulas import global_risk as disclosure
from kinfold.measures.formulas import numeric_loss as continuous
from kinfold.measures.formulas import numeric_loss as overall
from kinfold.measures.formulas import numeric_loss as variation
from kinfold.measures.formulas.arrays import compute_quantiles, group_equal_rows, group_rows
from kinfold.measures.formulas.attribute_disclosure import ClassOrder, find_revealing_classes, interval_credit
from kinfold.measures.formulas.linkage import LinkageRecords, linkage_credit
from kinfold.measures.formulas.numeric_loss import Moments
from kinfold.measures.formulas.probabilistic_loss import pil
from kinfold.measures.formulas.utility import summarize
from ledger import tally_up
from pipeline_tables import Case, usable
from reference import overall_loss as plain

ORDER = ["low", "mid", "high", "top"]
TREE = {"a1": ["a1", "a*", "*"], "a2": ["a2", "a*", "*"], "b1": ["b1", "b*", "*"], "b2": ["b2", "b*", "*"]}
AREAS = {"hierarchy": {"levels": list(TREE.values())}}


def lost(original: dict[str, list[Any]], released: dict[str, list[Any]], **asked: Any) -> Any:
    """Measure two tables whose columns are all quasi-identifiers, as the policy of each says."""
    columns = {name: {"role": "quasi", "missing": "separate", **asked.get(name, {})} for name in original}
    for name, column in columns.items():
        if column.get("type") in ("nominal", "ordinal"):
            columns[name] = {key: value for key, value in column.items() if key != "missing"}
    return kinfold.measure(pa.table(original), pa.table(released), {"privacy": {"k": 2}, "columns": columns})["loss"]


NUMBER, NOMINAL, SCALE = {"type": "continuous"}, {"type": "nominal"}, {"type": "ordinal", "order": ORDER}
BANDS = {"type": "continuous", "hierarchy": {"intervals": [10]}, "average": "generalize"}
NESTED = {"type": "nominal", **AREAS}


BY_HAND: list[tuple[dict[str, Any], list[Any], list[Any], Any, Any]] = [
    # those of docs/measures/overall.md
    (NUMBER, [1, 3, 11, 13], [2, 2, 12, 12], Fraction(4, 104), 1),
    (NOMINAL, ["f", "f", "m", "m"], ["f", "f", "f", "m"], Fraction(1, 4), Fraction(1, 4)),
    (SCALE, ["low", "mid", "high", "top"], ["mid", "mid", "high", "low"], Fraction(1 + 3, 4 * 4), Fraction(1, 2)),
    (NESTED, ["a1", "a1", "a2", "b1"], ["a1", "a1", "a1", "a1"], (Fraction(1, 2) + 1) / 4, Fraction(1, 2)),
    (NESTED, ["a1", "a2", "b1", "b2"], ["a*", "a*", "b1", "*"], (Fraction(2, 3) + 1) / 4, Fraction(3, 4)),
    (BANDS, [12, 15, 18, 31], ["10-19", "10-19", "10-19", "31"], 3 * Fraction(2, 3) / 4, Fraction(3, 4)),
    # constant columns, single values, nulls, and cells that are not true
    (NUMBER, [5, 5, 5, 5], [5, 5, 5, 5], 0, 0),
    (NUMBER, [5, 5, 5, 5], [5, 5, 5, 6], Fraction(1, 4), Fraction(1, 4)),
    (NUMBER, [0, 0, 2, None], [0, 0, 2, None], 0, 0),
    (NUMBER, [0, 2, None, None], [1, 1, None, 1], Fraction(2 + 1, 3), Fraction(3, 4)),
    (NUMBER, [0, 2, 4, 6], [0, 2, 4, None], Fraction(1, 4), Fraction(1, 4)),
    (NUMBER, [1, 2, 3, 4], [400, 300, 200, 100], 1, 1),
    (NUMBER, [1e149, -1e149, 1e149, -1e149], [1e149, -1e149, 1e149, 0.0], Fraction(1, 4), Fraction(1, 4)),
    (NOMINAL, ["f", None, "m", None], ["f", None, None, "f"], Fraction(2, 4), Fraction(2, 4)),
    (SCALE, ["low", None, "top", "mid"], [None, None, "low", "mid"], (1 + Fraction(3, 4)) / 4, Fraction(2, 4)),
    (NOMINAL, ["f", "f", "f", "f"], ["*", "*", "f", "f"], Fraction(2, 4), Fraction(2, 4)),
    (NESTED, ["a1", "a1", "a2", "b1"], ["b*", "a1", "elsewhere", None], Fraction(3, 4), Fraction(3, 4)),
    (BANDS, [12, 15, 18, None], ["20-29", "10-19", "*", None], Fraction(1 + 1 + 1, 4), Fraction(3, 4)),
    (BANDS, [12, 16, 12, 16], ["14.0", "12", "*", "10-19"], (1 + 4 + 1 + 1) / Fraction(4), 1),
]


def test_the_loss_of_a_column_is_that_of_a_count_by_hand() -> None:
    names = [f"c{number}" for number in range(len(BY_HAND))]
    before, after = ({name: case[side] for name, case in zip(names, BY_HAND, strict=True)} for side in (1, 2))
    found = lost(before, after, **{name: case[0] for name, case in zip(names, BY_HAND, strict=True)})
    for name, (_, _, _, loss, changed) in zip(names, BY_HAND, strict=True):
        assert found["by_column"][name] == pytest.approx(float(min(Fraction(1), Fraction(loss))), abs=1e-15), name
        assert found["changed"][name] == pytest.approx(float(changed), abs=1e-15), name
    assert found["overall"] == pytest.approx(np.mean(list(found["by_column"].values())))


def examples() -> list[list[str]]:
    """The rows of the worked examples in docs/measures/overall.md."""
    page = (Path(__file__).parents[2] / "docs" / "measures" / "overall.md").read_text("utf-8")
    lines = page.partition("| column | original | released | loss |\n")[2].partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_worked_examples_of_the_documentation_come_out() -> None:
    kinds = {"numbers": NUMBER, "nominal": NOMINAL, "ordinal": SCALE, "hierarchy": NESTED, "numbers in bands": BANDS}
    assert len(examples()) == 6
    for column, original, released, loss in examples():
        kind = max((name for name in kinds if column.startswith(name)), key=len)
        before, after = (side.replace("#", "*").split(", ") for side in (original, released))
        if kind.startswith("numbers"):
            before = [float(x) for x in before]
        if kind == "numbers":
            after = [float(x) for x in after]
        found = lost({"x": before}, {"x": after}, x=kinds[kind])["by_column"]["x"]
        assert found == pytest.approx(eval(loss, {"__builtins__": {}}), abs=1e-15), column


def test_a_hierarchy_of_a_single_value_has_nothing_to_leave_open() -> None:
    one = {"type": "nominal", "hierarchy": {"levels": [["a", "letters"]]}}
    assert lost({"x": ["a", "a"]}, {"x": ["letters", "letters"]}, x=one)["by_column"] == {"x": 0.0}
    assert lost({"x": ["a", "a"]}, {"x": ["*", "a"]}, x=one)["by_column"] == {"x": 0.5}


def test_dates_are_measured_as_numbers() -> None:
    days = [date(2024, 1, 1) + timedelta(days=gap) for gap in (0, 2, 10, 12)]
    mean = [days[0] + timedelta(days=1)] * 2 + [days[2] + timedelta(days=1)] * 2
    assert lost({"x": days}, {"x": mean})["by_column"]["x"] == pytest.approx(4 / 104)


def test_the_overall_loss_is_the_mean_of_the_columns_whatever_their_weights() -> None:
    table = {"x": [1, 3, 11, 13], "c": ["f", "f", "m", "m"]}
    found = lost(
        table, {"x": [2, 2, 12, 12], "c": ["f", "f", "f", "m"]}, x={**NUMBER, "weight": 9.0}, c={"type": "nominal"}
    )
    assert found["overall"] == pytest.approx((4 / 104 + 1 / 4) / 2)


def drawn_column(random: np.random.Generator, n: int, kind: str) -> tuple[list[Any], list[Any], Any]:
    """Draw a column, a release of it, and what its exact twin says."""
    values = {"number": [0, 1, 2, 5, 9], "scale": ORDER, "tree": list(TREE), "plain": ["x", "y", "z"]}[kind]
    labels = {"number": [0, 1, 2, 5, 9, 0.5, 30], "scale": ORDER, "tree": [*TREE, "a*", "b*", "*"]}.get(kind, values)
    before = [None if random.random() < 0.1 else random.choice(values).item() for _ in range(n)]
    before[0] = values[0]
    after = [x if random.random() < 0.4 else random.choice(np.array(labels, object)) for x in before]
    after = [None if random.random() < 0.1 else y for y in after]
    if kind == "number":
        return before, after, plain.numbers(before, [None if y is None else Fraction(y) for y in after])
    if kind == "scale":
        return before, after, plain.cells(before, after, plain.ordinal(ORDER), None, ORDER)
    if kind == "tree":
        covers = lambda label: [value for value, path in TREE.items() if label in path]  # noqa: E731
        return before, after, plain.cells(before, after, plain.nested(TREE), covers, list(TREE))
    return before, after, plain.cells(before, after, plain.nominal, None, values)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_every_kind_of_column_agrees_with_its_exact_twin(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, asked = int(random.integers(2, 12)), {"number": NUMBER, "scale": SCALE, "tree": NESTED, "plain": NOMINAL}
    drawn = {f"{kind}{i}": (kind, *drawn_column(random, n, kind)) for kind in asked for i in range(3)}
    found = lost(
        {name: before for name, (_, before, _, _) in drawn.items()},
        {name: after for name, (_, _, after, _) in drawn.items()},
        **{name: asked[kind] for name, (kind, _, _, _) in drawn.items()},
    )
    for name, (_, before, after, exact) in drawn.items():
        assert found["by_column"][name] == pytest.approx(float(exact), abs=1e-12), name
        assert found["changed"][name] == pytest.approx(float(plain.changed(before, after)), abs=1e-12), name
        assert 0 <= found["by_column"][name] <= 1
        assert (found["by_column"][name] == 0) == (found["changed"][name] == 0), name
    assert found["overall"] == pytest.approx(float(plain.mean([exact for *_, exact in drawn.values()])), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_coarser_statements_never_lose_less(seed: int) -> None:
    random = np.random.default_rng(seed)
    areas = [str(random.choice(list(TREE))) for _ in range(12)]
    ages = [int(random.integers(0, 60)) for _ in range(12)]
    bands = {"type": "continuous", "hierarchy": {"intervals": [10, 20, 40]}, "average": "generalize"}
    level = random.integers(0, 2, 12)
    steps = []
    for up in range(5):
        zips = [TREE[area][min(up, 2) if more else min(up, 1)] for area, more in zip(areas, level, strict=True)]
        width = [None, 10, 20, 40][min(up, 3)]
        told = [str(a) if width is None else f"{a // width * width}-{a // width * width + width - 1}" for a in ages]
        told = ["*"] * 12 if up == 4 else told
        found = lost({"z": areas, "a": ages}, {"z": zips, "a": told}, z=NESTED, a=bands)
        steps.append((found["by_column"]["z"], found["by_column"]["a"]))
    for fine, coarse in pairwise(steps):
        assert fine[0] <= coarse[0] + 1e-12
        assert fine[1] <= coarse[1] + 1e-12
    assert steps[0] == (0.0, 0.0)
    assert steps[-1][1] == 1.0


def released(drawn: Case) -> kinfold.Release | None:
    try:
        return kinfold.anonymize(drawn.table, drawn.policy)
    except kinfold.Unreachable:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_loss_of_any_release_is_from_0_to_1_and_0_only_where_every_value_can_be_told(seed: int) -> None:
    drawn = usable(seed, lambda drawn: released(drawn) is not None)
    release = released(drawn)
    assert release is not None
    found = release.measures["loss"]
    assert set(found["by_column"]) == set(found["changed"]) == set(drawn.quasi)
    assert all(0 <= value <= 1 for part in ("by_column", "changed") for value in found[part].values())
    assert found["overall"] == pytest.approx(np.mean(list(found["by_column"].values())))
    gone = release.measures["suppressed"] / len(drawn.table)
    assert all(value >= gone - 1e-12 for value in found["changed"].values())
    if not any(found["changed"].values()):
        assert found["overall"] == 0


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("method", ["datafly", "lattice", "mu-argus", "mingen-cell"])
@pytest.mark.parametrize("suppressed", ["drop", "star"])
def test_of_a_generalized_release_it_is_what_granularity_has_lost(method: str, suppressed: str) -> None:
    random = np.random.default_rng(3)
    table = pa.table(
        {"age": random.integers(20, 60, 60), "zip": random.choice(["0211", "0212", "0310", "0320"], 60).tolist()}
    )
    columns = {
        "age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [5, 20]}},
        "zip": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 4}},
    }
    policy = {"privacy": {"k": 4}, "output": {"suppressed": suppressed}, "columns": columns}
    found = kinfold.anonymize(table, {**policy, "method": {"name": method, "suppression": 9}}).measures["loss"]
    assert found["overall"] == pytest.approx(1 - found["granularity"], abs=1e-12)
    assert found["by_column"] == pytest.approx({n: 1 - kept for n, kept in found["granularity_by_column"].items()})


def test_a_dropped_record_loses_all_of_every_column_and_columns_by_themselves_add_up() -> None:
    table = pa.table({"a": [1.0, 3.0, 11.0, 13.0, None], "c": ["x", "x", "y", "y", "z"]})
    columns = {"a": {"role": "quasi", "missing": "drop"}, "c": {"role": "quasi"}}
    release = kinfold.anonymize(table, {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": columns})
    found = release.measures["loss"]
    assert found["by_column"]["c"] == pytest.approx(1 / 5)
    assert found["by_column"]["a"] == pytest.approx((4 / 26 + 1) / 5)
    assert found["sse_by_column"]["a"] == pytest.approx(found["sse"])


def test_an_imputed_value_is_wrong_and_rescaled_averages_never_lose_more_than_all() -> None:
    table = pa.table({"a": [0.0, 4.0, 100.0, 104.0, None, None]})
    columns = {"a": {"role": "quasi", "missing": "mean"}}
    policy = {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": columns}
    found = kinfold.anonymize(table, policy).measures["loss"]
    assert found["by_column"]["a"] >= 2 / 6
    wild = pa.table({"a": [float(x) for x in (0, 1, 0, 1, 0, 1)], "b": [float(x) for x in (0, 50, 51, 1, 2, 52)]})
    both = {"a": {"role": "quasi"}, "b": {"role": "quasi"}}
    for preserve in ("means", "variance"):
        asked = {"privacy": {"k": 3}, "method": {"name": "mdav"}, "output": {"preserve": preserve}, "columns": both}
        found = kinfold.anonymize(wild, asked).measures["loss"]
        assert all(0 <= value <= 1 for value in found["by_column"].values())


# Measures of rows that stand for many records say what the plain formulas say of all of them written out


SEEDS = st.integers(0, 10_000)


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return an original, a release, how many records each row stands for, and the rows written out."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 12))
    x = random.normal(0, 3, (n, 3)).round(1)
    y = np.where(random.random((n, 3)) < 0.1, np.nan, x + random.normal(0, 0.5, (n, 3)).round(1))
    x[random.random((n, 3)) < 0.05] = np.nan
    weight = random.integers(1, 6, n)
    return x, y, weight, np.repeat(np.arange(n), weight)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_squared_errors_and_variations(seed: int) -> None:
    x, y, weight, rows = drawn(seed)
    for formula in (continuous.sse, continuous.normalized_sse, variation.il1, variation.il1s):
        assert formula(x, y, weight) == pytest.approx(formula(x[rows], y[rows]), rel=1e-9)
    assert continuous.sst(x, weight) == pytest.approx(continuous.sst(x[rows]), rel=1e-9)
    for one, other in zip(continuous.standardize(x, y, weight), continuous.standardize(x[rows], y[rows]), strict=True):
        np.testing.assert_allclose(one[rows], other, rtol=1e-9, atol=1e-12)
    for j in range(3):
        kept = ~np.isnan(y[:, j])
        found = overall.number_loss(x[:, j], y[:, j], kept, weight)
        assert found == pytest.approx(overall.number_loss(x[rows, j], y[rows, j], kept[rows]), rel=1e-9)
    tally_up("weighted measures", 1)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_moments_quantiles_and_probabilistic_loss(seed: int) -> None:
    x, y, weight, rows = drawn(seed)
    x, y = np.nan_to_num(x), np.nan_to_num(y)
    one, other = Moments.from_table(x, weight), Moments.from_table(x[rows])
    for part in ("means", "covariances", "correlations"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=1e-9, atol=1e-9)
    shares = np.array([0.0, 0.05, 0.3, 0.5, 0.77, 1.0])
    order = np.argsort(x[:, 0], kind="stable")
    found = compute_quantiles(x[order, 0], shares, weight[order])
    np.testing.assert_allclose(found, np.quantile(x[rows, 0], shares), rtol=1e-12, atol=1e-12)
    for key, value in asdict(pil(x, y, weight)).items():
        assert value == pytest.approx(asdict(pil(x[rows], y[rows]))[key], rel=1e-6, abs=1e-9)
    told, plain = summarize(x[:, 1], weight=weight), summarize(x[rows, 1])
    assert (told.count, told.missing) == (plain.count, plain.missing)
    assert told.variance == pytest.approx(plain.variance, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_risks(seed: int) -> None:
    x, y, weight, rows = drawn(seed)
    random = np.random.default_rng(seed)
    before, after = random.integers(0, 3, (2, len(x)))
    after = np.where(random.random(len(x)) < 0.2, -1, after)
    after[0] = 0
    one, other = (
        disclosure.ClassificationMatrix.from_classes(before, after, weight),
        disclosure.ClassificationMatrix.from_classes(before[rows], after[rows]),
    )
    for part in ("masked", "initial", "count"):
        assert getattr(one, part).tolist() == getattr(other, part).tolist()
    values = random.integers(0, 3, len(x))
    if len(np.unique(values[after >= 0])) > 1:
        found = inference.inference_gain(after, values, weight)
        assert found == pytest.approx(inference.inference_gain(after[rows], values[rows]))
    numbers = np.nan_to_num(x[:, 0])
    if len(np.unique(numbers[after >= 0])) > 1:
        found = inference.inference_gain_numbers(after, numbers, weight)
        assert found == pytest.approx(inference.inference_gain_numbers(after[rows], numbers[rows]), abs=1e-9)
    np.testing.assert_allclose(interval_credit(x, y, weight=weight)[rows], interval_credit(x[rows], y[rows]))
    x, y = np.nan_to_num(x), np.nan_to_num(y)
    credit = linkage_credit(LinkageRecords.from_arrays(x), LinkageRecords.from_arrays(y, weight=weight))
    np.testing.assert_allclose(
        credit[rows], linkage_credit(LinkageRecords.from_arrays(x[rows]), LinkageRecords.from_arrays(y[rows]))
    )


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_rows_are_alike_as_they_are_one_by_one_and_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random.integers(-2, 3, (30, 3))
    group, first = group_rows(table)
    values, slow = np.unique(table, axis=0, return_inverse=True)
    assert group.tolist() == slow.ravel().tolist()
    assert table[first].tolist() == values.tolist()
    floats = np.where(table < 0, np.nan, table * 0.5)
    floats[0, 0] = -0.0
    found, heads = group_equal_rows([*floats.T])
    texts = [tuple("nan" if np.isnan(v) else v + 0.0 for v in row) for row in floats]
    assert len(heads) == len({*texts})
    assert len({*zip(found.tolist(), texts, strict=True)}) == len({*texts})


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_dominance_by_one_sort_is_dominance_by_hand(seed: int) -> None:
    random = np.random.default_rng(seed)
    classes, values = random.integers(-1, 4, 25), random.normal(0, 5, 25).round()
    values[random.random(25) < 0.1] = np.nan
    classes[0] = 3
    here = ClassOrder.from_classes(classes)
    for label in range(4):
        held = np.sort(np.abs(np.nan_to_num(values[classes == label])))[::-1]
        by_largest, within = find_revealing_classes(here, values)
        assert by_largest[label] == (len(held) > 0 and held[0] > 0.75 * held.sum())
        assert within[label] == (len(held) > 0 and held[2:].sum() < 0.1 * held[0])

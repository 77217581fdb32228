"""Averages: the paper's own examples, ties, nulls, rounding, dates, and variance that is kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.errors import DataError
from kinfold.methods import aggregation as aggregate
from kinfold.methods.aggregation import ReplacedColumn, average_column, cover_classes
from kinfold.policy.binding import AVERAGES, BoundColumn
from kinfold.policy.encoding import Attribute, CategoricalAttribute, NumericAttribute, encode, format_value
from kinfold.policy.model import ColumnPolicy, Output
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.points import OrdinalScale
from small_tables import SMALL

ONE = np.zeros


def attribute(values: Any, **asked: Any) -> Attribute:
    """Encode one column the way the flow does."""
    with DuckDB(SMALL) as engine:
        frame = engine.read(pa.table({"x": values}))
        column = engine.schema(frame)["x"]
        policy = ColumnPolicy.model_validate({"role": "key", **asked})
        kind = policy.type or column.kind
        bound = BoundColumn(column, policy, kind, policy.average or AVERAGES[kind][0])
        (encoded,) = encode(engine, frame, [bound])
        return encoded


def released(found: Attribute, labels: list[int], **output: Any) -> list[Any]:
    return done(found, labels, **output).replace.values.to_pylist()


def done(found: Attribute, labels: list[int], **output: Any) -> ReplacedColumn:
    return average_column(found, np.array(labels, np.int32), Output.model_validate(output))


# The operators


@pytest.mark.parametrize(
    ("values", "median", "convex"),
    [([1, 2, 2, 5, 6], 2, 3), ([1, 2, 7], 2, 4), ([3], 3, 3), ([1, 2], 1, 1), ([0, 7], 0, 3)],
)
def test_medians_of_the_paper_on_the_scale_0_to_7(values: list[int], median: int, convex: int) -> None:
    codes, labels = np.array(values, np.int32), ONE(len(values), np.int32)
    assert aggregate.ordinal_median(codes, labels, 8).tolist() == [median]
    assert aggregate.convex_median(codes, labels, 8).tolist() == [convex]


def test_the_ordinal_distance_is_equation_1() -> None:
    # d(a, b) = |{x : min(a, b) <= x < max(a, b)}| / |D|
    gaps = np.vstack([OrdinalScale(8).squared_distances(code) for code in range(8)])[:, :8]
    steps = np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 8
    assert gaps == pytest.approx(steps**2, abs=0)


def plain_convex(codes: list[int], size: int) -> int:
    """Definition 5.3: lift each category to the lower of the highest on its two sides; then the median."""
    count = Counter(codes)
    lifted = [min(max(count[b] for b in range(a + 1)), max(count[b] for b in range(a, size))) for a in range(size)]
    spread = [a for a in range(size) for _ in range(lifted[a])]
    return spread[(len(spread) - 1) // 2]


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=7), min_size=1, max_size=5))
def test_medians_and_modes_of_classes_are_those_of_each_class_alone(classes: list[list[int]]) -> None:
    codes = np.array([code for members in classes for code in members], np.int32)
    labels = np.repeat(np.arange(len(classes)), [len(members) for members in classes]).astype(np.int32)
    order = np.random.default_rng(len(codes)).permutation(len(codes))
    codes, labels = codes[order], labels[order]
    middle = [sorted(members)[(len(members) - 1) // 2] for members in classes]
    assert aggregate.ordinal_median(codes, labels, 7).tolist() == middle
    assert aggregate.median(codes.astype(float), labels).tolist() == middle
    assert aggregate.convex_median(codes, labels, 7).tolist() == [plain_convex(members, 7) for members in classes]
    most = [min(members, key=lambda code: (-Counter(members)[code], code)) for members in classes]
    assert aggregate.mode(codes, labels).tolist() == most
    low, high = aggregate.value_ranges(codes.astype(float), labels)
    assert list(zip(low, high, strict=True)) == [(min(members), max(members)) for members in classes]


def test_convex_medians_in_parts_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    codes = random.integers(0, 9, 500).astype(np.int32)
    labels = random.permutation(np.arange(500) % 100).astype(np.int32)
    whole = aggregate.convex_median(codes, labels, 8)
    monkeypatch.setattr(aggregate, "CELLS_AT_A_TIME", 70)
    assert (aggregate.convex_median(codes, labels, 8) == whole).all()


def test_ties_of_the_mode_go_to_the_lowest_rank() -> None:
    codes, labels = np.array([2, 1, 0, 2, 1], np.int32), ONE(5, np.int32)
    assert aggregate.mode(codes, labels).tolist() == [1]
    assert aggregate.mode(codes, labels, np.array([0, 2, 1])).tolist() == [2]


def test_a_median_is_null_where_more_than_half_of_the_class_is() -> None:
    codes, labels = np.array([3, 8, 8, 3, 8, 8], np.int32), np.array([0, 0, 1, 1, 1, 1], np.int32)
    labels[3] = 0
    assert aggregate.ordinal_median(codes, labels, 8).tolist() == [3, 8]
    assert aggregate.convex_median(codes, labels, 8).tolist() == [3, 8]
    half = np.array([3, 8], np.int32)
    assert aggregate.ordinal_median(half, ONE(2, np.int32), 8).tolist() == [3]


def test_null_can_be_the_mode() -> None:
    assert released(attribute(["b", None, None, "a"]), [0, 0, 0, 0]) == [None]
    assert released(attribute(["b", None, "a"]), [0, 0, 0]) == ["a"]  # null comes last in a tie


# Numbers


def test_averages_keep_integers_decimals_texts_and_the_median_and_are_never_minus_zero() -> None:
    assert released(attribute([1, 2, 2, 9]), [0, 0, 0, 1]) == [2, 9]
    assert released(attribute([1.25, 2.5, 2.5, 9.0]), [0, 0, 0, 1]) == [2.08, 9.0]
    assert released(attribute([1, 2, 2, 9]), [0, 0, 0, 1], round=False) == [5 / 3, 9.0]
    assert released(attribute(["1", "2", "2"], type="continuous"), [0, 0, 0]) == [2.0]
    assert str(released(attribute([-0.1, 0.0, 0.1, -0.3, 0.2]), [0, 0, 0, 0, 0])[0]) == "0.0"
    assert released(attribute([1, 5, 9, 100], average="median"), [0, 0, 0, 0]) == [5]


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 3)), min_size=1, max_size=30))
def test_means_are_preserved(records: list[tuple[float, int]]) -> None:
    numbers = np.array([number for number, _ in records])
    labels = np.unique([label for _, label in records], return_inverse=True)[1].astype(np.int32)
    assert aggregate.mean(numbers, labels)[labels].mean() == pytest.approx(numbers.mean(), rel=1e-9, abs=1e-9)


def test_whole_numbers_beyond_64_bits_are_refused_not_wrapped() -> None:
    with pytest.raises(DataError, match=r"values above 9e\+18"):
        attribute(pa.array([1, 2, 2**64 - 1], pa.uint64()))


# Dates


def test_dates_are_averaged_to_whole_days_times_to_whole_seconds_and_exact_averages_are_times() -> None:
    days = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 2)]
    assert released(attribute(days), [0, 0, 0]) == [date(2024, 1, 2)]
    times = [datetime(2024, 1, 1, 10, 0, 0), datetime(2024, 1, 1, 10, 0, 2), datetime(1969, 1, 1)]
    assert released(attribute(times), [0, 0, 1]) == [datetime(2024, 1, 1, 10, 0, 1), datetime(1969, 1, 1)]
    days = [date(2024, 1, 1), date(2024, 1, 2), date(1960, 1, 1)]
    assert released(attribute(days), [0, 0, 1], round=False) == [datetime(2024, 1, 1, 12), datetime(1960, 1, 1)]


@pytest.mark.parametrize(
    "moment", [datetime(1, 1, 1), datetime(987, 6, 5, 4, 3, 2), datetime(9999, 12, 31, 23, 59, 59)]
)
def test_times_are_written_as_they_were(moment: datetime) -> None:
    found = attribute([moment, datetime(2024, 1, 1, 1)])
    assert isinstance(found, NumericAttribute)
    assert format_value(found.bound, found.numbers[0]) == moment.isoformat(" ")


# Variance


def test_variance_is_preserved_and_the_cells_outside_the_range_are_counted() -> None:
    numbers = [0.0, 1.0, 2.0, 8.0, 9.0, 10.0]
    found = done(attribute(numbers), [0, 0, 0, 1, 1, 1], preserve="variance", round=False)
    values = found.replace.values.to_numpy()[[0, 0, 0, 1, 1, 1]]
    assert values.std() == pytest.approx(np.std(numbers))
    assert values.mean() == pytest.approx(np.mean(numbers))
    outside = ((values < 0) | (values > 10)).sum()
    assert found.notes == (f"'x': variance preserved; {outside} cells lie outside the original range",)
    numbers = [0, 0, 0, 100, 100, 100, 50, 0, 100]
    found = done(attribute(pa.array(numbers, pa.int8())), [0, 0, 0, 1, 1, 1, 2, 2, 2], preserve="variance")
    low, high, middle = found.replace.values.to_pylist()
    assert low < 0 < middle < 100 < high
    assert found.notes == ("'x': variance preserved; 6 cells lie outside the original range",)
    assert not found.replace.as_stored  # 8 bits may not hold them


def test_variance_of_averages_that_do_not_vary_is_left_and_said() -> None:
    found = done(attribute([1.0, 3.0, 2.0]), [0, 0, 0], preserve="variance")
    assert found.replace.values.to_pylist() == [2.0]
    assert "not rescaled" in found.notes[0]


def test_variance_among_nulls_is_that_of_the_rest() -> None:
    found = attribute([0.0, 2.0, 8.0, 10.0, None, None], missing="separate")
    values = done(found, [0, 0, 1, 1, 2, 2], preserve="variance", round=False).replace.values.to_pylist()
    assert values[2] is None
    assert np.std([values[0], values[1]]) == pytest.approx(np.std([0, 2, 8, 10]))
    nothing = found.take(np.array([4, 5]))
    assert done(nothing, [0, 0], preserve="variance").replace.values.to_pylist() == [None]


# Covering


def test_the_narrowest_true_statement() -> None:
    assert cover_classes(attribute([1, 3, 7, 7]), np.array([0, 0, 1, 1])) == ["[1, 3]", "7"]
    assert cover_classes(attribute([1.5, 3.0], type="continuous"), np.array([0, 0])) == ["[1.5, 3.0]"]
    assert cover_classes(attribute([1.0, 3.0, 5.0]), np.array([0, 0, 1])) == ["[1, 3]", "5"]
    days = attribute([date(2024, 1, 1), date(2024, 3, 1), date(999, 1, 1)])
    assert cover_classes(days, np.array([0, 0, 1])) == ["[2024-01-01, 2024-03-01]", "0999-01-01"]
    words = attribute(["low", "high", "mid", None], type="ordinal", order=["low", "mid", "high"])
    assert cover_classes(words, np.array([0, 0, 1, 2])) == ["[low, high]", "mid", None]
    names = attribute(["a", "a", "b", "c", None])
    assert cover_classes(names, np.array([0, 0, 1, 1, 2])) == ["a", "*", None]
    for more in ({}, {"hierarchy": {"mask": 1}}):  # null among values
        assert cover_classes(attribute(["a", None, None, None], **more), np.array([0, 0, 1, 1])) == ["*", None]


def test_ranges_of_numbers_that_are_known_as_doubles_only_are_rounded_outward() -> None:
    """As in a large table, whose values are not read one by one."""
    labels = np.array([0, 0, 1], np.int32)
    moments = [datetime(2019, 12, 31, 23, 59, 59, 700000), datetime(2020, 1, 1, 0, 0, 0, 300000), datetime(1969, 1, 1)]
    for values, kind, read in (
        (moments, pa.timestamp("us"), datetime.fromisoformat),
        ([2**53 + 1, 2**53 + 3, 2**60 + 1], pa.int64(), int),
        ([Decimal("19.99999999999999999999"), Decimal(21), Decimal(7)], pa.decimal128(38, 20), Decimal),
    ):
        found = attribute(pa.array(values, kind), average="generalize")
        assert found.exact is not None
        spans = [label[1:-1].split(", ") for label in cover_classes(replace(found, exact=None), labels)]
        for at, value in zip(labels, values, strict=True):
            low, high = map(read, spans[at])
            assert low <= value <= high


def test_the_lowest_common_ancestor() -> None:
    zips = attribute(["02138", "02139", "02141", None], average="generalize", hierarchy={"mask": 5})
    assert cover_classes(zips, np.array([0, 0, 1, 2])) == ["0213*", "02141", None]
    assert cover_classes(zips, np.array([0, 0, 0, 1])) == ["021**", None]
    ages = attribute([21, 24, 38], average="generalize", hierarchy={"intervals": [5, 20]})
    assert cover_classes(ages, np.array([0, 0, 1])) == ["20-24", "38"]
    floats = attribute([21.0, 24.0, None], average="generalize", missing="separate", hierarchy={"intervals": [5, 20]})
    assert cover_classes(floats, np.array([0, 0, 1])) == ["20-24", None]
    days = attribute(
        [date(2024, 1, 1), date(2024, 3, 1)], average="generalize", hierarchy={"dates": ["month", "quarter"]}
    )
    assert cover_classes(days, np.array([0, 0])) == ["2024-Q1"]
    tree = {"tree": {"x": ["low", "mid"], "y": ["high"]}}
    words = attribute(["low", "high"], order=["low", "mid", "high"], type="ordinal", hierarchy=tree)
    assert isinstance(words, CategoricalAttribute)
    assert cover_classes(replace(words, codes=np.array([0, 1], np.int32)), np.array([0, 0])) == ["x"]

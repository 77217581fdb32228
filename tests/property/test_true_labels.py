"""A generalized value contains the original, exactly, for every type and every builder of hierarchies.

What a label says is read here by other means than kinfold's: fractions, whole nanoseconds and the calendar of Python.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.errors import DataError
from kinfold.methods.aggregation import cover_classes
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import NumericAttribute, encode, get_leaves
from kinfold.policy.model import ColumnPolicy
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.schema import Kind
from reference.labels import EPOCH, MICRO, fraction, has_moment, has_number, has_text, ticks
from small_tables import SMALL

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC", "+05:30")


# Columns and what they hold


def numbers_near(*places: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(-50, 50), *(st.integers(at - 6, at + 6) for at in places))


WHOLE = numbers_near(2**53, -(2**53), 2**62 - 10, -(2**62) + 10, 10**15)
EDGE = st.sampled_from(
    ["19.99999999999999999999", "20.00000000000000000001", "-0.00000000000000000001", "0.3", "20", "-5", "0"]
).map(Decimal)
FINE = st.one_of(EDGE, st.integers(-(10**30), 10**30).map(lambda n: Decimal(n).scaleb(-20)))
FLOATS = st.one_of(
    st.floats(-1e18, 1e18), st.sampled_from([0.1, 0.3, 0.7, -0.3, 5e-324, 1e100, -1e100, 0.1 + 0.2, 1e15 + 0.3, -0.0])
)
WIDTHS = st.sampled_from([[5], [1, 10], [0.1, 0.3], [0.25], [2, 10**6]])
ENDS = st.sampled_from([{}, {"top": 20}, {"bottom": 0}, {"bottom": -5.5, "top": 19.5}, {"origin": 0.3}])
CALENDAR = ["day", "month", "quarter", "year", "5 years", "decade", "20 years", "40 years"]
UNITS = st.sampled_from([CALENDAR, ["year"], ["quarter"]])
FIRST, LAST = datetime(1, 1, 3), datetime(9999, 12, 28)
MOMENTS = st.one_of(
    st.datetimes(FIRST, LAST),
    st.sampled_from([datetime(2019, 12, 31, 23, 59, 59, us) for us in (999999, 700000, 500000, 1)]),
    st.sampled_from([datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(999, 12, 31, 23, 59, 59, 500001)]),
)


# A column on its own: every level of its hierarchy, and ranges


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDB]:
    with DuckDB(SMALL) as found:
        yield found


def labelled(
    engine: DuckDB, column: pa.Array, spec: dict[str, Any] | None, *, text: bool = False
) -> Iterator[list[Any]]:
    """Yield the labels of all values: at each level of a hierarchy, or as ranges of pairs of neighbours."""
    frame = engine.read(pa.table({"x": column}))
    frame = replace(frame, typed=False) if text else frame
    described = engine.schema(frame)["x"]
    asked = ColumnPolicy.model_validate({"role": "key", "hierarchy": spec})
    kind = described.storage.kind if spec is None or "mask" not in spec else Kind.CONTINUOUS
    (found,) = encode(engine, frame, [BoundColumn(described, asked, kind, "generalize")])
    assert isinstance(found, NumericAttribute)
    if found.hierarchy is not None:
        for level in range(found.hierarchy.height + 1):
            yield found.hierarchy.labels[get_leaves(found), level].tolist()
        return
    for labels in (np.arange(len(column)), np.arange(len(column)) // 2, np.zeros(len(column), int)):
        yield [cover_classes(found, labels.astype(np.int32))[at] for at in labels]


def check_numbers(
    engine: DuckDB, column: pa.Array, values: list[Any], spec: dict[str, Any] | None, **how: bool
) -> None:
    for labels in labelled(engine, column, spec, **how):
        wrong = [
            (label, value)
            for label, value in zip(labels, values, strict=True)
            if not has_number(label, fraction(value))
        ]
        assert wrong == []


def check_moments(
    engine: DuckDB, column: pa.Array, values: list[tuple[int, date]], spec: dict[str, Any] | None, **how: bool
) -> None:
    for labels in labelled(engine, column, spec, **how):
        wrong = [(label, value) for label, value in zip(labels, values, strict=True) if not has_moment(label, *value)]
        assert wrong == []


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=1, max_size=6)


INTERVALS = st.one_of(st.none(), st.builds(lambda widths, ends: {"intervals": widths, **ends}, WIDTHS, ENDS))
DATES = st.one_of(st.none(), st.builds(lambda units: {"dates": units}, UNITS))


@settings(max_examples=40)
@given(values=some(WHOLE), spec=INTERVALS, text=st.booleans())
def test_whole_numbers(engine: DuckDB, values: list[int], spec: dict[str, Any] | None, text: bool) -> None:
    column = pa.array([str(v) for v in values] if text else values, pa.string() if text else pa.int64())
    check_numbers(engine, column, values, spec, text=text)


@settings(max_examples=60)
@given(values=some(FINE), spec=INTERVALS, text=st.booleans())
def test_decimals(engine: DuckDB, values: list[Decimal], spec: dict[str, Any] | None, text: bool) -> None:
    fine = [value for value in values if abs(value) < 10**17] or [Decimal(0)]
    column = pa.array([f"{v:f}" for v in fine]) if text else pa.array(fine, pa.decimal128(38, 20))
    check_numbers(engine, column, fine, spec, text=text)


@settings(max_examples=60)
@given(values=some(FLOATS), spec=INTERVALS, kind=st.sampled_from(["double", "float", "text"]))
def test_floating_numbers(engine: DuckDB, values: list[float], spec: dict[str, Any] | None, kind: str) -> None:
    if kind == "float":
        values = [float(np.float32(min(max(value, -3e38), 3e38))) for value in values]
    column = pa.array([repr(v) for v in values]) if kind == "text" else pa.array(values, kind)
    check_numbers(engine, column, values, spec, text=kind == "text")


@settings(max_examples=40)
@given(values=some(MOMENTS), spec=DATES, unit=st.sampled_from(["s", "ms", "us", "text"]))
def test_moments(engine: DuckDB, values: list[datetime], spec: dict[str, Any] | None, unit: str) -> None:
    coarse = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1)}.get(unit, MICRO)
    values = [EPOCH + (value - EPOCH) // coarse * coarse for value in values]
    texts = [f"{value.isoformat(' ', 'microseconds')}" for value in values]
    column = pa.array(texts) if unit == "text" else pa.array(values, pa.timestamp(unit))
    check_moments(engine, column, [(ticks(v), v.date()) for v in values], spec, text=unit == "text")


@settings(max_examples=30)
@given(values=some(st.integers(-(2**62), 2**62)), spec=DATES)
def test_nanoseconds(engine: DuckDB, values: list[int], spec: dict[str, Any] | None) -> None:
    start = ticks(EPOCH)
    days = [date.fromordinal((value + start) // (86400 * 10**9)) for value in values]
    held = [(value + start, day) for value, day in zip(values, days, strict=True)]
    check_moments(engine, pa.array(values, pa.timestamp("ns")), held, spec)


@settings(max_examples=40)
@given(values=some(MOMENTS), spec=DATES, zone=st.sampled_from(ZONES), unit=st.sampled_from(["us", "s"]))
def test_moments_of_a_zone_have_the_date_of_that_zone(
    engine: DuckDB, values: list[datetime], spec: dict[str, Any] | None, zone: str, unit: str
) -> None:
    clock = timezone(timedelta(hours=5, minutes=30)) if zone == "+05:30" else ZoneInfo(zone)
    values = values if unit == "us" else [value.replace(microsecond=0) for value in values]
    held = [(ticks(v), v.replace(tzinfo=UTC).astimezone(clock).date()) for v in values]
    check_moments(engine, pa.array(values, pa.timestamp(unit, zone)), held, spec)


@settings(max_examples=30)
@given(values=some(st.tuples(MOMENTS, st.integers(-56, 56))), spec=DATES)
def test_moments_with_offsets_have_the_date_as_written(
    engine: DuckDB, values: list[tuple[datetime, int]], spec: dict[str, Any] | None
) -> None:
    written = [(value, timezone(timedelta(minutes=15 * quarters))) for value, quarters in values]
    texts = [value.replace(tzinfo=clock).isoformat("T", "microseconds") for value, clock in written]
    held = [(ticks(value - (clock.utcoffset(None) or timedelta())), value.date()) for value, clock in written]
    check_moments(engine, pa.array(texts), held, spec, text=True)


@settings(max_examples=20)
@given(values=some(st.dates()), spec=DATES)
def test_dates(engine: DuckDB, values: list[date], spec: dict[str, Any] | None) -> None:
    held = [(ticks(datetime(value.year, value.month, value.day)), value) for value in values]
    check_moments(engine, pa.array(values, pa.date32()), held, spec)


@settings(max_examples=40)
@given(values=some(FINE.filter(lambda value: abs(value) < 10**17)), hidden=st.integers(1, 8), text=st.booleans())
def test_masks_of_numbers(engine: DuckDB, values: list[Decimal], hidden: int, text: bool) -> None:
    column = pa.array([f"{v:f}" for v in values]) if text else pa.array(values, pa.decimal128(38, 20))
    written = [f"{v:f}" for v in values] if text else [f"{v:.20f}" for v in values]
    if len(set(written)) > len(set(values)):
        return  # one number written in two ways has one text
    for labels in labelled(engine, column, {"mask": hidden}, text=text):
        assert all(has_text(label, value) for label, value in zip(labels, written, strict=True))


@settings(max_examples=30)
@given(values=some(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6)))
def test_masks_of_text(values: list[str]) -> None:
    from kinfold.hierarchies import build_from_mask

    found = build_from_mask(values, 4)
    for row in found.labels.tolist():
        assert all(has_text(label, row[0]) for label in row)


# The whole way


def release(column: pa.Array, method: str, **asked: Any) -> list[Any]:
    table = pa.table({"x": column, "y": ["a", "b"] * (len(column) // 2)})
    columns = {"x": {"role": "key", **asked}, "y": {"role": "other"}}
    policy = {"privacy": {"k": 2}, "method": {"name": method}, "columns": columns}
    return list(kinfold.anonymize(table, policy).frame["x"].to_pylist())


@settings(max_examples=24)
@given(
    values=st.lists(FINE.filter(lambda value: abs(value) < 10**17), min_size=2, max_size=3),
    method=st.sampled_from(["lattice", "mingen-cell", "mdav"]),
    spec=st.sampled_from([{"intervals": [5]}, {"intervals": [0.1, 1, 100], "top": 20}]),
)
def test_released_decimals_have_what_they_were(values: list[Decimal], method: str, spec: dict[str, Any]) -> None:
    held = [*values, *values]
    found = release(pa.array(held, pa.decimal128(38, 20)), method, hierarchy=spec, average="generalize")
    assert all(has_number(str(label), Fraction(value)) for label, value in zip(found, held, strict=True))


@settings(max_examples=16)
@given(values=st.lists(MOMENTS, min_size=4, max_size=4), method=st.sampled_from(["lattice", "mingen-cell", "mdav"]))
def test_released_moments_have_what_they_were(values: list[datetime], method: str) -> None:
    held, spec = [*values[:2], *values], {"dates": ["day", "month", "year"]}
    found = release(pa.array(held, pa.timestamp("us")), method, hierarchy=spec, average="generalize")
    labels = [label.isoformat(" ") if isinstance(label, datetime) else label for label in found]
    assert all(has_moment(label, ticks(value), value.date()) for label, value in zip(labels, held, strict=True))


@pytest.mark.parametrize("method", ["lattice", "mingen-cell"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.decimal128(38, 20), [Decimal("19.99999999999999999999"), Decimal(20)]),
        (pa.int64(), [2**53 + 1, 2**53]),
        (pa.timestamp("ns"), [1577836799700000001, 1577836799700000002]),
        (pa.timestamp("us", "Europe/Berlin"), [1577836799700000, 1577836799700001]),
    ],
    ids=str,
)
def test_values_that_are_not_generalized_stay_what_they_are(method: str, kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([*values, *values], kind)
    spec = {"dates": ["year"]} if pa.types.is_timestamp(kind) else {"intervals": [5]}
    table = pa.table({"x": column})
    asked = {"role": "key", "type": "date" if "dates" in spec else "continuous", "hierarchy": spec}
    policy = {"privacy": {"k": 2}, "method": {"name": method}, "columns": {"x": asked}}
    assert kinfold.anonymize(table, policy).frame["x"] == pa.chunked_array([column])


@pytest.mark.parametrize("method", ["mingen-cell", "mdav"])
def test_missing_values_stay_missing_beside_exact_ones(method: str) -> None:
    held = [
        Decimal("19.99999999999999999999"),
        None,
        Decimal(20),
        None,
        Decimal("19.99999999999999999998"),
        Decimal(21),
    ]
    asked = {"hierarchy": {"intervals": [5]}, "missing": "separate", "average": "generalize"}
    found = release(pa.array(held, pa.decimal128(38, 20)), method, **asked)
    assert [label is None for label in found] == [value is None for value in held]
    shown = [(str(label), Fraction(value)) for label, value in zip(found, held, strict=True) if value is not None]
    assert all(has_number(label, value) for label, value in shown)


@pytest.mark.parametrize(
    ("moments", "years", "told"),
    [
        (pa.array([1577833200000000] * 2, pa.timestamp("us", "Europe/Berlin")), "2020", "those of Europe/Berlin"),
        (pa.array([1577833200000000] * 2, pa.timestamp("us", "America/New_York")), "2019", "those of America/New_York"),
        (pa.array([1577833200000000] * 2, pa.timestamp("us", "UTC")), "2019", "those of UTC"),
        (["2020-01-01T00:30:00+01:00", "2020-01-01T05:30:00+01:00"], "2020", "as written, by each value's own offset"),
    ],
)
def test_it_is_said_by_which_clock_moments_are_dated(moments: Any, years: str, told: str, tmp_path: Path) -> None:
    from pyarrow import csv

    source: Any = pa.table({"x": moments, "y": [1, 2]})
    if isinstance(moments, list):
        source = tmp_path / "t.csv"
        csv.write_csv(pa.table({"x": moments, "y": [1, 2]}), source)
    columns = {
        "x": {"role": "key", "hierarchy": {"dates": ["year"]}},
        "y": {"role": "key", "type": "nominal", "hierarchy": {"levels": [["1", "any"], ["2", "any"]]}},
    }
    policy = {"privacy": {"k": 2}, "columns": columns}
    given_levels = {"name": "lattice", "levels": {"x": 1, "y": 1}}
    found = kinfold.anonymize(source, {**policy, "method": given_levels})
    assert set(found.frame["x"].to_pylist()) == {years}
    assert (
        [note for note in found.plan.public_notes if told in note]
        == [note for note in found.plan.notes if told in note]
        != []
    )


def test_a_week_is_no_day() -> None:
    columns = {"x": {"role": "key", "type": "nominal", "hierarchy": {"dates": ["year"]}}}
    policy = {"privacy": {"k": 2}, "method": {"name": "lattice"}, "columns": columns}
    with pytest.raises(DataError, match="not written as a date"):
        kinfold.anonymize(pa.table({"x": ["2020-W01", "2020-W01"]}), policy)
    kinfold.anonymize(pa.table({"x": ["2020-W01-3", "2020-W01-3"]}), policy)


def test_labels_of_diagnoses_name_codes_that_have_them() -> None:
    from kinfold.hierarchies.grouping import group_by_diagnosis

    codes = [f"{letter}{number:02}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for number in range(100)]
    for code, *_, chapter in group_by_diagnosis(codes):
        first, last = chapter.split("-")
        assert first <= code <= last

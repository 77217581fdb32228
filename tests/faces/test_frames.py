"""Frames of every sort, strange ones too: the same kind back, or an error that says what to do."""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kinfold
from kinfold import DataError, PolicyError, Release

DAYS = [date(2024, 1, day) for day in range(1, 8)]


def released(source: Any, *quasi: str, **request: Any) -> Release:
    return kinfold.anonymize(source, quasi=quasi, k=2, method="mdav", **request)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, 3, 4, 5, 6], dtype="uint8"),
        pd.Series([1, 2, None, 4, 5, None], dtype="Int64"),
        pd.Series([0.5, 0.25, 0.125, 1, 2, 3], dtype="float32"),
        pd.Series(pd.date_range("2024-01-01 10:00", periods=6, freq="37h", tz="Europe/Berlin")),
        pd.Series(pd.date_range("2024-01-01", periods=6, freq="D", unit="ns")),
        pd.Series(["a", "b", None, "a", "b", "c"]),
        pd.Series(["a", "b", None, "a", "b", "c"], dtype=object),
        pd.Series(pd.Categorical([3, 1, 2, 3, 1, 2])),
        pd.Series(pd.Categorical(["x", "y", None] * 2, ["y", "x"], ordered=True)),
        pd.Series([True, False, True, False, True, False]),
        pd.Series([True, False, None, False, True, None], dtype="boolean"),
        pd.Series([None] * 6, dtype=object),
        pd.Series([Decimal("1.50"), Decimal("2.25"), Decimal("3.00")] * 2),
        pd.Series([1, 2, 3, 4, 5, 6], dtype="int64[pyarrow]"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_pandas_columns_keep_their_type(column: pd.Series) -> None:
    frame = pd.DataFrame({"x": column, "y": range(6)}).set_index(pd.Index([7, 7, 3, 2, 1, 0]))
    asked = {"x": {"role": "key"}, "y": {"role": "key"}}
    if column.isna().any() and pd.api.types.is_numeric_dtype(column.dtype) and column.dtype != "boolean":
        asked["x"]["missing"] = "mean"
    policy = {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": asked, "output": {"others": "release"}}
    result = kinfold.anonymize(frame, policy).frame
    assert result.dtypes.equals(with_categories_that_occur(frame, result).dtypes)
    assert result.index.equals(frame.index)


def with_categories_that_occur(frame: pd.DataFrame, result: pd.DataFrame) -> pd.DataFrame:
    """A frame whose categories are those that the result holds, in the order that they had."""
    if not isinstance(frame["x"].dtype, pd.CategoricalDtype):
        return frame
    held = frame["x"].cat.categories
    return frame.assign(x=frame["x"].cat.set_categories([each for each in held if each in set(result["x"])]))


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([1, 2, 3, 4], dtype=pl.Int8),
        pl.Series([1.5, 2.5, 3.5, 4.5], dtype=pl.Float32),
        pl.Series(["x", "y", "x", None], dtype=pl.Categorical),
        pl.Series(["x", "x", "y", "y"], dtype=pl.Enum(["y", "x"])),
        pl.Series([time(1, 2, 3), time(4, 5), time(1, 2, 3), None]),
        pl.Series([None] * 4, dtype=pl.Null),
        pl.Series(DAYS[:4]),
        pl.Series([True, False, None, True]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_polars_columns_keep_their_type(column: pl.Series) -> None:
    frame = pl.DataFrame({"x": column, "y": [1, 2, 3, 4]})
    assert released(frame, "x", "y").frame.schema == frame.schema


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(4),
        pa.array(["x", "y", "x", None]).dictionary_encode(),
        pa.array(["x", "y", "x", None], pa.large_string()),
        pa.array([1, 2, 3, 4], pa.uint16()),
        pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("3.5"), Decimal("4.5")], pa.decimal128(5, 1)),
        pa.array(DAYS[:4], pa.date64()),
        pa.array([0, 86400, 90000, 5], pa.timestamp("s", "UTC")),
        pa.array([1, 2, 3, 4], pa.time32("s")),
    ],
    ids=lambda column: str(column.type),
)
def test_arrow_columns_keep_their_type(column: pa.Array) -> None:
    table = pa.table({"x": column, "y": [1, 2, 3, 4]})
    assert released(table, "x", "y").frame.schema.types == table.schema.types


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"]), DataError, "more than one column of the same name"),
        (pd.DataFrame(np.zeros((3, 2))), DataError, "names are not text"),
        (pd.DataFrame({"a": [1, "x", 2.5]}), DataError, "mixed values"),
        (pd.DataFrame({"a": pd.period_range("2024-01", periods=3, freq="M")}), DataError, "pandas.period"),
        (pd.DataFrame({"a": [timedelta(1), timedelta(2)]}), DataError, "holds INTERVAL"),
        (pd.DataFrame({"a": []}), DataError, "no rows"),
        (pd.DataFrame(index=range(3)), DataError, "no columns"),
        (pl.DataFrame({"a": [[1], [2]]}), DataError, "not single values"),
        (pl.DataFrame({"a": [1.0, float("nan"), 2.0]}), DataError, "not a number"),
        (pl.LazyFrame({"a": [1, 2]}), PolicyError, "LazyFrame is lazy"),
        (pd.Series([1, 2]), PolicyError, "Series is not a table"),
        ({"a": [1, 2]}, PolicyError, "dict is not a table"),
    ],
)
def test_frames_that_cannot_be_read(source: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        released(source, "a")


def test_errors_about_mixed_values_do_not_quote_them() -> None:
    with pytest.raises(DataError) as caught:
        released(pd.DataFrame({"a": [1, "SECRET"]}), "a")
    assert caught.value.__suppress_context__
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": [1, 2]}),
        pa.table({"a": pa.array([None] * 4, pa.string())}),
        pa.table({"a": [5] * 6}),
        pa.table({"a": [date.min, date.max, date.min, date.max]}),
        pa.table({"<script>alert(1)</script>": ["</td>", "&amp;", "[red]", "{{7*7}}"]}),
    ],
    ids=["n = k", "nulls", "constant", "the whole calendar", "markup"],
)
def test_tiny_and_odd_tables_go_the_whole_way(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = released(table, *table.column_names).save(tmp_path_factory.mktemp("odd") / "out")
    for page in folder.glob("*/report.html"):
        assert "<script" not in page.read_text()


def test_a_column_called_name_is_no_title(tmp_path_factory: pytest.TempPathFactory) -> None:
    frame = pd.DataFrame({"name": ["Xanthippe", "Zebulon"] * 2, "a": [1, 2, 3, 4]})
    folder = released(frame, "a", identifier=["name"]).save(tmp_path_factory.mktemp("title") / "out")
    assert all("Xanthippe" not in page.read_text() for page in folder.glob("*/report.html"))


def test_infinite_values_of_other_columns_have_no_place_in_a_chart_but_are_kept() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3, 4], "b": [1.0, float("nan"), float("inf"), None]})
    release = released(frame, "a", others="release")
    assert release.frame["b"].equals(frame["b"], null_equal=True)


def test_exact_averages_of_dates_are_compared_in_days() -> None:
    table, asked = pa.table({"d": DAYS}), {"d": {"role": "key"}}
    policy = {"privacy": {"k": 3}, "method": {"name": "mdav"}, "columns": asked, "output": {"round": False}}
    loss = kinfold.anonymize(table, policy).measures["loss"]["sse_ratio"]
    numbers = pa.table({"d": [day.toordinal() for day in DAYS]})
    assert loss == pytest.approx(kinfold.anonymize(numbers, policy).measures["loss"]["sse_ratio"])


def test_a_column_that_is_left_without_values_when_records_are_dropped() -> None:
    table = pa.table({"a": [None, None, 3, 4, 5], "b": [1.5, 2.5, None, None, None]})
    columns = {
        "a": {"role": "key", "missing": "drop"},
        "b": {"role": "key", "type": "continuous", "missing": "separate"},
    }
    policy = {"privacy": {"k": 3}, "method": {"name": "mdav"}, "columns": columns, "output": {"preserve": "variance"}}
    assert kinfold.anonymize(table, policy).frame.column("b").to_pylist() == [None, None, None]


def test_a_confidential_category_outside_its_order() -> None:
    columns = {"a": {"role": "key"}, "c": {"role": "confidential", "order": ["p", "q"]}}
    with pytest.raises(DataError, match="column 'c': 2 categories are not in its order"):
        kinfold.anonymize(pa.table({"a": [1, 2, 3, 4], "c": list("pqrs")}), {"privacy": {"k": 2}, "columns": columns})

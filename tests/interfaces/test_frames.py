"""Frames of every sort, strange ones too: the same kind back, or an error that says what to do."""

import json
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from everyday import first
from kinfold import DataError, PolicyError, Release
from kinfold.tables.readers import typed_files
from kinfold.tables.readers.typed_files import SPARK_METADATA_KEY

DAYS = [date(2024, 1, day) for day in range(1, 8)]


def released(source: Any, *quasi: str, **request: Any) -> Release:
    return kinfold.anonymize(source, quasi=quasi, k=2, method="mdav", **request)


@pytest.mark.slow
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
        (pl.LazyFrame({"a": [1, 2]}), PolicyError, "LazyFrame is lazy[\\s\\S]*collect it first"),
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


# Frames of every type of Arrow: released with the values and the type that they had, or refused by name


N = 24
NUMBERS = [i % 4 for i in range(N)]
TEXTS = [f"s{i % 4}" for i in range(N)]


def of(kind: pa.DataType) -> pa.Array:
    return pa.array(NUMBERS).cast(kind)


def ticks(kind: pa.DataType) -> pa.Array:
    """Moments that differ by the last digit that their type has."""
    start = 1_600_000_000 * {"s": 1, "us": 10**6, "ns": 10**9}[kind.unit]
    return pa.array([start + i for i in NUMBERS]).cast(kind)


SINGLE: dict[str, Callable[[], pa.Array]] = {
    "timestamp ns with zone": lambda: ticks(pa.timestamp("ns", "Asia/Tokyo")),
    "half": lambda: pa.array(NUMBERS, pa.float32()).cast(pa.float16()),
    "decimal256": lambda: pa.array(map(Decimal, NUMBERS), pa.decimal256(60, 2)),
    "timestamp us with zone": lambda: ticks(pa.timestamp("us", "Asia/Tokyo")),
    "timestamp ns": lambda: ticks(pa.timestamp("ns")),
    "timestamp s": lambda: ticks(pa.timestamp("s")),
    "decimal32": lambda: pa.array(map(Decimal, NUMBERS), pa.decimal32(5, 2)),
    "decimal128": lambda: pa.array([Decimal(10**37 + i) for i in NUMBERS], pa.decimal128(38, 0)),
    "uint64": lambda: pa.array([2**64 - 1 - i for i in NUMBERS], pa.uint64()),
    "int8": lambda: of(pa.int8()),
    "float": lambda: of(pa.float32()),
    "huge": lambda: pa.array([1.7e308 / (1 + i) for i in NUMBERS]),
    "subnormal": lambda: pa.array([5e-324 * i for i in NUMBERS]),
    "date64": lambda: pa.array([i * 86_400_000 for i in NUMBERS]).cast(pa.date64()),
    "time32": lambda: pa.array(NUMBERS, pa.int32()).cast(pa.time32("ms")),
    "time64": lambda: of(pa.time64("ns")),
    "string view": lambda: pa.array(TEXTS, pa.string_view()),
    "dictionary": lambda: pa.array(TEXTS).dictionary_encode(),
    "dictionary of decimals": lambda: pa.array(map(Decimal, NUMBERS), pa.decimal256(40, 2)).dictionary_encode(),
    "run ends": lambda: pc.run_end_encode(pa.array(sorted(TEXTS))),
    "uuid": lambda: pa.array([UUID(int=i).bytes for i in NUMBERS], pa.uuid()),
    "json": lambda: pa.array([f"{i}" for i in NUMBERS], pa.json_()),
    "json that is none": lambda: pa.array(TEXTS, pa.json_()),
    "truth": lambda: of(pa.bool_()),
    "truth in a byte": lambda: pa.array([i % 2 for i in NUMBERS], pa.int8()).cast(pa.bool8()),
}
REFUSED: dict[str, Callable[[], pa.Array]] = {
    "more than 38 digits": lambda: pa.array([Decimal(10**45 + i) for i in NUMBERS], pa.decimal256(60, 2)),
    "duration": lambda: of(pa.duration("ns")),
    "interval": lambda: pa.array([(i, 0, 0) for i in NUMBERS], pa.month_day_nano_interval()),
    "bytes": lambda: pa.array([text.encode() for text in TEXTS]),
    "list": lambda: pa.array([[i] for i in NUMBERS]),
    "list view": lambda: pa.array([[i] for i in NUMBERS], pa.list_view(pa.int64())),
    "struct": lambda: pa.array([{"a": i} for i in NUMBERS]),
    "union": lambda: pa.UnionArray.from_sparse(pa.array([0] * N, pa.int8()), [pa.array(NUMBERS)]),
}


def released_as(source: Any, role: str, average: str | None = None) -> kinfold.Release:
    asked: dict[str, Any] = {"role": role} | ({"average": average} if average else {})
    promised = {"k": 3, "t": 0.9} if role == "confidential" else {"k": 3}
    return kinfold.anonymize(source, {"privacy": promised, "columns": {"age": {"role": "quasi"}, "v": asked}})


def table(values: pa.Array) -> pa.Table:
    return pa.table({"age": [i // 4 for i in range(N)], "v": values})


def fewest(release: kinfold.Release, source: pa.Table) -> int:
    """The fewest different values in a class, counted on what came."""
    column, held = source.column("v"), dict[int, set[Any]]()
    if pa.types.is_time64(column.type):  # Python has no nanoseconds
        column = column.cast(pa.int64())
    for label, value in zip(release.labels.tolist(), column.to_pylist(), strict=True):
        held.setdefault(label, set()).add(value)
    return min(map(len, held.values()))


@pytest.mark.parametrize("name", first(SINGLE, 3))
def test_confidential_values_leave_as_they_came(name: str, tmp_path: Path) -> None:
    source = table(SINGLE[name]())
    release = released_as(source, "confidential")
    assert release.frame.column("v").to_pylist() == source.column("v").to_pylist()
    assert release.frame.schema.field("v").type == source.schema.field("v").type
    assert release.verdict.l["v"] == fewest(release, source)
    release.save(tmp_path / "out")  # where both checkers agree
    assert kinfold.verify(tmp_path / "out" / "public").holds


TOO_LARGE = {"huge", "uint64"}  # to be averaged


@pytest.mark.parametrize("name", first([name for name in SINGLE if name not in TOO_LARGE], 3))
def test_quasi_identifiers_go_back_into_their_type(name: str) -> None:
    source = table(SINGLE[name]())
    release = released_as(source, "quasi")
    assert release.frame.schema.field("v").type == source.schema.field("v").type
    assert release.verdict.k >= 3


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_single_value_is_refused_by_the_name_of_its_column(name: str) -> None:
    with pytest.raises(kinfold.DataError, match="column 'v' of the frame holds") as refused:
        released_as(table(REFUSED[name]()), "confidential")
    assert all(problem.fix for problem in refused.value.problems)


def test_a_type_that_the_database_does_not_know_is_refused_by_the_name_of_its_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(typed_files, "convert_types", lambda table, _: table)
    with pytest.raises(kinfold.DataError, match="column 'v' of the frame holds halffloat, which cannot be read"):
        released_as(table(SINGLE["half"]()), "confidential")


def test_half_floats_of_pandas() -> None:
    frame = pd.DataFrame({"age": [i // 4 for i in range(N)], "v": pd.Series(NUMBERS, dtype="float16")})
    release = released_as(frame, "confidential")
    assert release.frame["v"].dtype == "float16"
    assert release.frame["v"].tolist() == frame["v"].tolist()


@pytest.mark.parametrize("finer", [0, 1])
def test_moments_of_a_zone_to_the_nanosecond_in_a_file(finer: int, tmp_path: Path) -> None:
    whole = pa.array([1_600_000_000_000_000_000 + finer + 1000 * i for i in NUMBERS]).cast(pa.timestamp("ns", "UTC"))
    pa.parquet.write_table(table(whole), tmp_path / "t.parquet")
    release = released_as(tmp_path / "t.parquet", "confidential")
    release.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out" / "public").holds
    written = (tmp_path / "out" / "public" / "release.csv").read_text()
    assert ("2020-09-13 12:26:40.000001001" if finer else "2020-09-13 12:26:40.000001+00") in written
    assert release.verdict.l["v"] == fewest(release, table(whole))


STORED: dict[str, tuple[pa.Array, str]] = {  # in a Parquet file, and what is said
    "decimal256": (pa.array([Decimal(10**45 + i) for i in range(N)], pa.decimal256(60, 2)), "more than 38 digits"),
    "duration": (of(pa.duration("us")), "holds durations"),
    "duration ns": (of(pa.duration("ns")), "holds durations"),
    "bytes": (pa.array([text.encode() for text in TEXTS]), "BLOB"),
    "list": (pa.array([[i] for i in NUMBERS]), "BIGINT"),
}


@pytest.mark.parametrize("name", STORED)
def test_what_a_parquet_file_holds_and_cannot_be_read_exactly_is_refused(name: str, tmp_path: Path) -> None:
    values, said = STORED[name]
    pa.parquet.write_table(table(values), tmp_path / "t.parquet")
    with pytest.raises(kinfold.DataError, match=f"column 'v' of 't.parquet' holds .*{said}|{said}"):
        released_as(tmp_path / "t.parquet", "confidential")


def test_wide_decimals_of_a_parquet_file_keep_every_digit(tmp_path: Path) -> None:
    amounts = [Decimal(10**33 + i) for i in range(N)]
    pa.parquet.write_table(table(pa.array(amounts, pa.decimal256(60, 2))), tmp_path / "t.parquet")
    release = released_as(tmp_path / "t.parquet", "confidential")
    assert release.frame.column("v").to_pylist() == amounts


def test_intervals_that_spark_wrote_are_refused(tmp_path: Path) -> None:
    told = {"type": "struct", "fields": [{"name": "v", "type": "interval day to second", "nullable": True}]}
    source = table(of(pa.int64())).replace_schema_metadata({SPARK_METADATA_KEY: json.dumps(told)})
    pa.parquet.write_table(source, tmp_path / "t.parquet")
    with pytest.raises(kinfold.DataError, match=r"column 'v' of 't\.parquet' holds durations"):
        released_as(tmp_path / "t.parquet", "confidential")


DIGITS = st.sampled_from([(pa.int64(), 2**62, 0), (pa.int64(), -(2**62), 0), (pa.decimal128(38, 20), 10**21, 20)])


@settings(max_examples=12, deadline=None)
@given(DIGITS, st.sampled_from(["mean", "median"]), st.lists(st.integers(0, 999), min_size=N, max_size=N, unique=True))
def test_an_average_is_in_the_range_of_its_class(
    stored: tuple[pa.DataType, int, int], average: str, beyond: list[int]
) -> None:
    kind, base, decimals = stored
    held = [Decimal(base + i).scaleb(-decimals) if decimals else base + i for i in beyond]
    source = table(pa.array(held, kind))
    release = released_as(source, "quasi", average)
    classes: dict[int, list[Any]] = {}
    for label, value in zip(release.labels.tolist(), held, strict=True):
        classes.setdefault(label, []).append(value)
    for label, value in zip(release.labels.tolist(), release.frame.column("v").to_pylist(), strict=True):
        assert min(classes[label]) <= value <= max(classes[label])


def test_text_of_a_source_that_knows_types_stays_text_though_most_of_it_is_digits() -> None:
    codes = [str(1000 + i % 4) if i % 12 else "A12" for i in range(N)]
    for source in (table(pa.array(codes)), table(pa.array(codes)).to_pandas()):
        assert str(released_as(source, "confidential").policy["v"].kind) == "nominal"

"""What leaves in a frame besides its rows: nothing. Not an index, not a category, not metadata, not a buffer."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kinfold
from everyday import first
from kinfold import PolicyError

SECRET = "SECRET-of-nobody"  # longer than what polars keeps inside a view


def asked(others: str = "refuse", **columns: Any) -> dict[str, Any]:
    roles = {"age": {"role": "quasi", "missing": "drop"}, "city": {"role": "other"}, **columns}
    return {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": roles, "output": {"others": others}}


def people(index: Any = None) -> pd.DataFrame:
    frame = pd.DataFrame({"age": [30.0, 31.0, np.nan, 50.0, 51.0], "city": ["Ulm", "Jena", SECRET, "Ulm", "Bonn"]})
    return frame if index is None else frame.set_index(index)


INDEXES = {
    "numbers": pd.Index([7001, 7002, 7003, 7004, 7008], name="patient"),
    "unnamed": pd.Index([7001, 7002, 7003, 7004, 7008]),
    "texts": pd.Index(list("abcde"), name="patient"),
    "dates": pd.date_range("2024-01-01", periods=5, name="day"),
    "filtered": pd.Index([0, 5, 7, 8, 11]),
    "range with a name": pd.RangeIndex(5, name="patient"),
    "shuffled": pd.Index([4, 2, 3, 1, 0]),
    "repeated": pd.Index([1, 1, 2, 2, 3]),
    "categories": pd.CategoricalIndex(list("abcab"), categories=list("abcz")),
    "levels": pd.MultiIndex.from_arrays([list("aabbc"), [1, 2, 3, 4, 5]], names=["ward", None]),
    "periods": pd.period_range("2024-01", periods=5, freq="M"),
    "intervals": pd.interval_range(0, 5),
    "durations": pd.to_timedelta([1, 2, 4, 8, 16], unit="h"),
    "mixed": pd.Index([1, "a", 2.5, None, ("b", 1)], tupleize_cols=False),
    "bytes": pd.Index([b"a", b"b", b"c", b"d", b"e"]),
    "zones": pd.date_range("2024-01-01", periods=5, tz="Europe/Berlin"),
    "called as a column": pd.Index([1, 2, 3, 4, 9], name="age"),
    "called nearly so": pd.Index([1, 2, 3, 4, 9], name="AGE"),
    "called by a number": pd.Index([1, 2, 3, 4, 9], name=3),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_an_index_that_the_policy_does_not_name_is_refused(index: pd.Index) -> None:
    with pytest.raises(PolicyError, match=r"index that is more than a range[\s\S]*reset_index\(drop=True\)"):
        kinfold.anonymize(people(index), asked())


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_an_index_that_is_dropped_leaves_a_range(index: pd.Index) -> None:
    result = kinfold.anonymize(people(index), asked("drop")).frame
    assert isinstance(result.index, pd.RangeIndex)
    assert result.index.equals(pd.RangeIndex(4))
    assert result.index.name is None
    assert [*result.columns] == ["age", "city"]


@pytest.mark.parametrize("name", first(INDEXES, 6))
def test_an_index_that_is_released_is_the_index_of_its_rows_again(name: str) -> None:
    index = INDEXES[name]
    frame = people(index)
    release = kinfold.anonymize(frame, asked("release"))
    kept = [0, 1, 3, 4]
    assert repr(release.frame.index.tolist()) == repr(index[kept].tolist())
    assert release.frame.index.inferred_type == index.inferred_type
    assert release.frame.index.names == index.names
    assert release.frame["city"].tolist() == frame["city"].iloc[kept].tolist()
    assert kinfold.verify(release.frame, asked("release")).holds
    assert kinfold.verify(release.frame, asked()).problems  # nothing is said about it


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_a_profile_lists_the_index(index: pd.Index) -> None:
    found = [column.name for column in kinfold.profile(people(index)).columns]
    assert len(found) == 2 + index.nlevels
    assert found[-2:] == ["age", "city"]


def test_names_of_an_index_without_one_do_not_clash() -> None:
    frame = people(INDEXES["unnamed"]).rename(columns={"city": "index"})
    assert [column.name for column in kinfold.profile(frame).columns] == ["level_0", "age", "index"]


@pytest.mark.parametrize(
    "index", [None, pd.RangeIndex(5, 10), pd.RangeIndex(10, 0, -2), pd.Index([0, 1, 2, 3, 4], dtype="int32")], ids=str
)
def test_a_plain_range_is_no_column_and_is_counted_anew(index: pd.Index | None) -> None:
    frame = people(index)
    release = kinfold.anonymize(frame, asked())
    assert release.frame.index.equals(pd.RangeIndex(4))
    assert kinfold.verify(release.frame, asked()).holds
    assert kinfold.measure(frame, release.frame, asked())["suppressed"] == 1


@pytest.mark.parametrize(
    ("role", "found"),
    [("identifier", ["age", "city"]), ("other", ["patient", "age", "city"]), ("quasi", ["patient", "age", "city"])],
)
def test_an_index_that_the_policy_names_plays_its_role_as_a_column(role: str, found: list[str]) -> None:
    policy = asked(patient={"role": role})
    result = kinfold.anonymize(people(INDEXES["numbers"]), policy).frame
    assert [*result.columns] == found
    assert result.index.equals(pd.RangeIndex(4))
    assert ("patient" in result and result["patient"].is_unique) == (role == "other")
    assert kinfold.verify(result, policy).holds


def test_an_index_of_the_original_is_measured_like_a_column() -> None:
    frame, policy = people(INDEXES["numbers"]), asked("release")
    release = kinfold.anonymize(frame, policy)
    assert kinfold.measure(frame, release.frame, policy)["suppressed"] == 1


def test_an_index_never_reaches_the_folder(tmp_path: Any) -> None:
    frame = people(pd.Index([f"{SECRET}-{i}" for i in range(5)], name="patient"))
    kinfold.anonymize(frame, asked("drop")).save(tmp_path / "out")
    for path in (tmp_path / "out" / "public").rglob("*"):
        assert SECRET.encode() not in path.read_bytes()
        assert b"patient" not in path.read_bytes()


def test_attributes_of_a_frame_stay_behind() -> None:
    frame = people()
    frame.attrs["made of"] = SECRET
    frame.columns.name = SECRET
    result = kinfold.anonymize(frame, asked()).frame
    assert not result.attrs
    assert result.columns.name is None


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("role", ["other", "quasi", "confidential"])
def test_pandas_categories_are_those_that_occur(role: str, ordered: bool) -> None:
    frame = people()
    held = ["Bonn", SECRET, "nowhere", "Ulm", "Jena"]
    frame["city"] = pd.Categorical(frame["city"], pd.Index(held, name=SECRET), ordered=ordered)
    result = kinfold.anonymize(frame, asked(city={"role": role})).frame
    assert result["city"].cat.categories.tolist() == [name for name in held if name in set(result["city"])]
    assert result["city"].cat.ordered == ordered
    assert SECRET not in repr(result["city"].dtype)


def test_categories_of_a_released_index_are_those_that_occur() -> None:
    frame = people(pd.CategoricalIndex(["a", "b", SECRET, "a", "b"], ["b", "z", SECRET, "a"], ordered=True))
    result = kinfold.anonymize(frame, asked("release")).frame
    assert result.index.categories.tolist() == ["b", "a"]


def test_pandas_columns_of_arrow_dictionaries_hold_what_occurs() -> None:
    frame = people()
    frame["city"] = frame["city"].astype(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
    result = kinfold.anonymize(frame, asked()).frame
    assert result["city"].dtype == frame["city"].dtype
    assert SECRET.encode() not in held_by_arrow(pa.chunked_array(result["city"].array.__arrow_array__()))


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["Bonn", SECRET, "nowhere", "Ulm", "Jena"]), pl.String])
@pytest.mark.parametrize("role", ["other", "quasi"])
def test_polars_categories_are_those_that_occur(kind: Any, role: str) -> None:
    frame = pl.from_pandas(people()).with_columns(pl.col("city").cast(kind))
    result = kinfold.anonymize(frame, asked(city={"role": role})).frame
    assert result["city"].dtype == (kind if kind in (pl.Categorical, pl.String) else pl.Enum)
    if kind not in (pl.Categorical, pl.String):
        occur = set(result["city"].to_list())
        assert result["city"].dtype.categories.to_list() == [name for name in kind.categories if name in occur]
    newest = result["city"].to_arrow(compat_level=pl.CompatLevel.newest())
    assert SECRET.encode() not in held_by_arrow(pa.chunked_array([newest]))


def held_by_arrow(column: pa.ChunkedArray) -> bytes:
    """Every byte that can be reached from a column, its dictionaries included."""
    found = b""
    for chunk in column.chunks:
        parts = [chunk, chunk.dictionary] if isinstance(chunk, pa.DictionaryArray) else [chunk]
        found += b"".join(buffer.to_pybytes() for part in parts for buffer in part.buffers() if buffer is not None)
    return found


ARROW = {
    "text": pa.string(),
    "large text": pa.large_string(),
    "views": pa.string_view(),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "ordered dictionary": pa.dictionary(pa.int32(), pa.large_string(), ordered=True),
}


@pytest.mark.parametrize("kind", ARROW.values(), ids=ARROW)
@pytest.mark.parametrize("role", ["other", "quasi"])
def test_arrow_columns_hold_what_occurs_and_no_metadata(kind: pa.DataType, role: str) -> None:
    texts = pa.array([SECRET, "Ulm", "Jena", SECRET, "Ulm", "Bonn", SECRET])
    if pa.types.is_dictionary(kind):
        names = pa.array(["Bonn", SECRET, "nowhere", "Ulm", "Jena"]).cast(kind.value_type)
        codes = pa.array([names.to_pylist().index(text) for text in texts.to_pylist()], kind.index_type)
        texts = pa.DictionaryArray.from_arrays(codes, names, ordered=kind.ordered)
    city = pa.field("city", kind, metadata={"note": SECRET})
    fields = pa.schema([pa.field("age", pa.float64()), city], metadata={"pandas": SECRET})
    whole = pa.table([pa.array([0.0, 30.0, 31.0, None, 50.0, 51.0, 0.0]), texts.cast(kind)], schema=fields)
    table = whole.slice(1, 5)
    result = kinfold.anonymize(table, asked(city={"role": role, "type": "nominal"})).frame
    assert result.schema.metadata is None
    assert result.schema.field("city").metadata is None
    assert result.schema.field("city").type == kind
    assert SECRET.encode() not in held_by_arrow(result.column("city"))
    if pa.types.is_dictionary(kind):
        occur = set(result.column("city").to_pylist())
        order = [name for name in ("Bonn", "Ulm", "Jena") if name in occur]
        assert result.column("city").chunk(0).dictionary.to_pylist() == order
        assert result.column("city").type.ordered == kind.ordered


@pytest.mark.parametrize("dropped", [True, False])
def test_released_columns_share_no_memory_with_the_original(dropped: bool) -> None:
    whole = pd.DataFrame({"age": [1.0, 30, 31, np.nan, 50, 51, 2], "city": [7, 1, 2, 3, 4, 5, 9]})
    frame = whole.iloc[1:6] if dropped else whole.iloc[[1, 2, 4, 5]]
    policy = asked("drop", city={"role": "other"})
    result = kinfold.anonymize(frame, policy).frame
    for name in result:
        released, held = result[name].to_numpy(), frame[name].to_numpy()
        assert not np.shares_memory(released, held)
        assert not np.shares_memory(released, whole[name].to_numpy())
        base = released if released.base is None else released.base
        assert base.size <= result.size  # no larger array stands behind it


def test_polars_numbers_share_no_memory_with_the_original() -> None:
    whole = pl.DataFrame({"age": [0.0, 30, 31, 50, 51, 0], "city": [9, 1, 2, 3, 4, 9]})
    frame = whole.slice(1, 4)
    result = kinfold.anonymize(frame, asked()).frame
    for name in result.columns:
        held = whole[name].to_numpy(allow_copy=False)
        assert not np.shares_memory(result[name].to_numpy(allow_copy=False), held)


def test_nothing_of_a_dropped_row_is_reachable_from_a_pandas_text_column() -> None:
    result = kinfold.anonymize(people(), asked()).frame
    gc.collect()
    assert SECRET.encode() not in held_by_arrow(pa.chunked_array(result["city"].array.__arrow_array__()))

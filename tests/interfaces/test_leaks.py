"""Values planted where they must not leave from, and every byte of what leaves searched for them."""

import gc
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kinfold
from command import text
from everyday import first
from kinfold import PolicyError

# One word for each place where a value of the original, or of what was declared about it, could slip out.
PLACES = {
    "a category of dropped rows": "zqdropped",
    "an order of a quasi-identifier": "zqquasiorder",
    "an order of a confidential column": "zqheldorder",
    "a leaf of a quasi-identifier's hierarchy": "zqquasileaf",
    "a leaf of a confidential column's hierarchy": "zqheldleaf",
    "an identifier": "zqname",
    "a column nobody named": "zqother",
    "the name of a dropped column": "zqcolumn",
    "the index": "zqindex",
    "the name of the index": "zqlevel",
    "metadata": "zqmeta",
    "a category that no row has": "zqunused",
}
N = 40


def table() -> pd.DataFrame:
    """Forty people; those without an age are dropped, and are alone in having some values."""
    gone = [i % 10 == 9 for i in range(N)]
    levels = ["low", "mid", "high", "mid"]
    word = PLACES["a category of dropped rows"]

    def column(values: list[str]) -> list[str]:
        return [word + str(i) if out else values[i % len(values)] for i, out in enumerate(gone)]

    frame = pd.DataFrame(
        {
            "name": [f"{PLACES['an identifier']}{i}" for i in range(N)],
            "age": [None if out else 20 + i for i, out in enumerate(gone)],
            "level": pd.Categorical(column(levels), [*levels[:3], PLACES["a category that no row has"], *_dropped()]),
            "zip": [word if out else ["a1", "a2", "b1", "b2"][i % 4] for i, out in enumerate(gone)],
            "grade": column(["good", "fair", "poor"]),
            "disease": [word if out else ["flu", "cold", "gout"][i % 3] for i, out in enumerate(gone)],
            "kept": pd.Categorical(column(["x", "y"]), ["x", "y", PLACES["a category that no row has"], *_dropped()]),
            PLACES["the name of a dropped column"]: [f"{PLACES['a column nobody named']}{i}" for i in range(N)],
        },
        index=pd.Index([f"{PLACES['the index']}{i}" for i in range(N)], name=PLACES["the name of the index"]),
    )
    frame.attrs["from"] = PLACES["metadata"]
    return frame


def _dropped() -> list[str]:
    return [f"{PLACES['a category of dropped rows']}{i}" for i in range(N) if i % 10 == 9]


def policy(method: str, form: str, order: bool) -> dict[str, Any]:
    gone = PLACES["a category of dropped rows"]
    zips = {"a": ["a1", "a2"], "b": ["b1", "b2"], "q": [PLACES["a leaf of a quasi-identifier's hierarchy"], gone]}
    tree = {"lung": ["flu", "cold"], "rest": ["gout"]}
    tree["none"] = [PLACES["a leaf of a confidential column's hierarchy"], gone]
    levels = ["low", PLACES["an order of a quasi-identifier"], "mid", "high", *_dropped()]
    grades = ["poor", PLACES["an order of a confidential column"], "fair", "good", *_dropped()]
    grade: dict[str, Any] = {"role": "confidential"}
    grade |= {"type": "ordinal", "order": grades} if order else {}
    columns = {
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "type": "continuous", "missing": "drop", "hierarchy": {"intervals": [10]}},
        "level": {"role": "quasi", "type": "ordinal", "order": levels},
        "zip": {"role": "quasi", "type": "nominal", "hierarchy": {"tree": zips}},
        "grade": grade,
        "disease": {"role": "confidential", "hierarchy": {"tree": tree}},
        "kept": {"role": "other"},
    }
    if method in ("mdav", "k-first"):
        columns["level"]["average"] = "median"
    return {
        "privacy": {"k": 3, "t": 0.9, "l": 1},
        "method": {"name": method, "suppression": 0.2},
        "columns": columns,
        "output": {"others": "drop", "format": form},
    }


def found_in(folder: Path) -> dict[str, set[str]]:
    """The files in which each planted word is, compressed or not."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*"):
        content = path.read_bytes()
        if path.suffix == ".parquet":  # a page may be compressed
            plain = path.with_suffix(".plain")
            pq.write_table(pq.read_table(path), plain, compression="none")
            content += plain.read_bytes()
            plain.unlink()
        for place, word in PLACES.items():
            if re.search(word.encode(), content):
                found.setdefault(place, set()).add(path.name)
    return found


METHODS = ["mdav", "k-first", "mingen-cell", "lattice", "datafly", "mu-argus"]


@pytest.fixture(scope="module", params=first((f"{m} {form}" for m in METHODS for form in ("csv", "parquet")), 2))
def planted(request: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    method, form = request.param.split()
    out = tmp_path_factory.mktemp("planted") / "out"
    kinfold.anonymize(table(), policy(method, form, order=True)).save(out)
    assert found_in(out / "internal")  # they are somewhere
    return found_in(out / "public")


def test_nothing_planted_is_in_public(planted: dict[str, set[str]]) -> None:
    assert planted == {}


@pytest.mark.parametrize("method", ["mdav", "mingen-cell"])
def test_nothing_planted_is_in_public_where_no_confidential_column_is_ordered(method: str, tmp_path: Path) -> None:
    kinfold.anonymize(table(), policy(method, "csv", order=False)).save(tmp_path / "out")
    assert found_in(tmp_path / "out" / "public") == {}


def test_a_parquet_file_carries_no_metadata_of_its_source(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    frame = table().reset_index(drop=True).drop(columns=PLACES["the name of a dropped column"])
    held = pa.Table.from_pandas(frame).replace_schema_metadata({"pandas": PLACES["metadata"]})
    pq.write_table(held, source)
    kinfold.anonymize(source, policy("mdav", "parquet", order=False)).save(tmp_path / "out")
    file = tmp_path / "out" / "public" / "release.parquet"
    assert not {*(pq.read_schema(file).metadata or {})} - {b"duckdb_schema"}
    assert found_in(tmp_path / "out" / "public") == {}


def test_a_csv_source_leaves_nothing_either(tmp_path: Path) -> None:
    data = text(tmp_path, "t.csv", table().to_csv())
    release = kinfold.anonymize(data, policy("mdav", "csv", order=False))
    release.save(tmp_path / "out")
    assert found_in(tmp_path / "out" / "public") == {}
    assert not re.search("zq", release.frame.to_pandas().to_csv())


# What leaves in a frame besides its rows: nothing. Not an index, not a category, not metadata, not a buffer


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
    with pytest.raises(PolicyError, match=r"index that is not a plain range[\s\S]*reset_index\(drop=True\)"):
        kinfold.anonymize(people(index), asked())


@pytest.mark.parametrize("name", first(INDEXES, 6))
def test_an_index_that_is_dropped_leaves_a_range(name: str) -> None:
    result = kinfold.anonymize(people(INDEXES[name]), asked("drop")).frame
    assert isinstance(result.index, pd.RangeIndex)
    assert result.index.equals(pd.RangeIndex(4))
    assert result.index.name is None
    assert [*result.columns] == ["age", "city"]


@pytest.mark.slow
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


@pytest.mark.parametrize("name", first(INDEXES, 6))
def test_a_profile_lists_the_index(name: str) -> None:
    index = INDEXES[name]
    found = [column.name for column in kinfold.profile(people(index)).columns]
    assert len(found) == 2 + index.nlevels
    assert found[-2:] == ["age", "city"]


def test_names_of_an_index_without_one_do_not_clash() -> None:
    frame = people(INDEXES["unnamed"]).rename(columns={"city": "index"})
    assert [column.name for column in kinfold.profile(frame).columns] == ["level_0", "age", "index"]


@pytest.mark.slow
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


@pytest.mark.slow
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

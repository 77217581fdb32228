"""The whole way on random mixed tables, as pandas, polars and pyarrow: the laws that every release keeps."""

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kinfold
from command import content, run
from everyday import first
from kinfold import Release, VerifyError
from kinfold.errors import PolicyError, Unreachable
from kinfold.policy.registry import METHOD_MODULES
from kinfold.tables.duckdb.engine import DuckDB
from pipeline_tables import Case, case

EXAMPLES = settings(max_examples=10, deadline=None)
cases = st.integers(0, 10**6).map(case)
exact_cases = st.integers(0, 10**6).map(lambda seed: case(seed, round=False))


def as_pandas(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas(types_mapper={pa.int16(): pd.Int16Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
    frame["level"] = frame["level"].astype(pd.CategoricalDtype(["top", "high", "mid", "low"]))
    frame.index = pd.Index([f"row {-i}" for i in range(len(frame))], name="row")
    return frame


def as_polars(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col("zip").cast(pl.Categorical))


def as_pyarrow(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("level"), "level", table.column("level").dictionary_encode())


KINDS = {"pandas": as_pandas, "polars": as_polars, "pyarrow": as_pyarrow}


def names_of(frame: Any) -> list[str]:
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def in_order_of(source: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose categories of `level` are those that the release holds, in the order that they had."""
    held = source["level"].cat.categories
    occur = held[held.isin(set(frame["level"]))]  # of the type that they had, also where none occurs
    return source.assign(level=source["level"].cat.set_categories(occur))


def released(drawn: Case, source: Any) -> Release:
    drawn.policy["output"]["others"] = "release"  # the index of a frame is a column that nobody named
    try:
        return kinfold.anonymize(source, drawn.policy)
    except Unreachable:  # too few records, or too few with one pattern of missing values
        assume(False)
        raise


def tuples(frame: Any, names: list[str]) -> list[tuple[Any, ...]]:
    """Rows as plain tuples, every kind of missing value as None."""
    if isinstance(frame, pd.DataFrame):
        columns = [[None if pd.isna(value) else value for value in frame[name]] for name in names]
    elif isinstance(frame, pl.DataFrame):
        columns = [frame[name].to_list() for name in names]
    else:
        columns = [frame.column(name).to_pylist() for name in names]
    return list(zip(*columns, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", first(KINDS))
@EXAMPLES
@given(drawn=cases)
def test_every_released_tuple_is_shared_by_k_records(kind: str, drawn: Case) -> None:
    source = KINDS[kind](drawn.table)
    release = released(drawn, source)
    rows = tuples(release.frame, drawn.quasi)
    sizes = Counter(rows)
    assert min(sizes.values()) >= drawn.policy["privacy"]["k"]
    assert (release.verdict.k, release.verdict.classes) == (min(sizes.values()), len(sizes))
    pairs = set(zip(release.labels.tolist(), rows, strict=True))
    assert len(pairs) == len(sizes) == len(set(release.labels.tolist()))
    assert kinfold.verify(release.frame, drawn.policy).to_dict() == release.verdict.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("kind", first(KINDS))
@EXAMPLES
@given(drawn=cases)
def test_frames_come_back_as_they_were_but_for_what_was_averaged(kind: str, drawn: Case) -> None:
    source = KINDS[kind](drawn.table)
    before = source.copy() if kind == "pandas" else source
    frame = released(drawn, source).frame
    kept = drawn.kept
    assert type(frame) is type(source)
    assert names_of(frame) == [name for name in names_of(source) if name != "id"]
    stored = [
        n for n, c in drawn.policy["columns"].items() if c["role"] != "identifier" and c.get("average") != "generalize"
    ]
    if isinstance(frame, pd.DataFrame):
        pd.testing.assert_frame_equal(source, before)
        assert frame.index.equals(source.index[kept])
        assert frame[stored].dtypes.equals(in_order_of(source, frame)[stored].dtypes)
        pd.testing.assert_frame_equal(frame[["disease", "note"]], source.loc[kept, ["disease", "note"]])
    elif isinstance(frame, pl.DataFrame):
        assert [frame[name].dtype for name in stored] == [source[name].dtype for name in stored]
        assert frame.select("disease", "note").equals(source.filter(kept).select("disease", "note"))
    else:
        assert [frame.schema.field(name).type for name in stored] == [source.schema.field(name).type for name in stored]
        assert frame.select(["disease", "note"]).equals(source.filter(kept).select(["disease", "note"]))


def seconds(values: list[Any]) -> np.ndarray:
    return pd.to_datetime(pd.Series(values, dtype=object)).astype("datetime64[us]").astype(np.int64).to_numpy() / 1e6


@pytest.mark.slow
@EXAMPLES
@given(drawn=exact_cases)
def test_means_are_preserved(drawn: Case) -> None:
    frame = released(drawn, drawn.table).frame
    for name in ("age", "rate", "day"):
        asked = drawn.policy["columns"].get(name)
        if asked is None or asked["average"] != "mean":
            continue
        before = drawn.table.column(name).to_pylist()
        known = np.array([value is not None for value in before])
        numbers = np.zeros(len(before))
        numbers[known] = (
            seconds([v for v in before if v is not None]) if name == "day" else [v for v in before if v is not None]
        )
        if asked["missing"] == "mean":
            numbers[~known], known = numbers[known].mean(), np.ones(len(before), bool)
        after = frame.column(name).to_pylist()
        shown = np.zeros(len(before), bool)
        shown[drawn.kept] = [value is not None for value in after]
        blanked = known & drawn.kept & ~shown  # given up by records whose pattern of missing values is rare
        asked_apart = "separate" in {column.get("missing") for column in drawn.policy["columns"].values()}
        assert asked_apart or not blanked.any()
        rows = known & shown
        after = [value for value in after if value is not None]
        assert len(after) == rows.sum()
        if len(after):
            numbers_after = seconds(after) if name == "day" else np.array(after, float)
            scale = np.abs(numbers[rows]).max()
            tolerance = 1e-6 if name == "day" else 1e-9 * scale  # times are kept to the microsecond
            assert abs(numbers_after.mean() - numbers[rows].mean()) <= max(tolerance, 1e-9 * scale)


@pytest.mark.slow
@EXAMPLES
@given(drawn=cases)
def test_the_same_table_gives_the_same_bytes_twice(drawn: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, files = tmp_path_factory.mktemp("twice"), []
    for number in range(2):
        release = released(drawn, drawn.table)
        for ending in ("csv", "parquet"):
            path = folder / f"{number}.{ending}"
            release.engine.write(release.released, path, release.schema, ordered=True)
            files.append(path.read_bytes())
    assert files[:2] == files[2:]


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_was_saved_holds_what_was_promised(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    drawn = case(seed)
    folder = tmp_path_factory.mktemp("saved") / "out"
    release = released(drawn, drawn.table)
    release.save(folder)
    found = run("verify", folder / "public", "--json")
    assert found.code == 0
    assert found.json["k"] == release.verdict.k
    policy = kinfold.Policy.load(folder / "internal" / "policy.toml")
    again = kinfold.anonymize(drawn.table, policy)
    again.save(folder, force=True)
    assert run("verify", folder).code == 0


# A method that is wrong on purpose


def wrong(points: Any, *args: Any, **_: Any) -> np.ndarray:
    """Put the first record into a class of its own."""
    labels = np.ones(len(points), np.int32)
    labels[0] = 0
    return labels


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module(METHOD_MODULES["mdav"]), "run", wrong)


TABLE = pa.table({"age": [20, 30, 40, 50, 60, 70], "sex": ["f", "m"] * 3})


@pytest.mark.usefixtures("careless")
def test_a_wrong_method_is_found_out() -> None:
    with pytest.raises(VerifyError) as caught:
        kinfold.anonymize(TABLE, quasi=["age", "sex"], k=3, method="mdav")
    assert "3-anonymity does not hold: 1 found, 3 required" in str(caught.value)


@pytest.mark.usefixtures("careless")
def test_a_wrong_method_ends_with_code_5_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex\n20,f\n30,m\n40,f\n50,m\n60,f\n70,m\n")
    before = content(tmp_path)
    args = (
        "anonymize",
        tmp_path / "t.csv",
        "--quasi",
        "age,sex",
        "-k",
        3,
        "--method",
        "mdav",
        "--out",
        tmp_path / "out",
    )
    run(*args).fails(5, "3-anonymity does not hold", "do not release this file")
    assert content(tmp_path) == before
    assert not (tmp_path / "out").exists()


def test_a_file_that_differs_from_the_rows_that_were_checked_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = kinfold.anonymize(TABLE, quasi=["age", "sex"], k=3, method="mdav")
    honest = type(release.engine).write

    def careless_write(self: Any, frame: Any, path: Path, *args: Any, **options: Any) -> None:
        honest(self, frame, path, *args, **options)
        path.write_text(path.read_text() + "99,f\n")

    monkeypatch.setattr(type(release.engine), "write", careless_write)
    with pytest.raises(VerifyError):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# Every generalizing method through the whole way: verified, truthful, and nothing lost on the way


METHODS = ["datafly", "mu-argus", "mingen", "mingen-cell", "lattice"]
AGES = {"hierarchy": {"intervals": [5, 20]}}
ZIPS = {"hierarchy": {"mask": 2}, "type": "nominal"}


def policy(method, k=2, **settings_):
    columns = {
        "age": {"role": "quasi", "type": "continuous", "missing": "separate", **AGES},
        "zip": {"role": "quasi", **ZIPS},
        "sex": {"role": "quasi"},
        "disease": {"role": "confidential"},
    }
    output = {"suppressed": settings_.pop("suppressed", "drop")}
    privacy = {"k": k, **settings_.pop("privacy", {})}
    return {"privacy": privacy, "method": {"name": method, **settings_}, "columns": columns, "output": output}


def _told(true, verb, asked):
    """A verb of the engine that writes down that it was asked, and of which frame."""

    def told(engine, frame, *more):
        asked.append((verb, frame))
        return true(engine, frame, *more)

    return told


@st.composite
def tables(draw):
    n = draw(st.integers(4, 9))
    row = st.tuples(
        st.one_of(st.none(), st.integers(18, 60)),
        st.sampled_from(["021", "022", "031", "131"]),
        st.sampled_from(["f", "m", None]),
        st.sampled_from(["flu", "cold"]),
    )
    rows = draw(st.lists(row, min_size=n, max_size=n))
    rows[0] = (30, *rows[0][1:])  # a column without any value is refused, and tested elsewhere
    table = pd.DataFrame(rows, columns=["age", "zip", "sex", "disease"])
    return table.astype({"age": "Int64", "zip": "string", "sex": "string", "disease": "string"})


def generalized(table, asked):
    """Release a table; where it cannot be, let hypothesis draw another: it gives up where that happens often."""
    try:
        return kinfold.anonymize(table, asked)
    except Unreachable:
        assert asked["method"]["name"] in ("datafly", "lattice")  # what may be suppressed can be all of a small table
        assume(False)
        raise


def covers(label, value, column):
    """Whether a released label says something true about a value."""
    if pd.isna(label):
        return pd.isna(value)
    if label == "*":
        return True
    if pd.isna(value):
        return False
    if str(label) == str(value):
        return True
    if column == "age":
        low, _, high = str(label).partition("-")
        return bool(high) and int(low) <= value <= int(high)
    return (
        column == "zip" and len(label) == len(value) and all(a in ("*", b) for a, b in zip(label, value, strict=True))
    )


@pytest.mark.parametrize("method", ["datafly", "mu-argus", "mingen", "lattice"])
def test_rows_are_not_touched_before_the_recoding_is_applied(method, monkeypatch):
    asked = []
    for verb in ("tally", "take", "collect", "apply"):
        true = getattr(DuckDB, verb)
        monkeypatch.setattr(DuckDB, verb, _told(true, verb, asked))
    table = pd.DataFrame({"age": [20, 21, 40, 41] * 3, "zip": ["021"] * 12, "sex": ["f"] * 12, "disease": ["flu"] * 12})
    release = kinfold.anonymize(table, policy(method, suppression=0))
    before = asked[: [verb for verb, _ in asked].index("apply")]
    assert {verb for verb, frame in before if frame == release.original} == {"tally"}
    assert len(release.plan.recoding.labels) == 4  # one for each tuple


@pytest.mark.slow
@pytest.mark.parametrize("method", first(METHODS, 2))
@settings(max_examples=12, deadline=None)
@given(table=tables())
def test_a_generalized_release_is_k_anonymous_and_every_value_in_it_is_true(method, table):
    release = generalized(table, policy(method))
    rows, before = release.frame, table[release.recoding.kept]
    keys = rows[["age", "zip", "sex"]].astype("string").fillna("null")
    assert keys.groupby(["age", "zip", "sex"]).size().min() >= 2
    for column in ("age", "zip", "sex"):
        pairs = zip(rows[column], before[column], strict=True)
        assert all(covers(label, value, column) for label, value in pairs), column
    assert rows.disease.tolist() == before.disease.tolist()
    assert rows.index.equals(pd.RangeIndex(len(rows)))  # gaps would tell which records were left out


@pytest.mark.slow
@pytest.mark.parametrize("method", first(["lattice", "datafly", "mu-argus"]))
@settings(max_examples=10, deadline=None)
@given(table=tables())
def test_starred_records_are_kept_and_form_a_class_like_any_other(method, table):
    release = generalized(table, policy(method, suppressed="star", suppression=len(table) // 2))
    assert len(release.frame) == len(table)
    assert release.verdict.k >= 2


@pytest.mark.parametrize("method", ["mingen-cell", "lattice"])
def test_models_are_part_of_the_search(method):
    table = pd.DataFrame(
        {
            "age": [20, 21, 40, 41] * 5,
            "zip": ["021", "022"] * 10,
            "sex": ["f"] * 20,
            "disease": ["flu", "cold", "flu", "flu"] * 5,
        }
    )
    release = kinfold.anonymize(table, policy(method, privacy={"l": 2, "t": 0.3}))
    assert release.verdict.l["disease"] >= 2
    assert release.verdict.t["disease"] <= 0.3


def test_a_column_that_nothing_was_done_to_keeps_its_type():
    table = pd.DataFrame(
        {"age": [30, 30, 30, 50, 50, 50], "zip": ["021"] * 6, "sex": ["f"] * 6, "disease": ["flu"] * 6}
    )
    release = kinfold.anonymize(table, policy("lattice", k=3))
    assert release.frame.age.dtype == table.age.dtype
    assert (release.frame.age == table.age).all()
    assert release.measures["loss"]["granularity"] == 1


def test_numbers_without_a_hierarchy_are_refused_with_a_remedy():
    table = pd.DataFrame({"age": [30, 31, 32], "disease": ["flu"] * 3})
    with pytest.raises(PolicyError, match=r"needs a hierarchy for 'age'[\s\S]*intervals"):
        kinfold.anonymize(table, quasi=["age"], confidential=["disease"], k=2, method="datafly")


def test_too_few_records_cannot_be_met():
    table = pd.DataFrame({"age": [30, 31, 32], "zip": ["021"] * 3, "sex": ["f"] * 3, "disease": ["flu"] * 3})
    with pytest.raises(Unreachable, match="only 3 records"):
        kinfold.anonymize(table, policy("lattice", k=4))

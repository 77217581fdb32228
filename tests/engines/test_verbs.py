"""The verbs of the engine: rows keep their order, null is a value, and what is written is what was there."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from command import text
from kinfold.errors import DataError, PolicyError
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.engine import Engine
from kinfold.tables.queries import collect_rows, label_rows
from kinfold.tables.recoding import Drop, Keep, Recoding, Replace
from kinfold.tables.schema import AS_TEXT, OrderedReading

AWKWARD = ["a\rb", "a\nb", 'q"q', " lead", "trail ", "NULL", "a,b", "a;b", "#x", "'", " ", "\\N", "ü\u2028x", "\t", "*"]


@pytest.fixture
def engine() -> DuckDB:
    return DuckDB()


# tally


def test_null_is_a_class_of_its_own(engine: DuckDB) -> None:
    frame = engine.read(pa.table({"zip": ["a", "a", None, None, "b"], "age": [1, 1, 9, None, 2]}))
    tally = engine.tally(frame, ["zip", "age"], {})
    assert sorted(tally.sizes.tolist()) == [1, 1, 1, 2]
    assert tally.records == 5


def test_null_is_a_value_of_a_confidential_column_and_comes_first(engine: DuckDB) -> None:
    frame = engine.read(pa.table({"g": ["x", "x", "y", "y"], "d": ["flu", None, None, None]}))
    spread = engine.tally(frame, ["g"], {"d": AS_TEXT}).spreads["d"]
    assert spread.values.tolist() == [None, "flu"]
    cells = zip(spread.group.tolist(), spread.code.tolist(), spread.count.tolist(), strict=True)
    assert list(cells) == [(0, 0, 1), (0, 1, 1), (1, 0, 2)]


def test_a_spread_belongs_to_the_class_it_is_counted_in(engine: DuckDB) -> None:
    random = np.random.default_rng(0)
    keys = [[None, "a", "b", "ä"][i] for i in random.integers(0, 4, 500)]
    more = [[None, 1, 2, -3][i] for i in random.integers(0, 4, 500)]
    values = [[None, "x", "y"][i] for i in random.integers(0, 3, 500)]
    frame = engine.read(pa.table({"k": keys, "m": more, "v": values}))
    tally = engine.tally(frame, ["k", "m"], {"v": AS_TEXT})
    expected = Counter(zip(keys, more, values, strict=True))
    spread, found = tally.spreads["v"], {}
    for group, code, count in zip(spread.group, spread.code, spread.count, strict=True):
        key, other = tally.keys["k"][group], tally.keys["m"][group]
        found[key, None if other is None else int(other), spread.values[code]] = int(count)
    assert found == expected
    assert tally.sizes.tolist() == np.bincount(spread.group, spread.count).astype(int).tolist()


def test_confidential_numbers_are_told_apart_as_numbers(engine: DuckDB) -> None:
    path_rows = "g,v\nx,10\nx,9\nx,9.0\nx,\n"
    with tempfile.TemporaryDirectory() as folder:
        frame = engine.read(text(Path(folder), "t.csv", path_rows))
    assert engine.tally(frame, ["g"], {"v": AS_TEXT}).spreads["v"].values.tolist() == [None, "10", "9"]
    numbers = engine.tally(frame, ["g"], {"v": OrderedReading("number")}).spreads["v"].values
    assert numbers.tolist() == [None, 9, 10]


# collect


def test_dates_and_times_are_days_since_1970(engine: DuckDB) -> None:
    days, times = [date(1970, 1, 2), date(1969, 12, 31)], [datetime(1970, 1, 1, 6), datetime(1969, 12, 31)]
    frame = engine.read(pa.table({"day": days, "at": times}))
    schema = engine.schema(frame)
    found = engine.collect(frame, {"day": schema["day"], "at": schema["at"]})
    assert found.column("day").to_pylist() == [1.0, -1.0]
    assert found.column("at").to_pylist() == [0.25, -1.0]


def test_rows_keep_their_order_however_many(engine: DuckDB) -> None:
    n = 400_000
    frame = engine.read(pa.table({"i": np.arange(n), "t": np.arange(n)[::-1]}))
    assert (engine.collect(frame, {"i": engine.schema(frame)["i"]}).column(0).to_numpy() == np.arange(n)).all()
    labels = (np.arange(n) % 7 - 1).astype(np.int32)
    values = pa.array([10, 20, 30, 40, 50, 60])
    recoding = Recoding(labels, {"i": Keep(), "t": Replace(values)})
    released = collect_rows(engine, engine.apply(frame, recoding, engine.schema(frame)))
    kept = np.flatnonzero(labels >= 0)
    assert (released.column("i").to_numpy() == kept).all()
    assert (released.column("t").to_numpy() == values.to_numpy()[labels[kept]]).all()


def test_rows_of_a_large_file_keep_their_order(engine: DuckDB, tmp_path: Path) -> None:
    n = 300_000
    path = text(tmp_path, "t.csv", "i,word\n" + "".join(f"{i},w{i % 97}\n" for i in range(n)))
    frame = engine.read(path)
    assert (engine.collect(frame, {"i": engine.schema(frame)["i"]}).column(0).to_numpy() == np.arange(n)).all()


# by tuple


TUPLES = {  # what is one by its text is one tuple, null too; 0.0 and -0.0, 1.5 and 1.50 are two
    "csv": "a,b,c\n1.5,x,1\n1.50,x,2\n,x,3\n1.5,x,4\n1.5,,5\n,x,6\n",
    "frame": pa.table({"a": [0.0, -0.0, None, 0.0, 0.0, None], "b": ["x", "x", "x", "x", None, "x"], "c": [*range(6)]}),
}


@pytest.fixture(params=TUPLES)
def tuples(request: pytest.FixtureRequest, engine: DuckDB, tmp_path: Path) -> Any:
    source = TUPLES[request.param]
    return engine.read(text(tmp_path, "t.csv", source) if isinstance(source, str) else source)


def test_distinct_tuples_stand_in_the_order_of_the_tally(engine: DuckDB, tuples: Any) -> None:
    tally, found = engine.tally(tuples, ["a", "b"], {}), engine.tally(tuples, ["a", "b"], {}).tuples
    keys = engine.collect(found, {"a": None, "b": None})
    assert [keys.column(name).to_pylist() for name in ("a", "b")] == [tally.keys[n].tolist() for n in ("a", "b")]
    assert sorted(tally.sizes.tolist()) == [1, 1, 2, 2]


def test_a_recoding_by_tuple_is_one_by_row(engine: DuckDB, tuples: Any) -> None:
    found = engine.tally(tuples, ["b", "a"], {}).tuples
    treatments = {"a": Replace(pa.array(["A", "B", "C", "D"]), as_stored=False), "b": Drop(), "c": Keep()}
    by_tuple = Recoding(np.array([2, -1, 0, 3], np.int32), treatments, found)
    by_row = label_rows(engine, tuples, by_tuple)
    texts = engine.collect(tuples, {"b": None, "a": None})
    place = {row: i for i, row in enumerate(_rows(engine.collect(found, {"b": None, "a": None})))}
    assert by_row.tuples is None
    assert by_row.labels.tolist() == [[2, -1, 0, 3][place[row]] for row in _rows(texts)]
    schema = engine.schema(tuples)
    released = [collect_rows(engine, engine.apply(tuples, recoding, schema)) for recoding in (by_tuple, by_row)]
    assert released[0].equals(released[1])
    assert 0 < len(released[0]) < 6


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


# apply


def test_a_recoding_keeps_drops_and_replaces(engine: DuckDB, tmp_path: Path) -> None:
    frame = engine.read(text(tmp_path, "t.csv", "id,n,d,keep\n1,5,31.12.2024,x\n2,7,01.01.2024,\n3,9,02.01.2024,z\n"))
    values = {"n": Replace(pa.array([6, None])), "d": Replace(pa.array([date(2024, 7, 1), None]))}
    recoding = Recoding(np.array([0, 0, -1], np.int32), {"id": Drop(), **values, "keep": Keep()})
    released = engine.apply(frame, recoding, engine.schema(frame))
    assert released.names == ("n", "d", "keep")
    assert [tuple(row.values()) for row in collect_rows(engine, released).to_pylist()] == [
        ("6", "01.07.2024", "x"),
        ("6", "01.07.2024", None),
    ]


def test_values_go_back_into_the_type_of_their_column(engine: DuckDB) -> None:
    table = pa.table(
        {
            "i8": pa.array([1, 2], pa.int8()),
            "f32": pa.array([1.5, 2.5], pa.float32()),
            "when": pa.array([datetime(2024, 1, 1), datetime(2024, 1, 3)], pa.timestamp("ms")),
            "flag": [True, False],
        }
    )
    frame = engine.read(table)
    values = {
        "i8": Replace(pa.array([7])),
        "f32": Replace(pa.array([2.25])),
        "when": Replace(pa.array([date(2024, 1, 2)])),
        "flag": Replace(pa.array(["true"])),
    }
    released = collect_rows(engine, engine.apply(frame, Recoding(np.zeros(2, np.int32), values), engine.schema(frame)))
    assert released.to_pylist() == [{"i8": 7, "f32": 2.25, "when": datetime(2024, 1, 2), "flag": True}] * 2
    assert released.schema.field("i8").type == pa.int8()


def test_a_value_that_does_not_fit_its_type_is_an_error_without_the_value(engine: DuckDB) -> None:
    frame = engine.read(pa.table({"i8": pa.array([1, 2], pa.int8())}))
    recoding = Recoding(np.zeros(2, np.int32), {"i8": Replace(pa.array([123456]))})
    with pytest.raises(DataError) as caught:
        engine.apply(frame, recoding, engine.schema(frame))
    assert "123456" not in str(caught.value)
    assert caught.value.__suppress_context__


# write


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"], ids=repr)
def test_awkward_values_come_back_from_a_file(engine: DuckDB, tmp_path: Path, mark: str) -> None:
    source = tmp_path / "source.csv"
    lines = ['"' + value.replace('"', '""') + f'"{mark}{i}' for i, value in enumerate(AWKWARD)]
    source.write_bytes(("\n".join([f"v{mark}i", *lines]) + "\n").encode())
    frame = engine.read(source)
    engine.write(frame, tmp_path / "t.csv", engine.schema(frame), ordered=False)
    again = engine.read(tmp_path / "t.csv")
    assert again.form.separator == frame.form.separator == mark
    assert collect_rows(engine, again).column("v").to_pylist() == AWKWARD


def test_a_single_column_comes_back_whatever_the_separator_was(engine: DuckDB, tmp_path: Path) -> None:
    frame = engine.read(text(tmp_path, "t.csv", "id;age\n1;x\n2;y\n3;\n"))
    recoding = Recoding(np.array([0, 1, 1], np.int32), {"id": Drop(), "age": Replace(pa.array(["[1, 3]", None]))})
    released = engine.apply(frame, recoding, engine.schema(frame))
    engine.write(released, tmp_path / "r.csv", engine.schema(frame), ordered=False)
    assert collect_rows(engine, engine.read(tmp_path / "r.csv")).column("age").to_pylist() == ["[1, 3]", None, None]


def test_rows_are_sorted_by_their_values_when_asked(engine: DuckDB, tmp_path: Path) -> None:
    frame = engine.read(pa.table({"a": ["b", "a", None, "a"], "n": [1, 10, 3, 9]}))
    engine.write(frame, tmp_path / "t.csv", engine.schema(frame), ordered=True)
    assert (tmp_path / "t.csv").read_text() == "a,n\na,9\na,10\nb,1\n,3\n"


def test_parquet_gets_the_types_that_text_has(engine: DuckDB, tmp_path: Path) -> None:
    frame = engine.read(
        text(tmp_path, "t.csv", "i,x,d,t,z\n1,1.5,31.12.2024,2024-01-01 10:00:00,02138\n2,2,01.01.2024,,x\n")
    )
    engine.write(frame, tmp_path / "t.parquet", engine.schema(frame), ordered=False)
    types = [str(field.type) for field in parquet.read_schema(tmp_path / "t.parquet")]
    assert types == ["int64", "double", "date32[day]", "timestamp[us]", "string"]
    assert parquet.read_table(tmp_path / "t.parquet").column("d").to_pylist() == [date(2024, 12, 31), date(2024, 1, 1)]


def test_a_folder_that_is_not_there_cannot_be_written(engine: DuckDB, tmp_path: Path) -> None:
    frame = engine.read(pa.table({"a": [1]}))
    with pytest.raises(PolicyError, match="cannot write"):
        engine.write(frame, tmp_path / "no" / "t.csv", engine.schema(frame), ordered=False)


# the engine itself


def test_temporary_files_are_private_and_go_with_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = text(tmp_path, "t.csv", "a,b\nZoë,1\n".encode("cp1252"))
    engine = DuckDB()
    engine.read(source)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert folder.stat().st_mode & 0o077 == 0
    engine.close()
    assert not folder.exists()


def test_an_engine_that_nobody_holds_cleans_up_after_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = DuckDB()
    assert len(list(tmp_path.iterdir())) == 1
    del engine
    assert list(tmp_path.iterdir()) == []


def test_two_zeros_are_told_apart_by_their_texts_as_any_keys_are(engine: DuckDB) -> None:
    zeros = pa.table({"x": [0.0, -0.0, 0.0, float("nan"), -float("nan"), None], "v": [1, 1, 2, 2, 2, 3]})
    frame = engine.read(zeros)
    tally, found = engine.tally(frame, ["x"], {"v": OrderedReading("number")}), engine.tally(frame, ["x"], {}).tuples
    texts = engine.collect(frame, {"x": None}).column(0).to_pylist()
    assert dict(zip(tally.keys["x"], tally.sizes.tolist(), strict=True)) == Counter(texts)
    assert Counter(texts) == {"0.0": 2, "-0.0": 1, "nan": 2, None: 1}  # what is not a number has no sign
    assert engine.collect(found, {"x": None}).column(0).to_pylist() == tally.keys["x"].tolist()
    held = [sorted(tally.spreads["v"].count[tally.spreads["v"].group == g].tolist()) for g in range(len(tally))]
    assert sum(map(sum, held)) == 6
    assert [sum(counts) for counts in held] == tally.sizes.tolist()


def test_the_schema_after_a_recoding_is_that_of_its_rows(engine: DuckDB) -> None:
    rows = pa.table({"n": [1.25, 2.5, 3.0, 4.0], "t": ["=1", "b", "=2", None], "d": [1, 2, 3, 4]})
    frame = engine.read(rows)
    values = Replace(pa.array([1.5, 3.5]))
    labels = Replace(pa.array(["low", "=high"]), as_stored=False)
    recoding = Recoding(np.array([0, 0, 1, -1], np.int32), {"n": values, "t": Keep(), "d": labels})
    found = engine.schema(engine.apply(frame, recoding, engine.schema(frame)))
    asked = engine.schema(engine.read(collect_rows(engine, engine.apply(frame, recoding, engine.schema(frame)))))
    for mine, theirs in zip(found, asked, strict=True):
        told = ("name", "storage", "rows", "decimals", "formulas", "date_format", "distinct")
        assert [getattr(mine, key) for key in told] == [getattr(theirs, key) for key in told]


def test_columns_of_nothing_are_described(engine: DuckDB) -> None:
    nothing = {"x": pa.nulls(3, pa.float64()), "t": pa.nulls(3, pa.string()), "f": pa.nulls(3, pa.float32())}
    schema = engine.schema(engine.read(pa.table({**nothing, "a": [1, 2, 3]})))
    assert [(schema[name].nulls, schema[name].distinct) for name in nothing] == [(3, 0)] * 3


def test_the_seam_has_at_most_14_verbs_and_the_engine_has_no_others() -> None:
    verbs = {name for name in vars(Engine) if not name.startswith("_")}
    assert len(verbs) <= 14
    assert {name for name in vars(DuckDB) if not name.startswith("_")} - verbs - {*Engine.__annotations__} == {
        "database",
        "remember_schema",
    }

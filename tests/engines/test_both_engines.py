"""One suite, both engines: what the verbs say of awkward tables, and the releases that come of them.

Spark is asked twice over: once as it is, where a short table is tallied by all its columns at once, and once as if no
table were short, so that every tally is grouped there.
"""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import kinfold
from kinfold.errors import DataError
from kinfold.methods.blocks.pool import NO_CHECKPOINTS
from kinfold.policy.model import Policy
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.engine import NumericPair
from kinfold.tables.queries import (
    collect_rows,
    count_equal_rows,
    count_unique_rows,
    count_value_pairs,
    label_rows,
    read_page,
    sum_squared_errors,
)
from kinfold.tables.recoding import Drop, Keep, Recoding, Replace
from kinfold.tables.regions import Labelling, RegionAndSeam, ValueCodes
from kinfold.tables.resources import Resources
from kinfold.tables.schema import AS_TEXT, OrderedReading
from kinfold.tables.source_form import ReleasedForm, SourceForm

ENGINES = ("duckdb", "spark", "spark, grouped there")
MISSING = ("",)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "duckdb":
        with DuckDB() as found:
            yield found
        return
    spark = request.getfixturevalue("spark")
    from kinfold.tables.spark import engine as spark_engine
    from kinfold.tables.spark.engine import Spark

    if request.param != "spark":
        monkeypatch.setattr(spark_engine, "MAX_ROWS_TALLIED_WHOLE", 0)
    with Spark(spark, Resources()) as found:
        yield found


either = pytest.mark.parametrize("engine", ENGINES[:2], indirect=True)  # Spark starts many jobs where all is grouped


def _repeat(values: list[Any], times: int) -> list[Any]:
    return [value for value in values for _ in range(times)]


DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), None, dt.date(9999, 12, 31)]
MOMENTS = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1), None, dt.datetime(1960, 5, 5, 23, 59), None]
TABLES = {
    "nulls": {"a": [None, "x", None, "x", "", " "], "b": pa.array([1, None, None, 1, 2, None], pa.int32())},
    "nothing but nulls": {"a": pa.array([None] * 4, pa.string()), "b": pa.array([None] * 4, pa.float64())},
    "ties": {"a": _repeat([3, 1, 2], 5), "b": _repeat([0.5], 15)},
    "unicode": {"a": ["ä", "a\u0308", "😀", "ß", "İ", "ä"], "b": ["'x", '"y"', "a,b", "a\nb", "\u00a0", "NULL"]},
    "dates": {"a": DAYS, "b": MOMENTS},
    "decimals": {
        "a": [Decimal("0.10"), Decimal("-1.25"), None, Decimal("99999999999999.99")],
        "b": pa.array([Decimal("1e-9"), None, Decimal("0"), Decimal("2")], pa.decimal128(38, 9)),
    },
    "floats": {
        "a": [0.0, -0.0, 0.1, 1e16, 1e-7, float("nan"), float("inf"), None],
        "b": pa.array([0.1, 0.2, 0.1, 3.0, None, -0.0, 0.0, 1.5], pa.float32()),
    },
    "integers": {
        "a": pa.array([0, 2**64 - 1, None], pa.uint64()),
        "b": pa.array([-128, 127, None], pa.int8()),
    },
    "truths": {"a": [True, False, None, True], "b": ["t", "t", None, "t"]},
    "all equal": {"a": ["x"] * 50, "b": [7] * 50},
    "one giant class": {"a": ["x"] * 97 + ["y", "z", None], "b": [*range(97), 0, 0, 0]},
    "one row": {"a": ["x"], "b": [1]},
}  # fmt: skip


def all_values() -> pa.Table:
    """Every kind of value, each column over and over to the same length."""
    every = {f"{name}, {column}": pa.array(values) for name in TABLES for column, values in TABLES[name].items()}
    return pa.table({name: values.take(pa.array(np.arange(30) % len(values))) for name, values in every.items()})


@pytest.mark.parametrize("engine", ENGINES[::2], indirect=True)
def test_every_kind_of_value_is_described_and_counted_alike(engine: Any) -> None:
    table = all_values()
    with DuckDB() as plain:
        ours, theirs = (each.read(table, MISSING) for each in (engine, plain))
        assert engine.schema(ours) == plain.schema(theirs)
        assert ours.blanked == theirs.blanked
        found, wanted = collect_rows(engine, ours), collect_rows(plain, theirs)
        assert found.schema == wanted.schema
        assert [column.to_string() for column in found.columns] == [column.to_string() for column in wanted.columns]
        for name in table.column_names:
            _same_tally(engine.tally(ours, [name], {}), plain.tally(theirs, [name], {}))


@pytest.mark.slow
@either
@pytest.mark.parametrize("name", ["nothing but nulls", "ties", "all equal", "one giant class", "one row"])
def test_the_verbs_say_the_same(engine: Any, name: str) -> None:
    table = pa.table(TABLES[name])
    with DuckDB() as plain:
        ours, theirs = (each.read(table, MISSING) for each in (engine, plain))
        assert engine.schema(ours) == plain.schema(theirs)
        assert ours.names == theirs.names
        columns = list(plain.schema(theirs))
        assert engine.profile(ours, columns) == plain.profile(theirs, columns)
        for by in ((), ("a",), ("b",), ("b", "a")):
            _same_tally(engine.tally(ours, by, {"b": AS_TEXT}), plain.tally(theirs, by, {"b": AS_TEXT}))
            assert engine.count_classes(ours, by) == plain.count_classes(theirs, by)
        assert count_unique_rows(engine, ours, ["a"]) == count_unique_rows(plain, theirs, ["a"])
        assert count_value_pairs(engine, ours, "a", "b") == count_value_pairs(plain, theirs, "a", "b")
        assert read_page(engine, ours, 1, 2) == read_page(plain, theirs, 1, 2)


def _same_tally(one: Any, other: Any) -> None:
    assert one.sizes.tolist() == other.sizes.tolist()
    assert [(name, list(values)) for name, values in one.keys.items()] == [
        (name, list(values)) for name, values in other.keys.items()
    ]
    for name, spread in other.spreads.items():
        for part in ("group", "code", "count"):
            assert getattr(one.spreads[name], part).tolist() == getattr(spread, part).tolist()


def test_a_tally_is_what_python_counts(engine: Any) -> None:
    random = np.random.default_rng(5)
    values = random.choice(np.array(["x", "y", None], object), 200)
    held = random.integers(0, 3, 200)
    frame = engine.read(pa.table({"a": values, "b": held}), MISSING)
    tally = engine.tally(frame, ["a"], {"b": OrderedReading("number")})
    wanted = Counter(values.tolist())
    assert dict(zip(tally.keys["a"], tally.sizes.tolist(), strict=True)) == wanted
    cells = Counter(zip(values.tolist(), held.tolist(), strict=True))
    spread = tally.spreads["b"]
    found = zip(tally.keys["a"][spread.group], spread.values[spread.code].tolist(), spread.count.tolist(), strict=True)
    assert {(key, int(value)): count for key, value, count in found} == cells


@either
def test_equal_numbers_are_one_category(engine: Any) -> None:
    table = {"x": [0.0, -0.0, 1.0, None], "y": ["1", "1.0", "01", "1e0"], "z": ["a", "-0", "0", "0.00"]}
    frame = engine.read(pa.table(table))
    spreads = engine.tally(frame, [], dict.fromkeys(table, AS_TEXT)).spreads
    assert [sorted(spreads[name].count.tolist()) for name in table] == [[1, 1, 2], [1, 3], [1, 3]]
    held = engine.collect(frame, dict.fromkeys(table, AS_TEXT))
    assert [len({*column.to_pylist()}) for column in held.columns] == [3, 2, 2]


@either
def test_a_recoding_by_place_and_by_tuple_are_one(engine: Any) -> None:
    table = pa.table(
        {"a": ["x", "y", None, "x", "z"], "b": [1.5, -0.0, 0.0, 1.5, None], "c": ["=1", "p", "q", None, "r"]}
    )
    frame = engine.read(table, MISSING)
    schema = engine.schema(frame)
    tuples = engine.tally(frame, ["a", "b"], {}).tuples
    keys = engine.collect(tuples, {"a": None, "b": None}).to_pylist()
    label = {(row["a"], row["b"]): i % 3 - 1 for i, row in enumerate(keys)}
    rows = engine.collect(frame, {"a": None, "b": None}).to_pylist()
    columns = {"a": Replace(pa.array(["one", "two"]), as_stored=False), "b": Drop(), "c": Keep()}
    by_tuple = Recoding(np.array([label[row["a"], row["b"]] for row in keys], np.int32), columns, tuples)
    by_place = Recoding(np.array([label[row["a"], row["b"]] for row in rows], np.int32), columns)
    assert label_rows(engine, frame, by_tuple).labels.tolist() == by_place.labels.tolist()
    one, other = (engine.apply(frame, each, schema) for each in (by_tuple, by_place))
    found = collect_rows(engine, one)
    assert found.equals(collect_rows(engine, other))
    kept = [place for place, each in enumerate(by_place.labels) if each >= 0]
    assert found.column("a").to_pylist() == [["one", "two"][by_place.labels[place]] for place in kept]
    texts = [table.column("c")[place].as_py() for place in kept]
    assert found.column("c").to_pylist() == texts
    assert engine.schema(one) == engine.schema(other)


@either
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_formulas_are_quoted_in_a_file_and_read_back(engine: Any, form: str, tmp_path: Path) -> None:
    table, file = pa.table({"a": ["=1", "'=1", "'", "-5", None, "'-x", "'-5"]}), tmp_path / f"t.{form}"
    frame = engine.read(table, MISSING)
    engine.write(frame, file, engine.schema(frame), ordered=False, quoted=True)
    written = ["'=1", "''=1", "'", "-5", None, "''-x", "'-5"]
    assert collect_rows(engine, engine.read(file)).column("a").to_pylist() == written
    back = engine.read(file, form=ReleasedForm(separator=",", quoted=True))
    assert collect_rows(engine, back).column("a").to_pylist() == table.column("a").to_pylist()
    assert back.formulas == (("a", 0),)
    assert engine.read(table, form=ReleasedForm(quoted=True)).formulas == (("a", 1),)


def people(records: int = 400, seed: int = 3) -> pa.Table:
    random = np.random.default_rng(seed)
    born = np.datetime64("1950-01-01") + random.integers(0, 15_000, records)
    area = random.choice(np.array(["10115", "10117", "20095", "Zürich", None], object), records)
    return pa.table(
        {
            "name": [f"person {i}" for i in range(records)],
            "age": random.integers(18, 90, records),
            "born": pa.array(born.astype("datetime64[D]")),
            "area": area,
            "pay": [Decimal(int(v)) / 4 for v in random.integers(0, 40, records)],
            "disease": random.choice(np.array(["flu", "cold", "none", None], object), records, p=[0.5, 0.3, 0.1, 0.1]),
            "note": random.choice(["=1+1", "fine", "n/a"], records),
        }
    )


def policy(method: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "privacy": {"k": 8},
        "method": {"name": method, "suppression": 0.1, "refine": 0},
        "output": {"spreadsheet_safe": True},
        "source": {"na": ["n/a"]},
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 20, 80]}, "top": 85, "type": "continuous"},
            "area": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 6}},
            "born": {"role": "other"},
            "pay": {"role": "confidential", "type": "continuous"},
            "disease": {"role": "confidential", "type": "nominal"},
            "note": {"role": "other"},
        },
    }
    for section, values in more.items():
        found[section] = {**found.get(section, {}), **values}
    return found


def released(source: Any, asked: dict[str, Any], **engine: str) -> Any:
    return kinfold.anonymize(source, {**asked, "engine": {**asked.get("engine", {}), **engine}})


def assert_same(one: Any, other: Any) -> None:
    assert one.verdict.to_dict() == other.verdict.to_dict()
    assert one.measures.to_dict() == other.measures.to_dict()
    assert one.plan.notes == other.plan.notes
    assert one.labels.tolist() == other.labels.tolist()


@pytest.mark.parametrize(
    "method",
    [
        *("datafly", "mingen-cell", "local-suppression"),  # whole columns, cells, and cells left empty
        *(
            pytest.param(name, marks=[pytest.mark.long, pytest.mark.trust("products")])
            for name in ("mu-argus", "mingen")
        ),
    ],
)
def test_generalization_recodes_alike(spark: Any, method: str) -> None:
    asked = policy(method)
    asked = {key: value for key, value in asked.items() if key not in ("output", "source")}
    asked["columns"]["age"].pop("top")
    if method in ("mingen-cell", "local-suppression"):
        asked["method"].pop("suppression")
    one, other = (released(people(200), asked, name=name) for name in ("duckdb", "spark"))
    assert_same(one, other)
    assert one.frame.equals(other.frame)


MODELS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "whole table": (
        {
            "average_risk": 0.05,
            "risk_share": {"above": 0.1, "most": 0.5},
            "beta": 8.0,
            "beta_kind": "enhanced",
            "delta": 6.0,
        }
        | {"population": {"size": 4000, "k": 20, "alpha": 0.05}},
        {"average_risk", "risk_share", "beta", "delta", "estimated_kmap"},
    ),
    "parts": (
        {"combinations": {"size": 1, "confidence": 0.9}, "population": {"size": 4000, "uniques": 0.5}},
        {"combinations", "confidence", "uniques"},
    ),
    "people": ({"population": {"k": 12, "presence": [0.0, 0.6]}}, {"kmap", "presence"}),
    "weights": ({"individual_risk": 0.1, "weighted": True, "l": 2}, {"individual_risk", "l"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_kept_alike(spark: Any, name: str, tmp_path: Path) -> None:
    promised, models = MODELS[name]
    table = people(200)
    asked = policy("mdav" if name == "weights" else "lattice", privacy={"k": 4, **promised})
    if name == "people":
        parquet.write_table(pa.concat_tables([table, table]), tmp_path / "people.parquet")
        asked["privacy"]["population"]["table"] = str(tmp_path / "people.parquet")
    if name == "weights":
        table = table.append_column("many", pa.array([2.5] * 200))
        asked["columns"]["many"] = {"role": "weight"}
    asked["columns"]["pay"] = {"role": "other"}
    asked["columns"]["age"] = (
        {**asked["columns"]["age"], "average": "generalize"} if name != "weights" else asked["columns"]["age"]
    )
    one, other = (released(table, asked, name=engine) for engine in ("duckdb", "spark"))
    assert_same(one, other)
    assert {each.model for each in (*one.verdict.findings, *one.verdict.statements, *one.verdict.people)} >= models
    other.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).holds


def test_columns_are_perturbed_alike(spark: Any) -> None:
    columns: dict[str, Any] = {
        "age": {"role": "key"},
        "pay": {"role": "confidential", "type": "continuous", "perturb": {"rank_swap": 20}},
        "disease": {"role": "confidential", "type": "nominal", "perturb": {"pram": 0.6}},
        "born": {"role": "other", "perturb": {"noise": 0.2}},
    }
    asked = {"privacy": {"k": 4}, "method": {"name": "mdav", "seed": 3}, "output": {"others": "drop"}}
    one, other = (released(people(200), {**asked, "columns": columns}, name=name) for name in ("duckdb", "spark"))
    assert_same(one, other)
    assert one.frame.equals(other.frame)


@pytest.mark.parametrize("method", ["lattice", "mdav"])
def test_exact_values_are_generalized_alike(spark: Any, method: str) -> None:
    fine = [Decimal("19.99999999999999999999"), Decimal("19.99999999999999999998"), Decimal(20), Decimal("20.5")]
    moments = [1577836799700000, 1577836799700001, 1577833200000000, -1]
    table = pa.table(
        {
            "paid": pa.array(fine, pa.decimal128(38, 20)),
            "number": [2**53 + 1, 2**53, 2**53 + 3, 2**53 + 2],
            "at": pa.array(moments, pa.timestamp("us")),
            "here": pa.array(moments, pa.timestamp("us", "Europe/Berlin")),
        }
    )
    spec: dict[str, Any] = {"paid": {"intervals": [5, 100]}, "number": {"intervals": [2, 10]}}
    spec |= {name: {"dates": ["year", "decade"]} for name in ("at", "here")}
    columns = {name: {"role": "key", "average": "generalize", "hierarchy": each} for name, each in spec.items()}
    if method == "mdav":
        columns = {name: {"role": "key", "average": "generalize"} for name in spec}
    asked = {"privacy": {"k": 2}, "method": {"name": method}, "columns": columns}
    one, other = (released(table, asked, name=name) for name in ("duckdb", "spark"))
    assert_same(one, other)
    assert one.frame.equals(other.frame)
    assert "'here': dates and times are those of Europe/Berlin" in other.plan.public_notes
    if method == "mdav":
        assert other.frame["at"].to_pylist()[0].startswith("[2019-12-31 23:59:59.7, ")


def test_the_whole_way_is_the_same_byte_for_byte(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kinfold.tables.spark import engine as spark_engine
    from sparks import watch_driver  # functions of this file travel to executors, which do not have it

    monkeypatch.setattr(spark_engine, "MAX_ROWS_TALLIED_WHOLE", 0)
    monkeypatch.setattr(
        "kinfold.measures.release_warnings.MAX_RELATED_COLUMNS", 0
    )  # rules between columns read a bounded sample
    brought = watch_driver(monkeypatch)
    one, other = (released(people(), policy("lattice"), name=name) for name in ("duckdb", "spark"))
    assert_same(one, other)
    born = people().column("born")[7].as_py()  # a column that is kept: of it only its distinct values come
    assert {each.columns for each in brought if each.holds(born)} == {("k0", "count")}
    one.save(tmp_path / "duckdb")
    other.save(tmp_path / "spark")
    files = [(tmp_path / name / "public" / "release.csv").read_bytes() for name in ("duckdb", "spark")]
    assert files[0] == files[1]


def parts(folder: Path, table: pa.Table, sizes: list[int]) -> Path:
    folder.mkdir()
    start = 0
    for number, size in enumerate(sizes):
        parquet.write_table(table.slice(start, size), folder / f"part-{number:02}[{number}].parquet")
        start += size
    (folder / "_SUCCESS").touch()
    return folder


IN_ORDER = (  # by names of folders, then of files, code point by code point: not by the text of the whole path
    *("#+/e\u0301", "#+/\u00e9", "10/a", "2024/b", "2024-01/a", "9/a", "B/a", "a/a", "a b/%20", "v1/a", "v1.1/a"),
    *("x=1/[0]?*", "{a,b}/\\"),
)


@either
def test_parts_of_any_name_are_read_in_one_order(engine: Any, tmp_path: Path) -> None:
    """Nothing out of folder names, an empty part, what a cluster left behind, and `..` after a link to elsewhere."""
    data = tmp_path / "real" / "a=1 x"
    for at, name in enumerate((*reversed(IN_ORDER), "_temporary/a")):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        rows = pa.table({"part": [name] * at, "row": pa.array(range(at), pa.int32())})
        parquet.write_table(rows.cast(pa.schema({"part": pa.string(), "row": pa.int32()})), data / f"{name}.parquet")
    (tmp_path / "link").symlink_to(data)
    pattern, form = tmp_path / "link" / ".." / "a=1 x" / "*" / "*.parquet", SourceForm(parts=True)
    with DuckDB() as plain:
        ours, theirs = engine.read(pattern, MISSING, form), plain.read(pattern, MISSING, form)
        found = collect_rows(engine, ours)
        assert found.equals(collect_rows(plain, theirs))
        assert ours.checksum == theirs.checksum
        assert engine.schema(ours) == plain.schema(theirs)
    counts = [len(IN_ORDER) - 1 - at for at in range(len(IN_ORDER))]
    assert found.column("part").to_pylist() == [n for n, c in zip(IN_ORDER, counts, strict=True) for _ in range(c)]
    assert found.column("row").to_pylist() == [row for many in counts for row in range(many)]


@either
@pytest.mark.parametrize("name", [b"part-\xff.parquet", b"\xff/part.parquet"])
def test_a_path_that_is_not_utf_8_is_refused(engine: Any, name: bytes, tmp_path: Path) -> None:
    part = Path(os.fsdecode(bytes(tmp_path) + b"/" + name))
    part.parent.mkdir(exist_ok=True)
    part.write_bytes(b"")
    for path, form in ((part, SourceForm()), (part.parent, SourceForm(parts=True))):
        with pytest.raises(DataError, match=r"\\xff.* is not in UTF-8"):
            engine.read(path, MISSING, form)


@pytest.mark.parametrize("engine", ENGINES[1:2], indirect=True)
def test_rows_that_spark_does_not_read_are_missed(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kinfold.tables.spark import reading

    folder, real = parts(tmp_path / "parts", pa.table({"a": range(5)}), [3, 2]), reading._make_spark_path
    monkeypatch.setattr(reading, "_make_spark_path", lambda part: real(part).replace("/part-", "/../parts/part-"))
    with pytest.raises(DataError, match=r"Spark reads 0 of the 5 rows of 'parts'"):
        engine.read(folder, MISSING, SourceForm(parts=True))


@pytest.mark.parametrize("engine", ENGINES[1:2], indirect=True)
@pytest.mark.parametrize("name", ["_hidden", ".hidden", "a:b"])
def test_a_file_that_spark_does_not_find_by_its_name_is_read(engine: Any, name: str, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    parquet.write_table(table, tmp_path / f"{name}.parquet")
    parquet.write_table(table, tmp_path / "b.parquet")
    frame = engine.read(tmp_path / f"{name}.parquet", MISSING)
    assert collect_rows(engine, frame).to_pydict() == table.to_pydict()


TICKS = pa.array([0, 1, None, 86_399_999_999_999], pa.int64())
UNKNOWN_TO_SPARK = {
    "time, ms": pa.array([0, 1, None, 86_399_999], pa.int32()).cast(pa.time32("ms")),
    "time, us": pa.array([0, 1, None, 86_399_999_999], pa.int64()).cast(pa.time64("us")),
    "time, ns": TICKS.cast(pa.time64("ns")),
    "ns": TICKS.cast(pa.timestamp("ns")),
    "ns of a zone": TICKS.cast(pa.timestamp("ns", "UTC")),
    "us of a zone": pa.array([0, 1_000, None, 2_000]).cast(pa.timestamp("ns", "UTC")),
    "codes": pa.array([bytes(16), b"a" * 16, None, b"a" * 16], pa.uuid()),
    "json": pa.array(['"a"', "1", None, "true"], pa.json_()),
    "half": pa.array(np.array([0.5, -0.0, np.nan, 65_504], np.float16)),
    "nothing": pa.nulls(4),
    "known": pa.array([1, 2, None, 2**64 - 1], pa.uint64()),
}


@pytest.mark.parametrize("engine", ENGINES[1:2], indirect=True)
def test_parquet_that_spark_has_no_types_for_is_read_alike(engine: Any, tmp_path: Path) -> None:
    folder, old = parts(tmp_path / "parts", pa.table(UNKNOWN_TO_SPARK), [4]), tmp_path / "old.parquet"
    parquet.write_table(pa.table(UNKNOWN_TO_SPARK), folder / "part-99.parquet")
    parquet.write_table(pa.table({"at": UNKNOWN_TO_SPARK["ns"]}), old, use_deprecated_int96_timestamps=True)
    with DuckDB() as plain:
        for source, form in ((folder, SourceForm(parts=True)), (old, SourceForm())):
            ours, theirs = (each.read(source, MISSING, form) for each in (engine, plain))
            found, wanted = collect_rows(engine, ours), collect_rows(plain, theirs)
            assert found.schema == wanted.schema
            assert [column.to_string() for column in found.columns] == [each.to_string() for each in wanted.columns]
            assert engine.schema(ours) == plain.schema(theirs)


def spoil(folder: Path, how: str) -> None:
    """Write a part that does not belong to the others."""
    last = folder / "part-99.parquet"
    if how in ("other columns", "other types"):
        table = {"a": [1], "z": [2]} if how == "other columns" else {"a": ["1"], "b": [2]}
        parquet.write_table(pa.table(table), last)
        return
    if how == "damaged, with a type that Spark does not know":
        for part in folder.glob("part-*"):
            table = parquet.read_table(part)
            times = pa.array(range(table.num_rows), pa.int64()).cast(pa.time64("us"))
            parquet.write_table(table.append_column("time", times), part)
    whole = (folder / "part-00[0].parquet").read_bytes()
    last.write_bytes(whole[: len(whole) // 2] if how == "cut off" else whole[:4] + bytes(196) + whole[200:])


BAD_PARTS = ["other columns", "other types", "cut off", "damaged", "damaged, with a type that Spark does not know"]


@either
@pytest.mark.parametrize("how", BAD_PARTS)
def test_bad_parts_are_refused(engine: Any, how: str, tmp_path: Path) -> None:
    folder = parts(tmp_path / "parts", pa.table({"a": range(900), "b": [7] * 900}), [500, 400])
    spoil(folder, how)
    with pytest.raises(DataError) as raised:
        collect_rows(engine, engine.read(folder, MISSING, SourceForm(parts=True)))
    assert "'part-99.parquet'" in str(raised.value)


@either
def test_a_folder_is_no_table_unless_the_policy_says_so(engine: Any, tmp_path: Path) -> None:
    folder = parts(tmp_path / "parts", pa.table({"a": [1], "b": [7]}), [1])
    with pytest.raises(DataError, match="folder"):
        engine.read(folder, MISSING)


@either
def test_a_csv_file_is_read_as_it_is_written(engine: Any, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("zip;pay;day\n02138;1.234,5;31.12.2024\n;7,25;01.01.2025\n02139;n/a;02.03.2024\n", encoding="utf-8")
    form = SourceForm(decimal=",", thousands=".", na=("n/a",), dates=("%d.%m.%Y",))
    with DuckDB() as plain:
        ours, theirs = engine.read(file, MISSING, form), plain.read(file, MISSING, form)
        assert engine.schema(ours) == plain.schema(theirs)
        assert ours.form == theirs.form
        assert collect_rows(engine, ours, engine.schema(ours)).equals(collect_rows(plain, theirs, plain.schema(theirs)))
        assert ours.checksum == theirs.checksum


@pytest.mark.parametrize("engine", ENGINES[::2], indirect=True)
def test_some_rows_and_what_the_others_are_like(engine: Any) -> None:
    """Rows are picked by their places, before and after a recoding; others like them are counted, errors summed."""
    table = pa.table({"a": [1.0, 2.0, 2.0, 4.0, None, 2.0], "b": ["x", "y", "y", None, None, "y"]})
    frame = engine.read(table, MISSING)
    labels = np.array([0, 0, 1, 1, -1, 1], np.int32)
    recoding = Recoding(labels, {"a": Replace(pa.array([1.5, None])), "b": Keep()})
    schema = engine.schema(frame)
    released = engine.apply(frame, recoding, schema)
    places = np.array([1, 3, 4, 5])
    some, there = engine.take(frame, places)
    assert collect_rows(engine, some).to_pydict() == table.take(places).to_pydict()
    assert there.tolist() == [0, 1, 2, 3]
    assert count_equal_rows(engine, frame, ["a", "b"], some).tolist() == [3, 1, 1, 3]
    some, there = engine.take(released, places, recoding)
    assert collect_rows(engine, some).to_pydict() == {"a": [1.5, None, None], "b": ["y", None, "y"]}
    assert there.tolist() == [0, 1, 3]
    assert count_equal_rows(engine, released, ["a"], some).tolist() == [2, 3, 3]
    columns = [NumericPair(schema["a"], engine.schema(released)["a"], 2.0)]
    assert sum_squared_errors(engine, frame, released, columns, recoding) == [0.25 + 0.25 + 0 + 4 + 0]


@pytest.mark.parametrize("engine", ENGINES[::2], indirect=True)
def test_rows_find_their_regions_and_come_together_there(engine: Any) -> None:
    """Odd codes and even ones apart, missing numbers in none; the first class of a region goes on to a seam."""
    table = pa.table({"a": [0.5, 1.5, None, 3.5, 4.5, 5.5, 6.5], "b": ["x", "y", "x", "y", "x", "x", "y"]})
    frame = engine.read(table, MISSING)
    values = engine.tally(frame, ["b"], {}).tuples
    codes = np.array([int(text == "y") for text in collect_rows(engine, values).column("b").to_pylist()])
    found = engine.regions(frame, [engine.schema(frame)["a"], ValueCodes("b", values, codes)], odd_and_even)
    assert found.counts() == {10: 3, 11: 3}
    assert found.count_codes(1) == {0: 3, 1: 3}
    made = found.label({10: 1, 11: 0}, RegionAndSeam(first_goes_on, in_pairs), lambda *_: None, NO_CHECKPOINTS)
    recoding = label_rows(engine, frame, Recoding(made.labels, {}, engine_labels=made.held))
    assert made.summaries == [b"1.5 3.5 6.5", b"0.5 4.5 5.5", b"seam 0 1"]
    assert recoding.labels.tolist() == [2, 2, -1, 0, 1, 1, 0]


def odd_and_even(rows: pa.Table) -> Any:
    return np.where(np.isnan(rows.column("v0").to_numpy(zero_copy_only=False)), -1, 10 + rows.column("v1").to_numpy())


def first_goes_on(rows: pa.Table, _: Any) -> Labelling:
    seam = np.full(rows.num_rows, -1)
    seam[0] = 7
    labels = (seam > 0).astype(np.int32)  # of two classes the one that goes on has the last number
    return Labelling(labels, 1, " ".join(map(str, rows.column("v0").to_pylist())).encode(), seam)


def in_pairs(rows: pa.Table, _: Any) -> Labelling:
    told = f"seam {' '.join(map(str, sorted(rows.column('number').to_pylist())))}"
    assert rows.column("label").to_pylist() == [1, 1]
    return Labelling(np.zeros(2, np.int32), 1, told.encode(), np.full(2, -1))


FORMS = {
    "amount": (
        ["$1,254.50", "12", "1,000 EUR", "-9", "-$3", "999", "k.A. "],
        {"na": [-9, "999.0", "k.A."], "unit": ["$", "EUR"]},
    ),
    "age": ([30, -9, 41, 99, None, 5, 6], {"na": [-9, 99]}),
    "rate": ([0.5, -9.0, 41.0, 99.5, None, 5.0, 6.0], {"na": ["-9"]}),
}


@pytest.mark.parametrize("kind", ["parquet", "frame"])
def test_codes_and_units_of_a_column_are_read_the_same(engine: Any, tmp_path: Path, kind: str) -> None:
    table = pa.table({name: values for name, (values, _) in FORMS.items()})
    parquet.write_table(table, tmp_path / "t.parquet")
    columns = {name: {"role": "other", **keys} for name, (_, keys) in FORMS.items()}
    form = Policy.parse({"privacy": {"k": 2}, "source": {"thousands": ","}, "columns": columns}).form
    frame = engine.read(tmp_path / "t.parquet" if kind == "parquet" else table, MISSING, form)
    found = collect_rows(engine, frame).to_pydict()
    for name, (values, keys) in FORMS.items():
        expected = [_read_plainly(value, keys) for value in values]
        assert [None if v is None else Decimal(str(v)) for v in found[name]] == expected
    assert "'age': 2 values are read as missing (-9, 99)" in engine.schema(frame).notes


def _read_plainly(value: Any, keys: dict[str, Any]) -> Any:
    text = "" if value is None else str(value)
    from reference import plain_reading  # executors, which read this file, do not have it

    return plain_reading.read_cell(text, [*map(str, keys["na"])], keys.get("unit", ()), thousands=",")

"""Columns: described and counted in one query or many, against plain Python."""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.measures.risk import measure_column_risk
from kinfold.pipeline import open_engine
from kinfold.tables.duckdb import columns as describing
from kinfold.tables.duckdb import connection as database
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import compute_order_stats, count_unique_rows, count_value_pairs, read_page
from kinfold.tables.resources import Resources
from kinfold.tables.schema import AS_TEXT, OrderedReading, OrderStats, Schema, ValueStats
from kinfold.tables.source_form import SourceForm
from kinfold.tables.tally import Tally
from small_tables import SMALL

TEXTS = {
    "whole": ["1", "2", "2", " 3 ", "-4"],
    "halves": ["1.5", "2.50", "1e3", "", "7"],
    "odd": ["=1+1", "+2", "@x", "nan", "inf"],
    "words": ["flu", "cold", "cold", "", "flu"],
    "nothing": ["", "", "", "", ""],
    "zeros": ["1.0", "2.00", "3.", "-0", "0.0"],
    "quoted": ["it's", 'say "x"', "a,b", "ä", "ß"],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "texts.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([list(TEXTS), *zip(*TEXTS.values(), strict=True)])
    return file


def test_together_they_answer_as_each_alone(path: Path) -> None:
    with DuckDB(SMALL) as engine:
        frame = engine.read(path)
        assert set(frame.types) == {"VARCHAR"}
        places = range(len(TEXTS))
        together = describing._ask_short_texts(engine._db, frame, places)
        for i in places:
            alone = describing._ask_texts(engine._db, frame, i, describing.make_text_questions(f"c{i}"))
            assert together[i] == alone, list(TEXTS)[i]
        assert together[3]["distinct"] == 2
        assert together[4]["filled"] == 0


def test_a_long_table_is_described_as_a_short_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DuckDB(SMALL) as engine:
        short = engine.schema(engine.read(path))
    monkeypatch.setattr(database, "MAX_SHORT_ROWS", 0)
    with DuckDB(SMALL) as engine:
        assert engine.schema(engine.read(path)) == short


MOMENTS = (
    *("2020-01-05", "2020/1/5", "5.1.2020", "05/01/2020", "13/01/2020", "01-13-2020", "5-Jan-2020", "05Jan2020"),
    *("5 January 2020", "Jan 5, 2020", "2020-01-05 00:00:00", "2020-01-05T00:00:00.000Z", "2020-01-05T10:20:30.123456"),
    *("2020-01-05\t10:20", "2020-01-05T10:20Z", "2020-01-05 10:20:30+02", "5.1.20", "unknown", "flu", "20200105"),
    "2020",
)


@pytest.mark.slow
@pytest.mark.parametrize("declared", [(), ("%Y%m%d",), ("%d.%m.%y", "on %d.%m.%Y")])
def test_dates_are_found_without_asking_for_formats_whose_marks_no_value_has(
    declared: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chance = random.Random(5)
    columns = {f"x{i}": chance.choices(chance.sample(MOMENTS, chance.randint(1, 3)), k=12) for i in range(24)}
    columns |= {f"all {i}": [moment] * 12 for i, moment in enumerate(MOMENTS)}
    file = tmp_path / "moments.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([list(columns), *zip(*columns.values(), strict=True)])

    def described() -> Schema:
        with DuckDB(SMALL) as engine:
            return engine.schema(engine.read(file, form=SourceForm(dates=declared)))

    found = described()
    assert sum(column.date_format is not None for column in found) > 10
    monkeypatch.setattr(
        describing, "_find_possible_formats", lambda _, __, columns, forms: {c.number: forms for c in columns}
    )
    assert described() == found
    monkeypatch.undo()
    monkeypatch.setattr(describing, "SAMPLED_VALUES", 3)  # and where some are looked at before all
    assert described() == found


# What a column looks like, asked of the engine and counted by hand.


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with open_engine() as opened:
        yield opened


def by_hand(values: list[Any]) -> ValueStats:
    """The slow plain twin."""
    held = Counter(str(value) for value in values if value is not None)
    sizes = [*held.values(), *([values.count(None)] if None in values else [])]
    numbers = [float(value) for value in values if value is not None and not isinstance(value, str)]
    texts = [value for value in values if isinstance(value, str)]
    written = [str(value) for value in values if value is not None]
    order = sorted(held, key=lambda value: (-held[value], value.encode()))
    return ValueStats(
        filled=held.total(),
        distinct=len(held),
        unique_rows=sizes.count(1),
        min_count=min(held.values(), default=0),
        max_count=max(held.values(), default=0),
        whole_numbers=sum(number.is_integer() for number in numbers),
        low=min(numbers, default=0.0),
        high=max(numbers, default=0.0),
        mean=math.fsum(numbers) / len(numbers) if numbers else 0.0,
        mean_length=sum(map(len, written)) / len(written) if written else 0.0,
        mean_words=sum(max(len(text.split()), 1) for text in texts) / len(texts) if texts else float(bool(written)),
        values=tuple(order),
        counts=tuple(held[value] for value in order),
    )


def seen(engine: Any, values: list[Any], kind: pa.DataType) -> ValueStats:
    frame = engine.read(pa.table({"c": pa.array(values, kind)}))
    return engine.profile(frame, [engine.schema(frame)["c"]])["c"]


def alike(found: ValueStats, wanted: ValueStats) -> None:
    for name, value in vars(wanted).items():
        assert getattr(found, name) == (
            pytest.approx(value, rel=1e-12, abs=1e-9) if isinstance(value, float) else value
        ), name


@pytest.mark.slow
@given(st.lists(st.none() | st.integers(-30, 30), min_size=1, max_size=40))
def test_whole_numbers_are_counted_as_by_hand(engine: Any, values: list[int | None]) -> None:
    alike(seen(engine, values, pa.int64()), by_hand(values))


@pytest.mark.slow
@given(
    st.lists(st.none() | st.text("ab é", min_size=1, max_size=6).map(lambda text: f"x{text}y"), min_size=1, max_size=40)
)
def test_texts_are_counted_as_by_hand(engine: Any, values: list[str | None]) -> None:
    alike(seen(engine, values, pa.string()), by_hand(values))


def test_fractions_are_not_whole_and_what_is_not_finite_is_no_number(engine: Any) -> None:
    found = seen(engine, [1.0, 2.5, float("nan"), float("inf"), 1e308, -1e308], pa.float64())
    assert (found.whole_numbers, found.low, found.high) == (3, -1e308, 1e308)


@given(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=30))
def test_runs_and_rises_are_counted_as_by_hand(engine: Any, values: list[int | None]) -> None:
    frame = engine.read(pa.table({"c": pa.array(values, pa.int64())}))
    there = [value for value in values if value is not None]
    pairs = list(pairwise(there))
    runs = sum(one != other for one, other in pairs) + bool(there)
    rises = sum(other >= one for one, other in pairs)
    assert compute_order_stats(engine, frame, engine.schema(frame)["c"]) == OrderStats(runs, rises)


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, 1, 2])), min_size=1, max_size=20))
def test_rows_alone_and_pairs_are_counted_as_by_hand(engine: Any, rows: list[tuple[str | None, int | None]]) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows], pa.int64())}
    )
    frame = engine.read(table)
    assert count_unique_rows(engine, frame, ["a", "b"]) == list(Counter(rows).values()).count(1)
    whole = {row for row in rows if None not in row}
    assert count_value_pairs(engine, frame, "a", "b") == (len(whole), len({a for a, _ in whole}))


def test_numbers_of_a_csv_file_are_read_as_numbers(engine: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("c,d\n3.0,x\n4.0,\n3.0,y z\n")
    frame = engine.read(tmp_path / "t.csv")
    found = engine.profile(frame, [engine.schema(frame)["c"]])["c"]
    assert (found.whole_numbers, found.low, found.high, found.values) == (3, 3.0, 4.0, ("3.0", "4.0"))


# Pages of rows and sizes of classes, as the engine counts them, against plain Python.


ROWS = [(str(i % 7), "" if i % 5 == 0 else f"t{i % 3}", "x" * (i % 300)) for i in range(500)]


def table(folder: Path) -> Path:
    path = folder / "table.csv"
    path.write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in ROWS))
    return path


def test_pages_are_the_rows_in_their_order_cut_where_texts_are_long(tmp_path: Path) -> None:
    plain = [[cell[:200] or None for cell in row] for row in ROWS]
    with DuckDB(SMALL) as engine:
        frame = engine.read(table(tmp_path), ("",))
        pages = [read_page(engine, frame, start, 64) for start in range(0, 560, 64)]
    assert [row for page in pages for row in page] == plain


def test_sizes_of_classes_are_counted_with_nulls_alike(tmp_path: Path) -> None:
    sizes = Counter(Counter((a, b) for a, b, _ in ROWS).values())
    with DuckDB(SMALL) as engine:
        frame = engine.read(table(tmp_path), ("",))
        assert engine.count_classes(frame, ["a", "b"]) == sorted(sizes.items())
        assert engine.count_classes(frame, ["a"]) == sorted(Counter(Counter(a for a, _, _ in ROWS).values()).items())
        tally = engine.tally(frame, ["a", "b"], {})
        assert sorted(Counter(tally.sizes.tolist()).items()) == sorted(sizes.items())
        assert engine.count_classes(frame, []) == [(500, 1)]
        found = measure_column_risk(engine, frame, ["a", "b"], 24)
    small = sum(size * many for size, many in sizes.items() if size < 24)
    assert found["classes"] == sum(sizes.values())
    assert found["below_k"] == small / 500
    assert found["prosecutor_max"] == 1 / min(sizes)
    assert found["prosecutor_mean"] == sum(sizes.values()) / 500


# A short table is tallied in fewer queries: what comes out is what comes out of a long one.


HOURS = (datetime(1, 1, 1, tzinfo=UTC), datetime(2020, 5, 17, 23, 59, 59, 999_999, tzinfo=UTC))
KINDS: dict[str, tuple[pa.DataType, tuple[Any, ...], str]] = {
    "text": (pa.string(), ("b", "a", "", "ä", "A", " "), "text"),
    "whole": (pa.int64(), (0, -1, 2**62 + 1, 2**62, 10, 9), "number"),
    "float": (pa.float64(), (0.0, -0.0, 1e-320, -1.5, 1e300), "number"),
    "odd": (pa.float64(), (0.0, -0.0, math.nan, -math.nan, math.inf), "text"),
    "decimal": (pa.decimal128(30, 10), (Decimal("0.1"), Decimal(12345678901234567890), Decimal("-2.5")), "number"),
    "day": (pa.date32(), (date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29)), "moment"),
    "moment": (pa.timestamp("ns", "UTC"), (0, 1, 10**18, -1), "moment"),
    "hour": (pa.timestamp("us", "UTC"), HOURS, "moment"),
    "truth": (pa.bool_(), (True, False), "text"),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 12))

    def values(kind: str) -> pa.Array:
        of, some, _ = KINDS[kind]
        one = st.one_of(st.none(), st.sampled_from(some))
        return pa.array(draw(st.lists(one, min_size=rows, max_size=rows)), of)

    return pa.table({kind: values(kind) for kind in KINDS})


def tallied(table: pa.Table, by: list[str]) -> Tally:
    with DuckDB(Resources(small=True)) as engine:
        frame = engine.read(table)
        of = {kind: OrderedReading(sort) if sort != "text" else AS_TEXT for kind, (_, _, sort) in KINDS.items()}
        found = engine.tally(frame, by, of)  # type: ignore[arg-type]
        return Tally({name: found.keys[name] for name in by}, found.sizes, found.spreads)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(tables(), st.lists(st.sampled_from([*KINDS]), max_size=3, unique=True))
def test_counts_do_not_depend_on_how_they_are_asked_for(table: pa.Table, by: list[str]) -> None:
    short = tallied(table, by)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "MAX_SHORT_ROWS", 0)
        long = tallied(table, by)
    assert short.sizes.tolist() == long.sizes.tolist()
    for name in by:
        assert short.keys[name].tolist() == long.keys[name].tolist()
    for kind in KINDS:
        ours, theirs = short.spreads[kind], long.spreads[kind]
        for part in ("group", "code", "count", "values"):
            one, other = getattr(ours, part), getattr(theirs, part)
            assert one.dtype == other.dtype, (kind, part)
            np.testing.assert_array_equal(one, other, err_msg=f"{kind} {part}")


def test_the_rows_of_a_table_are_told_when_it_is_made() -> None:
    with DuckDB(SMALL) as engine:
        db = engine._db
        table, other = db.table("SELECT * FROM range(7)"), db.table("SELECT * FROM range(5)")
        db.append(table, other)
        view = db.view(f"SELECT * FROM {table}")
        assert [db.count(name) for name in (table, other, view)] == [12, 5, 12]
        assert (db.is_short(table), db.is_short(view)) == (True, False)
        assert not db.is_short(db.table(f"SELECT * FROM range({database.MAX_SHORT_ROWS + 1})"))

"""A short table is tallied in fewer queries: what comes out is what comes out of a long one."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.rows.engines import database
from kinfold.rows.engines.duckdb import DuckDB
from kinfold.rows.resources import Resources
from kinfold.rows.schema import AS_TEXT, Reading
from kinfold.rows.tally import Tally

MOMENTS = (datetime(1, 1, 1, tzinfo=UTC), datetime(2020, 5, 17, 23, 59, 59, 999_999, tzinfo=UTC))
KINDS: dict[str, tuple[pa.DataType, tuple[Any, ...], str]] = {
    "text": (pa.string(), ("b", "a", "", "ä", "A", " "), "text"),
    "whole": (pa.int64(), (0, -1, 2**62 + 1, 2**62, 10, 9), "number"),
    "float": (pa.float64(), (0.0, -0.0, 1e-320, -1.5, 1e300), "number"),
    "odd": (pa.float64(), (0.0, -0.0, math.nan, -math.nan, math.inf), "text"),
    "decimal": (pa.decimal128(30, 10), (Decimal("0.1"), Decimal(12345678901234567890), Decimal("-2.5")), "number"),
    "day": (pa.date32(), (date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29)), "moment"),
    "moment": (pa.timestamp("ns", "UTC"), (0, 1, 10**18, -1), "moment"),
    "hour": (pa.timestamp("us", "UTC"), MOMENTS, "moment"),
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
        of = {kind: Reading(sort) if sort != "text" else AS_TEXT for kind, (_, _, sort) in KINDS.items()}
        found = engine.tally(frame, by, of)  # type: ignore[arg-type]
        return Tally({name: found.keys[name] for name in by}, found.sizes, found.spreads)


@settings(max_examples=40, deadline=None)
@given(tables(), st.lists(st.sampled_from([*KINDS]), max_size=3, unique=True))
def test_counts_do_not_depend_on_how_they_are_asked_for(table: pa.Table, by: list[str]) -> None:
    short = tallied(table, by)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "SHORT", 0)
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
    with DuckDB() as engine:
        db = engine._db
        table, other = db.table("SELECT * FROM range(7)"), db.table("SELECT * FROM range(5)")
        db.append(table, other)
        view = db.view(f"SELECT * FROM {table}")
        assert [db.count(name) for name in (table, other, view)] == [12, 5, 12]
        assert (db.is_short(table), db.is_short(view)) == (True, False)
        assert not db.is_short(db.table(f"SELECT * FROM range({database.SHORT + 1})"))

"""Confidential values are told apart and ordered exactly: never as doubles, never by the alphabet."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinfold
from command import run, text
from kinfold.errors import DataError, KinfoldError, PolicyError
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.schema import OrderedReading
from small_tables import SMALL

ACCOUNT = 123456789012345678


def places(source: Path | pa.Table, reading: OrderedReading) -> list[int | None]:
    with DuckDB(SMALL) as engine:
        found = engine.collect(engine.read(source), {"v": reading}).column(0).to_pylist()
    least = min((place for place in found if place is not None), default=0)
    return [None if place is None else place - least for place in found]


def csv_of(folder: Path, values: list[str]) -> Path:
    return text(folder, "t.csv", "g,v\n" + "".join(f"x,{value}\n" for value in values))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["123456789012345678", "123456789012345679", "123456789012345677"], [1, 2, 0]),
        (["10", "9", "9.0", "", "09", " 9"], [1, 0, 0, None, 0, 0]),
        (["0.1", "0.10000000000000000001", "0.1000"], [0, 1, 0]),
        (["1e3", "1000", "999.99", "1E-400", "0"], [3, 3, 2, 1, 0]),
        (["1" * 400, "1" * 399 + "2", "-" + "9" * 400], [1, 2, 0]),
        (["-0.0", "0", "+0"], [0, 0, 0]),
        (["1234567890123456789012345678901234567.1", "1234567890123456789012345678901234567.2"], [0, 1]),
        (["1" * 30 + ".000000000000001", "1" * 30 + ".000000000000002"], [0, 1]),
    ],
)
def test_numbers_written_as_text(tmp_path: Path, values: list[str], expected: list[int | None]) -> None:
    assert places(csv_of(tmp_path, values), OrderedReading("number")) == expected


@pytest.mark.slow
@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_any_decimals_stand_in_their_order(values: list[Decimal]) -> None:
    table = pa.table({"v": [f"{value:f}" if abs(value.adjusted()) < 300 else str(value) for value in values]})
    order = {value: place for place, value in enumerate(sorted(set(values)))}
    assert places(table, OrderedReading("number")) == [order[value] for value in values]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([ACCOUNT, ACCOUNT + 1, ACCOUNT + 2]),
        pa.array([2**63, 2**63 + 1, 2**64 - 1], pa.uint64()),
        pa.array([Decimal("0.1"), Decimal("0.10000000000000000001"), Decimal("0.2")], pa.decimal128(38, 20)),
        pa.array([-1e-310, 5e-324, 1e-310]),
    ],
)
def test_typed_numbers(values: pa.Array) -> None:
    assert places(pa.table({"v": values}), OrderedReading("number")) == [0, 1, 2]


def test_moments_to_the_last_digit(tmp_path: Path) -> None:
    nanoseconds = pa.array([1, 2, 0], pa.timestamp("ns"))
    assert places(pa.table({"v": nanoseconds}), OrderedReading("moment")) == [1, 2, 0]
    texts = ["2020-01-01 00:00:00.000000001", "2020-01-01 00:00:00.000000002", "2020-01-01", "2019-12-31T23:59:59Z"]
    assert places(csv_of(tmp_path, texts), OrderedReading("moment")) == [2, 3, 1, 0]
    zones = ["2020-01-01 12:00:00+02:00", "2020-01-01 10:00:00Z", "2020-01-01 11:00", "12020-01-01", "0044-03-15 (BC)"]
    assert places(csv_of(tmp_path, zones), OrderedReading("moment")) == [1, 1, 2, 3, 0]
    assert places(csv_of(tmp_path, ["31.12.2019", "01.02.2020"]), OrderedReading("moment", "%d.%m.%Y")) == [0, 1]


@pytest.mark.parametrize(
    ("values", "reading", "count"),
    [
        (["1", "two", "3"], OrderedReading("number"), "1 of its 3"),
        (["1", "nan", "inf", "0x1"], OrderedReading("number"), "3 of its 4"),
        (["1e9999999999"], OrderedReading("number"), "1 of its 1"),
        (["2020-01-01", "2020-02-31", "soon"], OrderedReading("moment"), "2 of its 3"),
        (["31.12.2019", "12/31/2019"], OrderedReading("moment", "%d.%m.%Y"), "1 of its 2"),
    ],
)
def test_a_word_among_them_is_refused_with_counts(
    tmp_path: Path, values: list[str], reading: OrderedReading, count: str
) -> None:
    with pytest.raises(DataError, match=count):
        places(csv_of(tmp_path, values), reading)


@pytest.mark.parametrize("kind", [pa.bool_(), pa.date32(), pa.string()])
def test_what_is_no_number_is_not_read_as_one(kind: pa.DataType) -> None:
    values = pa.array([None, {"bool": True, "date32[day]": datetime(2020, 1, 1), "string": "x"}[str(kind)]], kind)
    with pytest.raises(DataError, match="1 of its 1"):
        places(pa.table({"v": values}), OrderedReading("number"))


# The whole way


def accounts(n: int = 40) -> pa.Table:
    """Ages that are sorted as the accounts are, so that classes are far from the table."""
    return pa.table({"age": list(range(n)), "account": [ACCOUNT + i for i in range(n)]})


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_accounts_beyond_doubles_are_not_one_value(tmp_path: Path, form: str) -> None:
    pq.write_table(accounts(), tmp_path / "t.parquet")
    release = kinfold.anonymize(
        tmp_path / "t.parquet", quasi=["age"], confidential=["account"], k=5, method="mdav", format=form
    )
    release.save(tmp_path / "out")
    found = kinfold.verify(tmp_path / "out", twice=True)
    assert found.l["account"] == 5
    assert "100% of the records have a value that no other" in (tmp_path / "out/public/report.html").read_text()
    assert found.t["account"] == pytest.approx(0.4487, abs=1e-4)  # as if they were 0 to 39


def test_t_is_kept_among_accounts_beyond_doubles() -> None:
    for method in ("t-first", "t-merge", "k-first", "mdav"):
        release = kinfold.anonymize(accounts(), quasi=["age"], confidential=["account"], k=4, t=0.2, method=method)
        assert release.verdict.t["account"] <= 0.2
        assert (release.verdict.classes == 1) == (method == "t-merge"), method  # it can but merge what age sorts apart


def test_long_numbers_of_a_csv_file_do_not_collapse_in_parquet(tmp_path: Path) -> None:
    rows = [(i, f"1234567890123456789{i:02}.{i:03}") for i in range(20)]
    path = text(tmp_path, "t.csv", "age,v\n" + "".join(f"{age},{v}\n" for age, v in rows))
    kinfold.anonymize(path, quasi=["age"], confidential=["v"], k=4, method="mdav", format="parquet").save(
        tmp_path / "o"
    )
    found = kinfold.verify(tmp_path / "o", twice=True)
    assert found.l["v"] == 4
    assert found.t["v"] > 0.3


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_quasi_identifiers_are_grouped_by_their_text(tmp_path: Path, form: str) -> None:
    values = [0.0, 0.0, -0.0, -0.0, -0.0]
    path = tmp_path / f"t.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"x": values}), path)
    else:
        path.write_text("x\n" + "".join(f"{value}\n" for value in values))
    found = kinfold.verify(path, {"privacy": {"k": 3}, "columns": {"x": {"role": "quasi"}}}, twice=True)
    assert (found.k, found.classes) == (2, 2)


def test_null_and_empty_text_are_two_values_of_a_parquet_file_and_one_of_a_csv_file(tmp_path: Path) -> None:
    table = pa.table({"q": ["", "", None, None, None], "d": ["", None, "", None, "x"]})
    pq.write_table(table, tmp_path / "t.parquet")
    text(tmp_path, "t.csv", 'q,d\n"",""\n"",\n,""\n,\n,x\n')
    asked = {"quasi": ["q"], "confidential": ["d"], "k": 2}
    typed = kinfold.verify(tmp_path / "t.parquet", twice=True, **asked)
    plain = kinfold.verify(tmp_path / "t.csv", twice=True, **asked)
    assert (typed.k, typed.classes, typed.l) == (2, 2, {"d": 2})
    assert (plain.k, plain.classes, plain.l) == (5, 1, {"d": 2})


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("kind", [pa.table, pd.DataFrame, pl.DataFrame])
def test_empty_texts_of_a_source_are_missing_values(tmp_path: Path, form: str, kind: Any) -> None:
    table = kind({"q": ["", None, "", None, "b", "b", "b"], "d": ["", None, "x", "y", "", "z", None]})
    release = kinfold.anonymize(table, quasi=["q"], confidential=["d"], k=3, method="mdav", format=form)
    release.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).l == release.verdict.l == {"d": 2}
    assert kinfold.verify(release.frame, quasi=["q"], confidential=["d"], k=3).l == {"d": 2}


# A column that is declared a number, or was one


def test_a_word_in_a_column_declared_continuous_is_refused_when_verified(tmp_path: Path) -> None:
    path = text(tmp_path, "t.csv", "age,wage\n" + "30,10\n" * 5 + "30,unknown\n")
    asked = {"privacy": {"k": 2, "t": 0.5}, "columns": {"age": {"role": "quasi"}, "wage": {"role": "confidential"}}}
    asked["columns"]["wage"]["type"] = "continuous"  # type: ignore[index]
    with pytest.raises(KinfoldError, match="1 of 6 values are not numbers"):
        kinfold.verify(path, asked)


def test_a_word_in_a_column_of_numbers_that_nobody_declared_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"30,{i}\n" for i in range(20))
    path = text(tmp_path, "t.csv", "age,wage\n" + rows + "30,unknown\n")
    for command in (("verify", path), ("anonymize", path, "--out", tmp_path / "out")):
        policy = text(tmp_path, "p.toml", '[privacy]\nk=2\n[columns]\nage={role="quasi"}\nwage={role="confidential"}')
        ran = run(*command, "--policy", policy)
        assert ran.code == 3
        assert "seems to hold numbers: 20 of its 21 values are numbers" in ran.err
        assert run(*command, "--policy", policy, "--set", "columns.wage.type=nominal").code == 0


@pytest.mark.parametrize("kind", ["nominal", None])
def test_nominal_values_have_no_order(kind: str | None) -> None:
    wage = {"role": "confidential", "distance": "ordered"} | ({"type": kind} if kind else {})
    asked = {"privacy": {"k": 2, "t": 0.5}, "columns": {"a": {"role": "quasi"}, "d": wage}}
    with pytest.raises(PolicyError, match="nominal values have no order"):
        kinfold.anonymize(pa.table({"a": [1, 2, 3], "d": ["x", "y", "z"]}), asked)


def test_dates_are_read_in_the_format_that_the_source_showed(tmp_path: Path) -> None:
    """The one day that tells days from months is left out: the release alone could be read both ways."""
    days = ["01/02/2020", "02/01/2020", "03/02/2020", "04/01/2020", "25/12/2020"]
    rows = [f"{age},{day}" for age, day in zip([1, 2, 3, 4, ""], days, strict=True)]
    path = text(tmp_path, "t.csv", "age,day\n" + "".join(row + "\n" for row in rows))
    columns = {"age": {"role": "quasi", "missing": "drop"}, "day": {"role": "confidential", "type": "date"}}
    kinfold.anonymize(path, {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": columns}).save(tmp_path / "o")
    found = kinfold.verify(tmp_path / "o", twice=True)
    assert found.t["day"] == pytest.approx(1 / 6)  # a day of either month in each class; by the alphabet it were 1/3


def test_a_duckdb_with_nanoseconds_and_zones_goes_the_whole_way(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql(
        "SELECT i AS age, make_timestamp_ns(1577836800000000000 + i) AS at, "
        "to_timestamp(1577836800 + i) AS zoned FROM range(12) t(i)"
    ).write_parquet(str(path))
    for form in ("csv", "parquet"):
        asked = {"quasi": ["age"], "confidential": ["at", "zoned"], "k": 3, "format": form, "method": "mdav"}
        kinfold.anonymize(path, **asked).save(tmp_path / form)
        found = kinfold.verify(tmp_path / form, twice=True)
        assert found.l == {"at": 3, "zoned": 3}
        assert np.isclose(found.t["at"], found.t["zoned"])


@pytest.mark.slow
@pytest.mark.parametrize("values", [["1.50", "1.5", "2"], ["+1", "1", "2"], ["1e3", "1000", "2"], ["1", "2", "3"]])
@pytest.mark.parametrize("role", ["quasi", "confidential"])
def test_categories_keep_their_text_in_parquet(tmp_path: Path, values: list[str], role: str) -> None:
    rows = "".join(f"{i // 3},{values[i % 3]}\n" for i in range(30))
    columns = {"a": {"role": "quasi"}, "v": {"role": role, "type": "nominal"}}
    if role == "confidential":
        columns["v"] |= {"hierarchy": {"levels": [[value, "any"] for value in values]}}
    asked = {"privacy": {"k": 3}, "method": {"name": "mdav"}, "columns": columns, "output": {"format": "parquet"}}
    release = kinfold.anonymize(text(tmp_path, "t.csv", "a,v\n" + rows), asked)
    release.save(tmp_path / "out")
    held = pq.ParquetFile(tmp_path / "out/public/release.parquet").read().column("v")
    assert {str(value) for value in held.to_pylist()} <= {*values}
    assert pa.types.is_integer(held.type) == (values == ["1", "2", "3"])
    assert release.frame.column("v").type == held.type
    assert kinfold.verify(tmp_path / "out", twice=True).holds

"""What a file says is what is read: separators, quotes, encodings, line ends, types."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from command import text
from kinfold.errors import DataError
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.schema import AS_TEXT, Column, Kind, Storage
from kinfold.tables.source_form import ColumnForm, SourceForm
from small_tables import SMALL


def rows(path: Path) -> list[tuple[Any, ...]]:
    with DuckDB(SMALL) as engine:
        return [tuple(row.values()) for row in collect_rows(engine, engine.read(path)).to_pylist()]


def columns(source: Path | pa.Table) -> dict[str, Column]:
    with DuckDB(SMALL) as engine:
        return {column.name: column for column in engine.schema(engine.read(source))}


def column(tmp_path: Path, *values: str) -> Column:
    quoted = "".join(f'x,"{value}"\n' for value in values)
    return columns(text(tmp_path, "t.csv", "other,c\n" + quoted))["c"]


# How a CSV file is written


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a,b\n1.5,x\n", [("1.5", "x")]),
        *((f"a{mark}b\n1,5{mark}x\n", [("1,5", "x")]) for mark in ";\t|"),
        ('a;b\n"x;y";1\n"say ""hi""";2\n', [("x;y", "1"), ('say "hi"', "2")]),
        ("a\nx\ny\n", [("x",), ("y",)]),
        *((end.join(["a,b", "1,2", "3,4", ""]), [("1", "2"), ("3", "4")]) for end in ("\n", "\r\n", "\r")),
        ('a,b\r\n"x\ny",1\r\n"x\r\ny",2\r\n', [("x\ny", "1"), ("x\r\ny", "2")]),
        ("\n\na,b\n1,2\n\n3,4\n\n\n", [("1", "2"), ("3", "4")]),  # blank lines are no records of several columns
        ("a\n1\n\n2\n", [("1",), (None,), ("2",)]),  # and a null of the only column
        ('a,b\n"",1\n,2\nNULL,3\n', [(None, "1"), (None, "2"), ("NULL", "3")]),
        (b"a,b\n" + b"x,1\n" * 400_000 + "Zoë,2\n".encode("cp1252"), [("x", "1")] * 400_000 + [("Zoë", "2")]),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_separators_quotes_line_ends_and_blank_lines(tmp_path: Path, written: Any, expected: Any) -> None:
    assert rows(text(tmp_path, "t.csv", written)) == expected


def test_a_header_with_quotes_line_breaks_or_a_byte_order_mark(tmp_path: Path) -> None:
    assert list(columns(text(tmp_path, "t.csv", '"a\nb","c,d"\n1,2\n'))) == ["a\nb", "c,d"]
    assert list(columns(text(tmp_path, "t.csv", b'\xef\xbb\xbf"a",b\n1,2\n'))) == ["a", "b"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = text(tmp_path, "t.csv", "näme,b\nZoë €,1\n".encode(encoding))
    assert list(columns(path)) == ["näme", "b"]
    assert rows(path) == [("Zoë €", "1")]


def test_a_header_whose_quote_is_never_closed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a quote is not closed"):
        rows(text(tmp_path, "t.csv", '"a,b\n' + "1,2\n" * 60_000))


def test_errors_do_not_carry_the_line_that_broke(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line endings are wrong") as caught:
        rows(text(tmp_path, "t.csv", "a,b\r\nSECRET,2\n3,4\r\n"))
    assert caught.value.__suppress_context__
    assert "SECRET" not in str(caught.value)


# What columns are


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "storage"),
    [
        (("1", "22", "-3"), Storage.INTEGER),
        (("+1", "0", " 7 "), Storage.INTEGER),
        (("02138", "10001"), Storage.TEXT),
        (("1.5", "2", ".5", "-0.25"), Storage.NUMBER),
        (("1e5", "2.5E-3"), Storage.NUMBER),
        (("1,5", "2,5"), Storage.TEXT),
        (("1", "x"), Storage.TEXT),
        (("1", "inf", "NaN"), Storage.NUMBER),
        (("nan", "nan"), Storage.TEXT),
        (("123456789012345678", "1"), Storage.INTEGER),
        (("12345678901234567890", "1"), Storage.NUMBER),
        (("true", "false"), Storage.TEXT),
        (("2024-12-31", "2024-01-01"), Storage.DATE),
        (("2024/12/31", "2024/01/01"), Storage.DATE),
        (("31.12.2024", "01.01.2024"), Storage.DATE),
        (("31/12/2024", "01/02/2024"), Storage.DATE),
        (("12/31/2024", "01/02/2024"), Storage.DATE),
        (("2024-12-31 23:59:59", "2024-01-01 00:00:00"), Storage.TIMESTAMP),
        (("2024-12-31T23:59:59", "2024-01-01T00:00:00"), Storage.TIMESTAMP),
        (("2024-12-31 23:59", "2024-01-01 00:00"), Storage.TIMESTAMP),
        (("01/02/2024", "03/04/2024"), Storage.TEXT),  # day and month could be exchanged
        (("2024-02-30", "2024-01-01"), Storage.TEXT),
        (("2024-12-31", "31.12.2024"), Storage.TEXT),
        (("2024", "2023"), Storage.INTEGER),
        (("20241231", "20240101"), Storage.INTEGER),
    ],
    ids=str,
)
def test_how_text_is_understood(tmp_path: Path, values: tuple[str, ...], storage: Storage) -> None:
    assert column(tmp_path, *values).storage is storage


def test_counts_of_a_column(tmp_path: Path) -> None:
    found = column(tmp_path, "1.25", "", "7", "inf", "7", "x")
    assert (found.rows, found.nulls, found.distinct, found.numbers, found.not_finite) == (6, 1, 4, 3, 1)

    found = column(tmp_path, "", "")
    assert (found.storage, found.nulls, found.distinct, found.numbers, found.not_finite) == (Storage.TEXT, 2, 0, 0, 0)


@pytest.mark.parametrize(
    ("values", "decimals"), [(("1", "2.50"), 2), (("1", "2"), 0), (("1e-3", "2"), None), (("1.", "2"), 0)], ids=str
)
def test_decimals(tmp_path: Path, values: tuple[str, ...], decimals: int | None) -> None:
    assert column(tmp_path, *values).decimals == decimals


def test_numbers_with_few_values_are_codes(tmp_path: Path) -> None:
    assert column(tmp_path, "0", "1", "1").kind is Kind.NOMINAL
    assert column(tmp_path, "0", "1", "2").kind is Kind.CONTINUOUS


# Files and frames that know types


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        {"a": 1, "b": "02138", "c": "2024-12-31", "d": None, "e": 1.5, "f": True, "g": "01/02/2024", "h": 1},
        {"a": None, "b": "x", "c": "2024-01-01", "d": None, "e": 2, "f": False, "g": "03/04/2024", "h": "x"},
    ]
    path = text(tmp_path, "t.jsonl", "\n\n".join(json.dumps(line) for line in lines) + "\n")
    kinds = " ".join(f"{name}:{c.storage}" for name, c in columns(path).items())
    assert kinds == "a:integer b:text c:date d:text e:number f:boolean g:text h:text"
    assert rows(path)[0] == (1, "02138", date(2024, 12, 31), None, 1.5, True, "01/02/2024", "1")


def test_a_key_that_comes_late_in_json_lines_is_a_column(tmp_path: Path) -> None:
    path = text(tmp_path, "t.ndjson", '{"a": 1}\n' * 30_000 + '{"a": 2, "late": 3}\n')
    assert list(columns(path)) == ["a", "late"]


@pytest.mark.parametrize("lines", ['{"a": 1\n', '{"a": 1, "a": 2}\n', '{"a": {"b": 1}}\n', "[1, 2]\n", ""], ids=repr)
def test_json_lines_that_are_no_table(tmp_path: Path, lines: str) -> None:
    with pytest.raises(DataError):
        rows(text(tmp_path, "t.jsonl", lines))


TYPED = pa.table(
    {
        "i8": pa.array([1, None, 3], pa.int8()),
        "u64": pa.array([1, 2, 2**63], pa.uint64()),
        "f32": pa.array([0.1, 0.25, None], pa.float32()),
        "dec": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(9, 2)),
        "day": pa.array([date(2024, 1, 1), None, date(1969, 7, 20)]),
        "when": pa.array([datetime(2024, 1, 1, 10, 30), None, datetime(1969, 7, 20)], pa.timestamp("ns")),
        "midnight": pa.array([datetime(2024, 1, 1), None, datetime(1969, 7, 20)], pa.timestamp("ms")),
        "zoned": pa.array([datetime(2024, 1, 1, 10), None, datetime(1969, 7, 20)], pa.timestamp("us", "Asia/Tokyo")),
        "flag": pa.array([True, None, False]),
        "text": pa.array(["1", "2", None]),
        "code": pa.array(["x", None, "y"]).dictionary_encode(),
        "none": pa.nulls(3),
        "time": pa.array([1, None, 3], pa.time64("us")),
    }
)
STORED = {"i8": Storage.INTEGER, "u64": Storage.INTEGER, "f32": Storage.NUMBER, "dec": Storage.NUMBER}
STORED |= {"day": Storage.DATE, "when": Storage.TIMESTAMP, "midnight": Storage.DATE, "zoned": Storage.TIMESTAMP}
# in a typed source text is text, whatever it looks like
STORED |= {"flag": Storage.BOOLEAN, **dict.fromkeys(("text", "code", "none", "time"), Storage.TEXT)}


def test_types_of_arrow_and_parquet(tmp_path: Path) -> None:
    parquet.write_table(TYPED, tmp_path / "t.parquet")
    for found in (columns(TYPED), columns(tmp_path / "t.parquet")):
        assert {name: c.storage for name, c in found.items()} == STORED
        assert [found[name].decimals for name in ("f32", "dec", "i8")] == [2, 2, 0]


def test_nested_columns_are_refused_with_their_names() -> None:
    nested = pa.table({"a": [1], "b": [[1, 2]], "c": [{"x": 1}]})
    with pytest.raises(DataError) as caught:
        columns(nested)
    assert [problem.what.split()[1] for problem in caught.value.problems] == ["'b'", "'c'"]


def test_a_file_that_is_not_what_its_ending_says(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        rows(text(tmp_path, "t.parquet", "a,b\n1,2\n"))


# Names and sizes

STRANGE = (
    "select",
    'a"b',
    "'; drop table t0; --",
    "c0",
    "ünï çødé 🎈",
    " lead",
    "a,b",
    "a;b",
    "new\nline",
    "*",
    "%s",
    "{}",
)


def test_strange_names_are_only_names(tmp_path: Path) -> None:
    table = pa.table({name: [str(i), None, "x"] for i, name in enumerate(STRANGE)})
    with DuckDB(SMALL) as engine:
        frame = engine.read(table)
        assert engine.schema(frame).names == STRANGE
        assert collect_rows(engine, frame).equals(table)
        assert engine.tally(frame, STRANGE, {STRANGE[2]: AS_TEXT}).sizes.tolist() == [1, 1, 1]
        for file in (tmp_path / "t.csv", tmp_path / "t.parquet"):
            engine.write(frame, file, engine.schema(frame), ordered=False)
            assert collect_rows(engine, engine.read(file)).equals(table)


def test_two_hundred_columns(tmp_path: Path) -> None:
    names = [f"column {i}" for i in range(200)]
    line = ",".join(str(i) for i in range(200))
    found = columns(text(tmp_path, "t.csv", ",".join(names) + "\n" + (line + "\n") * 3))
    assert list(found) == names
    assert all(column.storage is Storage.INTEGER for column in found.values())


# A file that is read again


FORMS = {
    "codes of one column": SourceForm(columns=(("age", ColumnForm(na=("-9",))),)),
    "a unit": SourceForm(columns=(("pay", ColumnForm(unit=("$",))),)),
    "codes of all columns": SourceForm(na=("-9", "Chur")),
    "dates": SourceForm(dates=("%d/%m/%Y",)),
    "another mark": SourceForm(decimal=","),
    "no header": SourceForm(header=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_file_that_is_read_again_in_another_form_is_as_if_it_were_read_once(tmp_path: Path, form: SourceForm) -> None:
    lines = ["age,pay,town,born", "44,$3.5,Chur,01/02/1980", "-9,$4.0,Bern,02/02/1980", "51,$9.1,Chur,03/04/1981"]
    path = text(tmp_path, "people.csv", "\n".join([*lines, ""]))

    def describe(engine: DuckDB) -> tuple[Any, ...]:
        frame = engine.read(path, (), form)
        schema = engine.schema(frame)
        return schema, engine.profile(frame, list(schema)), frame.notes, collect_rows(engine, frame).to_pylist()

    with DuckDB(SMALL) as once, DuckDB() as again:
        first = again.read(path)
        again.profile(first, list(again.schema(first)))
        before = collect_rows(again, first).to_pylist()
        assert describe(again) == describe(once)
        assert collect_rows(again, first).to_pylist() == before
        path.write_text(path.read_text().replace("Chur", "Genf"))
        assert "Chur" not in str(describe(again)[3])

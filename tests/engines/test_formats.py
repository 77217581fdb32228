"""Formats: the same table in every format that is read, written by the libraries that others use."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.errors import DataError, PolicyError
from kinfold.policy.model import Policy
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.resources import ReadingLimits, limit_reading
from kinfold.tables.source_form import SourceForm
from small_tables import SMALL

Rows = list[dict[str, Any]]
POLICY = {
    "privacy": {"k": 3},
    "method": {"name": "mdav"},
    "columns": {
        "age": {"role": "quasi", "type": "continuous", "missing": "mean"},
        "height": {"role": "quasi", "type": "continuous", "missing": "mean"},
        "sex": {"role": "quasi", "type": "nominal"},
        "born": {"role": "quasi", "type": "date", "missing": "mean"},
        "income": {"role": "confidential", "type": "continuous"},
    },
}
GERMAN = {"decimal": ",", "thousands": ".", "na": ["NA"], "dates": "%d.%m.%Y", "separator": ";"}


def plain_csv(rows: Rows, path: Path) -> None:
    lines = [",".join(rows[0])]
    lines += [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def german_csv(rows: Rows, path: Path) -> None:
    def field(value: Any) -> str:
        if value is None:
            return "NA"
        if isinstance(value, date):
            return value.strftime("%d.%m.%Y")
        if isinstance(value, float):
            whole, _, fraction = f"{value:,}".partition(".")
            return whole.replace(",", ".") + (f",{fraction}" if fraction else "")
        return str(value)

    lines = [";".join(rows[0]), *(";".join(map(field, row.values())) for row in rows)]
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))


def jsonl(rows: Rows, path: Path) -> None:
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")


def json_array(rows: Rows, path: Path) -> None:
    path.write_text(json.dumps(rows, default=str, indent=1), encoding="utf-8")


def parquet(rows: Rows, path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


def workbook(rows: Rows, path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append(list(row.values()))
    book.save(path)


def labelled(rows: Rows, path: Path) -> None:
    """A file of a statistical package, in which sex is a code with labels."""
    labels = {float(i): text for i, text in enumerate(sorted({row["sex"] for row in rows}), 1)}
    code = {text: i for i, text in labels.items()}
    frame = pd.DataFrame([{**row, "sex": code[row["sex"]]} for row in rows])
    frame[["age", "height", "income"]] = frame[["age", "height", "income"]].astype(float)
    write = {".sav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}[path.suffix]
    whole = {int(i): text for i, text in labels.items()}
    write(frame, str(path), variable_value_labels={"sex": labels if path.suffix == ".sav" else whole})


def packed(how: Callable[[bytes], bytes]) -> Callable[[Rows, Path], None]:
    def write(rows: Rows, path: Path) -> None:
        plain_csv(rows, path)
        path.write_bytes(how(path.read_bytes()))

    return write


def zst(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


WRITERS: dict[str, Callable[[Rows, Path], None]] = {
    "german.csv": german_csv,
    "t.parquet": parquet,
    "t.jsonl": jsonl,
    "t.json": json_array,
    "t.xlsx": workbook,
    "t.sav": labelled,
    "t.dta": labelled,
    "t.csv.gz": packed(gzip.compress),
    "t.csv.bz2": packed(bz2.compress),
    "t.csv.xz": packed(lzma.compress),
    "t.csv.zst": packed(zst),
}

people = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(18, 90),
        "height": st.none() | st.integers(1400, 2_100_000).map(lambda n: n / 1000),
        "sex": st.sampled_from(["female", "male", "other"]),
        "born": st.none() | st.dates(date(1930, 1, 1), date(2005, 12, 31)),
        "income": st.integers(0, 9_999_999).map(lambda n: n / 100),
    }
)


def complete(rows: Rows) -> Rows:
    """Values in every column, and a fraction where there are fractions: a format without types must tell them."""
    first = {"age": 41, "height": 1234.567, "sex": "male", "born": date(1980, 12, 31), "income": 1234567.5}
    second = {"age": 52, "height": 170.5, "sex": "female", "born": date(1971, 1, 13), "income": 0.25}
    return [first, second, *({name: row[name] for name in first} for row in rows)]


def partition(labels: Any) -> list[int]:
    """Labels numbered by their first record: equal partitions give equal lists."""
    first: dict[int, int] = {}
    return [first.setdefault(label, len(first)) for label in np.asarray(labels).tolist()]


def classes(path: Path, source: dict[str, Any]) -> list[int]:
    release = kinfold.anonymize(path, {**POLICY, "source": source, "output": {"order": "kept"}})
    return partition(release.labels)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(rows=st.lists(people, min_size=10, max_size=25).map(complete))
def test_a_table_has_the_same_classes_in_every_format(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("formats")
    plain_csv(rows, folder / "t.csv")
    expected = classes(folder / "t.csv", {})
    for name, write in WRITERS.items():
        write(rows, folder / name)
        assert classes(folder / name, GERMAN if write is german_csv else {}) == expected, name


@pytest.fixture
def rows() -> Rows:
    sexes = ["female", "male"]
    made: Rows = [
        {"age": 20 + i, "height": 150.5 + i, "sex": sexes[i % 2], "born": date(1960 + i, 1, 1), "income": 100.25 * i}
        for i in range(12)
    ]
    return complete(made)


@pytest.mark.parametrize("name", WRITERS)
def test_the_bytes_hashed_are_those_on_disk(rows: Rows, tmp_path: Path, name: str) -> None:
    import hashlib

    WRITERS[name](rows, tmp_path / name)
    with DuckDB(SMALL) as engine:
        frame = engine.read(tmp_path / name)
        assert frame.checksum == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        assert not list(Path(engine._db.folder).glob("source*")), "a copy stayed"


@pytest.mark.parametrize("name", [name for name in WRITERS if name.startswith("t.csv.")])
@pytest.mark.parametrize(
    "harm", [lambda data: data[: len(data) // 2], lambda data: b"nonsense" * len(data)], ids=["cut", "no"]
)
def test_a_packed_file_that_is_broken_is_refused(
    rows: Rows, tmp_path: Path, name: str, harm: Callable[[bytes], bytes]
) -> None:
    WRITERS[name](rows, tmp_path / name)
    (tmp_path / name).write_bytes(harm((tmp_path / name).read_bytes()))
    with DuckDB(SMALL) as engine, pytest.raises(DataError, match="damaged or incomplete"):
        engine.read(tmp_path / name)


# workbooks


def saved(tmp_path: Path, *sheets: tuple[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, lines in sheets:
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def table(path: Path, **source: Any) -> dict[str, list[Any]]:
    with DuckDB(SMALL) as engine:
        policy = Policy.parse({"privacy": {"k": 2}, "source": source})
        return dict(collect_rows(engine, engine.read(path, ("",), policy.source.form)).to_pydict())


TWO = (("people", [["a", "b"], [1, 2]]), ("more", [["c"], [3]]))


@pytest.mark.parametrize(("sheet", "names"), [("people", ["a", "b"]), ("more", ["c"]), (1, ["a", "b"]), (2, ["c"])])
def test_a_sheet_is_named_or_numbered(tmp_path: Path, sheet: str | int, names: list[str]) -> None:
    assert list(table(saved(tmp_path, *TWO), sheet=sheet)) == names


@pytest.mark.parametrize(("sheet", "said"), [(None, "2 sheets with values"), ("x", "no sheet 'x'"), (3, "no sheet 3")])
def test_a_sheet_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, sheet: Any, said: str) -> None:
    with pytest.raises(PolicyError, match=said) as caught:
        table(saved(tmp_path, *TWO), **({} if sheet is None else {"sheet": sheet}))
    assert "'people', 'more'" in str(caught.value)


def test_cells_keep_what_they_are(tmp_path: Path) -> None:
    lines = [
        ["zip", "n", "x", "word", "day", "flag", "big"],
        ["02138", 3, 1.5, "NA", date(2024, 1, 31), True, 123456789012],
        ["12345", 4, 2, 7, date(2024, 2, 1), False, 5],
        [None] * 7,
        ["54321", None, 0.1, 8.25, None, None, -3],
    ]
    found = table(saved(tmp_path, ("s", lines)))
    assert found == {
        "zip": ["02138", "12345", "54321"],
        "n": [3, 4, None],
        "x": [1.5, 2.0, 0.1],
        "word": ["NA", "7", "8.25"],
        "day": ["2024-01-31", "2024-02-01", None],
        "flag": ["true", "false", None],
        "big": [123456789012, 5, -3],
    }
    assert table(tmp_path / "t.xlsx", na=["NA"])["word"] == [None, 7.0, 8.25]


def test_numbers_of_cells_stay_numbers_where_texts_have_a_decimal_comma(tmp_path: Path) -> None:
    lines = [["cells", "texts"], [1.5, "1.234,5"], [2.25, "0,5"]]
    found = table(saved(tmp_path, ("s", lines)), decimal=",", thousands=".")
    assert found == {"cells": [1.5, 2.25], "texts": ["1234.5", "0.5"]}


def test_empty_sheets_and_empty_rows_are_no_table_no_header_and_no_records(tmp_path: Path) -> None:
    assert table(saved(tmp_path, ("empty", []), *TWO[:1], ("none", []))) == {"a": [1], "b": [2]}
    lines = [["", None], [None, None], ["a", "b"], [None, None], [1, 2.5], ["", ""], [3, 4]]
    book = saved(tmp_path, ("s", lines))
    assert table(book) == {"a": [1, 3], "b": [2.5, 4.0]}


PREAMBLES = st.lists(
    st.text(st.sampled_from('a,;" \t1é'), max_size=8).filter(lambda line: line.strip() != ""), min_size=0, max_size=4
)


@settings(max_examples=25)
@given(above=PREAMBLES, end=st.sampled_from(["\n", "\r\n"]), is_workbook=st.booleans(), empty=st.integers(0, 2))
def test_a_table_below_some_lines_is_the_same_table(
    above: list[str], end: str, is_workbook: bool, empty: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """By the line of its header, by the lines above it, and without a header."""
    folder = tmp_path_factory.mktemp("t")
    body = [["a", "b"], [1, "x y"], [2, "z"]]
    lines = [[line] for line in above] + [[None, None]] * empty
    if is_workbook:
        (folder / "bare").mkdir()
        path, bare = saved(folder, ("s", [*lines, *body])), saved(folder / "bare", ("s", [*lines, *body[1:]]))
    else:
        path, bare = folder / "t.csv", folder / "bare.csv"
        texts = [*above, *[""] * empty]
        path.write_text(end.join([*texts, *(f"{a},{b}" for a, b in body), ""]), "utf-8", newline="")
        bare.write_text(end.join([*texts, *(f"{a},{b}" for a, b in body[1:]), ""]), "utf-8", newline="")
    found = {"a": [1, 2], "b": ["x y", "z"]} if is_workbook else {"a": ["1", "2"], "b": ["x y", "z"]}
    number = len(lines) + 1
    for given_ in ({"header": number}, {"skip": len(above)}, {"header": number, "skip": len(lines)}):
        assert table(path, separator=",", **given_) == found
    assert [*table(bare, separator=",", header=0, skip=len(above)).values()] == [*found.values()]
    assert [*table(bare, separator=",", header=0, skip=len(lines))] == ["column1", "column2"]


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
@pytest.mark.parametrize("given_", [{"header": 3}, {"header": 9}, {"skip": 9}, {"header": 0, "skip": 9}])
def test_a_line_without_names_is_told(tmp_path: Path, name: str, given_: dict[str, int]) -> None:
    path = saved(tmp_path, ("s", [["a", "b"], [1, 2], [None, None], [3, 4]])) if name == "t.xlsx" else tmp_path / name
    if name == "t.csv":
        path.write_text("a,b\n1,2\n\n3,4\n", "utf-8")
    with pytest.raises(DataError, match=r"empty|there is no table"):
        table(path, **given_)


def test_a_declared_header_is_not_doubted_and_may_be_within_skipped_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("34,f\n51,m\n47,f\n", "utf-8")
    with pytest.raises(DataError, match="does not look like a header") as caught:
        kinfold.anonymize(tmp_path / "t.csv", quasi=["x"], k=2)
    assert "source.header = 0" in str(caught.value)
    release = kinfold.anonymize(tmp_path / "t.csv", quasi=["column1", "column2"], k=3, header=0)
    assert release.frame.num_rows == 3
    assert kinfold.profile(tmp_path / "t.csv", header=0).source["header"] == 0
    assert table(tmp_path / "t.csv", header=1, skip=2) == {"34": ["47"], "f": ["f"]}
    with pytest.raises(PolicyError, match=r"source\.skip"):
        kinfold.profile(tmp_path / "t.csv", skip=-1)


def bomb(tmp_path: Path, claimed: int | None = None) -> Path:
    """A workbook whose sheet is much larger than the file; its header may claim another size."""
    path = saved(tmp_path, ("s", [["a", "b"], [1, 2]]))
    with zipfile.ZipFile(path) as plain, zipfile.ZipFile(tmp_path / "b.xlsx", "w", zipfile.ZIP_DEFLATED) as packed:
        for part in plain.infolist():
            more = b" " * 5_000_000 if "sheet1" in part.filename else b""
            packed.writestr(part.filename, plain.read(part) + more)
        if claimed is not None:
            next(part for part in packed.infolist() if "sheet1" in part.filename).file_size = claimed
    return tmp_path / "b.xlsx"


@pytest.mark.parametrize("claimed", [None, 500])
def test_a_workbook_that_expands_like_no_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int | None
) -> None:
    book = bomb(tmp_path, claimed)
    monkeypatch.setattr("kinfold.tables.readers.files.MAX_SMALL_WORKBOOK", 2_000_000)
    with pytest.raises(DataError, match=r"'b\.xlsx' expands to more than 2 MB"):
        table(book)
    with limit_reading(ReadingLimits(expanded=1_000_000)), pytest.raises(DataError, match="more than 1 MB"):
        table(book)
    monkeypatch.setattr("kinfold.tables.readers.files.MAX_SMALL_WORKBOOK", 6_000_000)
    if claimed is None:
        assert table(book) == {"a": [1], "b": [2]}


@pytest.mark.parametrize("name", [name for name in WRITERS if name.startswith("t.csv.")])
def test_a_packed_file_expands_within_bounds_and_columns_are_counted(rows: Rows, tmp_path: Path, name: str) -> None:
    WRITERS[name](rows, tmp_path / name)
    with DuckDB(SMALL) as engine:
        with limit_reading(ReadingLimits(expanded=50)), pytest.raises(DataError, match="expands to more than"):
            engine.read(tmp_path / name)
        assert not list(Path(engine._db.folder).glob("source*")), "a copy stayed"
        with limit_reading(ReadingLimits(columns=1)), pytest.raises(DataError, match="columns; the limit is 1"):
            engine.read(tmp_path / name)
        engine.read(tmp_path / name)


def merged(tmp_path: Path) -> Path:
    path = saved(tmp_path, ("s", [["a", None, "c"], [1, 2, 3]]))
    book = openpyxl.load_workbook(path)
    book["s"].merge_cells("A1:B1")
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (merged, "column 2 has no name"),
        (lambda path: saved(path, ("s", [["a", "a"], [1, 2]])), "have the same name"),
        (lambda path: saved(path, ("s", [])), "is empty"),
        (lambda path: saved(path, ("s", [["a", "b"]])), "has no rows"),
        (lambda path: written(path, b"PK\x03\x04 nonsense"), "cannot be read as an Excel file"),
        (lambda path: harmed(path), "cannot be read as an Excel file"),
        (lambda path: written(path, bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600), "password, or is an old Excel"),
    ],
    ids=["merged", "twice", "empty", "header", "broken", "harmed", "password"],
)
def test_a_workbook_that_cannot_be_read_says_why(tmp_path: Path, make: Callable[[Path], Path], said: str) -> None:
    with pytest.raises(DataError, match=said):
        table(make(tmp_path))


def harmed(folder: Path) -> Path:
    """A workbook whose sheet is cut in the middle."""
    whole = saved(folder, ("s", [["a", "b"], *([i, "x"] for i in range(50))]))
    cut = folder / "cut.xlsx"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(cut, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, data[: len(data) // 2] if "worksheets" in name else data)
    return cut


def written(folder: Path, data: bytes) -> Path:
    (folder / "t.xlsx").write_bytes(data)
    return folder / "t.xlsx"


# statistical packages


def sav(tmp_path: Path, **options: Any) -> Path:
    frame = pd.DataFrame({"sex": [1.0, 2.0, 9.0, 1.0], "edu": [3.0, 1.0, 2.0, 3.0], "age": [43.0, 99.0, 51.0, None]})
    labels = {
        "sex": {1.0: "m", 2.0: "f", 9.0: "refused"},
        "edu": {3.0: "high", 1.0: "low", 2.0: "mid"},
        "age": {99.0: "old"},
    }
    pyreadstat.write_sav(frame, str(tmp_path / "t.sav"), variable_value_labels=labels, **options)
    return tmp_path / "t.sav"


def test_labels_are_categories_in_the_order_of_their_codes(tmp_path: Path) -> None:
    path = sav(tmp_path, missing_ranges={"sex": [9.0]}, variable_measure={"edu": "ordinal", "sex": "nominal"})
    with DuckDB(SMALL) as engine:
        frame = engine.read(path)
        schema = engine.schema(frame)
        assert collect_rows(engine, frame).to_pydict() == {
            "sex": ["m", "f", None, "m"],  # a user-missing value is missing
            "edu": ["high", "low", "mid", "high"],
            "age": [43, 99, 51, None],  # most of its values have no label, and 43.0 is a whole number
        }
    assert schema["edu"].order == ("low", "mid", "high")
    assert (str(schema["edu"].kind), str(schema["sex"].kind)) == ("ordinal", "nominal")
    assert schema["sex"].order == ("m", "f")


@pytest.mark.parametrize("ending", [".sav", ".dta", ".por", ".sas7bdat", ".xpt"])
def test_a_broken_file_of_a_statistical_package_is_refused(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"t{ending}").write_bytes(b"SECRET" * 200)
    with DuckDB(SMALL) as engine, pytest.raises(DataError, match="cannot be read") as caught:
        engine.read(tmp_path / f"t{ending}")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("ending", [".por", ".xpt"])
def test_the_exchange_formats_are_read(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"AGE": [43.0, 51.0], "X": [1.5, None], "WORD": ["a", "b"]})
    write = pyreadstat.write_por if ending == ".por" else pyreadstat.write_xport
    write(frame, str(tmp_path / f"t{ending}"))
    assert table(tmp_path / f"t{ending}") == {"AGE": [43, 51], "X": [1.5, None], "WORD": ["a", "b"]}


# cells that have no exact reading


def odd_book(tmp_path: Path, *columns: tuple[str, Any], epoch: Any = None) -> Path:
    """A workbook whose columns are named, with one value in four rows, or a value for each row."""
    book = openpyxl.Workbook()
    book.epoch = epoch or book.epoch
    for place, (name, value) in enumerate(columns, 1):
        book.active.cell(1, place).value = name
        for row in range(4):
            book.active.cell(row + 2, place).value = value(row) if callable(value) else value
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("=1+1", "4 formulas without a computed value"),
        (lambda row: timedelta(hours=30 + row), "4 durations"),
        (lambda row: 12345678901234567 + row, "4 numbers of more than 15 digits"),
        (lambda row: time(8, row) if row else date(2024, 1, 1), "3 times of day among dates"),
    ],
    ids=["formula", "duration", "digits", "mixed"],
)
def test_cells_without_an_exact_reading_are_refused_by_their_column(tmp_path: Path, given: Any, said: str) -> None:
    with pytest.raises(DataError, match=f"column 'odd' of 't.xlsx' holds {said}"):
        table(odd_book(tmp_path, ("plain", 1), ("odd", given)))


@pytest.mark.parametrize("epoch", [None, openpyxl.utils.datetime.CALENDAR_MAC_1904])
def test_cells_are_read_as_what_they_are(tmp_path: Path, epoch: Any) -> None:
    third = [0.1 + row / 3 for row in range(4)]
    path = odd_book(
        tmp_path,
        ("at", lambda row: time(8, row, 5) if row else time()),
        ("day", lambda row: date(1998 + row, 2, 28)),
        ("late", lambda row: time(8, row) if row else "n/a"),
        ("third", lambda row: third[row]),
        ("tiny", lambda row: row * 1e-12),
        ("huge", lambda row: row * 1e20),
        epoch=epoch,
    )
    assert table(path) == {
        "at": ["00:00:00", "08:01:05", "08:02:05", "08:03:05"],
        "day": ["1998-02-28", "1999-02-28", "2000-02-28", "2001-02-28"],
        "late": ["n/a", "08:01:00", "08:02:00", "08:03:00"],
        "third": [pytest.approx(each, rel=1e-15) for each in third],
        "tiny": [0.0, 1e-12, 2e-12, 3e-12],
        "huge": [0.0, 1e20, 2e20, 3e20],
    }


def test_numbers_shown_with_leading_zeros_are_codes(tmp_path: Path) -> None:
    path = odd_book(
        tmp_path,
        ("zip", lambda row: 2138 + 5000 * row),
        ("high", lambda row: 12138 + row),
        ("part", lambda row: row / 2),
    )
    book = openpyxl.load_workbook(path)
    for cell in (cell for row in book.active["A2:C5"] for cell in row):
        cell.number_format = "00000"
    book.save(path)
    read = table(path)
    assert read["zip"] == ["02138", "07138", "12138", "17138"]
    assert (read["high"], read["part"]) == ([12138, 12139, 12140, 12141], [0.0, 0.5, 1.0, 1.5])


def test_what_a_person_does_not_see_in_a_workbook_is_noted(tmp_path: Path) -> None:
    path = odd_book(
        tmp_path, ("a", lambda row: row), ("b", lambda row: row % 2), ("c", lambda row: "#N/A" if row else 1)
    )
    book = openpyxl.load_workbook(path)
    sheet = book.active
    sheet.row_dimensions[3].hidden = sheet.row_dimensions[4].hidden = sheet.column_dimensions["B"].hidden = True
    sheet.merge_cells("A2:A3")
    book.create_sheet("old").sheet_state = "veryHidden"
    book.save(path)
    column = {"a": {"role": "quasi", "missing": "separate"}}
    policy = {"privacy": {"k": 2}, "columns": column, "output": {"others": "drop"}}
    notes = kinfold.anonymize(path, policy).plan.notes
    for part in ("2 rows (3-4)", "1 column ('b')", "the sheet 'old'", "merged", "'c': 3 cells hold"):
        assert part in " ".join(notes)
    assert {*notes[:5]} <= {*kinfold.profile(path).warnings}


STATA = [  # a format, counts, and what they are
    ("%tm", [700, 701, None], ["2018m5", "2018m6", None]),
    ("%tq", [-1, 233, None], ["1959q4", "2018q2", None]),
    ("%tw", [51, 52, 103], ["1960w52", "1961w1", "1961w52"]),
    ("%th", [0, 1, 116], ["1960h1", "1960h2", "2018h1"]),
    ("%ty", [1999, 2000, 2001], [1999, 2000, 2001]),
    ("%td", [0, -1, 22000], [date(1960, 1, 1), date(1959, 12, 31), date(2020, 3, 26)]),
    ("%tc", [0, 500, 86_400_000], [datetime(1960, 1, 1), datetime(1960, 1, 1, 0, 0, 0, 500_000), datetime(1960, 1, 2)]),
    ("%tcHH:MM", [0, 60_000, 3_600_000], [time(0), time(0, 1), time(1)]),
    ("%tC", [0, 1, 2], "counts leap seconds"),
    ("%tbcal", [0, 1, 2], "business calendar"),
    ("%tm", [1.5, 2, 3], "not whole"),
    ("%05.0f", [2138, 10001, None], ["02138", "10001", None]),
    ("%05.0f", [12138, 10001, None], [12138, 10001, None]),
]
SPSS_AND_SAS = [
    (".sav", "TIME8", [3600.0, 86399.5], [time(1), time(23, 59, 59, 500_000)]),
    (".sav", "TIME8", [3600.0, 108000.0], "holds durations"),
    (".sav", "DTIME10", [3600.0, 7200.0], "holds durations"),
    (".sav", "DATE11", [13_000_003_260.0, 12_219_379_200.0], [datetime(1994, 9, 27, 0, 1), datetime(1970, 1, 1)]),
    (".sav", "MOYR8", [12_219_379_200.0, 12_219_465_600.0], [date(1970, 1, 1), date(1970, 1, 2)]),
    (".xpt", "MONYY7", [0.0, 366.0], [date(1960, 1, 1), date(1961, 1, 1)]),
    (".xpt", "DTDATE9", [86400.0, 172800.0], [date(1960, 1, 2), date(1960, 1, 3)]),
    (".xpt", "HHMM5", [90000.0, 0.0], "holds durations"),
    (".sav", "N5", [2138.0, 10001.0], ["02138", "10001"]),
    (".xpt", "Z5", [2138.0, 0.0], ["02138", "00000"]),
    (".xpt", "Z5", [2138.5, 1.0], [2138.5, 1.0]),
]


def stata(tmp_path: Path, form: str, values: list[Any]) -> Path:
    """A file of Stata whose column has a format that no writer here has: it is put where the usual one is."""
    path = tmp_path / "t.dta"
    pyreadstat.write_dta(pd.DataFrame({"v": pd.Series(values, dtype=float)}), str(path))
    usual = pyreadstat.read_dta(str(path))[1].original_variable_types["v"].encode()
    path.write_bytes(path.read_bytes().replace(usual.ljust(20, b"\0"), form.encode().ljust(20, b"\0"), 1))
    return path


@pytest.mark.parametrize(("form", "values", "expected"), STATA, ids=lambda each: str(each)[:9])
def test_formats_of_stata_say_what_counts_are(tmp_path: Path, form: str, values: list[Any], expected: Any) -> None:
    compare_read(stata(tmp_path, form, values), expected)


@pytest.mark.parametrize(("ending", "form", "values", "expected"), SPSS_AND_SAS)
def test_formats_of_spss_and_sas_say_what_counts_are(
    tmp_path: Path, ending: str, form: str, values: list[float], expected: Any
) -> None:
    write = {".sav": pyreadstat.write_sav, ".xpt": pyreadstat.write_xport}[ending]
    write(pd.DataFrame({"v": values}), str(tmp_path / f"t{ending}"), variable_format={"v": form})
    compare_read(tmp_path / f"t{ending}", expected)


def compare_read(path: Path, expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(DataError, match=f"column 'v' of '{path.name}' .*{expected}"):
            table(path)
    else:
        assert table(path)["v"] == expected


# what is not read


@pytest.mark.parametrize(
    ("name", "remedy"), [("t.xls", "save it as .xlsx"), ("t.zip", "unpack"), ("t.dat", ".csv, .tsv")]
)
def test_an_unknown_format_says_which_are_known(tmp_path: Path, name: str, remedy: str) -> None:
    (tmp_path / name).write_bytes(b"a,b\n1,2\n")
    with DuckDB(SMALL) as engine, pytest.raises(DataError, match="unknown file ending") as caught:
        engine.read(tmp_path / name)
    assert remedy in str(caught.value)
    assert all(ending in str(caught.value) for ending in (".csv", ".parquet", ".json", ".xlsx", ".dta", ".sav", ".gz"))


def test_without_the_extra_the_command_to_install_it_is_told(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS["t.sav"](rows, tmp_path / "t.sav")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with DuckDB(SMALL) as engine, pytest.raises(PolicyError, match=r"pip install '\.\[stats\]' in a checkout"):
        engine.read(tmp_path / "t.sav")


def test_texts_among_numbers_in_json_are_read_as_written(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1, "b": "7"}\n{"a": "NA", "b": "8"}\n{"a": 2.5, "b": "9"}\n')
    with DuckDB(SMALL) as engine:
        schema = engine.schema(engine.read(tmp_path / "t.jsonl", form=SourceForm(na=("NA",))))
    assert (str(schema["a"].storage), schema["a"].nulls) == ("number", 1)
    assert str(schema["b"].storage) == "text"  # JSON knows types: these are texts


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [
        (["0.10000000000000000000001", "0.10000000000000000000002"], True),
        (["12345678901234567.01", "1"], True),
        (["1.5", "12345678901234567890123456789012.5"], True),
        (["1.00000000000000000000001e-3", "1"], True),
        (["0.1000000000000000055511151231257827", "0.14285714285714285"], False),  # a double, printed to 34 digits
        (["1.5", "1152921504606846977"], False),
    ],
)
def test_fractions_in_json_are_exact_or_refused(tmp_path: Path, numbers: list[str], lost: bool) -> None:
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(f'[{{"a": {numbers[0]}}}, {{"a" : {numbers[1]}}}]'.encode()))
    if lost:
        with pytest.raises(DataError, match=r"column 'a' of 't\.json\.gz' holds numbers of more digits"):
            table(tmp_path / "t.json.gz")
    else:
        assert table(tmp_path / "t.json.gz")["a"] is not None

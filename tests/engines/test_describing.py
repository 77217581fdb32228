"""Columns of a short table are asked together: the answers are those of each asked alone."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from kinfold.rows.engines import database, describing, seeming_types, type_inference
from kinfold.rows.engines.duckdb import DuckDB
from kinfold.rows.schema import Schema
from kinfold.rows.source_form import Form

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
    with DuckDB() as engine:
        frame = engine.read(path)
        assert set(frame.types) == {"VARCHAR"}
        places = range(len(TEXTS))
        together = describing._of_short_texts(engine._db, frame, places)
        for i in places:
            alone = describing._of_texts(engine._db, frame, i, type_inference.questions("VARCHAR", f"c{i}"))
            assert together[i] == alone, list(TEXTS)[i]
        assert together[3]["distinct"] == 2
        assert together[4]["filled"] == 0


def test_a_long_table_is_described_as_a_short_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DuckDB() as engine:
        short = engine.schema(engine.read(path))
    monkeypatch.setattr(database, "SHORT", 0)
    with DuckDB() as engine:
        assert engine.schema(engine.read(path)) == short


MOMENTS = (
    *("2020-01-05", "2020/1/5", "5.1.2020", "05/01/2020", "13/01/2020", "01-13-2020", "5-Jan-2020", "05Jan2020"),
    *("5 January 2020", "Jan 5, 2020", "2020-01-05 00:00:00", "2020-01-05T00:00:00.000Z", "2020-01-05T10:20:30.123456"),
    *(
        "2020-01-05\t10:20",
        "2020-01-05T10:20Z",
        "2020-01-05 10:20:30+02",
        "5.1.20",
        "unknown",
        "flu",
        "20200105",
        "2020",
    ),
)


@pytest.mark.parametrize("declared", [(), ("%Y%m%d",), ("%d.%m.%y", "on %d.%m.%Y")])
def test_dates_are_found_without_asking_for_formats_whose_marks_no_value_has(
    declared: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chance = random.Random(5)
    columns = {f"x{i}": chance.choices(chance.sample(MOMENTS, chance.randint(1, 3)), k=12) for i in range(60)}
    columns |= {f"all {i}": [moment] * 12 for i, moment in enumerate(MOMENTS)}
    file = tmp_path / "moments.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([list(columns), *zip(*columns.values(), strict=True)])

    def described() -> Schema:
        with DuckDB() as engine:
            return engine.schema(engine.read(file, form=Form(dates=declared)))

    found = described()
    assert sum(column.date_format is not None for column in found) > 10
    monkeypatch.setattr(seeming_types, "_possible", lambda _, __, columns, forms: {c.place: forms for c in columns})
    assert described() == found
    monkeypatch.undo()
    monkeypatch.setattr(seeming_types, "SOME_ROWS", 3)  # and where some are looked at before all
    assert described() == found

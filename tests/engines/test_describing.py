"""Columns of a short table are asked together: the answers are those of each asked alone."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from kinfold.rows.engines import describing, type_inference
from kinfold.rows.engines.duckdb import DuckDB

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
    monkeypatch.setattr(describing, "SHORT", 0)
    with DuckDB() as engine:
        assert engine.schema(engine.read(path)) == short
